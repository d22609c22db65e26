// Files written whole, where nobody else can put a link or another folder in their place.
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
import { basename, dirname, join } from 'node:path';
import { UserError } from './errors.ts';
import { foldersUp, ifThere, isInput, isSameFile, openFolder, userUmask } from './files.ts';

/**
 * Writes a file whole or not at all. A link stays one. A file that this process has read stays as it is.
 * @param mode as of chmod; the umask applies to the default
 * @throws the file system's error, or an Error that says what is there instead of a file
 */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, mode, rename);
}

/** Like writeWhole, with the user's usual file mode. */
export async function writeForUser(file: string, text: string): Promise<void> {
  await written(file, text, 0o600, rename, 0o666 & ~userUmask);
}

/** Throws what writeWhole would throw for the file. */
export async function checkWhole(file: string): Promise<void> {
  await written(file, 'probe', 0o600, (unfinished) => rm(unfinished));
}

/**
 * The path to write a file to. The folder's own path stays: it may go through an open descriptor. Links of this user or root are
 * followed. A link of another user may lead anywhere, so it is refused; a link that appears later is replaced.
 */
async function placeOf(name: string): Promise<string> {
  const link = await lstat(name).catch(() => undefined);
  if (link?.isSymbolicLink() !== true) return name;
  if (link.uid !== process.geteuid?.() && link.uid !== 0)
    throw new Error(`it is a link of another user in ${dirname(name)}: name a file elsewhere`);
  return realpath(name).catch(() => name);
}

/**
 * Throws UserError if root would write into a folder in which any user can replace files, for example by a link. Sticky folders
 * like /tmp are allowed, because users cannot replace files of others there. The folder may not exist yet.
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

/** Throws an Error if this process reads the file, or has it as a standard stream: what goes there would be lost with the old file. */
function requireNotInUse(stats: Stats): void {
  if (isInput(stats)) throw new Error('this command reads it: name another file');
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

async function written(
  name: string,
  text: string,
  mode: number,
  finish: (unfinished: string, file: string) => Promise<void>,
  lastMode = mode,
): Promise<void> {
  const file = await placeOf(name);
  const stats = await stat(file).catch(() => undefined);
  if (stats?.isFile() === false)
    throw stats.isDirectory()
      ? Object.assign(new Error('it is a folder'), { code: 'EISDIR' })
      : new Error('it is a pipe, socket or device: name a file');
  if (stats !== undefined) requireNotInUse(stats);
  // The folder is opened once, because the owner of a parent folder could replace it meanwhile.
  const folder = folderAt(dirname(file));
  const place = join('/proc/self/fd', String(folder), basename(file));
  const unfinished = `${place}.unfinished`;
  try {
    await rm(unfinished, { force: true });
    const handle = await open(unfinished, 'wx', mode);
    try {
      await handle.writeFile(text);
      // Some file systems have no modes.
      if (lastMode !== mode) await handle.chmod(lastMode).catch(() => undefined);
    } finally {
      await handle.close();
    }
    await finish(unfinished, place);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw Object.assign(error as NodeJS.ErrnoException, { path: name });
  } finally {
    closeSync(folder);
  }
}
