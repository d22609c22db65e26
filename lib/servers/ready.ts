// Waits until a started server answers its page as it should.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, messageOf, systemError } from '../errors.ts';
import { needsTls } from '../scenario/load.ts';
import type { LoadRequest, Protocol } from '../scenario/model.ts';
import { shownUrl } from '../secrets.ts';
import { isMix, pathOfPage, requestsOf } from '../scenario/pages.ts';
import { bundledForNode } from '../../bin/bundle.mjs';
import { lastLine, run, type Child } from '../process.ts';
import { EndlessBody, mostHeaderBytes, onConnection } from './ask.ts';
import { askPages } from './ask-pages.ts';
import { requireQuic } from './quic.ts';
import type { Answer, ReadyCheck, RunningServer, ServerSide } from './server.ts';
import { readIfThere } from '../files.ts';

/** A request that fails later than this was not refused. */
const silentMs = 1000;
/** Codes of errors after which there was no connection. */
const unreached = /^E(?:CONNREFUSED|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_\w+)$/;
/** Node's words for how a connection ended, and bakeoff's. */
const endings: readonly [RegExp, string][] = [
  [/^aborted$/, 'its answer breaks off'],
  [/^socket hang up$/, 'it ends the connection without an answer'],
  [/tlsv1 alert internal error/, 'it has no certificate for this name'],
];

/**
 * Returns the answer once the page has the expected status, length (if known) and protocol. Retries refused and broken connections.
 * @throws UserError after `limitMs`, and at once for a wrong answer or protocol; the signal's reason
 */
