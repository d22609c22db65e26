// The generators of HTTP/1: wrk, ab and weighttp.
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import {
  loadOfFlags,
  toggle,
  valued,
  type Flags,
  type Generator,
  type LoadOfFlags,
} from './command-line.ts';
import { headersOf } from './headers.ts';
import {
  atRate,
  bodyOfFile,
  endlessTimeoutSeconds,
  metricCount,
  positiveCount,
  positiveTime,
  requestMethod,
  requireOneEach,
} from './values.ts';

/**
 * The load of a wrk command line without the word "wrk", e.g. `-c 100 -t 10 -d 10`: HTTP/1.1, kept connections, with wrk2's -R at a rate.
 * Defaults are wrk's. Throws UserError naming what cannot be honoured.
 */
export function wrk(line: string): LoadProfile {
  return loadOfFlags(wrkGenerator, line);
}

const noScripts =
  'no script is run. Several pages are --urls FILE, headers -H; for another method or a body take a line of ab (-m, -p, -u) or h2load (-d)';

/** @internal */
export const wrkGenerator: Generator = {
  name: 'wrk',
  instead: { s: noScripts, script: noScripts },
  options: {
    connections: valued('c'),
    threads: valued('t'),
    duration: valued('d'),
    header: { ...valued('H'), multiple: true },
    timeout: valued(),
    rate: valued('R'), // wrk2's, whose program is mostly called wrk.
    latency: toggle(), // Percentiles are always shown.
    // Short for --timeout and --latency, which its help leaves out.
    T: valued('T'),
    L: toggle('L'),
  },
  load(flags) {
    const connections = metricCount('wrk -c', flags.get('connections') ?? '10');
    const threads = metricCount('wrk -t', flags.get('threads') ?? '2');
    requireOneEach('wrk', { connections, threads });
    const durationSeconds = positiveTime('wrk -d', flags.get('duration') ?? '10');
    const [timeout, rate] = [flags.get('timeout') ?? flags.get('T'), flags.get('rate')];
    return {
      protocol: 'http/1.1',
      connections,
      threads,
      keepAlive: true,
      ...(rate === undefined
        ? { durationSeconds }
        : atRate('wrk -R', metricCount('wrk -R', rate), durationSeconds)),
      ...(timeout === undefined ? {} : { timeoutSeconds: positiveTime('wrk --timeout', timeout) }),
      ...headersOf('wrk -H', flags.all('header'), 'http/1.1'),
    };
  },
};

/**
 * The load of an ab command line without the word "ab", e.g. `-c 10 -n 1000 -k`: HTTP/1.0, a new connection for each
 * request unless -k. -r is what the engine does anyway (it goes on after errors). Throws UserError naming what cannot be honoured.
 */
export function ab(line: string): LoadProfile {
  return loadOfFlags(abGenerator, line);
}

/** @internal */
export const abGenerator: Generator = {
  name: 'ab',
  secretOptions: ['A', 'C'],
  options: {
    c: valued('c'),
    n: valued('n'),
    t: valued('t'),
    s: valued('s'),
    k: toggle('k'),
    H: { ...valued('H'), multiple: true },
    C: { ...valued('C'), multiple: true },
    A: valued('A'),
    m: valued('m'),
    i: toggle('i'),
    p: valued('p'),
    u: valued('u'),
    T: valued('T'),
    r: toggle('r'),
    l: toggle('l'),
    q: toggle('q'), // About the answers' lengths and the output.
  },
  load(flags) {
    const connections = positiveCount('ab -c', flags.get('c') ?? '1');
    return {
      protocol: 'http/1.0',
      connections,
      threads: 1,
      keepAlive: flags.has('k'),
      ...lengthOfAb(flags, connections),
      timeoutSeconds: positiveCount('ab -s', flags.get('s') ?? '30'),
      ...requestOfAb(flags),
    };
  },
};

function lengthOfAb(
  flags: Flags,
  connections: number,
): Pick<LoadOfFlags, 'requests' | 'durationSeconds'> {
  const limit = flags.get('t');
  if (limit === undefined) {
    const requests = positiveCount('ab -n', flags.get('n') ?? '1');
    requireOneEach('ab', { requests, connections });
    return { requests };
  }
  if (flags.has('n'))
    throw new UserError(
      'ab: -n and -t do not go together (ab ends with whichever comes first): leave one out',
    );
  return { durationSeconds: positiveCount('ab -t', limit) };
}

function requestOfAb(flags: Flags): Pick<LoadOfFlags, 'method' | 'headers' | 'body'> {
  const ways = ['i', 'p', 'u'].filter((flag) => flags.has(flag));
  if (ways.length > 1)
    throw new UserError(`ab: -${ways[0]} and -${ways[1]} do not go together: leave one out`);
  const file = flags.get('p') ?? flags.get('u');
  const type = flags.get('T');
  if (type !== undefined && file === undefined)
    throw new UserError('ab: -T is for a body: give one with -p or -u, or leave it out');
  const custom = flags.get('m');
  const method =
    custom === undefined
      ? { i: 'HEAD', p: 'POST', u: 'PUT' }[ways[0] ?? '']
      : requestMethod('ab -m', custom);
  const [account, lines] = [flags.get('A'), flags.all('H')];
  return {
    ...(method === undefined ? {} : { method }),
    ...headersOf(
      'ab -H',
      [
        ...lines,
        ...flags.all('C').map((cookie) => `Cookie: ${cookie}`),
        ...(account === undefined
          ? []
          : [`Authorization: Basic ${Buffer.from(account).toString('base64')}`]),
        ...(file === undefined || lines.some((line) => /^\s*content-type\s*:/i.test(line))
          ? []
          : [`Content-Type: ${type ?? 'text/plain'}`]),
      ],
      'http/1.0',
    ),
    ...(file === undefined ? {} : { body: bodyOfFile(`ab -${ways[0]}`, file) }),
  };
}

/**
 * The load of a weighttp command line without the word "weighttp", e.g. `-k -c 100 -n 100000`: HTTP/1.1, a new connection
 * for each request unless -k; 1 connection and 1 thread unless told. Throws UserError naming what cannot be honoured.
 */
export function weighttp(line: string): LoadProfile {
  return loadOfFlags(weighttpGenerator, line);
}

/** @internal */
export const weighttpGenerator: Generator = {
  name: 'weighttp',
  options: {
    n: valued('n'),
    c: valued('c'),
    t: valued('t'),
    k: toggle('k'),
    H: { ...valued('H'), multiple: true },
  },
  load(flags) {
    const asked = flags.get('n');
    if (asked === undefined)
      throw new UserError('weighttp: give the number of requests, such as -n 100000');
    const requests = positiveCount('weighttp -n', asked);
    const connections = positiveCount('weighttp -c', flags.get('c') ?? '1');
    const threads = positiveCount('weighttp -t', flags.get('t') ?? '1');
    requireOneEach('weighttp', { requests, connections, threads });
    return {
      protocol: 'http/1.1',
      connections,
      threads,
      keepAlive: flags.has('k'),
      requests,
      timeoutSeconds: endlessTimeoutSeconds,
      ...headersOf('weighttp -H', flags.all('H'), 'http/1.1'),
    };
  },
};
