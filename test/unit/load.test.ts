import { expect, test } from 'vitest';
import { ab, h2load, vegeta, weighttp, wrk, type LoadProfile } from '../../lib/scenario/index.ts';
import { fitLoad, type FitOptions } from '../../lib/scenario/load.ts';
import { refused } from '../fixtures/refused.ts';

test('wrk accepts headers and a time-out', () => {
  const line = `--header="X-A: 'b'" -H Cookie:a=1 -H 'cookie: b=2' -H X-L:1 -H X-L:2 --timeout 3s`;
  expect(wrk(line)).toEqual({
    command: expect.any(String),
    protocol: 'http/1.1',
    connections: 10,
    threads: 2,
    keepAlive: true,
    durationSeconds: 10,
    timeoutSeconds: 3,
    headers: { 'X-A': "'b'", Cookie: 'a=1; b=2', 'X-L': '1, 2' },
  });
  const closing = wrk('-H "Connection: Close" -H X-Empty:');
  expect(closing).toMatchObject({ keepAlive: false, headers: { 'X-Empty': '' } });
  const { keepAlive, headers } = wrk('-H connection:keep-alive');
  expect([keepAlive, headers]).toEqual([true, undefined]);
});

test.each([
  ['-H Accept', /^wrk -H "Accept" has to be a header such as/],
  ['-H Host:a -H host:b', /^wrk -H "host:b": Host is given twice/],
  ['--latency=yes', /^wrk: --latency=yes cannot be honoured/],
  ['-c', /-c needs a value/],
  ['-c 1 -t 1 -c 2', /-c is given twice/],
  ['-c 10 http://example.com/', /leave "http:\/\/example\.com\/" out/],
])('wrk: "%s" is refused in one line', refused(wrk));

test.each([
  [ab, '-kc10 -n1000', { protocol: 'http/1.0', requests: 1000, timeoutSeconds: 30 }],
  [weighttp, '-kc10 -n 100000', { protocol: 'http/1.1', requests: 1e5, timeoutSeconds: 600 }],
])('kept alive with -k: %o %s', (generator, flags, expected) => {
  const load = generator(flags);
  expect(load).toMatchObject({ connections: 10, threads: 1, keepAlive: true, ...expected });
});

test.each([
  ['-t 10 -n 10', /^ab: -n and -t do not go together/],
  ['-n 1 -p .', /^ab -p \.: it is a folder$/],
])('ab: "%s" is refused in one line', refused(ab));

test('weighttp opens a connection per request without -k', () => {
  expect(weighttp('-n10 -t 1')).toMatchObject({ connections: 1, keepAlive: false });
});

test.each([
  ['-k -c 100', /^weighttp: give the number of requests/],
  ['-n 100 -c 2 -t 3', /connections 2 are fewer than threads 3/],
])('weighttp: "%s" is refused in one line', refused(weighttp));

const fit = (profile: LoadProfile, options: Partial<FitOptions> = {}) =>
  fitLoad(profile, { generatorCores: 1, exact: false, ...options });
const timed = wrk('-c 100 -t 10 -d 10');
const counted = ab('-c 10 -n 1000');
const rated = vegeta('-rate=1000 -duration=10s');
const slowRate = vegeta('-rate=200 -duration=10s');
const slower = vegeta('-rate=20 -duration=10s');
const responses = 1000;
const long = { ...ab('-c 1000 -n 1000000 -r'), secondsHere: 30, warmupSeconds: 3 };
const for2 = { durationSeconds: 2, requests: undefined };
const counts = { durationSeconds: undefined };
const cold = { warmupSeconds: 0 };

test('fitLoad sets one thread per generator core', () => {
  expect(fit(timed)).toEqual({
    command: timed.command,
    protocol: 'http/1.1',
    connections: 100,
    threads: 1,
    keepAlive: true,
    durationSeconds: 10,
    warmupSeconds: 1,
    warmupLimitSeconds: 30,
    streams: 1,
    timeoutSeconds: 5,
  });
  expect(fit(timed, { generatorCores: 64 }).threads).toBe(10);
  expect(fit(timed, { exact: true }).threads).toBe(10);
});

