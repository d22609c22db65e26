// Asks a server for pages, over the load's protocol and with the load's headers.
import { createHash } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import { whole } from '../format.ts';
import { present } from '../present.ts';
import { isHttp2 } from '../scenario/load.ts';
import type { LoadRequest } from '../scenario/model.ts';
import { serverNameOf } from '../scenario/pages.ts';
import type { Answer, ReadyCheck } from './server.ts';

/** The limit of an answer's headers, as in the load. */
export const mostHeaderBytes = 64 * 1024;
const mostConnections = 8;

/** Makes a request. @throws EndlessBody, what Node throws, the signal's reason */
type Ask = (request: LoadRequest) => Promise<Answer>;

/** Works on connections to the server, at most 8, or one over HTTP/2. They are closed before the load starts. */
export async function onConnection<T>(
  check: ReadyCheck,
  signal: AbortSignal,
  work: (ask: Ask) => Promise<T>,
): Promise<T> {
  setMaxListeners(0, signal);
  if (isHttp2(check.load.protocol)) return overHttp2(check, signal, work);
  return overHttp1(check, signal, work);
}

const isSecure = ({ origin }: ReadyCheck): boolean => origin.startsWith('https:');

async function overHttp1<T>(
  check: ReadyCheck,
  signal: AbortSignal,
  work: (ask: Ask) => Promise<T>,
): Promise<T> {
  const { Agent, request: send } = isSecure(check) ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: mostConnections, ...tlsOf(check) });
  const ask: Ask = async (request) => {
    const { body, ...options } = completed(request, check);
    const all = { ...options, agent, signal, maxHeaderSize: mostHeaderBytes };
    const sent = send(check.origin + request.target, all);
    const response = responseOf<[IncomingMessage]>(sent);
    sent.end(body);
    const [answer] = await response;
    return answerOf(answer.statusCode, answer.headers, answer, signal);
  };
  try {
    return await work(ask);
  } finally {
    agent.destroy();
  }
}

async function overHttp2<T>(
  check: ReadyCheck,
  signal: AbortSignal,
  work: (ask: Ask) => Promise<T>,
): Promise<T> {
  const { origin } = check;
  const session = connect(origin, tlsOf(check));
  // The stream reports an error of the session too.
  session.on('error', () => undefined);
  const ask: Ask = async (request) => {
    const { pathname, search } = new URL(origin + request.target);
    const { method, headers, body } = completed(request, check);
    const { host, ...others } = headers;
    const pseudoHeaders = { ':method': method, ':path': pathname + search };
    const sent = session.request(
      { ...pseudoHeaders, ...present({ ':authority': host }), ...others },
      { signal, endStream: body === undefined },
    );
    const response = responseOf<[IncomingHttpHeaders & IncomingHttpStatusHeader]>(sent);
    if (body !== undefined) sent.end(body);
    const [answer] = await response;
    return answerOf(answer[':status'], answer, sent, signal);
  };
  try {
    await once(session, 'connect', { signal });
    // Node accepts a server without ALPN; the load does not.
    if (isSecure(check) && session.alpnProtocol !== 'h2')
      throw Object.assign(new Error('no ALPN'), { code: 'ERR_SSL_NO_APPLICATION_PROTOCOL' });
    return await work(ask);
  } finally {
    session.destroy();
  }
}

/** Node's TLS options. Any certificate is accepted. */
function tlsOf({ page, load: { tls = {} } }: ReadyCheck) {
  const { minVersion, maxVersion, ciphers, curves } = tls;
  return {
    rejectUnauthorized: false,
    ...present({
      servername: serverNameOf(page.host),
      minVersion,
      maxVersion,
      // Node would leave out TLS 1.3 if its cipher suites were not listed.
      ciphers: ciphers && [...tls13Suites, ...ciphers].join(':'),
      ecdhCurve: curves && curvesOfNode(curves),
    }),
  };
}

/**
 * The curves to ask the server with. Node has the post-quantum curves from OpenSSL 3.5 on. Before that, only the load offers them; a server
 * is asked with the others, or with Node's defaults.
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
function completed(request: LoadRequest, { page: { host }, load }: ReadyCheck) {
  const { method = load.method ?? 'GET', body, bodyBase64 } = request;
  const headers: Record<string, string> = { ...present({ host }) };
  // The user agent's name lets access logs tell the check from the load.
  for (const some of [load.headers, request.headers, { 'user-agent': 'bakeoff-ready' }])
    for (const [name, value] of Object.entries(some ?? {})) headers[name.toLowerCase()] = value;
  const requestBody = bodyBase64 === undefined ? body : Buffer.from(bodyBase64, 'base64');
  return { method, headers, body: request.method === undefined ? load.body : requestBody };
}

function responseOf<T extends unknown[]>(emitter: NodeJS.EventEmitter): Promise<T> {
  return new Promise((resolve, reject) => {
    emitter
      .once('response', (...values) => resolve(values as T))
      .once('error', reject)
      .once('close', () => reject(new Error('the connection was closed')));
  });
}

/** A body that does not end in time. */
export class EndlessBody extends Error {
  override message = 'its body does not end';
  private readonly bytes: number;
  private readonly length: string | undefined;

  constructor(bytes: number, length: string | undefined) {
    super();
    this.bytes = bytes;
    this.length = length;
  }

  /** Describes it for an error. @param within "within 10 s" */
  slow(within: string): string {
    if (this.length === undefined)
      return `answers with a body that did not end ${within}: give a page that ends`;
    return `answers with ${whole(Number(this.length))} bytes, of which ${whole(this.bytes)} came ${within}: give a smaller page, or lift what slows it down (in nginx: limit_rate)`;
  }
}

async function answerOf(
  status = 0,
  headers: IncomingHttpHeaders,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<Answer> {
  const { 'content-encoding': encoding = '', 'content-type': type = '', location = '' } = headers;
  let bytes = 0;
  const hash = createHash('sha1');
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      hash.update(chunk);
    }
    // A body without a length seems to end when the signal closes its connection.
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted && bytes > 0 ? new EndlessBody(bytes, headers['content-length']) : error;
  }
  return { status, bytes, hash: hash.digest('hex'), encoding, type, location };
}
