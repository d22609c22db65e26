// The load generators whose command lines are read: wrk, ab, weighttp, h2load and vegeta.
import path from 'node:path';
import { UserError, offer } from '../../errors.ts';
import { present, allNames } from '../../present.ts';
import { problemOfLoad } from '../define-scenario.ts';
import {
  curveNames,
  problemOfLoadForm,
  type LoadProfile,
  type Protocol,
  type TlsOffer,
} from '../model.ts';
import { urlParts, type UrlParts } from '../pages.ts';
import {
  atRate,
  bodyOfFile,
  readCount,
  headersOf,
  readCommand,
  repeatable,
  time,
  toggle,
  valued,
  receiveWindowIn,
  wordsOfFlag,
  wordsOfLine,
  type Flags,
  type LoadCommand,
} from './flags.ts';

type Scheme = UrlParts['scheme'];

/** Timeout for h2load and weighttp, which have none of their own. Article 002's longest request took 447 s, on a full network. */
const endlessTimeoutSeconds = 600;
const severalPages = 'several pages are --urls FILE of compare, or page.requests of a scenario';
const noScripts =
  'no script is run. Several pages are --urls FILE, headers -H; for another method or a body take a line of ab (-m, -p, -u) or h2load (-d)';

const wrkGenerator: LoadCommand = {
  name: 'wrk',
  instead: { s: noScripts, script: noScripts },
  options: {
    connections: valued('c'),
    threads: valued('t'),
    duration: valued('d'),
    header: repeatable('H'),
    timeout: valued(),
    rate: valued('R'), // wrk2
    latency: toggle(), // Percentiles are always shown.
    // Undocumented short forms of --timeout and --latency.
    T: valued('T'),
    L: toggle('L'),
  },
  load(flags) {
    const durationSeconds = flags.read('duration', time, '10');
    const rate = flags.read('rate', readCount);
    return {
      protocol: 'http/1.1',
      connections: flags.read('connections', readCount, '10'),
      threads: flags.read('threads', readCount, '2'),
      keepAlive: true,
      ...during(durationSeconds, rate),
      ...present({ timeoutSeconds: flags.read('timeout', time) ?? flags.read('T', time) }),
      ...headersOf('wrk -H', flags.all('header'), 'http/1.1'),
    };
  },
};

/** The length of a load: its duration, or at a rate (requests/s) the number of requests in that time. */
function during(durationSeconds: number, rate: number | undefined) {
  return rate === undefined ? { durationSeconds } : atRate(rate, durationSeconds);
}

const abGenerator: LoadCommand = {
  name: 'ab',
  secretOptions: ['A', 'C'],
  exclusive: ['n t', 'i p', 'i u', 'p u'],
  urlWithoutScheme: true,
  options: {
    ...Object.fromEntries(['c', 'n', 't', 's', 'A', 'm', 'p', 'u', 'T'].map((f) => [f, valued(f)])),
    ...Object.fromEntries(['H', 'C'].map((f) => [f, repeatable(f)])),
    // -r, -l and -q do not change the load.
    ...Object.fromEntries(['k', 'i', 'r', 'l', 'q'].map((f) => [f, toggle(f)])),
  },
  load(flags) {
    const durationSeconds = flags.read('t', readCount);
    const connections = flags.read('c', readCount, '1');
    const length =
      durationSeconds === undefined
        ? { requests: flags.read('n', readCount, '1') }
        : { durationSeconds };
    return {
      protocol: 'http/1.0',
      connections,
      threads: 1,
      keepAlive: flags.has('k'),
      ...length,
      timeoutSeconds: flags.read('s', readCount, '30'),
      ...requestOfAb(flags),
    };
  },
};

