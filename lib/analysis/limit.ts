// The limit of a load: server, generator or neither; whether it came to its rate; and other programs' use of the machine.
import { byName } from '../present.ts';
import type { LoadResult, Noise, Round, VariantResult } from '../result/result.ts';
import { serverCpuSecondsOf } from './phases.ts';
import { extent, median, total } from './statistics.ts';

/** The hypervisor's time is missing in requests/s: at this share it is twice the tolerance of `same`. */
export const stealMatters = 0.02;

/** On an idle machine interrupts and the kernel's own work use a few percent of the server's cores. */
export const othersMatter = 0.05;

/** The phases of a round together: shares as in Noise. `mhz`: the lowest clock at the end of a phase, and the highest at all. */
export interface RoundNoise extends Omit<Noise, 'serverMhz'> {
  mhz: { lowest: number; highest: number } | null;
}

/** null if a phase has no noise figures. */
export function noiseOf({ phases }: Round): RoundNoise | null {
  const seen = phases.flatMap(({ noise, seconds }) =>
    noise === null ? [] : [{ ...noise, seconds }],
  );
  if (seen.length === 0 || seen.length < phases.length) return null;
  const seconds = total(seen, (phase) => phase.seconds);
  const share = (of: (noise: Noise) => number) =>
    seconds === 0 ? 0 : total(seen, (phase) => of(phase) * phase.seconds) / seconds;
  const upstream = seen.map(({ upstreamShare }) => upstreamShare);
  return {
    ...byName(
      ['serverStealShare', 'generatorStealShare', 'serverOthersShare', 'generatorOthersShare'],
      (name) => share((noise) => noise[name]),
    ),
    ...(upstream.every((one) => one === undefined)
      ? {}
      : {
          upstreamShare: upstream.includes(null)
            ? null
            : share(({ upstreamShare }) => upstreamShare ?? 0),
        }),
    loadAverage: extent(seen.map((noise) => noise.loadAverage))[1],
    mhz: clockOf(seen),
  };
}

/** A clock may rise in a phase because its load began. Only a lower clock at the end shows that the core was slowed down. */
function clockOf(seen: readonly Noise[]): RoundNoise['mhz'] {
  const clocks = seen.flatMap(({ serverMhz }) => (serverMhz === null ? [] : [serverMhz]));
  if (clocks.length === 0) return null;
  return { lowest: extent(clocks.map(([, end]) => end))[0], highest: extent(clocks.flat())[1] };
}

/** A side that uses this share of its available cores is at its limit; the kernel, the runner and InfluxDB use the rest. */
const limit = 0.9;

type Limit = 'server' | 'generator' | 'both' | 'neither';

type Shares = Pick<VariantResult, 'serverShare' | 'generatorShare'>;

/** null if unknown, as for a variant that was not measured. */
export function limitOf({ serverShare, generatorShare }: Shares): Limit | null {
  if (generatorShare === null) return null;
  const isServer = (serverShare ?? 0) >= limit;
  if (generatorShare >= limit) return isServer ? 'both' : 'generator';
  if (serverShare === null) return null;
  return isServer ? 'server' : 'neither';
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

/** VariantResult.serverShare of a round, at most 1; null if the server's CPU time is unknown. */
export function serverShareOf(round: Round, variant: Workers, cores: SideCores): number | null {
  const cpuSeconds = serverCpuSecondsOf(round.phases);
  return cpuSeconds === null ? null : shareOf('server', round, variant, cores, cpuSeconds);
}

/** VariantResult.generatorShare of a round, at most 1. */
export function generatorShareOf(round: Round, variant: Workers, cores: SideCores): number {
  const cpuSeconds = total(round.phases, (phase) => phase.generatorCpuSeconds);
  return shareOf('generator', round, variant, cores, cpuSeconds);
}

function shareOf(
  side: 'server' | 'generator',
  round: Round,
  variant: Workers,
  cores: SideCores,
  cpuSeconds: number,
): number {
  const seconds = total(round.phases, (phase) => phase.seconds);
  const direction = side === 'server' ? 'toServer' : 'toClient';
  const linkCpuSeconds = total(
    round.phases,
    ({ network }) => network?.linkCpuSeconds[direction] ?? 0,
  );
  const noise = noiseOf(round);
  const upstream = side === 'server' ? (noise?.upstreamShare ?? 0) : 0;
  const lost =
    noise === null ? 0 : noise[`${side}StealShare`] + noise[`${side}OthersShare`] + upstream;
  const left = cores[side] * (1 - lost);
  const share = Math.max(
    cpuSeconds / (seconds * Math.min(usableCores(variant, cores)[side], left)),
    (cpuSeconds + linkCpuSeconds) / (seconds * left),
  );
  // CPU time is counted in ticks, so it may seem to exceed the time that was left.
  return left > 0 ? Math.min(1, share) : 1;
}

/** Late sends of this share of the latency deserve a warning. */
const lateMatters = 0.25;

/** With a shortfall of less than this, all figures are within 1 %. */
const tolerableShortfall = 0.01;

/** The rate of a variant and its own figure, in requests/s; null without a rate, and if it was not run. */
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
 * Whether `made` is more than 1 % below `asked` because requests did not leave: 1 % of those due, or the p99 of their
 * lateness is above 1 % of the load's time. @param phases at least one
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

/** Why requests left late, or not at all. */
export function rateCause(variant: Shares & Pick<VariantResult, 'load'>): string {
  const limit = limitOf(variant);
  if (variant.load['arrivals'] === 'logged' && limit === 'neither')
    return 'they waited for a free connection (more connections move that queue into the server)';
  return limit === null
    ? 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)'
    : causes[limit];
}

/** p99 of the lateness of requests and of the latency; null if the lateness does not distort the latency. */
export function lateSends(variant: VariantResult): { lateMs: number; latencyMs: number } | null {
  if (rateOf(variant)?.reached !== true) return null;
  const late = variant.phases.find(({ sendDelayMs, latencyMs, buckets }) => {
    const [narrowest] = extent(buckets.map(({ fromMs, toMs }) => (toMs ?? Infinity) - fromMs));
    const matters = Math.min(lateMatters * latencyMs.p99, narrowest);
    return sendDelayMs.p99 > 0 && sendDelayMs.p99 >= matters;
  });
  return late === undefined
    ? null
    : { lateMs: late.sendDelayMs.p99, latencyMs: late.latencyMs.p99 };
}

/** With a larger share, latency at a rate gets no verdict. */
export const mostStoodStill = 0.2;

/** Share of the turns of all rounds, 0 to 1, in which the generator stood still. */
export function stoodStill({ rounds }: Pick<VariantResult, 'rounds'>): number {
  const shares = rounds.flatMap(({ phases }) =>
    phases.flatMap(({ turns }) => turns?.stoodStill ?? []),
  );
  return shares.length === 0 ? 0 : total(shares, (share) => share) / shares.length;
}
