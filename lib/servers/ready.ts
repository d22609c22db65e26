// Waits until a started server answers its page as it should.
import { createHash } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import { Agent as PlainAgent, request as requestPlain, type IncomingMessage } from 'node:http';
import {
  connect,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { Agent as SecureAgent, request as requestSecure } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import { UserError } from '../errors.ts';
import { hundredths, percent, whole } from '../format.ts';
import { total } from '../analysis/statistics.ts';
import { present } from '../present.ts';
import type { LoadRequest, TlsOffer } from '../scenario/model.ts';
import { shownUrl } from '../scenario/load/flags.ts';
import { isHttp2 } from '../scenario/load.ts';
import { requestName, requestsOf, serverNameOf } from '../scenario/pages.ts';
import { bundledForNode } from '../../bin/bundle.mjs';
import { lastLine, run } from '../process.ts';
import { requireQuic } from './quic.ts';
import type { Answer, Protocol, ReadyCheck, RunningServer, ServerSide } from './server.ts';

const retryMs = 20;
/** A connection that fails later was not refused. */
const silentMs = 1000;
/** A server whose answers break off for longer is not starting any more. */
const mostBrokenMs = 5000;
/** The load takes no more. */
const mostHeaderBytes = 64 * 1024;
/** So caddy refuses a connection until it has made its certificate, for seconds on a busy machine. */
const noCertificate = 'tlsv1 alert internal error';
/** Node's words for how a connection ended. */
const reasons: Readonly<Record<string, string>> = {
  aborted: 'its answer breaks off',
  'socket hang up': 'it ends the connection without an answer',
  [noCertificate]: 'it has no certificate for this name',
};

/**
 * Returns the answer once the page has its status, its length if known, and the protocol. Retries refused and broken connections for
 * `limitMs`. Throws UserError after that, and at once for a wrong answer or protocol; or the signal's reason.
 */
export async function waitUntilReady(
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs = 10_000,
): Promise<Answer> {
  const { origin, page, protocol, allPages } = check;
  const first = requestsOf(page).find(({ target }) => target === page.path) as LoadRequest;
  const url = shownUrl(origin + page.path);
  requireFit(url, protocol);
  // The timer of AbortSignal.timeout does not keep Node from ending.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const until = AbortSignal.any([signal, late.signal]);
  try {
    let last = '';
    let brokenSinceMs: number | undefined;
    for (;;) {
      const askedAtMs = performance.now();
      try {
        const answer = await onConnection(check, until, (ask) => ask(first));
        requireRight(answer, url, check, first);
        // Node has no HTTP/3: the page is asked for over HTTP/1.1.
        if (protocol === 'h3') await requireQuic(origin, until);
        if (page.requests === undefined || !allPages) return answer;
        return { ...answer, ...(await askPages(check, page.requests, signal)) };
      } catch (error) {
        if (error instanceof UserError) throw error;
        signal.throwIfAborted();
        const { code, message: words } = error as NodeJS.ErrnoException;
        const message = words.includes(noCertificate) ? noCertificate : words;
        const within = `within ${limitMs / 1000} s`;
        if (error instanceof EndlessBody)
          throw new UserError(
            `${url} answers with a body that did not end ${within}: give a page that ends`,
          );
        if (late.signal.aborted)
          throw new UserError(
            `${url} did not answer over ${protocol} ${within}${performance.now() - askedAtMs < silentMs ? last : ''}${withName(check)}`,
          );
        const problem =
          message === noCertificate
            ? undefined
            : wrongProtocol(error as NodeJS.ErrnoException, protocol);
        if (problem !== undefined) throw new UserError(`${url} ${problem}${withName(check)}`);
        if (check.hangsUp !== undefined && code !== 'ECONNREFUSED')
          throw new UserError(`${url} did not answer: ${check.hangsUp}${withName(check)}`);
        brokenSinceMs = message === 'aborted' ? (brokenSinceMs ?? askedAtMs) : undefined;
        last = `: ${reasons[message] ?? message}`;
        if (brokenSinceMs !== undefined && performance.now() - brokenSinceMs > mostBrokenMs)
          throw new UserError(`${url} does not answer as it should${last}${withName(check)}`);
        if (check.isThere)
          throw new UserError(
            `${url} did not answer over ${protocol}${last}${code === 'ECONNREFUSED' ? ': start what is to listen there' : ''}`,
          );
      }
      await delay(retryMs);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Throws UserError if the protocol does not fit the config: h2 and h3 need TLS, h2c has none. */
function requireFit(url: string, protocol: Protocol): void {
  const secure = url.startsWith('https:');
  if (protocol === 'h3' && !secure)
    throw new UserError(`the load is HTTP/3, which has TLS, and ${url} has none: give https://`);
  if (protocol !== (secure ? 'h2c' : 'h2')) return;
  const [load, config, remedy] = secure
    ? ['without TLS (h2c)', 'TLS', 'without it, or the protocol h2']
    : ['over TLS (h2)', 'no TLS', 'with it, or the protocol h2c'];
  throw new UserError(
    `the load is HTTP/2 ${load}, and the server's config has ${config}: choose a config ${remedy}`,
  );
}

function requireRight(
  { status, bytes, location }: Answer,
  url: string,
  check: ReadyCheck,
  request: LoadRequest,
): void {
  const { page, anyLength, user } = check;
  const { docroot, host, requests, bodyBytes } = page;
  // Requests with a status of their own are judged together.
  if (request.status !== undefined) return;
  const expected = page.status ?? 200;
  const asked = host === undefined ? url : `${url} (host ${host})`;
  if (status === expected) {
    // The length of several pages is their mean.
    if (anyLength || requests !== undefined || (bodyBytes ?? bytes) === bytes) return;
    throw new UserError(
      `${asked} answers with ${bytes} bytes instead of ${bodyBytes}: it is not the page that is to be measured`,
    );
  }
  const answers = `${asked} answers with status ${status}`;
  const to = location && ` to ${location}`;
  if (docroot !== undefined) throw new UserError(`${answers}${to} instead of ${expected}`);
  const another = `give a page that it answers with ${expected}`;
  if (status === 403 && user !== undefined)
    throw new UserError(
      `${answers}: it runs as the user ${user} here, for whom all folders above the page have to be open (chmod o+x) and the page readable (chmod o+r); or ${another}${howToAsk}`,
    );
  if (status === 502 || status === 504)
    throw new UserError(
      `${answers}: its backend does not answer; start the backend first, since bakeoff does not${withName(check)}`,
    );
  throw new UserError(
    `${answers}${to}: ${another}${withName(check) || howToAsk}, or expect this one (--status ${status}; in a scenario page.status)`,
  );
}

const howToAsk = ' (--url; in a scenario page.path)';

/** Says how to ask for a name of the server, if the page has no host. The server's default host may only turn requests away. */
function withName({ origin, page, hosts = [] }: ReadyCheck): string {
  const name = hosts
    .map((host) => /^([\w-]+(?:\.[\w-]+)+)(?::\d+)?$/.exec(host)?.[1])
    .find(Boolean);
  return name === undefined || page.host !== undefined
    ? ''
    : ` (it serves ${name}: --url ${origin.split(':')[0]}://${name}${shownUrl(page.path)}; in a scenario page.host)`;
}

/** Explains an error that shows another protocol; undefined for the errors of a server that is still starting. */
function wrongProtocol(
  { code = '', message }: NodeJS.ErrnoException,
  protocol: Protocol,
): string | undefined {
  if (code.endsWith('NO_APPLICATION_PROTOCOL'))
    return 'does not speak HTTP/2 over TLS: its config leaves it out of ALPN (in nginx: http2)';
  if (/wrong.version.number|packet.length.too.long/i.test(code + message))
    return 'answers without TLS, where TLS is expected';
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO' || code === 'ERR_CRYPTO_OPERATION_FAILED')
    return `has no TLS that fits: ${message.trim().split('\n')[0]}`;
  if (code === 'HPE_HEADER_OVERFLOW')
    return `answers with headers of more than ${mostHeaderBytes / 1024} KiB`;
  if (code === 'HPE_INVALID_CONSTANT')
    return 'does not answer in HTTP/1.1: it may expect TLS, or speak HTTP/2 only';
  if (code.startsWith('HPE_'))
    return `answers with something else than HTTP/1.1 allows: ${message.replace(/^Parse Error: /, '')}`;
  if (code === 'ERR_HTTP2_ERROR')
    return `does not speak HTTP/2${protocol === 'h2c' ? ' without TLS (h2c)' : ''}`;
  return undefined;
}

const batch = 100;
/** Connections of a batch over HTTP/1.1. HTTP/2 uses a single connection. */
const batchConnections = 8;
const pageLimitMs = 10_000;
const named = 3;

type PageLengths = Required<Pick<Answer, 'bytes' | 'sdBytes'>>;
/** The share of a log's requests that a server may answer with another status than the log says. */
const mostOthers = 0.05;

/** Asks for each page. Returns the mean length of their bodies by weight, and its standard deviation. */
async function askPages(
  check: ReadyCheck,
  requests: readonly LoadRequest[],
  aborted: AbortSignal,
): Promise<PageLengths & Pick<Answer, 'each' | 'requests' | 'otherStatuses'>> {
  const { origin, page, anyLength, acceptsDifferences } = check;
  const limited = () => AbortSignal.any([aborted, AbortSignal.timeout(pageLimitMs)]);
  const each: Answer[] = [];
  const answered: LoadRequest[] = [];
  const others: string[] = [];
  let othersWeight = 0;
  const wrong: string[] = [];
  let silent = 0;
  for (let from = 0; from < requests.length && silent < named; from += batch) {
    const some = requests.slice(from, from + batch);
    const together = await onConnection(check, limited(), (ask) =>
      Promise.all(some.map((request) => ask(request).catch(() => undefined))),
    ).catch(() => []);
    for (const [place, request] of some.entries()) {
      const path = requestName(request);
      // A server may close a connection at any time: the page gets a second try on its own.
      const answer =
        together[place] ??
        (await onConnection(check, limited(), (ask) => ask(request)).catch(
          (error: Error) => error,
        ));
      aborted.throwIfAborted();
      if (answer instanceof Error) {
        wrong.push(
          `${path} (${answer.name === 'TimeoutError' ? `no answer within ${pageLimitMs / 1000} s` : answer.message})`,
        );
        if (++silent === named) break;
      } else if (request.status === undefined && answer.status !== (page.status ?? 200))
        wrong.push(`${path} (status ${answer.status})`);
      else {
        each.push(answer);
        answered.push(
          request.status === undefined ? request : { ...request, status: answer.status },
        );
        if (request.status !== undefined && request.status !== answer.status) {
          others.push(`${path} (${answer.status}, not ${request.status})`);
          othersWeight += request.weight ?? 1;
        }
      }
    }
  }
  if (wrong.length > 0) {
    const more = wrong.length > named ? ` and ${whole(wrong.length - named)} more` : '';
    throw new UserError(
      `of ${whole(requests.length)} requests these are not answered as expected: ${wrong.slice(0, named).join(', ')}${more}: take them out of the list, or have them served`,
    );
  }
  const share = othersWeight / total(requests, ({ weight = 1 }) => weight);
  const otherStatuses =
    others.length === 0
      ? undefined
      : `${percent(share)} of the requests with another status than the log: ${others.slice(0, named).join(', ')}${others.length > named ? ` and ${whole(others.length - named)} more` : ''}`;
  if (share > mostOthers && !acceptsDifferences)
    throw new UserError(
      `${origin} answers ${otherStatuses}: have it serve what the log has, take a log of this site, or add --accept-differences`,
    );
  const bodies = meanByWeight(
    requests.map(({ weight = 1 }) => weight),
    each.map(({ bytes }) => bytes),
  );
  if (anyLength || Math.round(bodies.bytes) === (page.bodyBytes ?? Math.round(bodies.bytes)))
    return {
      ...bodies,
      each: each.map(({ status, encoding, bytes, hash }) => ({ status, encoding, bytes, hash })),
      ...(otherStatuses === undefined ? {} : { otherStatuses, requests: answered }),
    };
  throw new UserError(
    `the pages at ${origin} have ${hundredths(bodies.bytes)} bytes on average, by their weights, and bodyBytes says ${page.bodyBytes}: they are not what is to be measured`,
  );
}

function meanByWeight(weights: readonly number[], lengths: readonly number[]): PageLengths {
  const [first = 0] = lengths;
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const mean = (values: readonly number[]) =>
    weights.reduce((all, weight, place) => all + weight * (values[place] as number), 0) / sum;
  // Relative to the first, so that equal lengths give an exact mean.
  const bytes = first + mean(lengths.map((length) => length - first));
  return { bytes, sdBytes: Math.sqrt(mean(lengths.map((length) => (length - bytes) ** 2))) };
}

/** Does the work with connections of its own, so that none is open when the load starts. */
async function onConnection<T>(
  check: ReadyCheck,
  signal: AbortSignal,
  work: (ask: (request: LoadRequest) => Promise<Answer>) => Promise<T>,
): Promise<T> {
  const { origin, protocol, page, tls } = check;
  const secure = secureOptions(tls, page.host);
  setMaxListeners(0, signal);
  if (!isHttp2(protocol)) {
    const Agent = origin.startsWith('https:') ? SecureAgent : PlainAgent;
    const agent = new Agent({ keepAlive: true, maxSockets: batchConnections, ...secure });
    return work((request) => askHttp1(request, check, signal, agent)).finally(() =>
      agent.destroy(),
    );
  }
  const session = connect(origin, secure);
  // The stream reports an error of the session too.
  session.on('error', () => undefined);
  try {
    await once(session, 'connect', { signal });
    // Node accepts a server without ALPN; the load does not.
    if (origin.startsWith('https:') && session.alpnProtocol !== 'h2')
      throw Object.assign(new Error('no ALPN'), { code: 'ERR_SSL_NO_APPLICATION_PROTOCOL' });
    return await work((request) => askHttp2(request, check, signal, session));
  } finally {
    session.destroy();
  }
}

/** @param host of the page; if it is a name, TLS asks for it too (SNI) */
function secureOptions(
  { minVersion, maxVersion, ciphers, curves }: TlsOffer = {},
  host?: string,
): ConnectionOptions & { rejectUnauthorized: false } {
  return {
    rejectUnauthorized: false,
    ...present({
      servername: serverNameOf(host),
      minVersion,
      maxVersion,
      // Node would leave out TLS 1.3 without its suites.
      ciphers: ciphers && [...tls13Suites, ...ciphers].join(':'),
      ecdhCurve: curves?.join(':'),
    }),
  };
}

const tls13Suites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
];

/** Marks the check in access logs, which count the requests of the load. */
const userAgent = 'bakeoff-ready';

/** The method, headers (names in lower case) and body to send. */
function completed(
  request: LoadRequest,
  { page: { host }, request: ofLoad = {} }: ReadyCheck,
): { method: string; headers: Record<string, string>; body: string | Buffer | undefined } {
  const { method = ofLoad.method ?? 'GET' } = request;
  const own =
    request.bodyBase64 === undefined ? request.body : Buffer.from(request.bodyBase64, 'base64');
  const headers = [ofLoad.headers, request.headers, { 'user-agent': userAgent }].flatMap((some) =>
    Object.entries(some ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return {
    method,
    headers: { ...present({ host }), ...Object.fromEntries(headers) },
    body: request.method === undefined ? ofLoad.body : own,
  };
}

async function askHttp1(
  asked: LoadRequest,
  check: ReadyCheck,
  signal: AbortSignal,
  agent: PlainAgent,
): Promise<Answer> {
  const send = check.origin.startsWith('https:') ? requestSecure : requestPlain;
  const { method, headers, body } = completed(asked, check);
  const options = { agent, signal, method, headers, maxHeaderSize: mostHeaderBytes };
  const request = send(check.origin + asked.target, options);
  const response = responseOf<[IncomingMessage]>(request);
  request.end(body);
  const [answer] = await response;
  return answerOf(answer.statusCode, answer.headers, answer, signal);
}

async function askHttp2(
  asked: LoadRequest,
  check: ReadyCheck,
  signal: AbortSignal,
  session: ClientHttp2Session,
): Promise<Answer> {
  const { pathname, search } = new URL(check.origin + asked.target);
  const {
    method,
    headers: { host, ...headers },
    body,
  } = completed(asked, check);
  const stream = session.request(
    {
      ':method': method,
      ':path': pathname + search,
      ...present({ ':authority': host }),
      ...headers,
    },
    { signal, endStream: body === undefined },
  );
  const response = responseOf<[IncomingHttpHeaders & IncomingHttpStatusHeader]>(stream);
  if (body !== undefined) stream.end(body);
  const [answered] = await response;
  return answerOf(answered[':status'], answered, stream, signal);
}

/** The response, or an error if the emitter closes before it. */
function responseOf<T extends unknown[]>(emitter: NodeJS.EventEmitter): Promise<T> {
  return new Promise((resolve, reject) => {
    emitter
      .once('response', (...values) => resolve(values as T))
      .once('error', reject)
      .once('close', () => reject(new Error('the connection was closed')));
  });
}

class EndlessBody extends Error {}

async function answerOf(
  status = 0,
  headers: IncomingHttpHeaders,
  body: AsyncIterable<unknown>,
  signal: AbortSignal,
): Promise<Answer> {
  const { 'content-encoding': encoding = '', 'content-type': type = '', location = '' } = headers;
  let bytes = 0;
  const hash = createHash('sha1');
  try {
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length;
      hash.update(chunk as Buffer);
    }
  } catch (error) {
    throw signal.aborted && bytes > 0 ? new EndlessBody() : error;
  }
  return { status, bytes, hash: hash.digest('hex'), encoding, type, location };
}

export type ReadyAnswer = { answer: Answer } | { problem: string };

/**
 * Does waitUntilReady in a process of its own in a network of the run, which this process cannot enter.
 * @param enter as in ServerSide; absent: this network
 */
export async function waitUntilReadyInside(
  enter: ServerSide['enter'] | undefined,
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs?: number,
): Promise<Answer> {
  if (enter === undefined) return waitUntilReady(check, signal, limitMs);
  const script = await bundledForNode(new URL('./ready-child.ts', import.meta.url), {
    readyCheck: check,
  });
  const { code, stdout, stderr } = await run({
    before: enter,
    command: process.execPath,
    args: ['--input-type=module', '-'],
    input: script,
    signal,
  });
  if (code !== 0)
    throw new UserError(
      `${check.origin} cannot be asked from inside its network: ${lastLine(stderr)}`,
    );
  const outcome = JSON.parse(stdout) as ReadyAnswer;
  if ('problem' in outcome) throw new UserError(outcome.problem);
  return outcome.answer;
}

/** Returns a running server's answer; asks for all of several pages. `enter` as above. */
export async function answerOfAll(
  { origin, answer }: RunningServer,
  check: Omit<ReadyCheck, 'origin' | 'allPages'>,
  signal: AbortSignal,
  enter?: ServerSide['enter'],
): Promise<Answer> {
  if (check.page.requests === undefined) return answer;
  return waitUntilReadyInside(enter, { ...check, origin, allPages: true }, signal);
}