export async function waitUntilReady(
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs = 10_000,
): Promise<Answer> {
  const { origin, page, allPages } = check;
  const { protocol } = check.load;
  const first = requestsOf(page).find(({ target }) => target === page.path) as LoadRequest;
  const url = shownUrl(origin + pathOfPage(page));
  requireFit(url, protocol);
  const fail = (problem: string, hint = withName(check)): never => {
    throw new UserError(`${url} ${problem}${hint}`);
  };
  const within = `within ${limitMs / 1000} s`;
  // The timer of AbortSignal.timeout would not keep Node running.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const until = AbortSignal.any([signal, late.signal]);
  const beganMs = performance.now();
  try {
    // If a server accepts no connection, or does not answer in time, another host name does not help: such errors come without the hint.
    for (let last = '', hint = ''; ; await delay(retryAfter(performance.now() - beganMs))) {
      const askedAtMs = performance.now();
      try {
        const answer = await onConnection(check, until, (ask) => ask(first));
        requireRight(answer, url, check, first);
        // Node has no HTTP/3: the page is requested over HTTP/1.1, and QUIC is checked separately.
        if (protocol === 'h3') await requireQuic(origin, until);
        if (!allPages || !isMix(page)) return answer;
        return { ...answer, ...(await askPages(check, page.requests, signal)) };
      } catch (error) {
        if (error instanceof UserError) throw error;
        signal.throwIfAborted();
        const isLong = performance.now() - askedAtMs >= silentMs;
        if (error instanceof EndlessBody && isLong) fail(error.slow(within));
        const unanswered = `did not answer over ${protocol}`;
        if (late.signal.aborted && isLong) fail(`${unanswered} ${within}`, '');
        if (late.signal.aborted) fail(`${unanswered} ${within}${last}`, hint);
        const { code = '' } = systemError(error);
        const message = messageOf(error);
        const problem = wrongProtocol(code, message, protocol);
        if (problem !== undefined) fail(problem);
        const isRefused = code === 'ECONNREFUSED';
        if (check.hangsUp !== undefined && !isRefused) fail(`did not answer: ${check.hangsUp}`);
        hint = unreached.test(code) ? '' : withName(check);
        last = `: ${endings.find(([pattern]) => pattern.test(message))?.[1] ?? message}`;
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
  if (protocol.startsWith('http/') || isSecure === needsTls(protocol)) return;
  const [needs, has, choose] = isSecure ? ['has no', 'it', 'without'] : ['needs', 'none', 'with'];
  throw new UserError(
    `the load is ${protocol}, which ${needs} TLS, and ${url} has ${has}: choose a config ${choose} TLS, or another protocol`,
  );
}

/** Returns the target of a redirect as --url takes it, if it is a path on the same server. */
function redirectTarget(location: string, url: string): string {
  const { origin, pathname, search, href } = new URL(location, url);
  return origin === new URL(url).origin ? pathname + search : href;
}

function requireRight(
  { status, bytes, location }: Answer,
  url: string,
  check: ReadyCheck,
  request: LoadRequest,
): void {
  const { page, anyLength, user } = check;
  const { docroot, host, bodyBytes, status: expected = 200 } = page;
  // Requests with an expected status of their own are checked together in askPages.
  if (request.status !== undefined) return;
  const asked = host === undefined ? url : `${url} (host ${host})`;
  if (status === expected) {
    // If there are several pages, `bodyBytes` is their mean length.
    if (anyLength || isMix(page) || (bodyBytes ?? bytes) === bytes) return;
    throw new UserError(
      `${asked} answers with ${bytes} bytes instead of ${bodyBytes}: it is not the page to measure`,
    );
  }
  const to = location && ` to ${location}`;
  const fail = (detail: string): never => {
    throw new UserError(`${asked} answers with status ${status}${detail}`);
  };
  if (docroot !== undefined) fail(`${to} instead of ${expected}`);
  const another = `give a page that it answers with ${expected}`;
  const target =
    location && URL.canParse(location, url)
      ? `, such as --url ${redirectTarget(location, url)}`
      : undefined;
  const howToAsk =
    target === undefined
      ? ' (--url; in a scenario page.path)'
      : `${target} (in a scenario page.path)`;
  if (status === 403 && user !== undefined)
    fail(
      `: it runs as ${user} here: open all folders above the page (chmod o+x) and the page (chmod o+r), or ${another}${howToAsk}`,
    );
  if (status === 502 || status === 504) {
    const socket =
      user === undefined
        ? ''
        : `, or, at "Permission denied", open its socket to all users (chmod o+rw; php-fpm: listen.mode = 0666), since the server runs as ${user} here`;
    fail(
      `: its backend does not answer: start it, since bakeoff does not${socket}${withName(check)}`,
    );
  }
  const orBackend =
    status === 503 ? ', as haproxy and Apache do if their backend does not answer' : '';
  fail(
    `${to}${orBackend}: ${another}${withName(check) || howToAsk}, or expect this one (--status ${status}; in a scenario page.status)`,
  );
}

/** Says how to ask for one of the server's names, since its default host may only turn requests away. */
function withName({ origin, page, hosts = [] }: ReadyCheck): string {
  const name = hosts
    .map((host) => /^([\w-]+(?:\.[\w-]+)+)(?::\d+)?$/.exec(host)?.[1])
    .find(Boolean);
  if (name === undefined || page.host !== undefined) return '';
  return ` (it serves ${name}: --url ${origin.split(':')[0]}://${name}${shownUrl(pathOfPage(page))}; in a scenario page.host)`;
}

/** Patterns for an error's code and message, with bakeoff's words. If the words end with a colon, Node's message follows. */
const wrongProtocols: readonly [RegExp, string?][] = [
  // Caddy answers like this until it has made its certificate, which takes seconds on a busy machine.
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

/** Returns undefined for the errors of a server that is still starting. */
function wrongProtocol(code: string, message: string, protocol: Protocol): string | undefined {
  const reason = wrongProtocols.find(([sign]) => sign.test(`${code} ${message}`))?.[1];
  if (reason?.endsWith(':'))
    return `${reason} ${/^\s*(?:Parse Error:)?\s*(.*)/.exec(message)?.[1]?.trimEnd()}`;
  return reason?.endsWith('HTTP/2') && protocol === 'h2c' ? `${reason} without TLS (h2c)` : reason;
}

/** The exit code of a process that prints a UserError of waitUntilReady. */
export const notReady = 3;

let childScript: Promise<string> | undefined;

/** Calls waitUntilReady in a process of its own inside an enclosure. @param enter as in ServerSide; absent: on loopback */
export async function waitUntilReadyInside(
  enter: ServerSide['enter'] | undefined,
  check: ReadyCheck,
  signal: AbortSignal,
  limitMs?: number,
): Promise<Answer> {
  if (enter === undefined) return waitUntilReady(check, signal, limitMs);
  childScript ??= bundledForNode(new URL('./ready-child.ts', import.meta.url), {});
  const script = `const readyCheck = ${JSON.stringify(check)};\n${await childScript}`;
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

/** Returns a running server's answer. If the load has several pages, it asks for all of them. @param enter as in waitUntilReadyInside */
export async function answerOfAll(
  { origin, answer }: RunningServer,
  check: Omit<ReadyCheck, 'origin' | 'allPages'>,
  signal: AbortSignal,
  enter?: ServerSide['enter'],
): Promise<Answer> {
  if (!isMix(check.page)) return answer;
  return waitUntilReadyInside(enter, { ...check, origin, allPages: true }, signal);
}

const lookMs = 1;

/**
 * Returns when a process became its command (performance.now()): the middle between two looks, a millisecond apart or more on a busy
 * machine. Returns undefined if it ended before.
 * @param commandWords the number of words of the command with its arguments
 */
export async function commandBegan(
  { pid, line, hasExited }: Pick<Child, 'pid' | 'line' | 'hasExited'>,
  commandWords: number,
  proc = '/proc',
): Promise<number | undefined> {
  let beforeMs = performance.now();
  while (!hasExited()) {
    const now = readIfThere(`${proc}/${pid}/cmdline`, 'utf8');
    const nowMs = performance.now();
    // The command line is empty during exec.
    if (now && !isBefore(now.split('\0').slice(0, -1), line, commandWords))
      return (beforeMs + nowMs) / 2;
    beforeMs = nowMs;
    await delay(lookMs);
  }
  return undefined;
}

/**
 * Returns whether a command line is still that of a program in front of the command: it has more words than the command, and they are the
 * last of all words.
 */
function isBefore(now: readonly string[], all: readonly string[], commandWords: number): boolean {
  const last = all.slice(-now.length);
  return now.length > commandWords && now.every((word, index) => word === last[index]);
}

const longestRetryMs = 20;

/**
 * Returns how long to wait before a starting server is asked again: a hundredth of the time so far, so that the startup time is accurate to
 * 1 %.
 */
export function retryAfter(elapsedMs: number): number {
  return Math.min(longestRetryMs, Math.max(1, elapsedMs / 100));
}
