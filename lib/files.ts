// Files and folders: made, read, written.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  statSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs';
import {
  mkdtemp,
  readdir,
  realpath,
  rm,
  statfs,
  open,
  rename,
  stat,
  writeFile,
  type FileHandle,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
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

interface Limits {
  /** The most that the file may have. */
  megabytes: number;
  /** The folder that it has to be in once all links are followed; absent: anywhere. */
  below?: string;
}

/** Why a file is not read, in words that follow its name and a colon: "it is a folder". */
export class Unreadable extends Error {}

const notAFile = 'it is a pipe, socket or device, not a file';

const why: Record<string, string> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'it is not there',
  EACCES: 'you may not read it',
  ELOOP: 'it is a link to itself',
  ENXIO: notAFile,
};

/** Opens a plain file to read it. The caller closes it. Throws Unreadable. */
export async function openFile(file: string, { megabytes, below }: Limits): Promise<FileHandle> {
  // A pipe is opened without waiting for who writes into it.
  const handle = await open(
    file,
    constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
  ).catch((error: NodeJS.ErrnoException) => {
    throw new Unreadable(why[error.code ?? ''] ?? error.message);
  });
  try {
    const found = await handle.stat();
    if (found.isDirectory()) throw new Unreadable('it is a folder');
    if (!found.isFile()) throw new Unreadable(notAFile);
    if (found.size > megabytes * 1e6) throw new Unreadable(`it has more than ${megabytes} MB`);
    // What was opened is asked, since the name may come to mean another file.
    if (
      below !== undefined &&
      !(await realpath(`/proc/self/fd/${handle.fd}`)).startsWith((await realpath(below)) + sep)
    ) {
      throw new Unreadable(`it is a link that leads out of ${below}`);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The bytes of a plain file. Throws Unreadable. */
export async function readBytes(file: string, limits: Limits): Promise<Buffer> {
  const handle = await openFile(file, limits);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Descriptors that a shell hands over, as in `<(…)`: such a pipe has a writer. */
const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/** The bytes of a plain file, or of a pipe that a shell hands over. Throws Unreadable, also for more than `mostBytes`, or the file system's error. */
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

/** Throws UserError for a path with a newline, which would end the comment that names it, or the like. @param begin of the message */
export function requirePlainPath(file: string, begin: string): void {
  if (/\p{Cc}/u.test(file))
    throw new UserError(
      `${begin} ${JSON.stringify(file)}, which has control characters in its path: rename it`,
    );
}

/** What a look at the file system gives; undefined where it throws. */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

export function readIfThere(file: string, encoding: BufferEncoding = 'latin1'): string | undefined {
  return ifThere(() => readFileSync(file, encoding));
}

/** The same in UTF-8, '' where it is not there. */
export function textOf(file: string): string {
  return readIfThere(file, 'utf8') ?? '';
}

/** The names in a folder; none where it is not there. */
export function namesIn(folder: string): string[] {
  return ifThere(() => readdirSync(folder)) ?? [];
}

/** Where a link leads; '' where it is not there. */
export function linkOf(file: string): string {
  return ifThere(() => readlinkSync(file)) ?? '';
}

/** Writes a file whole or not at all: under another name first, then renamed. @param mode as of chmod; absent: as the umask has it */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, mode, (unfinished) => rename(unfinished, file));
}

/** Why what stands there is not to be replaced by a file, in words; undefined where there is a file, or nothing. */
export async function whyNoFile(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || found.isFile()) return undefined;
  return `it is a ${found.isDirectory() ? 'folder: name a file in it' : 'pipe, socket or device: name a file'}`;
}

/** What a name leads to: a link stays one, and what it leads to is written. */
export async function whereItLeads(file: string): Promise<string> {
  return realpath(file).catch(() => file);
}

/** Makes sure that writeWhole could write it, and leaves everything as it was. Throws what the file system says. */
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
