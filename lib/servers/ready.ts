// Waits until a started server answers as it should.
import { once } from 'node:events';
import { request as requestPlain, type Agent, type IncomingMessage } from 'node:http';
import {
  connect,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { request as requestSecure } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import type { TlsOffer } from '../scenario/model.ts';
import { serverNameOf } from '../scenario/url.ts';
import type { Answer, Protocol, StartOptions } from './server.ts';
import { isHttp2 } from '../scenario/protocols.ts';

const retryMs = 20;

/** A connection that waits so long was not refused. */
const silentMs = 1000;

/** Of a body: one without end would be read until the time is over. */
const mostBodyBytes = 1024 ** 3;

/** Marks the check in an access log, where the requests of a load are counted. */
const readyUserAgent = 'bakeoff-ready';

/** What is asked, and over which protocol: as the load does it. Absent: a GET without a body, with all of TLS that Node can. */
export interface ReadyCheck extends Pick<StartOptions, 'page' | 'request' | 'tls'> {
  /** Of a server here, or an address anywhere: certificates are not checked. */
  origin: string;
  protocol: Protocol;
  /** The page may have another length than it had. */
  anyLength?: true | undefined;
  /** All of several pages are asked for, and not only the first. */
  allPages?: true;
  /** Nobody starts it: what breaks or refuses the connection is told at once. */
  isThere?: true;
  /** Whom the server became, where root started it. */
  user?: string | undefined;
  /** Names that the server has, to be offered where it does not answer as it should without one. */
  hosts?: readonly string[];
}

/**
 * Returns the answer once the page is answered with its status, and with its length where that is known, over the protocol. Connections that are refused or broken are tried again until `limitMs` have passed; a wrong
 * answer or protocol is an error at once, since a server does not grow out of it. Throws UserError, or the signal's reason.
 */
export function waitUntilReady(
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs = 10_000,
): Promise<Answer> {
  // A signal's own timer would not keep Node from ending, should nothing else be under way.
  const awake = setInterval(() => undefined, 1000);
  return askUntilReady(check, signal, limitMs).finally(() => clearInterval(awake));
}

async function askUntilReady(
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs: number,
): Promise<Answer> {
  const { origin, page, protocol, request = {}, tls } = check;
  const url = origin + page.path;
  requireFit(url, protocol);
  const timeout = AbortSignal.timeout(limitMs);
  const either = AbortSignal.any([signal, timeout]);
  let last = '';
  for (;;) {
    const askedAtMs = performance.now();
    try {
      const answer = await askAlone(
        { url, host: page.host, ...request },
        protocol,
        either,
        secureOptions(tls, page.host),
      );
      requireRight(answer, url, check);
      return answer;
    } catch (error) {
      if (error instanceof UserError) throw error;
      signal.throwIfAborted();
      if (error instanceof Endless)
        throw new UserError(
          `${url} answers with a body that did not end within ${limitMs / 1000} s or 1 GiB: give a page that ends`,
        );
      if (timeout.aborted)
        throw new UserError(
          `${url} did not answer over ${protocol} within ${limitMs / 1000} s${performance.now() - askedAtMs < silentMs ? last : ''}${withName(check)}`,
        );
      const problem = wrongProtocol(error as NodeJS.ErrnoException, protocol);
      if (problem !== undefined) throw new UserError(`${url} ${problem}${withName(check)}`);
      last = `: ${(error as Error).message}`;
      if (check.isThere)
        throw new UserError(
          `${url} did not answer over ${protocol}${last}${(error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? ': start what is to listen there' : ''}`,
        );
    }
    await delay(retryMs);
  }
}

function requireRight({ status, bytes, location }: Answer, url: string, check: ReadyCheck): void {
  const {
    page: { docroot, host, weights, bodyBytes, status: expected = 200 },
    anyLength,
  } = check;
  // Of several pages it is their mean.
  if (status === expected && (anyLength || weights !== undefined || (bodyBytes ?? bytes) === bytes))
    return;
  const asked = host === undefined ? url : `${url} (host ${host})`;
  if (status === expected)
    throw new UserError(
      `${asked} answers with ${bytes} bytes instead of ${bodyBytes}: it is not the page that is to be measured`,
    );
  const where = location === '' ? '' : ` to ${location}`;
  if (status === 403 && check.user !== undefined && docroot === undefined) {
    throw new UserError(
      `${asked} answers with status 403: it runs as the user ${check.user} here, for whom all folders above the page have to be open (chmod o+x) and the page readable (chmod o+r); or give a page that it answers with ${expected} (--url; in a scenario page.path)`,
    );
  }
  if ((status === 502 || status === 504) && docroot === undefined) {
    throw new UserError(
      `${asked} answers with status ${status}: its backend does not answer; start the backend first, since bakeoff does not${withName(check)}`,
    );
  }
  // What is shipped serves its page; of a config of one's own the page is the person's to say.
  throw new UserError(
    `${asked} answers with status ${status}${where}${docroot === undefined ? `: give a page that it answers with ${expected}${withName(check) || ' (--url; in a scenario page.path)'}, or expect this one (--status ${status}; in a scenario page.status)` : ` instead of ${expected}`}`,
  );
}

/** Where no name was asked for, and the server has one: how to ask for it. Its first server may be there to turn others away. */
function withName({ origin, page, hosts = [] }: ReadyCheck): string {
  const name =
    page.host === undefined
      ? hosts
          .map((host) => host.replace(/:\d+$/, ''))
          .find((host) => /^[\w-]+(?:\.[\w-]+)+$/.test(host))
      : undefined;
  return name === undefined
    ? ''
    : ` (it serves ${name}: --url ${origin.split(':')[0]}://${name}${page.path}; in a scenario page.host)`;
}

/** Whether there is TLS is the config's to say, and h2 and h2c each mean one of the two. */
function requireFit(url: string, protocol: Protocol): void {
  const secure = url.startsWith('https:');
  if (protocol === 'h2' && !secure)
    throw new UserError(
      `the load is HTTP/2 over TLS (h2), and the server's config has no TLS: choose a config with it, or the protocol h2c`,
    );
  if (protocol === 'h2c' && secure)
    throw new UserError(
      `the load is HTTP/2 without TLS (h2c), and the server's config has TLS: choose a config without it, or the protocol h2`,
    );
}

export interface Question extends NonNullable<StartOptions['request']> {
  url: string;
  host: string | undefined;
}

export type SecureOptions = ConnectionOptions & { rejectUnauthorized: false };

/** @param host that is asked for: its name, when it is one, is the one that TLS asks for too (SNI) */
export function secureOptions(
  { minVersion, maxVersion, ciphers, curves }: TlsOffer = {},
  host?: string,
): SecureOptions {
  // Node would leave TLS 1.3 out if none of its suites were among them.
  const suites = ciphers && [...tls13Suites, ...ciphers].join(':');
  return {
    rejectUnauthorized: false,
    ...present({
      servername: serverNameOf(host),
      minVersion,
      maxVersion,
      ciphers: suites,
      ecdhCurve: curves?.join(':'),
    }),
  };
}

const tls13Suites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
];

