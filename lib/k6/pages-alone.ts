// How long each page of a mix takes alone, without a queue: after a phase, with one request at a time.
import loadgen from 'k6/x/loadgen';
import type { LoadResult, PageFigures } from '../result/load-result.ts';
import type { AlternateOptions, SideOptions } from './load-plan.ts';

/** Adds the times of the pages alone to a phase's results, by the same sides. They are in no sample. */
export function addAlone(
  results: readonly LoadResult[],
  phase: AlternateOptions,
  seconds: number,
): void {
  const sides = phase.sides.map((side) => aloneOptions(side, seconds));
  const alone = loadgen.alternate({ ...phase, sides, samples: false });
  for (const [side, { pages }] of results.entries())
    for (const [index, page] of pages.entries()) {
      const { responses, midMeanMs } = alone[side]?.pages[index] as PageFigures;
      page.alone = { responses, ms: midMeanMs };
    }
}

/** A side's load with one request at a time, each page as soon as the one before is answered. */
function aloneOptions(
  { rate: _, arrivals: __, requests: ___, buckets: ____, together: _____, ...side }: SideOptions,
  seconds: number,
): SideOptions {
  return {
    ...side,
    connections: 1,
    streams: 1,
    threads: 1,
    warmup: '100ms',
    duration: `${seconds}s`,
  };
}
