// The folder where built commits are kept.
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { whoMayWrite } from '../../../bin/trust.mjs';
import { UserError } from '../../errors.ts';
import { makeOwnFolder } from '../../files.ts';
import { lockFile } from '../../machine/locks.ts';
import { removeFolder } from '../../process.ts';
import { writeWhole } from '../../writing.ts';
import { kept } from './kept.ts';

/** Older builds than these, those of the run among them, are removed. */
const mostKept = 20;

/**
 * Makes the place, and returns what other users cannot know of the names in it. They may pass through it, since servers drop to other
 * users, but not list it: git knows no files that are for their owner alone.
 */
export async function secretOf(place: string): Promise<string> {
  makeOwnFolder(place);
  requireClosed(place);
  chmodSync(place, 0o711);
  const file = path.join(place, 'secret');
  if (!existsSync(file)) await writeWhole(file, randomBytes(16).toString('hex'), 0o600);
  return readFileSync(file, 'utf8');
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
  if (process.geteuid?.() !== 0) return;
  for (let place = folder; place !== path.dirname(place);) {
    place = path.dirname(place);
    const problem = whoMayWrite(place);
    if (problem !== undefined)
      throw new UserError(
        `root builds no commits in ${folder}: ${problem}, and could put packages there that they load; name another folder in BAKEOFF_HOME`,
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