function requestOfAb(flags: Flags) {
  const way = ['i', 'p', 'u'].find((flag) => flags.has(flag)) ?? '';
  const body = flags.read('p', bodyOfFile) ?? flags.read('u', bodyOfFile);
  const [account, lines] = [flags.get('A'), flags.all('H')];
  const headers = [...lines, ...flags.all('C').map((cookie) => `Cookie: ${cookie}`)];
  if (account !== undefined)
    headers.push(`Authorization: Basic ${Buffer.from(account).toString('base64')}`);
  if (body !== undefined && !lines.some((line) => /^\s*content-type\s*:/i.test(line)))
    headers.push(`Content-Type: ${flags.get('T') ?? 'text/plain'}`);
  return {
    ...present({ method: flags.get('m') ?? { i: 'HEAD', p: 'POST', u: 'PUT' }[way], body }),
    ...headersOf('ab -H', headers, 'http/1.0'),
  };
}

const weighttpGenerator: LoadCommand = {
  name: 'weighttp',
  urlWithoutScheme: true,
  options: {
    n: valued('n'),
    c: valued('c'),
    t: valued('t'),
    k: toggle('k'),
    H: repeatable('H'),
  },
  load(flags) {
    const requests = flags.read('n', readCount);
    if (requests === undefined)
      throw new UserError('weighttp: give the number of requests, such as -n 100000');
    return {
      protocol: 'http/1.1',
      connections: flags.read('c', readCount, '1'),
      threads: flags.read('t', readCount, '1'),
      keepAlive: flags.has('k'),
      requests,
      timeoutSeconds: endlessTimeoutSeconds,
      ...headersOf('weighttp -H', flags.all('H'), 'http/1.1'),
    };
  },
};

const h2loadGenerator: LoadCommand = {
  name: 'h2load',
  instead: {
    i: severalPages,
    'input-file': severalPages,
    'npn-list': 'take --h1 for HTTP/1.1, --h3 for HTTP/3',
  },
  exclusive: [
    'requests duration',
    'requests warm-up-time',
    'h1 h3',
    'h1 no-tls-proto',
    'h3 no-tls-proto',
    'h1 window-bits',
    'h1 connection-window-bits',
  ],
  options: {
    requests: valued('n'),
    clients: valued('c'),
    threads: valued('t'),
    'max-concurrent-streams': valued('m'),
    'window-bits': valued('w'),
    'connection-window-bits': valued('W'),
    duration: valued('D'),
    'no-tls-proto': valued('p'),
    rps: valued(),
    header: repeatable('H'),
    data: valued('d'),
    'warm-up-time': valued(),
    h1: toggle(),
    h3: toggle(),
    'alpn-list': valued(),
    ciphers: valued(),
    groups: valued(),
  },
  load(flags, scheme) {
    const protocol = protocolOfH2load(flags, scheme);
    const connections = flags.read('clients', readCount, '1');
    const perClient = flags.read('rps', (_, text) => Number(text));
    const rate = perClient && perClient * connections;
    const durationSeconds = flags.read('duration', time);
    const body = flags.read('data', bodyOfFile);
    const ciphers = flags.read('ciphers', wordsOfFlag(offered.ciphers));
    const curves = flags.read('groups', wordsOfFlag(offered.groups));
    const threads = flags.read('threads', readCount, '1');
    const length =
      durationSeconds === undefined
        ? { requests: flags.read('requests', readCount, '1'), ...present({ rate }) }
        : during(durationSeconds, rate);
    return {
      protocol,
      connections,
      threads,
      keepAlive: true,
      timeoutSeconds: endlessTimeoutSeconds,
      ...length,
      ...present({
        streams: flags.read('max-concurrent-streams', readCount),
        warmupSeconds: flags.read('warm-up-time', time),
        tls: protocol === 'h2c' ? undefined : (ciphers ?? curves) && present({ ciphers, curves }),
      }),
      ...receiveWindowIn(flags),
      ...headersOf('h2load -H', flags.all('header'), protocol),
      ...present({ method: body === undefined ? undefined : 'POST', body }),
    };
  },
};

