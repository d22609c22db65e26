// The folders that servers serve.
import { cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.ts';
import { unknownWord } from '../scenario/nearest.ts';
import { imagePage } from './image-page.ts';

const shippedPages = fileURLToPath(new URL('../../server-configs/www/', import.meta.url));

/** Made when it is copied: half a megabyte that a few lines say. */
const generated = 'images';

/**
 * Copies what a server serves to a folder that is not there yet.
 * @param docroot as in Page: the name of a folder of `server-configs/www/`, `images`, or an absolute path
 * @throws UserError when there is no such folder or it cannot be copied
 */
export async function copyDocroot(docroot: string, target: string): Promise<void> {
  if (docroot === generated) {
    await mkdir(target);
    await writeFile(path.join(target, 'img.html'), imagePage());
    return;
  }
  const folder = path.isAbsolute(docroot) ? docroot : path.join(shippedPages, docroot);
  if (!path.isAbsolute(docroot)) {
    if (docroot.includes('/')) throw new UserError(`docroot ${docroot}: a folder of your own is named by its absolute path`);
    const shipped = [...(await readdir(shippedPages)), generated];
    if (!shipped.includes(docroot)) throw unknownWord('docroot', docroot, shipped);
  }
  try {
    if (!(await stat(folder)).isDirectory()) throw new Error('it is not a folder');
    // Links are followed: what they point to would be closed to the server, and its rights are not ours to change.
    await cp(folder, target, { recursive: true, dereference: true });
  } catch (error) {
    throw new UserError(`cannot copy the docroot ${folder}: ${(error as Error).message}`);
  }
}
