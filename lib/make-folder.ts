import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it, where they are not there yet. Throws what mkdir(2) says. (Node 20's own recursive
 * mkdir never returns where a folder is there but takes none, as /proc does.)
 */
export function makeFolder(path: string): void {
  if (makeOne(path)) return;
  makeFolder(dirname(path));
  // What is above it is there now: that it is missing is the answer.
  if (!makeOne(path)) throw Object.assign(new Error(`no folder can be made at ${path}`), { code: 'ENOENT', path });
}

/** As makeFolder, and nobody but its owner comes in, also where it was there. */
export function makePrivateFolder(path: string): void {
  makeFolder(path);
  chmodSync(path, 0o700);
}

/** Returns false when the folder above is missing. */
function makeOne(path: string): boolean {
  try {
    mkdirSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && dirname(path) !== path) return false;
    if (code !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
  return true;
}
