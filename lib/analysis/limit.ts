// The limit of a load, whether it came to its rate, and other programs' use of the machine. k6 runs isBehind.
import { byName, present } from '../present.ts';
import type { Overflows } from '../result/finding.ts';
import type { LoadResult } from '../result/load-result.ts';
import type { Noise, Phase, Round, VariantResult } from '../result/result.ts';
import { responsesNeeded, valuesIn } from './latency.ts';
import { phasesIn, queueGrowthOf, responsesOf, roundRps, serverCpuSecondsOf } from './phases.ts';
import { extent, mean, median, total } from './statistics.ts';

/** The hypervisor's time is missing in requests/s: at this share it is twice the tolerance of `same`. */
export const stealMatters = 0.02;

/** On an idle machine interrupts and the kernel's own work use a few percent of the server's cores. */
export const othersMatter = 0.05;

/** Shares as in Noise. `mhz`: the lowest clock at the end of a phase, and the highest at all. */
export interface RoundNoise extends Omit<Noise, 'serverMhz'> {
  mhz: { lowest: number; highest: number } | null;
}

/** null if a phase has no noise figures. */
export function noiseOf({ phases }: Round): RoundNoise | null {
  const seen = phases.flatMap(({ noise, seconds }) => (noise === null ? [] : { noise, seconds }));
  if (seen.length === 0 || seen.length < phases.length) return null;
  const seconds = total(seen, (phase) => phase.seconds);
  const share = (of: (noise: Noise) => number) =>
    seconds === 0 ? 0 : total(seen, (phase) => of(phase.noise) * phase.seconds) / seconds;
  const noises = seen.map(({ noise }) => noise);

  const noise: RoundNoise = {
    ...byName(
      ['serverStealShare', 'generatorStealShare', 'serverOthersShare', 'generatorOthersShare'],
      (name) => share((phaseNoise) => phaseNoise[name]),
    ),
    loadAverage: extent(noises.map(({ loadAverage }) => loadAverage))[1],
    mhz: clocksOf(noises),
  };
  const upstreams = noises.map(({ upstreamShare }) => upstreamShare);
  if (upstreams.includes(null)) noise.upstreamShare = null;
  else if (upstreams.some((upstream) => upstream !== undefined))
    noise.upstreamShare = share(({ upstreamShare }) => upstreamShare ?? 0);
  return noise;
}

/** A clock may rise as the load begins: only a lower one at the end shows a slower core. */
function clocksOf(noises: readonly Noise[]): RoundNoise['mhz'] {
  const clocks = noises.flatMap(({ serverMhz }) => (serverMhz === null ? [] : [serverMhz]));
  if (clocks.length === 0) return null;
  const [lowest] = extent(clocks.map(([, end]) => end));
  const [, highest] = extent(clocks.flat());
  return { lowest, highest };
}

/** Working servers do not pause for this long. A dropped SYN is sent again after 1 s (RFC 6298, section 2). */
const longPauseMs = 1250;
/** A slow server's pauses are long too. Its limit is this multiple of the latency's p99, and of the typical first byte. */
const pauseFactor = 10;
/** Limit if a window has no answer at all, as a multiple of the typical latency in the warm-up. */
const unansweredFactor = 2;

type Paused = Pick<
  Phase,
  | 'longestGapMs'
  | 'latencyMs'
  | 'firstByteMs'
  | 'network'
  | 'responses'
  | 'errors'
  | 'seconds'
  | 'continuous'
>;

/**
 * Returns the longest time without a response while requests were under way, in milliseconds; null if working servers pause so long.
 * Without any answer, half of a short window is too long, unless answers took longer in the warm-up. Lost packets are no pause: TCP itself
 * waits 1 s and more for them.
 */
export function pauseMs(phase: Paused): number | null {
  const { longestGapMs, network } = phase;
  const resent = network === null ? 0 : network.retransmits.client + network.retransmits.server;
  return longestGapMs > toleratedPauseMs(phase) && resent === 0 ? longestGapMs : null;
}

function toleratedPauseMs(phase: Paused): number {
  const { latencyMs, firstByteMs, seconds, continuous } = phase;
  const usualMs = continuous?.p50Ms ?? 0;
  if (isUnanswered(phase))
    return Math.max(Math.min(longPauseMs, (1000 * seconds) / 2), unansweredFactor * usualMs);
  // All answers may be to requests from before the window, which have no latency in it.
  const slowMs = latencyMs.p99 || usualMs;
  return Math.max(longPauseMs, pauseFactor * slowMs, pauseFactor * firstByteMs.p50);
}

