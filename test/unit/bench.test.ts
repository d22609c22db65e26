import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { chosenNames } from '../../bench/bench.ts';
import {
  ab,
  h2load,
  loadgen,
  runContender,
  streamingLoadgen,
  twoLoadgens,
  type BenchLoad,
  type Contender,
  type RunOptions,
} from '../../bench/contenders.ts';
import { experiments } from '../../bench/experiments.ts';
import { expectedSeconds, requireSameTls } from '../../bench/measure.ts';
import { readAb, readH2load, readK6, readWrk } from '../../bench/printed.ts';
import {
  compareRounds,
  judge,
  tableLines,
  type Limits,
  type Measured,
  type Row,
} from '../../bench/ratios.ts';
import { instanceArguments } from '../../lib/runner/generators.ts';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';

const wrkOutput = `Running 4s test @ http://127.0.0.1:18999/
    Latency     1.20ms  250.00us   9.00ms   88.00%
  318123 requests in 4.00s, 258.00MB read
Requests/sec:  79530.75
`;

const abOutput = `Time taken for tests:   3.846 seconds
Complete requests:      60000
Failed requests:        0
Requests per second:    15602.20 [#/sec] (mean)
`;

/** Output of h2load 1.52, without progress lines. */
const h2loadOutput = `TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Server Temp Key: X25519 253 bits
Application protocol: h2

finished in 3.01s, 24209.00 req/s, 17.02MB/s
requests: 72627 total, 82627 started, 72627 done, 72627 succeeded, 0 failed, 0 errored, 0 timeout
traffic: 51.05MB (53530999) total, 7.41MB (7771089) headers (space savings 39.55%), 42.39MB (44447724) data
time for connect:     6.32ms    237.34ms    128.72ms     68.62ms    52.00%
req/s           :     232.91      299.67      241.86       15.41    75.00%
`;

test('output of wrk', () => {
  expect(readWrk(wrkOutput)).toEqual({ requests: 318_123, rps: 79_530.75, errors: 0 });
  const failed =
    'Socket errors: connect 1, read 20, write 300, timeout 4000\n Non-2xx or 3xx responses: 50000';
  expect(readWrk(`${wrkOutput}${failed}`).errors).toBe(54_321);
});

test('output of ab', () => {
  expect(readAb(abOutput)).toEqual({ requests: 60_000, rps: 15_602.2, errors: 0 });
  const failing = abOutput.replace(/(Failed requests: +)0/, '$17\nNon-2xx responses:      5');
  expect(readAb(failing).errors).toBe(12);
});

test('output of k6', () => {
  const part = { requests: 10, rps: 5.5, errors: 0 };
  const other = { requests: 5, rps: 2, errors: 1, cpuSeconds: 2 };
  const line = (of: object) => `BENCH ${JSON.stringify(of)}\n`;
  expect(readK6(`noise\n${line(part)}`)).toEqual(part);
  const both = { requests: 15, rps: 7.5, errors: 1, cpuSeconds: 3 };
  expect(readK6(line({ ...part, cpuSeconds: 1 }) + line(other))).toEqual(both);
});

test('output of h2load', () => {
  expect(readH2load(h2loadOutput)).toEqual({
    requests: 72_627,
    rps: 24_209,
    errors: 0,
    bodyBytes: 44_447_724,
    minConnectionRps: 232.91,
    tls: 'TLSv1.3 TLS_AES_128_GCM_SHA256 X25519 h2',
  });
  const read = (from: string | RegExp, to: string) => readH2load(h2loadOutput.replace(from, to));
  // Ten unfinished, and five with status 404, which h2load counts as failed.
  expect(read('27 done, 72627 succeeded, 0', '17 done, 72612 succeeded, 15').errors).toBe(15);
  expect(read('X25519 253', 'ECDH prime256v1 256').tls).toContain(' P-256 h2');
  expect(read(/^(TLS|Cipher|Server).*\n/gm, '')).not.toHaveProperty('tls');
  // A number with an exponent or group separator means another version.
  expect(() => read('24209.00 req/s', '24,209 req/s')).toThrow('is it another version?');
  // Runs are summed: 1000 requests in 2 s, then 1000 in 0.5 s.
  const run = (rps: string) => h2loadOutput.replaceAll('72627', '1000').replace('24209.00', rps);
  expect(readH2load(run('500.00') + run('2000.00'))).toMatchObject({ requests: 2000, rps: 800 });
});

test.each([readWrk, readAb, readK6, readH2load])('output of another tool is refused', (read) => {
  expect(() => read('command not found')).toThrow('is it another version?');
});

const load: BenchLoad = {
  protocol: 'h2',
  connections: 100,
  streams: 10,
  keepAlive: true,
  length: { seconds: 8 },
};
const url = 'https://127.0.0.1:8443/';

test.each<[string, Partial<BenchLoad>, string]>([
  ['over TLS', {}, '-t 1 -c 100 -m 10 -D 8'],
  ['HTTP/1.1', { protocol: 'http/1.1', streams: 1 }, '-t 1 --h1 -c 100 -m 1 -D 8'],
  ['a number', { length: { requests: 1000, runs: 8 } }, '-t 1 -c 100 -m 10 -n 1000'],
])('command line of h2load: %s', (_, changes, args) => {
  expect(h2load.command(url, { ...load, ...changes })).toEqual({
    args: [...args.split(' '), url],
    runs: changes.length === undefined ? 1 : 8,
  });
});

const sent = (contender: Contender, at: string, of: BenchLoad) =>
  JSON.parse(contender.command(at, of).env?.['LOAD'] as string) as Record<string, unknown>;

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

