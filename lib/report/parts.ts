// What a report shows beside sentences, in the terminal and in Markdown alike.
import { comparisonOf, measuredComparisons, roundRatiosOf } from '../analysis/comparisons.ts';
import { times } from '../format.ts';
import type { Comparison, Result } from '../result/result.ts';
import { histogramPart, ladderPart, streamsPart } from './bars.ts';
import { hasPhases, variantTable } from './columns.ts';
import { curvePart } from './curve.ts';
import { finishTable } from './load-figures.ts';
import { linkPart } from './network.ts';
import type { Part } from './table.ts';

/** The article's table and what belongs to it: phases, the link, histogram, the ladder, requests/s by streams. */
export function tableParts(result: Result): Part[] {
  return [
    ...articleParts(result),
    ...curvePart(result),
    ...histogramPart(result),
    ...ladderPart(result),
    ...streamsPart(result),
  ];
}

/** The article's table, with several load phases one of them above it, and what went over the link below it. */
export function articleParts(result: Result): Part[] {
  const variants = { tables: [variantTable(result)], below: rowLines(result) };
  const phases = hasPhases(result)
    ? [{ title: '', tables: [finishTable(result, 'variant, phase')], below: [] }]
    : [];
  return [
    ...phases,
    { title: phases.length === 0 ? '' : 'All phases together:', ...variants },
    ...linkPart(result),
  ];
}

/** What a row's figures leave open: why requests/s and CPU time say different things, and its rounds where they are apart. */
function rowLines(result: Result): string[] {
  const measured = measuredComparisons(result);
  const shown = measured.filter(
    ({ outliers, verdict }) => outliers.length > 0 || verdict === 'inconclusive',
  );
  return [
    ...measured.flatMap((one) =>
      one.cpu === null || one.disagreement === ''
        ? []
        : [
            `${nameOf(one)}: requests/s (${times(one.ratio)}) and CPU per request (${times(one.cpu.ratio)}) disagree, since ${one.disagreement}.`,
          ],
    ),
    ...shown.map(
      (one) =>
        `${nameOf(one)}, rounds${one.outliers.length > 0 ? ' (! lies apart)' : ''}: ${roundsText(one)}`,
    ),
  ];

  /** A comparison that is not its row's own needs both names. */
  function nameOf({ variant, baseline }: Comparison): string {
    return comparisonOf(result, variant)?.baseline === baseline
      ? variant
      : `${variant} against ${baseline}`;
  }

  /** "×1.40 ×1.44 ×1.80! ×1.42"; with three decimals where all of them are near to 1. */
  function roundsText(comparison: Comparison): string {
    const rounds = roundRatiosOf(comparison, result);
    const decimals = rounds.every(({ ratio }) => Math.abs(ratio - 1) < 0.1) ? 3 : 2;
    return rounds
      .map(({ ratio, apart }) => `×${ratio.toFixed(decimals)}${apart ? '!' : ''}`)
      .join(' ');
  }
}
