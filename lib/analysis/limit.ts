// Who set the pace: the server, the generator, or neither.
import type { Round, VariantResult } from '../runner/result.ts';
import { total } from './statistics.ts';

/** From this share of the cores that it can use a side is at its limit; the rest goes to the kernel, the runner and InfluxDB. */
const limit = 0.9;

export type Limit = 'server' | 'generator' | 'both' | 'neither';

/** @param share of the cores that a side can use, or of what it can do at most, 0 to 1; null where it is not known: then it is not */
export function atLimit(share: number | null): boolean {
  return share !== null && share >= limit;
}

/** Who was at its limit, by shares of 0 to 1; null for a variant that was not measured. */
export function limitOf({ serverShare, generatorShare }: Pick<VariantResult, 'serverShare' | 'generatorShare'>): Limit | null {
  if (serverShare === null || generatorShare === null) return null;
  if (atLimit(serverShare)) return atLimit(generatorShare) ? 'both' : 'server';
  return atLimit(generatorShare) ? 'generator' : 'neither';
}

/** How many of its cores each side can use at most: a worker or a thread runs on one at a time. Published only: all. */
export function usableCores(
  variant: Pick<VariantResult, 'server' | 'load'>, cores: { server: number; generator: number },
): { server: number; generator: number } {
  return { server: Math.min(variant.server?.workers ?? cores.server, cores.server), generator: Math.min(variant.load.threads, cores.generator) };
}

/**
 * Of the cores that the generator can use, the share that it used in a round. The link of a network of the run's own runs on the
 * generator's cores: where the two together used more of all of them, it is that.
 * @param cores that it can use, and all that it has
 */
export function generatorShareOf({ phases }: Round, cores: { usable: number; all: number }): number {
  const [seconds, cpuSeconds] = [total(phases, (phase) => phase.seconds), total(phases, (phase) => phase.generatorCpuSeconds)];
  const linkCpuSeconds = total(phases, ({ network }) => network?.linkCpuSeconds ?? 0);
  return Math.max(cpuSeconds / (seconds * cores.usable), (cpuSeconds + linkCpuSeconds) / (seconds * cores.all));
}
