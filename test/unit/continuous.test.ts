// Turns compared with continuous load.
import { expect, test } from 'vitest';
import { checkOf } from '../../lib/analysis/alone.ts';
import { againstContinuous, coldCosts, turnsDisagree } from '../../lib/analysis/continuous.ts';
import { shareAt, usualLooks } from '../../lib/analysis/looks.ts';
import { uniform } from '../../lib/random.ts';
import type { Phase, Result } from '../../lib/result/result.ts';
import { answers, continuousEnd, phase, quiet, readErrors } from '../fixtures/phase.ts';
import { frequency, normal } from '../fixtures/random.ts';

const inTurns = (rps: number, continuousRps: number, more: Partial<Phase> = {}) =>
  phase({
    requests: 10 * rps,
    rps,
    serverCpuSeconds: null,
    continuous: { ...continuousEnd, rps: continuousRps },
    ...more,
  });
const side = (name: string, ...phases: Phase[]) => ({
  name,
  rounds: phases.map((phase, index) => ({ round: index + 1, serverPid: null, phases: [phase] })),
});

test('a server is cold if responses cost 25 % more at the end of the warm-up than in turns', () => {
  const costs = (cpuMicros: number, serverCpuSeconds: number | null = 1) =>
    coldCosts([
      phase({ requests: 10_000, serverCpuSeconds, continuous: { ...continuousEnd, cpuMicros } }),
    ]);
  expect(costs(140)).toEqual({ before: 140, after: 100 });
  const atRate = { queueGrowth: { perSecond: 0, standardError: 0 } };
  const before = { ...continuousEnd, cpuMicros: 140 };
  const rated = phase({ requests: 10_000, serverCpuSeconds: 1, continuous: before, ...atRate });
  expect(coldCosts([rated])).toBeUndefined();
  const failed = phase({
    requests: 10_000,
    responses: answers({ '2xx': 9800 }),
    errors: readErrors(200),
    serverCpuSeconds: 1,
    continuous: before,
  });
  expect(coldCosts([failed])).toBeUndefined();
  const few = { ...before, rps: 290, seconds: 0.1 };
  const ofFew = phase({ requests: 10_000, serverCpuSeconds: 1, continuous: few });
  expect(coldCosts([ofFew])).toBeUndefined();
  // Slightly more CPU time; unknown at the end of the warm-up, in the window, without a warm-up.
  for (const none of [costs(130), costs(0), costs(140, null), coldCosts([phase({ requests: 1 })])])
    expect(none).toBeUndefined();
});

test('bursts in ramps, of a rate limit that recovered, make no cold server', () => {
  const costs = (responses: number) =>
    coldCosts([
      phase({
        requests: 500,
        rps: 500,
        serverCpuSeconds: 0.025,
        continuous: { ...continuousEnd, cpuMicros: 70 },
        turns: { count: 4, responses, sliceMs: 250, rampMs: 80, waits: false },
      }),
    ]);
  expect(costs(1326)).toBeUndefined();
  // 0.32 s of ramps at the same speed, and a little more.
  expect(costs(700)).toMatchObject({ before: 70 });
});

test('requests/s in turns are compared with continuous load as a ratio', () => {
  const of = (...phases: Phase[]) => againstContinuous(side('a', ...phases).rounds);
  expect(of(inTurns(1200, 1000), inTurns(1200, 1000))).toEqual({
    ratio: expect.closeTo(1.2, 9),
    interval: [expect.closeTo(1.2, 9), expect.closeTo(1.2, 9)],
  });
  const oneTurn = { turns: { count: 1, responses: 0, sliceMs: 10, rampMs: 1, waits: false } };
  const atRate = { queueGrowth: { perSecond: 0, standardError: 0 } };
  for (const other of [
    inTurns(1200, 1000, { turns: null }),
    inTurns(1200, 1000, oneTurn),
    inTurns(1200, 1000, atRate),
    inTurns(1200, 0),
    inTurns(1200, 1000, { continuous: { ...continuousEnd, rps: 1000, apart: true } }),
    phase({ requests: 1 }),
  ])
    expect(of(inTurns(1200, 1000), other)).toBeUndefined();
});

test('turns disagree only beyond the tolerance and the noise', () => {
  const steady = side('a', ...[1000, 1005, 995, 1000].map((rps) => inTurns(rps, 1000)));
  const gains = side('b', ...[1100, 1095, 1105, 1100].map((rps) => inTurns(rps, 1000)));
  const noisy = side('b', ...[1900, 700, 1600, 1000].map((rps) => inTurns(rps, 1000)));
  expect(turnsDisagree([steady, gains])).toMatchObject({ name: 'b' });
  expect(
    turnsDisagree([
      steady,
      side('c', ...steady.rounds.map(({ phases: [phase] }) => phase as Phase)),
    ]),
  ).toBeUndefined();
  // On its own, this distance is within the machine's noise between warm-up and turns.
  expect([turnsDisagree([gains]), turnsDisagree([steady, noisy])]).toEqual([undefined, undefined]);
});

