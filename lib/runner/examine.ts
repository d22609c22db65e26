// Looks at a run after its rounds.
import { join } from 'node:path';
import { total } from '../analysis/statistics.ts';
import { withFindings } from '../report/finding-words.ts';
import { resultJson } from '../result/result-file.ts';
import type { Result } from '../result/result.ts';
import type { WhySide } from '../result/why.ts';
import type { StartedServer } from '../servers/index.ts';
import { writeWhole } from '../writing.ts';
import type { Observer } from './observers/observer.ts';
import type { PlanDraft, RunContext } from './plan.ts';
import type { RunOutcome } from './run.ts';
import { expectedRounds } from './times.ts';
import type { LoadContext } from './under-load.ts';

/** Which comparisons may be looked at: all, those with the verdict faster or slower, or none. */
export type Examined = 'all' | 'decided' | 'none';

/** A run whose rounds are done. Its servers' configs, its folder and its sink are still there. */
export interface EndedRun {
  context: LoadContext;
  result: Result;
  /** The flags of its command, by name. */
  flags: ReadonlyMap<string, string>;
  examined: Examined;
  /** Shows progress: the step, the sides it looks at, the seconds left. */
  tell(step: { what: string; seen: string; secondsLeft: number }): void;
  /** Prints a line that stays. */
  say(line: string): void;
}

export interface Examiner {
  /** Estimates how many seconds `examine` takes after so many rounds of this plan with these flags; 0 if it will not look. */
  expectedSeconds(plan: PlanDraft, flags: ReadonlyMap<string, string>, rounds: number): number;
  /**
   * Looks at a run. Returns the result with its findings, and without verdicts that they refute; undefined if it did not look. Throws
   * errors that end the run.
   */
  examine(run: EndedRun): Promise<Result | undefined>;
}

/** An examiner that runs instead of rounds and of other examiners. */
export interface Instead extends Examiner {
  /** Returns the plan without rounds. Throws UserError (exit code 2). */
  plan(draft: PlanDraft): PlanDraft;
  /** Returns the exit code, like failIfCode. */
  judge(result: Result, say: (line: string) => void): 0 | 3;
}

/** Counts a server's system calls in a load, the named ones apart too. After it, `read` returns them per request. */
export type CallCounter = (
  context: RunContext,
  server: StartedServer,
  named: readonly string[],
) => { observer: Observer; read(requests: number): Pick<WhySide, 'calls' | 'counts'> };

/** How a run is examined. */
interface Asked extends Pick<EndedRun, 'flags' | 'examined'> {
  examiners: readonly Examiner[];
}

/** Estimates how many seconds the examiners take after the fewest and the most rounds of a run. */
export function secondsToExamine(plan: PlanDraft, { examiners, flags, examined }: Asked) {
  const after = (rounds: number) =>
    examined === 'none'
      ? 0
      : total(examiners, ({ expectedSeconds }) => expectedSeconds(plan, flags, rounds));
  const { fewest, most } = expectedRounds(plan);
  return { fewest: after(fewest), most: after(most) };
}

/**
 * Lets the examiners look at a run whose rounds are done. Each finding is stored at once; an error becomes the `ended` of the outcome.
 */
export async function examine(
  context: LoadContext,
  outcome: RunOutcome,
  { examiners, flags, examined, tell, say }: Asked & Pick<EndedRun, 'tell' | 'say'>,
): Promise<void> {
  const asked = { context, flags, examined, tell, say };
  try {
    for (const examiner of examiners) {
      const result = await examiner.examine({ ...asked, result: outcome.result });
      if (result === undefined) continue;
      outcome.result = result;
      const problem = await context.sink?.found(context, result, outcome.kept);
      if (problem)
        outcome.result = withFindings(result, [...result.findings, problem], context.templates);
      await writeWhole(join(context.folder, 'result.json'), resultJson(outcome.result));
    }
    context.signal.throwIfAborted();
  } catch (error) {
    outcome.ended = error;
  }
}
