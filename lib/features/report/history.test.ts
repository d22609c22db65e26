// A comparison over several runs: the part between boots, and an interval that holds for it.
import { expect, test } from 'vitest';
import { effectsOf, historyParts, type KeptEffect, pooled } from './history.ts';
import { uniform } from '../../random.ts';
import { cellText } from '../../report/table.ts';
import { frequency, normal } from '../../../test/fixtures/random.ts';
import { openFileCache, result, workers } from '../../../test/fixtures/result.ts';

const random = uniform(11);
/** Runs of so many boots, two each, of 10 rounds. @param between standard deviation of the boots @param within of the rounds */
function runsOf(boots: number, between: number, within: number, effect = 0.2): KeptEffect[] {
  return Array.from({ length: boots }, (_, boot) => {
    const ofBoot = effect + between * normal(random);
    return [1, 2].map((run): KeptEffect => ({
      run: `${boot}-${run}`,
      boot: String(boot),
      roundRatios: Array.from({ length: 10 }, () => Math.exp(ofBoot + within * normal(random))),
    }));
  }).flat();
}

test.each([
  [3, 0, 0.02],
  [3, 0.05, 0.02],
  [5, 0.05, 0.02],
  [10, 0.05, 0.02],
  [10, 0.005, 0.02],
])('with %i boots that differ by %f the interval holds in 95 %', (boots, between, within) => {
  const holds = frequency(3000, () => {
    const [low, high] = pooled(runsOf(boots, between, within)).interval;
    return Math.log(low) <= 0.2 && 0.2 <= Math.log(high);
  });
  // Where boots hardly differ it is wider than it has to be.
  expect(holds).toBeGreaterThan(0.935);
});

test('the part between boots is found, also where there is none', () => {
  const sizes = Array.from({ length: 200 }, () => pooled(runsOf(12, 0.05, 0.02)).between);
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  expect(mean).toBeGreaterThan(0.04);
  expect(mean).toBeLessThan(0.06);
  expect(pooled(runsOf(12, 0, 0.02))).toMatchObject({ unit: 'boot', units: 12 });
  expect(pooled(runsOf(12, 0, 0.02)).between).toBeLessThan(0.01);
});

test('rounds that are all alike have a finite weight', () => {
  const alike = ['a', 'b'].map((boot) => ({ run: boot, boot, roundRatios: [1.1, 1.1, 1.1, 1.1] }));
  expect(pooled(alike).ratio).toBeCloseTo(1.1, 9);
});

test('runs of one boot are pooled as runs, which is said', () => {
  const runs = runsOf(2, 0, 0.02).map((run) => ({ ...run, boot: 'x' }));
  expect(pooled(runs)).toMatchObject({ unit: 'run', units: 4 });
});

const rounds = [1.2, 1.22, 1.18, 1.21];
const ofBoot = (run: string, bootId: string, roundRatios = rounds) => {
  const measured = result([workers, openFileCache]);
  const [comparison] = measured.comparisons as [(typeof measured.comparisons)[number]];
  return {
    ...measured,
    run,
    environment: { ...measured.environment, bootId },
    comparisons: [{ ...comparison, roundRatios }],
  };
};

test('the table has each run with its boot, and what boots differ by below it', () => {
  const results = [
    ofBoot('first', 'a'),
    ofBoot('second', 'a'),
    ofBoot('third', 'b', [1.3, 1.31, 1.29, 1.3]),
    ofBoot('of one round', 'b', [1.3]),
  ];
  const [part, ...others] = historyParts(results);
  expect(others).toEqual([]);
  expect(part?.title).toBe('open-file-cache against workers, requests/s:');
  expect(part?.tables[0]?.rows.map((row) => row.slice(0, 3).map(cellText))).toEqual([
    ['first', '1', '4'],
    ['second', '1', '4'],
    ['third', '2', '4'],
  ]);
  expect(part?.below[0]).toMatch(
    /^Over 2 boots: \+25 % \[.*\]; boots differ by ±5\.\d % \(standard deviation\) more than their rounds explain/,
  );
  expect(historyParts(results.slice(0, 2))[0]?.below[0]).toMatch(
    /^Over 2 runs: .*All are of one boot/,
  );
  expect(historyParts(results.slice(0, 1))[0]?.below[0]).toMatch(/^One run: /);
  expect(effectsOf(results.slice(3)).size).toBe(0);
});
