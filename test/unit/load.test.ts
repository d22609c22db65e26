import { describe, expect, test } from 'vitest';
import { ab, h2load, vegeta, weighttp, wrk } from '../../lib/scenario/index.ts';
import { fitLoad } from '../../lib/scenario/load.ts';
import { refused } from '../fixtures/refused.ts';

describe('wrk', () => {
  test("reads the article's line", () => {
    expect(wrk('-c 100 -t 10 -d 10')).toEqual({
      command: 'wrk -c 100 -t 10 -d 10',
      protocol: 'http/1.1',
      connections: 100,
      threads: 10,
      keepAlive: true,
      durationSeconds: 10,
    });
  });

  test.each([
    ['-c100 -t10 -d10s', 100, 10, 10],
    ['--connections 100 --threads=10 --duration 2m', 100, 10, 120],
    ['  -d 1h   -c 3 -t 3', 3, 3, 3600],
    ['--latency', 10, 2, 10],
    ['', 10, 2, 10],
    ['-c 1k -t 2 -d 5', 1000, 2, 5],
  ])('"%s" is %i connections, %i threads, %i s', (line, connections, threads, durationSeconds) => {
    expect(wrk(line)).toMatchObject({ connections, threads, durationSeconds });
  });

  test('takes headers, of which Connection says whether connections are kept, and a time-out', () => {
    expect(
      wrk(
        `-H 'Accept-Encoding: gzip' --header="X-A: 'b'" -H Cookie:a=1 -H 'cookie: b=2' -H X-L:1 -H X-L:2 --timeout 3s`,
      ),
    ).toEqual({
      command: `wrk -H 'Accept-Encoding: gzip' --header="X-A: 'b'" -H 'Cookie: ***' -H 'cookie: ***' -H X-L:1 -H X-L:2 --timeout 3s`,
      protocol: 'http/1.1',
      connections: 10,
      threads: 2,
      keepAlive: true,
      durationSeconds: 10,
      timeoutSeconds: 3,
      headers: { 'Accept-Encoding': 'gzip', 'X-A': "'b'", Cookie: 'a=1; b=2', 'X-L': '1, 2' },
    });
    const closing = wrk('-H "Connection: Close" -H X-Empty:');
    expect(closing).toMatchObject({ keepAlive: false, headers: { 'X-Empty': '' } });
    expect(wrk('-H connection:keep-alive')).toMatchObject({ keepAlive: true });
    expect(wrk('-H connection:keep-alive')).not.toHaveProperty('headers');
  });

  test.each([
    ['-c 100 -s post.lua', /^wrk: -s cannot be honoured/],
    ['-R 1000x', /^wrk -R 1000x has to be a whole number above 0/],
    ['--timeout 2ms', /^wrk --timeout 2ms has to be a time/],
    ['-H Accept', /^wrk -H "Accept" has to be a header such as/],
    ['-H ": x"', /^wrk -H ": x" has to be a header/],
    ['-H "a b: x"', /^wrk -H "a b: x": "a b" is not a header name/],
    [
      '-H Content-Length:5',
      /^wrk -H "Content-Length:5": Content-Length is set by the load generator/,
    ],
    ['-H "Connection: Upgrade"', /Connection is set by/],
    ['-H Host:a -H host:b', /^wrk -H "host:b": Host is given twice/],
    ['--latency=yes', /^wrk: --latency=yes cannot be honoured/],
    ['-c 5 -t 10', /-c 5 is less than -t 10/],
    ['-c 0', /-c 0 has to be a whole number above 0/],
    ['-c -5', /-c/],
    ['-t 1.5', /-t 1\.5/],
    ['-c 1x', /-c 1x/],
    ['-c 0k', /-c 0 has to be/],
    ['-c 99999999999999999999', /-c 99999999999999999999/],
    ['-d 0', /-d 0 has to be a time/],
    ['-d 10ms', /-d 10ms/],
    ['-c', /-c needs a value/],
    ['-c 1 -t 1 -c 2', /-c is given twice/],
    ['-c 10 http://example.com/', /leave "http:\/\/example\.com\/" out/],
    ['100', /leave "100" out/],
  ])('"%s" is refused in one line', refused(wrk));
});