test('ab supports only a number of requests', () => {
  const counted = { ...load, keepAlive: false, length: { requests: 60 } };
  expect(ab.command('http://a/', counted).args.join(' ')).toBe('-q -c 100 -n 60 http://a/');
  expect(() => ab.command('http://a/', load)).toThrow('a number of requests only');
});

const folder = sharedFolder();
const file = join(folder, 'script.mjs');
async function scripted(
  script: string,
  more: Partial<Contender> = {},
  options: Partial<RunOptions> = {},
) {
  await writeFile(file, script);
  const command = () => ({ args: [file] });
  const usual: Contender = { name: 'scripted', tool: 'wrk', command, read: readWrk };
  return runContender({ ...usual, ...more }, url, load, {
    binary: process.execPath,
    cpus: cpusOf(readProcessors().cores).slice(0, 1),
    sharesCore: false,
    output: null,
    signal: new AbortController().signal,
    ...options,
  });
}
const wrkLines = 'console.log("1000 requests in 1s\\nRequests/sec: 1000");';

test("a generator on the server's core runs under SCHED_BATCH", async () => {
  const script =
    "import { readFileSync } from 'node:fs'; const [, policy] = readFileSync('/proc/self/sched', 'utf8').match(/policy +: +(\\d)/);" +
    'console.log(policy + " requests in 1s\\nRequests/sec: 1000");';
  // SCHED_BATCH is 3, SCHED_OTHER 0 (sched.h).
  expect((await scripted(script, {}, { sharesCore: true })).requests).toBe(3);
  expect((await scripted(script)).requests).toBe(0);
});

test('a sample sums the CPU time of repeated starts', async () => {
  const busy = `const spent = () => process.cpuUsage().user + process.cpuUsage().system; while (spent() < 100_000); ${wrkLines}`;
  const command = () => ({ args: [file], beside: [[file]], runs: 2 });
  const { cpuMicrosPerRequest, ...printed } = await scripted(busy, { command });
  expect(printed).toMatchObject({ requests: 1000, rps: 1000, errors: 0 });
  expect(cpuMicrosPerRequest).toBeGreaterThan(400);
});

test('a sample has the peak memory', async () => {
  const held = `let memory = Buffer.alloc(200e6, 1); setTimeout(() => { memory = null; globalThis.gc(); setTimeout(() => { ${wrkLines} }, 400); }, 400);`;
  const command = () => ({ args: ['--expose-gc', file] });
  const { peakRssBytes } = await scripted(held, { command });
  expect(peakRssBytes).toBeGreaterThan(200e6);
  expect(peakRssBytes).toBeLessThan(400e6);
});

test("a streaming generator gets the store's output, and no K6_ variables of the shell", async () => {
  vi.stubEnv('K6_OUT', 'json=elsewhere');
  const read = vi.fn(readWrk);
  const script = `console.log(JSON.stringify([process.argv.slice(2), process.env.K6_OUT ?? null, process.env.TOKEN ?? null]));${wrkLines}`;
  const output = { out: ['influxdb=url'], env: { TOKEN: 'x' } };
  for (const more of [{}, { streaming: true }] as const)
    await scripted(script, { read, ...more }, { output });
  expect(streamingLoadgen.streaming).toBe(true);
  const [usual, streaming] = read.mock.calls.map(([text]) => text.split('\n')[0]);
  expect(usual).toBe('[[],null,null]');
  expect(streaming).toBe('[["--out","influxdb=url"],null,"x"]');
});

test("without the start, CPU time is the generator's own figure", async () => {
  const read = (output: string) => ({ ...readWrk(output), cpuSeconds: 2 });
  const { cpuMicrosPerRequest } = await scripted(wrkLines, { withoutStart: true, read });
  expect(cpuMicrosPerRequest).toBe(2000);
});

test('a failure of an additional process is reported, too', async () => {
  const failing = join(folder, 'failing.mjs');
  await writeFile(failing, 'console.error("cannot connect"); process.exitCode = 3;');
  const command = () => ({ args: [file], beside: [[failing]] });
  await expect(scripted(wrkLines, { command })).rejects.toThrow(
    'ended with code 3: cannot connect',
  );
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
  const [one, other] = [1e9, 2e9].map((bodyBytes) => [sample(100, 10, { bodyBytes })]);
  const cost = (unit: Row['unit']) => compareRounds(one ?? [], other ?? [], unit).cpu.ratio;
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
  const [one, other] = [sample(98_000, 8), sample(100_000, 10)].map((each) => [each, each]);
  const ratios = compareRounds(one ?? [], other ?? [], 'request');
  const table = (limits: Limits, arrangement: Row['arrangement'] = 'a core each') => {
    const against = { peer: 'wrk', ...ratios, limits, verdict: 'NOT HELD' } as const;
    const row = { experiment: 'http1', load: 'x', server: 'x', unit: 'request' } as const;
    return tableLines([
      { ...row, arrangement, generator: 'loadgen', samples: one ?? [], against },
      { ...row, arrangement, generator: 'wrk', samples: other ?? [], against: null },
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

test('experiments need the same TLS in every round', () => {
  const [h2, http1] = [{ tls: 'TLSv1.3 h2' }, { tls: 'TLSv1.3 http/1.1' }];
  const require = (mine: object[], peers: object[]) =>
    requireSameTls('one', new Map([[loadgen, mine]]).set(h2load, peers));
  require([h2, h2], [h2]);
  require([{}], [{}]);
  expect(() => require([h2], [h2, http1])).toThrow('h2load has TLSv1.3 http/1.1');
  expect(() => require([h2], [{}])).toThrow('h2load has none');
});
