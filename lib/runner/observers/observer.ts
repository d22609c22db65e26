// What observes a load. A new one has a file, a line in all.ts or a feature's `observers`, and its part in Observed.
import { setTimeout as delay } from 'node:timers/promises';
import type { PhaseOutcome } from '../../k6/load-plan.ts';
import type { Phase } from '../../result/result.ts';
import type { ServerFigures } from '../../result/server-metrics.ts';
import type { ServerSample } from '../../servers/usage.ts';
import type { EnclosedLoad } from '../enclosure.ts';
import type { RunningK6 } from '../k6.ts';
import { RoundFailure } from '../failures.ts';
import type { Attempt, Plan, Stage } from '../plan.ts';
import type { UsageSample } from '../samples.ts';

/** What observers know of a side's load, with the figures of its server that are metrics. */
export interface Observed extends ServerFigures {
  samples: readonly UsageSample[];
  /** The server's samples, at the rate of its host. */
  ofServer: readonly ServerSample[];
  /** See ThrottlingWatch.quotas. */
  quotas: string;
  /** What the side's server and its connections used per request, in all phases. */
  perRequest: Phase['perRequest'];
  acceptQueue: Phase['acceptQueue'];
  alsoLoadedBy: Phase['alsoLoadedBy'];
  otherCpus: Phase['otherCpus'];
  /** See connectsOut; true if unknown. */
  mayHaveBackends: boolean;
  /** undefined without a network. */
  enclosed: EnclosedLoad | undefined;
}

const nothing: Observed = {
  samples: [],
  ofServer: [],
  quotas: '',
  perRequest: undefined,
  acceptQueue: undefined,
  alsoLoadedBy: undefined,
  otherCpus: undefined,
  mayHaveBackends: true,
  enclosed: undefined,
};

/** A load that is about to begin. */
export interface ObservedLoad {
  plan: Plan;
  stages: readonly Stage[];
  attempt: Attempt;
}

/** Observes loads. */
export interface Observer {
  /** In messages: "the use of CPU time". */
  name: string;
  /** Called before the generator starts. Leaves nothing running if it fails. */
  begin(load: ObservedLoad): Observation | Promise<Observation>;
}

/** Observes one load. */
export interface Observation {
  /** Called once the generator runs; not if it does not start. */
  started?(generator: RunningK6): void;
  /**
   * Called once, whatever has failed. Returns its part for each side, or nothing.
   * @param outcomes of the phases; undefined if the load failed
   */
  end(outcomes: readonly PhaseOutcome[] | undefined): Parts | Promise<Parts>;
}

type Parts = readonly Partial<Observed>[];

/** How a load ended, and what was observed of each side. */
type ObservedEnd = { observed: Observed[] } & ({ outcomes: PhaseOutcome[] } | { failure: unknown });

/** An end may wait for another host, or for what is left in an enclosure. Their own limits are shorter. */
const endLimitMs = 120_000;
/** After a failed load. */
const failedEndLimitMs = 15_000;

/**
 * Begins the observers in their order, does the work, and ends all that have begun, whatever failed. What the others have observed is
 * kept when one fails.
 * @param work makes the load; it tells its argument once the generator runs
 * @throws the error of an observer's end, if the load itself did not fail
 */
export async function whileObserved(
  observers: readonly Observer[],
  load: ObservedLoad,
  work: (started: (generator: RunningK6) => void) => Promise<PhaseOutcome[]>,
  limitsMs = { usual: endLimitMs, afterFailure: failedEndLimitMs },
): Promise<ObservedEnd> {
  const begun: { name: string; observation: Observation }[] = [];
  let outcomes: PhaseOutcome[] | undefined;
  let failure: unknown;
  try {
    for (const observer of observers)
      begun.push({ name: observer.name, observation: await observer.begin(load) });
    outcomes = await work((generator) => {
      for (const { observation } of begun) observation.started?.(generator);
    });
  } catch (error) {
    failure = error;
  }
  const limitMs = outcomes === undefined ? limitsMs.afterFailure : limitsMs.usual;
  const observed = load.stages.map(() => ({ ...nothing }));
  const failedEnds: unknown[] = [];
  for (const { name, observation } of begun) {
    try {
      const parts = await within(limitMs, name, async () => observation.end(outcomes));
      for (const [side, all] of observed.entries()) Object.assign(all, parts[side]);
    } catch (error) {
      failedEnds.push(error);
    }
  }
  if (outcomes === undefined) return { observed, failure };
  if (failedEnds.length > 0) throw failedEnds[0];
  return { observed, outcomes };
}

/** @throws RoundFailure after the limit */
async function within<T>(limitMs: number, name: string, work: () => Promise<T>): Promise<T> {
  const inTime = new AbortController();
  const tooLate = delay(limitMs, undefined, { signal: inTime.signal }).then(() => {
    throw new RoundFailure(`${name} is not known ${limitMs / 1000} s after the load`);
  });
  try {
    return await Promise.race([work(), tooLate]);
  } finally {
    tooLate.catch(() => undefined);
    inTime.abort();
  }
}