describe('ab', () => {
  test.each([
    ['-c 10 -n 1000', false],
    ['-k -c 10 -n 1000 -r', true],
    ['-kc10 -n1000', true],
  ])('"%s" is HTTP/1.0, kept alive: %s', (line, keepAlive) => {
    const { command, ...profile } = ab(line);
    expect(command).toBe(`ab ${line}`);
    expect(profile).toEqual({
      protocol: 'http/1.0',
      connections: 10,
      threads: 1,
      keepAlive,
      requests: 1000,
      timeoutSeconds: 30,
    });
  });

  test.each([
    ['-c 10 -n 5', /-n 5 is less than -c 10/],
    ['-t 10 -n 10', /^ab: -n and -t do not go together/],
    ['-t 10s', /^ab -t 10s has to be a whole number/],
    ['-n 1 -X proxy:80', /^ab: -X cannot be honoured/],
    ['-n 1 -m get', /^ab -m get has to be a method/],
    ['-n 1 -i -p nothing', /^ab: -i and -p do not go together/],
    ['-n 1 -T text/html', /^ab: -T is for a body/],
    ['-n 1 -p nothing.json', /^ab -p nothing\.json: there is no such file/],
    ['-n 1 -p .', /^ab -p \.: illegal operation on a directory/],
    ['-n 0', /-n 0/],
  ])('"%s" is refused in one line', refused(ab));
});

describe('weighttp', () => {
  test("reads the article's line: HTTP/1.1, kept alive", () => {
    expect(weighttp('-k -c 100 -n 100000')).toEqual({
      command: 'weighttp -k -c 100 -n 100000',
      protocol: 'http/1.1',
      connections: 100,
      threads: 1,
      keepAlive: true,
      requests: 100_000,
      timeoutSeconds: 600,
    });
  });

  test('has one connection per request without -k', () => {
    expect(weighttp('-n 10 -c 4 -t 2')).toMatchObject({
      connections: 4,
      threads: 2,
      keepAlive: false,
      requests: 10,
    });
    expect(weighttp('-kn10')).toMatchObject({
      connections: 1,
      threads: 1,
      keepAlive: true,
      requests: 10,
    });
  });

  test.each([
    ['-k -c 100', /^weighttp: give the number of requests/],
    ['-n 99 -c 100', /-n 99 is less than -c 100/],
    ['-n 100 -c 2 -t 3', /-c 2 is less than -t 3/],
    ['-z -n 1', /^weighttp: -z cannot be honoured here; these can: /],
    ['-n 1 -H X', /^weighttp -H "X" has to be a header/],
    ['-n 0', /-n 0 has to be a whole number above 0/],
  ])('"%s" is refused in one line', refused(weighttp));
});

