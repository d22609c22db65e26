// A load made by several generators, each a k6 with its execution segment.
import { mergedDistribution, pooledDistribution } from '../../analysis/latency.ts';
import { responsesOf, summed } from '../../analysis/phases.ts';
import { extent, total } from '../../analysis/statistics.ts';
import { usageError } from '../../errors.ts';
import type { LoadPlan, Meeting, PhaseOutcome } from '../../k6/load-plan.ts';
import { byName } from '../../present.ts';
import { wireNames, type Distribution, type LoadResult } from '../../result/load-result.ts';
import { Disturbance, RoundFailure } from '../../runner/failures.ts';

/** Generators that begin further apart load alone for too long. */
const mostApartMs = 100;
/** The engine waits at most this long for an agreed begin. */
const longestWaitSeconds = 60;

/**
 * Returns the plan for each instance, with its part of the threads, at least 1.
 * @param meetAt where the instances agree on the time to begin
 * @throws UserError for a load that cannot be divided among so many
 */
export function dividedPlan(plan: LoadPlan, instances: number, meetAt: Meeting): LoadPlan {
  const phases = plan.phases.map((phase) => ({
    ...phase,
    sides: phase.sides.map(({ threads, ...side }) => ({
      ...side,
      ...(threads && { threads: Math.max(1, Math.floor(threads / instances)) }),
    })),
  }));
  if (instances > 1) requireDivisible(phases, instances);
  return {
    ...plan,
    phases,
    instances,
    meetAt,
    maxDurationSeconds: plan.maxDurationSeconds + longestWaitSeconds,
  };
}

function requireDivisible(phases: LoadPlan['phases'], instances: number): void {
  const refuse = (why: string) => {
    throw usageError(`${instances} generators: ${why}`);
  };
  if (phases.length > 1)
    refuse(
      `only the first of ${phases.length} load phases would begin at an agreed time: take one generator, or another scenario`,
    );
  for (const { connections = 1, requests = Infinity, threads = 1 } of phases.flatMap(
    ({ sides }) => sides,
  )) {
    const least = instances * threads;
    if (connections < least)
      refuse(
        `${connections} connections cannot be divided among ${least} threads: give at least ${least}`,
      );
    if (requests < instances)
      refuse(`${requests} requests cannot be divided among them: give at least ${instances}`);
  }
}

/** The outcomes of an instance's phases, or a line that says why there are none. */
export type InstanceEnd = { phases: readonly PhaseOutcome[] } | { failure: string };

/**
 * Merges the outcomes of all instances of a divided plan.
 * @param ends in the order of the instances
 * @throws RoundFailure that names all missing instances, because one that fails ends the others; Disturbance if they began too far apart
 */
export function mergeInstances(ends: readonly InstanceEnd[], plan: LoadPlan): PhaseOutcome[] {
  const missing: string[] = [];
  const parts = ends.map((end, index) => {
    const phases = 'failure' in end ? [] : end.phases;
    const ended = `ended after ${phases.length} of ${plan.phases.length} phases`;
    const why = 'failure' in end ? end.failure : phases.length < plan.phases.length && ended;
    if (why) missing.push(`generator ${index + 1} of ${ends.length}: ${why}: its share is missing`);
    return phases;
  });
  if (missing.length > 0) throw new RoundFailure(missing.join('; '));
  return plan.phases.map(({ sides }, phase) => ({
    results: sides.map(({ connections = 1, threads = 1 }, side) =>
      mergeResults(
        parts.flatMap((phases) => phases[phase]?.results[side] ?? []),
        connections,
        threads,
      ),
    ),
  }));
}

/** Size of a part, if k6 divides n things among equal segments. */
function partOf(n: number, parts: number, part: number): number {
  return Math.floor(n / parts) + (part < n % parts ? 1 : 0);
}

/**
 * Merges the results of a side: sums the counts, pools the latencies, and takes the longest window and the shortest gap (a gap of the
 * side is one in which no instance had a response). A thread's rate is sampled every 100 ms.
 * @param connections of all instances
 * @param threads of each instance
 */
