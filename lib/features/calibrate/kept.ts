// The file of a test that takes long: each run is stored as soon as it is made, and --resume makes the missing ones.
import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { whoMayChange } from '../../../bin/trust.mjs';
import type { Additions } from '../../cli/feature.ts';
import { prefixed, usageError, UserError, messageOf, systemError } from '../../errors.ts';
import { makeFolder, readBytes } from '../../files.ts';
import { oneRunAtATime } from '../../machine/locks.ts';
import { writeReasons } from '../../runner/results-folder.ts';
import { underSignals } from '../../signals.ts';
import { checkWritable, writeWhole } from '../../writing.ts';
import { calibrationCores, inLab, type Lab } from './lab.ts';

export interface Kept<Run extends { number: number }> {
  seed: number;
  /** SHA-256 of what the runs depend on. */
  seal: string;
  runs: Run[];
}

/** A run takes less than 10 kB. */
const mostBytes = 256e6;

/**
 * Returns the file's content, or `fresh` if there is no file.
 * @param isResumed false: there must be no file
 * @throws UserError for a file that exists already, that others may change, or that has runs of another seal
 */
export function readKept<File extends Kept<{ number: number }>>(
  path: string,
  fresh: File,
  isResumed: boolean,
): File {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return fresh;
  if (!isResumed)
    throw new UserError(
      `seed ${fresh.seed} was used before (${path}): go on with --resume, or name another --seed`,
      2,
    );
  const others = whoMayChange(path);
  if (others !== undefined)
    throw new UserError(`${others}: give the results a folder of your own (--record)`);
  const bytes = prefixed(() => readBytes(path, mostBytes), `cannot read ${path}: `, 1);
  const file = parsed<File>(bytes.toString('utf8'), path);
  if (file.seal !== fresh.seal)
    throw new UserError(
      `${path} has the runs of other flags or of another version: go on with those that began it, or name another --seed`,
      2,
    );
  return file;
}

function parsed<File>(text: string, path: string): File {
  try {
    return JSON.parse(text) as File;
  } catch {
    throw new UserError(`${path} is not JSON: remove it, or name another --seed`);
  }
}

/** Makes the folder of --record if it is missing. Throws UserError (exit code 2) if no file can be written there. */
export async function checkRecordFolder(folder: string): Promise<void> {
  try {
    makeFolder(folder);
    await checkWritable(folder);
  } catch (error) {
    const { code = '' } = systemError(error);
    const why = writeReasons[code] ?? messageOf(error);
    throw usageError(`--record ${folder} cannot be written: ${why}: name another folder`);
  }
}

/**
 * Makes the runs of the items that the file does not have yet, and writes the file after each.
 * @param make returns the run, and a line for the user that says what it found
 * @param stores whether the runs store into an InfluxDB
 * @throws UserError; Interrupted, then the file has the runs made before
 */
export async function runMissing<Item extends { number: number }, Run extends { number: number }>(
  path: string,
  file: Kept<Run>,
  items: readonly Item[],
  additions: Additions,
  make: (lab: Lab, item: Item) => Promise<{ run: Run; line: string }>,
  stores = false,
): Promise<void> {
  const missing = items.filter(({ number }) => !file.runs.some((run) => run.number === number));
  if (missing.length === 0) return;
  await checkRecordFolder(dirname(path));
  const cores = calibrationCores();
  const release = await oneRunAtATime();
  try {
    const makeAll = async (lab: Lab) => {
      for (const item of missing) {
        const { run, line } = await make(lab, item);
        file.runs.push(run);
        await writeWhole(path, `${JSON.stringify(file, null, 1)}\n`);
        lab.say(`${file.runs.length} of ${items.length}: ${line}`);
      }
    };
    await underSignals('ending the test after this pair; --resume goes on with it', (signal) =>
      inLab(cores, signal, additions, makeAll, stores),
    );
  } finally {
    release();
  }
}
