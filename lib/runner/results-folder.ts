// The folder results/<run>/.
import { constants, existsSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeNewFiles, freeBytes, makeFolder, requireSpace } from '../files.ts';
import { checkWritable, requireClosedToOthers } from '../writing.ts';
import { UserError, systemError } from '../errors.ts';

/**
 * Makes the folder `out` if it is missing.
 * @throws UserError if it cannot be written to or has too little space
 */
export async function checkResultsFolder(out: string, neededBytes: number): Promise<void> {
  try {
    makeFolder(out);
    await checkWritable(out);
  } catch (error) {
    throw folderError(out, error);
  }
  const otherwise = 'name another folder with --out';
  requireClosedToOthers(out, otherwise);
  await requireSpace(out, neededBytes, 'this run', otherwise);
  // Servers write their logs there.
  await requireSpace(tmpdir(), neededBytes, 'this run', 'name another folder in TMPDIR');
}

export interface RunFolder {
  /**
   * Path of the run's files. For root the path goes through an open descriptor. Otherwise the owner of a parent folder could
   * replace the folder, and k6 would run a foreign script as root.
   */
  path: string;
  /** Its path as people know it. */
  name: string;
}

/**
 * Makes the run's folder in `out`. It and all files from now on are readable by this user alone, because they may have secrets.
 * @throws UserError
 */
export async function createRunFolder(out: string, run: string): Promise<RunFolder> {
  const name = join(out, run);
  await mkdir(name, { mode: 0o700 }).catch((error: unknown) => {
    if (systemError(error).code === 'EEXIST')
      throw new UserError(`${name} is of a run that began in the same second: run again`);
    throw folderError(out, error);
  });
  closeNewFiles();
  if (process.geteuid?.() !== 0) return { path: name, name };
  const descriptor = openSync(name, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  // Processes that bakeoff starts use it too.
  const path = `/proc/${process.pid}/fd/${descriptor}`;
  // The folder that was just made is root's and empty. Any other one was put in its place.
  if (fstatSync(descriptor).uid !== 0 || readdirSync(path).length > 0)
    throw new UserError(`${name} was replaced by another user: name another folder with --out`);
  return { path, name };
}

/** Removes the folder of a run that has no result; if that fails, it stays. */
export async function removeWithoutResult({ path, name }: RunFolder): Promise<void> {
  if (existsSync(join(path, 'result.json'))) return;
  try {
    for (const entry of readdirSync(path)) await rm(join(path, entry), { recursive: true });
    await rmdir(name);
  } catch {
    // A folder that stays must not hide why the run ended.
  }
}

/** The folder of a round, with a folder for each variant's server and each k6. */
export function roundFolder(runFolder: string, round: number): string {
  return join(runFolder, `round-${round}`);
}

/** Why something cannot be written, by the kernel's code. */
export const writeReasons: Readonly<Record<string, string>> = {
  EACCES: 'you may not write there',
  EPERM: 'you may not write there',
  EROFS: 'its file system is read-only',
  ENOSPC: 'its file system is full',
  EDQUOT: 'your quota there is used up',
  ENOENT: 'no folder can be made there',
  ENOTDIR: 'there is a file of that name in its path',
  EEXIST: 'there is a file of that name',
  EISDIR: 'there is a folder where a file has to be',
  ELOOP: 'links in its path lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

/** The files of another round need more. */
const fullBelowBytes = 250e3;

/** Like folderError. If the file system is full, the error says so, because each part fails with a different message. */
export async function explainFailure({ path, name }: RunFolder, error: unknown): Promise<unknown> {
  const isFull = (await freeBytes(path)) < fullBelowBytes;
  return folderError(name, isFull ? { code: 'ENOSPC' } : error, path);
}

/** @param inside its path in errors */
function folderError(out: string, error: unknown, inside = out): unknown {
  const { code, path } = systemError(error);
  const reason = writeReasons[code ?? ''];
  const elsewhere = path !== undefined && !path.startsWith(inside) && !inside.startsWith(path);
  return reason === undefined || elsewhere
    ? error
    : new UserError(
        `cannot write results to ${out}: ${reason}; fix that or name another folder with --out`,
      );
}
