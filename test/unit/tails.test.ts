import { expect, test } from 'vitest';
import { summarise } from '../fixtures/summary.ts';
import { tailLines } from '../../lib/report/comparison-sentences.ts';
import type { Result } from '../../lib/result/result.ts';
import { second, variant } from '../fixtures/comparison.ts';
import { latency } from '../fixtures/phase.ts';
import { facts } from '../fixtures/result.ts';

const load = { protocol: 'h2', threads: 1, rate: 1000 } as const;

const withSlow = (name: string, slow: readonly number[]) =>
  variant(
    name,
    slow.map((count) =>
      second(1000, 0.1, 0.1, {
        latencyMs: latency(1, count > 10 ? 100 : 1, 100, {
          histogram: [
            [1, 1000 - count],
            [100, count],
          ],
        }),
      }),
    ),
    { load },
  );
const linesOf = (slow: readonly number[]) => {
  const sides = [withSlow('a', [8, 12, 11, 9]), withSlow('b', slow)];
  return tailLines(summarise(facts, sides, {}) as unknown as Result);
};

test('if p99 jumps between rounds, shares of slow responses are reported', () => {
  expect(linesOf([12, 8, 9, 15])).toEqual([
    "By round p99 leaps between 1.00 ms and 100.00 ms, so its ratio is chance: more than 10.00 ms took 1.0 % of a's responses, and 1.1 % of b's.",
  ]);
});

test('a clearly worse p99 gets a verdict', () => {
  const clearly = [withSlow('a', [1, 2, 1, 2]), withSlow('b', [30, 31, 29, 30])];
  const result = summarise(facts, clearly, {}) as unknown as Result;
  expect(result.comparisons[0]).toMatchObject({ verdict: 'slower' });
  expect(tailLines(result)).toEqual([]);
});
