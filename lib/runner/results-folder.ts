// The folder results/<run>/.
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  checkWhole,
  closeNewFiles,
  freeBytes,
  makeFolder,
  requireClosedToOthers,
  requireSpace,
} from '../files.ts';
import { UserError } from '../errors.ts';
import { run } from '../process.ts';

/** Makes the folder `out` if it is missing. Throws UserError if it cannot be written to or has too little space. */
export async function checkResultsFolder(out: string, neededBytes: number): Promise<void> {
  try {
    makeFolder(out);
    await checkWhole(join(out, `.writable-${randomBytes(4).toString('hex')}`));
  } catch (error) {
    throw folderError(out, error);
  }
  const otherwise = 'name another folder with --out';
  requireClosedToOthers(out, otherwise);
  await requireSpace(out, neededBytes, 'this run', otherwise);
}

/** Makes the run's folder in `out`, and it and all files from now on this user's alone: they may have secrets. Throws UserError. */
export async function createRunFolder(out: string, name: string): Promise<string> {
  const folder = join(out, name);
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    throw folderError(out, error);
  });
  closeNewFiles();
  return folder;
}

/** Gives a run's folder to the user who called sudo: it is closed to all but its owner. */
export async function giveToCaller(folder: string): Promise<void> {
  const { SUDO_UID: uid = '', SUDO_GID: gid = '' } = process.env;
  if (process.geteuid?.() !== 0 || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) return;
  await run({ command: 'chown', args: ['-R', '-P', `${uid}:${gid}`, '--', folder] });
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

/** As folderError. If the file system is full, the line says so: each part fails with other words. */
export async function explainFailure(folder: string, error: unknown): Promise<unknown> {
  const isFull = (await freeBytes(folder)) < fullBelowBytes;
  return folderError(folder, isFull ? { code: 'ENOSPC' } : error);
}

function folderError(out: string, error: unknown): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  const reason = writeReasons[code ?? ''];
  const elsewhere = path !== undefined && !path.startsWith(out) && !out.startsWith(path);
  return reason === undefined || elsewhere
    ? error
    : new UserError(
        `cannot write results to ${out}: ${reason}; mend that or name another folder with --out`,
      );
}
