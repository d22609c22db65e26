// Waits until a started server serves its page, or each of several pages.
import { once, setMaxListeners } from 'node:events';
import {
  type Agent,
  Agent as PlainAgent,
  type IncomingMessage,
  request as requestPlain,
} from 'node:http';
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { Agent as SecureAgent, request as requestSecure } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import { UserError } from '../errors.ts';
import { hundredths, whole } from '../format.ts';
import { present } from '../present.ts';
import type { TlsOffer } from '../scenario/model.ts';
import { isHttp2 } from '../scenario/load.ts';
import { serverNameOf } from '../scenario/pages.ts';
import { bundledForNode } from '../setup/bundle.ts';
import { lastLine, run } from '../setup/run.ts';
import type { Answer, Protocol, RunningServer, ServerSide, StartOptions } from './server.ts';

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

type Bodies = Required<Pick<Answer, 'bytes' | 'sdBytes'>>;

/** Pages that are asked for together: over HTTP/2 on one connection, over HTTP/1.1 on so many. */
const batch = 100;
const connections = 8;

/** How long a server may take for them, or for one that is asked for alone. */
const pageMs = 10_000;

/** Of pages that are not served, so many are named. */
const named = 3;

/** As waitUntilReady, which asks for the first page; all others are asked for then, if they are to. */
export async function waitUntilServing(check: ReadyCheck, signal: AbortSignal): Promise<Answer> {
  const first = await waitUntilReady(check, signal);
  const {
    page: { weights },
    allPages,
  } = check;
  return weights === undefined || !allPages
    ? first
    : { ...first, ...(await askPages(check, weights, signal)) };
}

async function askPages(
  check: ReadyCheck,
  weights: Readonly<Record<string, number>>,
  signal: AbortSignal,
): Promise<Bodies> {
  const { origin, page, anyLength } = check;
  const paths = Object.keys(weights);
  const answers = await askInBatches(paths, check, signal);
  const wrong = answers.flatMap((answer, index) => {
    if (answer instanceof Error)
      return [
        `${paths[index]} (${answer.name === 'TimeoutError' ? `no answer within ${pageMs / 1000} s` : answer.message})`,
      ];
    return answer.status === (page.status ?? 200)
      ? []
      : [`${paths[index]} (status ${answer.status})`];
  });
  if (wrong.length > 0) {
    const more = wrong.length > named ? ` and ${whole(wrong.length - named)} more` : '';
    throw new UserError(
      `of ${whole(paths.length)} pages these are not served: ${wrong.slice(0, named).join(', ')}${more}: take them out of the list, or have them served`,
    );
  }
  const bodies = bodiesOf(
    Object.values(weights),
    (answers as Answer[]).map(({ bytes }) => bytes),
  );
  if (anyLength || Math.round(bodies.bytes) === (page.bodyBytes ?? Math.round(bodies.bytes)))
    return bodies;
  throw new UserError(
    `the pages at ${origin} have ${hundredths(bodies.bytes)} bytes on average, by their weights, and bodyBytes says ${page.bodyBytes}: they are not what is to be measured`,
  );
}

/**
 * A server may end a connection when it likes: a page that has no answer then is asked for once more, on a connection of its own.
 * Ends early where some have none even so.
 */
async function askInBatches(
  paths: readonly string[],
  { origin, page: { host }, request, tls, protocol }: ReadyCheck,
  aborted: AbortSignal,
): Promise<(Answer | Error)[]> {
  const secure = secureOptions(tls, host);
  const questionOf = (path: string): Question => ({ url: origin + path, host, ...request });
  const limited = (): AbortSignal => {
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(pageMs)]);
    setMaxListeners(0, signal);
    return signal;
  };
  const agent = new (origin.startsWith('https:') ? SecureAgent : PlainAgent)({
    keepAlive: true,
    maxSockets: connections,
  });
  const askTogether = (
    questions: readonly Question[],
    signal: AbortSignal,
  ): Promise<(Answer | null)[]> => {
    const all = (ask: (question: Question) => Promise<Answer>): Promise<(Answer | null)[]> =>
      Promise.all(questions.map((question) => ask(question).catch(() => null)));
    return isHttp2(protocol)
      ? overHttp2(origin, signal, secure, (session) =>
          all((question) => askOn(session, question, signal)),
        )
      : all((question) => askHttp1(question, signal, secure, agent));
  };
  const answers: (Answer | Error)[] = [];
  let silent = 0;
  try {
    while (answers.length < paths.length && silent < named) {
      const questions = paths.slice(answers.length, answers.length + batch).map(questionOf);
      const first = await askTogether(questions, limited()).catch(() => []);
      for (const [place, question] of questions.entries()) {
        const answer =
          first[place] ??
          (await askAlone(question, protocol, limited(), secure).catch((error: Error) => error));
        aborted.throwIfAborted();
        answers.push(answer);
        if (answer instanceof Error && ++silent === named) break;
      }
    }
    return answers;
  } finally {
    agent.destroy();
  }
}

function bodiesOf(weights: readonly number[], lengths: readonly number[]): Bodies {
  const [first = 0] = lengths;
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const mean = (values: readonly number[]): number =>
    weights.reduce((all, weight, place) => all + weight * (values[place] as number), 0) / sum;
  // From the first one on: where all are alike, nothing is rounded.
  const bytes = first + mean(lengths.map((one) => one - first));
  return { bytes, sdBytes: Math.sqrt(mean(lengths.map((one) => (one - bytes) ** 2))) };
}

/** What ready-child.ts prints, as JSON. */
export type ReadyAnswer = { answer: Answer } | { problem: string };

/**
 * As waitUntilServing, in a process that is started in the network.
 * @param enter as in ServerSide
 */
export async function waitUntilServingInside(
  enter: readonly string[],
  check: ReadyCheck,
  signal: AbortSignal,
): Promise<Answer> {
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

/**
 * What a running server answers: its page, or of several what their bodies have on average, once all of them were asked for.
 * @param enter as in ServerSide; absent: it is in this network
 * @throws UserError for pages that are not served, or the signal's reason
 */
export async function answerOfAll(
  { origin, answer }: RunningServer,
  check: Omit<ReadyCheck, 'origin' | 'allPages'>,
  signal: AbortSignal,
  enter?: ServerSide['enter'],
): Promise<Answer> {
  if (check.page.weights === undefined) return answer;
  const all = { ...check, origin, allPages: true } as const;
  return enter === undefined
    ? waitUntilServing(all, signal)
    : waitUntilServingInside(enter, all, signal);
}
