// npm run clean: removes the files that bakeoff keeps between runs.
import { accessSync, closeSync, constants, existsSync } from 'node:fs';
import { lstat, readdir, rmdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { total } from '../analysis/statistics.ts';
import { inOneLine, usageError, UserError } from '../errors.ts';
import { enumeration, whole } from '../format.ts';
import { holder, lockFile, oneRunAtATime } from '../machine/locks.ts';
import { removeFolder } from '../process.ts';
import { bakeoffFolder, sourcesFolder, typed } from '../setup/paths.ts';
import { printHelp, readArguments, type Flag } from './arguments.ts';
import type { Keeps, KeptFolder } from './feature.ts';

/** `lasts`: no run can recreate the contents. */
interface Kept extends KeptFolder {
  lasts: boolean;
}

const ownFolders: readonly Kept[] = [
  { folder: 'k6', what: 'k6', lock: 'lock', lasts: false },
  { folder: 'tls', what: 'the certificate', lock: 'lock', lasts: false },
];

function foldersWith(keeps: readonly Keeps[]): Kept[] {
  const added = keeps.flatMap(({ folders, help }) =>
    folders.map((folder) => ({ ...folder, lasts: help !== undefined })),
  );
  return [...ownFolders, ...added];
}

function cleanFlags(keeps: readonly Keeps[]): Record<string, Flag> {
  const flags: Record<string, Flag> = {};
  const history = keeps.flatMap(({ help }) => help ?? []).join('; ');
  if (history !== '') flags['history'] = { help: history };
  flags['help'] = { help: 'this text' };
  return flags;
}

const folderOf = ({ folder }: Kept): string => resolve(bakeoffFolder, folder);

/** Prints what was removed. Throws UserError, or the file system's error, and removes nothing, if a folder is in use or another user's. */
export async function cleanCommand(
  args: readonly string[],
  keeps: readonly Keeps[],
): Promise<number> {
  const known = cleanFlags(keeps);
  const {
    positionals: [word],
    flags,
  } = readArguments(args, known);
  if (flags.has('help')) {
    printHelp(
      [
        `${typed('clean')} [flags]`,
        '',
        `Removes what bakeoff keeps in ${enumeration([...new Set([bakeoffFolder, sourcesFolder])])}, and the next run makes again. Results stay.`,
      ],
      known,
    );
    return 0;
  }
  if (word !== undefined)
    throw usageError(`clean takes no words but its flags: leave out "${word}"`);
  const done = await oneRunAtATime();
  const locks: number[] = [];
  try {
    const there = foldersWith(keeps).filter(isThere);
    for (const folder of there) locks.push(await locked(folder));
    for (const folder of there) {
      const { what, lasts } = folder;
      const path = folderOf(folder);
      const stays = lasts && !flags.has('history');
      const size = `${whole(Math.ceil((await bytesBelow(path)) / 1e6))} MB`;
      if (!stays) await removeFolder(path);
      console.log(
        `${what}: ${stays ? `kept, ${size}; --history removes it too` : `removed, ${size}`}`,
      );
    }
    if (there.length === 0)
      console.log(inOneLine(`there is nothing of bakeoff's in ${bakeoffFolder}`));
    // Fails, and leaves the folder, if something else is in it.
    await rmdir(bakeoffFolder).catch(() => undefined);
    return 0;
  } finally {
    for (const lock of locks) closeSync(lock);
    done();
  }
}

/** Returns whether the folder exists. Throws the file system's error for another user's. */
function isThere(folder: Kept): boolean {
  const path = folderOf(folder);
  if (!existsSync(join(path, folder.lock))) return false;
  accessSync(path, constants.W_OK);
  return true;
}

async function locked(folder: Kept): Promise<number> {
  const path = folderOf(folder);
  const file = join(path, folder.lock);
  const descriptor = await lockFile(file, 1);
  if (descriptor === null)
    throw new UserError(`${folder.what} in ${path} is in use${holder(file)}: end that first`);
  return descriptor;
}

/** Bytes on the disk, without the targets of links. */
async function bytesBelow(path: string): Promise<number> {
  const stats = await lstat(path);
  if (!stats.isDirectory()) return 512 * stats.blocks;
  const sizes = await Promise.all(
    (await readdir(path)).map((name) => bytesBelow(join(path, name))),
  );
  return total(sizes, (bytes) => bytes);
}
