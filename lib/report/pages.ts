// The pages of a mix: their figures under the load, and how long each takes alone.
import { measuredComparisons, variantOf } from '../analysis/comparisons.ts';
import { alphaOf, median, ratioInterval, total } from '../analysis/statistics.ts';
import { counts, effect, enumeration, percent, short, whole } from '../format.ts';
import type { Comparison, PageFigures, Result, Verdict } from '../result/result.ts';
import { figure, leftColumn, rightColumn, tableOf, type Part } from './table.ts';

/** With fewer answers in a round, a page's time alone is left to chance. */
const fewestAlone = 5;
/** A page also feels the answer before it, by up to 3 % of its time: a smaller difference may not be its own. */
const carriedOver = 0.03;
/** So many of the largest are compared: with each more the intervals of all grow. */
const mostCompared = 10;
/** What a sentence names. */
const mostNamed = 3;

interface PageEffect {
  page: string;
  ratio: number;
  interval: [number, number];
  /** `faster` takes less time. */
  verdict: Verdict;
}

const pagesIn = (result: Pick<Result, 'variants'>, name: string): PageFigures[][] =>
  (variantOf(result, name)?.rounds ?? []).map(({ phases }) => phases[0]?.pages ?? []);

/** Pages by their share of the first measured variant's answers. */
function pageNames(result: Pick<Result, 'variants'>): string[] {
  const first = result.variants.find(({ rounds }) => rounds.length > 0);
  return (first?.rounds[0]?.phases[0]?.pages ?? []).map(({ page }) => page);
}

const of = (pages: readonly PageFigures[], name: string): PageFigures | undefined =>
  pages.find(({ page }) => page === name);

function verdictOn([low, high]: PageEffect['interval']): Verdict {
  const most = 1 + carriedOver;
  if (low > most) return 'slower';
  if (high < 1 / most) return 'faster';
  return low >= 1 / most && high <= most ? 'same' : 'inconclusive';
}

/** The effects on the largest pages with enough answers; their intervals hold together, as those of all comparisons. */
function effectsOf({ variant, baseline }: Comparison, result: Result): PageEffect[] {
  const [now, before] = [pagesIn(result, variant), pagesIn(result, baseline)];
  const timed = pageNames(result)
    .slice(0, mostCompared)
    .flatMap((page) => {
      const times = [before, now].map((rounds) =>
        rounds.map((pages) => {
          const alone = of(pages, page)?.alone;
          return alone === undefined || alone.responses < fewestAlone ? 0 : alone.ms;
        }),
      ) as [number[], number[]];
      return times.every((rounds) => rounds.length > 1 && rounds.every((ms) => ms > 0))
        ? [{ page, times }]
        : [];
    });
  const alpha = alphaOf(timed.length * measuredComparisons(result).length, 1);
  return timed.map(({ page, times: [baselineMs, variantMs] }) => {
    const { ratio, interval } = ratioInterval(baselineMs, variantMs, alpha);
    return { page, ratio, interval, verdict: verdictOn(interval) };
  });
}

/** @param most rows */
export function pagesPart(result: Result, most: number): Part[] {
  const names = pageNames(result);
  if (names.length === 0) return [];
  const measured = result.variants.filter(({ rounds }) => rounds.length > 0);
  const compared = measuredComparisons(result).map((comparison) => ({
    comparison,
    effects: new Map(effectsOf(comparison, result).map((one) => [one.page, one])),
  }));
  const all = new Map(measured.map(({ name }) => [name, pagesIn(result, name)]));
  const figures = (name: string, page: string): PageFigures[] =>
    (all.get(name) ?? []).flatMap((pages) => of(pages, page) ?? []);
  const sum = (name: string, page: string, key: 'responses' | 'unexpected' | 'bodyBytes'): number =>
    total(figures(name, page), (one) => one[key]);
  const [{ name: first } = { name: '' }] = measured;
  const answers = total(names, (page) => sum(first, page, 'responses'));
  const column = (name: string, title: string, cell: (page: string) => string) =>
    rightColumn(title, cell, { group: name });
  const rows = names.slice(0, most);
  return [
    {
      title: 'By page, under the load:',
      tables: [
        tableOf(rows, [
          leftColumn('page', (page) => page),
          rightColumn('share', (page) => percent(sum(first, page, 'responses') / answers)),
          ...measured.flatMap(({ name }) => [
            column(name, 'B', (page) => {
              const responses = sum(name, page, 'responses');
              return figure(
                responses === 0 ? null : Math.round(sum(name, page, 'bodyBytes') / responses),
                whole,
              );
            }),
            ...(['p50Ms', 'p99Ms'] as const).map((key) =>
              column(name, key.replace('Ms', ' ms'), (page) =>
                figure(median(figures(name, page).map((one) => one[key])) || null, short),
              ),
            ),
            column(name, 'unexpected', (page) =>
              figure(sum(name, page, 'unexpected') || null, whole),
            ),
          ]),
          ...compared.map(({ comparison, effects }) =>
            leftColumn(
              `${comparison.variant} alone, against ${comparison.baseline}`,
              (page: string) => {
                const seen = effects.get(page);
                return seen === undefined
                  ? ''
                  : `${effect(seen.ratio, seen.interval)} ${seen.verdict}`;
              },
            ),
          ),
        ]),
      ],
      below: [
        `"Alone" is the time of an answer with one request at a time, without a queue, after each round's load: less than 3 % may be the answer before it. ${
          names.length > most
            ? `${counts(names.length - most, 'page')} more ${names.length - most === 1 ? 'is' : 'are'} in report.html.`
            : ''
        }`.trim(),
      ],
    },
  ];
}

/** For each comparison, the pages on which the sides differ. */
export function pageLines(result: Result): string[] {
  return measuredComparisons(result).flatMap((comparison) => {
    const effects = effectsOf(comparison, result);
    const differing = effects.filter(({ verdict }) => verdict === 'faster' || verdict === 'slower');
    if (effects.length === 0) return [];
    const { variant, baseline } = comparison;
    if (differing.length === 0)
      return [
        `No page is clearly faster or slower of ${variant} than of ${baseline}, one at a time.`,
      ];
    const named = differing
      .sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)))
      .slice(0, mostNamed)
      .map(({ page, ratio }) => `${page} (${effect(ratio)})`);
    const more = differing.length - named.length;
    const others = effects.length - differing.length;
    return [
      `${variant} takes another time than ${baseline} for ${enumeration(named)}${more > 0 ? ` and ${counts(more, 'page')} more` : ''}${others > 0 ? `; no difference is seen on the other ${counts(others, 'page')} compared` : ''}.`,
    ];
  });
}
