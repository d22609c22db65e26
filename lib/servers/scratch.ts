// Temporary folders of servers.
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ifThere } from '../files.ts';
import type { RunAs } from '../process.ts';

/**
 * Makes a folder closed to other users, and removes those of killed processes. Takes /tmp if the server's user cannot enter root's
 * temporary folder (pam_tmpdir).
 */
export function temporaryFolder(prefix = 'bakeoff-server-'): Promise<string> {
  const place = process.geteuid?.() === 0 && !letsAllIn(tmpdir()) ? '/tmp' : tmpdir();
  // Containers with PID namespaces of their own may share the folder.
  const [namespace] = /\d+/.exec(readlinkSync('/proc/self/ns/pid')) as RegExpExecArray;
  const names = `${prefix}${namespace}-`;
  for (const name of readdirSync(place)) {
    const pid = name.startsWith(names) && /^(\d+)-/.exec(name.slice(names.length))?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) removeOwn(path.join(place, name));
  }
  return mkdtemp(path.join(place, `${names}${process.pid}-`));
}

/** Leaves links, other users' folders, and folders that cannot be removed. */
function removeOwn(folder: string): void {
  try {
    const found = lstatSync(folder);
    if (found.isDirectory() && found.uid === process.geteuid?.())
      rmSync(folder, { recursive: true });
  } catch {
    // The next start tries again.
  }
}

export type Scratch = Awaited<ReturnType<typeof makeScratch>>;

/** The run's folder may be closed to the server's user. */
export async function makeScratch() {
  const folder = await temporaryFolder();
  const temp = path.join(folder, 'temp');
  const kept = path.join(folder, 'kept');
  for (const inner of [temp, kept]) mkdirSync(inner, { mode: 0o700 });
  const original = new Map<string, string>();

  return {
    /** Only the server may read the copy. */
    keep(name: string, content: string | Buffer): string {
      const file = path.join(kept, `${original.size}-${path.basename(name)}`);
      original.set(file, name);
      writeFileSync(file, content, { mode: 0o400, flag: 'wx' });
      return file;
    },
    /** Not there yet. */
    docroot: path.join(folder, 'www'),
    temp,
    /** Gives the server's user its files; undefined: the server runs as the current user. */
    giveTo(user: RunAs | undefined): void {
      if (user !== undefined)
        for (const file of [temp, ...readdirSync(kept).map((name) => path.join(kept, name))])
          chownSync(file, user.uid, user.gid);
      for (const inner of [kept, folder]) chmodSync(inner, 0o711);
    },
    /** Removes the kept files once the server has read them, since it could be made to serve them. */
    forget: () => rmSync(kept, { recursive: true, force: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
    /** Puts the original paths into a server's message. */
    withOwnPaths: (message: string) =>
      [...original].reduce((text, [file, name]) => text.replaceAll(file, name), message),
  };
}

function letsAllIn(folder: string): boolean {
  const real = ifThere(() => realpathSync(folder));
  return (
    real !== undefined &&
    (statSync(real).mode & 0o001) !== 0 &&
    (real === '/' || letsAllIn(path.dirname(real)))
  );
}