test('a share of a core says nothing while others take a part of it', () => {
  const gains = (serverOthersShare: number) =>
    [1.1, 1.09, 1.11, 1.1].map((of) =>
      inTurns(1000, 1000, {
        serverCpuSeconds: 10 * of,
        continuous: { ...continuousEnd, rps: 1000, cpuMicros: 1000 },
        noise: { ...quiet, serverOthersShare },
      }),
    );
  const steady = inTurns(1000, 1000, {
    serverCpuSeconds: 10,
    continuous: { ...continuousEnd, rps: 1000, cpuMicros: 1000 },
  });
  const a = side('a', steady, steady, steady, steady);
  const found = turnsDisagree([a, side('b', ...gains(0.01))]);
  expect(found).toMatchObject({ name: 'b', of: 'cpuShare', ratio: expect.closeTo(1.1, 3) });
  expect(turnsDisagree([a, side('b', ...gains(0.1))])).toBeUndefined();
});

test('a warm-up that took more CPU time is no difference of turns', () => {
  const made = (name: string, cpuMicros: number) =>
    side(
      name,
      ...[0.99, 1, 1.01, 1].map((of) =>
        inTurns(1000, 1000, {
          serverCpuSeconds: 10 * of,
          continuous: { ...continuousEnd, rps: 1000, cpuMicros },
        }),
      ),
    );
  expect(turnsDisagree([made('a', 1000), made('b', 1200)])).toBeUndefined();
  expect(turnsDisagree([made('a', 1200), made('b', 1000)])).toBeUndefined();
  expect(turnsDisagree([made('a', 1000), made('b', 800)])).toMatchObject({ name: 'b' });
});

/**
 * What turns changed in the ratio of nginx's two sides against 2.5 s of continuous load, in 36 runs of ten rounds on a machine whose speed
 * wandered between 60,000 and 102,000 requests/s: standard deviations between rounds, by figure.
 */
const noiseAgainstContinuous = { rps: 0.13, cpuShare: 0.035 };
/** Standard deviation of the ratio in turns, between rounds. */
const noiseInTurns = 0.012;
/** The same of a side's requests/s. Both sides have most of it. */
const noiseOfSides = 0.01;

/**
 * Share of the runs of up to 10 rounds in which a bias of the second side in turns is noticed, at any look.
 * @param bias its requests/s in turns as a multiple of those of continuous load
 * @param inCost whether it comes from the work of each request, and not from more requests that a limit lets through
 */
function noticed(bias: number, inCost: boolean, seed: number): number {
  const random = uniform(seed);
  const noise = (of: number) => Math.exp(of * normal(random));
  const phaseOfRound = () => {
    const ratio = noise(noiseInTurns);
    const slow = noise(noiseAgainstContinuous.rps);
    const share = noise(noiseAgainstContinuous.cpuShare);
    return inTurns(1000 * ratio * bias, (1000 * ratio) / slow, {
      serverCpuSeconds: 10 * (inCost ? 1 : bias),
      continuous: {
        ...continuousEnd,
        rps: (1000 * ratio) / slow,
        cpuMicros: (1000 * slow) / share,
      },
    });
  };
  const steady = inTurns(1000, 1000, {
    serverCpuSeconds: 10,
    continuous: { ...continuousEnd, rps: 1000, cpuMicros: 1000 },
  });
  return frequency(1000, () => {
    const phases = Array.from({ length: 10 }, phaseOfRound);
    return usualLooks.some(({ rounds }) => {
      const b = phases.slice(0, rounds);
      const a = b.map(() => steady);
      return turnsDisagree([side('a', ...a), side('b', ...b)], shareAt(usualLooks, rounds));
    });
  });
}

/** Share of the runs of 10 rounds in which a bias of the second side in turns is noticed with each side alone, after the last round. */
function noticedAlone(bias: number, seed: number): number {
  const random = uniform(seed);
  const scattered = (of: number) => inTurns(1000 * Math.exp(of * normal(random)), 1000);
  return frequency(1000, () => {
    const before = Array.from({ length: 10 }, () => scattered(noiseOfSides));
    const after = before.map(({ rps }) =>
      inTurns(rps * bias * (scattered(noiseInTurns).rps / 1000), 1000),
    );
    const result = {
      variants: [side('a', ...before), side('b', ...after)],
      comparisons: [{}],
      alone: {
        sides: ['a', 'b'].map((variant) => ({ variant, phase: scattered(noiseOfSides) })),
        missing: [],
      },
    } as unknown as Result;
    return checkOf({ baseline: 'a', variant: 'b' }, 'rps', result)?.differs === true;
  });
}

test('what turns let through is noticed from 8 %, which few loads alone show, with few false alarms', () => {
  expect(noticed(1.08, false, 1)).toBeGreaterThan(0.75);
  expect(noticed(1, false, 2)).toBeLessThan(0.02);
  // The machine's noise between a warm-up and turns hides what a request costs.
  expect(noticed(1.4, true, 4)).toBeGreaterThan(0.75);
  expect(noticedAlone(1.08, 5)).toBeLessThan(0.2);
});
