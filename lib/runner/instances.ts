// One load made by several generators, each a k6 with its execution segment: what each is started with, and what they came to as one.
import { mergedDistribution, pooledDistribution } from '../analysis/merged.ts';
import { responsesOf, summed } from '../analysis/phases.ts';
import { extent, total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import type { LoadPlan, Meeting, PhaseOutcome } from '../k6/load-plan.ts';
import { Disturbance } from './disturbance.ts';
import { LoadFailure } from './k6.ts';
import { byName } from '../present.ts';
import type { Distribution, LoadResult } from '../result/result.ts';

/** Further apart, in milliseconds, and for that long it was the load of some of them. */
const mostApartMs = 100;

/** How long before they begin the generators may be told when, in seconds: what the engine takes. */
const longestWaitSeconds = 60;

/** k6's arguments for one of several instances, as k6-operator has them: its segment, all segments, its tag. @param instance from 1 */
export function instanceArguments(instance: number, instances: number): string[] {
  const end = (place: number): string =>
    place === 0 ? '0' : place === instances ? '1' : `${place}/${instances}`;
  const ends = Array.from({ length: instances + 1 }, (_, place) => end(place));
  const segments =
    instances === 1
      ? []
      : [
          `--execution-segment=${end(instance - 1)}:${end(instance)}`,
          `--execution-segment-sequence=${ends.join(',')}`,
        ];
  return [...segments, '--tag', `instance_id=${instance}`];
}

/**
 * The plan of a load that so many instances make together, each with this plan and its own arguments. The threads of a side are those of
 * all: each has its part of them, at least one.
 * @param begin when: milliseconds since 1970, by each one's clock, or where they agree on it
 * @throws UserError for a load that cannot be divided among so many
 */
export function dividedPlan(plan: LoadPlan, instances: number, begin: number | Meeting): LoadPlan {
  const each: LoadPlan = {
    ...plan,
    phases: plan.phases.map((phase) => ({
      ...phase,
      sides: phase.sides.map((side) =>
        side.threads === undefined
          ? side
          : { ...side, threads: Math.max(1, Math.floor(side.threads / instances)) },
      ),
    })),
  };
  if (instances > 1) requireDivisible(each, instances);
  return {
    ...each,
    instances,
    ...(typeof begin === 'number' ? { startAtMs: begin } : { meetAt: begin }),
    maxDurationSeconds: plan.maxDurationSeconds + longestWaitSeconds,
  };
}

function requireDivisible({ phases, search }: LoadPlan, instances: number): void {
  const who = `${instances} generators: `;
  if (search !== undefined)
    throw new UserError(
      `${who}a search for a rate is one generator's: leave --within out, or take one generator`,
      2,
    );
  if (phases.length > 1)
    throw new UserError(
      `${who}only the first of ${phases.length} load phases would begin at an agreed time: take one generator, or another scenario`,
      2,
    );
  for (const { connections = 1, requests = Infinity, threads = 1 } of phases.flatMap(
    ({ sides }) => sides,
  )) {
    const least = instances * threads;
    if (connections < least)
      throw new UserError(
        `${who}${connections} connections cannot be divided among them${threads === 1 ? '' : ` with ${threads} threads each`}: give at least ${least}`,
        2,
      );
    if (requests < instances)
      throw new UserError(
        `${who}${requests} requests cannot be divided among them: give at least ${instances}`,
        2,
      );
  }
}

/** How an instance ended: with what its phases came to, or a line that says what came instead. */
export type InstanceEnd = { phases: readonly PhaseOutcome[] } | { failure: string };

/**
 * What the instances of a divided plan came to, as if one had made it all. @param ends in the order of the instances
 * @throws LoadFailure when the share of one is missing, or they loaded different servers; a Disturbance when they began too far apart
 */
export function mergeInstances(ends: readonly InstanceEnd[], plan: LoadPlan): PhaseOutcome[] {
  const missing = ends.flatMap((end, index) => {
    const failure =
      'failure' in end
        ? end.failure
        : end.phases.length < plan.phases.length
          ? `ended after ${end.phases.length} of ${plan.phases.length} phases`
          : undefined;
    return failure === undefined
      ? []
      : [`generator ${index + 1} of ${ends.length}: ${failure}: its share is missing`];
  });
  if (missing.length > 0) throw new LoadFailure(missing.join('; '));
  const whole = ends.flatMap((end) => ('phases' in end ? [end.phases] : []));
  return plan.phases.map(({ sides }, phase) => ({
    results: sides.map(({ connections = 1, threads = 1 }, side) =>
      mergeResults(
        whole.map((phases) => phases[phase]?.results[side] as LoadResult),
        connections,
        threads,
      ),
    ),
  }));
}

/** Of n things, evenly: as k6 divides them among equal segments. */
function shareOf(n: number, parts: number, part: number): number {
  return Math.floor(n / parts) + (part < n % parts ? 1 : 0);
}

/**
 * One result of those of all instances: sums of counts, bytes and CPU seconds, latencies of all values, the longest window (all begin
 * together) and the shortest gap (nobody had a response in it). A thread has a sample of its rate every 100 ms.
 * @param connections of all instances
 * @param threads of each
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
    of: (result: LoadResult) => Distribution,
    n: (index: number) => number,
  ): Distribution =>
    pooledDistribution(results.map((result, index) => ({ part: of(result), n: n(index) })));
  const seconds = Math.max(...results.map((result) => result.seconds));
  const sorted = (of: (result: LoadResult) => string): string[] =>
    results.map(of).sort((a, b) => Date.parse(a) - Date.parse(b));
  const limits = results.flatMap(({ maxConcurrentStreams }) => maxConcurrentStreams ?? []);
  return {
    ...byName(['requests', 'warmupRequests', 'inFlight', 'hung', 'unsent', 'cpuSeconds'], (name) =>
      total(results, (result) => result[name]),
    ),
    ...byName(['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'], (name) =>
      mergedDistribution(results.map((result) => result[name])),
    ),
    seconds,
    rps: seconds === 0 ? 0 : total(results, responsesOf) / seconds,
    responses: summed(results.map((result) => result.responses)),
    statuses: summed(results.map(({ statuses = {} }) => statuses)),
    errors: summed(results.map((result) => result.errors)),
    errorCauses: summed(results.map((result) => result.errorCauses)),
    errorExample:
      results.map((result) => result.errorExample ?? '').find((example) => example !== '') ?? '',
    longestGapMs: Math.min(...results.map((result) => result.longestGapMs)),
    turns: null,
    bytes: summed(results.map((result) => result.bytes)),
    perConnectionRps: pooled(
      (result) => result.perConnectionRps,
      (index) => shareOf(connections, results.length, index),
    ),
    perThreadRps: pooled(
      (result) => result.perThreadRps,
      (index) => threads * Math.max(1, Math.round(10 * (results[index] as LoadResult).seconds)),
    ),
    buckets: first.buckets.map((bucket, index) => ({
      ...bucket,
      count: total(results, (result) => result.buckets[index]?.count ?? 0),
    })),
    tls: sameTls(results),
    maxConcurrentStreams: limits.length === 0 ? null : Math.min(...limits),
    startedAt: sorted((result) => result.startedAt)[0] as string,
    endedAt: sorted((result) => result.endedAt).at(-1) as string,
    monotonicMs: extent(results.flatMap((result) => result.monotonicMs)),
  };
}

function requireTogether(results: readonly LoadResult[]): void {
  const begins = results.map(({ startedAt }) => Date.parse(startedAt));
  const [from, to] = extent(begins);
  if (to - from <= mostApartMs) return;
  throw new Disturbance(
    `generator ${begins.indexOf(to) + 1} of ${results.length} began ${Math.round(to - from)} ms after generator ${begins.indexOf(from) + 1}, and may ${mostApartMs} ms: they did not make one load`,
  );
}

/** Who has completed no handshake says nothing. */
function sameTls(results: readonly LoadResult[]): LoadResult['tls'] {
  const told = results.flatMap(({ tls }, index) =>
    tls === null
      ? []
      : [{ tls, index, words: `${tls.version}, ${tls.cipher}, ${tls.keyExchange}` }],
  );
  const [first] = told;
  const other = told.find(({ words }) => words !== first?.words);
  if (first === undefined || other === undefined) return first?.tls ?? null;
  throw new LoadFailure(
    `generator ${first.index + 1} of ${results.length} and the server agreed to TLS of ${first.words}, generator ${other.index + 1} to ${other.words}: they do not load the same server alike; name ciphers and curves, or make the generators alike`,
  );
}
