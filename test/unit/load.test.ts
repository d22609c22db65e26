import { describe, expect, test } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { ab, fitLoad, wrk } from '../../lib/scenario/load.ts';

describe('wrk', () => {
  test("reads the article's line", () => {
    expect(wrk('-c 100 -t 10 -d 10')).toEqual({
      command: 'wrk -c 100 -t 10 -d 10', protocol: 'http/1.1', connections: 100, threads: 10, keepAlive: true, durationSeconds: 10,
    });
  });

  test.each([
    ['-c100 -t10 -d10s', 100, 10, 10],
    ['--connections 100 --threads=10 --duration 2m', 100, 10, 120],
    ['  -d 1h   -c 3 -t 3 http://127.0.0.1/', 3, 3, 3600],
    ['--latency', 10, 2, 10],
    ['', 10, 2, 10],
  ])('"%s" is %i connections, %i threads, %i s', (line, connections, threads, durationSeconds) => {
    expect(wrk(line)).toMatchObject({ connections, threads, durationSeconds });
  });

  test.each([
    ['-c 100 -s post.lua', /^wrk: -s cannot be honoured/],
    ['-H Accept:x', /^wrk: -H cannot be honoured/],
    ['-R 1000', /^wrk: -R cannot be honoured/],
    ['--timeout 2s', /^wrk: --timeout cannot be honoured/],
    ['--latency=yes', /^wrk: --latency cannot be honoured/],
    ['-c 5 -t 10', /-c 5 is less than -t 10/],
    ['-c 0', /-c 0 has to be a whole number above 0/],
    ['-c -5', /-c/],
    ['-t 1.5', /-t 1\.5/],
    ['-c 1k', /-c 1k/],
    ['-c 99999999999999999999', /-c 99999999999999999999/],
    ['-d 0', /-d 0 has to be a time/],
    ['-d 10ms', /-d 10ms/],
    ['-c', /-c needs a value/],
    ['-c 1 -t 1 -c 2', /-c is given twice/],
    ['-c 10 http://example.com/', /leave "http:\/\/example\.com\/" out/],
    ['100', /leave "100" out/],
  ])('"%s" is refused in one line', (line, message) => {
    const error = thrownBy(() => wrk(line));
    expect(error).toBeInstanceOf(UserError);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('\n');
  });
});

describe('ab', () => {
  test.each([
    ['-c 10 -n 1000', false],
    ['-k -c 10 -n 1000 -r', true],
    ['-kc10 -n1000', true],
  ])('"%s" is HTTP/1.0, kept alive: %s', (line, keepAlive) => {
    const { command, ...profile } = ab(line);
    expect(command).toBe(`ab ${line}`);
    expect(profile).toEqual({ protocol: 'http/1.0', connections: 10, threads: 1, keepAlive, requests: 1000 });
  });

  test.each([
    ['-c 10 -n 5', /-n 5 is less than -c 10/],
    ['-t 10', /^ab: -t cannot be honoured/],
    ['-n 10 -H X:y', /^ab: -H cannot be honoured/],
    ['-n 0', /-n 0/],
  ])('"%s" is refused', (line, message) => {
    expect(() => ab(line)).toThrow(message);
  });
});

describe('fitLoad', () => {
  const profile = wrk('-c 100 -t 10 -d 10');

  test('runs one thread per generator core, all connections, one second of warm-up', () => {
    expect(fitLoad(profile, { generatorCores: 1, exact: false })).toEqual({
      command: 'wrk -c 100 -t 10 -d 10', protocol: 'http/1.1', connections: 100, threads: 1, keepAlive: true, durationSeconds: 10, warmupSeconds: 1,
    });
  });

  test("never runs more threads than the article, and its number with exact", () => {
    expect(fitLoad(profile, { generatorCores: 64, exact: false }).threads).toBe(10);
    expect(fitLoad(profile, { generatorCores: 1, exact: true }).threads).toBe(10);
  });

  test('takes the duration that is asked for; quick shortens, and never lengthens', () => {
    expect(fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 3.5 }).durationSeconds).toBe(3.5);
    expect(fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds: 5, quick: true }).durationSeconds).toBe(5);
    expect(fitLoad(profile, { generatorCores: 1, exact: false, quick: true })).toMatchObject({ durationSeconds: 2, warmupSeconds: 0.5 });
    expect(fitLoad(wrk('-d 1'), { generatorCores: 1, exact: false, quick: true }).durationSeconds).toBe(1);
  });

  test('counts requests where the article does, without a warm-up', () => {
    const counted = ab('-c 10 -n 1000');
    expect(fitLoad(counted, { generatorCores: 4, exact: false })).toEqual({
      command: 'ab -c 10 -n 1000', protocol: 'http/1.0', connections: 10, threads: 1, keepAlive: false, requests: 1000, warmupSeconds: 0,
    });
    expect(fitLoad(counted, { generatorCores: 4, exact: false, quick: true })).toMatchObject({ requests: 100 });
    expect(fitLoad(ab('-c 10 -n 10'), { generatorCores: 4, exact: false, quick: true })).toMatchObject({ requests: 10 });
    const timed = fitLoad(counted, { generatorCores: 4, exact: false, durationSeconds: 2 });
    expect(timed).toMatchObject({ durationSeconds: 2, warmupSeconds: 1 });
    expect(timed).not.toHaveProperty('requests');
  });

  test.each([0, -1, NaN, Infinity])('refuses a duration of %d s', (durationSeconds) => {
    expect(() => fitLoad(profile, { generatorCores: 1, exact: false, durationSeconds })).toThrow(/longer than 0 s/);
  });

  test.each([0, -1, 1.5])('refuses %d generator cores', (generatorCores) => {
    expect(() => fitLoad(profile, { generatorCores, exact: false })).toThrow(/at least 1 core/);
  });
});

function thrownBy(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}
