// Who set the pace: the server, the generator, or neither.
import type { VariantResult } from '../runner/result.ts';

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