/** h2load's -p is for addresses without TLS. Without an address it means that there is no TLS. */
function protocolOfH2load(flags: Flags, scheme: Scheme | undefined): Protocol {
  const [plain] = flags.read('no-tls-proto', wordsOfFlag(['h2c', 'http/1.1'])) ?? [];
  if (flags.has('h3') || flags.read('alpn-list', wordsOfFlag(['h3'])) !== undefined) {
    if (scheme === 'http')
      throw new UserError('h2load: HTTP/3 goes with https:// addresses: leave --h3 out');
    return 'h3';
  }
  if (flags.has('h1')) return 'http/1.1';
  if (scheme === 'http' || (scheme === undefined && plain !== undefined)) return plain ?? 'h2c';
  return 'h2';
}

/** Ciphers and curves of the engine, in OpenSSL's names. */
const offered = {
  ciphers: ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].flatMap((cipher) => [
    `ECDHE-ECDSA-${cipher}`,
    `ECDHE-RSA-${cipher}`,
  ]),
  groups: [...curveNames],
};

/** vegeta's HTTP/2 client uses a single connection and the server's own stream limit, 100 to 128 in the servers here. */
const vegetaHttp2 = { connections: 1, streams: 100 };
/** Over HTTP/1.1 vegeta opens a connection if all are busy. Here they are open from the start, at most so many without -max-connections. */
const vegetaConnections = '100';

const vegetaGenerator: LoadCommand = {
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
    header: repeatable(),
    // These do not change the load.
    name: valued(),
    output: valued(),
    workers: valued(),
    connections: valued(),
  },
  load(flags, scheme) {
    const seconds = flags.read('duration', time);
    if (seconds === undefined)
      throw new UserError(
        'vegeta: give a -duration such as -duration=10s: without one it never ends',
      );
    const perSecond = (flag: string, text: string) => readCount(flag, text.replace(/\/1?s$/, ''));
    const { rate, requests } = atRate(flags.read('rate', perSecond, '50'), seconds);
    const protocol = protocolOfVegeta(flags, scheme);
    const most = flags.read('max-connections', readCount, vegetaConnections);
    const connections =
      protocol === 'http/1.1' ? { connections: Math.min(requests, most) } : vegetaHttp2;
    return {
      protocol,
      ...connections,
      rate,
      timeoutSeconds: flags.read('timeout', time, '30s'),
      threads: 1,
      keepAlive: flags.get('keepalive') !== 'false',
      requests,
      ...headersOf('vegeta -header', flags.all('header'), protocol),
    };
  },
};

/** The same rule as in Go's client: HTTP/2 with TLS, and without TLS only for -h2c. */
function protocolOfVegeta(flags: Flags, scheme: Scheme | undefined): Protocol {
  const plain = flags.has('h2c') && flags.get('h2c') !== 'false';
  if (scheme === 'http' || (scheme === undefined && plain)) return plain ? 'h2c' : 'http/1.1';
  return flags.get('http2') === 'false' ? 'http/1.1' : 'h2';
}

/** Parts of a load that no flag sets. */
interface BesideFlags {
  /** Default: TLS 1.2 and 1.3, h2load's curves. */
  tls?: TlsOffer;
  /** Upper ends of the histogram's buckets, ascending, such as [0.15, 0.3, 1]. A last bucket takes the rest. */
  bucketsMs?: readonly number[];
}

/** Makes a load of a line without the generator's name. */
const loadBy =
  (generator: LoadCommand) =>
  (line: string, { tls, bucketsMs }: BesideFlags = {}): LoadProfile => {
    const { name } = generator;
    const { flags, others, shown } = readCommand(generator, wordsOfLine(line, name));
    if (others[0] !== undefined)
      throw new UserError(
        `${name}: leave "${others[0]}" out: bakeoff starts the server itself and knows its address`,
      );
    return {
      ...loadOf(generator, flags, shown),
      ...present({ bucketSeconds: bucketsMs?.map((ms) => ms / 1000), tls }),
    };
  };

function loadOf(
  generator: LoadCommand,
  flags: Flags,
  command: string,
  scheme?: Scheme,
): LoadProfile {
  const load = { command, ...generator.load(flags, scheme) };
  const problem = problemOfLoadForm(load) ?? problemOfLoad(load);
  if (problem !== undefined) throw new UserError(`${generator.name}: ${problem}`);
  return load;
}

