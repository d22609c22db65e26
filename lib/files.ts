// Files and folders: made, opened, read.
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
  type Stats,
} from 'node:fs';
import { mkdtemp, readdir, realpath, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { callerOwning, onTheWay, whoMayWrite } from '../bin/trust.mjs';
import { UserError, messageOf, systemError } from './errors.ts';

/** The umask at bakeoff's start, for programs and files outside of bakeoff's folders. */
export const userUmask = parseInt(
  /^Umask:\s*([0-7]+)/m.exec(textOf('/proc/self/status'))?.[1] ?? '022',
  8,
);

/** From now on, this process creates private files and folders only. */
export function closeNewFiles(): void {
  process.umask(0o077);
}

/**
 * Makes a folder and its parents. In a folder that belongs to the caller of sudo they belong to the caller too. Throws the error of
 * mkdir(2).
 */
export function makeFolder(path: string): void {
  // Node's own recursion never ends below /proc.
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above);
  try {
    mkdirSync(path);
    const caller = callerOwning(above);
    if (caller !== undefined) lchownSync(path, caller.uid, caller.gid);
  } catch (error) {
    // Another process may have made it.
    if (systemError(error).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}

/** Does work that stores `what` in one of bakeoff's folders. Throws UserError if the folder cannot be used; or the signal's reason. */
export async function inOwnFolder<T>(
  folder: string,
  what: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted || error instanceof UserError) throw error;
    throw new UserError(
      `${what} cannot be kept in ${folder}: ${messageOf(error)}; BAKEOFF_HOME names another folder`,
    );
  }
}

/**
 * Makes one of bakeoff's own folders. Throws UserError if root would write into a folder in which others may put files and links of theirs.
 */
export function makeOwnFolder(path: string): void {
  makeFolder(path);
  const problem = process.geteuid?.() === 0 ? whoMayWrite(path) : undefined;
  if (problem !== undefined)
    throw new UserError(
      `root keeps nothing in ${path}: ${problem}; remove it, or name another folder in BAKEOFF_HOME`,
    );
}

/** The same, closed to other users. */
export function makePrivateFolder(path: string): void {
  makeOwnFolder(path);
  chmodSync(path, 0o700);
}

/** Makes a temporary folder, whose path has no links, passes it to the work, and removes it afterwards. */
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

/** Returns sorted paths relative to the folder; links are left out. Throws the file system's error. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** Returns how many bytes this user may still write; Infinity if unknown. The folder may not exist yet. */
export async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    if (systemError(error).code === 'ENOENT' && dirname(folder) !== folder)
      return freeBytes(dirname(folder));
    return Infinity;
  }
}

/** Throws UserError if a folder has less space than `what` needs. @param otherwise the alternative to freeing space */
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

/**
 * Opens a folder that a person names. Links of their own and of root's are followed. The caller closes the descriptor. A path below the
 * descriptor stays in this folder, even if the folder is replaced.
 * @throws UserError that follows the name and a colon; the file system's error
 */
export function openFolder(name: string): number {
  let place = '/';
  for (const { place: next, stats } of onTheWay(name)) {
    if (!stats.isSymbolicLink()) place = next;
    else if (stats.uid !== process.geteuid?.() && stats.uid !== 0)
      throw new UserError(`${next} is a link of another user: name the folder that it leads to`);
  }
  const descriptor = openSync(place, folderFlags);
  if (readlinkSync(`/proc/self/fd/${descriptor}`) === place) return descriptor;
  closeSync(descriptor);
  throw new UserError('another folder has taken its place meanwhile');
}

/** Opens a folder, but not a link to one. */
export const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

const notAFile = 'it is a pipe, socket or device, not a file';

export const missing = 'it is not there';

const unreadable: Record<string, string> = {
  ENOENT: missing,
  ENOTDIR: missing,
  EACCES: 'you may not read it',
  ENXIO: notAFile,
};

/** Returns whether both are the same file: links and mounts give it several paths. */
export function isSameFile(one: Stats, other: Stats | undefined): boolean {
  return one.dev === other?.dev && one.ino === other.ino;
}

/** Descriptors that a shell hands over, as in `<(…)`. Such a pipe has a writer, so reading it does not wait for ever. */
const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/** A file system compresses less than a hole. */
const leastFilled = 0.001;
const smallBytes = 1e9;

interface Reading {
  /** The folder that the file must be in, after links are followed. */
  below?: string;
  /** The file is read only if every user may read it, and no pipe that a shell hands over is. */
  forAll?: boolean;
}

/**
 * Opens a plain file, or a pipe that a shell hands over; any other could be endless. Behind a link, which may be a stranger's, root opens
 * only what every user may read. The caller closes the descriptor.
 * @param mostBytes of a file; without this bound, a file that is nearly all hole is refused
 * @throws UserError that follows the name and a colon: "it is a folder"
 */
