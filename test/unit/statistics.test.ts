import { describe, expect, test } from 'vitest';
import { studentQuantile } from '../../lib/analysis/student.ts';
import { median, ratioInterval } from '../../lib/analysis/statistics.ts';

describe('studentQuantile', () => {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values.
  test.each([
    [0.9, 1, 3.078], [0.975, 1, 12.706], [0.999, 2, 22.327],
    [0.95, 2, 2.920], [0.975, 3, 3.182], [0.995, 4, 4.604], [0.975, 5, 2.571], [0.999, 5, 5.893],
    [0.9, 9, 1.383], [0.975, 11, 2.201], [0.99, 20, 2.528], [0.975, 30, 2.042], [0.975, 99, 1.984], [0.95, 100, 1.660],
  ])('p = %f with %i degrees of freedom is %f', (p, df, published) => {
    expect(Math.abs(studentQuantile(p, df) - published)).toBeLessThan(0.000_51);
  });

  test('agrees with the closed forms of 1, 2 and 4 degrees of freedom', () => {
    for (const p of [0.6, 0.9, 0.975, 0.9975, 0.99999]) {
      expect(studentQuantile(p, 1) / Math.tan(Math.PI * (p - 0.5))).toBeCloseTo(1, 10);
      expect(studentQuantile(p, 2) / ((2 * p - 1) / Math.sqrt(2 * p * (1 - p)))).toBeCloseTo(1, 10);
      const alpha = 4 * p * (1 - p);
      const q = Math.cos(Math.acos(Math.sqrt(alpha)) / 3) / Math.sqrt(alpha);
      expect(studentQuantile(p, 4) / (2 * Math.sqrt(q - 1))).toBeCloseTo(1, 10);
    }
  });

  test('is symmetric and 0 in the middle', () => {
    expect(studentQuantile(0.025, 5)).toBe(-studentQuantile(0.975, 5));
    expect(studentQuantile(0.5, 5)).toBeCloseTo(0, 12);
  });

  test.each([[0, 5], [1, 5], [Number.NaN, 5], [0.9, 0], [0.9, 2.5], [0.9, -1]])('refuses p = %f, df = %f', (p, df) => {
    expect(() => studentQuantile(p, df)).toThrow(RangeError);
  });
});

describe('median', () => {
  test.each([[[3], 3], [[4, 1], 2.5], [[9, 1, 5], 5], [[10, 9, 100, 1], 9.5]])('of %j is %f', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  test('leaves its argument alone and refuses an empty list', () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
    expect(() => median([])).toThrow(RangeError);
  });
});

describe('ratioInterval', () => {
  const baseline = [100, 100, 100, 100];
  const variant = [110, 120, 130, 140];

  test('is exp(mean ± t · s/√n) of the log ratios', () => {
    const { ratio, interval } = ratioInterval(baseline, variant);
    // By hand: mean ln = 0.219117, s = 0.103802, t(3, 0.975) = 3.182446.
    expect(ratio).toBeCloseTo(1.244977, 6);
    expect(interval[0]).toBeCloseTo(1.055426, 6);
    expect(interval[1]).toBeCloseTo(1.468570, 6);
  });

  test('is wider for two comparisons: t(3, 0.9875) = 4.176535', () => {
    const { ratio, interval } = ratioInterval(baseline, variant, 0.025);
    expect(ratio).toBeCloseTo(1.244977, 6);
    expect(interval[0]).toBeCloseTo(1.002353, 6);
    expect(interval[1]).toBeCloseTo(1.546329, 5);
  });

  test('pairs within rounds: what changes both by the same factor widens nothing', () => {
    const { ratio, interval } = ratioInterval([100, 200, 50, 400], [110, 220, 55, 440]);
    expect(ratio).toBeCloseTo(1.1, 12);
    expect(interval[0]).toBeCloseTo(1.1, 12);
    expect(interval[1]).toBeCloseTo(1.1, 12);
  });

  test('swapped sides give the reciprocal', () => {
    const there = ratioInterval(baseline, variant);
    const back = ratioInterval(variant, baseline);
    expect(back.ratio).toBeCloseTo(1 / there.ratio, 12);
    expect(back.interval[0]).toBeCloseTo(1 / there.interval[1], 12);
  });

  test('one round is its own interval', () => {
    const { ratio, interval } = ratioInterval([100], [120]);
    expect(ratio).toBeCloseTo(1.2, 12);
    expect(interval).toEqual([ratio, ratio]);
  });

  test.each([[[], []], [[1], [1, 2]], [[0], [1]], [[1], [0]]])('refuses %j and %j', (one, other) => {
    expect(() => ratioInterval(one, other)).toThrow(RangeError);
  });
});
