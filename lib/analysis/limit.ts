// What else used the machine while it was measured, round by round.
import { byName } from '../present.ts';
import type { LoadResult, Noise, Round, VariantResult } from '../result/result.ts';
import { extent, total, median } from './statistics.ts';
import { serverCpuSecondsOf } from './phases.ts';

/** Time that the hypervisor took is missing in requests/s: from here on it is twice what two equal variants may differ by. */
export const stealMatters = 0.02;

/** Interrupts and the kernel's own work on the server's cores come to a few percent on an idle machine. */
export const othersMatter = 0.05;

/** What the phases of a round saw together: shares as in Noise, `mhz` the lowest clock at an end and the highest at all. */
export interface RoundNoise extends Omit<Noise, 'serverMhz'> {
  mhz: { lowest: number; highest: number } | null;
}

/** null where a phase has none. */
export function noiseOf({ phases }: Round): RoundNoise | null {
  const seen = phases.flatMap(({ noise, seconds }) =>
    noise === null ? [] : [{ ...noise, seconds }],
  );
  if (seen.length === 0 || seen.length < phases.length) return null;
  const seconds = total(seen, (phase) => phase.seconds);
  const share = (of: (noise: Noise) => number): number =>
    seconds === 0 ? 0 : total(seen, (phase) => of(phase) * phase.seconds) / seconds;
  return {
    ...byName(
      ['serverStealShare', 'generatorStealShare', 'serverOthersShare', 'generatorOthersShare'],
      (name) => share((noise) => noise[name]),
    ),
    ...(seen.some(({ upstreamShare }) => upstreamShare !== undefined)
      ? {
          upstreamShare: seen.some(({ upstreamShare }) => upstreamShare === null)
            ? null
            : share(({ upstreamShare }) => upstreamShare ?? 0),
        }
      : {}),
    loadAverage: extent(seen.map((noise) => noise.loadAverage))[1],
    mhz: clockOf(seen),
  };
}

/** A clock that rises in a window did so because the load began; one that falls, or is lower in another window, was held back. */
function clockOf(seen: readonly Noise[]): RoundNoise['mhz'] {
  const clocks = seen.flatMap(({ serverMhz }) => (serverMhz === null ? [] : [serverMhz]));
  if (clocks.length === 0) return null;
  return { lowest: extent(clocks.map(([, end]) => end))[0], highest: extent(clocks.flat())[1] };
}

// Who set the pace: the server, the generator, or neither.

/** From this share of the cores that it can use a side is at its limit; the rest goes to the kernel, the runner and InfluxDB. */
const limit = 0.9;

export type Limit = 'server' | 'generator' | 'both' | 'neither';

/** What tells who was at its limit: shares of 0 to 1, as in VariantResult. */
export type Shares = Pick<VariantResult, 'serverShare' | 'generatorShare'>;

/** Who was at its limit, by the cores that each used; null where that is not known, as for a variant that was not measured. */
export function limitOf({ serverShare, generatorShare }: Shares): Limit | null {
  if (generatorShare === null) return null;
  const isServer = (serverShare ?? 0) >= limit;
  if (generatorShare >= limit) return isServer ? 'both' : 'generator';
  if (serverShare === null) return null;
  return isServer ? 'server' : 'neither';
}

/** How many cores each side has, or can use. */
interface SideCores {
  server: number;
  generator: number;
}

/** What decides how many of its cores each side can use. */
type Workers = Pick<VariantResult, 'server' | 'load'>;

/** How many of its cores each side can use at most: a worker or a thread runs on one at a time. Published only: all. */
export function usableCores({ server, load }: Workers, cores: SideCores): SideCores {
  return {
    server: Math.min(server?.workers ?? cores.server, cores.server),
    generator: Math.min(load.threads, cores.generator),
  };
}

/** As VariantResult.serverShare, of one round: at most 1, null where the server's CPU time is not known. */
export function serverShareOf(round: Round, variant: Workers, cores: SideCores): number | null {
  const cpuSeconds = serverCpuSecondsOf(round.phases);
  return cpuSeconds === null ? null : shareOf('server', round, variant, cores, cpuSeconds);
}

/** The same, of the generator. */
export function generatorShareOf(round: Round, variant: Workers, cores: SideCores): number {
  return shareOf(
    'generator',
    round,
    variant,
    cores,
    total(round.phases, ({ generatorCpuSeconds }) => generatorCpuSeconds),
  );
}

