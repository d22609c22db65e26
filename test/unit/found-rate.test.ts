import { expect, test } from 'vitest';
import { foundRateOf } from '../../lib/report/found.ts';
import type { Result } from '../../lib/result/result.ts';

test('a result says by itself that the rate it found is a least one', () => {
  const rate = { variant: 'a', rate: 7000, ci95: null, atLeast: true };
  const search = { within: { metric: 'p99', ms: 5 }, found: [rate], steps: [] };
  const result = { search } as unknown as Result;
  expect(foundRateOf(result, 'a')).toEqual(rate);
  expect(foundRateOf(result, 'b')).toBeUndefined();
});
