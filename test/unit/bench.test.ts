import { expect, test } from 'vitest';
import { benchCommand, chosenNames } from '../../bench/bench.ts';
import { loadgen, twoLoadgens } from '../../bench/engine.ts';
import { experiments } from '../../bench/experiments.ts';
import { expectedSeconds, requireSameTls } from '../../bench/measure.ts';
import {
  compareRounds,
  judge,
  tableLines,
  type Limits,
  type Measured,
  type Row,
} from '../../bench/ratios.ts';
import { h2load, type Generator, type GeneratorLoad } from '../../lib/features/calibrate/peers.ts';
import { load, url } from '../fixtures/generator-load.ts';
import { instanceArguments } from '../../lib/features/kubernetes/generators.ts';

const sent = (generator: Generator, at: string, of: GeneratorLoad) =>
  JSON.parse(generator.command(at, of).env?.['LOAD'] as string) as Record<string, unknown>;

test('k6 gets the load as JSON', () => {
  const counted = { ...load, length: { requests: 1000, runs: 8 } };
  expect(loadgen.command(url, counted).runs).toBeUndefined();
  const { length: _, ...options } = load;
  const tls = { insecureSkipVerify: true };
  const made = { ...options, url, requests: 1000, tls };
  expect(sent(loadgen, url, counted)).toEqual({ runs: 8, options: made });
  const plain = 'http://127.0.0.1/';
  expect(sent(loadgen, plain, load).options).toEqual({ ...options, url: plain, duration: '8s' });
});

test('two k6 processes get half of the load each, and one start time', () => {
  const { args, beside } = twoLoadgens.command(url, load);
  expect([args, ...(beside ?? [])].map((command) => command.slice(-4))).toEqual(
    [1, 2].map((instance) => instanceArguments(instance, 2)),
  );
  expect(sent(twoLoadgens, url, load)).toMatchObject({
    instances: 2,
    options: { segmented: true, startAt: expect.any(Number), connections: 100 },
  });
});

function sample(rps: number, cpuMicrosPerRequest: number, more: Partial<Measured> = {}): Measured {
  return {
    requests: 1000,
    rps,
    errors: 0,
    cpuMicrosPerRequest,
    peakRssBytes: 60e6,
    serverShare: 0.97,
    generatorShare: 0.5,
    ...more,
  };
}

const measured = [sample(110, 4), sample(90, 9, { peakRssBytes: 50e6 })];
const peer = [sample(100, 8, { peakRssBytes: 120e6 }), sample(100, 8, { peakRssBytes: 25e6 })];
const ratios = compareRounds(measured, peer, 'request'); // CPU 0.750, requests/s 0.995, memory 1

test('ratios are computed per round', () => {
  const { cpu, rps, memory } = ratios;
  expect([cpu.min, cpu.max, rps.min, rps.max]).toEqual([0.5, 1.125, 0.9, 1.1]);
  expect([memory.min, memory.max]).toEqual([0.5, 2]);
  expect(cpu.ratio).toBeCloseTo(Math.sqrt(0.5 * 1.125), 12);
});

test('ratios of CPU time are per unit of work', () => {
  // The same CPU time for half the bytes is twice the cost.
  const [small, large] = [1e9, 2e9].map((bodyBytes) => [sample(100, 10, { bodyBytes })]);
  const cost = (unit: Row['unit']) => compareRounds(small ?? [], large ?? [], unit).cpu.ratio;
  expect(cost('MB of body')).toBeCloseTo(2, 12);
  expect(cost('handshake')).toBeCloseTo(1, 12);
});

test.each([
  [{ cpu: 0.74 }, 'NOT HELD'],
  [{ cpu: 0.76, rps: 0.99 }, 'held'],
  [{ rps: 1 }, 'NOT HELD'],
  [{ memory: 1.01 }, 'held'],
  [{ memory: 0.99 }, 'NOT HELD'],
  // The limit applies to every round, but not to the peer.
  [{ memoryBytes: 60e6 }, 'held'],
  [{ memoryBytes: 59e6 }, 'NOT HELD'],
] as const)('ratios: within %j: %s', (limits, verdict) => {
  expect(judge(ratios, limits, measured)).toBe(verdict);
});

