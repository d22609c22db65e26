// The generators of HTTP/1: wrk, ab and weighttp.
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { commandOf, parseFlags, positiveCount, positiveTime, requireConnectionEach, requireRequestEach } from './command-line.ts';
import { endlessTimeoutSeconds } from './timeouts.ts';

/** The articles' URLs: accepted and left out, since the address of the server that is started takes their place. */
const leftOut = ['http://127.0.0.1/', 'http://127.0.0.1'];

/**
 * The load of a wrk command line without the word "wrk", e.g. `-c 100 -t 10 -d 10`: HTTP/1.1, connections kept alive.
 * Flags that are left out have wrk's defaults (10 connections, 2 threads, 10 s). Throws UserError naming what cannot be honoured.
 */
export function wrk(line: string): LoadProfile {
  const flags = parseFlags({
    tool: 'wrk',
    line,
    leftOut,
    options: {
      connections: { type: 'string', short: 'c' },
      threads: { type: 'string', short: 't' },
      duration: { type: 'string', short: 'd' },
      latency: { type: 'boolean' }, // Percentiles are always shown.
    },
  });
  const connections = positiveCount('wrk -c', flags.get('connections') ?? '10');
  const threads = positiveCount('wrk -t', flags.get('threads') ?? '2');
  requireConnectionEach('wrk', connections, threads);
  const durationSeconds = positiveTime('wrk -d', flags.get('duration') ?? '10');
  return { command: commandOf('wrk', line), protocol: 'http/1.1', connections, threads, keepAlive: true, durationSeconds };
}

/**
 * The load of an ab command line without the word "ab", e.g. `-c 10 -n 1000 -k`: HTTP/1.0, a new connection for each
 * request unless -k. -r is what the engine does anyway (it goes on after errors). Throws UserError naming what cannot be honoured.
 */
export function ab(line: string): LoadProfile {
  const flags = parseFlags({
    tool: 'ab',
    line,
    leftOut,
    options: {
      c: { type: 'string', short: 'c' },
      n: { type: 'string', short: 'n' },
      k: { type: 'boolean', short: 'k' },
      r: { type: 'boolean', short: 'r' },
    },
  });
  const connections = positiveCount('ab -c', flags.get('c') ?? '1');
  const requests = positiveCount('ab -n', flags.get('n') ?? '1');
  requireRequestEach('ab', requests, connections);
  return { command: commandOf('ab', line), protocol: 'http/1.0', connections, threads: 1, keepAlive: flags.has('k'), requests };
}

/**
 * The load of a weighttp command line without the word "weighttp", e.g. `-k -c 100 -n 100000`: HTTP/1.1, a new connection
 * for each request unless -k; 1 connection and 1 thread unless told. Throws UserError naming what cannot be honoured.
 */
export function weighttp(line: string): LoadProfile {
  const flags = parseFlags({
    tool: 'weighttp',
    line,
    leftOut,
    options: {
      n: { type: 'string', short: 'n' },
      c: { type: 'string', short: 'c' },
      t: { type: 'string', short: 't' },
      k: { type: 'boolean', short: 'k' },
    },
  });
  const asked = flags.get('n');
  if (asked === undefined) throw new UserError('weighttp: give the number of requests, such as -n 100000');
  const requests = positiveCount('weighttp -n', asked);
  const connections = positiveCount('weighttp -c', flags.get('c') ?? '1');
  const threads = positiveCount('weighttp -t', flags.get('t') ?? '1');
  requireRequestEach('weighttp', requests, connections);
  requireConnectionEach('weighttp', connections, threads);
  return {
    command: commandOf('weighttp', line), protocol: 'http/1.1', connections, threads, keepAlive: flags.has('k'), requests,
    timeoutSeconds: endlessTimeoutSeconds,
  };
}
