// Looks at verdicts, as group-sequential tests. The method: docs/verdicts.md.
import { alphaOf, total } from './statistics.ts';

/** `alpha`: its chance of error with a single comparison. */
export interface Look {
  rounds: number;
  alpha: number;
}

// Shares with which equal variants differ at any look in 5 % of runs, by simulation (test/unit/looks.test.ts): tables such as Pocock's
// (Biometrika 64, 1977) are for a known variance.

/**
 * Without flags. Early looks, for large effects, spend little of the error: the last interval is 3.5 % wider than without them. Equal
 * shares (2.09 %) would make it 24 % wider, and end earlier only where rounds differ little.
 */
export const usualLooks: readonly Look[] = [
  { rounds: 4, alpha: 0.005 },
  { rounds: 6, alpha: 0.005 },
  { rounds: 10, alpha: 0.0438 },
];

/** With --precision the error is spent in proportion to the rounds (Lan & DeMets, Biometrika 70, 1983). */
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

export function onlyLook(rounds: number): readonly Look[] {
  return [{ rounds, alpha: alphaOf() }];
}

/**
 * α of each comparison at this look, or the next one. The more comparisons, the less errors of looks coincide: the shares are so much
 * smaller that all have 5 % in sum.
 */
export function alphaAt(looks: readonly Look[], rounds: number, comparisons: number): number {
  const nextLook = looks.find((look) => look.rounds >= rounds) ?? (looks.at(-1) as Look);
  if (comparisons <= 1) return nextLook.alpha;
  return nextLook.alpha * (alphaOf(comparisons) / total(looks, ({ alpha }) => alpha));
}

/** A look's part of the run's chance of error. */
export function shareAt(looks: readonly Look[], rounds: number): number {
  return alphaAt(looks, rounds, 1) / total(looks, ({ alpha }) => alpha);
}
