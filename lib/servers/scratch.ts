// Temporary folders of servers, made and removed.
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { RunAs } from '../process.ts';
import { ifThere } from '../files.ts';

/** A server's files for as long as it runs. */
export type Scratch = Awaited<ReturnType<typeof makeScratch>>;

const prefix = 'bakeoff-server-';

/** Makes a folder below the system's temporary one, closed to others. If this process is killed, the next server's start removes it. */
export function temporaryFolder(): Promise<string> {
  return mkdtemp(path.join(temporaryPlace(), nameOfProcess(prefix)));
}

/** The system's temporary folder; for a root whose own is closed to others (pam_tmpdir), /tmp. */
export function temporaryPlace(): string {
  return process.geteuid?.() === 0 && !letsAllIn(tmpdir()) && letsAllIn('/tmp') ? '/tmp' : tmpdir();
}

/** Of folders that temporaryFolder makes, and of those that a server's user was let into. */
const modes = [0o700, 0o711];

/** Keys and certificates are far shorter. */
const mostHandedOverBytes = 1 << 20;

/** Makes it below the system's temporary folder: the folders above the run's may be closed to the server's user. */
export async function makeScratch() {
  const place = temporaryPlace();
  const { mode, dev } = statSync(place);
  // Not where anyone may rename others' folders: one of ours may have been put in place of another.
  if ((mode & 0o022) === 0 || (mode & 0o1000) !== 0) {
    removeLeftOvers(
      place,
      prefix,
      (found) =>
        found.uid === process.geteuid?.() &&
        modes.includes(found.mode & 0o7777) &&
        found.dev === dev,
    );
  }
  const folder = await temporaryFolder();
  const temp = path.join(folder, 'temp');
  // A name that nobody can guess, in a folder that others cannot list.
  const kept = path.join(folder, randomUUID());
  const original = new Map<string, string>();
  const remove = (): void => removeFolder(folder);

  const placeFor = (name: string): string => {
    const file = path.join(kept, `${original.size}-${path.basename(name)}`);
    original.set(file, name);
    return file;
  };
  /** Writes a file that only the server may read, and returns its path. */
  const keep = (name: string, content: string | Buffer): string => {
    const file = placeFor(name);
    writeFileSync(file, content, { mode: 0o400, flag: 'wx' });
    return file;
  };

  try {
    for (const inner of [temp, kept]) mkdirSync(inner, { mode: 0o700 });
  } catch (error) {
    remove();
    throw error;
  }
  return {
    keep,
    remove,
    /** For a copy of the pages; not there yet. */
    docroot: path.join(folder, 'www'),
    /** For the server's temporary files. */
    temp,
    /**
     * The path at which the server's user can read a file: its own, or a copy's if it may be closed to that user. Only keys, certificates
     * and files in `own`, the folder of a person's config, are copied: a stranger's config could have any file of root's served.
     */
    handOver(file: string, own?: string): string {
      const known = [...original].find(([, name]) => name === file)?.[0];
      if (known !== undefined || process.geteuid?.() !== 0 || isOpenToAll(file))
        return known ?? file;
      // So that the server says that it is not there, not that the folder is closed.
      if (!existsSync(file)) return placeFor(file);
      const content = contentOf(file);
      return content === undefined ||
        !(isPem.test(content.toString('latin1')) || (own !== undefined && isIn(own, file)))
        ? file
        : keep(file, content);
    },
    /** Gives the server's user its files, which were closed to others; undefined: the server is not another user. */
    giveTo(user: RunAs | undefined): void {
      if (user !== undefined)
        for (const file of [temp, ...readdirSync(kept).map((name) => path.join(kept, name))])
          chownSync(file, user.uid, user.gid);
      for (const inner of [kept, folder]) chmodSync(inner, 0o711);
    },
    /** Removes the files that were handed over and kept, once the server has read them: it could be made to serve them. */
    forget: () => removeFolder(kept),
    /** A server's words, with the original paths of these files. */
    withOwnPaths: (said: string): string =>
      [...original].reduce((text, [file, name]) => text.replaceAll(file, name), said),
  };
}

/** Not people's own keys (OpenSSH's). */
const isPem = /^-----BEGIN (?!OPENSSH)[A-Z0-9 ]+-----\r?$/m;

/** Whether a file is in a folder, or below it, once all links are followed. Throws where one is not there. */
export function isIn(folder: string, file: string): boolean {
  return realpathSync(file).startsWith(`${realpathSync(folder).replace(/\/$/, '')}/`);
}

/** Whether every user may read it and reach it, access control lists aside. */
export function isOpenToAll(file: string): boolean {
  const real = ifThere(() => realpathSync(file));
  return real !== undefined && isOpen(real, 0o004) && letsAllIn(path.dirname(real));
}

/** Whether others have that right of a file or folder. */
function isOpen(file: string, right: number): boolean {
  return ((ifThere(() => statSync(file))?.mode ?? 0) & right) !== 0;
}

/** Whether every user may pass through a folder and those above it. */
function letsAllIn(folder: string): boolean {
  const real = ifThere(() => realpathSync(folder));
  return (
    real !== undefined && isOpen(real, 0o001) && (real === '/' || letsAllIn(path.dirname(real)))
  );
}

function contentOf(file: string): Buffer | undefined {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    return found.isFile() && found.size <= mostHandedOverBytes
      ? readFileSync(descriptor)
      : undefined;
  } finally {
    closeSync(descriptor);
  }
}

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
