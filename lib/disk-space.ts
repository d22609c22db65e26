import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UserError } from './errors.ts';

/** Bytes that this user may still write to the file system of a folder, or of the one that it will be made in; Infinity where that cannot be told. */
export async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(folder) !== folder ? freeBytes(dirname(folder)) : Infinity;
  }
}

/**
 * Makes sure that what `what` writes to a folder will fit.
 * @param otherwise what a person can do but to free some
 * @throws UserError when there is too little space
 */
export async function requireSpace(folder: string, neededBytes: number, what: string, otherwise: string): Promise<void> {
  if (await freeBytes(folder) >= neededBytes) return;
  throw new UserError(`${folder} has too little space, ${what} needs ${Math.ceil(neededBytes / 1e6)} MB: free some, or ${otherwise}`);
}