export function isUnanswered(phase: Pick<Phase, 'responses' | 'errors'>): boolean {
  return phase.errors.total + responsesOf(phase) === 0;
}

/** A side that uses at least this share of its cores is at its limit; kernel, runner and InfluxDB use the rest. */
export const limit = 0.9;

export type Limit = 'server' | 'generator' | 'both' | 'neither';

export type Shares = Pick<VariantResult, 'serverShare' | 'generatorShare'>;

/** null if unknown, as for a variant that was not measured. */
export function limitOf({ serverShare, generatorShare }: Shares): Limit | null {
  if (generatorShare === null) return null;
  const isServer = (serverShare ?? 0) >= limit;
  if (generatorShare >= limit) return isServer ? 'both' : 'generator';
  if (serverShare === null) return null;
  return isServer ? 'server' : 'neither';
}

export function isServerAtLimit(variant: Shares): boolean {
  const limitReached = limitOf(variant);
  return limitReached === 'server' || limitReached === 'both';
}

interface SideCores {
  server: number;
  generator: number;
}

type Workers = Pick<VariantResult, 'server' | 'load'>;

/** Cores that each side can use: at most one per worker or thread. */
export function usableCores({ server, load }: Workers, cores: SideCores): SideCores {
  return {
    server: Math.min(server?.workers ?? cores.server, cores.server),
    generator: Math.min(load.threads, cores.generator),
  };
}

/** The kernel lets a generator that uses less than this share of its cores run as soon as it wakes up, whatever others use. */
const alwaysLeft = 0.05;

/** VariantResult's shares of a round, each at most 1; the server's is null if its CPU time or its cores are unknown. */
export function sharesOf(round: Round, variant: Workers, cores: SideCores) {
  const { phases } = round;
  const seconds = total(phases, (phase) => phase.seconds);
  const noise = noiseOf(round);
  const usable = usableCores(variant, cores);
  const waitedShare = (waitedIn(phases) * usable.server) / cores.server;
  const shareOf = (side: keyof SideCores, cpuSeconds: number) => {
    const direction = side === 'server' ? 'toServer' : 'toClient';
    const linkCpuSeconds = total(phases, ({ network }) => network?.linkCpuSeconds[direction] ?? 0);
    const upstream = side === 'server' ? (noise?.upstreamShare ?? 0) : 0;
    const steal = noise?.[`${side}StealShare`] ?? 0;
    const others = noise?.[`${side}OthersShare`] ?? 0;
    const missed = side === 'server' ? Math.min(others, waitedShare) : others;
    const least = side === 'generator' ? alwaysLeft : 0;
    const left = cores[side] * Math.max(least, 1 - steal - missed - upstream);
    const share = Math.max(
      cpuSeconds / (seconds * Math.min(usable[side], left)),
      (cpuSeconds + linkCpuSeconds) / (seconds * left),
    );
    // CPU time is counted in ticks, so it may seem to exceed the time that was left.
    return left > 0 ? Math.min(1, share) : 1;
  };
  const cpuSeconds = serverCpuSecondsOf(phases);
  const hasOwnCores = variant.server?.atAddress !== true;
  return {
    serverShare: hasOwnCores && cpuSeconds !== null ? shareOf('server', cpuSeconds) : null,
    generatorShare: shareOf(
      'generator',
      total(phases, (phase) => phase.generatorCpuSeconds),
    ),
  };
}

/**
 * The share of its usable cores for which a server waited; Infinity if unknown. At most this much of what others used was taken from the
 * server: a server that waits for something else leaves its cores to programs of low priority.
 */
function waitedIn(phases: readonly Phase[]): number {
  if (phases.some(({ waitedShare }) => waitedShare === undefined)) return Infinity;
  const seconds = total(phases, (phase) => phase.seconds);
  return total(phases, ({ waitedShare = 0, ...phase }) => waitedShare * phase.seconds) / seconds;
}

/** Late sends of this share of the latency deserve a warning. */
const lateMatters = 0.25;

/** A smaller shortfall changes no figure by more than 1 %. */
const tolerableShortfall = 0.01;

/** Returns the rates asked for and made, in requests/s, and the queue's growth; null without a rate, or if the variant was not run. */
export function rateOf({ load: { rate: asked }, rps, rounds }: VariantResult) {
  const phases = phasesIn(rounds);
  if (asked === undefined || rps === null || phases.length === 0) return null;
  const growthPerSecond = queueGrowthOf(phases);
  // All rounds can show a growth that is chance in each.
  const made = growthPerSecond > 0 ? roundRps(phases) : rps.median;
  return { asked, made, reached: !isBehind(phases, asked, made), growthPerSecond };
}

