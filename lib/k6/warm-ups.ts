// Separate warm-ups with connections of their own. They come before loads that count requests from the first connect on.
import loadgen from 'k6/x/loadgen';
import type { LoadResult } from '../result/load-result.ts';
import type { AlternateOptions, LoadPlan } from './load-plan.ts';

/** The measured time of a separate warm-up, whose results count for nothing: the engine accepts no load without it. */
const afterWarmUp = '50ms';

/**
 * Makes the warm-ups, that of the first side first, and returns their results. They are in no sample.
 * @param phase the load after the warm-ups
 * @param warmUps for each of its sides
 */
export function warmedUp(
  phase: AlternateOptions,
  warmUps: NonNullable<LoadPlan['warmUps']>,
): { side: number; result: LoadResult }[] {
  const { sides, first = 1 } = phase;
  const order = sides.map((_, place) => (place + first - 1) % sides.length);
  return order.flatMap((side) => {
    const [load, warmUp] = [sides[side], warmUps[side]];
    if (load === undefined || !warmUp) return [];
    const { requests: _, ...options } = load;
    const alone = { ...options, ...warmUp, duration: afterWarmUp };
    try {
      const results = loadgen.alternate({ ...phase, sides: [alone], first: 1, samples: false });
      return results.map((result) => ({ side, result }));
    } catch {
      // The measured load fails for the same reason, and its error names the side.
      return [];
    }
  });
}
