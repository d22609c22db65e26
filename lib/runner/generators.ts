// One load made by several generators, each a k6 with its execution segment.
import { mergedDistribution, pooledDistribution } from '../analysis/latency.ts';
import { responsesOf, summed } from '../analysis/phases.ts';
import { extent, total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { type LoadPlan, type Meeting, type PhaseOutcome, k6Files } from '../k6/load-plan.ts';
import { Disturbance, RoundFailure } from './round-types.ts';
import { byName } from '../present.ts';
import type { Distribution, LoadResult } from '../result/result.ts';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ClocksAhead } from '../hosts/agent-connection.ts';
import type { GeneratorHost } from '../hosts/generator-host.ts';
import type { K6Ended, SentFile } from '../hosts/messages.ts';
import {
  forKeeps,
  k6Arguments,
  outcomesOf,
  ownVariables,
  type K6Options,
  type RunningK6,
} from './k6.ts';
import { machineClock } from '../machine/clock.ts';

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
 * @throws RoundFailure when the share of one is missing, or they loaded different servers; a Disturbance when they began too far apart
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
  if (missing.length > 0) throw new RoundFailure(missing.join('; '));
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
  throw new RoundFailure(
    `generator ${first.index + 1} of ${results.length} and the server agreed to TLS of ${first.words}, generator ${other.index + 1} to ${other.words}: they do not load the same server alike; name ciphers and curves, or make the generators alike`,
  );
}

/** From now until all of them begin: k6 takes about a second to start, and more on a host that is busy. */
const leadMs = 3000;

/**
 * Starts k6 on each host, with its segment of the load and a begin that all agree on. What each has written comes to the folder
 * generator-<place>, and all their samples to the one record. @param hosts that have k6
 * @throws UserError for a load that cannot be divided among them, or where a connection ends
 */
export async function startK6There(
  hosts: readonly GeneratorHost[],
  { folder, script, loadPlan }: Pick<K6Options, 'script' | 'folder' | 'loadPlan'>,
): Promise<RunningK6> {
  const files = k6Files(folder);
  const sent = await Promise.all(
    [
      script,
      ...(loadPlan.pageFiles ?? []).flatMap((file) =>
        file === null ? [] : [join(dirname(script), file)],
      ),
    ].map(async (file): Promise<SentFile> => ({
      path: basename(file),
      mode: 0o644,
      base64: (await readFile(file)).toString('base64'),
    })),
  );
  // All that takes its time is there before the begin is agreed on.
  const folders = await Promise.all(hosts.map((host) => host.keep(sent)));
  const ahead = await Promise.all(hosts.map((host) => host.clocks()));
  const beginsAtMs = machineClock.wallMs() + leadMs;
  const whole = dividedPlan(loadPlan, hosts.length, beginsAtMs);
  await writeFile(join(folder, 'load.json'), `${JSON.stringify(forKeeps(whole), null, 2)}\n`);
  await Promise.all([files.record, files.console].map((file) => writeFile(file, '')));
  let printing = Promise.resolve();
  const runs = await Promise.all(
    hosts.map((host, index) => {
      const plan = {
        ...whole,
        startAtMs: Math.round(beginsAtMs + (ahead[index] as ClocksAhead).wallMs),
      };
      return host.run(
        {
          folder: folders[index] as string,
          env: ownVariables(plan),
          args: k6Arguments(
            k6Files('.'),
            basename(script),
            instanceArguments(index + 1, hosts.length),
          ),
          // What the first one's script prints stands for all: when the phases begin.
        },
        (text) => {
          // Where it cannot be written the record cannot either, which is told.
          if (index === 0)
            printing = printing.then(() => appendFile(files.console, text)).catch(() => undefined);
        },
      );
    }),
  );
  let recording = Promise.resolve();
  const ends = Promise.all(
    runs.map(async ({ ended }, index): Promise<InstanceEnd> => {
      const { name } = hosts[index] as GeneratorHost;
      const clocks = ahead[index] as ClocksAhead;
      try {
        const end = await ended;
        // One after the other: lines are whole.
        const recorded = (recording = recording.then(() =>
          appendFile(files.record, recordByOurClock(end.record, clocks)),
        ));
        await recorded;
        return {
          phases: byOurClocks(await keep(end, join(folder, `generator-${index + 1}`)), clocks),
        };
      } catch (error) {
        return { failure: `${name}: ${(error as Error).message}` };
      }
    }),
  );
  const stop = async (graceMs = 0): Promise<void> => {
    await Promise.all(runs.map(({ end }) => end(graceMs)));
  };
  // One that has failed ends the others: their parts alone are no load.
  const exited = Promise.race([
    ends,
    ...runs.map(async ({ ended }) => {
      const code = await ended.then(
        (end) => end.code,
        () => 1,
      );
      return code === 0 ? ends : stop();
    }),
  ]);
  return {
    pid: undefined,
    exited,
    stop,
    files,
    results: async () => mergeInstances(await ends, whole),
  };
}

/** Keeps what a k6 has written, and returns its phases. Throws an Error that says why some are missing. */
async function keep(ended: K6Ended, folder: string): Promise<PhaseOutcome[]> {
  await mkdir(folder, { recursive: true });
  const files = k6Files(folder);
  await Promise.all([writeFile(files.console, ended.console), writeFile(files.log, ended.log)]);
  return outcomesOf(ended, folder);
}

/** k6's record with its samples' times as this machine's clock has them; what is below a millisecond stays. */
export function recordByOurClock(record: string, { wallMs }: ClocksAhead): string {
  return record.replaceAll(
    /"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)"/g,
    (_, second: string, fraction = '', zone: string) => {
      const digits = (fraction as string).padEnd(9, '0');
      const ms = Date.parse(`${second}${zone}`) + Number(digits.slice(0, 3)) - Math.round(wallMs);
      return `"time":"${new Date(ms).toISOString().slice(0, -1)}${digits.slice(3)}Z"`;
    },
  );
}

/** With the times that a host told as this machine's clocks have them. */
export function byOurClocks(
  phases: readonly PhaseOutcome[],
  { monotonicMs, wallMs }: ClocksAhead,
): PhaseOutcome[] {
  const wall = (instant: string): string => new Date(Date.parse(instant) - wallMs).toISOString();
  return phases.map((phase) => ({
    ...phase,
    results: phase.results.map((result) => ({
      ...result,
      startedAt: wall(result.startedAt),
      endedAt: wall(result.endedAt),
      monotonicMs: [result.monotonicMs[0] - monotonicMs, result.monotonicMs[1] - monotonicMs],
    })),
  }));
}
