// The round that is measured again because a verdict hangs on it alone.
import { describe, expect, test } from 'vitest';
import { roundToRepeat } from '../../lib/analysis/rounds.ts';
import type { Comparison } from '../../lib/result/result.ts';
import { Disturbance } from '../../lib/runner/plan.ts';
import { one, rounds, variant } from '../fixtures/comparison.ts';
import { roundsOf, runOf } from '../fixtures/made-up-run.ts';

/** Of ten rounds, thousandths of the baseline's requests/s in each of them. */
const hidden = [530, 5890, 530, 480, 770, 520, 560, 600, 500, 540];

const compared = (thousandths: readonly number[]): Comparison =>
  one([variant('a', rounds(thousandths.map(() => 1000))), variant('b', rounds(thousandths))]);
const repeated = (thousandths: readonly number[]) => roundToRepeat([compared(thousandths)])?.round;

test('a round is measured again where it alone decides', () => {
  const decided = {
    ...compared(hidden),
    verdict: 'slower',
    swayedBy: { round: 4, without: 'inconclusive' },
  } as const;
  expect(roundToRepeat([decided])).toEqual({
    round: 4,
    why: 'an outlier, it alone decided b against a',
  });
});

test('a round is not measured again where it may be one of the others, or has turned the direction', () => {
  // Of five rounds as far apart as these one in a hundred is.
  expect(compared([5890, 530, 530, 480, 770]).swayedBy).toEqual({ round: 1, without: 'slower' });
  expect(repeated([5890, 530, 530, 480, 770])).toBeUndefined();
  const turned = [980, 985, 1400, 978, 983, 981, 979, 984, 982, 977];
  expect(compared(turned).swayedBy).toEqual({ round: 3, without: 'slower' });
  expect(repeated(turned)).toBeUndefined();
});

test('a round is not measured again where the others are the same, or nothing is swayed or judged', () => {
  const same = [1000, 1001, 999, 1002, 1400, 1001, 998, 1000, 1001, 999];
  expect(compared(same).swayedBy).toEqual({ round: 5, without: 'same' });
  expect(repeated(same)).toBeUndefined();
  expect(roundToRepeat([{ ...compared(hidden), verdict: 'none' }])).toBeUndefined();
  expect(roundToRepeat([])).toBeUndefined();
});

describe('a run', () => {
  test('replaces the outlier by one more round, and says so', async () => {
    const { result: found, said } = await runOf([...hidden, 550]);
    expect(roundsOf(found)).toEqual([1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(found).toMatchObject({
      state: 'complete',
      comparisons: [{ verdict: 'slower', swayedBy: null }],
    });
    const why = 'an outlier, it alone prevented a verdict on open-file-cache against workers';
    expect(said).toContain(`round 2 is measured again: ${why}`);
    expect(found.warnings).toContain(`round 2 was dropped and repeated as round 11: ${why}`);
  });

  test('takes one only, and says what is left', async () => {
    const { result: found } = await runOf([...hidden, 5700]);
    expect(found.comparisons).toMatchObject([{ verdict: 'inconclusive', swayedBy: { round: 11 } }]);
    expect(found.warnings.join()).toContain('round 11 is an outlier and alone prevents a verdict');
  });

  test('ends where each of five tries is disturbed', async () => {
    const { ended } = await runOf([1, 2, 3, 4, 5].map((one) => new Disturbance(`reason ${one}`)));
    expect(String(ended)).toContain(
      'round 1 was disturbed or failed each of 5 times, the last time: reason 5',
    );
  });

  test('keeps the outlier where that round fails', async () => {
    const { result: found, ended } = await runOf([...hidden, null]);
    expect(ended).toBeUndefined();
    expect(roundsOf(found)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(found.state).toBe('complete');
    expect(found.warnings).toContain('round 2 could not be measured again: nginx ended');
    expect(found.comparisons).toMatchObject([{ swayedBy: { round: 2 } }]);
  });
});
