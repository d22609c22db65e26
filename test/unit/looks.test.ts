// How looks share the error probability, in simulated runs. All seeds are fixed.
import { expect, test } from 'vitest';
import {
  alphaAt,
  onlyLook,
  preciseLooks,
  searchLooks,
  usualLooks,
  type Look,
} from '../../lib/analysis/looks.ts';
import { studentQuantile } from '../../lib/analysis/statistics.ts';
import { chance, frequency, normal } from '../fixtures/random.ts';
import { uniform } from '../../lib/random.ts';

/**
 * Share of runs with equal sides whose interval excludes 1 at any look; with `oneSided`, in which a *same* verdict would be
 * wrong.
 */
function anyBeyond(looks: readonly Look[], trials: number, comparisons = 1, oneSided = false) {
  const random = uniform(1);
  const tail = (alpha: number) => (oneSided ? 1 - alpha : 1 - alpha / 2);
  const limits = new Map(
    looks.map(({ rounds }) => [
      rounds,
      studentQuantile(tail(alphaAt(looks, rounds, comparisons)), rounds - 1),
    ]),
  );
  const last = looks.at(-1)?.rounds as number;
  return frequency(trials, () => {
    let [sum, squares] = [0, 0];
    let isBeyond = false;
    for (let n = 1; n <= last; n++) {
      const log = normal(random);
      sum += log;
      squares += log * log;
      const limit = limits.get(n);
      if (limit === undefined) continue;
      const t = sum / Math.sqrt((n * squares - sum * sum) / (n - 1));
      isBeyond ||= oneSided ? t > limit : Math.abs(t) > limit;
    }
    return isBeyond;
  });
}

const schedules: [string, readonly Look[], number][] = [
  ['a usual run', usualLooks, 300_000],
  ['--precision', preciseLooks, 60_000],
  ['a search', searchLooks, 300_000],
];

test.each(schedules)(
  'looks of %s: false verdicts sum to 5 % for a comparison',
  (_, looks, trials) => {
    expect(Math.abs(anyBeyond(looks, trials) - 0.05)).toBeLessThan(chance(trials));
  },
);

test.each(schedules)(
  'looks of %s: at most 5 % for "same", and for several comparisons',
  (_, looks, trials) => {
    expect(anyBeyond(looks, trials, 1, true)).toBeLessThan(0.05 + chance(trials));
    // Independent comparisons are the worst case, because their errors rarely coincide.
    const each = anyBeyond(looks, trials, 4);
    expect(1 - (1 - each) ** 4).toBeLessThan(0.05 + 2 * chance(trials));
  },
);

test('the last interval of a usual run is at most 5 % wider for its looks', () => {
  const [with9, without9] = [usualLooks, onlyLook(10)].map((looks) =>
    studentQuantile(1 - alphaAt(looks, 10, 1) / 2, 9),
  ) as [number, number];
  expect(with9 / without9).toBeGreaterThan(1);
  expect(with9 / without9).toBeLessThan(1.05);
});

test('rounds between two looks use the share of the next look', () => {
  expect([1, 4, 5, 7, 10].map((rounds) => alphaAt(usualLooks, rounds, 1))).toEqual([
    0.005, 0.005, 0.005, 0.0438, 0.0438,
  ]);
});

test('the shares of several comparisons sum to 5 %', () => {
  const sum = usualLooks.reduce((all, { rounds }) => all + 3 * alphaAt(usualLooks, rounds, 3), 0);
  expect(sum).toBeCloseTo(0.05, 12);
  expect(alphaAt(onlyLook(7), 7, 3)).toBeCloseTo(0.05 / 3, 12);
});
