// Reads the scenario of a user's file: bin/scenario-file.mjs runs the file's code, in a process of its own that ends before the run.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize } from 'node:v8';
import { inTemporaryFolder } from '../files.ts';
import { limitChild, sendIfThere, startChild } from '../process.ts';
import { projectRoot } from '../setup/paths.ts';
import { underSignals } from '../signals.ts';

/** A scenario may read a large log. */
const usualSeconds = 60;

type Answer = { scenario: unknown } | { problem: string };

/**
 * Compiles and runs a file, TypeScript or not, and returns its default export: data that is not checked yet, or undefined for what is
 * no scenario. What the code prints goes to stderr.
 * @throws Error for code that does not compile, fails, ends its process or takes longer than `seconds`; Interrupted
 */
export async function exportedScenario(file: string, seconds = usualSeconds): Promise<unknown> {
  const answer = await underSignals('ending', (signal) =>
    inTemporaryFolder('bakeoff-scenario-', (folder) => answerOf(file, folder, signal, seconds)),
  );
  if ('problem' in answer) throw new Error(answer.problem);
  return answer.scenario;
}

async function answerOf(
  file: string,
  folder: string,
  signal: AbortSignal,
  seconds: number,
): Promise<Answer> {
  const program = join(projectRoot, 'bin/scenario-file.mjs');
  const child = await startChild({
    command: process.execPath,
    args: [program, folder, file, ...process.argv.slice(1)],
    stdio: ['ignore', 2, 2],
  });
  const isOver = limitChild(child, signal, seconds);
  const exit = await child.exited;
  const isLate = isOver();
  // The code may have started others.
  sendIfThere(-child.pid, 'SIGKILL');
  signal.throwIfAborted();
  const answer = join(folder, 'answer');
  if (existsSync(answer)) return deserialize(readFileSync(answer)) as Answer;
  if (isLate) return { problem: `its code has not ended after ${seconds} s` };
  const how = exit.signal ?? `exit code ${exit.code}`;
  return { problem: `its code ends the process (${how}): a scenario only exports data` };
}
