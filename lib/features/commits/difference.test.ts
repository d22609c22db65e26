import { expect, test } from 'vitest';
import { compared, openFileCache, result, workers } from '../../../test/fixtures/result.ts';
import type { Counted } from '../../result/counts.ts';
import { byCount, byTime, countThatDiffers } from './difference.ts';

const measured = result([workers, openFileCache]);

test('of a time: the logarithm of the ratio; undefined for the first side, and for one that fails', () => {
  const [comparison] = measured.comparisons;
  expect(byTime(measured, openFileCache.name)).toMatchObject({
    size: Math.log(comparison?.ratio ?? NaN),
    direction: 'more',
  });
  expect(byTime(measured, workers.name)).toBeUndefined();
  const variants = measured.variants.map((side) => ({ ...side, successRatio: 0.9 }));
  expect(byTime({ ...measured, variants }, openFileCache.name)).toBeUndefined();
});

test.each([
  ['inconclusive', 'none'],
  ['same', 'same'],
  ['slower', 'less'],
] as const)('a verdict %s has the direction %s', (verdict, direction) => {
  expect(byTime(compared(measured, { verdict }), openFileCache.name)?.direction).toBe(direction);
});

const countedAs = (
  ...differences: Omit<Counted['differences'][number], 'variant' | 'baseline'>[]
) => ({
  ...measured,
  counts: {
    requests: 3000,
    sides: [],
    differences: differences.map((one) => ({ ...one, variant: 'b', baseline: 'a' })),
    missing: [],
  },
});

test('of a count: the difference, and the first that is sure', () => {
  const counted = countedAs(
    { count: 'syscalls', difference: 0.3, low: -0.1, high: 0.7 },
    { count: 'bytes', difference: 0, low: 0, high: 0 },
    { count: 'segments', difference: -1, low: -1, high: -1 },
  );
  expect(byCount('syscalls')(counted, 'b')).toMatchObject({
    direction: 'none',
    text: '+0.3 [−0.1, +0.7] syscalls',
  });
  expect(byCount('bytes')(counted, 'b')).toMatchObject({ direction: 'same', text: '0 bytes' });
  expect(byCount('segments')(counted, 'b')).toMatchObject({ size: -1, direction: 'less' });
  expect(countThatDiffers(counted, 'b')).toBe('segments');
  expect(byCount('faults')(counted, 'b')).toBeUndefined();
});
