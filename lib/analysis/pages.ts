// The pages of a mix, and how long each takes alone.
import type { PageFigures } from '../result/load-result.ts';
import type { Comparison, Result } from '../result/result.ts';
import { sideWithWrongAnswers } from './bodies.ts';
import { measuredComparisons, variantOf } from './comparisons.ts';
import { byName } from '../present.ts';
import { alphaOf, median, ratioInterval, total } from './statistics.ts';

/** With fewer responses per round, a page's time alone is too random. */
const fewestAlone = 5;
/** A page feels the answer before it, by up to 3 % of its time. */
const carriedOver = 0.03;
/** Number of the largest pages to compare. Every further page widens all intervals. */
const mostCompared = 10;

export type PageSum = ReturnType<typeof pagesOf>[number];

type Rounds = Pick<Result, 'variants'>;
type Compared = Pick<Comparison, 'variant' | 'baseline'>;
type PageEffect = NonNullable<Comparison['pages']>[number];

/** A variant's pages by name, in each round. */
function pagesIn(result: Rounds, name: string): ReadonlyMap<string, PageFigures>[] {
  const { rounds = [] } = variantOf(result, name) ?? {};
  return rounds.map(({ phases: [first] }) => {
    const pages = first?.pages ?? [];
    return new Map(pages.map((page) => [page.page, page]));
  });
}

/**
 * A side's pages by their weight, the greatest first, with sums over all rounds, medians of latencies, and the share of the side's
 * responses (0 to 1); empty for a single page.
 */
export function pagesOf(result: Rounds, name: string) {
  const rounds = pagesIn(result, name);
  const sums = [...(rounds[0]?.keys() ?? [])].map((page) => {
    const figures = rounds.flatMap((pages) => pages.get(page) ?? []);
    return {
      page,
      ...byName(['responses', 'unexpected', 'errors', 'bodyBytes'], (name) =>
        total(figures, (ofRound) => ofRound[name]),
      ),
      ...byName(['p50Ms', 'p99Ms'], (name) => median(figures.map((ofRound) => ofRound[name]))),
    };
  });
  const all = total(sums, ({ responses }) => responses);
  return sums.map((sum) => ({ ...sum, share: sum.responses / Math.max(1, all) }));
}

function verdictOn([low, high]: PageEffect['ci95']): PageEffect['verdict'] {
  const most = 1 + carriedOver;
  if (low > most) return 'slower';
  if (high < 1 / most) return 'faster';
  return low >= 1 / most && high <= most ? 'same' : 'inconclusive';
}

/** For the largest pages with enough answers; their intervals hold together. None if a side's answers say nothing about its speed. */
export function pageEffects(
  { variant, baseline }: Compared,
  result: Rounds & { comparisons: readonly Compared[] },
): PageEffect[] {
  const sides = [baseline, variant].flatMap((name) => variantOf(result, name) ?? []);
  if (sideWithWrongAnswers(sides) !== undefined) return [];
  const [now, before] = [pagesIn(result, variant), pagesIn(result, baseline)];
  const largest = [...(before[0]?.keys() ?? [])].slice(0, mostCompared);
  const timed = largest.flatMap((page) => {
    const [beforeMs, nowMs] = [aloneMs(before, page), aloneMs(now, page)];
    return beforeMs === undefined || nowMs === undefined ? [] : [{ page, beforeMs, nowMs }];
  });
  const alpha = alphaOf(timed.length * measuredComparisons(result).length);
  return timed.map(({ page, beforeMs, nowMs }) => {
    const { ratio, interval } = ratioInterval(beforeMs, nowMs, alpha);
    return { page, ratio, ci95: interval, verdict: verdictOn(interval) };
  });
}

/** A page's time alone in each round; undefined for a single round, and if one has too few answers. */
function aloneMs(
  rounds: readonly ReadonlyMap<string, PageFigures>[],
  page: string,
): number[] | undefined {
  const times = rounds.flatMap((pages) => {
    const alone = pages.get(page)?.alone;
    return alone === undefined || alone.responses < fewestAlone || alone.ms <= 0 ? [] : alone.ms;
  });
  return rounds.length > 1 && times.length === rounds.length ? times : undefined;
}
