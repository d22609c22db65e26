// npm run clean: removes the files that bakeoff keeps between runs.
import { accessSync, closeSync, constants, existsSync } from 'node:fs';
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

/**
 * The `lock` file shows that the folder belongs to bakeoff, and whether it is in use. `lasts`: no run can recreate the contents.
 */
interface Kept {
  path: string;
  what: string;
  lock: string;
  lasts?: true;
}

const at = (folder: string) => join(bakeoffFolder, folder);
const kept: readonly Kept[] = [
  { path: at('k6'), what: 'k6', lock: 'lock' },
  { path: at('tls'), what: 'the certificate', lock: 'lock' },
  { path: at('grafana'), what: "Grafana's data", lock: 'lock', lasts: true },
  { path: at('influxdb'), what: "InfluxDB's data", lock: 'influxd.lock', lasts: true },
];

/** Prints what was removed. Throws UserError, or the file system's error, and removes nothing, if a folder is in use or another user's. */
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
    const there = kept.filter(isThere);
    for (const one of there) locks.push(await locked(one));
    for (const { path, what, lasts } of there) {
      const stays = lasts === true && !flags.has('history');
      const size = `${whole(Math.ceil((await bytesBelow(path)) / 1e6))} MB`;
      if (!stays) await rm(path, { recursive: true });
      console.log(
        `${what}: ${stays ? `kept, ${size}; --history removes it too` : `removed, ${size}`}`,
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

/** Whether bakeoff's folder is there. Throws the file system's error for another user's. */
function isThere({ path, lock }: Kept): boolean {
  if (!existsSync(join(path, lock))) return false;
  accessSync(path, constants.W_OK);
  return true;
}

async function locked({ path, what, lock }: Kept): Promise<number> {
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
