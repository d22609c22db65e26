// The folders that servers serve.
import { chmodSync, closeSync, constants, copyFileSync, fstatSync, lstatSync, mkdirSync, openSync, readdirSync, readlinkSync, realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { unknownWord } from '../nearest.ts';
import { shippedConfigs } from './config-layers.ts';
import { imagePage } from './image-page.ts';
import { inFolder, withFolder } from './remove-folder.ts';

const shippedPages = path.join(shippedConfigs, 'www');

/** Made when it is copied: half a megabyte that a few lines say. */
const generated = 'images';

/**
 * Copies what a server serves to a folder that is not there yet, readable for all whatever its own rights and the umask. Links
 * within it stay links.
 * @param docroot as in Page: the name of a folder of `server-configs/www/`, `images`, or an absolute path
 * @throws UserError when there is no such folder, it cannot be copied, or has anything else in it than files, folders and
 *   links to these: what a link points to elsewhere was never meant to be readable for all
 */
export async function copyDocroot(docroot: string, target: string): Promise<void> {
  if (docroot === generated) {
    makeOpenFolder(target);
    writeFileSync(path.join(target, 'img.html'), imagePage());
    chmodSync(path.join(target, 'img.html'), 0o644);
    return;
  }
  const folder = path.isAbsolute(docroot) ? docroot : path.join(shippedPages, docroot);
  if (!path.isAbsolute(docroot)) {
    if (docroot.includes('/')) throw new UserError(`docroot ${docroot}: a folder of your own is named by its absolute path`);
    const shipped = [...(await readdir(shippedPages)), generated];
    if (!shipped.includes(docroot)) throw unknownWord('docroot', docroot, shipped);
  }
  try {
    if (!statSync(folder).isDirectory()) throw new Error('it is not a folder');
    // The person may name it by a link.
    const root = realpathSync(folder);
    withFolder(root, (descriptor) => copyInto({ root, target }, '', descriptor));
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`cannot copy the docroot ${folder}: ${(error as Error).message}`);
  }
}

/** Both absolute; `root` without links. */
interface Copy { root: string; target: string }

/**
 * @param place in the docroot, '' for itself
 * @param folder the open folder: somebody else may change what is at its path meanwhile
 */
function copyInto({ root, target }: Copy, place: string, folder: number): void {
  makeOpenFolder(path.join(target, place));
  for (const name of readdirSync(inFolder(folder, '.'))) {
    const [from, inner] = [inFolder(folder, name), path.join(place, name)];
    const found = lstatSync(from);
    if (found.isSymbolicLink()) {
      symlinkSync(linkWithin(root, inner, readlinkSync(from)), path.join(target, inner));
    } else if (found.isDirectory()) {
      withFolder(from, (descriptor) => copyInto({ root, target }, inner, descriptor));
    } else if (found.isFile()) {
      copyFile(from, path.join(target, inner));
    } else {
      throw refused(root, inner, 'is neither a file nor a folder: take it out');
    }
  }
}

/** Where the link in the copy has to point to. Throws UserError for one that leads out of the docroot, or nowhere. */
function linkWithin(root: string, place: string, to: string): string {
  const link = path.join(root, place);
  let end: string;
  try {
    end = realpathSync(path.resolve(path.dirname(link), to));
  } catch (error) {
    throw refused(root, place, `is a link to ${to}, ${(error as NodeJS.ErrnoException).code === 'ELOOP' ? 'and so to itself' : 'which is not there'}: take it out`);
  }
  if (end !== root && !end.startsWith(`${root}/`)) {
    throw refused(root, place, `is a link to ${end}, out of the docroot, where it would become readable for all: put a copy in its place, or take it out`);
  }
  return path.relative(path.dirname(link), end) || '.';
}

function refused(root: string, place: string, why: string): UserError {
  return new UserError(`cannot copy the docroot ${root}: ${place} ${why}`);
}

function makeOpenFolder(folder: string): void {
  mkdirSync(folder);
  chmodSync(folder, 0o755);
}

function copyFile(from: string, to: string): void {
  // It may have become a link or a pipe since it was looked at.
  const descriptor = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error(`${path.basename(to)} changes while it is copied`);
    copyFileSync(`/proc/self/fd/${descriptor}`, to);
    chmodSync(to, 0o644);
  } finally {
    closeSync(descriptor);
  }
}
