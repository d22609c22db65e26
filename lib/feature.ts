// What can be taken out of bakeoff. The core asks the list in lib/features.ts. It names no feature itself, except in the formats of
// result.json and of the database, in the data that `clean` removes, and in the next step after --k6-script.
import type { Flag } from './cli/words.ts';
import type { Html } from './report/html/page.ts';
import type { Part } from './report/table.ts';
import type { Result } from './result/result.ts';
import type { RunContext } from './runner/plan.ts';

export interface Command {
  help: string;
  /** Runs the command and returns its exit code. The command's code is loaded here, so that other commands do not load it. */
  run(args: string[]): Promise<number>;
}

/** A run whose rounds are done. Its servers' configs, its folder and its database are still there. */
export interface EndedRun {
  context: RunContext;
  result: Result;
  /** The flags of its command, by name. */
  flags: ReadonlyMap<string, string>;
  /** The comparisons that may be looked at: all of them, those that differ, or none. */
  examined: 'all' | 'decided' | 'none';
  /** Shows progress: the step, the sides it looks at, the seconds left. */
  tell(step: { what: string; seen: string; secondsLeft: number }): void;
}

/** A folder of lib/features. It may use the core, and no other feature. */
export interface Feature {
  commands?: Readonly<Record<string, Command>>;
  /** Flags of every command that measures. They come last in their groups of the help. None is allowed with --k6-script. */
  flags?: Readonly<Record<string, Flag>>;
  /**
   * Looks at a run. Returns the result with what was found under a key of its own, or undefined if it did not look. Throws what ends the
   * run.
   */
  afterRounds?(run: EndedRun): Promise<Result | undefined>;
  /** Returns sentences that stand below the table. */
  sentences?(result: Result): string[];
  /** Returns tables that --verbose shows. */
  parts?(result: Result): Part[];
  /** Returns sections of report.html that stand below its table. @param folder of the run; undefined if its files are not there */
  sections?(result: Result, folder: string | undefined): Promise<Html[]>;
}
