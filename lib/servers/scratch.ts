// Temporary folders of servers.
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { printable } from '../errors.ts';
import { foldersUp, ifThere } from '../files.ts';
import type { RunAs } from '../process.ts';
import { filesLeftBy, openFolders, watchBounds } from './bounds.ts';
import { endLeft, openScope, pidNamespace } from './scope.ts';

/**
 * Folders of killed processes that are being removed. A process that cannot be ended, because it hangs in the kernel, is waited for only
 * once.
 */
const ending = new Map<string, Promise<void>>();

/**
 * The folder for temporary files. It is /tmp if the server's user cannot enter root's own (pam_tmpdir), or if another user could replace a
 * folder there.
 */
export const usualPlace = (): string =>
  process.geteuid?.() === 0 && !servesAll(tmpdir()) ? '/tmp' : tmpdir();

/** Makes a folder closed to other users, and removes those of killed processes. */
export async function temporaryFolder(
  prefix = 'bakeoff-server-',
  place = usualPlace(),
): Promise<string> {
  const names = `${prefix}${pidNamespace()}-`;
  for (const name of readdirSync(place)) {
    const pid = name.startsWith(names) && /^(\d+)-/.exec(name.slice(names.length))?.[1];
    const folder = path.join(place, name);
    if (pid && !existsSync(`/proc/${pid}`) && isOwnFolder(folder) && !ending.has(folder))
      ending.set(folder, endLeft(folder));
  }
  await Promise.all(ending.values());
  return mkdtemp(path.join(place, `${names}${process.pid}-`));
}

/** Returns whether it is a folder of this user, and neither a link nor another user's. */
function isOwnFolder(folder: string): boolean {
  const stats = ifThere(() => lstatSync(folder));
  return stats?.isDirectory() === true && stats.uid === process.geteuid?.();
}

export type Scratch = Awaited<ReturnType<typeof makeScratch>>;

/**
 * Makes a server's folder and the scope of its processes. It is outside of the run's folder, which may be closed to the server's user.
 * @param user the server's user, as which nothing else runs, and which is watched by watchBounds; absent: the current user
 * @param name the server's name, for messages
 * @param place see temporaryFolder
 */
export async function makeScratch(user?: RunAs, name = '', place?: string) {
  const folder = realpathSync(await temporaryFolder(undefined, place));
  const temp = path.join(folder, 'temp');
  const kept = path.join(folder, 'kept');
  for (const inner of [temp, kept]) mkdirSync(inner, { mode: 0o700 });
  const scope = await openScope(folder, user);
  const bounds =
    user &&
    watchBounds(user.uid, [...(await openFolders()), temp], scope.processes, () => void endOnce());
  const original = new Map<string, string>();
  let ending: Promise<void> | undefined;

  async function end(): Promise<void> {
    bounds?.stop();
    await scope.end();
    if (user !== undefined) await sayLeft(name, user);
  }

  const endOnce = () => (ending ??= end());

  return {
    ...scope,
    user,
    end: endOnce,
    /** Says that the server's user used more than its bounds; undefined if it did not. */
    exceeded: () => bounds?.exceeded(),
    /** Keeps a copy of a file that only the server may read, and returns its path. */
    keep(name: string, content: string | Buffer): string {
      const file = path.join(kept, `${original.size}-${path.basename(name)}`);
      original.set(file, name);
      writeFileSync(file, content, { mode: 0o400, flag: 'wx' });
      return file;
    },
    /** This folder does not exist yet. */
    docroot: path.join(folder, 'www'),
    temp,
    /** Gives the server's user its files. */
    give(): void {
      if (user !== undefined)
        for (const file of [temp, ...readdirSync(kept).map((name) => path.join(kept, name))])
          chownSync(file, user.uid, user.gid);
      for (const inner of [kept, folder]) chmodSync(inner, 0o711);
    },
    /** Removes the kept files. It is called once the server has read them, since a server could be made to serve them. */
    forget: () => rmSync(kept, { recursive: true, force: true }),
    /** Puts the original paths into a server's message. */
    withOwnPaths: (message: string) =>
      [...original].reduce((text, [file, name]) => text.replaceAll(file, name), message),
  };
}

/** Prints which files of the server's user are left after its end. Never throws. */
async function sayLeft(name: string, { uid }: RunAs): Promise<void> {
  const left = await filesLeftBy(uid).catch(() => []);
  if (left.length === 0) return;
  const some = left.slice(0, 5).map(printable).join(', ');
  console.error(`${name} left files that are still there: ${some}: remove them`);
}

/** Returns whether all users may enter a folder, and only root can replace what root makes there. */
function servesAll(folder: string): boolean {
  const real = ifThere(() => realpathSync(folder));
  if (real === undefined) return false;
  return foldersUp(real).every((ancestor) => {
    const { mode, uid } = statSync(ancestor);
    const isSticky = (mode & 0o1000) !== 0;
    return (mode & 0o001) !== 0 && uid === 0 && ((mode & 0o022) === 0 || isSticky);
  });
}
