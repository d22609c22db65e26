// A scenario's variants at several rates.
import { whole } from '../../format.ts';
import { atRateFor, secondsFor } from '../../scenario/load.ts';
import type { LoadProfile, Scenario, Variant } from '../../scenario/model.ts';
import { baselineName, isRunnable, loadOf } from '../../scenario/variants.ts';

/** Seconds of a load at a rate, before fitLoad: the usual duration, and the longest that a low rate gets. */
const secondsAtRate = { usual: 10, most: 30 };

/**
 * Returns a sweep: a variant for each of `shown` and each rate (requests/s), against its baseline at the same rate, without published
 * figures.
 * @param responses as in FitOptions
 */
export function atRates(
  scenario: Scenario,
  shown: readonly Variant[],
  rates: readonly number[],
  responses: number,
): Scenario {
  const { alsoCompare: _, within: __, ...rest } = scenario;
  const variants = rates.flatMap((rate) =>
    shown.filter(isRunnable).map((variant): Variant => {
      const { published: ___, ...unpublished } = variant;
      const against = baselineName(scenario, variant);
      return {
        ...unpublished,
        name: nameAt(variant.name, rate),
        series: variant.name,
        load: atRate(loadOf(scenario, variant), rate, responses),
        against: against === undefined ? null : nameAt(against, rate),
      };
    }),
  );
  return { ...rest, variants };
}

function nameAt(variant: string, rate: number): string {
  return `${variant}-at-${rate}`;
}

function atRate(
  { durationSeconds: _, secondsHere: __, ...profile }: LoadProfile,
  rate: number,
  responses: number,
): LoadProfile {
  const { usual, most } = secondsAtRate;
  const seconds = Math.min(most, Math.max(usual, secondsFor(responses, rate)));
  return {
    ...profile,
    command: `${profile.command} at ${whole(rate)} requests/s`,
    ...atRateFor(rate, seconds),
  };
}
