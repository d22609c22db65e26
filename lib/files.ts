// Files and folders: made, read, written.
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs';
import {
  mkdtemp,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { UserError } from './errors.ts';

/** Makes a folder and its parents. Throws the error of mkdir(2). (Node 20's recursive mkdir never returns for a folder in /proc.) */
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

/** Makes a folder, or closes an existing one, for its owner alone. */
export function makePrivateFolder(path: string): void {
  makeFolder(path);
  chmodSync(path, 0o700);
}

/** Works with a new temporary folder, whose path has no links, and removes it. */
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

/** Sorted paths relative to the folder, without links. Throws the file system's error. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** Bytes that this user may still write to a folder's file system; Infinity if unknown. The folder may not exist yet. */
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

/** Why a file is not read, in words that follow its name and a colon: "it is a folder". */
export class Unreadable extends Error {}

const notAFile = 'it is a pipe, socket or device, not a file';

const unreadable: Record<string, string> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'it is not there',
  EACCES: 'you may not read it',
  ELOOP: 'it is a link to itself',
  ENXIO: notAFile,
};

/**
 * Reads a plain file; another could be endless.
 * @param below the folder that it must be in after all links are followed; absent: anywhere
 * @throws Unreadable
 */
export async function readBytes(
  file: string,
  { megabytes, below }: { megabytes: number; below?: string },
): Promise<Buffer> {
  // A pipe is opened without waiting for a writer.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  const handle = await open(file, flags).catch((error: NodeJS.ErrnoException) => {
    throw new Unreadable(unreadable[error.code ?? ''] ?? error.message);
  });
  try {
    const found = await handle.stat();
    if (found.isDirectory()) throw new Unreadable('it is a folder');
    if (!found.isFile()) throw new Unreadable(notAFile);
    if (found.size > megabytes * 1e6) throw new Unreadable(`it has more than ${megabytes} MB`);
    // Asks the open file: the name may lead to another one by now.
    if (
      below !== undefined &&
      !(await realpath(`/proc/self/fd/${handle.fd}`)).startsWith((await realpath(below)) + sep)
    )
      throw new Unreadable(`it is a link that leads out of ${below}`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Descriptors that a shell hands over, as in `<(…)`: such a pipe has a writer. */
const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/** Reads a plain file, or a pipe that a shell hands over. Throws Unreadable, also above `mostBytes`, or the file system's error. */
export function readBytesSync(file: string, mostBytes: number): Buffer {
  const isHandedOver = handedOver.test(file);
  const descriptor = openSync(
    file,
    constants.O_RDONLY | constants.O_NOCTTY | (isHandedOver ? 0 : constants.O_NONBLOCK),
  );
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile() && !found.isDirectory() && !(isHandedOver && found.isFIFO()))
      throw new Unreadable(notAFile);
    const bytes = Buffer.allocUnsafe(mostBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= mostBytes; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (length > mostBytes) throw new Unreadable(`it has more than ${mostBytes} bytes`);
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** Throws UserError for a path with a control character, such as a newline. @param begin of the message */
export function requirePlainPath(file: string, begin: string): void {
  if (/\p{Cc}/u.test(file))
    throw new UserError(
      `${begin} ${JSON.stringify(file)}, which has control characters in its path: rename it`,
    );
}

/**
 * Returns what `look` returns; undefined if the system refuses. For files that may be missing or closed to this user. Throws what says
 * nothing about the file: a mistake in `look`, or too many open files.
 */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || code === 'EMFILE' || code === 'ENFILE') throw error;
    return undefined;
  }
}

export function readIfThere(file: string, encoding: BufferEncoding = 'latin1'): string | undefined {
  return ifThere(() => readFileSync(file, encoding));
}

/** The UTF-8 text of a file; '' if it is missing. */
export function textOf(file: string): string {
  return readIfThere(file, 'utf8') ?? '';
}

export function namesIn(folder: string): string[] {
  return ifThere(() => readdirSync(folder)) ?? [];
}

/** The target of a link; '' if it is missing. */
export function linkOf(file: string): string {
  return ifThere(() => readlinkSync(file)) ?? '';
}

/** Writes a file whole or not at all: under another name, then renamed. @param mode as of chmod; the umask applies to the default */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, mode, (unfinished) => rename(unfinished, file));
}

/** Why no file can be written to a path, in words. */
export async function whyNoFile(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || found.isFile()) return undefined;
  return `it is a ${found.isDirectory() ? 'folder: name a file in it' : 'pipe, socket or device: name a file'}`;
}

/** Follows links, so that a link stays one. */
export async function whereItLeads(file: string): Promise<string> {
  return realpath(file).catch(() => file);
}

/** Throws the file system's error if writeWhole could not write the file. */
export async function checkWhole(file: string): Promise<void> {
  await written(file, 'probe', 0o600, rm);
}

async function written(
  file: string,
  text: string,
  mode: number,
  then: (unfinished: string) => Promise<void>,
): Promise<void> {
  const unfinished = `${file}.unfinished`;
  try {
    await rm(unfinished, { force: true });
    await writeFile(unfinished, text, { mode, flag: 'wx' });
    await then(unfinished);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
}
