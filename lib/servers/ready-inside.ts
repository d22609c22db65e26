// The check for readiness, asked from inside of a network of the run's own: this process cannot enter it, since it has threads.
import { UserError } from '../errors.ts';
import { bundledForNode } from '../setup/bundle.ts';
import { lastLine, run } from '../setup/run.ts';
import { waitUntilServing } from './ready-pages.ts';
import type { ReadyCheck } from './ready.ts';
import type { Answer, RunningServer, ServerSide } from './server.ts';

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
