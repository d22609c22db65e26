// h2load, the generator of nghttp2: HTTP/2, and HTTP/1.1 beside it.
import { UserError } from '../../errors.ts';
import type { LoadProfile, TlsOffer } from '../model.ts';
import { flagOf, loadOfFlags, toggle, valued, type Flags, type Generator, type LoadOfFlags, type Target } from './command-line.ts';
import { headersOf } from './headers.ts';
import { atRate, bodyOfFile, endlessTimeoutSeconds, positiveCount, positiveTime, requireOneEach } from './values.ts';

/** What an h2load command line cannot say. */
export interface H2loadOptions {
  /** What its TLS library offered; default: TLS 1.2 and 1.3, h2load's curves. */
  tls?: TlsOffer;
}

/** Of the engine's windows, for a stream and for a connection. */
const windowBits = '30';

const timeUnits = ['ms', 's', 'm', 'h'] as const;

/**
 * The load of an h2load command line without the word "h2load", e.g. `-n 100000 -c 1000 -t 16`: HTTP/2 over TLS,
 * `-p h2c` or `-p http/1.1` without TLS, `--h1` HTTP/1.1 either way. Flags that are left out have h2load's defaults (1
 * request, 1 connection, 1 thread, 1 stream), and its ranges hold. Throws UserError naming what cannot be honoured.
 */
export function h2load(line: string, { tls }: H2loadOptions = {}): LoadProfile {
  return { ...loadOfFlags(h2loadGenerator, line), ...(tls === undefined ? {} : { tls }) };
}

/** @internal */
export const h2loadGenerator: Generator = {
  name: 'h2load',
  listOption: 'input-file',
  options: {
    'requests': valued('n'), 'clients': valued('c'), 'threads': valued('t'), 'max-concurrent-streams': valued('m'), 'duration': valued('D'),
    'no-tls-proto': valued('p'), 'rps': valued(), 'input-file': valued('i'), 'window-bits': valued('w'), 'connection-window-bits': valued('W'),
    'header': { ...valued('H'), multiple: true }, 'data': valued('d'), 'warm-up-time': valued(),
    'h1': toggle(), 'npn-list': valued(), 'alpn-list': valued(), 'ciphers': valued(), 'groups': valued(),
    // They are about its output, and about the address, which is the server's here.
    'verbose': toggle('v'), 'log-file': valued(), 'connect-to': valued(),
  },
  load(flags, target) {
    const connections = positiveCount('h2load -c', flags.get('clients') ?? '1');
    const threads = positiveCount('h2load -t', flags.get('threads') ?? '1');
    requireOneEach('h2load', { connections, threads });
    const streams = positiveCount('h2load -m', flags.get('max-concurrent-streams') ?? '1');
    const protocol = protocolOf(flags, target);
    if (protocol === 'http/1.1' && streams > 1) {
      throw new UserError(`h2load: -m ${streams} would pipeline over HTTP/1.1, which cannot be honoured here: -c ${connections * streams} without -m has as many requests at once`);
    }
    for (const name of ['window-bits', 'connection-window-bits']) {
      const bits = flags.get(name) ?? windowBits;
      if (bits !== windowBits) throw new UserError(`h2load ${flagOf(h2loadGenerator, name)} ${bits} cannot be honoured here: windows have ${windowBits} bits, as h2load's by default`);
    }
    const data = flags.get('data');
    return {
      protocol, connections,
      ...(protocol === 'http/1.1' ? {} : { streams }),
      threads, keepAlive: true, ...length(flags, connections), timeoutSeconds: endlessTimeoutSeconds,
      ...headersOf('h2load -H', flags.all('header'), protocol),
      ...tlsOf(flags, protocol),
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
  if (scheme === 'http' || (scheme === undefined && plain !== undefined)) return plain ?? 'h2c';
  return offered(flags);
}

/** With TLS: the first protocol of its list, which the server then takes or not. */
function offered(flags: Flags): 'h2' | 'http/1.1' {
  const name = flags.has('alpn-list') ? 'alpn-list' : 'npn-list'; // Its name until 1.58.
  const [first = 'h2'] = flags.get(name)?.split(',') ?? [];
  if (first === 'h2' || first === 'http/1.1') return first;
  throw new UserError(`h2load --${name} ${first} cannot be honoured here: the first one has to be h2 or http/1.1`);
}

/** What the engine can offer, in OpenSSL's names. */
const known = {
  ciphers: ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].flatMap((cipher) => [`ECDHE-ECDSA-${cipher}`, `ECDHE-RSA-${cipher}`]),
  groups: ['X25519', 'P-256', 'P-384', 'P-521'],
};

function tlsOf(flags: Flags, protocol: LoadProfile['protocol']): Pick<LoadOfFlags, 'tls'> {
  const [ciphers, curves] = (['ciphers', 'groups'] as const).map((name) => {
    const list = flags.get(name)?.split(':');
    const strange = list?.find((one) => !known[name].includes(one));
    if (strange !== undefined) throw new UserError(`h2load --${name} ${strange} cannot be honoured here; these can: ${known[name].join(' ')}`);
    return list;
  });
  if (protocol === 'h2c' || (ciphers === undefined && curves === undefined)) return {};
  return { tls: { ...(ciphers === undefined ? {} : { ciphers }), ...(curves === undefined ? {} : { curves }) } };
}

/** How long, and with --rps, which is each client's, at which rate. */
function length(flags: Flags, connections: number): Pick<LoadOfFlags, 'requests' | 'durationSeconds' | 'warmupSeconds' | 'rate'> {
  const { durationSeconds, ...others } = lengthOf(flags, connections);
  const perClient = flags.get('rps');
  if (perClient === undefined) return { ...others, ...(durationSeconds === undefined ? {} : { durationSeconds }) };
  const rate = Number(perClient) * connections;
  if (!/^\d+(\.\d+)?$/.test(perClient) || rate <= 0) throw new UserError(`h2load --rps ${perClient} has to be the requests/s of a client, such as 100`);
  return { ...others, ...(durationSeconds === undefined ? { rate } : atRate('h2load --rps', rate, durationSeconds)) };
}

/** A number of requests, or -D. */
function lengthOf(flags: Flags, connections: number): Pick<LoadOfFlags, 'requests' | 'durationSeconds' | 'warmupSeconds'> {
  const duration = flags.get('duration');
  const warmup = flags.get('warm-up-time');
  if (duration === undefined) {
    if (warmup !== undefined) throw new UserError('h2load: --warm-up-time needs a -D');
    const requests = positiveCount('h2load -n', flags.get('requests') ?? '1');
    requireOneEach('h2load', { requests, connections });
    return { requests };
  }
  if (flags.has('requests')) throw new UserError('h2load: -n and -D do not go together (-D would ignore -n): leave one out');
  const durationSeconds = positiveTime('h2load -D', duration, timeUnits);
  if (warmup === undefined) return { durationSeconds };
  return { durationSeconds, warmupSeconds: /^0(ms|s|m|h)?$/.test(warmup) ? 0 : positiveTime('h2load --warm-up-time', warmup, timeUnits) };
}
