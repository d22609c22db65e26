// Waits until a started server answers its page as it should.
import { createHash } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { UserError } from '../errors.ts';
import { limited } from '../limited.ts';
import { hundredths, percent, whole } from '../format.ts';
import { total } from '../analysis/statistics.ts';
import { present } from '../present.ts';
import type { LoadRequest } from '../scenario/model.ts';
import { shownUrl } from '../secrets.ts';
import { isHttp2 } from '../scenario/load.ts';
import { requestName, requestsOf, serverNameOf, pathOfPage } from '../scenario/pages.ts';
import { bundledForNode } from '../../bin/bundle.mjs';
import { lastLine, run } from '../process.ts';
import { requireQuic } from './quic.ts';
import { retryAfter } from './startup.ts';
import type { Answer, Protocol, ReadyCheck, RunningServer, ServerSide } from './server.ts';

/** A connection that fails later was not refused. */
const silentMs = 1000;
/** Same limit as in the load. */
const mostHeaderBytes = 64 * 1024;
/** Codes of errors for which no connection came up. */
const unreached = /^E(?:CONNREFUSED|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_\w+)$/;
/** Node's words for how a connection ended, and ours. */
const endings: readonly [RegExp, string][] = [
  [/^aborted$/, 'its answer breaks off'],
  [/^socket hang up$/, 'it ends the connection without an answer'],
  [/tlsv1 alert internal error/, 'it has no certificate for this name'],
];

/**
 * Returns the answer once the page has its status, its length if known, and the protocol. Retries refused and broken connections.
 * @throws UserError after `limitMs`, and at once for a wrong answer or protocol; or the signal's reason
 */
