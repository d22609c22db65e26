// Servers that get faster within their windows.
import { expect, test } from 'vitest';
import { gainsWithin } from '../../lib/analysis/within-windows.ts';
import { usualLooks } from '../../lib/analysis/looks.ts';
import { uniform } from '../../lib/random.ts';
import type { Phase } from '../../lib/result/result.ts';
import { summarise } from '../fixtures/summary.ts';
import { measured } from '../fixtures/comparison.ts';
import { continuousEnd, phase } from '../fixtures/phase.ts';
import { frequency, normal } from '../fixtures/random.ts';
import { facts } from '../fixtures/result.ts';

const halves = (gain: number | null, more: Partial<Phase> = {}) =>
  phase({ requests: 10_000, gain, continuous: continuousEnd, ...more });
const side = (name: string, phases: readonly Phase[], serverShare = 0.5) => ({
  name,
  serverShare,
  generatorShare: 0.5,
  rounds: phases.map((phase, index) => ({ round: index + 1, serverPid: null, phases: [phase] })),
});
const gaining = (...gains: (number | null)[]) => gains.map((gain) => halves(gain));

test('a gain within windows is noticed, by itself or beside a side with the same noise', () => {
  const steady = side('a', gaining(1.01, 1, 0.99, 1));
  const gains = side('b', gaining(1.05, 1.04, 1.06, 1.05));
  expect(gainsWithin([steady, gains])).toEqual([
    {
      name: 'b',
      metric: 'rps',
      gain: { ratio: expect.closeTo(1.05, 2), interval: expect.anything() },
    },
  ]);
  // The machine was quieter in some first halves than in second ones.
  const noise = [1.3, 0.8, 1.1, 0.7];
  const noisy = (name: string, gain: number) =>
    side(name, gaining(...noise.map((factor) => gain * factor)));
  expect(gainsWithin([noisy('a', 1), noisy('b', 1.05)])).toMatchObject([
    { name: 'b', against: 'a', gain: { ratio: expect.closeTo(1.05, 9) } },
  ]);
  expect(gainsWithin([noisy('a', 1.05), noisy('b', 1)])).toMatchObject([
    { name: 'a', against: 'b' },
  ]);
  expect(gainsWithin([noisy('a', 1.05), noisy('b', 1.05)])).toEqual([]);
});

test('beside other programs a gain is noticed by CPU time', () => {
  const noise = [1.3, 0.7, 1.2, 0.8];
  const cheaper = noise.map((gain, round) => halves(gain, { cpuGain: 1.05 + round / 1000 }));
  expect(gainsWithin([side('b', cheaper, 0.95)])).toMatchObject([{ name: 'b', metric: 'cpu' }]);
  expect(gainsWithin([side('b', cheaper)])).toEqual([]);
  const both = cheaper.map((phase) => ({ ...phase, gain: phase.cpuGain ?? null }));
  expect(gainsWithin([side('b', both, 0.95)])).toMatchObject([{ metric: 'rps' }]);
});

test('a small gain is no note, nor one unknown or of no warm server', () => {
  const gains = [1.05, 1.04, 1.06, 1.05];
  const cold = { ...continuousEnd, apart: true as const };
  for (const phases of [
    gaining(1.02, 1.02, 1.02, 1.02),
    gaining(...gains.slice(1)),
    gaining(...gains.slice(1), null),
    gains.map((gain) => halves(gain, { continuous: null })),
    gains.map((gain) => halves(gain, { continuous: cold })),
  ])
    expect(gainsWithin([side('b', phases)])).toEqual([]);
});

/**
 * Standard deviation of the ratio of two sides, as a logarithm, between the halves of a round: that of a round (continuous.test.ts), times √2
 * as each half has half of the turns, times √2 as two halves are compared.
 */
const noiseOfHalves = 2 * 0.012;

/** Share of the runs of so many rounds in which a server gets a note that gets this much faster from a window's begin to its end. */
function noted(share: number, rounds: number, seed: number): number {
  const random = uniform(seed);
  const gain = (1 + 0.75 * share) / (1 + 0.25 * share);
  return frequency(1000, () => {
    const machine = Array.from({ length: rounds }, () => Math.exp(0.05 * normal(random)));
    const a = gaining(...machine);
    const b = gaining(...machine.map((of) => of * gain * Math.exp(noiseOfHalves * normal(random))));
    return gainsWithin([side('a', a), side('b', b)]).some(({ name }) => name === 'b');
  });
}

test('a server that gets 10 % faster within windows gets a note, and a steady one none', () => {
  expect(noted(0.1, 10, 1)).toBeGreaterThan(0.9);
  for (const { rounds } of usualLooks) expect(noted(0, rounds, 2)).toBeLessThan(0.02);
});

test('the note has the gain and what to do', () => {
  const of = (name: string, gains: readonly number[]) => measured(name, gaining(...gains));
  expect(
    summarise(facts, [of('a', [1.01, 1, 0.99, 1]), of('b', [1.05, 1.04, 1.06, 1.05])]).warnings,
  ).toContainEqual(
    expect.stringMatching(
      /^b still got faster within its windows: requests\/s \+5\.0 % \[.*--warmup 5s/,
    ),
  );
});
