// The pages of a mix: their figures under the load, and how long each takes alone.
import { measuredComparisons } from '../analysis/comparisons.ts';
import { pagesOf, type PageSum } from '../analysis/pages.ts';
import { counts, effect, enumeration, percent, short, whole } from '../format.ts';
import type { Result } from '../result/result.ts';
import { figure, leftColumn, rightColumn, tableOf, type Part } from './table.ts';

const mostNamed = 3;

const alone =
  '"Alone" is the time of an answer with one request at a time, without a queue, after each round\'s load: less than 3 % may be the answer before it.';

/** @param most rows */
export function pagesPart(result: Result, most: number): Part[] {
  const sides = result.variants
    .filter(({ rounds }) => rounds.length > 0)
    .map(({ name }) => ({ name, pages: pagesOf(result, name) }));
  const pages = sides[0]?.pages ?? [];
  if (pages.length === 0) return [];
  const compared = measuredComparisons(result);
  const table = tableOf(pages.slice(0, most), [
    leftColumn('page', ({ page }) => page),
    rightColumn('share', ({ share }) => percent(share)),
    ...sides.flatMap((side) => {
      const byPage = new Map(side.pages.map((one) => [one.page, one]));
      const column = (title: string, cell: (one: PageSum) => string) =>
        rightColumn(
          title,
          ({ page }: PageSum) =>
            figure(byPage.get(page), (one) => (one.responses === 0 ? '' : cell(one))),
          side.name,
        );
      return [
        column('B', ({ bodyBytes, responses }) => whole(bodyBytes / responses)),
        column('p50 ms', ({ p50Ms }) => short(p50Ms)),
        column('p99 ms', ({ p99Ms }) => short(p99Ms)),
        column('unexpected', ({ unexpected }) => figure(unexpected || null, whole)),
      ];
    }),
    ...compared.map(({ variant, baseline, pages: effects = [] }) =>
      leftColumn(`${variant} alone, against ${baseline}`, ({ page }: PageSum) =>
        figure(
          effects.find((one) => one.page === page),
          ({ ratio, ci95, verdict }) => `${effect(ratio, ci95)} ${verdict}`,
        ),
      ),
    ),
  ]);
  const more = pages.length - most;
  const below = [
    ...(compared.some((one) => one.pages !== undefined) ? [alone] : []),
    ...(more > 0
      ? [`${counts(more, 'page')} more ${more === 1 ? 'is' : 'are'} in report.html.`]
      : []),
  ];
  return [{ title: 'By page, under the load:', tables: [table], below }];
}

/** Lines on the pages where the sides differ, per comparison. */
export function pageLines(result: Result): string[] {
  return measuredComparisons(result).flatMap(({ variant, baseline, pages: effects = [] }) => {
    const differing = effects.filter(({ verdict }) => verdict === 'faster' || verdict === 'slower');
    if (effects.length === 0) return [];
    if (differing.length === 0)
      return `No page is clearly faster or slower of ${variant} than of ${baseline}, one at a time.`;
    const named = differing
      .sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)))
      .slice(0, mostNamed)
      .map(({ page, ratio }) => `${page} (${effect(ratio)})`);
    const more = differing.length - named.length;
    const others = effects.length - differing.length;
    return `${variant} takes another time than ${baseline} for ${enumeration(named)}${more > 0 ? ` and ${counts(more, 'page')} more` : ''}${others > 0 ? `; no difference is seen on the other ${counts(others, 'page')} compared` : ''}.`;
  });
}
