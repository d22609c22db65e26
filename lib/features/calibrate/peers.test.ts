// The generators that people know: what is read of their output, and how they are run.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import {
  abPeer,
  h2loadPeer,
  loadgenWith,
  runGenerator,
  type PeerGenerator,
  type GeneratorLoad,
  type GeneratorRun,
} from './peers.ts';
import { readAb, readH2load, readK6, readOha, readVegeta, readWrk } from './printed.ts';
import { cpusOf, readProcessors } from '../../machine/processors.ts';
import { sharedFolder } from '../../../test/fixtures/new-folder.ts';

const load: GeneratorLoad = {
  protocol: 'h2',
  connections: 100,
  streams: 10,
  keepAlive: true,
  seconds: 8,
};
const url = 'https://127.0.0.1:8443/';

const wrkOutput = `Running 4s test @ http://127.0.0.1:18999/
    Latency     1.20ms  250.00us   9.00ms   88.00%
  Latency Distribution
     50%  980.00us
     75%    1.10ms
     90%    2.00ms
     99%    1.01s
  318123 requests in 4.00s, 258.00MB read
Requests/sec:  79530.75
`;

const abOutput = `Time taken for tests:   3.846 seconds
Complete requests:      60000
Failed requests:        0
Requests per second:    15602.20 [#/sec] (mean)
Time per request:       6.409 [ms] (mean)
Time per request:       0.064 [ms] (mean, across all concurrent requests)

Percentage of the requests served within a certain time (ms)
  50%      6
  99%     11
 100%     15 (longest request)
`;

/** Output of h2load 1.52, without progress lines. */
const h2loadOutput = `TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Server Temp Key: X25519 253 bits
Application protocol: h2

finished in 3.01s, 24209.00 req/s, 17.02MB/s
requests: 72627 total, 82627 started, 72627 done, 72627 succeeded, 0 failed, 0 errored, 0 timeout
traffic: 51.05MB (53530999) total, 7.41MB (7771089) headers (space savings 39.55%), 42.39MB (44447724) data
time for request:      103us     18.79ms       977us       391us    97.51%
time for connect:     6.32ms    237.34ms    128.72ms     68.62ms    52.00%
req/s           :     232.91      299.67      241.86       15.41    75.00%
`;

test('output of wrk', () => {
  expect(readWrk(wrkOutput)).toEqual({
    requests: 318_123,
    rps: 79_530.75,
    errors: 0,
    latencyMs: { mean: 1.2, p50: 0.98, p99: 1010 },
  });
  // wrk2 has more digits.
  const precise = wrkOutput.replace('50% ', '50.000% ').replace('99% ', '99.000% ');
  expect(readWrk(precise)).toEqual(readWrk(wrkOutput));
  const failed =
    'Socket errors: connect 1, read 20, write 300, timeout 4000\n Non-2xx or 3xx responses: 50000';
  expect(readWrk(`${wrkOutput}${failed}`).errors).toBe(54_321);
});

test('output of ab', () => {
  expect(readAb(abOutput)).toEqual({
    requests: 60_000,
    rps: 15_602.2,
    errors: 0,
    latencyMs: { mean: 6.409, p50: 6, p99: 11 },
  });
  const failing = abOutput.replace(/(Failed requests: +)0/, '$17\nNon-2xx responses:      5');
  expect(readAb(failing).errors).toBe(12);
});

test('output of k6', () => {
  const figures = { requests: 10, rps: 5.5, errors: 0 };
  expect(readK6(`noise\nFIGURES ${JSON.stringify(figures)}\n`)).toEqual(figures);
});

test('output of h2load', () => {
  expect(readH2load(h2loadOutput)).toEqual({
    requests: 72_627,
    rps: 24_209,
    errors: 0,
    bodyBytes: 44_447_724,
    latencyMs: { mean: 0.977 },
    tls: 'TLSv1.3 TLS_AES_128_GCM_SHA256 X25519 h2',
  });
  const read = (from: string | RegExp, to: string) => readH2load(h2loadOutput.replace(from, to));
  // Ten unfinished, and five with status 404, which h2load counts as failed.
  expect(read('27 done, 72627 succeeded, 0', '17 done, 72612 succeeded, 15').errors).toBe(15);
  expect(read('X25519 253', 'ECDH prime256v1 256').tls).toContain(' P-256 h2');
  expect(read(/^(TLS|Cipher|Server).*\n/gm, '')).not.toHaveProperty('tls');
  // A number with an exponent or group separator means another version.
  expect(() => read('24209.00 req/s', '24,209 req/s')).toThrow('is it another version?');
});

test('output of vegeta', () => {
  const report =
    '{"latencies":{"total":10000691640,"mean":10823259,"50th":10422296,"90th":11627410,"95th":12717964,"99th":17916275,"max":24484675,"min":10049325},"bytes_in":{"total":565488,"mean":612},"bytes_out":{"total":0,"mean":0},"requests":924,"rate":922.79,"throughput":913.36,"success":1,"status_codes":{"200":920,"503":4},"errors":["503 Service Unavailable"]}';
  expect(readVegeta(`${report}\n`)).toEqual({
    requests: 924,
    rps: 913.36,
    errors: 4,
    errorExample: '503 Service Unavailable',
    bodyBytes: 565_488,
    latencyMs: { mean: 10.823259, p50: 10.422296, p99: 17.916275 },
  });
});

