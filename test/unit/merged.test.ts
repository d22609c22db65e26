import { describe, expect, test } from 'vitest';
import { meanDistribution, mergedLatency } from '../../lib/analysis/latency.ts';
import { figuresPerRound } from '../../lib/analysis/metrics.ts';
import { mean, variance } from '../../lib/analysis/statistics.ts';
import type { HistogramBar, LatencyDistribution } from '../../lib/result/load-result.ts';
import { latency, noLatency, phase } from '../fixtures/phase.ts';

/** The distribution that the engine reports for these values. */
function of(values: readonly number[]): LatencyDistribution {
  const sorted = values.toSorted((a, b) => a - b);
  const count = values.length;
  const middle = mean(values);
  const sd = count === 1 ? 0 : Math.sqrt(variance(values));
  const histogram = [...new Set(sorted)].map((value): HistogramBar => [
    value,
    values.filter((other) => other === value).length,
  ]);
  const at = (share: number) => sorted[Math.max(1, Math.floor(share * count + 0.5)) - 1] as number;
  return {
    min: sorted[0] as number,
    max: sorted.at(-1) as number,
    mean: middle,
    sd,
    histogram,
    withinSd: values.filter((value) => Math.abs(value - middle) <= sd).length / count,
    p50: at(0.5),
    p75: at(0.75),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    p999: at(0.999),
  };
}

describe('distributions of several rounds', () => {
  test('equal the distribution of all values together', () => {
    const [first, second, third] = [
      Array.from({ length: 300 }, (_, i) => 1 + (i % 37)),
      Array.from({ length: 900 }, (_, i) => 2 + ((i * 7) % 101)),
      [400],
    ];
    const { histogram: _, ...all } = of([...first, ...second, ...third]);
    const merged = mergedLatency([of(first), noLatency, of(second), of(third)]);
    for (const [name, value] of Object.entries(all))
      expect(merged[name as keyof typeof all], name).toBeCloseTo(value, 9);
  });

  test('of no values are empty', () => {
    const { histogram: _, ...nothing } = noLatency;
    expect(mergedLatency([noLatency, noLatency])).toMatchObject(nothing);
    expect(mergedLatency([])).toMatchObject({ max: 0 });
  });

  test('have no percentile above the largest value', () => {
    const { histogram } = of([1, 3]);
    const distribution = latency(1, 2, 2.9995, { histogram });
    expect(mergedLatency([distribution, distribution])).toMatchObject({
      p50: 1,
      p99: 2.9995,
      max: 2.9995,
    });
  });

  test('of requests/s per connection are averaged over rounds', () => {
    const spread = { min: 1, mean: 4, sd: 3, withinSd: 0.6, max: 9 };
    expect(meanDistribution([spread, { min: 2, mean: 6, sd: 4, withinSd: 0.8, max: 8 }])).toEqual({
      min: 1,
      mean: 5,
      sd: Math.sqrt(12.5),
      withinSd: 0.7,
      max: 9,
    });
  });
});

test('the percentile of a round is computed over all phases', () => {
  const single = phase({
    requests: 1,
    latencyMs: of(Array.from({ length: 500 }, (_, i) => i + 1)),
  });
  expect(figuresPerRound('p99', [{ round: 1, phases: [single, single] }])).toEqual([495]);
});
