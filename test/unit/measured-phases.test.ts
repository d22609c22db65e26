// Combines the engine's measurement and the runner's samples into a phase.
import { expect, test } from 'vitest';
import type { LoadResult } from '../../lib/result/load-result.ts';
import { phasesOf } from '../../lib/runner/measured-phases.ts';
import type { Measurement } from '../../lib/runner/under-load.ts';
import type { RunningServer } from '../../lib/servers/index.ts';
import type { ServerSample } from '../../lib/servers/usage.ts';
import { latency, phase } from '../fixtures/phase.ts';
import { hereAndThere, planOf, scenarioOf } from '../fixtures/plan.ts';

const unknown = { seconds: 0, processes: 0, interrupts: 0, servers: 0, stolen: 0, waits: null };
const plan = planOf(scenarioOf(hereAndThere));

/** CPU figures of a phase with 1000 responses. `made` counts the responses in all turns; the samples show 4 s of CPU time. */
function cpuOf(side: number, made: number, serverCpu?: LoadResult['serverCpu']) {
  const turns = { count: 10, responses: made, sliceMs: 10, rampMs: 0, waits: false };
  const result = {
    ...phase({ requests: 1000, monotonicMs: [1000, 11_000], turns: made === 0 ? null : turns }),
    ...(serverCpu === undefined ? {} : { serverCpu }),
  };
  const ofServer = [0, 1000, 11_000, 12_000].map(
    (atMs) => ({ atMs, cpuSeconds: atMs * 0.4e-3, rssBytes: 7 }) as ServerSample,
  );
  const server = {
    upstreams: [],
    ...(side === 0 ? { usage: () => ({}) } : {}),
  } as unknown as RunningServer;
  const measurement = {
    stage: { planned: plan.variants[side], server },
    results: [result],
    samples: [],
    ofServer,
  } as unknown as Measurement;
  const [measured] = phasesOf(measurement, plan, false);
  expect(measured).not.toHaveProperty('serverCpu');
  return [measured?.serverCpuSeconds, measured?.idleCpuShare, measured?.serverRssBytes];
}

test('CPU time is counted in the turns of the server', () => {
  expect(cpuOf(0, 1100, { seconds: 2.2, idleShare: 0.03, cores: unknown })).toEqual([
    expect.closeTo(2, 12),
    0.03,
    7,
  ]);
  // On another host CPU time is sampled, over the same turns.
  expect(cpuOf(0, 2000)).toEqual([expect.closeTo(2, 12), null, 7]);
});

test('on another host CPU time includes ramps and drains', () => {
  const turns = { count: 1, responses: 5000, sliceMs: 3000, rampMs: 4000, waits: true };
  const monotonicMs: [number, number] = [5000, 6000];
  const loaded = phase({
    requests: 1000,
    monotonicMs,
    latencyMs: latency(1000, 1000, 1000),
    turns,
  });
  // The server used 2 s of CPU time from 1 to 7 s. The last second had a fifth of all responses, so 0.4 s.
  const ofServer = [0, 1000, 2000, 7000, 8000].map(
    (atMs, index) => ({ atMs, cpuSeconds: [0, 0, 0.4, 2, 2][index], rssBytes: 7 }) as ServerSample,
  );
  const server = { upstreams: [], usage: () => ({}) } as unknown as RunningServer;
  const measurement = {
    stage: { planned: plan.variants[0], server },
    results: [loaded],
    samples: [],
    ofServer,
  } as unknown as Measurement;
  const [measured] = phasesOf(measurement, plan, false);
  expect(measured?.serverCpuSeconds).toBeCloseTo(0.4, 12);
});

test('a server that was loaded alone has the CPU time of the window', () => {
  expect(cpuOf(0, 0, { seconds: 3, idleShare: 0, cores: unknown })).toEqual([3, 0, 7]);
  expect(cpuOf(0, 0)).toEqual([expect.closeTo(4, 12), null, 7]);
});

test('a side given by address has no CPU time', () =>
  expect(cpuOf(1, 1000)).toEqual([null, null, null]));
