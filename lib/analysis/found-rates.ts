// The rates that a search found, over its rounds.
import type { FoundRate } from '../result/result.ts';
import { alphaOf, exponential, geometricMean, meanInterval } from './statistics.ts';
import { minimumRounds } from './verdict.ts';

/** Of each variant that has some. The interval is Student's of the rates' logarithms. @param variants what was found in each of their rounds, in requests/s */
export function foundRates(variants: readonly { name: string; found?: readonly { rate: number; atLeast: boolean }[] }[]): FoundRate[] {
  return variants.flatMap(({ name, found = [] }) => {
    if (found.length === 0) return [];
    const logs = found.map(({ rate }) => Math.log(rate));
    return [{
      variant: name, rate: geometricMean(found.map(({ rate }) => rate)), ci95: logs.length < minimumRounds ? null : exponential(meanInterval(logs, alphaOf(1, 1))), atLeast: found.some(({ atLeast }) => atLeast),
    }];
  });
}