function shareOf(
  side: 'server' | 'generator',
  round: Round,
  variant: Workers,
  cores: SideCores,
  cpuSeconds: number,
): number {
  const seconds = total(round.phases, (phase) => phase.seconds);
  const linkCpuSeconds = total(
    round.phases,
    ({ network }) => network?.linkCpuSeconds[side === 'server' ? 'toServer' : 'toClient'] ?? 0,
  );
  const noise = noiseOf(round);
  const lost =
    noise === null
      ? 0
      : noise[`${side}StealShare`] +
        noise[`${side}OthersShare`] +
        (side === 'server' ? (noise.upstreamShare ?? 0) : 0);
  const left = cores[side] * (1 - lost);
  const share = Math.max(
    cpuSeconds / (seconds * Math.min(usableCores(variant, cores)[side], left)),
    (cpuSeconds + linkCpuSeconds) / (seconds * left),
  );
  // Ticks are counted roughly: it may seem to have had more than was left.
  return left > 0 ? Math.min(1, share) : 1;
}

// Whether an open model's load came to the rate that was asked for, and what kept it from that.

/** From this part of the latency on, how late requests left is worth a warning. */
const lateMatters = 0.25;

/** What may be missing of a rate, and still every figure is within 1 %. */
const tolerableShortfall = 0.01;

/** The rate of a variant, and its own figure, in requests/s; null without a rate, and when it was not run. `reached`: not isBehind. */
export function rateOf({
  load: { rate: asked },
  rps,
  rounds,
}: Pick<VariantResult, 'load' | 'rps' | 'rounds'>): {
  asked: number;
  made: number;
  reached: boolean;
} | null {
  const phases = rounds.flatMap((round) => round.phases);
  if (asked === undefined || rps === null || phases.length === 0) return null;
  return { asked, made: rps.median, reached: !isBehind(phases, asked, rps.median) };
}

/**
 * Whether requests/s are more than 1 % fewer than asked for because requests did not leave: 1 % of those that were due, or one in
 * a hundred left later than 1 % of the load's time. @param phases at least one
 */
export function isBehind(phases: readonly LoadResult[], asked: number, made: number): boolean {
  const unsent = total(phases, (phase) => phase.unsent);
  const due = unsent + total(phases, (phase) => phase.requests + phase.inFlight);
  const late = median(phases.map(({ sendDelayMs, seconds }) => sendDelayMs.p99 / (1000 * seconds)));
  return (
    (unsent > tolerableShortfall * due || late > tolerableShortfall) &&
    made < (1 - tolerableShortfall) * asked
  );
}

const causes: Readonly<Record<Limit, string>> = {
  both: 'both sides were at their limit',
  server: 'the server was at its limit',
  generator: 'the generator was at its limit',
  neither:
    'neither side was at its limit (run again on a quieter machine, or with more connections)',
};

/** Why requests left late, or not at all, in a clause. */
export function rateCause(variant: Shares): string {
  const limit = limitOf(variant);
  return limit === null
    ? 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)'
    : causes[limit];
}

/** p99 of how late requests left and of the latency, in milliseconds, where the first distorts the second; null elsewhere. */
export function lateSends(variant: VariantResult): { p99Ms: number; latencyMs: number } | null {
  if (rateOf(variant)?.reached !== true) return null;
  const late = variant.phases.find(({ sendDelayMs, latencyMs, buckets }) => {
    const [narrowest] = extent(buckets.map(({ fromMs, toMs }) => (toMs ?? Infinity) - fromMs));
    return (
      sendDelayMs.p99 > 0 && sendDelayMs.p99 >= Math.min(lateMatters * latencyMs.p99, narrowest)
    );
  });
  return late === undefined ? null : { p99Ms: late.sendDelayMs.p99, latencyMs: late.latencyMs.p99 };
}

/** With more, latency at a rate gets no verdict: what is left out is no longer a matter of some pauses. */
export const mostStoodStill = 0.2;

/** Of the turns of all rounds: the share, 0 to 1, in which the generator stood still. */
export function stoodStill({ rounds }: Pick<VariantResult, 'rounds'>): number {
  const shares = rounds.flatMap(({ phases }) =>
    phases.flatMap(({ turns }) => turns?.stoodStill ?? []),
  );
  return shares.length === 0 ? 0 : total(shares, (share) => share) / shares.length;
}