/** On a connection of its own, so that none stays open when the load starts. */
export function askAlone(
  question: Question,
  protocol: Protocol,
  signal: AbortSignal,
  secure: SecureOptions,
): Promise<Answer> {
  return isHttp2(protocol)
    ? overHttp2(question.url, signal, secure, (session) => askOn(session, question, signal))
    : askHttp1(question, signal, secure);
}

/** On a connection of its own, or on those of an agent. */
export async function askHttp1(
  { url, host, method = 'GET', headers, body }: Question,
  signal: AbortSignal,
  secure: SecureOptions,
  agent: Agent | false = false,
): Promise<Answer> {
  const options = {
    agent,
    signal,
    method,
    headers: { ...(host === undefined ? {} : { host }), ...headers, 'user-agent': readyUserAgent },
  };
  const request = url.startsWith('https:')
    ? requestSecure(url, { ...options, ...secure })
    : requestPlain(url, options);
  const ended = new Promise<never>((_, reject) => {
    request.on('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      reject(
        new UserError(
          `${url} answers with status ${statusCode}, and goes on in another protocol: give a page that it answers over HTTP (--url; in a scenario page.path)`,
        ),
      );
    });
    request.on('close', () => reject(new Error('the connection was closed')));
  });
  ended.catch(() => undefined);
  request.end(body);
  const [response] = (await Promise.race([once(request, 'response'), ended])) as [IncomingMessage];
  return {
    status: response.statusCode ?? 0,
    ...told(response.headers),
    bytes: await lengthOf(response, signal),
  };
}

