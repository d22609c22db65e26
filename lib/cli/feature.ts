// The parts that can be taken out of bakeoff. The core asks the list in lib/features.ts. It names no feature itself, except in the formats
// of result.json and of scenarios, in the help of --rounds and --generator-cpus, in advice on requests that have statuses of a log, in its
// texts on networks and on what a search found, and in the next step after --k6-script.
import type { Given } from './sides.ts';
import type { Arguments, Flag } from './arguments.ts';
import type { Contribute, Contribution } from '../report/contribution.ts';
import type { Result } from '../result/result.ts';
import type { PlannedEnclosure } from '../runner/enclosure.ts';
import type { PlannedMachines } from '../runner/machines.ts';
import type { Observer } from '../runner/observers/observer.ts';
import type { PlanDraft, PlannedSink, RunContext, SteppedLoad } from '../runner/plan.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import type { AskedRequests } from '../scenario/pages.ts';

export interface Command {
  help: string;
  /** Runs the command and returns its exit code. The command's code is loaded here, so that other commands do not load it. */
  run(args: string[], additions: Additions): Promise<number>;
}

/** What all features add to the commands. */
export interface Additions {
  contributionsTo: Contribute;
}

/** A run whose rounds are done. Its servers' configs, its folder and its sink are still there. */
export interface EndedRun {
  context: RunContext;
  result: Result;
  /** The flags of its command, by name. */
  flags: ReadonlyMap<string, string>;
  /** Which comparisons may be looked at: all, those with the verdict faster or slower, or none. */
  examined: 'all' | 'decided' | 'none';
  /** Shows progress: the step, the sides it looks at, the seconds left. */
  tell(step: { what: string; seen: string; secondsLeft: number }): void;
  /** Prints a line that stays. */
  say(line: string): void;
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

/** A folder below bakeoff's own. */
export interface KeptFolder {
  folder: string;
  what: string;
  /** This file marks the folder as bakeoff's. It is locked while the folder is in use. */
  lock: string;
}

/** A folder of lib/features. It may use the core, and no other feature. */
export interface Feature {
  commands?: Readonly<Record<string, Command>>;
  /**
   * Flags of every command that measures. They come last in their groups of the help. With --k6-script, only flags with `inScripts` are
   * accepted.
   */
  flags?: Readonly<Record<string, Flag>>;
  /** Flags of compare and knobs that say what to request. In the help they follow --urls. */
  requestFlags?: Readonly<Record<string, Flag>>;
  /** Returns the requests that requestFlags ask for; undefined if none of the flags is given. Throws UserError (exit code 2). */
  requests?(parsed: Arguments, sides: readonly Given[]): Promise<AskedRequests | undefined>;
  /** Returns another scenario to run in its place, with all variants; undefined if no flag asks for one. */
  scenario?(asked: AskedScenario): Scenario | undefined;
  /** Returns the load in steps that the scenario or the flags ask for; undefined if they ask for none. */
  steppedLoad?(scenario: Scenario, flags: ReadonlyMap<string, string>): SteppedLoad | undefined;
  /** Returns a place apart from the machine's loopback for the variant's server and load; undefined if it needs none. */
  enclosure?(scenario: Scenario, variant: Variant): PlannedEnclosure | undefined;
  /** Observe each load, after the use of CPU time. */
  observers?: readonly Observer[];
  /**
   * Returns where the flags send a run's figures besides its folder; undefined if nowhere. A run has one sink, that of the first feature
   * that returns one.
   * Throws UserError (exit code 2).
   */
  sink?(flags: ReadonlyMap<string, string>): PlannedSink | undefined;
  /**
   * Returns the machine on which the flags ask to start the servers; undefined means this one. A run uses that of the first feature that
   * returns one.
   * Throws UserError (exit code 2).
   */
  machines?(parsed: Pick<Arguments, 'flags' | 'read'>): PlannedMachines | undefined;
  /** Estimates how many seconds afterRounds takes for a run with this plan and these flags; 0 if it will not look. */
  secondsAfterRounds?(plan: PlanDraft, flags: ReadonlyMap<string, string>): number;
  /**
   * Looks at a run after its rounds. Returns the result with its findings, and without verdicts that they refute; undefined if it did not
   * look. Throws errors that end the run.
   */
  afterRounds?(run: EndedRun): Promise<Result | undefined>;
  /** Returns what it adds to the report of a result. */
  report?(result: Result): Contribution;
  /** Data that no run can make again. `clean` deletes it only with --history, for which this is the help. */
  history?: { help: string; folders: readonly KeptFolder[] };
}
