// Turns compared with continuous load.
import { expect, test } from 'vitest';
import { againstContinuous, coldCosts, turnsDisagree } from '../../lib/analysis/continuous.ts';
import type { Phase } from '../../lib/result/result.ts';
import { answers, continuousEnd, phase } from '../fixtures/phase.ts';

const inTurns = (rps: number, continuousRps: number, more: Partial<Phase> = {}) =>
  phase({
    requests: 10 * rps,
    rps,
    continuous: { ...continuousEnd, rps: continuousRps },
    ...more,
  });
const side = (name: string, ...phases: Phase[]) => ({
  name,
  rounds: phases.map((phase, index) => ({ round: index + 1, serverPid: null, phases: [phase] })),
});

test('a server is cold if responses cost 25 % more CPU time at the end of the warm-up than in the turns', () => {
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
    errors: { ...rated.errors, read: 200, total: 200 },
    serverCpuSeconds: 1,
    continuous: before,
  });
  expect(coldCosts([failed])).toBeUndefined();
  // Of 29 responses.
  const few = { ...before, rps: 290, seconds: 0.1 };
  const ofFew = phase({ requests: 10_000, serverCpuSeconds: 1, continuous: few });
  expect(coldCosts([ofFew])).toBeUndefined();
  // Slightly more CPU time; unknown at the end of the warm-up, in the window, without a warm-up.
  expect([costs(130), costs(0), costs(140, null), coldCosts([phase({ requests: 1 })])]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test('a rate limit that recovered meanwhile makes no cold server: the ramps of its turns have bursts', () => {
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

test('a pause of the server that continuous load may have lacked by chance is tolerated', () => {
  const steady = side('a', ...[1, 2, 3, 4].map(() => inTurns(1000, 1000)));
  // 100 ms of the 200 ms of continuous load.
  const pausing = (rps: number) =>
    side('b', ...[1, 2, 3, 4].map(() => inTurns(rps, 1000, { longestGapMs: 100 })));
  expect(turnsDisagree([steady, pausing(790)])).toBeUndefined();
  expect(turnsDisagree([steady, pausing(1490)])).toBeUndefined();
  expect(turnsDisagree([steady, pausing(2000)])).toMatchObject({ name: 'b' });
});
