// The check for readiness, asked from inside of a network of the run's own: this process cannot enter it, since it has threads.
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.ts';
import { lastLine, run } from '../setup/run.ts';
import type { ReadyCheck } from './ready.ts';

/** What ready-child.ts prints, as JSON. */
export type ReadyAnswer = { bytes: number } | { problem: string };

/**
 * As waitUntilReady, in a process that is started in the network.
 * @param enter as in ServerSide
 */
export async function waitUntilReadyInside(enter: readonly string[], check: ReadyCheck, signal: AbortSignal): Promise<number> {
  const script = fileURLToPath(new URL('./ready-child.ts', import.meta.url));
  const args = ['--import', import.meta.resolve('tsx'), script];
  const { code, stdout, stderr } = await run({ before: enter, command: process.execPath, args, input: JSON.stringify(check), signal });
  if (code !== 0) throw new UserError(`${check.origin} cannot be asked from inside its network: ${lastLine(stderr)}`);
  const answer = JSON.parse(stdout) as ReadyAnswer;
  if ('problem' in answer) throw new UserError(answer.problem);
  return answer.bytes;
}
