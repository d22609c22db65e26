// The folder results/<run>/.
import { constants, existsSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { closeNewFiles, freeBytes, makeFolder, requireSpace } from '../files.ts';
import { checkWritable, requireClosedToOthers } from '../writing.ts';
import { UserError } from '../errors.ts';

/** Makes it if missing. @throws UserError if it cannot be written to or has too little space */
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
}

export interface RunFolder {
  /**
   * Goes through an open descriptor for root: else the owner of a parent could replace the folder, and k6 would run a foreign script as
   * root.
   */
  path: string;
  /** The path that people know. */
  name: string;
}

/** It and all files from now on are this user's alone: they may have secrets. @throws UserError */
export async function createRunFolder(out: string, run: string): Promise<RunFolder> {
  const name = join(out, run);
  await mkdir(name, { mode: 0o700 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new UserError(`${name} is of a run that began in the same second: run again`);
    throw folderError(out, error);
  });
  closeNewFiles();
  if (process.geteuid?.() !== 0) return { path: name, name };
  const descriptor = openSync(name, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  // Processes that bakeoff starts use it too.
  const path = `/proc/${process.pid}/fd/${descriptor}`;
  // Another's would be no folder of root's, or have something in it.
  if (fstatSync(descriptor).uid !== 0 || readdirSync(path).length > 0)
    throw new UserError(`${name} was replaced by another user: name another folder with --out`);
  return { path, name };
}

/** If that fails, it stays. */
export async function removeWithoutResult({ path, name }: RunFolder): Promise<void> {
  if (existsSync(join(path, 'result.json'))) return;
  try {
    for (const entry of readdirSync(path)) await rm(join(path, entry), { recursive: true });
    await rmdir(name);
  } catch {
    // It must not hide why the run ended.
  }
}

/** Makes a folder for each variant's server and each k6, too. */
export function roundFolder(runFolder: string, round: number): string {
  return join(runFolder, `round-${round}`);
}

/** By the kernel's code. */
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

const fullBelowBytes = 250e3;

/** Says so if the file system is full: each part fails with another message. */
export async function explainFailure({ path, name }: RunFolder, error: unknown): Promise<unknown> {
  const isFull = (await freeBytes(path)) < fullBelowBytes;
  return folderError(name, isFull ? { code: 'ENOSPC' } : error, path);
}

/** @param inside its path in errors */
function folderError(out: string, error: unknown, inside = out): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  const reason = writeReasons[code ?? ''];
  const elsewhere = path !== undefined && !path.startsWith(inside) && !inside.startsWith(path);
  return reason === undefined || elsewhere
    ? error
    : new UserError(
        `cannot write results to ${out}: ${reason}; mend that or name another folder with --out`,
      );
}
