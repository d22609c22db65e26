// What the features add to the report of a run. The commands hand it in (lib/cli/main.ts).
import type { Result } from '../result/result.ts';
import type { Figure, Html } from './html/page.ts';
import type { Part, Table } from './table.ts';

/** A feature's additions to the report of one result. */
export interface Contribution {
  /** Sentences that stand before those on comparisons. */
  findings?: readonly string[];
  /** Sentences that stand below the table. */
  sentences?: readonly string[];
  /** Tables that stand with the article's, in terminal, Markdown and HTML. */
  tables?: readonly Part[];
  /** Tables that --verbose shows with each load in detail. */
  loadTables?: readonly Table[];
  /** Tables that --verbose shows. */
  parts?: readonly Part[];
  /** Plots of report.html. */
  figures?: readonly Figure[];
  /** Returns sections of report.html that stand below its table. @param folder of the run; undefined if its files are not there */
  sections?(folder: string | undefined): Promise<readonly Html[]>;
  /** Where the run's figures were sent. Its line is the last one below the table. */
  stored?: Stored;
}

/** Where a run's figures are, besides its folder. */
export interface Stored {
  line: string;
  /** What is missing there. The run then has exit code 1. */
  lack?: string;
}

/** Returns what the features add to the report of a result. */
export type Contribute = (result: Result) => readonly Contribution[];
