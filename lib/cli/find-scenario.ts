// Finds the scenario that a command names. That of a user's file is code: bin/scenario-file.mjs runs it, in a process of its own that
// ends before the run.
import { existsSync, realpathSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { deserialize } from 'node:v8';
import { problemInParents } from '../../bin/refusal.mjs';
import { messageOf, prefixed, usageError, UserError } from '../errors.ts';
import { makeOwnFolder, readBytes } from '../files.ts';
import { limitChild, startChild } from '../process.ts';
import { checkedScenario, shippedScenario } from '../scenario/catalogue.ts';
import type { Scenario } from '../scenario/model.ts';
import { makeScratch, type Scratch } from '../servers/scratch.ts';
import { bakeoffFolder, fromCallersFolder, projectRoot } from '../setup/paths.ts';
import { Interrupted, underSignals } from '../signals.ts';

/** A scenario may read a large log. */
const usualSeconds = 60;

/** Limit of the answer: a scenario file has at most 100 MB, and the answer takes up to two bytes for a character. */
const mostBytes = 256e6;

type Answer = { scenario: unknown } | { problem: string };

/** The scenario with that name, or in that file (with a / or a script's ending). @throws UserError with exit code 2 if there is none, 1 if it is wrong */
export async function findScenario(name: string): Promise<Scenario> {
  const isFile = name.includes('/') || /\.[cm]?[jt]s$/.test(name);
  if (!isFile) return shippedScenario(name);
  const file = fromCallersFolder(name);
  if (!existsSync(file)) throw usageError(`there is no scenario file ${file}`);
  try {
    return checkedScenario(await exportedScenario(file), path.dirname(file));
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    const [first, ...more] = messageOf(error).split('\n');
    // Others go on with code and stacks. The file may have a bakeoff of its own.
    const others = more.filter((line) => line.startsWith('scenario '));
    throw new UserError([`${file}: ${first}`, ...others]);
  }
}

/**
 * Compiles and runs a file, TypeScript or not, and returns its default export: data that is not checked yet, or undefined for what is
 * no scenario. What the code prints goes to stderr, and the processes that it starts end with it.
 * @throws Error for code that does not compile, fails, ends its process or takes longer than `seconds`; Interrupted
 */
export async function exportedScenario(file: string, seconds = usualSeconds): Promise<unknown> {
  const refusal = foundByRoot(file);
  if (refusal !== undefined) throw new Error(refusal);
  const answer = await underSignals('ending', async (signal) => {
    const scratch = await makeScratch();
    makeOwnFolder(bakeoffFolder);
    // Node looks for packages in all folders above the compiled file, so it is not among the temporary files.
    const folder = await mkdtemp(path.join(bakeoffFolder, 'scenario-'));
    try {
      return await answerOf(file, folder, scratch, signal, seconds);
    } finally {
      await scratch.end();
      await rm(folder, { recursive: true, force: true });
    }
  });
  if ('problem' in answer) throw new Error(answer.problem);
  return answer.scenario;
}

/** Says why root does not compile a file: its packages may be another user's. */
function foundByRoot(file: string): string | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const problem = problemInParents(realpathSync(file));
  return (
    problem && `${problem}, and Node reads it for the scenario: remove it, or move the scenario`
  );
}

/** @param folder for the compiled file and the answer */
async function answerOf(
  file: string,
  folder: string,
  { enter, led }: Scratch,
  signal: AbortSignal,
  seconds: number,
): Promise<Answer> {
  const child = await startChild({
    command: process.execPath,
    args: [path.join(projectRoot, 'bin/scenario-file.mjs'), folder, file, ...process.argv.slice(1)],
    before: enter,
    // A scenario may read files.
    cwd: process.cwd(),
    stdio: ['ignore', 2, 2],
  });
  led(child.pid);
  const isOver = limitChild(child, signal, seconds);
  const exit = await child.exited;
  const isLate = isOver();
  signal.throwIfAborted();
  const answer = path.join(folder, 'answer');
  // The code may have put anything there.
  if (existsSync(answer))
    return deserialize(prefixed(() => readBytes(answer, mostBytes), 'its data: ', 1)) as Answer;
  if (isLate) return { problem: `its code has not ended after ${seconds} s` };
  const how = exit.signal ?? `exit code ${exit.code}`;
  return { problem: `its code ends the process (${how}): a scenario only exports data` };
}
