// Loads a group's servers with k6, while observers look on.
import { k6Files, type LoadPlan, type PhaseOutcome } from '../k6/load-plan.ts';
import { overflowFindings } from '../analysis/findings.ts';
import { zip } from '../present.ts';
import { sentencesOf } from '../report/finding-words.ts';
import type { LoadResult } from '../result/load-result.ts';
import { pathOfPage } from '../scenario/pages.ts';
import { isWatched } from '../servers/index.ts';
import { loadPlanFor } from './k6-plan.ts';
import { startK6, waitForK6, type K6Options, type RunningK6 } from './k6.ts';
import { observersWith } from './observers/all.ts';
import { whileObserved, type Observed, type Observer } from './observers/observer.ts';
import { RoundFailure } from './failures.ts';
import type { Attempt, Group, RunContext, Stage } from './plan.ts';
import { raisePriority, type Priority } from './priority.ts';

/** A run that can load. */
export interface LoadContext extends RunContext {
  /** Observers of each load beside the core's own. */
  observers: readonly Observer[];
  /** The priority of servers and k6; absent: the usual one. */
  priority?: Priority;
}

/** What was measured and observed of a side. */
export interface Measurement extends Observed {
  stage: Stage;
  /** Outcomes of all sides, by phase. */
  outcomes: readonly PhaseOutcome[];
  /** The side's results by phase. */
  results: LoadResult[];
  recordFile: string;
  /** k6 sent them nowhere: only its record has the samples. */
  unsent: boolean;
}

/** Time for k6 to flush its outputs after TERM: a database may be slow. */
const k6GraceMs = 10_000;

/**
 * Loads the stages of a group and returns the measurement of each side.
 * @param folder for k6's files
 * @param more observers of this load, beside those of each
 * @throws RoundFailure if the load or an enclosure failed, Interrupted after a signal
 */
export async function underLoad(
  context: LoadContext,
  group: Group,
  stages: readonly Stage[],
  attempt: Attempt,
  folder: string,
  more: readonly Observer[] = [],
): Promise<Measurement[]> {
  const { plan, signal } = context;
  const loadPlan = planOfLoad(context, group, stages, attempt);
  const output = (await context.sink?.k6Output()) ?? null;
  let k6: RunningK6 | undefined;
  const { nice, giveBack } = await raisePriority(context.priority, stages);
  try {
    const all = [...observersWith(context.observers), ...more];
    const end = await whileObserved(all, { plan, stages, attempt }, async (started) => {
      signal.throwIfAborted();
      k6 = await startLoad(context, stages, { folder, loadPlan, output, nice });
      started(k6);
      const peerDied = Promise.race(stages.map(({ died }) => died));
      return waitForK6(k6, loadPlan, signal, peerDied);
    });
    if ('failure' in end) throw withOverflows(end.failure, stages, end.observed);
    const { outcomes, observed } = end;
    return zip(stages, observed).map(([stage, seen], side) => ({
      ...seen,
      stage,
      outcomes,
      results: outcomes.flatMap(({ results }) => results[side] ?? []),
      recordFile: k6Files(folder).record,
      unsent: output === null,
    }));
  } finally {
    await k6?.stop(k6GraceMs);
    await giveBack();
  }
}

/**
 * Loads a side outside of the rounds, the only one. The pages of a mix are loaded together only, so that the counts can be divided by
 * all requests. See underLoad for errors.
 * @param more observes the load besides its usual observers
 */
export async function loadAlone(
  context: LoadContext,
  stage: Stage,
  folder: string,
  more?: Observer,
): Promise<Measurement> {
  const attempt = { round: 1, onLoad: () => undefined };
  const group: Group = { sides: [stage.planned], withoutEachPage: true };
  const observers = more === undefined ? [] : [more];
  const [measured] = await underLoad(context, group, [stage], attempt, folder, observers);
  return measured as Measurement;
}

function planOfLoad(
  { plan }: RunContext,
  group: Group,
  stages: readonly Stage[],
  { round, known }: Attempt,
): LoadPlan {
  const sides = stages.map(({ planned }) => planned);
  const targets = stages.map(({ planned: { page }, server, enclosure }) => ({
    url: server.origin + pathOfPage(page),
    enclosed: enclosure?.client.options,
    processes: isWatched(server) ? server.processes().map(Number) : undefined,
  }));
  return loadPlanFor(plan, { ...group, sides }, round, targets, known);
}

/** Adds to a failed load which accept queues overflowed: the failure is often their consequence. */
function withOverflows(
  failure: unknown,
  stages: readonly Stage[],
  observed: readonly Observed[],
): unknown {
  if (!(failure instanceof RoundFailure)) return failure;
  const overflows = stages.map(({ planned }, side) => {
    const { overflows: count = 0, ...queue } = observed[side]?.acceptQueue ?? {};
    return { variant: planned.variant.name, count, ...queue };
  });
  const texts = sentencesOf(overflowFindings(overflows), stages.length);
  if (texts.length === 0) return failure;
  return new RoundFailure([failure.message, ...texts].join('; '));
}

async function startLoad(
  { plan: { cores }, tools, script }: RunContext,
  stages: readonly Stage[],
  options: Pick<K6Options, 'folder' | 'loadPlan' | 'output' | 'nice'>,
): Promise<RunningK6> {
  return startK6({
    ...options,
    binary: tools.k6,
    script,
    cpus: cores.generatorCpus,
    before: stages[0]?.enclosure?.client.enter,
  });
}
