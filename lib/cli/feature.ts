// The parts that can be taken out of bakeoff. lib/cli/main.ts names them and hands to the commands what they add. The rest of the core
// names no feature, except in the formats of result.json and of scenarios, in the help of --rounds and --generator-cpus, with --no-look, in advice on
// requests that have statuses of a log, in its texts on networks and on what a search found, and in the next step after --k6-script.
import type { Contribute, Contribution } from '../report/contribution.ts';
import type { AnyTemplates } from '../report/finding-words.ts';
import type { Result } from '../result/result.ts';
import type { CallCounter, Examiner, Instead } from '../runner/examine.ts';
import type { PlannedMachines } from '../runner/machines.ts';
import type { Planner } from '../runner/make-plan.ts';
import type { Observer } from '../runner/observers/observer.ts';
import type { PlannedSink } from '../runner/plan.ts';
import type { AskedRequests } from '../scenario/pages.ts';
import type { Arguments, Flag } from './arguments.ts';
import type { Given } from './sides.ts';

/** A folder of lib/features. It may use the core, and no other feature. */
export interface Feature {
  /** Commands by name, in the order of the help. */
  commands?: Readonly<Record<string, Command>>;
  run?: RunPart;
  /** Templates of its own findings' type. */
  templates?: AnyTemplates;
  /** Returns what it adds to the report of a result. */
  report?(result: Result): Contribution;
  keeps?: Keeps;
}

export interface Command {
  help: string;
  /** Runs the command and returns its exit code. The command's code is loaded here, so that other commands do not load it. */
  run(args: string[], additions: Additions): Promise<number>;
}

/** What all features add to the commands. */
export interface Additions {
  runParts: readonly RunPart[];
  contributionsTo: Contribute;
  templates: AnyTemplates;
}

/** What a feature adds to commands that measure. */
export interface RunPart {
  /** They come last in their groups of the help. With --k6-script, only flags with `inScripts` are accepted. */
  flags?: Readonly<Record<string, Flag>>;
  /** Flags of compare and knobs that say what to request. In the help they follow --urls. */
  requestFlags?: Readonly<Record<string, Flag>>;
  /** Returns the requests that requestFlags ask for; undefined if none of the flags is given. Throws UserError (exit code 2). */
  requests?(parsed: Arguments, sides: readonly Given[]): Promise<AskedRequests | undefined>;
  /** Flags of compare alone. */
  sideFlags?: Readonly<Record<string, Flag>>;
  /** Returns the sides that sideFlags ask for; undefined if none of the flags is given. Throws UserError (exit code 2). */
  sides?(parsed: Arguments): Promise<AddedSides | undefined>;
  planner?: Planner;
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
  examiner?: Examiner;
  /** Returns what the flags ask for instead of rounds. Reads --fail-if. Throws UserError (exit code 2). */
  instead?(
    parsed: Pick<Arguments, 'flags' | 'read'>,
    parts: readonly RunPart[],
  ): Instead | undefined;
  /** Throws UserError with what is missing. */
  callCounter?(signal: AbortSignal): Promise<CallCounter>;
}

export interface AddedSides {
  given: Given[];
  /**
   * Makes them ready to start. Throws UserError, or the signal's reason.
   * @param say gets lines on what was made
   * @param takeTurn waits until no other run measures, and keeps others from it until this run's end: it has to come before work that uses
   * the cores, and after other waits
   */
  make(
    signal: AbortSignal,
    say: (lines: readonly string[]) => void,
    takeTurn: () => Promise<void>,
  ): Promise<void>;
}

/** What a feature keeps between runs. */
export interface Keeps {
  /** No run can make it again: `clean` deletes it only with --history, for which this is the help. Default: a run can. */
  help?: string;
  folders: readonly KeptFolder[];
}

export interface KeptFolder {
  /** A path, or one below bakeoff's own folder. */
  folder: string;
  what: string;
  /** This file marks the folder as bakeoff's. It is locked while the folder is in use. */
  lock: string;
}