export function openPlain(
  file: string,
  mostBytes = Infinity,
  { below, forAll = false }: Reading = {},
): number {
  const isHandedOver = !forAll && handedOver.test(file);
  let descriptor: number | undefined;
  try {
    // Some devices do something once they are opened, such as /dev/watchdog.
    const named = statSync(file);
    if (!isHandedOver && !named.isFile() && !named.isDirectory()) throw new UserError(notAFile);
    // A pipe is opened without waiting for a writer.
    const flags = isHandedOver ? constants.O_RDONLY : constants.O_RDONLY | constants.O_NONBLOCK;
    descriptor = openSync(file, flags);
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new UserError('it is a folder');
    if (!stats.isFile() && !(isHandedOver && stats.isFIFO())) throw new UserError(notAFile);
    if (forAll) requireOpenToAll(descriptor);
    if (below !== undefined) requireBelow(descriptor, below);
    else if (!isHandedOver && process.geteuid?.() === 0) requireOpenBehindLink(descriptor, file);
    if (stats.size > mostBytes) throw longerThan(mostBytes);
    if (stats.size > smallBytes && 512 * stats.blocks < leastFilled * stats.size)
      throw new UserError(
        'nearly all of it is a hole without data (a sparse file): give a copy without holes',
      );
    return descriptor;
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor);
    if (error instanceof UserError) throw error;
    const { code = '' } = systemError(error);
    throw new UserError(unreadable[code] ?? messageOf(error));
  }
}

function longerThan(bytes: number): UserError {
  return new UserError(`it has more than ${bytes < 1e6 ? `${bytes} bytes` : `${bytes / 1e6} MB`}`);
}

// The name may lead to another file by now, so that these look at the open file.
const placeOf = (descriptor: number): string => readlinkSync(`/proc/self/fd/${descriptor}`);

function requireBelow(descriptor: number, folder: string): void {
  if (!placeOf(descriptor).startsWith(realpathSync(folder) + sep))
    throw new UserError(`it is a link that leads out of ${folder}`);
}

function requireOpenBehindLink(descriptor: number, file: string): void {
  const place = placeOf(descriptor);
  if (place !== resolve(file) && !isOpenToAll(descriptor))
    throw new UserError(
      `a link leads to ${place}, which not every user may read: name that file itself`,
    );
}

/** Reads a file that openPlain accepts. Throws UserError as it does. */
export function readBytes(file: string, mostBytes: number, reading: Reading = {}): Buffer {
  const descriptor = openPlain(file, mostBytes, reading);
  try {
    return readAtMost(descriptor, mostBytes);
  } catch (error) {
    throw error instanceof UserError ? error : new UserError(messageOf(error));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Returns the sorted names in a folder that every user may list; none if it is missing. Throws UserError that follows a name and a colon.
 */
export function namesOpenToAll(folder: string): string[] {
  const descriptor = ifThere(() => openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY));
  if (descriptor === undefined) return [];
  try {
    requireOpenToAll(descriptor);
    return readdirSync(`/proc/self/fd/${descriptor}`).sort();
  } finally {
    closeSync(descriptor);
  }
}

/** Throws UserError unless a user who owns nothing may read the open file or list the open folder. */
function requireOpenToAll(descriptor: number): void {
  if (isOpenToAll(descriptor)) return;
  const does = fstatSync(descriptor).isDirectory() ? 'list' : 'read';
  throw new UserError(
    `not every user may ${does} it, and servers that root starts run as a user without rights: put a copy that all may read in its place (chmod a+r, and a+rx for the folders above it), or start bakeoff as another user`,
  );
}

/** In /proc the mode alone does not decide who may read. */
function isOpenToAll(descriptor: number): boolean {
  const stats = fstatSync(descriptor);
  const needed = stats.isDirectory() ? 0o5 : 0o4;
  const place = placeOf(descriptor);
  const isOpen = (stats.mode & needed) === needed && allMayEnter(dirname(place));
  return isOpen && !place.startsWith('/proc/');
}

/** Returns whether a user who owns nothing may enter a folder and those above it. @param folder without links */
export function allMayEnter(folder: string): boolean {
  return foldersUp(folder).every((place) => (statSync(place).mode & 0o1) !== 0);
}

/** A folder and all above it, the root last. @param folder without links */
export function foldersUp(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...foldersUp(above)];
}

const pieceBytes = 1e6;

/** Reads to the end. Throws UserError if there is more than `mostBytes`: a pipe has no size, and a file may grow. */
function readAtMost(descriptor: number, mostBytes: number): Buffer {
  const pieces: Buffer[] = [];
  for (let bytes = 0; bytes <= mostBytes;) {
    const piece = Buffer.allocUnsafe(pieceBytes);
    const read = readSync(descriptor, piece);
    if (read === 0) return Buffer.concat(pieces);
    pieces.push(piece.subarray(0, read));
    bytes += read;
  }
  throw longerThan(mostBytes);
}

/** Throws UserError for a path with a control character, such as a newline. @param begin begins the message */
export function requirePlainPath(file: string, begin: string): void {
  if (/\p{Cc}/u.test(file))
    throw new UserError(
      `${begin} ${JSON.stringify(file)}, which has control characters in its path: rename it`,
    );
}

/** Returns what `look` returns; undefined if the file is missing or closed to this user. Throws other errors. */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code } = systemError(error);
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
