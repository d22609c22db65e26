// npm run clean: removes what bakeoff keeps between runs.
import { closeSync, existsSync } from 'node:fs';
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import { holder, lockFile } from '../lock-file.ts';
import { oneRunAtATime } from '../machine/one-run.ts';
import { bakeoffFolder, typed } from '../setup/paths.ts';
import { flagLines, printHelp, readWords, type Flag } from './words.ts';

const cleanFlags = {
  'history': { help: 'what InfluxDB holds too: the figures of all runs, which Grafana shows' },
  'help': { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** A folder of bakeoffFolder. `marks`: files that tell that it is bakeoff's; who uses it has locked those that end in `lock`. */
interface Kept { folder: string; what: string; marks: readonly string[] }

const kept: readonly Kept[] = [
  { folder: 'k6', what: 'k6', marks: ['lock'] },
  { folder: 'tls', what: 'the certificate', marks: ['lock'] },
  { folder: 'grafana', what: 'Grafana\'s settings', marks: ['grafana.ini'] },
  { folder: 'influxdb', what: 'InfluxDB\'s data', marks: ['run.lock', 'view.lock', 'influxd.lock'] },
];

/** Returns the exit code, and prints what was removed. Throws UserError where something of it is in use: then nothing is removed. */
export async function cleanCommand(args: readonly string[]): Promise<number> {
  const { positionals: [word], flags } = readWords(args, cleanFlags);
  if (flags.has('help')) {
    printHelp([
      `${typed('clean')} [flags]`, '', `Removes what bakeoff keeps in ${bakeoffFolder} and the next run makes again. Results stay.`, '', ...flagLines(cleanFlags),
    ]);
    return 0;
  }
  if (word !== undefined) throw new UserError(`clean takes no words but its flags: leave out "${word}"`, 2);
  const done = await oneRunAtATime();
  const locks: number[] = [];
  try {
    const there = kept.filter(({ folder, marks }) => marks.every((mark) => existsSync(join(bakeoffFolder, folder, mark))));
    // Grafana shows the database: while it does, both stay.
    for (const one of there) locks.push(...await lockAll(one));
    for (const { folder, what } of there) {
      const path = join(bakeoffFolder, folder);
      const size = `${whole(Math.ceil(await bytesBelow(path) / 1e6))} MB`;
      const stays = folder === 'influxdb' && !flags.has('history');
      if (!stays) await rm(path, { recursive: true }).catch((error: Error) => { throw new UserError(`${what} cannot be removed: ${error.message}`); });
      console.log(`${what}: ${stays ? `kept, ${size}; --history removes it too` : `removed, ${size}`}`);
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

/** On the disk; links are not followed. */
async function bytesBelow(path: string): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory()) return 512 * found.blocks;
  const sizes = await Promise.all((await readdir(path)).map((name) => bytesBelow(join(path, name))));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}
