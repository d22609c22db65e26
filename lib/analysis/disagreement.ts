// Where requests/s and CPU per request do not say the same: the server used more or less of its cores, and why that may be.
import { percent } from '../format.ts';
import { atLimit, usedCores, type Shares } from './limit.ts';
import { othersMatter, stealMatters } from './noise.ts';
import { meanInterval } from './statistics.ts';

/** How the machine was used under a variant: shares of 0 to 1, medians over the rounds; null where nobody measured. */
export interface Use extends Shares {
  name: string;
  /** How many cores the server can use at most. */
  serverCores: number;
  stealShare: number | null;
  othersShare: number | null;
  generatorOthersShare: number | null;
  /** Server and generator run on the same cores. */
  sharedCores: boolean;
  /** What of the network set the pace, as networkReason says it; '' where nothing did. */
  network: string;
}

/** Below this it is worth no word: at its limit a server is from 90 % of its cores on, so it may be the limit at 95 % and at 100 %. */
const worthAWord = Math.log(1.05);

/**
 * One clause that says which side used less of the server's cores, and why that may be; '' where they agree.
 * @param useLogs per round ln(ratio of requests/s) + ln(ratio of CPU per request), which is the change of the server's CPU use
 */
export function disagreementOf(baseline: Use, variant: Use, useLogs: readonly number[], alpha: number): string {
  const { middle, half } = meanInterval(useLogs, alpha);
  if (Math.abs(middle) <= Math.max(half, worthAWord)) return '';
  const [less, more] = middle < 0 ? [variant, baseline] : [baseline, variant];
  return `with ${less.name} the server used ${percent(1 - Math.exp(-Math.abs(middle)))} less CPU time than with ${more.name}: ${reason(less, more)}`;
}

function reason(less: Use, more: Use): string {
  if (less.serverCores < more.serverCores) return `it can use ${less.serverCores} of its cores there, and ${more.serverCores} with ${more.name}`;
  if (less.sharedCores) return 'it shares its cores with the generator, which takes what the server leaves';
  if (atLimit(less.generatorShare)) return `the generator was at its limit there (${usedCores(less.generatorShare)})`;
  if ((less.generatorOthersShare ?? 0) >= othersMatter && !atLimit(less.serverShare)) return `others used ${percent(less.generatorOthersShare ?? 0)} of the generator's cores there`;
  if ((less.stealShare ?? 0) - (more.stealShare ?? 0) >= stealMatters) return `${percent(less.stealShare ?? 0)} of its cores were stolen there`;
  if ((less.othersShare ?? 0) - (more.othersShare ?? 0) >= othersMatter) return `others used ${percent(less.othersShare ?? 0)} of its cores there`;
  if (less.network !== '' && !atLimit(less.serverShare)) return `${less.network} there`;
  const shares = `the server at ${percent(less.serverShare ?? 0)}, the generator at ${percent(less.generatorShare ?? 0)}`;
  return atLimit(less.serverShare) ? `its cores were full all the same (${shares})` : `neither side was at its limit there (${shares})`;
}
