// Verdicts in words with their size, in their colour, and as bars with their intervals: the first lines of a page.
import { measuredComparisons, markedVerdict } from '../../analysis/comparisons.ts';
import { isLatency, lessIsBetter } from '../../analysis/latency.ts';
import { groupedBy } from '../../analysis/statistics.ts';
import { enumeration, tolerance } from '../../format.ts';
import type { Comparison, Result, Verdict } from '../../result/result.ts';
import { amount, effectText, verdictCell, verdictWord } from '../verdict-words.ts';
import {
  comparisonParts,
  controlSentence,
  foundLines,
  noiseFloorLines,
  nothingLines,
  partialLines,
} from '../sentences.ts';
import { type Html, html, nothing, paragraphs, unbroken } from './markup.ts';

/** A comparison of a run. */
export interface Shown {
  one: Comparison;
  result: Result;
}

/** The comparisons of a run. */
export function shownOf(result: Result): Shown[] {
  return measuredComparisons(result).map((one) => ({ one, result }));
}

/** One comparison is the headline, several stand below one that counts them. */
export function headlineHtml(result: Result): Html {
  const shown = shownOf(result);
  const beside = paragraphs([
    ...partialLines(result),
    ...nothingLines(result),
    ...foundLines(result),
    ...noiseFloorLines(result),
  ]);
  if (shown.length === 0) return html`<h1>${result.title}</h1>\n${beside}`;
  const isOnly = shown.length === 1;
  return html`${isOnly ? nothing : html`<h1>${summary(shown)}</h1>\n`}${effectsHtml(
    shown,
    (row) => {
      const rest =
        result.control === true
          ? controlSentence(row.one, result).replace(/^.*?: /, '')
          : comparisonParts(row.one, undefined, result)[1];
      return html`${isOnly ? html`<h1>${headline(row)}</h1>` : html`<strong>${headline(row)}</strong>`}${paragraphs([rest.replace(/^[:;.]? ?/, '')].filter((text) => text !== ''))}`;
    },
  )}
${beside}${paragraphs([result.title], 'title')}`;
}

/** A line of words and a bar for each, all bars with one scale. The band is that within which two are the same. */
export function effectsHtml(shown: readonly Shown[], words: (shown: Shown) => Html): Html {
  const judged = shown.filter(({ one }) => one.verdict !== 'none');
  // The gain at the right end of the bars, with room for the end of an interval.
  const reach =
    1.05 *
    Math.max(
      ...judged.flatMap(({ one, result }) =>
        [1 + 2 * result.sameWithin, one.ratio, ...intervalOf(one)].map((ratio) =>
          Math.abs(gain(one, ratio)),
        ),
      ),
    );
  const rows = shown.map(
    (row) =>
      html`<div class="effect ${kindOf(row)}"><div>${words(row)}</div>${judged.includes(row) ? barHtml(row, reach) : nothing}</div>\n`,
  );
  return html`<div class="effects${shown.length > 1 ? ' several' : ''}">${rows}${judged.slice(0, 1).map(({ one }) => html`<div class="effect"><div></div>${endsHtml(one, reach)}</div>`)}</div>`;
}

/** Which colour it has. That a config differs from itself is to be doubted. */
function kindOf({ one, result }: Shown): Verdict {
  const { verdict } = verdictCell(one, result);
  return result.control !== true
    ? verdict
    : verdict === 'faster' || verdict === 'slower'
      ? 'inconclusive'
      : 'same';
}

/** "Against a: 3 faster, 1 slower and 2 inconclusive". */
function summary(shown: readonly Shown[]): string {
  const [baseline, ...others] = new Set(shown.map(({ one }) => one.baseline));
  const verdicts = groupedBy(shown, ({ one: { metric, verdict } }) =>
    verdict === 'none' ? 'without a verdict' : verdictWord(metric, verdict),
  );
  return `${others.length === 0 ? `Against ${baseline}` : `${shown.length} comparisons`}: ${enumeration([...verdicts].map(([word, some]) => `${some.length} ${word}`))}`;
}

/** "b is 8.9 % faster than a", "b uses 22 % of the CPU of a". */
export function headline({ one, result }: Shown): string {
  return unbroken(
    result.control === true
      ? controlSentence(one, result).replace(/: .*/, '')
      : claim(one, result) + markedVerdict(one, result).slice(one.verdict.length),
  );
}

function claim(one: Comparison, { sameWithin }: Result): string {
  const { metric, variant, baseline, verdict, why } = one;
  const size = effectText(one);
  if (verdict === 'none') return `No verdict on ${variant} against ${baseline}: ${why}`;
  if (verdict === 'inconclusive')
    return `Not decided whether ${variant} is ${verdictWord(metric, 'faster')} than ${baseline}`;
  if (verdict === 'same')
    return `${variant} is as ${metric === 'cpu' ? 'cheap' : 'fast'} as ${baseline}, within ${tolerance(sameWithin)}`;
  if (metric === 'cpu') return `${variant} uses ${size} of ${baseline}`;
  if (isLatency(metric)) return `${variant} is ${verdict} than ${baseline}: ${size}`;
  return size.endsWith('%')
    ? `${variant} is ${size.slice(1)} ${verdict} than ${baseline}`
    : `${variant} is ${size} as fast as ${baseline}`;
}

/** Empty where rounds are too far apart for one. */
function intervalOf({ ci95 }: Comparison): readonly number[] {
  return ci95[0] > 0 && Number.isFinite(ci95[1]) ? ci95 : [];
}

/** ln of how many times better. */
function gain({ metric }: Comparison, ratio: number): number {
  return lessIsBetter(metric) ? -Math.log(ratio) : Math.log(ratio);
}

/** The effect from the middle, which is none, to the right where it is better; over it the interval. */
function barHtml({ one, result: { sameWithin } }: Shown, reach: number): Html {
  const place = (ratios: readonly number[]): string => {
    const [from = 0, to = 0] = ratios
      .map((ratio) => 50 + (50 * gain(one, ratio)) / reach)
      .sort((a, b) => a - b);
    return `left:${from.toFixed(2)}%;width:${(to - from).toFixed(2)}%`;
  };
  const interval = intervalOf(one);
  return html`<div class="bar" aria-hidden="true"><s style="${place([1 / (1 + sameWithin), 1 + sameWithin])}"></s><i style="${place([1, one.ratio])}"></i>${
    interval.length === 0 ? nothing : html`<b style="${place(interval)}"></b>`
  }</div>`;
}

/** What the ends of the bars mean. */
function endsHtml({ metric }: Comparison, reach: number): Html {
  const isCpu = metric === 'cpu';
  const [worse, better] = isCpu ? ['more CPU', 'less CPU'] : ['slower', 'faster'];
  const end = (gained: number): string =>
    unbroken(amount(Math.exp(lessIsBetter(metric) ? -gained : gained), isCpu));
  return html`<div class="ends" aria-hidden="true"><span>${worse}, ${end(-reach)}</span><span>the same</span><span>${better}, ${end(reach)}</span></div>`;
}
