// Asks a server for all pages of a load, and compares the answers with the expected ones.
import { total, weightedMean } from '../analysis/statistics.ts';
import { UserError, messageOf } from '../errors.ts';
import { hundredths, percent, whole } from '../format.ts';
import { limited } from '../signals.ts';
import type { LoadRequest } from '../scenario/model.ts';
import { requestName } from '../scenario/pages.ts';
import { onConnection } from './ask.ts';
import type { Answer, ReadyCheck } from './server.ts';

const batch = 100;
const pageLimitMs = 10_000;
const named = 3;
/** The share of requests that a server may answer with another status than expected. */
const mostOthers = 0.05;

interface Asked {
  request: LoadRequest;
  answer: Answer;
}

/**
 * Returns the answer for all pages: their mean length with its standard deviation, each answer, and the statuses that differ from the
 * expected ones.
 * @throws UserError for answers that are not as expected; the signal's reason
 */
export async function askPages(
  check: ReadyCheck,
  requests: readonly LoadRequest[],
  signal: AbortSignal,
): Promise<Partial<Answer>> {
  const asked = answeredIn(await askEach(check, requests, signal), check, requests.length);
  const otherStatuses = otherStatusesIn(asked, check);
  const { mean: bytes, sd: sdBytes } = weightedMean(
    asked.map((page) => ({ value: page.answer.bytes, weight: weightOf(page) })),
  );
  requireLength(bytes, check);
  const answer: Partial<Answer> = {
    bytes,
    sdBytes,
    each: asked.map((page) => {
      const { status, encoding, bytes: length, hash } = page.answer;
      return { status, encoding, bytes: length, hash };
    }),
  };
  if (otherStatuses === undefined) return answer;
  answer.otherStatuses = otherStatuses;
  answer.requests = asked.map(({ request, answer: { status } }) => {
    if (request.status === undefined) return request;
    return { ...request, status };
  });
  return answer;
}

const weightOf = ({ request: { weight = 1 } }: Asked): number => weight;

/**
 * Returns the requests with their answers.
 * @throws UserError for errors, or pages with another status than the page's
 */
function answeredIn(
  asked: Awaited<ReturnType<typeof askEach>>,
  { page: { status: expected = 200 } }: ReadyCheck,
  requests: number,
): Asked[] {
  const answered: Asked[] = [];
  const wrong: string[] = [];
  for (const { request, answer } of asked) {
    if (answer instanceof Error) wrong.push(`${requestName(request)} (${answer.message})`);
    else if (request.status === undefined && answer.status !== expected)
      wrong.push(`${requestName(request)} (status ${answer.status})`);
    else answered.push({ request, answer });
  }
  if (wrong.length > 0)
    throw new UserError(
      `of ${whole(requests)} requests these are not answered as expected: ${firstFew(wrong)}: take them out of the list, or have them served`,
    );
  return answered;
}

/** Describes the share of answers with another status than expected; undefined if there are none. @throws UserError if there are many */
function otherStatusesIn(
  asked: readonly Asked[],
  { origin, acceptsDifferences, record = 'log' }: ReadyCheck,
): string | undefined {
  const others = asked.filter(
    ({ request, answer }) => request.status !== undefined && request.status !== answer.status,
  );
  if (others.length === 0) return undefined;
  const share = total(others, weightOf) / total(asked, weightOf);
  const such = others.map(
    ({ request, answer }) => `${requestName(request)} (${answer.status}, not ${request.status})`,
  );
  const summary = `${percent(share)} of the requests with another status than the ${record}: ${firstFew(such)}`;
  if (share > mostOthers && !acceptsDifferences)
    throw new UserError(
      `${origin} answers ${summary}: have it serve what the ${record} has, take a ${record} of this site, or add --accept-differences`,
    );
  return summary;
}

/** @param bytes mean length of the pages, weighted as in the load */
function requireLength(
  bytes: number,
  { origin, page: { bodyBytes }, anyLength }: ReadyCheck,
): void {
  if (anyLength || bodyBytes === undefined || Math.round(bytes) === bodyBytes) return;
  throw new UserError(
    `the pages at ${origin} have ${hundredths(bytes)} bytes on average, by their weights, and bodyBytes says ${bodyBytes}: they are not the pages to measure`,
  );
}

/** Asks for each page, on shared connections at first. Ends early after three pages without an answer. */
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
      const answer = together[place] ?? (await askAlone(check, request, signal));
      signal.throwIfAborted();
      asked.push({ request, answer });
      if (answer instanceof Error && ++silent === named) break;
    }
  }
  return asked;
}

/** Returns an error instead of throwing it. */
async function askAlone(
  check: ReadyCheck,
  request: LoadRequest,
  signal: AbortSignal,
): Promise<Answer | Error> {
  try {
    return await onConnection(check, limited(signal, pageLimitMs), (ask) => ask(request));
  } catch (error) {
    const problem = error instanceof Error ? error : new Error(messageOf(error));
    if (problem.name !== 'TimeoutError') return problem;
    return new Error(`no answer within ${pageLimitMs / 1000} s`);
  }
}

function firstFew(all: readonly string[]): string {
  const more = all.length > named ? ` and ${whole(all.length - named)} more` : '';
  return all.slice(0, named).join(', ') + more;
}
