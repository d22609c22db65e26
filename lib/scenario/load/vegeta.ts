// vegeta: requests at a constant rate, whether or not earlier ones are answered.
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
} from './command-line.ts';
import { headersOf } from './headers.ts';
import { atRate, positiveCount, positiveTime } from './values.ts';

/** Options that vegeta's attack command has no flags for. */
export interface VegetaOptions {
  /** The upper ends of the buckets of its histogram, ascending, e.g. [0.15, 0.3, 1]; one more bucket takes all that is longer. */
  bucketsMs?: readonly number[];
  /** The client's TLS versions, ciphers and curves. */
  tls?: TlsOffer;
}

/** Its HTTP/2 client sends all on one connection, and keeps to the server's own limit, which is 100 to 128 in the servers here. */
const http2Connections = { connections: 1, streams: 100 };

/** Over HTTP/1.1 it opens another connection whenever all are busy; here they are there from the start, and this is the most unless -max-connections says so. */
const mostConnections = 100;

const timeUnits = ['ms', 's', 'm', 'h'] as const;

/**
 * The load of a vegeta command line without the words "vegeta attack", e.g. `-http2 -rate=1000 -duration=10s`: HTTP/2 over
 * TLS, rate × duration requests in all, every one awaited. Defaults are vegeta's. Throws UserError naming what cannot be honoured.
 */
export function vegeta(line: string, { bucketsMs, tls }: VegetaOptions = {}): LoadProfile {
  return {
    ...loadOfFlags(vegetaGenerator, line),
    ...present({ bucketSeconds: bucketsMs?.map((ms) => ms / 1000), tls }),
  };
}

/** @internal */
export const vegetaGenerator: Generator = {
  name: 'vegeta',
  subcommand: 'attack',
  oneDash: true,
  instead: {
    targets: severalPages,
    body: 'all requests are GET; for a body at a rate take h2load --rps with -d',
  },
  options: {
    http2: toggle(),
    h2c: toggle(),
    insecure: toggle(),
    keepalive: toggle(),
    duration: valued(),
    rate: valued(),
    'max-connections': valued(),
    timeout: valued(),
    header: { ...valued(), multiple: true },
    name: valued(),
    output: valued(),
    workers: valued(),
    connections: valued(), // They change nothing about the load.
  },
  load(flags, scheme) {
    const [duration, most] = [flags.get('duration'), flags.get('max-connections')];
    if (duration === undefined)
      throw new UserError(
        'vegeta: give a -duration such as -duration=10s: without one it never ends',
      );
    const rate = positiveCount('vegeta -rate', (flags.get('rate') ?? '50').replace(/\/1?s$/, ''));
    const { requests } = atRate(
      'vegeta -rate',
      rate,
      positiveTime('vegeta -duration', duration, timeUnits),
    );
    const protocol = protocolOf(flags, scheme);
    const keepAlive = flags.get('keepalive') !== 'false';
    if (protocol !== 'http/1.1' && !keepAlive)
      throw new UserError(
        'vegeta: -keepalive=false cannot be honoured with HTTP/2: add -http2=false, or leave it out',
      );
    const connections = Math.min(
      requests,
      most === undefined ? mostConnections : positiveCount('vegeta -max-connections', most),
    );
    return {
      protocol,
      ...(protocol === 'http/1.1' ? { connections } : http2Connections),
      rate,
      timeoutSeconds: positiveTime('vegeta -timeout', flags.get('timeout') ?? '30s', timeUnits),
      threads: 1,
      keepAlive,
      requests,
      ...headersOf('vegeta -header', flags.all('header'), protocol),
    };
  },
};

/** As Go's client does: HTTP/2 where there is TLS, and without it only with -h2c. */
function protocolOf(flags: Flags, scheme: 'http' | 'https' | undefined): LoadProfile['protocol'] {
  const off = flags.get('http2') === 'false';
  const plain = flags.has('h2c') && flags.get('h2c') !== 'false';
  if (plain && off)
    throw new UserError('vegeta: -h2c and -http2=false do not go together: leave one out');
  if (scheme === 'http' || (scheme === undefined && plain)) return plain ? 'h2c' : 'http/1.1';
  return off ? 'http/1.1' : 'h2';
}
