// Finds the scenario that a command names. A user's file is code: bin/scenario-file.mjs runs it in a process that ends before the run.
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { deserialize } from 'node:v8';
import { problemInParents } from '../../bin/refusal.mjs';
import { whoMayChange } from '../../bin/trust.mjs';
import { messageOf, prefixed, usageError, UserError } from '../errors.ts';
import { makeOwnFolder, readBytes } from '../files.ts';
import { limitChild, startChild } from '../process.ts';
import { checkedScenario, shippedScenario } from '../scenario/catalogue.ts';
import type { Scenario } from '../scenario/model.ts';
import { makeScratch, usualPlace, type Scratch } from '../servers/scratch.ts';
import { bakeoffFolder, fromCallersFolder, projectRoot, typed } from '../setup/paths.ts';
import { Interrupted, underSignals } from '../signals.ts';

/** A scenario may read a large log. */
const usualSeconds = 60;

/** The longest answer in bytes: a scenario file has at most 100 MB, and a character of it takes up to two bytes in the answer. */
const mostBytes = 256e6;

type Answer = { scenario: unknown } | { problem: string };

/** Like findScenarios, for one scenario. @throws UserError also for a file with a list */
export async function findScenario(name: string): Promise<Scenario> {
  const found = await findScenarios(name);
  if (!Array.isArray(found)) return found;
  throw usageError(
    `${name} has a list of scenarios, an article's: run it by ${typed('scenario')} ${name}`,
  );
}

/**
 * The scenario with that name, or in that file (with a / or a script's ending); a file may also have a list, the scenarios of an article.
 * @throws UserError with exit code 2 if there is none, 1 if it is wrong
 */
export async function findScenarios(name: string): Promise<Scenario | Scenario[]> {
  const isFile = name.includes('/') || /\.[cm]?[jt]s$/.test(name);
  if (!isFile) return shippedScenario(name);
  const file = fromCallersFolder(name);
  if (!existsSync(file)) throw usageError(`there is no scenario file ${file}`);
  try {
    const exported = await exportedScenario(file);
    const checked = (scenario: unknown) => checkedScenario(scenario, path.dirname(file));
    return Array.isArray(exported) ? exported.map(checked) : checked(exported);
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    const [first, ...more] = messageOf(error).split('\n');
    // Others go on with code and stacks. The file may have a bakeoff of its own.
    const others = more.filter((line) => line.startsWith('scenario '));
    throw new UserError([`${file}: ${first}`, ...others]);
  }
}

/**
 * Compiles and runs a file of TypeScript or JavaScript. What its code prints goes to stderr, and processes that it starts end with it.
 * @returns the file's default export, which is not checked yet; undefined if it is neither a scenario nor a list of them
 * @throws Error for code that does not compile, fails, ends its process or takes longer than `seconds`; Interrupted
 */
export async function exportedScenario(file: string, seconds = usualSeconds): Promise<unknown> {
  const place = placeOfScenarios();
  if (place !== bakeoffFolder)
    requireNoPackages(path.join(place, 'scenario.mjs'), 'set BAKEOFF_HOME to a folder of your own');
  if (process.geteuid?.() === 0 && whoMayChange(file) === undefined)
    for (const found of [realpathSync(file), path.join(place, 'scenario.mjs')])
      requireNoPackages(found, 'move the scenario');
  const answer = await underSignals('ending', async (signal) => {
    const scratch = await makeScratch(undefined, '', place);
    try {
      return await answerOf(file, scratch, signal, seconds);
    } finally {
      await scratch.end();
    }
  });
  if ('problem' in answer) throw new Error(answer.problem);
  return answer.scenario;
}

/**
 * Returns the folder in which compiled scenarios are put. Node looks for packages in all folders above a file, so this is a temporary
 * folder only if bakeoff has no folder of its own.
 */
function placeOfScenarios(): string {
  try {
    makeOwnFolder(bakeoffFolder);
    accessSync(bakeoffFolder, constants.W_OK);
    return bakeoffFolder;
  } catch {
    return usualPlace();
  }
}

/**
 * Throws an Error if Node would take another user's packages for those of code at this place.
 * @param otherwise what helps besides removing them
 */
function requireNoPackages(place: string, otherwise: string): void {
  const problem = problemInParents(place);
  if (problem !== undefined)
    throw new Error(`${problem}, and Node reads it for the scenario: remove it, or ${otherwise}`);
}

async function answerOf(
  file: string,
  { temp, enter, led }: Scratch,
  signal: AbortSignal,
  seconds: number,
): Promise<Answer> {
  const child = await startChild({
    command: process.execPath,
    args: [path.join(projectRoot, 'bin/scenario-file.mjs'), temp, file, ...process.argv.slice(1)],
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
  const answer = path.join(temp, 'answer');
  // The code may have put anything there.
  if (existsSync(answer))
    return deserialize(prefixed(() => readBytes(answer, mostBytes), 'its data: ', 1)) as Answer;
  if (isLate) return { problem: `its code has not ended after ${seconds} s` };
  const how = exit.signal ?? `exit code ${exit.code}`;
  return { problem: `its code ends the process (${how}): a scenario only exports data` };
}
