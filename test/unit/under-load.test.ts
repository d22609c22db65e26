// What the engine measured and what the runner sampled, as a phase.
import { expect, test } from 'vitest';
import type { LoadResult } from '../../lib/result/result.ts';
import type { PlannedVariant } from '../../lib/runner/plan.ts';
import { phasesOf, type Measurement } from '../../lib/runner/under-load.ts';
import type { RunningServer } from '../../lib/servers/index.ts';
import type { ServerSample } from '../../lib/store/points.ts';
import { latency, phase } from '../fixtures/phase.ts';
import { hereAndThere, planOf, scenarioOf } from '../fixtures/plan.ts';

const unknown = { seconds: 0, processes: 0, interrupts: 0, servers: 0 };
const plan = planOf(scenarioOf(hereAndThere));

/** The CPU figures of a side's phase with 1000 responses, of so many in its turns, while the samples show that its processes used 4 s. */
function cpuOf(side: number, made: number, serverCpu?: LoadResult['serverCpu']) {
  const turns = { count: 10, responses: made, sliceMs: 10, rampMs: 0, waits: false };
  const result = {
    ...phase({ requests: 1000, monotonicMs: [1000, 11_000], turns: made === 0 ? null : turns }),
    ...(serverCpu === undefined ? {} : { serverCpu }),
  };
  const ofServer = [0, 1000, 11_000, 12_000].map(
    (atMs) => ({ atMs, cpuSeconds: atMs * 0.4e-3, rssBytes: 7 }) as ServerSample,
  );
  const server = { upstreams: [], ...(side === 0 ? { pid: 1 } : {}) } as unknown as RunningServer;
  const measurement = {
    results: [result],
    samples: [],
    ofServer,
    link: null,
  } as unknown as Measurement;
  const [one] = phasesOf(measurement, plan.variants[side] as PlannedVariant, plan, server, false);
  expect(one).not.toHaveProperty('serverCpu');
  return [one?.serverCpuSeconds, one?.idleCpuShare, one?.serverRssBytes];
}

test('a server has the CPU time of its own turns', () => {
  expect(cpuOf(0, 1100, { seconds: 2.2, idleShare: 0.03, cores: unknown })).toEqual([
    expect.closeTo(2, 12),
    0.03,
    7,
  ]);
  // Elsewhere it is sampled, over the same turns.
  expect(cpuOf(0, 2000)).toEqual([expect.closeTo(2, 12), null, 7]);
});

test("elsewhere it is that of the turns' ramps and drains, too", () => {
  const turns = { count: 1, responses: 5000, sliceMs: 3000, rampMs: 4000, waits: true };
  const monotonicMs: [number, number] = [5000, 6000];
  const loaded = phase({
    requests: 1000,
    monotonicMs,
    latencyMs: latency(1000, 1000, 1000),
    turns,
  });
  // From 1 to 7 s it used 2 s, so that the last second's fifth of all responses took 0.4 s.
  const ofServer = [0, 1000, 2000, 7000, 8000].map(
    (atMs, index) => ({ atMs, cpuSeconds: [0, 0, 0.4, 2, 2][index], rssBytes: 7 }) as ServerSample,
  );
  const server = { upstreams: [], pid: 1 } as unknown as RunningServer;
  const measurement = {
    results: [loaded],
    samples: [],
    ofServer,
    link: null,
  } as unknown as Measurement;
  const [one] = phasesOf(measurement, plan.variants[0] as PlannedVariant, plan, server, false);
  expect(one?.serverCpuSeconds).toBeCloseTo(0.4, 12);
});

test('one that was alone has that of its window', () => {
  expect(cpuOf(0, 0, { seconds: 3, idleShare: 0, cores: unknown })).toEqual([3, 0, 7]);
  expect(cpuOf(0, 0)).toEqual([expect.closeTo(4, 12), null, 7]);
});

test('what runs at an address has none', () => expect(cpuOf(1, 1000)).toEqual([null, null, null]));
