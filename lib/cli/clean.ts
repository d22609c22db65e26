// npm run clean: removes what bakeoff keeps between runs.
import { accessSync, closeSync, constants, existsSync, lstatSync } from 'node:fs';
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
  'history': { help: 'what InfluxDB and Grafana hold too: the figures of all runs, dashboards and users of your own' },
  'help': { help: 'this text' },
} as const satisfies Record<string, Flag>;

/**
 * A folder of bakeoffFolder. `marks`: files that tell that it is bakeoff's; who uses it has locked those that end in `lock`. `lasts`: no run
 * makes it again. `around`: what in it lasts.
 */
interface Kept { folder: string; what: string; marks: readonly string[]; lasts?: true; around?: string }

const kept: readonly Kept[] = [
  { folder: 'k6', what: 'k6', marks: ['lock'] },
  { folder: 'tls', what: 'the certificate', marks: ['lock'] },
  { folder: 'grafana/data', what: 'Grafana\'s data', marks: ['admin-password'], lasts: true },
  { folder: 'grafana', what: 'Grafana\'s setup', marks: ['lock'], around: 'data' },
  { folder: 'influxdb', what: 'InfluxDB\'s data', marks: ['influxd.lock'], lasts: true },
];

/** Returns the exit code, and prints what was removed. Throws UserError where something of it is in use, or another user's: then nothing is removed. */
export async function cleanCommand(args: readonly string[]): Promise<number> {
  const { positionals: [word], flags } = readWords(args, cleanFlags);
  if (flags.has('help')) {
    printHelp([`${typed('clean')} [flags]`, '', `Removes what bakeoff keeps in ${bakeoffFolder} and the next run makes again. Results stay.`], cleanFlags);
    return 0;
  }
  if (word !== undefined) throw new UserError(`clean takes no words but its flags: leave out "${word}"`, 2);
  const done = await oneRunAtATime();
  const locks: number[] = [];
  try {
    const there: Kept[] = [];
    for (const one of kept) if (await asOwner(one, () => isThere(one))) there.push(one);
    // Nothing goes before all are free.
    for (const one of there) locks.push(...await asOwner(one, () => lockAll(one)));
    for (const one of there) {
      const stays = one.lasts === true && !flags.has('history');
      const bytes = await asOwner(one, () => (stays ? bytesBelow(join(bakeoffFolder, one.folder)) : remove(one)));
      const size = `${whole(Math.ceil(bytes / 1e6))} MB`;
      console.log(`${one.what}: ${stays ? `kept, ${size}; --history removes it too` : `removed, ${size}`}`);
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
    throw new UserError(code === 'EACCES' || code === 'EPERM' ? `${what} in ${place} is another user's, such as root's after a run with sudo: start clean as that user` : `${what} in ${place} cannot be removed: ${message}`);
  }
}

function isThere({ folder, marks }: Kept): boolean {
  const path = join(bakeoffFolder, folder);
  // What is closed to us throws.
  if (!marks.every((mark) => lstatSync(join(path, mark), { throwIfNoEntry: false }) !== undefined)) return false;
  accessSync(path, constants.W_OK);
  return true;
}

/** Returns how many bytes that were. */
async function remove({ folder, marks, around }: Kept): Promise<number> {
  const path = join(bakeoffFolder, folder);
  const inside = around !== undefined && existsSync(join(path, around));
  // What stays in it is found by its marks.
  const gone = inside ? (await readdir(path)).filter((name) => name !== around && !marks.includes(name)).map((name) => join(path, name)) : [path];
  const bytes = await sumOf(gone);
  for (const one of gone) await rm(one, { recursive: true });
  return bytes;
}

async function lockAll({ folder, what, marks }: Kept): Promise<number[]> {
  const locks: number[] = [];
  for (const mark of marks.filter((one) => one.endsWith('lock'))) {
    const file = join(bakeoffFolder, folder, mark);
    const lock = await lockFile(file, 1);
    if (lock === null) throw new UserError(`${what} in ${join(bakeoffFolder, folder)} is in use${holder(file)}: end that first`);
    locks.push(lock);
  }
  return locks;
}

async function sumOf(paths: readonly string[]): Promise<number> {
  return total(await Promise.all(paths.map(bytesBelow)), (bytes) => bytes);
}

/** On the disk; links are not followed. */
async function bytesBelow(path: string): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory()) return 512 * found.blocks;
  return sumOf((await readdir(path)).map((name) => join(path, name)));
}