describe('fitLoad', () => {
  const profile = wrk('-c 100 -t 10 -d 10');

  test('runs one thread per generator core, all connections, one second of warm-up', () => {
    expect(fitLoad(profile, { generatorCores: 1, exact: false })).toEqual({
      command: 'wrk -c 100 -t 10 -d 10',
      protocol: 'http/1.1',
      connections: 100,
      threads: 1,
      keepAlive: true,
      durationSeconds: 10,
      warmupSeconds: 1,
      streams: 1,
      timeoutSeconds: 5,
    });
  });

  test('never runs more threads than the article, and its number with exact', () => {
    expect(fitLoad(profile, { generatorCores: 64, exact: false }).threads).toBe(10);
    expect(fitLoad(profile, { generatorCores: 1, exact: true }).threads).toBe(10);
  });

  test('takes the duration that is asked for; quick shortens, and never lengthens', () => {
    expect(
      fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 3.5 }).durationSeconds,
    ).toBe(3.5);
    expect(
      fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 5, quick: true })
        .durationSeconds,
    ).toBe(5);
    expect(fitLoad(profile, { generatorCores: 1, exact: false, quick: true })).toMatchObject({
      durationSeconds: 2,
      warmupSeconds: 0.5,
    });
    expect(
      fitLoad(wrk('-d 1'), { generatorCores: 1, exact: false, quick: true }).durationSeconds,
    ).toBe(1);
  });

  test('counts requests where the article does, without a warm-up', () => {
    const counted = ab('-c 10 -n 1000');
    expect(fitLoad(counted, { generatorCores: 4, exact: false })).toEqual({
      command: 'ab -c 10 -n 1000',
      protocol: 'http/1.0',
      connections: 10,
      threads: 1,
      keepAlive: false,
      requests: 1000,
      warmupSeconds: 0,
      streams: 1,
      timeoutSeconds: 30,
    });
    expect(fitLoad(counted, { generatorCores: 4, exact: false, quick: true })).toMatchObject({
      requests: 100,
    });
    expect(
      fitLoad(ab('-c 10 -n 10'), { generatorCores: 4, exact: false, quick: true }),
    ).toMatchObject({ requests: 10 });
    const timed = fitLoad(counted, { generatorCores: 4, exact: false, durationSeconds: 2 });
    expect(timed).toMatchObject({ durationSeconds: 2, warmupSeconds: 1 });
    expect(timed).not.toHaveProperty('requests');
  });

  test('takes a window instead of requests that would take hours; all of them with exact', () => {
    const long = {
      ...ab('-c 1000 -n 1000000 -r'),
      secondsHere: 30,
      warmupSeconds: 3,
      expectedRps: 1200,
    };
    const fitted = (options: object, profile = long): object => {
      const { requests, durationSeconds, warmupSeconds } = fitLoad(profile, {
        generatorCores: 1,
        exact: false,
        ...options,
      });
      return { requests, durationSeconds, warmupSeconds };
    };
    expect(fitted({})).toEqual({ durationSeconds: 30, warmupSeconds: 3 });
    expect(fitted({ quick: true })).toEqual({ durationSeconds: 3, warmupSeconds: 3 });
    expect(fitted({ quick: true }, { ...long, secondsHere: 8 })).toMatchObject({
      durationSeconds: 2,
    });
    expect(fitted({ quick: true }, { ...long, secondsHere: 1 })).toMatchObject({
      durationSeconds: 1,
    });
    expect(fitted({ durationSeconds: 40, quick: true })).toEqual({
      durationSeconds: 40,
      warmupSeconds: 3,
    });
    expect(fitted({ exact: true })).toEqual({ requests: 1_000_000, warmupSeconds: 0 });
    expect(fitted({ exact: true, quick: true })).toEqual({ requests: 100_000, warmupSeconds: 0 });
    expect(fitted({ exact: true, durationSeconds: 7 })).toEqual({
      durationSeconds: 7,
      warmupSeconds: 3,
    });
    expect(fitLoad(long, { generatorCores: 1, exact: false })).toMatchObject({
      command: 'ab -c 1000 -n 1000000 -r',
      expectedRps: 1200,
    });
  });

  test('hands on what HTTP/2 loads have: streams, TLS, buckets, time-out; connections and streams as published', () => {
    const tls = { maxVersion: 'TLSv1.2' } as const;
    expect(
      fitLoad(h2load('-n 100000 -c 1000 -t 16 -m 10', { tls }), {
        generatorCores: 3,
        exact: false,
      }),
    ).toEqual({
      command: 'h2load -n 100000 -c 1000 -t 16 -m 10',
      protocol: 'h2',
      connections: 1000,
      streams: 10,
      threads: 3,
      keepAlive: true,
      tls,
      timeoutSeconds: 600,
      requests: 100_000,
      warmupSeconds: 0,
    });
    const rated = fitLoad(vegeta('-rate=10 -duration=2s', { bucketsMs: [1] }), {
      generatorCores: 1,
      exact: true,
    });
    expect(rated).toMatchObject({
      rate: 10,
      requests: 20,
      bucketSeconds: [0.001],
      streams: 100,
      threads: 1,
      timeoutSeconds: 30,
      warmupSeconds: 0.402,
    });
  });

  test.each([
    ['-n 100000 -c 1000', 10_000, 'a tenth'],
    ['-n 10 -c 10', 10, 'a request for each connection'],
    ['-n 15 -c 10', 10, 'a request for each connection'],
    ['-n 100000 -c 100 -m 100', 40_000, 'all streams filled four times'],
    ['-n 20000 -c 100 -m 100', 20_000, 'as often as the article, where that is less'],
    ['-n 25000 -c 100 -m 100', 20_000, 'whole fillings'],
    ['-n 100000 -c 1020 -m 1020', 10_000, 'a tenth, where the article never fills the streams'],
    ['-n 1 -c 1 -m 100', 1, 'all of one'],
  ])('quick makes of "%s" %i requests: %s', (line, requests) => {
    expect(fitLoad(h2load(line), { generatorCores: 1, exact: false, quick: true })).toMatchObject({
      requests,
      warmupSeconds: 0,
    });
  });

  test('quick and a duration change how long a rate lasts, not the rate', () => {
    const profile = vegeta('-rate=1000 -duration=10s');
    expect(fitLoad(profile, { generatorCores: 1, exact: false, quick: true })).toMatchObject({
      rate: 1000,
      requests: 2000,
    });
    expect(
      fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 0.5 }),
    ).toMatchObject({ rate: 1000, requests: 500 });
    expect(
      fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 30, quick: true }),
    ).toMatchObject({ rate: 1000, requests: 30_000 });
    expect(fitLoad(profile, { generatorCores: 1, exact: false })).not.toHaveProperty('arrivals');
    expect(
      fitLoad(profile, { generatorCores: 1, exact: false, arrivals: 'poisson' }),
    ).toMatchObject({ rate: 1000, arrivals: 'poisson' });
    expect(
      fitLoad(wrk('-c 1 -t 1 -d 1'), { generatorCores: 1, exact: false, arrivals: 'poisson' }),
    ).not.toHaveProperty('arrivals');
    expect(
      fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 0.0001 }),
    ).toMatchObject({ requests: 1 });
    expect(
      fitLoad(vegeta('-rate=10 -duration=1s'), { generatorCores: 1, exact: false, quick: true }),
    ).toMatchObject({ requests: 10 });
    for (const options of [{}, { quick: true }, { durationSeconds: 3 }]) {
      expect(fitLoad(profile, { generatorCores: 1, exact: false, ...options })).not.toHaveProperty(
        'durationSeconds',
      );
    }
  });

  test('a duration takes the place of an HTTP/2 count', () => {
    const load = fitLoad(h2load('-n 100000 -c 100 -m 10'), {
      generatorCores: 1,
      exact: false,
      durationSeconds: 3,
    });
    expect(load).toMatchObject({ durationSeconds: 3, warmupSeconds: 1, streams: 10 });
    expect(load).not.toHaveProperty('requests');
  });

  test("keeps a warm-up of the article's own; quick shortens it", () => {
    const profile = h2load('-c 10 -D 30 --warm-up-time=5s');
    expect(fitLoad(profile, { generatorCores: 1, exact: false })).toMatchObject({
      durationSeconds: 30,
      warmupSeconds: 5,
    });
    expect(fitLoad(profile, { generatorCores: 1, exact: false, quick: true })).toMatchObject({
      durationSeconds: 2,
      warmupSeconds: 0.5,
    });
    const short = h2load('-D 1s --warm-up-time=100ms');
    expect(fitLoad(short, { generatorCores: 1, exact: false, quick: true })).toMatchObject({
      durationSeconds: 1,
      warmupSeconds: 0.1,
    });
  });
});
