// Lines under the table on single rows of it.
import { comparable } from '../analysis/verdict.ts';
import type { Comparison, Result } from '../result/result.ts';

/** What a row's figures leave open: why requests/s and CPU time say different things, and its rounds where they are apart. */
export function rowLines({ variants, comparisons }: Result): string[] {
  const measured = comparisons.filter((one) => comparable(variants.find(({ name }) => name === one.variant), one));
  const shown = measured.filter(({ outliers, verdict }) => outliers.length > 0 || verdict === 'inconclusive');
  return [
    ...measured.filter(({ disagreement }) => disagreement !== '').map(({ disagreement, ...one }) => `${nameOf(one)}, where requests/s and CPU per request disagree: ${disagreement}.`),
    ...shown.map((one) => `${nameOf(one)}, rounds${one.outliers.length > 0 ? ' (! lies apart)' : ''}: ${roundRatios(one, roundsOf(one.variant))}`),
  ];

  /** A comparison that is not its row's own needs both names. */
  function nameOf({ variant, baseline }: Pick<Comparison, 'variant' | 'baseline'>): string {
    return comparisons.find((one) => one.variant === variant)?.baseline === baseline ? variant : `${variant} against ${baseline}`;
  }

  function roundsOf(variant: string): number[] {
    return variants.find(({ name }) => name === variant)?.rounds.map(({ round }) => round) ?? [];
  }
}

/** "×1.40 ×1.44 ×1.80! ×1.42"; with three decimals where all of them are near to 1. */
function roundRatios({ roundRatios: ratios, outliers }: Comparison, rounds: readonly number[]): string {
  const decimals = ratios.every((ratio) => Math.abs(ratio - 1) < 0.1) ? 3 : 2;
  return ratios.map((ratio, index) => `×${ratio.toFixed(decimals)}${outliers.includes(rounds[index] as number) ? '!' : ''}`).join(' ');
}
