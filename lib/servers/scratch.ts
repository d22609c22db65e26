import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { copyDocroot } from './docroot.ts';

/** What a server needs on disk while it runs and nobody needs afterwards. */
export interface Scratch {
  /** A copy of the folder that is served, readable for all; not there when the server's own config says which. */
  docroot: string;
  /** For the server's temporary files. */
  temp: string;
  remove(): Promise<void>;
}

const prefix = 'bakeoff-server-';

/** A new folder below the system's temporary one, closed to others. Who is killed before removing it leaves that to the next server's start. */
export function temporaryFolder(): Promise<string> {
  return mkdtemp(path.join(tmpdir(), `${prefix}${process.pid}-`));
}

/** Removes the folders of processes that were killed before they could. */
async function removeLeftOvers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(prefix) ? /^\d+/.exec(name.slice(prefix.length))?.[0] : undefined;
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    // What cannot be removed is another person's.
    await rm(path.join(tmpdir(), name), { recursive: true, force: true }).catch(() => {});
  }
}

/**
 * Makes it in a new folder below the system's temporary one. The folder of the run will not do: workers that have dropped
 * root answer 403 when any folder above the page is closed to them, as /root is.
 * @param docroot as in Page; undefined: nothing is copied. Throws UserError when it cannot be copied.
 */
export async function makeScratch(docroot: string | undefined): Promise<Scratch> {
  await removeLeftOvers();
  const folder = await temporaryFolder();
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const [copy, temp] = [path.join(folder, 'www'), path.join(folder, 'temp')];
    await mkdir(temp);
    if (docroot !== undefined) await copyDocroot(docroot, copy);
    // The folder's mode is 0700, and a checkout's modes and the umask may be as closed.
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      await chmod(path.join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
    }
    await chmod(folder, 0o755);
    return { docroot: copy, temp, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