test.each([readWrk, readAb, readK6, readH2load, readVegeta, readOha])(
  'output of another tool is refused',
  (read) => {
    expect(() => read('command not found')).toThrow('is it another version?');
  },
);

test.each<[string, Partial<GeneratorLoad>, string]>([
  ['over TLS', {}, '-t 1 -c 100 -m 10 -D 8'],
  ['at a rate', { rate: 250 }, '-t 1 -c 100 -m 10 --rps 2.5 -D 8'],
  ['HTTP/1.1', { protocol: 'http/1.1', streams: 1 }, '-t 1 --h1 -c 100 -m 1 -D 8'],
])('command line of h2load: %s', (_, changes, args) => {
  expect(h2loadPeer.command(url, { ...load, ...changes })).toEqual({
    args: [...args.split(' '), url],
  });
});

test('k6 gets the load as JSON', () => {
  const sent = (at: string, options = {}) => {
    const { env } = loadgenWith('bakeoff', options).command(at, load);
    return JSON.parse(env?.['LOAD'] as string) as object;
  };
  const { seconds: _, ...options } = load;
  const plain = { ...options, url: 'http://127.0.0.1/', duration: '8s' };
  expect(sent('http://127.0.0.1/')).toEqual(plain);
  expect(sent('http://127.0.0.1/', { spin: true })).toEqual({ ...plain, spin: true });
  expect(sent(url)).toEqual({ ...plain, url, tls: { insecureSkipVerify: true } });
});

test('ab ends after a time, and keeps connections if asked', () => {
  const lineOf = (of: GeneratorLoad) => abPeer.command('http://a/', of).args.join(' ');
  expect(lineOf({ ...load, keepAlive: false })).toBe('-q -c 100 -t 8 -n 10000000 http://a/');
  expect(lineOf(load)).toBe('-q -k -c 100 -t 8 -n 10000000 http://a/');
});

const folder = sharedFolder();
const file = join(folder, 'script.mjs');
async function scripted(
  script: string,
  more: Partial<PeerGenerator> = {},
  options: Partial<GeneratorRun> = {},
) {
  await writeFile(file, script);
  const command = () => ({ args: [file] });
  const usual: PeerGenerator = { name: 'scripted', tool: 'wrk', command, read: readWrk };
  return runGenerator({ ...usual, ...more }, url, load, {
    binary: process.execPath,
    cpus: cpusOf(readProcessors().cores).slice(0, 1),
    sharesCore: false,
    mostSeconds: 30,
    signal: new AbortController().signal,
    ...options,
  });
}
const latencyLines = '\\n Latency 1ms 1ms\\n 50% 1ms\\n 99% 2ms';
const wrkLines = `console.log("1000 requests in 1s\\\\nRequests/sec: 1000${latencyLines}");`;

test("a generator on the server's core runs under SCHED_BATCH", async () => {
  const script =
    "import { readFileSync } from 'node:fs'; const [, policy] = readFileSync('/proc/self/sched', 'utf8').match(/policy +: +(\\d)/);" +
    `console.log(policy + " requests in 1s\\\\nRequests/sec: 1000${latencyLines}");`;
  // SCHED_BATCH is 3, SCHED_OTHER 0 (sched.h).
  expect((await scripted(script, {}, { sharesCore: true })).requests).toBe(3);
  expect((await scripted(script)).requests).toBe(0);
});

test('a sample has the CPU time of the whole process', async () => {
  const busy = `const spent = () => process.cpuUsage().user + process.cpuUsage().system; while (spent() < 200_000); ${wrkLines}`;
  const { cpuMicrosPerRequest, ...printed } = await scripted(busy);
  expect(printed).toMatchObject({ requests: 1000, rps: 1000, errors: 0 });
  expect(cpuMicrosPerRequest).toBeGreaterThanOrEqual(200);
});

test('a generator that hangs is ended', async () => {
  const hanging = scripted('setInterval(() => undefined, 1000);', {}, { mostSeconds: 1 });
  await expect(hanging).rejects.toThrow('scripted had not ended after 1 s');
});

test('no program of the system is started by its name', async () => {
  const planted = join(folder, 'planted');
  await mkdir(planted);
  for (const name of ['bash', 'setpriv'])
    await writeFile(join(planted, name), '#!/bin/sh\nexit 42\n', { mode: 0o755 });
  vi.stubEnv('PATH', `${planted}:${process.env['PATH']}`);
  expect((await scripted(wrkLines)).requests).toBe(1000);
});

test('a generator that fails is reported by its last line', async () => {
  const failing = scripted('console.error("cannot connect"); process.exitCode = 3;');
  await expect(failing).rejects.toThrow('scripted ended with code 3: cannot connect');
});

test("a generator gets no K6_ variables of the user's shell", async () => {
  vi.stubEnv('K6_OUT', 'json=elsewhere');
  const read = vi.fn(readWrk);
  await scripted(`console.log(process.env.K6_OUT ?? null);${wrkLines}`, { read });
  expect(read.mock.calls[0]?.[0].split('\n')[0]).toBe('null');
});
