// The pages of a mix: their figures over all rounds, and how long each takes alone beside the baseline.
import type { Comparison, PageFigures, Result } from '../result/result.ts';
import { measuredComparisons, variantOf } from './comparisons.ts';
import { alphaOf, median, ratioInterval, total } from './statistics.ts';

/** With fewer answers in a round, a page's time alone is left to chance. */
const fewestAlone = 5;
/** A page also feels the answer before it, by up to 3 % of its time: a smaller difference may not be its own. */
const carriedOver = 0.03;
/** So many of the largest are compared: with each more the intervals of all grow. */
const mostCompared = 10;

/** A page's figures over all rounds of a side: sums, and the medians of its latencies. */
export interface PageSum extends Pick<
  PageFigures,
  'page' | 'responses' | 'unexpected' | 'errors' | 'bodyBytes' | 'p50Ms' | 'p99Ms'
> {
  /** Of the side's responses, 0 to 1. */
  share: number;
}

type Rounds = Pick<Result, 'variants'>;
type PageEffect = NonNullable<Comparison['pages']>[number];

const pagesIn = (result: Rounds, name: string): ReadonlyMap<string, PageFigures>[] =>
  (variantOf(result, name)?.rounds ?? []).map(
    ({ phases }) => new Map((phases[0]?.pages ?? []).map((one) => [one.page, one])),
  );

/** A side's pages by their weight, the greatest first; empty for a single page. */
export function pagesOf(result: Rounds, name: string): PageSum[] {
  const rounds = pagesIn(result, name);
  const sums = [...(rounds[0]?.keys() ?? [])].map((page) => {
    const figures = rounds.flatMap((pages) => pages.get(page) ?? []);
    const sum = (key: 'responses' | 'unexpected' | 'errors' | 'bodyBytes') =>
      total(figures, (one) => one[key]);
    return {
      page,
      responses: sum('responses'),
      unexpected: sum('unexpected'),
      errors: sum('errors'),
      bodyBytes: sum('bodyBytes'),
      p50Ms: median(figures.map(({ p50Ms }) => p50Ms)),
      p99Ms: median(figures.map(({ p99Ms }) => p99Ms)),
    };
  });
  const all = total(sums, ({ responses }) => responses);
  return sums.map((one) => ({ ...one, share: one.responses / Math.max(1, all) }));
}

function verdictOn([low, high]: PageEffect['ci95']): PageEffect['verdict'] {
  const most = 1 + carriedOver;
  if (low > most) return 'slower';
  if (high < 1 / most) return 'faster';
  return low >= 1 / most && high <= most ? 'same' : 'inconclusive';
}

/** The effects on the largest pages with enough answers; their intervals hold together, as those of all comparisons. */
export function pageEffects(
  { variant, baseline }: Pick<Comparison, 'variant' | 'baseline'>,
  result: Pick<Result, 'variants' | 'comparisons'>,
): PageEffect[] {
  const [now, before] = [pagesIn(result, variant), pagesIn(result, baseline)];
  const timed = [...(before[0]?.keys() ?? [])].slice(0, mostCompared).flatMap((page) => {
    const times = [before, now].map((rounds) =>
      rounds.map((pages) => {
        const alone = pages.get(page)?.alone;
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
    return { page, ratio, ci95: interval, verdict: verdictOn(interval) };
  });
}