/** A wrk command line without "wrk", such as `-c 100 -t 10 -d 10`: HTTP/1.1, with wrk2's -R at a rate. Defaults are wrk's. */
export const wrk = loadBy(wrkGenerator);

/** An ab command line without "ab", such as `-c 10 -n 1000 -k`: HTTP/1.0, a connection for each request unless -k. */
export const ab = loadBy(abGenerator);

/** A weighttp command line without "weighttp", such as `-k -c 100 -n 100000`: HTTP/1.1, a connection for each request unless -k. */
export const weighttp = loadBy(weighttpGenerator);

/**
 * The load of an h2load command line without the word "h2load", such as `-n 100000 -c 1000 -t 16`: HTTP/2 over TLS, `-p h2c` or
 * `-p http/1.1` without TLS, `--h1` HTTP/1.1 with or without, `--h3` HTTP/3. Defaults are h2load's.
 */
export const h2load = loadBy(h2loadGenerator);

/**
 * The load of a vegeta command line without the words "vegeta attack", such as `-http2 -rate=1000 -duration=10s`: HTTP/2 over
 * TLS, rate × duration requests, all awaited. Defaults are vegeta's.
 */
export const vegeta = loadBy(vegetaGenerator);

const generators = [wrkGenerator, h2loadGenerator, abGenerator, weighttpGenerator, vegetaGenerator];
const names = allNames(generators);

/** A complete command line of a load generator. */
export type LoadLine = ReturnType<typeof readLoadLine>;

/** Reads a line such as `wrk -t4 -c100 -d30s http://localhost:8080/a`. @throws UserError */
export function readLoadLine(text: string) {
  const [program, ...words] = wordsOfLine(text, 'the load');
  if (program === undefined)
    throw new UserError(
      `give the command line of a load generator, such as "wrk -c 100 -d 10": ${names.join(', ')}`,
    );
  const called = path.basename(program.text);
  // wrk2 is a wrk that requires a rate.
  const isWrk2 = called === 'wrk2';
  const generator = isWrk2 ? wrkGenerator : generators.find(({ name }) => name === called);
  if (generator === undefined)
    throw new UserError(`there is no load generator "${called}" here: ${offer(called, names)}`);
  const { name, subcommand, urlWithoutScheme } = generator;
  if (subcommand !== undefined && words.shift()?.text !== subcommand)
    throw new UserError(`${name}: only "${name} ${subcommand}" makes load: give a line with it`);
  const { flags, others, shown } = readCommand(generator, words);
  const [target, more] = others;
  if (isWrk2 && !flags.has('rate'))
    throw new UserError('wrk2: give it the requests/s that it is to make, such as -R 1000');
  if (more !== undefined)
    throw new UserError(
      `${name}: "${target}" and "${more}": one URL at a time; several pages are --urls FILE`,
    );
  if (target !== undefined && generator === vegetaGenerator)
    throw new UserError(`vegeta: leave "${target}" out: the URL is --url`);
  const needsScheme = urlWithoutScheme && target !== undefined && !/^https?:\/\//i.test(target);
  const address = needsScheme ? `http://${target}` : target;
  const url = address === undefined ? undefined : urlParts(address, name);
  return {
    ...present({ url }),
    /**
     * The load, and the Host to send, from a header or the URL.
     * @param scheme of the server, if the line has no URL
     * @throws UserError
     */
    over(scheme?: Scheme): { load: LoadProfile; host?: string } {
      const { headers, ...load } = loadOf(generator, flags, shown, url?.scheme ?? scheme);
      const { host = url?.host, others } = withoutHost(headers);
      return { load: { ...load, ...present({ headers: others }) }, ...present({ host }) };
    },
  };
}

function withoutHost(headers: LoadProfile['headers'] = {}) {
  const name = Object.keys(headers).find((header) => header.toLowerCase() === 'host') ?? '';
  const { [name]: host, ...others } = headers;
  return present({ host, others: Object.keys(others).length === 0 ? undefined : others });
}