function mergeResults(
  results: readonly LoadResult[],
  connections: number,
  threads: number,
): LoadResult {
  const [first] = results as [LoadResult, ...LoadResult[]];
  if (results.length === 1) return first;
  requireTogether(results);
  const pooled = (
    field: 'perConnectionRps' | 'perThreadRps',
    n: (result: LoadResult, index: number) => number,
  ): Distribution =>
    pooledDistribution(
      results.map((result, index) => ({ part: result[field], n: n(result, index) })),
    );
  const sum = <Name extends string>(of: (result: LoadResult) => Readonly<Record<Name, number>>) =>
    summed(results.map(of));
  const seconds = Math.max(...results.map((result) => result.seconds));
  const sorted = (field: 'startedAt' | 'endedAt') =>
    results.map((result) => result[field]).sort((a, b) => Date.parse(a) - Date.parse(b));
  const limits = results.flatMap(({ maxConcurrentStreams }) => maxConcurrentStreams ?? []);
  return {
    ...byName(
      [
        'requests',
        'warmupRequests',
        'inFlight',
        'hung',
        'unsent',
        'unexpected',
        'otherBodies',
        'cpuSeconds',
      ],
      (name) => total(results, (result) => result[name]),
    ),
    ...byName(['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'], (name) =>
      mergedDistribution(results.map((result) => result[name])),
    ),
    ...mergedReadDelays(results),
    // Pages are of one generator: percentiles of several do not add up.
    pages: [],
    seconds,
    ...servedBy(results, seconds),
    responses: sum(({ responses }) => responses),
    statuses: sum(({ statuses = {} }) => statuses),
    errors: sum(({ errors }) => errors),
    errorCauses: sum(({ errorCauses }) => errorCauses),
    errorExample: results.map((result) => result.errorExample ?? '').find(Boolean) ?? '',
    longestGapMs: Math.min(...results.map((result) => result.longestGapMs)),
    turns: null,
    bytes: sum(({ bytes }) => bytes),
    ...mergedBodyBytes(results),
    wire: byName(wireNames, (name) => total(results, ({ wire }) => wire?.[name] ?? 0)),
    perConnectionRps: pooled('perConnectionRps', (_, index) =>
      partOf(connections, results.length, index),
    ),
    perThreadRps: pooled(
      'perThreadRps',
      (result) => threads * Math.max(1, Math.round(10 * result.seconds)),
    ),
    buckets: first.buckets.map((bucket, index) => ({
      ...bucket,
      count: total(results, ({ buckets }) => buckets[index]?.count ?? 0),
    })),
    tls: results.find(({ tls }) => tls !== null)?.tls ?? null,
    maxConcurrentStreams: limits.length === 0 ? null : Math.min(...limits),
    startedAt: sorted('startedAt')[0] ?? first.startedAt,
    endedAt: sorted('endedAt').at(-1) ?? first.endedAt,
    monotonicMs: extent(results.flatMap(({ monotonicMs }) => monotonicMs)),
  };
}

function mergedBodyBytes(results: readonly LoadResult[]): Pick<LoadResult, 'bodyBytes'> {
  const known = results.flatMap(({ bodyBytes }) => bodyBytes ?? []);
  return known.length < results.length ? {} : { bodyBytes: summed(known) };
}

function mergedReadDelays(results: readonly LoadResult[]): Pick<LoadResult, 'readDelayMs'> {
  const known = results.flatMap(({ readDelayMs }) => readDelayMs ?? []);
  return known.length === 0 ? {} : { readDelayMs: mergedDistribution(known) };
}

/**
 * Returns the requests/s of all instances. At a rate it adds up what each instance served, because their windows end before the last
 * answers, and also the growth of their queues.
 */
function servedBy(
  results: readonly LoadResult[],
  seconds: number,
): Pick<LoadResult, 'rps' | 'queueGrowth'> {
  const growths = results.flatMap(({ queueGrowth }) => queueGrowth ?? []);
  if (growths.length < results.length)
    return { rps: seconds === 0 ? 0 : total(results, responsesOf) / seconds };
  return {
    rps: total(results, ({ rps }) => rps),
    queueGrowth: {
      perSecond: total(growths, ({ perSecond }) => perSecond),
      standardError: Math.hypot(...growths.map(({ standardError }) => standardError)),
    },
  };
}

function requireTogether(results: readonly LoadResult[]): void {
  const begins = results.map(({ startedAt }) => Date.parse(startedAt));
  const [from, to] = extent(begins);
  if (to - from > mostApartMs)
    throw new Disturbance(
      `generator ${begins.indexOf(to) + 1} of ${results.length} began ${Math.round(to - from)} ms after generator ${begins.indexOf(from) + 1}, and may ${mostApartMs} ms: they did not make one load`,
    );
}

/**
 * Returns another machine's outcomes with their times by this machine's clock.
 * @param aheadMs how far the other clock is ahead
 */
export function byOurClock(phases: readonly PhaseOutcome[], aheadMs: number): PhaseOutcome[] {
  const ours = (instant: string) => new Date(Date.parse(instant) - aheadMs).toISOString();
  return phases.map((phase) => ({
    ...phase,
    results: phase.results.map((result) => ({
      ...result,
      startedAt: ours(result.startedAt),
      endedAt: ours(result.endedAt),
    })),
  }));
}