export async function waitUntilReady(
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs = 10_000,
): Promise<Answer> {
  const { origin, page, protocol, allPages } = check;
  const first = requestsOf(page).find(({ target }) => target === page.path) as LoadRequest;
  const url = shownUrl(origin + pathOfPage(page));
  requireFit(url, protocol);
  const fail = (problem: string, hint = withName(check)): never => {
    throw new UserError(`${url} ${problem}${hint}`);
  };
  const within = `within ${limitMs / 1000} s`;
  // The timer of AbortSignal.timeout does not keep Node from ending.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const until = AbortSignal.any([signal, late.signal]);
  const beganMs = performance.now();
  try {
    // A server that answers no connection, or not in time, does so for all names.
    for (let last = '', hint = ''; ; await delay(retryAfter(performance.now() - beganMs))) {
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
        const isLong = performance.now() - askedAtMs >= silentMs;
        if (error instanceof EndlessBody && isLong) fail(error.slow(within));
        const unanswered = `did not answer over ${protocol}`;
        if (late.signal.aborted && isLong) fail(`${unanswered} ${within}`, '');
        if (late.signal.aborted) fail(`${unanswered} ${within}${last}`, hint);
        const { code = '', message } = error as NodeJS.ErrnoException;
        const problem = wrongProtocol(code, message, protocol);
        if (problem !== undefined) fail(problem);
        const isRefused = code === 'ECONNREFUSED';
        if (check.hangsUp !== undefined && !isRefused) fail(`did not answer: ${check.hangsUp}`);
        hint = unreached.test(code) ? '' : withName(check);
        last = `: ${endings.find(([words]) => words.test(message))?.[1] ?? message}`;
        if (check.isThere)
          fail(`${unanswered}${last}${isRefused ? ': start what is to listen there' : ''}`, hint);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

function requireFit(url: string, protocol: Protocol): void {
  const isSecure = url.startsWith('https:');
  if (protocol.startsWith('http/') || isSecure === (protocol !== 'h2c')) return;
  const [needs, has, choose] = isSecure ? ['has no', 'it', 'without'] : ['needs', 'none', 'with'];
  throw new UserError(
    `the load is ${protocol}, which ${needs} TLS, and ${url} has ${has}: choose a config ${choose} TLS, or another protocol`,
  );
}

function requireRight(
  { status, bytes, location }: Answer,
  url: string,
  check: ReadyCheck,
  request: LoadRequest,
): void {
  const { page, anyLength, user } = check;
  const { docroot, host, requests, bodyBytes, status: expected = 200 } = page;
  // Requests with a status of their own are judged together.
  if (request.status !== undefined) return;
  const asked = host === undefined ? url : `${url} (host ${host})`;
  if (status === expected) {
    // The length of several pages is their mean.
    if (anyLength || requests !== undefined || (bodyBytes ?? bytes) === bytes) return;
    throw new UserError(
      `${asked} answers with ${bytes} bytes instead of ${bodyBytes}: it is not the page that is to be measured`,
    );
  }
  const to = location && ` to ${location}`;
  const fail = (words: string): never => {
    throw new UserError(`${asked} answers with status ${status}${words}`);
  };
  if (docroot !== undefined) fail(`${to} instead of ${expected}`);
  const another = `give a page that it answers with ${expected}`;
  const howToAsk = ' (--url; in a scenario page.path)';
  if (status === 403 && user !== undefined)
    fail(
      `: it runs as ${user} here: open all folders above the page (chmod o+x) and the page (chmod o+r), or ${another}${howToAsk}`,
    );
  if (status === 502 || status === 504)
    fail(
      `: its backend does not answer; start the backend first, since bakeoff does not${withName(check)}`,
    );
  fail(
    `${to}: ${another}${withName(check) || howToAsk}, or expect this one (--status ${status}; in a scenario page.status)`,
  );
}

/** How to ask for a name of the server: its default host may only turn requests away. */
function withName({ origin, page, hosts = [] }: ReadyCheck): string {
  const name = hosts
    .map((host) => /^([\w-]+(?:\.[\w-]+)+)(?::\d+)?$/.exec(host)?.[1])
    .find(Boolean);
  return name === undefined || page.host !== undefined
    ? ''
    : ` (it serves ${name}: --url ${origin.split(':')[0]}://${name}${shownUrl(pathOfPage(page))}; in a scenario page.host)`;
}

/** Patterns for code and message. A colon at the end is followed by Node's message. */
const wrongProtocols: readonly [RegExp, string?][] = [
  // Caddy answers so until it has made its certificate, for seconds on a busy machine.
  [/tlsv1 alert internal error/],
  [
    /^\S*NO_APPLICATION_PROTOCOL/,
    'does not speak HTTP/2 over TLS: its config leaves it out of ALPN (in nginx: http2)',
  ],
  [/wrong.version.number|packet.length.too.long/i, 'answers without TLS, where TLS is expected'],
  [/^(?:ERR_SSL_|EPROTO |ERR_CRYPTO_OPERATION_FAILED)/, 'has no TLS that fits:'],
  [/^HPE_HEADER_OVERFLOW/, `answers with headers of more than ${mostHeaderBytes / 1024} KiB`],
  [/^HPE_INVALID_CONSTANT/, 'does not answer in HTTP/1.1: it may expect TLS, or speak HTTP/2 only'],
  [/^HPE_/, 'answers with something else than HTTP/1.1 allows:'],
  [/^ERR_HTTP2_ERROR/, 'does not speak HTTP/2'],
];

/** undefined for the errors of a server that is still starting. */
function wrongProtocol(code: string, message: string, protocol: Protocol): string | undefined {
  const words = wrongProtocols.find(([sign]) => sign.test(`${code} ${message}`))?.[1];
  if (words?.endsWith(':'))
    return `${words} ${/^\s*(?:Parse Error:)?\s*(.*)/.exec(message)?.[1]?.trimEnd()}`;
  return words?.endsWith('HTTP/2') && protocol === 'h2c' ? `${words} without TLS (h2c)` : words;
}

const batch = 100;
const batchConnections = 8;
const pageLimitMs = 10_000;
const named = 3;
/** The share of requests that a server may answer with another status than their own. */
const mostOthers = 0.05;

async function askPages(
  check: ReadyCheck,
  requests: readonly LoadRequest[],
  signal: AbortSignal,
): Promise<Partial<Answer>> {
  const { origin, page, anyLength, acceptsDifferences, record = 'log' } = check;
  const { status: expected = 200, bodyBytes } = page;
  const asked = await askEach(check, requests, signal);
  const wrong = asked.flatMap(({ request, answer }) => {
    if (answer instanceof Error) return `${requestName(request)} (${answer.message})`;
    const isRight = request.status !== undefined || answer.status === expected;
    return isRight ? [] : `${requestName(request)} (status ${answer.status})`;
  });
  if (wrong.length > 0)
    throw new UserError(
      `of ${whole(requests.length)} requests these are not answered as expected: ${namedOf(wrong)}: take them out of the list, or have them served`,
    );
  const pages = asked.map(({ request: { weight = 1, ...request }, answer }) => ({
    request,
    weight,
    answer: answer as Answer,
  }));
  const others = pages.filter(
    ({ request, answer }) => (request.status ?? answer.status) !== answer.status,
  );
  const partOf = ({ status, encoding, bytes, hash }: Answer) => ({ status, encoding, bytes, hash });
  const weightOf = ({ weight }: { weight: number }) => weight;
  const share = total(others, weightOf) / total(pages, weightOf);
  const such = others.map(
    ({ request, answer }) => `${requestName(request)} (${answer.status}, not ${request.status})`,
  );
  const otherStatuses = `${percent(share)} of the requests with another status than the ${record}: ${namedOf(such)}`;
  if (share > mostOthers && !acceptsDifferences)
    throw new UserError(
      `${origin} answers ${otherStatuses}: have it serve what the ${record} has, take a ${record} of this site, or add --accept-differences`,
    );
  const mean = (of: (bytes: number) => number) =>
    total(pages, ({ weight, answer }) => weight * of(answer.bytes)) / total(pages, weightOf);
  // Relative to the first, so that equal lengths give an exact mean.
  const base = pages[0]?.answer.bytes ?? 0;
  const bytes = base + mean((length) => length - base);
  if (!anyLength && Math.round(bytes) !== (bodyBytes ?? Math.round(bytes)))
    throw new UserError(
      `the pages at ${origin} have ${hundredths(bytes)} bytes on average, by their weights, and bodyBytes says ${bodyBytes}: they are not what is to be measured`,
    );
  const answer: Partial<Answer> = {
    bytes,
    sdBytes: Math.sqrt(mean((length) => (length - bytes) ** 2)),
    each: pages.map(({ answer: given }) => partOf(given)),
  };
  if (others.length === 0) return answer;
  answer.otherStatuses = otherStatuses;
  answer.requests = asked.map((each) => {
    const { status } = each.answer as Answer;
    return each.request.status === undefined ? each.request : { ...each.request, status };
  });
  return answer;
}

async function askEach(check: ReadyCheck, requests: readonly LoadRequest[], signal: AbortSignal) {
  const asked: { request: LoadRequest; answer: Answer | Error }[] = [];
  let silent = 0;
  for (let from = 0; from < requests.length && silent < named; from += batch) {
    const some = requests.slice(from, from + batch);
    const together = await onConnection(check, limited(signal, pageLimitMs), (ask) =>
      Promise.all(some.map((request) => ask(request).catch(() => undefined))),
    ).catch(() => []);
    for (const [place, request] of some.entries()) {
      // A server may close a connection at any time: the page gets a second try on its own.
      const alone = (error: Error) =>
        error.name === 'TimeoutError'
          ? new Error(`no answer within ${pageLimitMs / 1000} s`)
          : error;
      const answer =
        together[place] ??
        (await onConnection(check, limited(signal, pageLimitMs), (ask) => ask(request)).catch(
          alone,
        ));
      signal.throwIfAborted();
      asked.push({ request, answer });
      if (answer instanceof Error && ++silent === named) break;
    }
  }
  return asked;
}

/** The first few of them, and how many more there are. */
function namedOf(all: readonly string[]): string {
  const more = all.length > named ? ` and ${whole(all.length - named)} more` : '';
  return all.slice(0, named).join(', ') + more;
}

/** The connections are closed before the load starts. */
async function onConnection<T>(
  check: ReadyCheck,
  signal: AbortSignal,
  work: (ask: (request: LoadRequest) => Promise<Answer>) => Promise<T>,
): Promise<T> {
  const { origin, protocol, page, tls } = check;
  const isSecure = origin.startsWith('https:');
  const { minVersion, maxVersion, ciphers, curves } = tls ?? {};
  const secure = {
    rejectUnauthorized: false,
    ...present({
      servername: serverNameOf(page.host),
      minVersion,
      maxVersion,
      // Node would leave out TLS 1.3 without its suites.
      ciphers: ciphers && [...tls13Suites, ...ciphers].join(':'),
      ecdhCurve: curves && curvesOfNode(curves),
    }),
  };
  setMaxListeners(0, signal);
  if (!isHttp2(protocol)) {
    const { Agent, request: send } = isSecure ? https : http;
    const agent = new Agent({ keepAlive: true, maxSockets: batchConnections, ...secure });
    return work(async (request) => {
      const { body, ...options } = completed(request, check);
      const all = { ...options, agent, signal, maxHeaderSize: mostHeaderBytes };
      const sent = send(origin + request.target, all);
      const response = responseOf<[IncomingMessage]>(sent);
      sent.end(body);
      const [answer] = await response;
      return answerOf(answer.statusCode, answer.headers, answer, signal);
    }).finally(() => agent.destroy());
  }
  const session = connect(origin, secure);
  // The stream reports an error of the session too.
  session.on('error', () => undefined);
  try {
    await once(session, 'connect', { signal });
    // Node accepts a server without ALPN; the load does not.
    if (isSecure && session.alpnProtocol !== 'h2')
      throw Object.assign(new Error('no ALPN'), { code: 'ERR_SSL_NO_APPLICATION_PROTOCOL' });
    return await work(async (request) => {
      const { pathname, search } = new URL(origin + request.target);
      const { method, headers, body } = completed(request, check);
      const { host, ...others } = headers;
      const own = { ':method': method, ':path': pathname + search };
      const sent = session.request(
        { ...own, ...present({ ':authority': host }), ...others },
        { signal, endStream: body === undefined },
      );
      const response = responseOf<[IncomingHttpHeaders & IncomingHttpStatusHeader]>(sent);
      if (body !== undefined) sent.end(body);
      const [answer] = await response;
      return answerOf(answer[':status'], answer, sent, signal);
    });
  } finally {
    session.destroy();
  }
}

/**
 * The curves to ask the server with. Node has the post-quantum ones from OpenSSL 3.5 on; before, they are the load's alone, and a server
 * is asked with the others, or with Node's own.
 */
function curvesOfNode(curves: readonly string[]): string | undefined {
  const known = curves.filter((curve) => !/mlkem/i.test(curve) || isOfNode(curve));
  return known.length === 0 ? undefined : known.join(':');
}

function isOfNode(curve: string): boolean {
  try {
    createSecureContext({ ecdhCurve: curve });
    return true;
  } catch {
    return false;
  }
}

const tls13Suites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
];

/** The method, headers (names in lower case) and body to send. */
function completed(request: LoadRequest, { page: { host }, request: ofLoad = {} }: ReadyCheck) {
  const { method = ofLoad.method ?? 'GET', body, bodyBase64 } = request;
  const headers: Record<string, string> = { ...present({ host }) };
  // Access logs tell the check from the requests of the load by its name.
  for (const some of [ofLoad.headers, request.headers, { 'user-agent': 'bakeoff-ready' }])
    for (const [name, value] of Object.entries(some ?? {})) headers[name.toLowerCase()] = value;
  const own = bodyBase64 === undefined ? body : Buffer.from(bodyBase64, 'base64');
  return { method, headers, body: request.method === undefined ? ofLoad.body : own };
}

function responseOf<T extends unknown[]>(emitter: NodeJS.EventEmitter): Promise<T> {
  return new Promise((resolve, reject) => {
    emitter
      .once('response', (...values) => resolve(values as T))
      .once('error', reject)
      .once('close', () => reject(new Error('the connection was closed')));
  });
}

class EndlessBody extends Error {
  override message = 'its body does not end';
  private readonly bytes: number;
  private readonly length: string | undefined;

  constructor(bytes: number, length: string | undefined) {
    super();
    this.bytes = bytes;
    this.length = length;
  }

  /** What to say of it. @param within "within 10 s" */
  slow(within: string): string {
    return this.length === undefined
      ? `answers with a body that did not end ${within}: give a page that ends`
      : `answers with ${whole(Number(this.length))} bytes, of which ${whole(this.bytes)} came ${within}: give a smaller page, or lift what slows it down (in nginx: limit_rate)`;
  }
}

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
    // A body without a length seems to end when the signal closes its connection.
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted && bytes > 0 ? new EndlessBody(bytes, headers['content-length']) : error;
  }
  return { status, bytes, hash: hash.digest('hex'), encoding, type, location };
}

/** The exit code of a process that prints a UserError of waitUntilReady. */
export const notReady = 3;

/** Does waitUntilReady, in an enclosure by a process of its own. @param enter as in ServerSide; absent: on loopback */
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
  if (code === 0) return JSON.parse(stdout) as Answer;
  if (code === notReady) throw new UserError(stdout.trimEnd());
  throw new UserError(
    `${check.origin} cannot be asked from inside its network: ${lastLine(stderr)}`,
  );
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
