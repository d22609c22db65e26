// vegeta: requests at a constant rate, whether or not earlier ones are answered.
import { UserError } from '../../errors.ts';
import type { LoadProfile, TlsOffer } from '../model.ts';
import { commandOf, parseFlags, positiveCount } from './command-line.ts';

/** What stands in other places than vegeta's attack command. */
export interface VegetaOptions {
  /** The buckets as its report names them: `hist[0,.15ms,.3ms]` or `[0,.15ms,.3ms]`; each begins at its number. */
  buckets?: string;
  /** What its TLS library offered. */
  tls?: TlsOffer;
}

/** Its HTTP/2 client sends all on one connection, and keeps to the server's own limit, which is 100 to 128 in the servers here. */
const connections = 1;
const streams = 100;

/**
 * The load of a vegeta command line without the words "vegeta attack", e.g. `-http2 -rate=1000 -duration=10s`: HTTP/2 over
 * TLS, rate × duration requests in all, every one awaited. Left out, -rate is 50 and -timeout 30s, as in vegeta. -http2 and
 * -insecure are what happens anyway; -connections bounds idle connections, and one is never more than that. Throws
 * UserError naming what cannot be honoured.
 */
export function vegeta(line: string, { buckets, tls }: VegetaOptions = {}): LoadProfile {
  const flags = parseFlags({
    tool: 'vegeta',
    line,
    leftOut: ['attack'],
    oneDash: true,
    options: {
      http2: { type: 'boolean' },
      insecure: { type: 'boolean' },
      duration: { type: 'string' },
      rate: { type: 'string' },
      connections: { type: 'string' },
      timeout: { type: 'string' },
    },
  });
  const duration = flags.get('duration');
  if (duration === undefined) throw new UserError('vegeta: give a -duration such as -duration=10s: without one it never ends');
  const rate = requestsPerSecond(flags.get('rate') ?? '50');
  const idle = flags.get('connections');
  if (idle !== undefined) positiveCount('vegeta -connections', idle);
  // Whole nanoseconds: 100/s for .29s are 29, which 100 * .29 is not.
  const requests = Math.floor((rate * Math.round(positiveSeconds('vegeta -duration', duration) * 1e9)) / 1e9);
  if (requests < 1 || !Number.isSafeInteger(requests)) {
    throw new UserError(`vegeta: -rate=${rate} for -duration=${duration} is ${requests < 1 ? 'no request at all' : 'more requests than can be counted'}`);
  }
  return {
    command: commandOf('vegeta attack', line.replace(/^\s*attack\b/, '')), protocol: 'h2', connections, streams, rate,
    ...(buckets === undefined ? {} : { bucketSeconds: upperEnds(buckets) }),
    ...(tls === undefined ? {} : { tls }),
    timeoutSeconds: positiveSeconds('vegeta -timeout', flags.get('timeout') ?? '30s'),
    threads: 1, keepAlive: true, requests,
  };
}

function requestsPerSecond(text: string): number {
  const [, count] = /^(\d+)(?:\/1?s)?$/.exec(text) ?? [];
  if (count === undefined) throw new UserError(`vegeta -rate ${text} has to be requests per second, such as 1000 or 1000/s`);
  return positiveCount('vegeta -rate', count);
}

function positiveSeconds(flag: string, text: string): number {
  const seconds = goDurationSeconds(text);
  if (seconds === undefined || seconds <= 0) throw new UserError(`${flag} ${text} has to be a time such as 10s, 500ms or 1m30s`);
  return seconds;
}

/**
 * The upper ends, in seconds, of vegeta's buckets: all numbers but the 0 that the first bucket begins with. Like vegeta it
 * puts that 0 in where it is missing.
 */
function upperEnds(text: string): number[] {
  const [, list] = /^(?:hist)?\[(.*)\]$/.exec(text.trim()) ?? [];
  const bounds = list?.split(',').map((bound) => goDurationSeconds(bound.trim())) ?? [];
  const ends = bounds[0] === 0 ? bounds.slice(1) : bounds;
  const ascending = ends.every((end, index) => end !== undefined && end > (ends[index - 1] ?? 0));
  if (ends.length === 0 || !ascending) throw new UserError(`vegeta: buckets have to be ascending times such as [0,.15ms,1ms], not ${text}`);
  return ends as number[];
}

const nanosecondsPerUnit: Record<string, number> = { h: 3600e9, m: 60e9, s: 1e9, ms: 1e6, us: 1e3, 'µs': 1e3, 'μs': 1e3, ns: 1 };

/** Seconds of Go's notation: `10s`, `.15ms`, `1m30s`, and `0`; undefined for all else. Whole nanoseconds, as in Go. */
function goDurationSeconds(text: string): number | undefined {
  if (text === '0') return 0;
  const part = /(\d+\.?\d*|\.\d+)(h|ms|m|s|us|µs|μs|ns)/g;
  if (text === '' || text.replace(part, '') !== '') return undefined;
  let nanoseconds = 0;
  for (const [, number, unit = ''] of text.matchAll(part)) nanoseconds += Number(number) * (nanosecondsPerUnit[unit] ?? NaN);
  return Number.isSafeInteger(Math.round(nanoseconds)) ? Math.round(nanoseconds) / 1e9 : undefined;
}
