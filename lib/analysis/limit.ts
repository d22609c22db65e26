// Limits, rates that were not reached, and use by others. k6 runs isBehind.
import { byName } from '../present.ts';
import type { LoadResult } from '../result/load-result.ts';
import type { Noise, Phase, Round, VariantResult } from '../result/result.ts';
import { responsesNeeded, valuesIn } from './latency.ts';
import { phasesIn, queueGrowthOf, responsesOf, roundRps, serverCpuSecondsOf } from './phases.ts';
import { extent, mean, median, total } from './statistics.ts';

/** Missing in requests/s: twice the tolerance of `same`. */
export const stealMatters = 0.02;

/** On an idle machine interrupts and the kernel use a few percent. */
export const othersMatter = 0.05;

/** `mhz`: lowest at a phase's end, highest at all. */
export interface RoundNoise extends Omit<Noise, 'serverMhz'> {
  mhz: { lowest: number; highest: number } | null;
}

/** null if a phase has none. */
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

/** Working servers do not pause so long. A dropped SYN is sent again after 1 s (RFC 6298, section 2). */
const longPauseMs = 1250;
/** Slow servers' may: multiple of the latency's p99, and of the typical first byte. */
const pauseFactor = 10;
/** A window without any answer: multiple of the warm-up's typical latency. */
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
 * The longest time without a response while requests were under way; null if working servers pause so long. Without any answer half of a
 * short window is too long, unless answers took longer in the warm-up. Lost packets are no pause: TCP waits 1 s and more.
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
  // All answers may be to earlier requests, without a latency in the window.
  const slowMs = latencyMs.p99 || usualMs;
  return Math.max(longPauseMs, pauseFactor * slowMs, pauseFactor * firstByteMs.p50);
}

export function isUnanswered(phase: Pick<Phase, 'responses' | 'errors'>): boolean {
  return phase.errors.total + responsesOf(phase) === 0;
}

/** From this share of its cores a side is at its limit; kernel, runner and InfluxDB use the rest. */
export const limit = 0.9;

export type Limit = 'server' | 'generator' | 'both' | 'neither';

type Shares = Pick<VariantResult, 'serverShare' | 'generatorShare'>;

/** null if unknown. */
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

/** One per worker or thread at most. */
export function usableCores({ server, load }: Workers, cores: SideCores): SideCores {
  return {
    server: Math.min(server?.workers ?? cores.server, cores.server),
    generator: Math.min(load.threads, cores.generator),
  };
}

/** VariantResult's shares of a round; the server's is null if CPU time or cores are unknown. */
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
    const left = cores[side] * (1 - steal - missed - upstream);
    const share = Math.max(
      cpuSeconds / (seconds * Math.min(usable[side], left)),
      (cpuSeconds + linkCpuSeconds) / (seconds * left),
    );
    // Ticks may exceed the time left.
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
 * Share of its usable cores that a server waited for, at most what others used; Infinity if unknown. It may leave cores to programs of low
 * priority.
 */
function waitedIn(phases: readonly Phase[]): number {
  if (phases.some(({ waitedShare }) => waitedShare === undefined)) return Infinity;
  const seconds = total(phases, (phase) => phase.seconds);
  return total(phases, ({ waitedShare = 0, ...phase }) => waitedShare * phase.seconds) / seconds;
}

/** Late sends of so much of the latency warn. */
const lateMatters = 0.25;

/** It changes no figure by more than 1 %. */
const tolerableShortfall = 0.01;

/** `growthPerSecond` as queueGrowthOf; null without a rate or rounds. */
export function rateOf({ load: { rate: asked }, rps, rounds }: VariantResult) {
  const phases = phasesIn(rounds);
  if (asked === undefined || rps === null || phases.length === 0) return null;
  const growthPerSecond = queueGrowthOf(phases);
  // All rounds can show a growth that is chance in each.
  const made = growthPerSecond > 0 ? roundRps(phases) : rps.median;
  return { asked, made, reached: !isBehind(phases, asked, made), growthPerSecond };
}

/** Latencies are then as long as the run. */
export function queueGrows(variant: VariantResult): boolean {
  return (rateOf(variant)?.growthPerSecond ?? 0) > 0;
}

/** Whether the queue grows, or `made` is over 1 % below `asked` as requests left late or not at all. @param phases at least one */
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
  // Of fewer, a p99 is the latest of them.
  if (answered < responsesNeeded.p99) return null;
  const late = variant.phases.find(({ sendDelayMs, latencyMs, buckets }) => {
    const [narrowest] = extent(buckets.map(({ fromMs, toMs }) => (toMs ?? Infinity) - fromMs));
    const matters = Math.min(lateMatters * latencyMs.p99, narrowest);
    return sendDelayMs.p99 > 0 && sendDelayMs.p99 >= matters;
  });
  if (late === undefined) return null;
  return { lateMs: late.sendDelayMs.p99, latencyMs: late.latencyMs.p99 };
}

const lateReadsMatter = 0.5;

/** In milliseconds; null unless they are half of the latency or more. */
export function lateReads({ phases, rounds }: VariantResult) {
  const known = total(
    phasesIn(rounds).flatMap(({ readDelayMs }) => readDelayMs ?? []),
    valuesIn,
  );
  // Of fewer, a p99 is the latest of them.
  if (known < responsesNeeded.p99) return null;
  for (const { readDelayMs, latencyMs } of phases)
    if (readDelayMs !== undefined && readDelayMs.p99 >= lateReadsMatter * latencyMs.p99)
      return { lateMs: readDelayMs.p99, latencyMs: latencyMs.p99 };
  return null;
}

/** A larger share prevents a verdict on latency. */
export const mostStalled = 0.2;

/** Over all rounds, 0 to 1. */
export function shareStalled({ rounds }: VariantResult): number {
  const phases = phasesIn(rounds);
  return mean(phases.flatMap(({ turns }) => turns?.stoodStill ?? [])) || 0;
}

/** They made requests fail or wait. Without a backlog they may be another server's. */
export interface Overflows {
  name: string;
  count: number;
  backlog: number | undefined;
}

/** The kernel sends again after this at the soonest (TCP_RTO_MIN). */
const leastWaitMs = 200;

/** Counts rounds whose requests failed, or took so long. */
export function overflowsOf({ name, rounds }: Pick<VariantResult, 'name' | 'rounds'>): Overflows {
  const felt = rounds.filter(({ phases }) => phases.some(isFelt));
  const queues = felt.flatMap(({ phases }) => phases[0]?.acceptQueue ?? []);
  return {
    name,
    count: total(felt, overflowsIn),
    backlog: queues.find(({ backlog }) => backlog !== undefined)?.backlog,
  };
}

function overflowsIn({ phases }: Round): number {
  // A network counts within phases, as in the table; the server's own count is of the whole load.
  const [first] = phases;
  if (first === undefined || first.network === null) return first?.acceptQueue?.overflows ?? 0;
  return total(phases, ({ network }) => network?.listenOverflows ?? 0);
}

function isFelt({ errors, hung, latencyMs, connectMs }: Phase): boolean {
  return errors.total + hung > 0 || Math.max(latencyMs.max, connectMs.max) >= leastWaitMs;
}