test('fitLoad keeps the fields of HTTP/2 loads', () => {
  const tls = { maxVersion: 'TLSv1.2' } as const;
  expect(
    fit(h2load('-n 100000 -c 1000 -t 16 -m 10', { tls }), { generatorCores: 3 }),
  ).toMatchObject({ connections: 1000, streams: 10, threads: 3, tls, timeoutSeconds: 600 });
  const slow = vegeta('-rate=10 -duration=2s', { bucketsMs: [1] });
  const fields = { bucketSeconds: [0.001], streams: 100, warmupSeconds: 0.402 };
  expect(fit(slow, { exact: true })).toMatchObject(fields);
  expect(fit(rated, { arrivals: 'poisson' })).toMatchObject({ arrivals: 'poisson' });
  expect(fit(timed, { arrivals: 'poisson' })).not.toHaveProperty('arrivals');
});

const step = { durationSeconds: 0.5, warmupSeconds: 0.1 };

test.each([
  ['a quick one', timed, { quick: true }, { durationSeconds: 2, warmupSeconds: 0.5 }],
  ['a quick count', counted, { quick: true }, { requests: 100 }],
  ['one in turns without a warm-up', timed, { inTurns: true, warmupSeconds: 0 }, cold],
  ['a rate with its warm-up', rated, { inTurns: true, warmupSeconds: 3 }, { warmupSeconds: 3 }],
  ['a load in steps with its warm-up', timed, { step, warmupSeconds: 3 }, { warmupSeconds: 3 }],
  ['a count with a duration', counted, { durationSeconds: 2 }, { ...for2, warmupSeconds: 1 }],
  ['hours, quick', long, { quick: true }, { durationSeconds: 3, warmupSeconds: 3 }],
  ['hours, quick, at least 2 s', { ...long, secondsHere: 8 }, { quick: true }, for2],
  ['one on shared cores', timed, { inTurns: true, sharesCores: true }, { durationSeconds: 1 }],
  ['a rate, quick', rated, { quick: true }, { rate: 1000, requests: 2000, ...counts }],
  ['a rate, long enough for its p99', slowRate, { inTurns: true, responses }, { requests: 1100 }],
  ['no rate that is too short anyway', slower, { inTurns: true, responses }, { requests: 40 }],
  ['a rate, as long as asked', slowRate, { responses, durationSeconds: 1 }, { requests: 200 }],
  ['a rate, one request at least', rated, { durationSeconds: 0.0001 }, { requests: 1 }],
])('fitLoad: %s', (_, profile, options: Partial<FitOptions>, expected) => {
  const { requests, durationSeconds, ...load } = fit(profile, options);
  // An explicit warm-up is kept, and a load by count has no warm-up.
  const isFixed =
    options.warmupSeconds !== undefined ||
    profile.warmupSeconds !== undefined ||
    options.sharesCores === true ||
    load.warmupSeconds === 0;
  const limitSeconds = options.quick === true ? 3 : 30;
  expect(load.warmupLimitSeconds).toBe(isFixed ? undefined : limitSeconds);
  expect({ ...load, requests, durationSeconds }).toMatchObject(expected);
});

test.each([
  ['-n 15 -c 10', 10, 'a request for each connection'],
  ['-n 100000 -c 100 -m 100', 40_000, 'all streams filled four times'],
  ['-n 100000 -c 1020 -m 1020', 10_000, 'a tenth, where the article never fills the streams'],
])('fitLoad: quick turns "%s" into %i requests: %s', (line, requests) => {
  expect(fit(h2load(line), { quick: true })).toMatchObject({ requests, warmupSeconds: 0 });
});
