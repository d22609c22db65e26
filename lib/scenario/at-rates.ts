// A sweep: each variant at each of some rates, compared with its baseline at the same one.
import { whole } from '../format.ts';
import type { LoadProfile, Scenario, Variant } from './model.ts';
import { baselineName, isRunnable, loadOf } from './variants.ts';

/** As vegeta's -duration=10s; shortened as that is. */
const seconds = 10;

/**
 * The scenario with a variant for each of `shown` that can be run and each rate. What an article published was of another load, and is
 * left out, as are its further comparisons.
 * @param rates in requests/s
 */
export function atRates(scenario: Scenario, shown: readonly Variant[], rates: readonly number[]): Scenario {
  const { shareOf: _, alsoCompare: __, within: ___, ...rest } = scenario;
  const variants = rates.flatMap((rate) => shown.filter(isRunnable).map((variant): Variant => {
    const { published: ____, ...own } = variant;
    const against = baselineName(scenario, variant);
    return {
      ...own, name: nameAt(variant.name, rate), series: variant.name, load: atRate(loadOf(scenario, variant), rate), against: against === undefined ? null : nameAt(against, rate),
    };
  }));
  return { ...rest, variants };
}

function nameAt(variant: string, rate: number): string {
  return `${variant}-at-${rate}`;
}

function atRate({ durationSeconds: _, secondsHere: __, ...profile }: LoadProfile, rate: number): LoadProfile {
  return { ...profile, command: `${profile.command} at ${whole(rate)} requests/s`, rate, requests: Math.max(1, Math.round(rate * seconds)) };
}
