// The folder where built commits are kept.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { whoMayWrite } from '../../../bin/trust.mjs';
import { messageOf, UserError } from '../../errors.ts';
import { makeOwnFolder } from '../../files.ts';
import { lockFile } from '../../machine/locks.ts';
import { removeFolder } from '../../process.ts';
import { kept } from './kept.ts';

/** Older builds than these, those of the run among them, are removed. */
const mostKept = 20;

/** Makes the folder. Throws UserError. */
export function makePlace(place: string): void {
  try {
    makeOwnFolder(place);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `commits cannot be built in ${place} (${messageOf(error)}): name another folder in BAKEOFF_HOME`,
    );
  }
  requireClosed(place);
}

/** The folders whose lock this process has. */
const held = new Set<string>();

/** Keeps others from building and cleaning there until this process ends. */
export async function holdFolder(
  folder: string,
  signal: AbortSignal,
  say: (lines: readonly string[]) => void,
): Promise<void> {
  const file = path.join(folder, kept.lock);
  if (held.has(folder)) return;
  if ((await lockFile(file)) === null) {
    say(['waiting for another comparison of commits']);
    while ((await lockFile(file, 1)) === null) signal.throwIfAborted();
  }
  held.add(folder);
}

/**
 * Node, npm, cargo and others look for packages and settings in all folders above a program's own, so nobody else may put some there.
 * @throws UserError
 */
function requireClosed(folder: string): void {
  for (let place = folder; place !== path.dirname(place);) {
    place = path.dirname(place);
    const problem = whoMayWrite(place);
    if (problem !== undefined)
      throw new UserError(
        `no commit is built in ${folder}: ${problem}, and could put packages there that it loads; name another folder in BAKEOFF_HOME`,
      );
  }
}

/** Removes the builds that have not been used for longest. @param used folders that stay */
export async function removeOld(place: string, used: readonly string[]): Promise<void> {
  const usedFolders = new Set(used);
  const folders = readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(place, entry.name))
    .filter((folder) => !usedFolders.has(folder))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const folder of folders.slice(Math.max(0, mostKept - usedFolders.size)))
    await removeFolder(folder);
}
