import { expect, test } from 'vitest';
import type { LoadPlan, PhaseOutcome, SideOptions } from '../../k6/load-plan.ts';
import { byOurClock, dividedPlan, mergeInstances, type InstanceEnd } from './generators.ts';
import { byName } from '../../present.ts';
import { wireNames, type HistogramBar, type LoadResult } from '../../result/load-result.ts';
import { latency, phase } from '../../../test/fixtures/phase.ts';

const planOf = (
  side: SideOptions = { connections: 30 },
  changes: Partial<LoadPlan> = {},
): LoadPlan => ({
  scenario: 's',
  tags: {},
  maxDurationSeconds: 20,
  phases: [{ sides: [side] }],
  ...changes,
});
const endOf = (result: LoadResult): InstanceEnd => ({ phases: [{ results: [result] }] });
const merged = (results: readonly LoadResult[], plan = planOf()) =>
  (mergeInstances(results.map(endOf), plan) as [PhaseOutcome])[0].results[0] as LoadResult;

const meetAt = { url: 'http://influxdb:8086', database: 'bakeoff', withinSeconds: 50 };

test('all instances get the same plan, with the meeting point', () => {
  const divided = { instances: 3, meetAt, maxDurationSeconds: 80 };
  expect(dividedPlan(planOf(), 3, meetAt)).toEqual({ ...planOf(), ...divided });
});

const twoPhases = { phases: [{ sides: [] }, { sides: [] }] };
test.each([
  [planOf({ connections: 3 }), /^4 generators: 3 connections .* 4 threads: give at least 4$/],
  [planOf({ connections: 7, threads: 8 }), / among 8 threads: give at least 8$/],
  [planOf({ connections: 9, requests: 2 }), / 2 requests cannot be .* them: give at least 4$/],
  [planOf(undefined, twoPhases), /only the first of 2 load phases/],
])('an instance is refused %j', (plan, message) => {
  expect(() => dividedPlan(plan, 4, meetAt)).toThrow(message);
  expect(() => dividedPlan(plan, 1, meetAt)).not.toThrow();
});

const histogram: HistogramBar[] = [
  [0.5, 990],
  [1, 9],
  [80, 1],
];
const bucketsOf = (...counts: number[]) =>
  counts.map((count, fromMs) => ({ fromMs, toMs: fromMs === 0 ? 1 : null, count }));
const first = phase({
  requests: 1003,
  rps: 100,
  responses: { '2xx': 990, '3xx': 1, '4xx': 4, '5xx': 5 },
  statuses: { 302: 1, 404: 4, 503: 5 },
  errors: { connect: 1, tls: 0, read: 2, write: 0, timeout: 0, protocol: 0, total: 3 },
  errorCauses: { addressNotAvailable: 0, refused: 1, reset: 2, timedOut: 0, short: 0, other: 0 },
  errorExample: 'reset',
  warmupRequests: 7,
  inFlight: 3,
  hung: 1,
  unsent: 2,
  bytes: { received: 1, headers: 2, headersDecoded: 3, body: 4, sent: 5 },
  longestGapMs: 80,
  latencyMs: latency(0.5, 1, 80, { min: 0.2, mean: 0.6, sd: 2, histogram }),
  connectMs: latency(1, 1, 1, { histogram: [[1, 10]] }),
  buckets: bucketsOf(999, 1),
  maxConcurrentStreams: 128,
  perConnectionRps: { min: 1, mean: 10, sd: 0, withinSd: 1, max: 20 },
  startedAt: '2026-11-20T08:15:31.040000Z',
  endedAt: '2026-11-20T08:15:41.040000Z',
  monotonicMs: [1040, 11_040],
});
const second = phase({
  requests: 2000,
  responses: { '2xx': 1990, '3xx': 0, '4xx': 0, '5xx': 10 },
  statuses: { 503: 10 },
  latencyMs: latency(1, 2, 3, {
    min: 0.1,
    mean: 1,
    sd: 0,
    histogram: [
      [1, 1990],
      [2, 10],
    ],
  }),
  buckets: bucketsOf(0, 2000),
  seconds: 8,
  longestGapMs: 4,
  perConnectionRps: { min: 5, mean: 16, sd: 0, withinSd: 0.5, max: 16 },
  endedAt: '2026-11-20T08:15:39.000000Z',
  monotonicMs: [1000, 9000],
});

