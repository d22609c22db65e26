// Folders: made, listed, and whether what is to be written to them will fit.
import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { UserError } from './errors.ts';

/** Makes a folder and those above it. Throws what mkdir(2) says. (Node 20's own recursive mkdir never returns for a folder in /proc.) */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error;
    makeFolder(dirname(path));
    makeFolder(path);
  }
}

/** As makeFolder, and nobody but its owner comes in, also where it was there. */
export function makePrivateFolder(path: string): void {
  makeFolder(path);
  chmodSync(path, 0o700);
}

/** Does the work with a new folder in the system's temporary one, whose path has no links in it, and removes it then. @param prefix of its name */
export async function inTemporaryFolder<T>(
  prefix: string,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), prefix)));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The paths of all files in a folder and those in it, from that folder on, sorted. No links. Throws the file system's error. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** Bytes that this user may still write to the file system of a folder, or of the one that it will be made in; Infinity where that cannot be told. */
export async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(folder) !== folder
      ? freeBytes(dirname(folder))
      : Infinity;
  }
}

/** Throws UserError if a folder has less space than `what` needs. @param otherwise what a person can do instead of freeing some */
export async function requireSpace(
  folder: string,
  neededBytes: number,
  what: string,
  otherwise: string,
): Promise<void> {
  if ((await freeBytes(folder)) >= neededBytes) return;
  throw new UserError(
    `${folder} has too little space, ${what} needs ${Math.ceil(neededBytes / 1e6)} MB: free some, or ${otherwise}`,
  );
}
