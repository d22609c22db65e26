// The folders of pages that servers serve.
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { UserError, unknownWord, messageOf, systemError } from '../errors.ts';
import { openFolder } from '../files.ts';
import { configsFolder } from './config-files.ts';

const shippedPages = path.join(configsFolder, 'www');

const generated = 'images';

/**
 * Copies pages to a new folder, readable for all; a link becomes its target.
 * @param docroot a folder of `server-configs/www/`, `images`, or an absolute path
 * @throws UserError if it is missing or unreadable, or has sockets, pipes, or links out of it
 */
export async function copyDocroot(docroot: string, target: string): Promise<void> {
  if (docroot === generated) {
    mkdirSync(target);
    writeFileSync(path.join(target, 'img.html'), imagePage());
  } else {
    const folder = path.resolve(shippedPages, docroot);
    if (!path.isAbsolute(docroot)) {
      if (docroot.includes('/'))
        throw new UserError(`docroot ${docroot}: give a folder of your own as an absolute path`);
      const shipped = [...readdirSync(shippedPages), generated];
      if (!shipped.includes(docroot)) throw unknownWord('docroot', docroot, shipped);
    }
    try {
      copyFolder(folder, target);
    } catch (error) {
      throw new UserError(`cannot copy the docroot ${folder}: ${messageOf(error)}`);
    }
  }
  chmodSync(target, 0o755);
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true }))
    chmodSync(path.join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
}

/** Other users may change the folder meanwhile, so each file is checked and copied through the same descriptor. */
function copyFolder(folder: string, target: string): void {
  const descriptor = openFolder(folder);
  const root = readlinkSync(`/proc/self/fd/${descriptor}`);
  copyOpen(descriptor, target, []);

  /** @param around the real paths of the folders around this one */
  function copyOpen(descriptor: number, to: string, around: readonly string[]): void {
    try {
      const opened = `/proc/self/fd/${descriptor}`;
      const place = realpathSync(opened);
      const name = path.relative(target, to);
      const isBelow = around.length === 0 || place.startsWith(`${root}/`);
      if (!isBelow || around.includes(place))
        throw new Error(
          `${name} is a link out of it, or to a folder around the link: put a copy in its place`,
        );
      const stats = fstatSync(descriptor);
      if (stats.isDirectory()) {
        mkdirSync(to);
        for (const inner of readdirSync(opened)) {
          const copy = path.join(to, inner);
          const from = openPlace(path.join(opened, inner), path.relative(target, copy));
          copyOpen(from, copy, [...around, place]);
        }
      } else if (stats.isFile()) {
        requireSpaceFor(stats.size, name, to);
        copyFileSync(opened, to);
      }
    } finally {
      closeSync(descriptor);
    }
  }
}

/** Opens a file without reading it (open(2)). Node has no name for it. */
const O_PATH = 0o10000000;

/** Opens a file or folder. Other things are not opened: some devices do something then, such as /dev/watchdog. */
function openPlace(place: string, name: string): number {
  const found = openSync(place, O_PATH);
  try {
    const stats = fstatSync(found);
    if (!stats.isFile() && !stats.isDirectory())
      throw new Error(`${name} is a pipe, socket or device: take it out`);
    return openSync(`/proc/self/fd/${found}`, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    // The system's message names the descriptor.
    const { code } = systemError(error);
    throw code === undefined ? error : new Error(`${name} cannot be opened: ${code}`);
  } finally {
    closeSync(found);
  }
}

/** A sparse file may claim more than any disk has. */
function requireSpaceFor(bytes: number, name: string, to: string): void {
  const { bavail, bsize } = statfsSync(path.dirname(to));
  if (bytes > bavail * bsize)
    throw new Error(`${name} has ${Math.ceil(bytes / 1e6)} MB, more than ${tmpdir()} has free`);
}

/**
 * img.html of article 002: an `<img>` for each picture of Caltech 101 (https://data.caltech.edu/records/mzrjq-6wc02), by images.txt. The
 * article's has as many tags (9144) and bytes (525,304).
 */
export function imagePage(): string {
  const pictures = readFileSync(path.join(configsFolder, 'images.txt'), 'utf8');
  const tags = [...pictures.matchAll(/(\w+) (\d+)/g)].flatMap(([, category, count]) =>
    Array.from(
      { length: Number(count) },
      (_, index) =>
        `<img src="101_ObjectCategories/${category}/image_${String(index + 1).padStart(4, '0')}.jpg">`,
    ),
  );
  return `<html>\n<head>\n</head>\n<body>\n<h1>HTTP2 TEST</h1>\n${tags.join('\n')}\n</body>\n</html>\n`;
}