/** What is asked on one connection, which is closed then. */
export async function overHttp2<T>(
  url: string,
  signal: AbortSignal,
  secure: SecureOptions,
  ask: (session: ClientHttp2Session) => Promise<T>,
): Promise<T> {
  const session = connect(url, secure);
  // One that comes when nobody waits for it is told by the stream too.
  session.on('error', () => undefined);
  try {
    await once(session, 'connect', { signal });
    // Node goes on without ALPN; the load will not.
    if (url.startsWith('https:') && session.alpnProtocol !== 'h2') throw noHttp2;
    return await ask(session);
  } finally {
    session.destroy();
  }
}

export async function askOn(
  session: ClientHttp2Session,
  { url, host, method = 'GET', headers: asked, body }: Question,
  signal: AbortSignal,
): Promise<Answer> {
  const { pathname, search } = new URL(url);
  const stream = session.request(
    {
      ':method': method,
      ':path': pathname + search,
      ...(host === undefined ? {} : { ':authority': host }),
      ...http2Headers(asked),
      'user-agent': readyUserAgent,
    },
    { signal, endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  const closed = once(stream, 'close').then(() => {
    throw new Error('the connection was closed');
  });
  closed.catch(() => undefined); // It also closes after the answer.
  const [headers] = (await Promise.race([once(stream, 'response'), closed])) as [
    IncomingHttpHeaders & IncomingHttpStatusHeader,
  ];
  return {
    status: headers[':status'] ?? 0,
    ...told(headers),
    bytes: await lengthOf(stream, signal),
  };
}

function told({
  'content-encoding': encoding = '',
  'content-type': type = '',
  location = '',
}: IncomingHttpHeaders): Pick<Answer, 'encoding' | 'type' | 'location'> {
  return { encoding, type, location };
}

/** Names in lower case, as HTTP/2 wants them; a Host is its :authority. */
function http2Headers(headers: Question['headers'] = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      /^host$/i.test(name) ? ':authority' : name.toLowerCase(),
      value,
    ]),
  );
}

/** A body that was still coming when the time was over, or too long. */
class Endless extends Error {
  override message = 'a body without an end';
}

async function lengthOf(body: AsyncIterable<unknown>, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length;
      if (bytes > mostBodyBytes) throw new Endless();
    }
  } catch (error) {
    throw signal.aborted && bytes > 0 ? new Endless() : error;
  }
  return bytes;
}

const noHttp2 = Object.assign(new Error('no ALPN'), { code: 'ERR_SSL_NO_APPLICATION_PROTOCOL' });

/** What is wrong, for an error that shows another protocol than the one spoken; undefined for those of a server that is still starting. */
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
  if (code.startsWith('HPE_'))
    return 'does not answer in HTTP/1.1: it may expect TLS, or speak HTTP/2 only';
  if (code === 'ERR_HTTP2_ERROR')
    return `does not speak HTTP/2${protocol === 'h2c' ? ' without TLS (h2c)' : ''}`;
  return undefined;
}
