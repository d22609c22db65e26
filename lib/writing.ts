// Writes files whole, so that nobody else can put a link or another folder in their place.
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  realpathSync,
  statSync,
  type Stats,
} from 'node:fs';
import { lstat, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { callerOfSudo } from '../bin/trust.mjs';
import { UserError } from './errors.ts';
import { foldersUp, ifThere, isSameFile, openFolder, readBytes, userUmask } from './files.ts';

/**
 * Writes a file completely or not at all. If the name is a link, it stays one, and its target is replaced.
 * @param mode as of chmod; the umask applies to the default
 * @throws the file system's error, or an Error that says what is there instead of a file
 */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, { mode });
}

/** Whether a file's text was written by bakeoff, which may then replace it. */
type IsOwn = (text: string, file: string) => boolean;

/**
 * Writes a file that a user has named, like writeWhole. It replaces only an empty file or one of bakeoff's own: any other may belong to a
 * server, or may be read by this command.
 * @param mode default: the user's usual one
 */
export async function writeForUser(
  file: string,
  text: string,
  isOwn: IsOwn,
  mode?: number,
): Promise<void> {
  const lastMode = mode ?? 0o666 & ~userUmask;
  await written(file, text, { mode: 0o600, lastMode, isOwn });
}

/** Throws what writeWhole would throw for a file in the folder. */
export async function checkWritable(folder: string): Promise<void> {
  await written(join(folder, '.probe'), 'probe', { mode: 0o600, isProbe: true });
}

/** Throws what writeForUser would throw for the file. */
export async function checkForUser(file: string, isOwn: IsOwn): Promise<void> {
  await written(file, 'probe', { mode: 0o600, isOwn, isProbe: true });
}

/**
 * Returns the path to write a file to. The path of the folder stays as given, since it may go through an open descriptor. Links of this
 * user or root are followed. A link of another user is refused, since it may lead anywhere; a link that appears later is replaced.
 */
async function placeOf(name: string): Promise<string> {
  const link = await lstat(name).catch(() => undefined);
  if (link?.isSymbolicLink() !== true) return name;
  if (link.uid !== process.geteuid?.() && link.uid !== 0)
    throw new Error(`it is a link of another user in ${dirname(name)}: name a file elsewhere`);
  return realpath(name).catch(() => name);
}

/**
 * Throws UserError if root would write into a folder in which any user can replace files, for example by a link. Sticky folders like /tmp
 * are allowed, because users cannot replace files of others there. The folder may not exist yet.
 */
export function requireClosedToOthers(folder: string, otherwise: string): void {
  if (process.geteuid?.() !== 0) return;
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  const isOpen = (place: string) => {
    const stats = statSync(place);
    return stats.isDirectory() && (stats.mode & 0o1002) === 0o0002;
  };
  const open = foldersUp(realpathSync(existing)).find(isOpen);
  if (open !== undefined)
    throw new UserError(
      `${open} is open to changes by every user, and bakeoff would write there as root: close it (chmod o-w ${open}), or ${otherwise}`,
    );
}

/** Larger files are not bakeoff's own. */
const mostOwnBytes = 100e6;

/** Throws an Error if the file is neither empty nor one of bakeoff's own. */
function requireOwn(file: string, { size }: Stats, isOwn: IsOwn): void {
  if (
    size === 0 ||
    (size <= mostOwnBytes &&
      isOwn(readBytes(file, mostOwnBytes, { below: dirname(file) }).toString(), file))
  )
    return;
  throw new Error('another file is there, which bakeoff did not write: remove it, or name another');
}

/** Throws an Error if this process has the file as a standard stream: its output would be lost with the old file. */
function requireNoStream(stats: Stats): void {
  const isStream = (descriptor: number) =>
    isSameFile(
      stats,
      ifThere(() => fstatSync(descriptor)),
    );
  if ([0, 1, 2].some(isStream))
    throw new Error("it is this command's stdin, stdout or stderr: name another file");
}

/** Opens a folder. One that is open already has no other name. */
function folderAt(path: string): number {
  return path.startsWith('/proc/') ? openSync(path, constants.O_DIRECTORY) : openFolder(path);
}

interface How {
  mode: number;
  /** Once it is whole; absent: mode. */
  lastMode?: number;
  /** Returns whether a file may be replaced. Default: every file may. */
  isOwn?: IsOwn;
  /** The file is removed again. */
  isProbe?: true;
}

async function written(name: string, text: string, how: How): Promise<void> {
  const { mode, lastMode = mode, isOwn, isProbe } = how;
  const file = await placeOf(name);
  const stats = await stat(file).catch(() => undefined);
  if (stats?.isFile() === false)
    throw stats.isDirectory()
      ? Object.assign(new Error('it is a folder'), { code: 'EISDIR' })
      : new Error('it is a pipe, socket or device: name a file');
  if (stats !== undefined) requireNoStream(stats);
  if (stats !== undefined && isOwn !== undefined) requireOwn(file, stats, isOwn);
  // The folder is opened only once, because the owner of a parent folder could replace it meanwhile.
  const folder = folderAt(dirname(file));
  const place = join('/proc/self/fd', String(folder), basename(file));
  const unfinished = `${place}.${randomBytes(4).toString('hex')}.unfinished`;
  try {
    const handle = await open(unfinished, 'wx', mode);
    try {
      await handle.writeFile(text);
      const caller = callerOfSudo();
      if (caller !== undefined && fstatSync(folder).uid === caller.uid)
        await handle.chown(caller.uid, caller.gid);
      // Some file systems have no modes.
      if (lastMode !== mode) await handle.chmod(lastMode).catch(() => undefined);
    } finally {
      await handle.close();
    }
    await (isProbe ? rm(unfinished) : rename(unfinished, place));
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw Object.assign(error as NodeJS.ErrnoException, { path: name });
  } finally {
    closeSync(folder);
  }
}
