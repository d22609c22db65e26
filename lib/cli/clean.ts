// npm run clean: removes what bakeoff keeps between runs.
import { accessSync, closeSync, constants, lstatSync } from 'node:fs';
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { total } from '../analysis/statistics.ts';
import { usageError, UserError } from '../errors.ts';
import { whole } from '../format.ts';
import { holder, lockFile, oneRunAtATime } from '../machine/locks.ts';
import { bakeoffFolder, typed } from '../setup/paths.ts';
import { printHelp, readWords, type Flag } from './words.ts';

const cleanFlags = {
  history: {
    help: 'delete the InfluxDB and Grafana data too: the figures of all runs, your own dashboards and users',
  },
  help: { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** A folder of bakeoffFolder. Its `lock` file shows that it is bakeoff's, and whether it is in use. `lasts`: no run makes it again. */
interface Kept {
  folder: string;
  what: string;
  lock: string;
  lasts?: true;
}

const kept: readonly Kept[] = [
  { folder: 'k6', what: 'k6', lock: 'lock' },
  { folder: 'tls', what: 'the certificate', lock: 'lock' },
  { folder: 'grafana', what: "Grafana's data", lock: 'lock', lasts: true },
  { folder: 'influxdb', what: "InfluxDB's data", lock: 'influxd.lock', lasts: true },
];

/** Prints what was removed. Throws UserError, and removes nothing, if a folder is in use or another user's. */
export async function cleanCommand(args: readonly string[]): Promise<number> {
  const {
    positionals: [word],
    flags,
  } = readWords(args, cleanFlags);
  if (flags.has('help')) {
    printHelp(
      [
        `${typed('clean')} [flags]`,
        '',
        `Removes what bakeoff keeps in ${bakeoffFolder} and the next run makes again. Results stay.`,
      ],
      cleanFlags,
    );
    return 0;
  }
  if (word !== undefined)
    throw usageError(`clean takes no words but its flags: leave out "${word}"`);
  const done = await oneRunAtATime();
  const locks: number[] = [];
  try {
    const there: Kept[] = [];
    for (const one of kept) if (await asOwner(one, (path) => isThere(path, one))) there.push(one);
    for (const one of there) locks.push(await asOwner(one, (path) => locked(path, one)));
    for (const one of there) {
      const stays = one.lasts === true && !flags.has('history');
      const size = await asOwner(one, async (path) => {
        const bytes = await bytesBelow(path);
        if (!stays) await rm(path, { recursive: true });
        return `${whole(Math.ceil(bytes / 1e6))} MB`;
      });
      console.log(
        `${one.what}: ${stays ? `kept, ${size}; --history removes it too` : `removed, ${size}`}`,
      );
    }
    if (there.length === 0) console.log(`there is nothing of bakeoff's in ${bakeoffFolder}`);
    // Fails, and leaves the folder, if something else is in it.
    await rmdir(bakeoffFolder).catch(() => undefined);
    return 0;
  } finally {
    for (const lock of locks) closeSync(lock);
    done();
  }
}

async function asOwner<T>(
  { folder, what }: Kept,
  work: (path: string) => T | Promise<T>,
): Promise<T> {
  const path = join(bakeoffFolder, folder);
  try {
    return await work(path);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UserError(
      code === 'EACCES' || code === 'EPERM'
        ? `${what} in ${path} is another user's, such as root's after a run with sudo: start clean as that user`
        : `${what} in ${path} cannot be removed: ${message}`,
    );
  }
}

function isThere(path: string, { lock }: Kept): boolean {
  if (lstatSync(join(path, lock), { throwIfNoEntry: false }) === undefined) return false;
  accessSync(path, constants.W_OK);
  return true;
}

async function locked(path: string, { what, lock }: Kept): Promise<number> {
  const file = join(path, lock);
  const descriptor = await lockFile(file, 1);
  if (descriptor === null)
    throw new UserError(`${what} in ${path} is in use${holder(file)}: end that first`);
  return descriptor;
}

/** Bytes on the disk, without the targets of links. */
async function bytesBelow(path: string): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory()) return 512 * found.blocks;
  const sizes = await Promise.all(
    (await readdir(path)).map((name) => bytesBelow(join(path, name))),
  );
  return total(sizes, (bytes) => bytes);
}
