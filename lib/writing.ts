// Writes files whole, where nobody else can put a link or folder in their place.
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
 * Writes a file whole or not at all; a link stays one. @param mode as of chmod; the umask applies to the default @throws the file system's
 * error, or an Error on what is there instead of a file
 */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, { mode });
}

/** The text is one that bakeoff wrote, which it may replace. */
type IsOwn = (text: string, file: string) => boolean;

/**
 * Writes a file that a user names. Replaces only an empty file and bakeoff's own: others may be a server's, or read by this command.
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
 * Where to write a file. Keeps the folder's path, as of an open descriptor. Follows links of this user and root, and refuses others'; a
 * later one is replaced.
 */
async function placeOf(name: string): Promise<string> {
  const link = await lstat(name).catch(() => undefined);
  if (link?.isSymbolicLink() !== true) return name;
  if (link.uid !== process.geteuid?.() && link.uid !== 0)
    throw new Error(`it is a link of another user in ${dirname(name)}: name a file elsewhere`);
  return realpath(name).catch(() => name);
}

/**
 * Throws UserError if root would write into a folder in which users can replace files, which sticky ones like /tmp do not allow. It may be
 * missing.
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
  if (size === 0 || (size <= mostOwnBytes && isOwn(readBytes(file, mostOwnBytes).toString(), file)))
    return;
  throw new Error('another file is there, which bakeoff did not write: remove it, or name another');
}

/** Throws an Error if it is a standard stream of this process, whose output would be lost. */
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
  /** Absent: whatever is there is replaced. */
  isOwn?: IsOwn;
  /** Nothing is left there. */
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
  // Opened once, because a parent's owner could replace the folder.
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