test('results are merged into one', () => {
  const { latencyMs, connectMs, ...rest } = merged(
    [
      { ...first, wire: byName(wireNames, () => 3) },
      { ...second, wire: byName(wireNames, (name) => (name === 'connections' ? 2 : 1)) },
    ],
    planOf({ connections: 3 }),
  );
  // If only one instance had some, the figure comes from that instance.
  expect({ ...first, ...rest }).toEqual({
    ...first,
    requests: 3003,
    rps: 300,
    responses: { '2xx': 2980, '3xx': 1, '4xx': 4, '5xx': 15 },
    statuses: { 302: 1, 404: 4, 503: 15 },
    turns: null,
    wire: { ...byName(wireNames, () => 4), connections: 5 },
    longestGapMs: 4,
    bytes: expect.objectContaining({ received: 1_700_001, body: 1_224_004, sent: 120_005 }),
    firstByteMs: expect.objectContaining({ p99: 2.9 }),
    // The first instance has two of three connections: 10, 10 and 16.
    perConnectionRps: {
      min: 1,
      mean: 12,
      sd: expect.closeTo(Math.sqrt(12), 9),
      withinSd: expect.closeTo(2.5 / 3, 9),
      max: 20,
    },
    buckets: bucketsOf(999, 2001),
    startedAt: second.startedAt,
    monotonicMs: [1000, 11_040],
    cpuSeconds: 14,
  });
  expect(latencyMs).toMatchObject({ min: 0.1, max: 80, p50: 1, p99: 1, p999: 2 });
  expect(latencyMs.histogram.flat()).toEqual([0.5, 990, 1, 1999, 2, 10, 80, 1]);
  expect(latencyMs.mean).toBeCloseTo((1000 * 0.6 + 2000) / 3000, 9);
  expect(connectMs.histogram.reduce((sum, [, count]) => sum + count, 0)).toBe(1010);
});

test('at a rate each instance tells what was served, and by how much its queue grew', () => {
  const beyond = [
    { ...first, rps: 300, queueGrowth: { perSecond: 90, standardError: 3 } },
    { ...second, rps: 400, queueGrowth: { perSecond: 110, standardError: 4 } },
  ];
  expect(merged(beyond)).toMatchObject({
    rps: 700,
    queueGrowth: { perSecond: 200, standardError: 5 },
  });
});

test('a single result stays unchanged', () => expect(merged([first])).toBe(first));

test('a missing result is an error', () => {
  const beside = (other: InstanceEnd) => () => mergeInstances([endOf(first), other], planOf());
  expect(beside({ failure: 'it said nothing' })).toThrow(
    'generator 2 of 2: it said nothing: its share is missing',
  );
  expect(beside({ phases: [] })).toThrow('2 of 2: ended after 0 of 1 phases: its share is missing');
});

test('instances that started at different times are an error', () => {
  const late = (ms: number) => ({ ...second, startedAt: `2026-11-20T08:15:31.${ms}000Z` });
  expect(merged([first, late(140)]).requests).toBe(3003);
  expect(() => merged([late(150), second, first])).toThrow(
    'generator 1 of 3 began 150 ms after generator 2, and may 100 ms',
  );
});

test('times from another machine are converted to our clock', () => {
  const [outcome] = byOurClock([{ results: [first] }], 2500);
  expect(outcome?.results).toEqual([
    { ...first, startedAt: '2026-11-20T08:15:28.540Z', endedAt: '2026-11-20T08:15:38.540Z' },
  ]);
});