test('the table shows ratios with limits', () => {
  const [loadgen, wrk] = [sample(98_000, 8), sample(100_000, 10)].map((each) => [each, each]);
  const ratios = compareRounds(loadgen ?? [], wrk ?? [], 'request');
  const table = (limits: Limits, arrangement: Row['arrangement'] = 'a core each') => {
    const against = { peer: 'wrk', ...ratios, limits, verdict: 'NOT HELD' } as const;
    const row = { experiment: 'http1', load: 'x', server: 'x', unit: 'request' } as const;
    return tableLines([
      { ...row, arrangement, generator: 'loadgen', samples: loadgen ?? [], against },
      { ...row, arrangement, generator: 'wrk', samples: wrk ?? [], against: null },
    ]);
  };
  const [, , cpuCell, ratio, limit] = table({ cpu: 0.7 });
  expect(cpuCell).toMatch(/^ {2}loadgen +1,000 +98,000 +8\.00 +60\.0 +97 % +50 %$/);
  expect(ratio).toMatch(/^ +CPU per request × 0\.800 \[0\.800, .* of wrk; requests\/s × 0\.980 \[/);
  expect(limit).toBe('    limit: CPU × 0.7 at most: NOT HELD');
  expect(table({ memory: 0.7 })[3]).toContain('; memory × 1.000 [1.000, 1.000]');
  expect(table({ memoryBytes: 200e6 })[4]).toContain('limit: memory 200 MB at most: ');
  expect(table({}, 'one core').join()).not.toMatch(/97 %|50 %/);
});

test('experiments have unique names and a known duration', () => {
  const byName = new Map(experiments.map((experiment) => [experiment.name, experiment]));
  expect(byName.size).toBe(experiments.length);
  const memory = byName.get('h2-memory') ?? expect.fail();
  // Two rounds of two generators, each with a fixed 40 s plus the start.
  expect(expectedSeconds(memory, { rounds: 6, duration: 8 })).toBeCloseTo(2 * 2 * 40.3, 6);
});

test('experiments are selected by name or prefix', () => {
  const names = ['h2-body', 'h2-memory', 'tls-http1', 'allocations'];
  expect(chosenNames([], names)).toEqual(names);
  expect(chosenNames(['h2'], names)).toEqual(['h2-body', 'h2-memory']);
  const twice = ['allocations', 'h2-memory', 'h2-memory'];
  expect(chosenNames(twice, names)).toEqual(['h2-memory', 'allocations']);
  // A prefix must end before a dash.
  expect(() => chosenNames(['h2', 'h2-mem'], names)).toThrow('did you mean h2-memory?');
  expect(() => chosenNames([''], names)).toThrow('there is no experiment ""');
});

test.each([
  ['h3', /there are \d+, such as h2-body, /],
  ['--duration 1.5', /^--duration 1\.5: wrk knows whole seconds only$/],
  ['proof', /^there is no experiment "proof"/],
])('bench %s is refused', async (line, message) => {
  const refused = { message: expect.stringMatching(message), exitCode: 2 };
  await expect(benchCommand(line.split(' '))).rejects.toMatchObject(refused);
});

test('experiments need the same TLS in every round', () => {
  const [h2, http1] = [{ tls: 'TLSv1.3 h2' }, { tls: 'TLSv1.3 http/1.1' }];
  const require = (mine: object[], peers: object[]) =>
    requireSameTls('one', new Map([[loadgen, mine]]).set(h2load, peers));
  require([h2, h2], [h2]);
  require([{}], [{}]);
  expect(() => require([h2], [h2, http1])).toThrow('h2load has TLSv1.3 http/1.1');
  expect(() => require([h2], [{}])).toThrow('h2load has none');
});
