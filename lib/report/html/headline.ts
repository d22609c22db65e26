// The first lines of a page: verdicts in words, and as bars with their intervals.
import { measuredComparisons, judgedOf } from '../../analysis/comparisons.ts';
import { metrics } from '../../analysis/metrics.ts';
import { groupedBy } from '../../analysis/statistics.ts';
import { amount, enumeration, isTooWide } from '../../format.ts';
import type { Comparison, Result, Verdict } from '../../result/result.ts';
import { bytesLines } from '../bytes.ts';
import { comparisonParts } from '../comparison-sentences.ts';
import type { Contribution } from '../contribution.ts';
import { generalLines, noiseFloorLines } from '../sentences.ts';
import { metricWords, verdictWord } from '../metric-words.ts';
import { effectText, marksOf, verdictCell } from '../verdict-words.ts';
import { html, nothing, paragraphs, type Html } from './page.ts';

/** A single comparison is the headline itself; several stand below a headline that counts them. */
export function headlineHtml(result: Result, contributions: readonly Contribution[]): Html {
  const shown = measuredComparisons(result);
  const around = paragraphs([
    ...generalLines(result, contributions),
    ...bytesLines(result),
    ...noiseFloorLines(result),
  ]);
  if (shown.length === 0) return html`<h1>${result.title}</h1>\n${around}`;
  const isOnly = shown.length === 1;
  const effects = effectsHtml(shown, result, (comparison) => {
    const title = headline(comparison, result);
    const rest = belowHeadline(comparison, result);
    const titleHtml = isOnly ? html`<h1>${title}</h1>` : html`<strong>${title}</strong>`;
    return html`${titleHtml}${paragraphs(rest === '' ? [] : [rest])}`;
  });
  const counted = isOnly ? nothing : html`<h1>${summary(shown)}</h1>\n`;
  return html`${counted}${effects}
${around}${paragraphs([result.title], 'title')}`;
}

/** Draws a row per comparison. */
function effectsHtml(
  shown: readonly Comparison[],
  result: Result,
  labelOf: (comparison: Comparison) => Html,
): Html {
  const judged = judgedOf(shown);
  const rows = shown.map((comparison) => ({
    comparison: judged.includes(comparison) ? comparison : undefined,
    sameWithin: result.sameWithin,
    colour: kindOf(comparison, result),
    label: labelOf(comparison),
  }));
  return effectRows(rows);
}

export interface EffectRow {
  label: Html;
  /** The colour of this verdict. */
  colour: Verdict;
  /** Drawn as a bar; absent: none. */
  comparison: Comparison | undefined;
  /** See Result. */
  sameWithin: number;
}

/** Draws the rows. All bars have one scale; the band shows the ratios that count as the same. */
export function effectRows(rows: readonly EffectRow[]): Html {
  const judged = rows.flatMap(({ comparison }) => comparison ?? []);
  let furthest = -Infinity;
  for (const { comparison, sameWithin } of rows) {
    if (comparison === undefined) continue;
    const drawn = [
      1 + 2 * sameWithin,
      comparison.ratio,
      ...intervalOf(comparison),
      ...publishedOf(comparison),
    ];
    for (const ratio of drawn) furthest = Math.max(furthest, Math.abs(gain(comparison, ratio)));
  }
  const reach = 1.05 * furthest;
  const drawn = rows.map(({ label, colour, comparison, sameWithin }) => {
    const bar = comparison === undefined ? nothing : barHtml(comparison, sameWithin, reach);
    return html`<div class="effect ${colour}"><div>${label}</div>${bar}</div>\n`;
  });
  return html`<div class="effects${rows.length > 1 ? ' several' : ''}">${drawn}${judged.slice(0, 1).map((comparison) => html`<div class="effect"><div></div>${endsHtml(comparison, reach)}</div>`)}</div>`;
}

/** Returns the verdict that gives the colour. A config that seems to differ from itself looks doubtful. */
function kindOf(comparison: Comparison, result: Result): Verdict {
  const { verdict } = verdictCell(comparison, result);
  if (result.control !== true) return verdict;
  return verdict === 'faster' || verdict === 'slower' ? 'inconclusive' : 'same';
}

