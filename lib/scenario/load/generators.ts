// The generators of HTTP/1: wrk, ab and weighttp.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { LoadProfile, TlsOffer } from '../model.ts';
import {
  loadOfFlags,
  toggle,
  valued,
  type Flags,
  type Generator,
  type LoadOfFlags,
  headersOf,
  atRate,
  bodyOfFile,
  endlessTimeoutSeconds,
  metricCount,
  positiveCount,
  positiveTime,
  requestMethod,
  requireOneEach,
  severalPages,
  readCommand,
  wordsOfLine,
  takeHeader,
} from './flags.ts';
import { present } from '../../present.ts';
import { offer } from '../../nearest.ts';
import { problemOfLoadForm } from '../schema.ts';
import { urlParts, type UrlParts } from '../pages.ts';

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

// h2load, the generator of nghttp2: HTTP/2, and HTTP/1.1 beside it.

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

// vegeta: requests at a constant rate, whether or not earlier ones are answered.

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
    const protocol = protocolOfVegeta(flags, scheme);
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
function protocolOfVegeta(
  flags: Flags,
  scheme: 'http' | 'https' | undefined,
): LoadProfile['protocol'] {
  const off = flags.get('http2') === 'false';
  const plain = flags.has('h2c') && flags.get('h2c') !== 'false';
  if (plain && off)
    throw new UserError('vegeta: -h2c and -http2=false do not go together: leave one out');
  if (scheme === 'http' || (scheme === undefined && plain)) return plain ? 'h2c' : 'http/1.1';
  return off ? 'http/1.1' : 'h2';
}

// A complete command line of a load generator.

const generators = [wrkGenerator, h2loadGenerator, abGenerator, weighttpGenerator, vegetaGenerator];
const names = generators.map(({ name }) => name);

/** A line, read: its URL, if it has one, and its load. */
export interface LoadLine {
  url?: UrlParts;
  /**
   * The load, and the Host to ask for: of a header, or of the URL. Throws UserError in one line.
   * @param scheme of the server that is loaded, where the line has no URL
   */
  over(scheme?: UrlParts['scheme']): { load: LoadProfile; host?: string };
}

/** Reads a load generator's line such as `wrk -t4 -c100 -d30s http://localhost:8080/a`. Throws UserError. */
export function readLoadLine(text: string): LoadLine {
  const [program, ...words] = wordsOfLine(text, 'the load');
  if (program === undefined)
    throw new UserError(
      `give the command line of a load generator, such as "wrk -c 100 -d 10": ${names.join(', ')}`,
    );
  const called = path.basename(program.text);
  const generator = generators.find(({ name }) => name === called);
  if (generator === undefined)
    throw new UserError(`there is no load generator "${called}" here: ${offer(called, names)}`);
  const { name, subcommand } = generator;
  if (subcommand !== undefined && words.shift()?.text !== subcommand)
    throw new UserError(`${name}: only "${name} ${subcommand}" makes load: give a line with it`);
  const {
    flags,
    others: [target, more],
    shown,
  } = readCommand(generator, words);
  if (more !== undefined)
    throw new UserError(
      `${name}: "${target}" and "${more}": one URL at a time; several pages are --urls FILE`,
    );
  if (target !== undefined && generator === vegetaGenerator)
    throw new UserError(`vegeta: leave "${target}" out: the URL is --url`);
  const url =
    target === undefined
      ? undefined
      : urlParts(
          /^(ab|weighttp)$/.test(name) && !/^https?:\/\//i.test(target)
            ? `http://${target}`
            : target,
          name,
        );
  return {
    ...(url === undefined ? {} : { url }),
    over(scheme) {
      const { headers, ...load } = generator.load(flags, url?.scheme ?? scheme);
      const { value: hostHeader, rest } = takeHeader(headers, 'host');
      const host = hostHeader ?? url?.host;
      const asked: LoadProfile = {
        command: shown,
        ...load,
        ...(Object.keys(rest).length === 0 ? {} : { headers: rest }),
      };
      const problem = problemOfLoadForm(asked);
      if (problem !== undefined) throw new UserError(`${name}: ${problem}`);
      return { load: asked, ...(host === undefined ? {} : { host }) };
    },
  };
}
