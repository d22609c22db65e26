// The main metric of a run, round by round, as plots show it.
import { metrics } from '../analysis/metrics.ts';
import { isFailing } from '../analysis/phases.ts';
import type { Result } from '../result/result.ts';
import { metricWords } from './metric-words.ts';

/** Its axis, how its values are printed, and a point for each round of each variant whose requests succeed. */
export function roundPoints(result: Result) {
  const metric = result.comparisons[0]?.metric ?? 'rps';
  const { of } = metrics[metric];
  const { axis, text } = metricWords[metric];
  const points = [];
  for (const { name, rounds, successRatio } of result.variants) {
    if (isFailing({ successRatio })) continue;
    for (const round of rounds) {
      const value = of(round);
      if (Number.isFinite(value)) points.push({ name, round: round.round, value });
    }
  }
  return { axis, text, points };
}
