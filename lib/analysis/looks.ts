// Looks at verdicts, as group-sequential tests. The method: docs/verdicts.md.
import { alphaOf, total } from './statistics.ts';

/** A look after so many rounds. `alpha`: the chance of error that its intervals have in a run with a single comparison. */
export interface Look {
  rounds: number;
  alpha: number;
}

// Shares of the looks for which equal variants differ at any look in 5 % of runs, if the logarithms of ratios are normal.
// test/unit/looks.test.ts simulates them: tables of boundaries, such as Pocock's (Biometrika 64, 1977), are for a known variance.

/**
 * The looks of a run without flags. A large effect needs no narrow interval, so the early looks spend little of the error, and
 * the last interval is only 3.5 % wider than without them. Equal shares (2.09 %) would make it 24 % wider, and end earlier only
 * where rounds differ little.
 */
export const usualLooks: readonly Look[] = [
  { rounds: 4, alpha: 0.005 },
  { rounds: 6, alpha: 0.005 },
  { rounds: 10, alpha: 0.0438 },
];

/**
 * The looks of a run with --precision. The run ends at the first look with a narrow interval, so the error is spent in proportion
 * to the rounds (Lan & DeMets, Biometrika 70, 1983).
 */
export const preciseLooks: readonly Look[] = [
  { rounds: 5, alpha: 0.0032 },
  { rounds: 10, alpha: 0.0034 },
  { rounds: 20, alpha: 0.007 },
  { rounds: 40, alpha: 0.015 },
  { rounds: 80, alpha: 0.0315 },
];

/** Rounds of a search take 20 s: a large difference is found after four. */
export const searchLooks: readonly Look[] = [
  { rounds: 4, alpha: 0.015 },
  { rounds: 6, alpha: 0.042 },
];

/** The single look of a run with a fixed number of rounds. */
export function onlyLook(rounds: number): readonly Look[] {
  return [{ rounds, alpha: alphaOf() }];
}

/**
 * α of each of the comparisons at the look after so many rounds, or at the next one. The more comparisons divide it, the less the
 * errors of looks coincide: the shares of several are so much smaller that all looks of all comparisons have 5 % in sum.
 */
export function alphaAt(looks: readonly Look[], rounds: number, comparisons: number): number {
  const { alpha = NaN } = looks.find((look) => look.rounds >= rounds) ?? looks.at(-1) ?? {};
  if (comparisons <= 1) return alpha;
  return alpha * (alphaOf(comparisons) / total(looks, (look) => look.alpha));
}

/** The share of a run's chance of error that the look after so many rounds has, 0 to 1. */
export function shareAt(looks: readonly Look[], rounds: number): number {
  return alphaAt(looks, rounds, 1) / total(looks, ({ alpha }) => alpha);
}
