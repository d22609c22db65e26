// Where requests/s and CPU per request do not say the same: the server used more or less of its cores, and why that may be.
import { percent, times } from '../format.ts';
import type { VariantResult } from '../result/result.ts';
import { atLimit, usableCores, usedCores } from './limit.ts';
import type { RunFacts } from './measured.ts';
import { networkReason } from './network.ts';
import { noiseOf, othersMatter, stealMatters, type RoundNoise } from './noise.ts';
import { mean, meanInterval, median } from './statistics.ts';

/** Below this it is worth no word: at its limit a server is from 90 % of its cores on, so it may be the limit at 95 % and at 100 %. */
const worthAWord = Math.log(1.05);

/**
 * One clause that says which side used less of the server's cores, and why that may be; '' where they agree.
 * @param logs ln(variant / baseline) of requests/s and of CPU per request, per round: their sum is that of the server's CPU use
 */
export function disagreementOf(
  baseline: VariantResult, variant: VariantResult, logs: { rps: readonly number[]; cpu: readonly number[] }, alpha: number, facts: RunFacts,
): string {
  const { middle, half } = meanInterval(logs.cpu.map((log, round) => log + (logs.rps[round] as number)), alpha);
  if (Math.abs(middle) <= Math.max(half, worthAWord)) return '';
  const [less, more] = middle < 0 ? [variant, baseline] : [baseline, variant];
  const perRequest = Math.exp(mean(logs.cpu) * (less === variant ? 1 : -1));
  return `with ${less.name} the server kept its cores ${percent(1 - Math.exp(-Math.abs(middle)))} less busy than with ${more.name}, at ${times(perRequest)} the CPU time per request: ${reason(less, more, facts)}`;
}

function reason(less: VariantResult, more: VariantResult, { serverCores, generatorCores, sharedCores }: RunFacts): string {
  const [its, others] = [less, more].map((one) => usableCores(one, { server: serverCores, generator: generatorCores }).server) as [number, number];
  if (its < others) return `it can use ${its} of its cores there, and ${others} with ${more.name}`;
  if (sharedCores) return 'it shares its cores with the generator, which takes what the server leaves';
  if (atLimit(less.generatorShare)) return `the generator was at its limit there (${usedCores(less.generatorShare)})`;
  const beside = typical(less, ({ generatorOthersShare }) => generatorOthersShare);
  if (beside >= othersMatter && !atLimit(less.serverShare)) return `others used ${percent(beside)} of the generator's cores there`;
  const stolen = ({ serverStealShare }: RoundNoise): number => serverStealShare;
  if (typical(less, stolen) - typical(more, stolen) >= stealMatters) return `${percent(typical(less, stolen))} of its cores were stolen there`;
  const used = ({ serverOthersShare }: RoundNoise): number => serverOthersShare;
  if (typical(less, used) - typical(more, used) >= othersMatter) return `others used ${percent(typical(less, used))} of its cores there`;
  const network = networkReason([less]);
  if (network !== '' && !atLimit(less.serverShare)) return `${network} there`;
  const shares = `the server at ${percent(less.serverShare ?? 0)}, the generator at ${percent(less.generatorShare ?? 0)}`;
  return atLimit(less.serverShare) ? `its cores were full all the same (${shares})` : `neither side was at its limit there (${shares})`;
}

/** The median over the rounds of a share of 0 to 1; 0 where nobody measured. */
function typical({ rounds }: VariantResult, of: (noise: RoundNoise) => number): number {
  const noises = rounds.flatMap((round) => noiseOf(round) ?? []);
  return noises.length === 0 ? 0 : median(noises.map(of));
}
