// What a started server serves: its page, or each of several.
import { setMaxListeners } from 'node:events';
import { Agent as PlainAgent } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { UserError } from '../errors.ts';
import { hundredths, whole } from '../format.ts';
import { isHttp2 } from '../scenario/protocols.ts';
import {
  askAlone,
  askHttp1,
  askOn,
  overHttp2,
  secureOptions,
  waitUntilReady,
  type Question,
  type ReadyCheck,
} from './ready.ts';
import type { Answer } from './server.ts';

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
