// Warm-ups on connections of their own, before loads that count requests from the first connect on.
import loadgen from 'k6/x/loadgen';
import type { LoadResult } from '../result/load-result.ts';
import type { AlternateOptions, LoadPlan, SideOptions } from './load-plan.ts';

/** The engine needs a measured time, which counts for nothing here. */
const afterWarmUp = '50ms';

/** Warms up, the first side first. No sample has it. @param phase the load behind @param warmUps by its sides */
export function warmedUp(
  phase: AlternateOptions,
  warmUps: NonNullable<LoadPlan['warmUps']>,
): { side: number; result: LoadResult }[] {
  const { sides, first = 1 } = phase;
  const order = sides.map((_, place) => (place + first - 1) % sides.length);
  return order.flatMap((side) => {
    const { requests: _, ...options } = sides[side] as SideOptions;
    const warmUp = warmUps[side];
    if (!warmUp) return [];
    const alone = { ...options, ...warmUp, duration: afterWarmUp };
    try {
      const results = loadgen.alternate({ ...phase, sides: [alone], first: 1, samples: false });
      return results.map((result) => ({ side, result }));
    } catch {
      // The measured load fails too, and tells the reason with the side's place.
      return [];
    }
  });
}
