// vegeta: requests at a constant rate, whether or not earlier ones are answered.
import { UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import type { LoadProfile, TlsOffer } from '../model.ts';
import { loadOfFlags, toggle, valued, type Flags, type Generator, type Target } from './command-line.ts';
import { headersOf } from './headers.ts';
import { atRate, bodyOfFile, positiveCount } from './values.ts';

/** What stands in other places than vegeta's attack command. */
export interface VegetaOptions {
  /** The buckets as its report names them: `hist[0,.15ms,.3ms]` or `[0,.15ms,.3ms]`; each begins at its number. */
  buckets?: string;
  /** What its TLS library offered. */
  tls?: TlsOffer;
}

/** Its HTTP/2 client sends all on one connection, and keeps to the server's own limit, which is 100 to 128 in the servers here. */
const http2Connections = { connections: 1, streams: 100 };

/** Over HTTP/1.1 it opens another connection whenever all are busy; here they are there from the start, and this is the most unless -max-connections says so. */
const mostConnections = 100;

/**
 * The load of a vegeta command line without the words "vegeta attack", e.g. `-http2 -rate=1000 -duration=10s`: HTTP/2 over
 * TLS, rate × duration requests in all, every one awaited. Left out, -rate is 50 and -timeout 30s, as in vegeta. -insecure
 * is what happens anyway; -connections bounds idle connections, and there are never that many. Throws UserError naming what
 * cannot be honoured.
 */
export function vegeta(line: string, { buckets, tls }: VegetaOptions = {}): LoadProfile {
  const bucketSeconds = buckets === undefined ? undefined : upperEnds(buckets);
  return { ...loadOfFlags(vegetaGenerator, line), ...present({ bucketSeconds, tls }) };
}

/** @internal */
export const vegetaGenerator: Generator = {
  name: 'vegeta',
  subcommand: 'attack',
  oneDash: true,
  listOption: 'targets',
  options: {
    'http2': toggle(), 'h2c': toggle(), 'insecure': toggle(), 'keepalive': toggle(),
    'duration': valued(), 'rate': valued(), 'connections': valued(), 'max-connections': valued(), 'timeout': valued(),
    'header': { ...valued(), multiple: true }, 'body': valued(), 'targets': valued(), 'format': valued(),
    // They are about its output, and about how it begins: it takes as many workers as it needs, and targets as they stand.
    'name': valued(), 'output': valued(), 'workers': valued(), 'lazy': toggle(),
  },
  load(flags, target) {
    const duration = flags.get('duration');
    if (duration === undefined) throw new UserError('vegeta: give a -duration such as -duration=10s: without one it never ends');
    const rate = requestsPerSecond(flags.get('rate') ?? '50');
    const idle = flags.get('connections');
    if (idle !== undefined) positiveCount('vegeta -connections', idle);
    const most = flags.get('max-connections');
    const { requests } = atRate('vegeta -rate', rate, positiveSeconds('vegeta -duration', duration));
    const format = flags.get('format') ?? 'http';
    if (format !== 'http') throw new UserError(`vegeta -format ${format} cannot be honoured here: give a list of targets in the format http, such as GET http://localhost/`);
    const protocol = protocolOf(flags, target);
    const keepAlive = flags.get('keepalive') !== 'false';
    if (protocol !== 'http/1.1' && !keepAlive) throw new UserError('vegeta: -keepalive=false cannot be honoured with HTTP/2: add -http2=false, or leave it out');
    const connections = Math.min(requests, most === undefined ? mostConnections : positiveCount('vegeta -max-connections', most));
    const body = flags.get('body');
    return {
      protocol, ...(protocol === 'http/1.1' ? { connections } : http2Connections), rate,
      timeoutSeconds: positiveSeconds('vegeta -timeout', flags.get('timeout') ?? '30s'),
      threads: 1, keepAlive, requests,
      ...(target.method === undefined || target.method === 'GET' ? {} : { method: target.method }),
      ...headersOf('vegeta -header', flags.all('header'), protocol),
      ...(body === undefined ? {} : { body: bodyOfFile('vegeta -body', body) }),
    };
  },
};

/** As Go's client does: HTTP/2 where there is TLS, and without it only with -h2c. */
function protocolOf(flags: Flags, { scheme }: Target): LoadProfile['protocol'] {
  const off = flags.get('http2') === 'false';
  const plain = flags.has('h2c') && flags.get('h2c') !== 'false';
  if (plain && off) throw new UserError('vegeta: -h2c and -http2=false do not go together: leave one out');
  if (scheme === 'http' || (scheme === undefined && plain)) return plain ? 'h2c' : 'http/1.1';
  return off ? 'http/1.1' : 'h2';
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
export function upperEnds(text: string): number[] {
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
