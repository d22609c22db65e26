import { expect, test, vi } from 'vitest';
import { foundIn, foundRateOf } from '../../lib/report/found.ts';
import type { Result } from '../../lib/result/result.ts';

vi.mock('../../lib/features.ts', () => ({ features: [] }));

test("without the feature that searches, an older result's rate still says that it is a least one", () => {
  const rate = { variant: 'a', rate: 7000, ci95: null, atLeast: true };
  const search = { within: { metric: 'p99', ms: 5 }, found: [rate], steps: [] };
  const result = { search } as unknown as Result;
  expect(foundIn(result)).toBeUndefined();
  expect(foundRateOf(result, 'a')).toEqual(rate);
  expect(foundRateOf(result, 'b')).toBeUndefined();
});
