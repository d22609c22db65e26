// When a run ends.
import { expect, test } from 'vitest';
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { Disturbance } from '../../lib/runner/plan.ts';
import { roundsOf, runOf } from '../fixtures/made-up-run.ts';

const clear = [2110, 2140, 2100, 2129, 2121, 2150];
/** The same ratios around 1: of 4 rounds no verdict, of all a few percent. */
const open4 = [1030, 960, 1050, 990, 1031, 1029, 1000, 1010, 1040, 1005];
const silent = Array.from({ length: 10 }, () => 0);

test.each<[string, readonly number[], Partial<PlanOptions>, number]>([
  ['its first look, if that is clear', clear, {}, 4],
  // Wide beside its effect after 4 rounds, and no longer after 6.
  ['a later look', [1480, 1520, 1450, 1500, 1490, 1495], {}, 6],
  ['its last round, if nothing is clear', open4, {}, 10],
  ['the number of rounds that was asked for', clear, { rounds: 6 }, 6],
  ['its last round, if there is no verdict that could end it', silent, {}, 10],
  ['the first look of --precision', clear, { precision: 0.01 }, 5],
  ['the first look of --precision, if there can be no verdict', silent, { precision: 0.01 }, 5],
])('a run ends at %s', async (_, thousandths, options, rounds) => {
  const { result, said } = await runOf(thousandths, options);
  expect(roundsOf(result)).toHaveLength(rounds);
  expect(result.state).toBe('complete');
  expect(said).toEqual([]);
});

test('a run with --precision says at a look why it goes on', async () => {
  const { ended, said } = await runOf([...open4.slice(0, 5), new Error('enough')], {
    precision: 0.01,
  });
  expect(String(ended)).toContain('enough');
  expect(said).toEqual([
    'after 5 rounds open-file-cache is not known exactly enough: going on to 10',
  ]);
});

test('a run keeps an outlier that alone prevents a verdict, and says so', async () => {
  const { result, ended } = await runOf([530, 5890, 530, 480, 770, 520, 560, 600, 500, 540]);
  expect(ended).toBeUndefined();
  expect(roundsOf(result)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(result.comparisons).toMatchObject([{ verdict: 'inconclusive', swayedBy: { round: 2 } }]);
  expect(result.warnings.join()).toContain('round 2 is an outlier and alone prevents a verdict');
});

test('a run ends where each of five tries at a round is disturbed', async () => {
  const { ended } = await runOf([1, 2, 3, 4, 5].map((one) => new Disturbance(`reason ${one}`)));
  expect(String(ended)).toContain(
    'round 1 was disturbed or failed each of 5 times, the last time: reason 5',
  );
});
