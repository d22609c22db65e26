import { expect, test } from 'vitest';
import type { Phase } from '../../lib/result/result.ts';
import {
  requireSeparateTurns,
  requireSampled,
  requireSound,
} from '../../lib/runner/disturbance.ts';
import { Disturbance } from '../../lib/runner/failures.ts';
import type { PlannedVariant } from '../../lib/runner/plan.ts';
import type { UsageSample } from '../../lib/runner/samples.ts';
import type { LogAlarms } from '../../lib/servers/lifecycle.ts';
import { continuousEnd, noLatency, phase, quiet } from '../fixtures/phase.ts';

const nothing = { wallAheadMs: 0, throttledMs: 0, quotaThrottledMs: 0, generatorStopped: false };

function every100([fromMs, toMs]: [number, number], ...gaps: [number, number][]) {
  return Array.from({ length: (toMs - fromMs) / 100 + 1 }, (_, index) => fromMs + 100 * index)
    .filter((atMs) => !gaps.some(([from, to]) => atMs > from && atMs < to))
    .map((atMs) => ({ ...nothing, atMs }) as UsageSample);
}

const loaded: [number, number] = [1050, 11_050];

interface Seen {
  samples?: readonly UsageSample[];
  enclosed?: readonly { atMs: number }[];
  /** Changes to a phase that lasts from 1050 to 11050 ms. */
  of?: Partial<Phase>;
  warmupSeconds?: number;
  told?: boolean;
  alarms?: LogAlarms;
}

const plannedOf = (name: string, warmupSeconds = 1) =>
  ({ variant: { name }, load: { warmupSeconds } }) as PlannedVariant;

function check({ samples, enclosed, of = {}, warmupSeconds = 1, told = true, ...more }: Seen) {
  const { alarms = {} } = more;
  const loadedPhase = phase({ requests: 1000, monotonicMs: loaded, ...of });
  const planned = plannedOf('a', warmupSeconds);
  const side = {
    stage: { planned, server: { name: 'nginx' } },
    samples: samples ?? every100([0, 12_000]),
    quotas: '/cpu.max: 1.5 cores',
    enclosed: { samples: enclosed },
    phases: [loadedPhase],
    alarms,
  };
  requireSound(side as never);
  requireSampled(planned, side.samples, told ? [loadedPhase] : []);
}

function expectFound(seen: Seen, message: RegExp | string | undefined) {
  if (message === undefined) return check(seen);
  expect(() => check(seen)).toThrow(message);
  expect(() => check(seen)).toThrow(Disturbance);
}

const notSampled = 'not sampled from its begin to its end';

test.each([
  ['within, just tolerated', every100([0, 12_000], [3000, 5000]), undefined],
  ['within', every100([0, 12_000], [3000, 5100]), /^a: nothing was sampled for 2\.10 s of /],
  ['before and after it', every100([0, 30_000], [0, 900], [11_100, 20_000]), undefined],
  ['no sample before it', every100([1100, 12_000]), notSampled],
  ['no sample after it', every100([0, 11_000]), notSampled],
])('a gap in the samples: %s', (_, samples, message) => {
  expectFound({ samples }, message);
  if (message !== undefined) check({ samples, told: false });
});

test.each([
  [5000, 'the load generator (k6) was stopped'],
  [500, undefined],
])('k6 that is stopped at %i ms ends the round if that is in the load', (stoppedMs, message) => {
  const samples = every100([0, 12_000]).map((sample) => ({
    ...sample,
    generatorStopped: sample.atMs === stoppedMs,
  }));
  expectFound({ samples }, message);
});

test("a gap in an enclosure's samples matters, if it needs any", () => {
  expectFound({ enclosed: every100([0, 12_000], [3000, 5100]) }, 'for 2.10 s');
  check({});
});

