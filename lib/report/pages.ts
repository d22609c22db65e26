// The pages of a mix: their answers before the load, their figures under it, and how long each takes alone.
import { measuredComparisons } from '../analysis/comparisons.ts';
import { pagesOf, type PageSum } from '../analysis/pages.ts';
import { counts, effect, enumeration, percent, short, whole } from '../format.ts';
import type { Result } from '../result/result.ts';
import { requestName, requestsOf } from '../scenario/pages.ts';
import type { Answered } from './differences.ts';
import { figure, leftColumn, rightColumn, tableOf, type Part } from './table.ts';
import { withRounds } from '../analysis/phases.ts';
import { keysOf } from '../present.ts';

const mostNamed = 3;

const alone =
  '"Alone" is the time of an answer with one request at a time, without a queue, after each round\'s load. The answer before it may make up to 3 % of a difference.';

/** @param most rows */
export function pagesPart(result: Result, most: number): Part[] {
  const measured = withRounds(result.variants);
  const sides = measured.map(({ name }) => ({ name, pages: pagesOf(result, name) }));
  const pages = sides[0]?.pages ?? [];
  if (pages.length === 0) return [];
  const compared = measuredComparisons(result);
  const table = tableOf(pages.slice(0, most), [
    leftColumn('page', ({ page }) => page),
    rightColumn('share', ({ share }) => percent(share)),
    ...sides.flatMap((side) => {
      const byPage = new Map(side.pages.map((sum) => [sum.page, sum]));
      const column = (title: string, cell: (sum: PageSum) => string) => {
        const cellOf = ({ page }: PageSum) => {
          const sum = byPage.get(page);
          return sum === undefined || sum.responses === 0 ? '' : cell(sum);
        };
        return rightColumn(title, cellOf, side.name);
      };
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
          effects.find((pageEffect) => pageEffect.page === page),
          ({ ratio, ci95, verdict }) => `${effect(ratio, ci95)} ${verdict}`,
        ),
      ),
    ),
  ]);
  const below: string[] = [];
  if (compared.some(({ pages: effects }) => effects !== undefined)) below.push(alone);
  const more = pages.length - most;
  if (more > 0)
    below.push(`${counts(more, 'page')} more ${more === 1 ? 'is' : 'are'} in report.html.`);
  return [{ title: 'By page, under the load:', tables: [table], below }];
}

/** Lines on the pages where the sides differ, per comparison. */
export function pageLines(result: Result): string[] {
  return measuredComparisons(result).flatMap(({ variant, baseline, pages: effects = [] }) => {
    const differing = effects.filter(({ verdict }) => verdict === 'faster' || verdict === 'slower');
    if (effects.length === 0) return [];
    if (differing.length === 0)
      return `Loaded one at a time, no page is clearly faster or slower on ${variant} than on ${baseline}.`;
    const sizeOf = ({ ratio }: { ratio: number }) => Math.abs(Math.log(ratio));
    const largest = differing.sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, mostNamed);
    const named = largest.map(({ page, ratio }) => `${page} (${effect(ratio)})`);
    let line = `${variant} takes another time than ${baseline} for ${enumeration(named)}`;
    const more = differing.length - named.length;
    if (more > 0) line += ` and ${counts(more, 'page')} more`;
    const others = effects.length - differing.length;
    if (others > 0)
      line += `; no difference is seen on the other ${counts(others, 'page')} compared`;
    return `${line}.`;
  });
}

/** How an answer differs from another: the first of these that does. */
const kinds = {
  status: 'another status',
  encoding: 'another encoding',
  bytes: 'another length',
  hash: 'another body of the same length',
} as const;
const kindNames = keysOf(kinds);

/** Says which requests of a log get other statuses than in the log, and how the sides' answers differ from the first side's. */
export function requestLines([first, ...others]: readonly Answered[]): string[] {
  if (first === undefined) return [];
  const statuses = [first, ...others].flatMap(({ given, answer: { otherStatuses } }) =>
    otherStatuses === undefined ? [] : `${given} answers ${otherStatuses}.`,
  );
  const requests = requestsOf(first.page);
  const before = first.answer.each ?? [];
  const differing = others.flatMap(({ given, answer: { each = [] } }) => {
    const how = (index: number) =>
      kindNames.find((kind) => each[index]?.[kind] !== before[index]?.[kind]);
    const counted = kindNames.flatMap((kind) => {
      const differently = requests.filter((_request, index) => how(index) === kind);
      const [example] = differently;
      if (example === undefined) return [];
      return `${whole(differently.length)} (such as ${requestName(example)}) with ${kinds[kind]}`;
    });
    if (each.length !== before.length || counted.length === 0) return [];
    return `Of ${whole(requests.length)} requests ${given} answers ${enumeration(counted)} than ${first.given}.`;
  });
  return [...statuses, ...differing];
}
