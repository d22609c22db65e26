// What can be taken out of bakeoff. The core asks the list in lib/features.ts, and knows no feature by name.
import type { Flag } from './cli/words.ts';
import type { Html } from './report/html/page.ts';
import type { Part } from './report/table.ts';
import type { Result } from './result/result.ts';
import type { RunContext } from './runner/plan.ts';

export interface Command {
  help: string;
  /** Returns the exit code. It loads the command's code: others need none of it. */
  run(args: string[]): Promise<number>;
}

/** A run whose rounds are done, while its servers' configs, its folder and its database are there. */
export interface EndedRun {
  context: RunContext;
  result: Result;
  /** The flags of its command, by name. */
  flags: ReadonlyMap<string, string>;
  /** Which comparisons may be looked at: all, those that differ, or none. */
  examined: 'all' | 'decided' | 'none';
  /** Shows what goes on. `seen`: at what. */
  tell(step: { what: string; seen: string; secondsLeft: number }): void;
}

/** A folder of lib/features. It may use the core, and no other feature. */
export interface Feature {
  commands?: Readonly<Record<string, Command>>;
  /** Of every run. They come last in their groups of the help, and none goes with --k6-script. */
  flags?: Readonly<Record<string, Flag>>;
  /** Returns the result with what was found under a key of its own; undefined if nothing was looked at. Throws what ends the run. */
  afterRounds?(run: EndedRun): Promise<Result | undefined>;
  /** Below the table. */
  sentences?(result: Result): string[];
  /** Tables of --verbose. */
  parts?(result: Result): Part[];
  /** Sections of report.html, below its table. @param folder of the run; undefined: its files are not there */
  sections?(result: Result, folder: string | undefined): Promise<Html[]>;
}