test.each<[string, [number, number], RegExp | string | undefined]>([
  ['as far as readings are apart', [49, -50], undefined],
  ['back by an hour', [-3_600_000, -3_600_000], /machine's clock was set back by 3600\.00 s/],
  ['there and back again', [60, 0], 'set forward by 60.00 ms'],
])('a step of the wall clock: %s', (_, [second, others], message) => {
  const samples = every100([0, 12_000]).map((sample, index) => ({
    ...sample,
    wallAheadMs: 1e12 + ([0, second][index] ?? others),
  }));
  expectFound({ samples }, message);
});

test.each<[string, [number, number], RegExp | string | undefined]>([
  ['within it', [1100, 2900], 'back for 32.00 ms during the load (/cpu.max: 1.5 cores): take'],
  ['before it', [2000, 3000], undefined],
  ['for 1/1000 of it', [3000, 5000], undefined],
  ['for more', [3000, 4980], 'held the run back for 2.00 ms'],
])('a quota that throttled the run: %s', (_, monotonicMs, message) => {
  const throttled = { 0: 10, 1000: 10, 2000: 42, 3000: 42, 5000: 44 };
  const samples = Object.entries(throttled).map(
    ([atMs, throttledMs]) => ({ ...nothing, atMs: Number(atMs), throttledMs }) as UsageSample,
  );
  expectFound({ samples, of: { monotonicMs } }, message);
});

test('a quota of one server ends turns, unless it is loaded alone', () => {
  const throttled = [0, 0, 40, 40];
  const quotas = '/a.slice/cpu.max: 0.5 cores';
  const samples = throttled.map(
    (quotaThrottledMs, second) =>
      ({ ...nothing, atMs: 1000 * second, quotaThrottledMs, quotas }) as UsageSample,
  );
  const sides =
    (...monotonicMs: [number, number][]) =>
    () =>
      requireSeparateTurns(
        monotonicMs.map((times, index) => ({
          stage: { planned: plannedOf('ab'[index] as string) },
          samples: index === 0 ? samples : [],
          phases: [phase({ requests: 1, monotonicMs: times })],
        })),
      );
  const held: [number, number] = [1100, 2900];
  expect(sides(held, held)).toThrow(
    'held a back for 40.00 ms (/a.slice/cpu.max: 0.5 cores), and it recovers in the turns of others',
  );
  expect(sides([2000, 3000], held)).not.toThrow();
  expect(sides(held)).not.toThrow();
  expectFound({ samples, of: { monotonicMs: held } }, undefined);
});

test('a server that works in the turns of others ends turns', () => {
  const sides =
    (othersMs: number, ...shares: (number | null)[]) =>
    () =>
      requireSeparateTurns(
        shares.map((idleCpuShare, index) => ({
          stage: { planned: plannedOf('ab'[index] as string) },
          samples: [],
          phases: [
            phase({ requests: 1, idleCpuShare, seconds: 1, monotonicMs: [500, 1500 + othersMs] }),
          ],
        })),
      );
  expect(sides(1000, 0.009, 0.52)).toThrow('b uses 52 % of a core in the turns of others');
  expect(sides(1000, 0.009, 0.009)).not.toThrow();
  expect(sides(1000, null, null)).not.toThrow();
  expect(sides(1000, 0.52)).not.toThrow();
  // A few milliseconds, such as at the end of a start.
  expect(sides(10, 0.52, 0.52)).not.toThrow();
});

test('a server that works on in the single turn of another ends turns', () => {
  const turns = { count: 1, responses: 0, sliceMs: 1000, rampMs: 0, waits: true };
  // At a rate a window ends with the turns of all sides.
  const windows: [number, number][] = [
    [0, 2000],
    [1000, 2000],
  ];
  // a works on for so many milliseconds after its turn, of which the first 100 belong to it.
  const sides = (afterMs: number) => () =>
    requireSeparateTurns(
      windows.map((monotonicMs, index) => ({
        stage: { planned: plannedOf('ab'[index] as string) },
        samples: Array.from({ length: 21 }, (_, tenth) => {
          const atMs = 100 * tenth;
          const usedMs = index === 0 ? Math.min(atMs, 1000 + afterMs) : Math.max(0, atMs - 1000);
          return { ...nothing, atMs, cpuSeconds: usedMs / 1000 } as UsageSample;
        }),
        phases: [phase({ requests: 1, turns, monotonicMs, seconds: 1, idleCpuShare: 0 })],
      })),
    );
  expect(sides(400)).toThrow('a uses 33 % of a core in the turns of others');
  expect(sides(90)).not.toThrow();
});

/** A phase with this gap, p99 latency and p50 of the first byte, in milliseconds. */
const gap = (longestGapMs: number, p99 = 1, firstByte = 1): Partial<Phase> => ({
  longestGapMs,
  latencyMs: { ...noLatency, p99 },
  firstByteMs: { ...noLatency, p50: firstByte },
});

const took = (duringPause: number): Partial<Phase> => ({ noise: { ...quiet, duringPause } });
const stopped: Partial<Phase> = { stoppedShare: 0.3 };

test.each([
  [1250, 1, 1, false],
  [1251, 1, 1, true],
  [4999, 500, 1, false],
  [3200, 2, 320, false],
])('a stopped server: %i ms, p99 %i ms, first byte %i ms: %s', (gapMs, p99, first, isFound) => {
  expectFound(
    { of: { ...stopped, ...gap(gapMs, p99, first) } },
    isFound ? 'it was stopped' : undefined,
  );
});

const usual = (p50Ms: number): Partial<Phase> => ({ continuous: { ...continuousEnd, p50Ms } });
const none = phase({ requests: 0, latencyMs: noLatency, firstByteMs: noLatency });

const noneIn0_3 = { ...none, seconds: 0.3, longestGapMs: 300 };

test.each<[string, Partial<Phase>, isFound: boolean]>([
  ['only to requests from before the window', { ...gap(1501, 0, 0), ...usual(1500) }, false],
  ['the same of a fast server', { ...gap(1501, 0, 0), ...usual(1.5) }, true],
  ['none in 0.3 s', { ...noneIn0_3, ...usual(1500) }, false],
  ['none in 0.3 s of a fast server', { ...noneIn0_3, ...usual(1.5) }, true],
  ['none in 10 s', { ...none, longestGapMs: 10_000, ...usual(1500) }, true],
])('a gap of a stopped server that takes long to answer: %s', (_, of, isFound) => {
  expectFound({ of: { ...of, ...stopped, monotonicMs: loaded } }, isFound ? 'stalled' : undefined);
});

test.each<[string, Partial<Phase>, RegExp | string | undefined]>([
  ['of its own', {}, undefined],
  ['of its own, with unknown noise', { noise: null }, undefined],
  ['of its own in the whole window', { ...phase({ requests: 0 }), monotonicMs: loaded }, undefined],
  ['of a stopped server', stopped, 'it was stopped (SIGSTOP or a debugger)'],
  [
    'while others had its cores',
    took(0.8),
    /^a: nginx stalled: no response .* 3\.20 s .* machine, had 80 % of its cores meanwhile: end/,
  ],
  ['while others shared its cores', took(0.79), undefined],
])('a standstill %s', (_, of, message) => {
  expectFound({ of: { noise: quiet, ...of, ...gap(3200) } }, message);
});

test('a standstill without a response has the length of the window', () => {
  const of = phase({ requests: 0, latencyMs: noLatency, seconds: 10, longestGapMs: 1300 });
  expectFound(
    { of: { ...of, ...stopped, monotonicMs: loaded } },
    'for 1.30 s of its 10.00 s while',
  );
});

test('a standstill is not reported if packets were lost', () => {
  const lost = (server: number): Partial<Phase> => ({
    ...gap(3000),
    ...stopped,
    network: { retransmits: { client: 0, server } } as Phase['network'],
  });
  check({ of: lost(1) });
  expectFound({ of: lost(0) }, '3.00 s');
});

test('a crash in the log is a failure', () => {
  const crashed = () => check({ samples: [], alarms: { crash: 'worker 7 exited' } });
  expect(crashed).toThrow('a: nginx crashed under load, as its log says: worker 7 exited');
  expect(crashed).not.toThrow(Disturbance);
});
