// npm run clean: removes what bakeoff keeps between runs.
import { accessSync, closeSync, constants, lstatSync } from 'node:fs';
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import { holder, lockFile } from '../lock-file.ts';
import { oneRunAtATime } from '../machine/one-run.ts';
import { bakeoffFolder, typed } from '../setup/paths.ts';
import { printHelp, readWords, type Flag } from './words.ts';

const cleanFlags = {
  history: {
    help: 'what InfluxDB and Grafana hold too: the figures of all runs, dashboards and users of your own',
  },
  help: { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** A folder of bakeoffFolder. `lock`: the file that tells whether it is bakeoff's, and in use. `lasts`: no run makes it again. */
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

/** Returns the exit code, and prints what was removed. Throws UserError where something of it is in use, or another user's: then nothing is removed. */
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
    throw new UserError(`clean takes no words but its flags: leave out "${word}"`, 2);
  const done = await oneRunAtATime();
  const locks: number[] = [];
  try {
    const there: Kept[] = [];
    for (const one of kept) if (await asOwner(one, () => isThere(one))) there.push(one);
    // Nothing goes before all are free.
    for (const one of there) locks.push(await asOwner(one, () => locked(one)));
    for (const one of there) {
      const stays = one.lasts === true && !flags.has('history');
      const path = join(bakeoffFolder, one.folder);
      const bytes = await asOwner(one, () => bytesBelow(path));
      if (!stays) await asOwner(one, () => rm(path, { recursive: true }));
      const size = `${whole(Math.ceil(bytes / 1e6))} MB`;
      console.log(
        `${one.what}: ${stays ? `kept, ${size}; --history removes it too` : `removed, ${size}`}`,
      );
    }
    if (there.length === 0) console.log(`there is nothing of bakeoff's in ${bakeoffFolder}`);
    // What else lies there is not bakeoff's.
    await rmdir(bakeoffFolder).catch(() => undefined);
    return 0;
  } finally {
    for (const lock of locks) closeSync(lock);
    done();
  }
}

/** Does what the file system may refuse to others. Throws UserError where it does. */
async function asOwner<T>({ folder, what }: Kept, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const place = join(bakeoffFolder, folder);
    throw new UserError(
      code === 'EACCES' || code === 'EPERM'
        ? `${what} in ${place} is another user's, such as root's after a run with sudo: start clean as that user`
        : `${what} in ${place} cannot be removed: ${message}`,
    );
  }
}

function isThere({ folder, lock }: Kept): boolean {
  const path = join(bakeoffFolder, folder);
  // What is closed to us throws.
  if (lstatSync(join(path, lock), { throwIfNoEntry: false }) === undefined) return false;
  accessSync(path, constants.W_OK);
  return true;
}

async function locked({ folder, what, lock }: Kept): Promise<number> {
  const file = join(bakeoffFolder, folder, lock);
  const descriptor = await lockFile(file, 1);
  if (descriptor === null)
    throw new UserError(
      `${what} in ${join(bakeoffFolder, folder)} is in use${holder(file)}: end that first`,
    );
  return descriptor;
}

/** On the disk; links are not followed. */
async function bytesBelow(path: string): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory()) return 512 * found.blocks;
  return total(
    await Promise.all((await readdir(path)).map((name) => bytesBelow(join(path, name)))),
    (bytes) => bytes,
  );
}
