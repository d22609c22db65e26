// h2load, the generator of nghttp2: HTTP/2, and HTTP/1.1 beside it.
import { UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import type { LoadProfile, TlsOffer } from '../model.ts';
import {
  loadOfFlags,
  severalPages,
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
  positiveCount,
  positiveTime,
  requireOneEach,
} from './values.ts';

/** What an h2load command line cannot say. */
export interface H2loadOptions {
  /** What its TLS library offered; default: TLS 1.2 and 1.3, h2load's curves. */
  tls?: TlsOffer;
}

const timeUnits = ['ms', 's', 'm', 'h'] as const;

/**
 * The load of an h2load command line without the word "h2load", e.g. `-n 100000 -c 1000 -t 16`: HTTP/2 over TLS, `-p h2c` or
 * `-p http/1.1` without TLS, `--h1` HTTP/1.1 either way. Defaults are h2load's. Throws UserError naming what cannot be honoured.
 */
export function h2load(line: string, { tls }: H2loadOptions = {}): LoadProfile {
  return { ...loadOfFlags(h2loadGenerator, line), ...present({ tls }) };
}

/** @internal */
export const h2loadGenerator: Generator = {
  name: 'h2load',
  instead: {
    i: severalPages,
    'input-file': severalPages,
    'alpn-list': 'take --h1 for HTTP/1.1',
    'npn-list': 'take --h1 for HTTP/1.1',
  },
  options: {
    requests: valued('n'),
    clients: valued('c'),
    threads: valued('t'),
    'max-concurrent-streams': valued('m'),
    duration: valued('D'),
    'no-tls-proto': valued('p'),
    rps: valued(),
    header: { ...valued('H'), multiple: true },
    data: valued('d'),
    'warm-up-time': valued(),
    h1: toggle(),
    ciphers: valued(),
    groups: valued(),
  },
  load(flags, scheme) {
    const connections = positiveCount('h2load -c', flags.get('clients') ?? '1');
    const threads = positiveCount('h2load -t', flags.get('threads') ?? '1');
    requireOneEach('h2load', { connections, threads });
    const streams = positiveCount('h2load -m', flags.get('max-concurrent-streams') ?? '1');
    const protocol = protocolOf(flags, scheme);
    if (protocol === 'http/1.1' && streams > 1) {
      throw new UserError(
        `h2load: -m ${streams} would pipeline over HTTP/1.1, which cannot be honoured here: -c ${connections * streams} without -m has as many requests at once`,
      );
    }
    const data = flags.get('data');
    return {
      protocol,
      connections,
      ...(protocol === 'http/1.1' ? {} : { streams }),
      threads,
      keepAlive: true,
      ...length(flags, connections),
      timeoutSeconds: endlessTimeoutSeconds,
      ...headersOf('h2load -H', flags.all('header'), protocol),
      ...tlsOf(flags, protocol),
      ...(data === undefined ? {} : { method: 'POST', body: bodyOfFile('h2load -d', data) }),
    };
  },
};

/** -p is about addresses without TLS; where there is no address, it says that it is one of those. */
function protocolOf(flags: Flags, scheme: 'http' | 'https' | undefined): LoadProfile['protocol'] {
  const plain = flags.get('no-tls-proto');
  if (plain !== undefined && plain !== 'h2c' && plain !== 'http/1.1')
    throw new UserError(`h2load -p ${plain} has to be h2c or http/1.1`);
  if (flags.has('h1')) {
    if (plain === 'h2c')
      throw new UserError('h2load: --h1 and -p h2c do not go together: leave one out');
    return 'http/1.1';
  }
  if (scheme === 'http' || (scheme === undefined && plain !== undefined)) return plain ?? 'h2c';
  return 'h2';
}

/** What the engine can offer, in OpenSSL's names. */
const known: Record<string, readonly string[]> = {
  ciphers: ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].flatMap((cipher) => [
    `ECDHE-ECDSA-${cipher}`,
    `ECDHE-RSA-${cipher}`,
  ]),
  groups: ['X25519', 'P-256', 'P-384', 'P-521'],
};

function tlsOf(flags: Flags, protocol: LoadProfile['protocol']): Pick<LoadOfFlags, 'tls'> {
  const [ciphers, curves] = Object.entries(known).map(([name, all]) => {
    const list = flags.get(name)?.split(':');
    const strange = list?.find((one) => !all.includes(one));
    if (strange !== undefined)
      throw new UserError(
        `h2load --${name} ${strange} cannot be honoured here; these can: ${all.join(' ')}`,
      );
    return list;
  });
  return protocol === 'h2c' || (ciphers ?? curves) === undefined
    ? {}
    : { tls: present({ ciphers, curves }) };
}

/** How long, and with --rps, which is each client's, at which rate. */
function length(
  flags: Flags,
  connections: number,
): Pick<LoadOfFlags, 'requests' | 'durationSeconds' | 'warmupSeconds' | 'rate'> {
  const [duration, warmup, perClient] = ['duration', 'warm-up-time', 'rps'].map((name) =>
    flags.get(name),
  );
  if (duration !== undefined && flags.has('requests'))
    throw new UserError('h2load: -n and -D do not go together (-D would ignore -n): leave one out');
  if (duration === undefined && warmup !== undefined)
    throw new UserError('h2load: --warm-up-time needs a -D');
  const rate = perClient === undefined ? undefined : Number(perClient) * connections;
  if (rate !== undefined && !(rate > 0 && rate < Infinity))
    throw new UserError(
      `h2load --rps ${perClient} has to be the requests/s of a client, such as 100`,
    );
  if (duration === undefined) {
    const requests = positiveCount('h2load -n', flags.get('requests') ?? '1');
    requireOneEach('h2load', { requests, connections });
    return { requests, ...present({ rate }) };
  }
  const durationSeconds = positiveTime('h2load -D', duration, timeUnits);
  const warmupSeconds =
    warmup === undefined
      ? undefined
      : /^0(ms|s|m|h)?$/.test(warmup)
        ? 0
        : positiveTime('h2load --warm-up-time', warmup, timeUnits);
  return {
    ...(rate === undefined ? { durationSeconds } : atRate('h2load --rps', rate, durationSeconds)),
    ...present({ warmupSeconds }),
  };
}
