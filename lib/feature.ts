// What can be taken out of bakeoff. The core asks the list in lib/features.ts, and names no feature but in the formats of results and
// scenarios, in help and advice on their flags, and in what it says of networks.
import type { CurvePoint } from './analysis/curves.ts';
import type { Given } from './cli/sides.ts';
import type { Arguments, Flag } from './cli/arguments.ts';
import type { Figure, Html } from './report/html/page.ts';
import type { Part, Table } from './report/table.ts';
import type { FoundRate, Result } from './result/result.ts';
import type { PlannedEnclosure } from './runner/enclosure.ts';
import type { PlannedMachines } from './runner/machines.ts';
import type { Observer } from './runner/observers/observer.ts';
import type { PlanDraft, PlannedSink, RunContext, SteppedLoad } from './runner/plan.ts';
import type { NetworkSpec, Scenario, Variant } from './scenario/model.ts';
import type { AskedRequests } from './scenario/pages.ts';

export interface Command {
  help: string;
  /** Returns the exit code. The command's code is loaded only here. */
  run(args: string[]): Promise<number>;
}

/** A run whose rounds are done. Configs, folder and sink are still there. */
export interface EndedRun {
  context: RunContext;
  result: Result;
  /** The flags of its command, by name. */
  flags: ReadonlyMap<string, string>;
  /** Comparisons that may be looked at. */
  examined: 'all' | 'decided' | 'none';
  /** Shows progress: the step, the sides it looks at, the seconds left. */
  tell(step: { what: string; seen: string; secondsLeft: number }): void;
  /** Prints a line that stays. */
  say(line: string): void;
}

/** What a load in steps found, instead of the requests/s that were answered. */
export interface FoundRates {
  /** What its comparisons are judged by: "the highest rate with …". */
  judgedBy: string;
  /** The limit of latency that the rates keep, in milliseconds and in words. */
  limit: { ms: number; text: string };
  rates: readonly FoundRate[];
  /** Returns a variant's steps. */
  pointsOf(variant: string): CurvePoint[];
  /** Stands above the chart in the terminal, and below its title in report.html. */
  chart: { heading: string; text: string };
}

/** A scenario that is about to be planned. */
interface AskedScenario {
  scenario: Scenario;
  /** The variants that the user asked for. */
  shown: readonly Variant[];
  /** The flags of the command, by name. */
  flags: ReadonlyMap<string, string>;
  /** Responses that a verdict needs in each round at a rate. */
  responses: number;
}

/** Where a run's figures are, besides its folder. */
export interface Stored {
  line: string;
  /** What is missing there. The run then has exit code 1. */
  lack?: string;
}

/** A folder below bakeoff's own. */
export interface KeptFolder {
  folder: string;
  what: string;
  /** It marks the folder as bakeoff's, and as in use. */
  lock: string;
}

/** A folder of lib/features. It may use the core, and no other feature. */
export interface Feature {
  commands?: Readonly<Record<string, Command>>;
  /** Flags of every command that measures, last in their groups of the help. --k6-script takes those with inScripts. */
  flags?: Readonly<Record<string, Flag>>;
  /** Flags of compare and knobs that say what to request. They follow --urls in the help. */
  requestFlags?: Readonly<Record<string, Flag>>;
  /** Returns the requests that requestFlags ask for. Throws UserError (exit code 2). */
  requests?(parsed: Arguments, sides: readonly Given[]): Promise<AskedRequests | undefined>;
  /** Returns another scenario, all of whose variants are run, if a flag asks for one. */
  scenario?(asked: AskedScenario): Scenario | undefined;
  /** Returns the load in steps that scenario or flags ask for. */
  steppedLoad?(scenario: Scenario, flags: ReadonlyMap<string, string>): SteppedLoad | undefined;
  /** Returns the variant's place apart from the machine's loopback, if it needs one. */
  enclosure?(scenario: Scenario, variant: Variant): PlannedEnclosure | undefined;
  /** Observe each load, after the use of CPU time. */
  observers?: readonly Observer[];
  /** Returns where the flags send figures besides the folder; the first feature's counts. Throws UserError (exit code 2). */
  sink?(flags: ReadonlyMap<string, string>): PlannedSink | undefined;
  /** Returns the machine that the flags ask for to start servers; the first feature's counts. Throws UserError (exit code 2). */
  machines?(parsed: Pick<Arguments, 'flags' | 'read'>): PlannedMachines | undefined;
  /** Says where figures were sent, in the last line below the table. */
  stored?(result: Result): Stored;
  /** Estimates the seconds of afterRounds; 0 if it will not look. */
  secondsAfterRounds?(plan: PlanDraft, flags: ReadonlyMap<string, string>): number;
  /**
   * Looks at a run. Returns the result with its findings, and without verdicts that these refute; undefined if it did not look. Throws
   * what ends the run.
   */
  afterRounds?(run: EndedRun): Promise<Result | undefined>;
  /** Returns what a load in steps found. */
  found?(result: Result): FoundRates | undefined;
  /** Returns sentences that stand before those on comparisons. */
  findings?(result: Result): string[];
  /** Returns sentences that stand below the table. */
  sentences?(result: Result): string[];
  /** Says in the heading what networks there are, undefined for loopback. */
  networkText?(networks: readonly (NetworkSpec | undefined)[]): string;
  /** Returns tables that stand with the article's. */
  tables?(result: Result): Part[];
  /** Returns tables that --verbose shows with each load in detail. */
  loadTables?(result: Result): Table[];
  /** Returns plots of report.html. */
  figures?(result: Result): Figure[];
  /** Returns tables that --verbose shows. */
  parts?(result: Result): Part[];
  /** Returns sections below the table of report.html. @param folder undefined if the run's files are not there */
  sections?(result: Result, folder: string | undefined): Promise<Html[]>;
  /** Data that no run can make again: `clean` deletes it with --history alone, whose help this is. */
  history?: { help: string; folders: readonly KeptFolder[] };
}
