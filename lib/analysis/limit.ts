// Who set the pace: the server, the generator, or neither.
import type { Round, VariantResult } from '../result/result.ts';
import { noiseOf } from './noise.ts';
import { serverCpuSecondsOf } from './phases.ts';
import { total } from './statistics.ts';

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
