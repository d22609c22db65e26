// Removes folders by descriptor: whoever may write in them, or beside them, cannot have anything else removed instead.
import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, rmdirSync, unlinkSync, type Stats } from 'node:fs';
import path from 'node:path';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** Opens a folder that is no link. The last name of the path is not followed; what is above it is the caller's to trust. */
function openFolder(path: string): number {
  return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/** Does something with such a folder open. */
export function withFolder(path: string, work: (descriptor: number) => void): void {
  const descriptor = openFolder(path);
  try {
    work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The path of what is in an open folder, wherever that has been moved to meanwhile. */
export function inFolder(descriptor: number, name: string): string {
  return `/proc/self/fd/${descriptor}/${name}`;
}

/**
 * Removes a folder with all that is in it, if it is there, is no link, and `mayGo` says so of what was opened. Links in it go, what
 * they point to stays; other file systems that are mounted in it stay too. Throws the file system's error.
 */
export function removeFolder(path: string, mayGo: (found: Stats) => boolean = () => true): void {
  let folder: number;
  try {
    folder = openFolder(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    const found = fstatSync(folder);
    if (!mayGo(found)) return;
    empty(folder, found.dev);
  } finally {
    closeSync(folder);
  }
  // Whatever has taken the name since: it goes only if it is an empty folder.
  rmdirSync(path);
}

function empty(folder: number, device: number): void {
  for (const name of readdirSync(inFolder(folder, '.'))) {
    const file = inFolder(folder, name);
    if (!lstatSync(file).isDirectory()) {
      unlinkSync(file);
      continue;
    }
    withFolder(file, (inner) => {
      if (fstatSync(inner).dev !== device) throw new Error(`${name} is another file system`);
      empty(inner, device);
    });
    rmdirSync(file);
  }
}

/**
 * What the name of a process's folder begins with, from which removeLeftOvers tells whether it has ended. Two containers may share
 * a folder, and count their processes each by itself: a number says something in its own namespace only.
 */
export function nameOfProcess(prefix: string, pid = process.pid): string {
  const [namespace] = /\d+/.exec(readlinkSync('/proc/self/ns/pid')) as RegExpExecArray;
  return `${prefix}${namespace}-${pid}-`;
}

/** Removes the folders of processes that have ended, nameOfProcess(prefix)…, those of which `mayGo` says so once they are open. */
export function removeLeftOvers(folder: string, prefix: string, mayGo: (found: Stats) => boolean): void {
  for (const name of readdirSync(folder)) {
    const pid = /^\d+-(\d+)-/.exec(name.slice(prefix.length))?.[1];
    if (pid === undefined || !name.startsWith(nameOfProcess(prefix, Number(pid))) || existsSync(`/proc/${pid}`)) continue;
    try {
      removeFolder(path.join(folder, name), mayGo);
    } catch {
      // A link, another user's, or something in it that cannot be removed: it stays.
    }
  }
}