/** Returns whether the variant's queue grows at its rate: its latencies are then as long as the run. */
export function queueGrows(variant: VariantResult): boolean {
  return (rateOf(variant)?.growthPerSecond ?? 0) > 0;
}

/**
 * Returns whether the server's queue grows, or `made` is more than 1 % below `asked` because requests left late or not at all: more than
 * 1 % of those due did not leave, or the p99 of their lateness is above 1 % of the load's time.
 * @param phases at least one
 */
export function isBehind(phases: readonly LoadResult[], asked: number, made: number): boolean {
  if (queueGrowthOf(phases) > 0) return true;
  const unsent = total(phases, (phase) => phase.unsent);
  const due = unsent + total(phases, (phase) => phase.requests + phase.inFlight);
  const late = median(phases.map(({ sendDelayMs, seconds }) => sendDelayMs.p99 / (1000 * seconds)));
  const isLate = unsent > tolerableShortfall * due || late > tolerableShortfall;
  return isLate && made < (1 - tolerableShortfall) * asked;
}

/** p99 of both; null if the lateness does not distort the latency. */
export function lateSends(variant: VariantResult) {
  if (rateOf(variant)?.reached !== true) return null;
  const answered = total(phasesIn(variant.rounds), ({ latencyMs }) => valuesIn(latencyMs));
  // The p99 of fewer responses is the latest of them.
  if (answered < responsesNeeded.p99) return null;
  const late = variant.phases.find(({ sendDelayMs, latencyMs, buckets }) => {
    const [narrowest] = extent(buckets.map(({ fromMs, toMs }) => (toMs ?? Infinity) - fromMs));
    const matters = Math.min(lateMatters * latencyMs.p99, narrowest);
    return sendDelayMs.p99 > 0 && sendDelayMs.p99 >= matters;
  });
  if (late === undefined) return null;
  return { lateMs: late.sendDelayMs.p99, latencyMs: late.latencyMs.p99 };
}

/** Late reads of this share of the latency explain it. */
const lateReadsMatter = 0.5;

/** p99 of both, in milliseconds; null unless the engine's late reads make up half of the latency or more. */
export function lateReads({ phases, rounds }: VariantResult) {
  const known = total(
    phasesIn(rounds).flatMap(({ readDelayMs }) => readDelayMs ?? []),
    valuesIn,
  );
  // The p99 of fewer responses is the latest of them.
  if (known < responsesNeeded.p99) return null;
  for (const { readDelayMs, latencyMs } of phases)
    if (readDelayMs !== undefined && readDelayMs.p99 >= lateReadsMatter * latencyMs.p99)
      return { lateMs: readDelayMs.p99, latencyMs: latencyMs.p99 };
  return null;
}

/** The share of its time for which the generator waited for its cores, with nothing to do for the server; undefined if unknown. */
export function generatorWaitsOf({ rounds }: VariantResult): number | undefined {
  const phases = phasesIn(rounds);
  const waits = phases.flatMap(({ generatorWaitedShare }) => generatorWaitedShare ?? []);
  return waits.length === 0 || waits.length < phases.length ? undefined : mean(waits);
}

/** A larger share prevents a verdict on latency at a rate. */
export const mostStalled = 0.2;

/** Share of the turns of all rounds, 0 to 1, in which the generator stalled. */
export function shareStalled({ rounds }: VariantResult): number {
  const phases = phasesIn(rounds);
  return mean(phases.flatMap(({ turns }) => turns?.stoodStill ?? [])) || 0;
}

/** The kernel sends nothing again sooner (TCP_RTO_MIN), so a connection without a place costs at least this. */
const leastWaitMs = 200;

/** The overflows of a variant's rounds in which requests failed, or took so long. */
export function overflowsOf({ name, rounds }: Pick<VariantResult, 'name' | 'rounds'>): Overflows {
  const felt = rounds.filter(({ phases }) => phases.some(isFelt));
  const queues = felt.flatMap(({ phases }) => phases[0]?.acceptQueue ?? []);
  const backlog = queues.find((queue) => queue.backlog !== undefined)?.backlog;
  return { variant: name, count: total(felt, overflowsIn), ...present({ backlog }) };
}

function overflowsIn({ phases }: Round): number {
  // An emulated network counts within the window of each phase, as in the table; the server's own count is of the whole load.
  const [first] = phases;
  if (first === undefined || first.network === null) return first?.acceptQueue?.overflows ?? 0;
  return total(phases, ({ network }) => network?.listenOverflows ?? 0);
}

function isFelt({ errors, hung, latencyMs, connectMs }: Phase): boolean {
  return errors.total + hung > 0 || Math.max(latencyMs.max, connectMs.max) >= leastWaitMs;
}
