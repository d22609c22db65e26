// h2load, the generator of nghttp2: HTTP/2, and HTTP/1.1 beside it.
import { UserError } from '../../errors.ts';
import type { LoadProfile, TlsOffer } from '../model.ts';
import { loadOfFlags, type Flags, type Generator, type LoadOfFlags, type Target } from './command-line.ts';
import { headersOf } from './headers.ts';
import { endlessTimeoutSeconds } from './timeouts.ts';
import { bodyOfFile, positiveCount, positiveTime, requireConnectionEach, requireRequestEach } from './values.ts';

/** What an h2load command line cannot say. */
export interface H2loadOptions {
  /** What its TLS library offered; default: TLS 1.2 and 1.3, h2load's curves. */
  tls?: TlsOffer;
}

const timeUnits = ['ms', 's', 'm', 'h'] as const;

/**
 * The load of an h2load command line without the word "h2load", e.g. `-n 100000 -c 1000 -t 16`: HTTP/2 over TLS,
 * `-p h2c` or `-p http/1.1` without TLS, `--h1` HTTP/1.1 either way. Flags that are left out have h2load's defaults (1
 * request, 1 connection, 1 thread, 1 stream), and its ranges hold. Throws UserError naming what cannot be honoured.
 */
export function h2load(line: string, { tls }: H2loadOptions = {}): LoadProfile {
  return { ...loadOfFlags(h2loadGenerator, line), ...(tls === undefined ? {} : { tls }) };
}

export const h2loadGenerator: Generator = {
  name: 'h2load',
  options: {
    'requests': { type: 'string', short: 'n' },
    'clients': { type: 'string', short: 'c' },
    'threads': { type: 'string', short: 't' },
    'max-concurrent-streams': { type: 'string', short: 'm' },
    'duration': { type: 'string', short: 'D' },
    'no-tls-proto': { type: 'string', short: 'p' },
    'header': { type: 'string', short: 'H', multiple: true },
    'data': { type: 'string', short: 'd' },
    'warm-up-time': { type: 'string' },
    'h1': { type: 'boolean' },
  },
  load(flags, target) {
    const connections = positiveCount('h2load -c', flags.get('clients') ?? '1');
    const threads = positiveCount('h2load -t', flags.get('threads') ?? '1');
    requireConnectionEach('h2load', connections, threads);
    const streams = positiveCount('h2load -m', flags.get('max-concurrent-streams') ?? '1');
    const protocol = protocolOf(flags, target);
    if (protocol === 'http/1.1' && streams > 1) {
      throw new UserError(`h2load: -m ${streams} would pipeline over HTTP/1.1, which cannot be honoured here: leave -m out, or HTTP/1.1`);
    }
    const data = flags.get('data');
    return {
      protocol, connections,
      ...(protocol === 'http/1.1' ? {} : { streams }),
      threads, keepAlive: true, ...length(flags, connections), timeoutSeconds: endlessTimeoutSeconds,
      ...headersOf('h2load -H', flags.all('header'), protocol),
      ...(data === undefined ? {} : { method: 'POST', body: bodyOfFile('h2load -d', data) }),
    };
  },
};

/** -p is about addresses without TLS; where there is no address, it says that it is one of those. */
function protocolOf(flags: Flags, { scheme }: Target): LoadProfile['protocol'] {
  const plain = flags.get('no-tls-proto');
  if (plain !== undefined && plain !== 'h2c' && plain !== 'http/1.1') throw new UserError(`h2load -p ${plain} has to be h2c or http/1.1`);
  if (flags.has('h1')) {
    if (plain === 'h2c') throw new UserError('h2load: --h1 and -p h2c do not go together: leave one out');
    return 'http/1.1';
  }
  if (scheme === 'https') return 'h2';
  return plain ?? (scheme === 'http' ? 'h2c' : 'h2');
}

/** How long: a number of requests, or -D. */
function length(flags: Flags, connections: number): Pick<LoadOfFlags, 'requests' | 'durationSeconds' | 'warmupSeconds'> {
  const duration = flags.get('duration');
  const warmup = flags.get('warm-up-time');
  if (duration === undefined) {
    if (warmup !== undefined) throw new UserError('h2load: --warm-up-time needs a -D');
    const requests = positiveCount('h2load -n', flags.get('requests') ?? '1');
    requireRequestEach('h2load', requests, connections);
    return { requests };
  }
  if (flags.has('requests')) throw new UserError('h2load: -n and -D do not go together (-D would ignore -n): leave one out');
  const durationSeconds = positiveTime('h2load -D', duration, timeUnits);
  if (warmup === undefined) return { durationSeconds };
  return { durationSeconds, warmupSeconds: /^0(ms|s|m|h)?$/.test(warmup) ? 0 : positiveTime('h2load --warm-up-time', warmup, timeUnits) };
}
