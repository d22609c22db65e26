// Who set the pace: the server, the generator, or neither.
import type { Round, VariantResult } from '../result/result.ts';
import { noiseOf, type RoundNoise } from './noise.ts';
import { serverCpuSecondsOf } from './phases.ts';
import { total } from './statistics.ts';

/** From this share of the cores that it can use a side is at its limit; the rest goes to the kernel, the runner and InfluxDB. */
const limit = 0.9;

export type Limit = 'server' | 'generator' | 'both' | 'neither';

/** @param share of the cores that a side can use, 0 to 1; null where it is not known: then it is not */
function atLimit(share: number | null): boolean {
  return share !== null && share >= limit;
}

/** What tells who was at its limit: shares of 0 to 1, as in VariantResult. */
export type Shares = Pick<VariantResult, 'serverShare' | 'generatorShare'>;

/** Who was at its limit, by the cores that each used; null where that is not known, as for a variant that was not measured. */
export function limitOf({ serverShare, generatorShare }: Shares): Limit | null {
  if (generatorShare === null) return null;
  if (serverShare === null) return atLimit(generatorShare) ? 'generator' : null;
  if (atLimit(serverShare)) return atLimit(generatorShare) ? 'both' : 'server';
  return atLimit(generatorShare) ? 'generator' : 'neither';
}

/** How many cores each side has, or can use. */
interface SideCores { server: number; generator: number }

/** What decides how many of its cores each side can use. */
type Workers = Pick<VariantResult, 'server' | 'load'>;

/** How many of its cores each side can use at most: a worker or a thread runs on one at a time. Published only: all. */
export function usableCores({ server, load }: Workers, cores: SideCores): SideCores {
  return { server: Math.min(server?.workers ?? cores.server, cores.server), generator: Math.min(load.threads, cores.generator) };
}

/**
 * Of the cores that the server can use, and of what others and the hypervisor left of them, the share that it used in a round, at
 * most 1. What the link of a network of the run's own carries to a side it carries on that side's cores: where the two together used
 * more of all of them, it is that. null where the server's is not known.
 */
export function serverShareOf(round: Round, variant: Workers, cores: SideCores): number | null {
  const cpuSeconds = serverCpuSecondsOf(round.phases);
  return cpuSeconds === null ? null : shareOf(round, usableCores(variant, cores).server, cores.server, cpuSeconds, 'toServer', serverLost);
}

/** The same, of the generator. */
export function generatorShareOf(round: Round, variant: Workers, cores: SideCores): number {
  const cpuSeconds = total(round.phases, ({ generatorCpuSeconds }) => generatorCpuSeconds);
  return shareOf(round, usableCores(variant, cores).generator, cores.generator, cpuSeconds, 'toClient', generatorLost);
}

/** What a side could not have of all its cores, 0 to 1. */
function serverLost({ serverStealShare, serverOthersShare, upstreamShare }: RoundNoise): number {
  return serverStealShare + serverOthersShare + (upstreamShare ?? 0);
}

function generatorLost({ generatorStealShare, generatorOthersShare }: RoundNoise): number {
  return generatorStealShare + generatorOthersShare;
}

/** @param usable of `all` cores that the side has */
function shareOf(round: Round, usable: number, all: number, cpuSeconds: number, linkTo: 'toServer' | 'toClient', lost: (noise: RoundNoise) => number): number {
  const { phases } = round;
  const seconds = total(phases, (phase) => phase.seconds);
  const linkCpuSeconds = total(phases, ({ network }) => network?.linkCpuSeconds[linkTo] ?? 0);
  const noise = noiseOf(round);
  const left = noise === null ? all : all * (1 - lost(noise));
  const share = Math.max(cpuSeconds / (seconds * Math.min(usable, left)), (cpuSeconds + linkCpuSeconds) / (seconds * left));
  // Ticks are counted roughly: it may seem to have had more than was left.
  return left > 0 ? Math.min(1, share) : 1;
}
