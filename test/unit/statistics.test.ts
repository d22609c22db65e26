import { describe, expect, test } from 'vitest';
import { dependenceOf, outliersOf, roundsToDecide } from '../../lib/analysis/rounds.ts';
import {
  alphaOf,
  extent,
  meanInterval,
  median,
  ratioInterval,
  studentQuantile,
} from '../../lib/analysis/statistics.ts';

test('studentQuantile agrees with the closed forms of 1, 2 and 4 degrees', () => {
  for (const p of [0.6, 0.9, 0.975, 0.9975, 0.99999]) {
    expect(studentQuantile(p, 1) / Math.tan(Math.PI * (p - 0.5))).toBeCloseTo(1, 10);
    expect(studentQuantile(p, 2) / ((2 * p - 1) / Math.sqrt(2 * p * (1 - p)))).toBeCloseTo(1, 10);
    const alpha = 4 * p * (1 - p);
    const q = Math.cos(Math.acos(Math.sqrt(alpha)) / 3) / Math.sqrt(alpha);
    expect(studentQuantile(p, 4) / (2 * Math.sqrt(q - 1))).toBeCloseTo(1, 10);
  }
});

test('median averages the middle two', () => expect(median([10, 9, 100, 1])).toBe(9.5));

test('extent supports any number of values', () => {
  expect(extent([3, 1, 2])).toEqual([1, 3]);
  expect(extent(Array.from({ length: 300_000 }, (_, index) => index - 1))).toEqual([-1, 299_998]);
  expect(extent([])).toEqual([Infinity, -Infinity]);
});

describe('ratioInterval', () => {
  const baseline = [100, 100, 100, 100];
  const variant = [110, 120, 130, 140];

  test('is exp(mean ± t · s/√n) of the log ratios', () => {
    const { ratio, interval } = ratioInterval(baseline, variant);
    // By hand: mean ln = 0.219117, s = 0.103802, t(3, 0.975) = 3.182446.
    expect(ratio).toBeCloseTo(1.244977, 6);
    expect(interval[0]).toBeCloseTo(1.055426, 6);
    expect(interval[1]).toBeCloseTo(1.46857, 6);
  });

  test('pairs within rounds: a common factor does not widen the interval', () => {
    const { interval } = ratioInterval([100, 200, 50, 400], [110, 220, 55, 440]);
    expect(interval[0]).toBeCloseTo(1.1, 12);
    expect(interval[1]).toBeCloseTo(1.1, 12);
    // With extreme ratios, the bounds stay finite, as JSON requires.
    const { interval: wide } = ratioInterval([1, 1e9], [1e9, 1], alphaOf(30));
    expect(wide).toEqual([0, Number.MAX_VALUE]);
  });

  test.each([
    [[0], [1]],
    [[1], [-1]],
  ])('refuses %j and %j', (first, second) => {
    expect(() => ratioInterval(first, second)).toThrow(RangeError);
  });
});

test('the interval of a single value has no width', () => {
  expect(meanInterval([7], 0.05)).toEqual({ middle: 7, half: 0 });
});

describe('roundsToDecide', () => {
  const logs = (mean: number, sd: number) => [mean - sd / Math.SQRT2, mean + sd / Math.SQRT2];

  test.each([
    // By hand: n = 35 with t(34) = 2.0322: (2 · 2.0322 · 1.45)² = 34.73; n = 34 with t(33) = 2.0345: 34.81.
    [-0.02, 0.029, 35],
    // "Same" needs fewer rounds than a difference would; s / (0.00995 − 0.001) is 1.005: n = 16 with t(15): (1.7531 + 2.1314)² ·
    // 1.01 = 15.24; n = 15 with t(14): (1.7613 + 2.1448)² · 1.01 = 15.41.
    [0.001, 0.008_995, 16],
  ])('mean %f with a spread of %f: %i', (mean, sd, rounds) => {
    expect(roundsToDecide(logs(mean, sd), 0.05, 0.01)).toBe(rounds);
  });

  test('depend on α and the tolerance of "same"; null for more than 1000', () => {
    const usual = roundsToDecide(logs(0.001, 0.02), 0.05, 0.01) as number;
    expect(roundsToDecide(logs(0.001, 0.02), 0.05 / 3, 0.01)).toBeGreaterThan(usual);
    expect(roundsToDecide(logs(0.001, 0.02), 0.05, 0.03)).toBeLessThan(usual);
    expect(roundsToDecide(logs(0.001, 0.2), 0.05, 0.01)).toBeNull();
    expect(roundsToDecide(logs(0, 0.01), 0.05, 0)).toBeNull();
    expect(roundsToDecide([0.1], 0.05, 0.01)).toBeNull();
  });
});

describe('outliersOf', () => {
  const logs = (ratios: readonly number[]) => ratios.map(Math.log);

  test.each([
    ['one far above', [1.42, 1.45, 1.4, 1.8, 1.5, 1.44], [3]],
    ['two of ten', [1, 1.01, 1.02, 1, 2, 1.01, 0.5, 1, 1.02, 1.01], [4, 6]],
    // Negligible differences, even if the other values are very close together.
    ['all the same but for one by 0.9 %', [1.3, 1.3, 1.3, 1.3, 1.3 * 1.009], []],
  ])('%s', (_, ratios, expected) => {
    expect(outliersOf(logs(ratios))).toEqual(expected);
  });

  test('are fewer than by the MAD alone if there are few values', () => {
    // Quantiles of the normal distribution: the most regular sample possible.
    expect(outliersOf([-1.5, -0.67, 0, 0.67, 1.5].map((z) => 0.05 * z))).toEqual([]);
    // |d − median| / MAD is 8.6: beyond 5 / 0.6745 = 7.41, not beyond 1.206 times that, 8.94.
    expect(outliersOf([-0.05, 0, 0.05, 0.06, 0.48].map((d) => d - 0.05))).toEqual([]);
    expect(outliersOf([-0.05, 0, 0.05, 0.06, 0.52].map((d) => d - 0.05))).toEqual([4]);
  });
});

describe('dependenceOf', () => {
  const close = (value: number) => expect.closeTo(value, 9);

  test('reports a drift, by a regression line over all rounds', () => {
    // By hand: Σ(time · log) 0.099, Σtime² 10.
    expect(dependenceOf([0.04, 0.029, 0.021, 0.01, 0], 0.02)).toEqual({
      code: 'drift',
      ratio: close(Math.exp(-4 * 0.0099)),
    });
  });

  test('reports an echo if rounds resemble the previous one', () => {
    // Squares 20, two steps of 2: 1 − 8 / 40.
    const blocks = [1, -1, -1, 1].flatMap((level) => Array.from({ length: 5 }, () => level));
    expect(dependenceOf(blocks, 0.02)).toEqual({ code: 'echo', correlation: close(0.8) });
  });

  test.each([
    ['rounds that are all the same', [0.1, 0.1 + 1e-16, 0.1 + 2e-16, 0.1 + 3e-16, 0.1 + 4e-16]],
    ['rounds that are unlike the one before', [1, -1, 1, -1, 1, -1, 1, -1, 1, -1]],
    ['one that lies apart', [0, 0.1, 0, 0.1, 0, 0.1, 0, 9]],
  ])('is none of %s', (_, logs) => {
    expect(dependenceOf(logs, 0.02)).toBeNull();
  });
});
