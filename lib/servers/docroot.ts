// The folders of pages that servers serve.
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { UserError, unknownWord } from '../errors.ts';
import { shippedConfigs } from './config-files.ts';

const shippedPages = path.join(shippedConfigs, 'www');

/** The folder that is generated instead of copied. */
const generated = 'images';

/**
 * Copies pages to a new folder, readable for all. Links within it stay links.
 * @param docroot as in Page: the name of a folder of `server-configs/www/`, `images`, or an absolute path
 * @throws UserError if there is no such folder, it cannot be copied, or it has more than files, folders and links to these
 */
export async function copyDocroot(docroot: string, target: string): Promise<void> {
  if (docroot === generated) {
    const file = path.join(target, 'img.html');
    makeOpenFolder(target);
    writeFileSync(file, imagePage());
    return chmodSync(file, 0o644);
  }
  const folder = path.resolve(shippedPages, docroot);
  if (!path.isAbsolute(docroot)) {
    if (docroot.includes('/'))
      throw new UserError(`docroot ${docroot}: a folder of your own is named by its absolute path`);
    const shipped = [...readdirSync(shippedPages), generated];
    if (!shipped.includes(docroot)) throw unknownWord('docroot', docroot, shipped);
  }
  try {
    if (!statSync(folder).isDirectory()) throw new Error('it is not a folder');
    copyInto(realpathSync(folder), target, '');
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`cannot copy the docroot ${folder}: ${(error as Error).message}`);
  }
}

/** @param root the docroot, without links; `place`: a folder in it, '' for the docroot itself */
function copyInto(root: string, target: string, place: string): void {
  makeOpenFolder(path.join(target, place));
  for (const name of readdirSync(path.join(root, place))) {
    const inner = path.join(place, name);
    const [from, to] = [path.join(root, inner), path.join(target, inner)];
    const found = lstatSync(from);
    if (found.isSymbolicLink()) symlinkSync(linkWithin(root, inner), to);
    else if (found.isDirectory()) copyInto(root, target, inner);
    else if (found.isFile()) {
      copyFileSync(from, to);
      chmodSync(to, 0o644);
    } else throw refused(root, inner, 'is neither a file nor a folder: take it out');
  }
}

/** Returns the target of a link in the copy. Throws UserError for a link that leads out of the docroot, or nowhere. */
function linkWithin(root: string, place: string): string {
  const link = path.join(root, place);
  let end: string;
  try {
    end = realpathSync(link);
  } catch (error) {
    const isLoop = (error as NodeJS.ErrnoException).code === 'ELOOP';
    throw refused(
      root,
      place,
      `is a link to ${readlinkSync(link)}, ${isLoop ? 'and so to itself' : 'which is not there'}: take it out`,
    );
  }
  if (end !== root && !end.startsWith(`${root}/`))
    throw refused(
      root,
      place,
      `is a link to ${end}, out of the docroot, where it would become readable for all: put a copy in its place, or take it out`,
    );
  return path.relative(path.dirname(link), end) || '.';
}

function refused(root: string, place: string, why: string): UserError {
  return new UserError(`cannot copy the docroot ${root}: ${place} ${why}`);
}

function makeOpenFolder(folder: string): void {
  mkdirSync(folder);
  chmodSync(folder, 0o755);
}

/**
 * img.html, article 002's page: a heading, and an `<img>` for each picture of the Caltech 101 data set
 * (https://data.caltech.edu/records/mzrjq-6wc02), whose categories are in images.txt in the order of a folder listing, with the number
 * of their pictures. The article's page has as many tags (9144) and as many bytes (525,304).
 */
export function imagePage(): string {
  const pictures = readFileSync(path.join(shippedConfigs, 'images.txt'), 'utf8');
  const tags = [...pictures.matchAll(/(\w+) (\d+)/g)].flatMap(([, category, count]) =>
    Array.from(
      { length: Number(count) },
      (_, index) =>
        `<img src="101_ObjectCategories/${category}/image_${String(index + 1).padStart(4, '0')}.jpg">`,
    ),
  );
  return `<html>\n<head>\n</head>\n<body>\n<h1>HTTP2 TEST</h1>\n${tags.join('\n')}\n</body>\n</html>\n`;
}
