// Removes folders by descriptor: who may write in them, or beside them, cannot have anything else removed instead.
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  unlinkSync,
  type Stats,
} from 'node:fs';
import path from 'node:path';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** Opens a folder that is no link. The folders above it may be links. */
function openFolder(path: string): number {
  return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/** Does the work with such a folder open. */
export function withFolder(path: string, work: (descriptor: number) => void): void {
  const descriptor = openFolder(path);
  try {
    work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The path of a file in an open folder, wherever that has been moved to. */
export function inFolder(descriptor: number, name: string): string {
  return `/proc/self/fd/${descriptor}/${name}`;
}

/**
 * Removes a folder with its content, if it is there and `mayGo` says so of the opened folder. It follows no links and leaves file
 * systems that are mounted in it. Throws the file system's error.
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
  // If something else has taken the name since, it goes only if it is an empty folder.
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

/** The begin of the name of a process's folder, for removeLeftOvers. Two containers may share a folder, so it has the PID namespace. */
export function nameOfProcess(prefix: string, pid = process.pid): string {
  const [namespace] = /\d+/.exec(readlinkSync('/proc/self/ns/pid')) as RegExpExecArray;
  return `${prefix}${namespace}-${pid}-`;
}

/** Removes folders of processes that have ended, nameOfProcess(prefix)…, if `mayGo` says so of the opened folder. */
export function removeLeftOvers(
  folder: string,
  prefix: string,
  mayGo: (found: Stats) => boolean,
): void {
  for (const name of readdirSync(folder)) {
    const pid = /^\d+-(\d+)-/.exec(name.slice(prefix.length))?.[1];
    if (
      pid === undefined ||
      !name.startsWith(nameOfProcess(prefix, Number(pid))) ||
      existsSync(`/proc/${pid}`)
    )
      continue;
    try {
      removeFolder(path.join(folder, name), mayGo);
    } catch {
      // A link, another user's, or something in it that cannot be removed: it stays.
    }
  }
}