function summary(shown: readonly Comparison[]): string {
  const [baseline, ...others] = new Set(shown.map((comparison) => comparison.baseline));
  const verdicts = groupedBy(shown, ({ metric, verdict }) =>
    verdict === 'none' ? 'without a verdict' : verdictWord(metric, verdict),
  );
  const compared = others.length === 0 ? `Against ${baseline}` : `${shown.length} comparisons`;
  const counted = [...verdicts].map(([word, some]) => `${some.length} ${word}`);
  return `${compared}: ${enumeration(counted)}`;
}

/** "b is 8.9 % faster than a", "b uses 22 % of the CPU of a". */
export function headline(comparison: Comparison, result: Result): string {
  const claimed = claim(comparison, result);
  if (result.control === true) return claimed;
  return claimed + marksOf(comparison, result);
}

/** The rest of the comparison's sentence, with the reason for a missing verdict, which may be long. */
function belowHeadline(comparison: Comparison, result: Result): string {
  const [, rest] = comparisonParts(comparison, undefined, result);
  if (comparison.verdict === 'none') return comparison.why + rest;
  return rest.replace(/^[:;.]? ?/, '');
}

function claim(comparison: Comparison, result: Result): string {
  const { metric, variant, baseline, verdict } = comparison;
  if (verdict === 'none') return `No verdict on ${variant} against ${baseline}`;
  const size = effectText(comparison);
  if (result.control === true || (verdict !== 'faster' && verdict !== 'slower'))
    return comparisonParts(comparison, undefined, result)[0].replace(/ here, within /, ', within ');
  if (metricWords[metric].shareOf !== undefined) return `${variant} uses ${size} of ${baseline}`;
  if (metric !== 'rps')
    return `${variant} is ${verdictWord(metric, verdict)} than ${baseline}: ${size}`;
  if (size.endsWith('%')) return `${variant} is ${size.slice(1)} ${verdict} than ${baseline}`;
  return `${variant} is ${size} as fast as ${baseline}`;
}

/** Empty if the rounds are too far apart for an interval. */
function intervalOf({ ci95 }: Comparison): readonly number[] {
  return isTooWide(ci95) ? [] : ci95;
}

/** The article's ratio is one of requests/s. */
const publishedOf = ({ metric, publishedRatio }: Comparison): readonly number[] =>
  metric === 'rps' && publishedRatio !== null ? [publishedRatio] : [];

/** The natural logarithm of how many times better a ratio is. */
const gain = ({ metric }: Comparison, ratio: number): number =>
  metrics[metric].lessIsBetter ? -Math.log(ratio) : Math.log(ratio);

/** Draws a bar; better effects go to the right. The interval lies over the effect, and a line marks the article's effect. */
function barHtml(comparison: Comparison, sameWithin: number, reach: number): Html {
  const place = (ratios: readonly number[]) => {
    const ends = ratios.map((ratio) => 50 + (50 * gain(comparison, ratio)) / reach);
    const [from, to] = [Math.min(...ends), Math.max(...ends)];
    return `left:${from.toFixed(2)}%;width:${(to - from).toFixed(2)}%`;
  };
  const mark = (tag: 's' | 'i' | 'b' | 'u', ratios: readonly number[]) =>
    ratios.length === 0 ? nothing : html`<${tag} style="${place(ratios)}"></${tag}>`;
  return html`<div class="bar" aria-hidden="true">${mark('s', [1 / (1 + sameWithin), 1 + sameWithin])}${mark('i', [1, comparison.ratio])}${mark('b', intervalOf(comparison))}${mark('u', publishedOf(comparison))}</div>`;
}

function endsHtml({ metric }: Comparison, reach: number): Html {
  const { lessIsBetter } = metrics[metric];
  const { ends, shareOf } = metricWords[metric];
  const [worse, better] = ends;
  const end = (gained: number) =>
    amount(Math.exp(lessIsBetter ? -gained : gained), shareOf !== undefined);
  return html`<div class="ends" aria-hidden="true"><span>${worse}, ${end(-reach)}</span><span>the same</span><span>${better}, ${end(reach)}</span></div>`;
}
