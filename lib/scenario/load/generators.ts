// The load generators whose command lines are read: wrk, ab, weighttp, h2load and vegeta.
import path from 'node:path';
import { UserError, offer } from '../../errors.ts';
import { present } from '../../present.ts';
import { problemOfLoadForm, type LoadProfile, type TlsOffer } from '../model.ts';
import { urlParts, type UrlParts } from '../pages.ts';
import {
  atRate,
  bodyOfFile,
  headersOf,
  metricCount,
  positiveCount,
  positiveTime,
  readCommand,
  requireOneEach,
  toggle,
  valued,
  wordsOfLine,
  type Flags,
  type Generator,
  type LoadOfFlags,
} from './flags.ts';

type Scheme = UrlParts['scheme'];
const repeated = (short?: string) => ({ ...valued(short), multiple: true });

/** The timeout of h2load and weighttp, which have none. Article 002's longest request took 447 s, on a full network. */
const endlessTimeoutSeconds = 600;
const timeUnits = ['ms', 's', 'm', 'h'] as const;
const severalPages = 'several pages are --urls FILE of compare, or page.requests of a scenario';
const noScripts =
  'no script is run. Several pages are --urls FILE, headers -H; for another method or a body take a line of ab (-m, -p, -u) or h2load (-d)';

const wrkGenerator: Generator = {
  name: 'wrk',
  instead: { s: noScripts, script: noScripts },
  options: {
    connections: valued('c'),
    threads: valued('t'),
    duration: valued('d'),
    header: repeated('H'),
    timeout: valued(),
    rate: valued('R'), // wrk2
    latency: toggle(), // Percentiles are always shown.
    // Undocumented short forms of --timeout and --latency.
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
 * The load of a wrk command line without the word "wrk", such as `-c 100 -t 10 -d 10`: HTTP/1.1 with kept connections, with
 * wrk2's -R at a rate. Defaults are wrk's.
 */
export function wrk(line: string): LoadProfile {
  return loadOfFlags(wrkGenerator, line);
}

const abGenerator: Generator = {
  name: 'ab',
  secretOptions: ['A', 'C'],
  options: {
    ...Object.fromEntries(['c', 'n', 't', 's', 'A', 'm', 'p', 'u', 'T'].map((f) => [f, valued(f)])),
    ...Object.fromEntries(['H', 'C'].map((f) => [f, repeated(f)])),
    // -r, -l and -q do not change the load.
    ...Object.fromEntries(['k', 'i', 'r', 'l', 'q'].map((f) => [f, toggle(f)])),
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
  const [way, second] = ['i', 'p', 'u'].filter((flag) => flags.has(flag));
  if (second !== undefined)
    throw new UserError(`ab: -${way} and -${second} do not go together: leave one out`);
  const file = flags.get('p') ?? flags.get('u');
  const type = flags.get('T');
  if (type !== undefined && file === undefined)
    throw new UserError('ab: -T is for a body: give one with -p or -u, or leave it out');
  const method = flags.get('m') ?? { i: 'HEAD', p: 'POST', u: 'PUT' }[way ?? ''];
  if (method !== undefined && (!/^[A-Z]+$/.test(method) || method === 'CONNECT'))
    throw new UserError(`ab -m ${method} has to be a method such as GET or POST`);
  const [account, lines] = [flags.get('A'), flags.all('H')];
  const headers = [...lines, ...flags.all('C').map((cookie) => `Cookie: ${cookie}`)];
  if (account !== undefined)
    headers.push(`Authorization: Basic ${Buffer.from(account).toString('base64')}`);
  if (file !== undefined && !lines.some((line) => /^\s*content-type\s*:/i.test(line)))
    headers.push(`Content-Type: ${type ?? 'text/plain'}`);
  return {
    ...present({ method }),
    ...headersOf('ab -H', headers, 'http/1.0'),
    ...(file === undefined ? {} : { body: bodyOfFile(`ab -${way}`, file) }),
  };
}

/**
 * The load of an ab command line without the word "ab", such as `-c 10 -n 1000 -k`: HTTP/1.0, a new connection for each
 * request unless -k.
 */
export function ab(line: string): LoadProfile {
  return loadOfFlags(abGenerator, line);
}

const weighttpGenerator: Generator = {
  name: 'weighttp',
  options: {
    n: valued('n'),
    c: valued('c'),
    t: valued('t'),
    k: toggle('k'),
    H: repeated('H'),
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

/**
 * The load of a weighttp command line without the word "weighttp", such as `-k -c 100 -n 100000`: HTTP/1.1, a new connection
 * for each request unless -k.
 */
export function weighttp(line: string): LoadProfile {
  return loadOfFlags(weighttpGenerator, line);
}

const h2loadGenerator: Generator = {
  name: 'h2load',
  instead: {
    i: severalPages,
    'input-file': severalPages,
    'npn-list': 'take --h1 for HTTP/1.1, --h3 for HTTP/3',
  },
  options: {
    requests: valued('n'),
    clients: valued('c'),
    threads: valued('t'),
    'max-concurrent-streams': valued('m'),
    duration: valued('D'),
    'no-tls-proto': valued('p'),
    rps: valued(),
    header: repeated('H'),
    data: valued('d'),
    'warm-up-time': valued(),
    h1: toggle(),
    h3: toggle(),
    'alpn-list': valued(),
    ciphers: valued(),
    groups: valued(),
  },
  load(flags, scheme) {
    const connections = positiveCount('h2load -c', flags.get('clients') ?? '1');
    const threads = positiveCount('h2load -t', flags.get('threads') ?? '1');
    requireOneEach('h2load', { connections, threads });
    const streams = positiveCount('h2load -m', flags.get('max-concurrent-streams') ?? '1');
    const protocol = protocolOfH2load(flags, scheme);
    if (protocol === 'http/1.1' && streams > 1)
      throw new UserError(
        `h2load: -m ${streams} would pipeline over HTTP/1.1, which cannot be honoured here: -c ${connections * streams} without -m has as many requests at once`,
      );
    const data = flags.get('data');
    return {
      protocol,
      connections,
      ...(protocol === 'http/1.1' ? {} : { streams }),
      threads,
      keepAlive: true,
      ...lengthOfH2load(flags, connections),
      timeoutSeconds: endlessTimeoutSeconds,
      ...headersOf('h2load -H', flags.all('header'), protocol),
      ...tlsOfH2load(flags, protocol),
      ...(data === undefined ? {} : { method: 'POST', body: bodyOfFile('h2load -d', data) }),
    };
  },
};

/** -p is about addresses without TLS. Without an address it says that there is no TLS. */
function protocolOfH2load(flags: Flags, scheme: Scheme | undefined): LoadProfile['protocol'] {
  const [plain, alpn = 'h3'] = ['no-tls-proto', 'alpn-list'].map(flags.get);
  if (alpn !== 'h3')
    throw new UserError(`h2load --alpn-list=${alpn} has to be h3; take --h1 for HTTP/1.1`);
  if (flags.has('h3') || flags.has('alpn-list')) {
    if (flags.has('h1') || plain !== undefined || scheme === 'http')
      throw new UserError(
        'h2load: HTTP/3 goes with https:// addresses, and with neither --h1 nor -p: leave --h3 (--alpn-list=h3) out, or them',
      );
    return 'h3';
  }
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

/** Ciphers and curves of the engine, in OpenSSL's names. */
const offered = {
  ciphers: ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].flatMap((cipher) => [
    `ECDHE-ECDSA-${cipher}`,
    `ECDHE-RSA-${cipher}`,
  ]),
  groups: ['X25519', 'P-256', 'P-384', 'P-521'],
};

function tlsOfH2load(flags: Flags, protocol: LoadProfile['protocol']): Pick<LoadOfFlags, 'tls'> {
  const listOf = (name: 'ciphers' | 'groups'): string[] | undefined => {
    const list = flags.get(name)?.split(':');
    const strange = list?.find((one) => !offered[name].includes(one));
    if (strange === undefined) return list;
    throw new UserError(
      `h2load --${name} ${strange} cannot be honoured here; these can: ${offered[name].join(' ')}`,
    );
  };
  const [ciphers, curves] = [listOf('ciphers'), listOf('groups')];
  return protocol === 'h2c' || (ciphers ?? curves) === undefined
    ? {}
    : { tls: present({ ciphers, curves }) };
}

/** Length and rate; --rps is each client's. */
function lengthOfH2load(
  flags: Flags,
  connections: number,
): Pick<LoadOfFlags, 'requests' | 'durationSeconds' | 'warmupSeconds' | 'rate'> {
  const [duration, warmup, perClient] = ['duration', 'warm-up-time', 'rps'].map(flags.get);
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
  const length =
    rate === undefined ? { durationSeconds } : atRate('h2load --rps', rate, durationSeconds);
  if (warmup === undefined) return length;
  const isNone = /^0(ms|s|m|h)?$/.test(warmup);
  const warmupSeconds = isNone ? 0 : positiveTime('h2load --warm-up-time', warmup, timeUnits);
  return { ...length, warmupSeconds };
}

/** Options without a flag of h2load. */
export interface H2loadOptions {
  /** Default: TLS 1.2 and 1.3, h2load's curves. */
  tls?: TlsOffer;
}

/**
 * The load of an h2load command line without the word "h2load", such as `-n 100000 -c 1000 -t 16`: HTTP/2 over TLS, `-p h2c` or
 * `-p http/1.1` without TLS, `--h1` HTTP/1.1 with or without, `--h3` HTTP/3. Defaults are h2load's.
 */
export function h2load(line: string, { tls }: H2loadOptions = {}): LoadProfile {
  return { ...loadOfFlags(h2loadGenerator, line), ...present({ tls }) };
}

/** vegeta's HTTP/2 client uses a single connection and the server's own stream limit, 100 to 128 in the servers here. */
const vegetaHttp2 = { connections: 1, streams: 100 };
/** Over HTTP/1.1 vegeta opens a connection if all are busy. Here they are open from the start, at most so many without -max-connections. */
const vegetaConnections = 100;

const vegetaGenerator: Generator = {
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
    header: repeated(),
    // These do not change the load.
    name: valued(),
    output: valued(),
    workers: valued(),
    connections: valued(),
  },
  load(flags, scheme) {
    const [duration, most] = [flags.get('duration'), flags.get('max-connections')];
    if (duration === undefined)
      throw new UserError(
        'vegeta: give a -duration such as -duration=10s: without one it never ends',
      );
    const perSecond = (flags.get('rate') ?? '50').replace(/\/1?s$/, '');
    const { rate, requests } = atRate(
      'vegeta -rate',
      positiveCount('vegeta -rate', perSecond),
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
      most === undefined ? vegetaConnections : positiveCount('vegeta -max-connections', most),
    );
    return {
      protocol,
      ...(protocol === 'http/1.1' ? { connections } : vegetaHttp2),
      rate,
      timeoutSeconds: positiveTime('vegeta -timeout', flags.get('timeout') ?? '30s', timeUnits),
      threads: 1,
      keepAlive,
      requests,
      ...headersOf('vegeta -header', flags.all('header'), protocol),
    };
  },
};

/** As in Go's client: HTTP/2 with TLS, and without TLS only for -h2c. */
function protocolOfVegeta(flags: Flags, scheme: Scheme | undefined): LoadProfile['protocol'] {
  const off = flags.get('http2') === 'false';
  const plain = flags.has('h2c') && flags.get('h2c') !== 'false';
  if (plain && off)
    throw new UserError('vegeta: -h2c and -http2=false do not go together: leave one out');
  if (scheme === 'http' || (scheme === undefined && plain)) return plain ? 'h2c' : 'http/1.1';
  return off ? 'http/1.1' : 'h2';
}

/** Options that vegeta's attack command has no flags for. */
export interface VegetaOptions {
  /** Upper ends of the histogram's buckets, ascending, such as [0.15, 0.3, 1]. A last bucket takes the rest. */
  bucketsMs?: readonly number[];
  tls?: TlsOffer;
}

/**
 * The load of a vegeta command line without the words "vegeta attack", such as `-http2 -rate=1000 -duration=10s`: HTTP/2 over
 * TLS, rate × duration requests, all awaited. Defaults are vegeta's.
 */
export function vegeta(line: string, { bucketsMs, tls }: VegetaOptions = {}): LoadProfile {
  return {
    ...loadOfFlags(vegetaGenerator, line),
    ...present({ bucketSeconds: bucketsMs?.map((ms) => ms / 1000), tls }),
  };
}

function loadOfFlags(generator: Generator, line: string): LoadProfile {
  const words = wordsOfLine(line, generator.name);
  const { flags, others, shown } = readCommand(generator, words);
  if (others[0] !== undefined)
    throw new UserError(
      `${generator.name}: leave "${others[0]}" out: bakeoff starts the server itself and knows its address`,
    );
  return { command: shown, ...generator.load(flags) };
}

const generators = [wrkGenerator, h2loadGenerator, abGenerator, weighttpGenerator, vegetaGenerator];
const names = generators.map(({ name }) => name);

/** A complete command line of a load generator. */
export interface LoadLine {
  url?: UrlParts;
  isH3: boolean;
  /**
   * The load, and the Host to send, from a header or the URL.
   * @param scheme of the server, if the line has no URL
   * @throws UserError
   */
  over(scheme?: Scheme): { load: LoadProfile; host?: string };
}

/** Reads a line such as `wrk -t4 -c100 -d30s http://localhost:8080/a`. @throws UserError */
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
  const { flags, others, shown } = readCommand(generator, words);
  const [target, more] = others;
  if (more !== undefined)
    throw new UserError(
      `${name}: "${target}" and "${more}": one URL at a time; several pages are --urls FILE`,
    );
  if (target !== undefined && generator === vegetaGenerator)
    throw new UserError(`vegeta: leave "${target}" out: the URL is --url`);
  const needsNoScheme = generator === abGenerator || generator === weighttpGenerator;
  const url =
    target === undefined
      ? undefined
      : urlParts(
          needsNoScheme && !/^https?:\/\//i.test(target) ? `http://${target}` : target,
          name,
        );
  return {
    ...present({ url }),
    isH3: flags.has('h3') || flags.has('alpn-list'),
    over(scheme) {
      const { headers = {}, ...load } = generator.load(flags, url?.scheme ?? scheme);
      const isHost = ([name]: [string, string]): boolean => name.toLowerCase() === 'host';
      const others = Object.entries(headers).filter((header) => !isHost(header));
      const asked: LoadProfile = {
        command: shown,
        ...load,
        ...(others.length === 0 ? {} : { headers: Object.fromEntries(others) }),
      };
      const problem = problemOfLoadForm(asked);
      if (problem !== undefined) throw new UserError(`${name}: ${problem}`);
      const host = Object.entries(headers).find(isHost)?.[1] ?? url?.host;
      return { load: asked, ...present({ host }) };
    },
  };
}
