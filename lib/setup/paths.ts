import { existsSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { whoMayMake, whoMayWrite } from '../../bin/trust.mjs';
import { UserError } from '../errors.ts';
import { userUmask } from '../files.ts';

/** The folder of package.json, without a trailing slash. */
export const projectRoot = resolve(fileURLToPath(new URL('../../', import.meta.url)));

/** As a dependency, this folder may be read-only, and the next `npm ci` empties it. */
export const isInstalled = basename(dirname(projectRoot)) === 'node_modules';

/**
 * The folder for the k6 binary, InfluxDB's data and the certificate. BAKEOFF_HOME moves it. If the package is installed, all projects of a
 * user share one.
 */
export const bakeoffFolder = process.env.BAKEOFF_HOME
  ? fromCallersFolder(process.env.BAKEOFF_HOME)
  : usualFolder();

/**
 * The folder for the sources of others: as bakeoffFolder, but never in a checkout of bakeoff. Node, npm and others look for package.json,
 * node_modules and such in all folders above a program's own. Root's servers drop to users who may not enter root's home.
 */
export const sourcesFolder = process.env.BAKEOFF_HOME ? bakeoffFolder : usualSourcesFolder();

/**
 * Sets the umask so that others cannot change new files. If others may put files into root's HOME, root's programs get bakeoff's folder as
 * HOME: settings of git, docker and kubectl name programs that they run. Throws UserError if others could put a program into bakeoff's
 * folder too.
 */
export function requireOwnHome(): void {
  process.umask(userUmask | 0o022);
  if (process.geteuid?.() !== 0) return;
  const problem = whoMayMake(bakeoffFolder);
  if (problem !== undefined)
    throw new UserError(
      `root keeps no programs in ${bakeoffFolder}: ${problem}; name another folder in BAKEOFF_HOME`,
    );
  const isOthers = (folder: string) => existsSync(folder) && whoMayWrite(folder) !== undefined;
  if (isOthers(homedir())) process.env.HOME = bakeoffFolder;
  for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME'])
    if (isOthers(process.env[name] ?? '')) delete process.env[name];
}

function usualFolder(): string {
  return isInstalled ? usersFolder() : resolve(projectRoot, '.bakeoff');
}

function usualSourcesFolder(): string {
  return process.geteuid?.() === 0 ? '/var/cache/bakeoff' : usersFolder();
}

function usersFolder(): string {
  // HOME may be empty.
  const home = isAbsolute(homedir()) ? homedir() : userInfo().homedir;
  return resolve(process.env.XDG_DATA_HOME || resolve(home, '.local/share'), 'bakeoff');
}

/** Makes a user's path absolute. In a checkout, `npm run` passes the user's folder in INIT_CWD. */
export function fromCallersFolder(path: string): string {
  const folder = process.cwd();
  return resolve(folder === projectRoot ? (process.env.INIT_CWD ?? folder) : folder, path);
}

/** A command as the user types it: `npm run scenario --`, or `npx server-bakeoff scenario` with the installed package. */
export function typed(command: string): string {
  // npx needs the package's name: if the package is not installed, `npx bakeoff` would fetch another package of that name.
  if (['bakeoff', 'server-bakeoff'].includes(basename(process.argv[1] ?? '')))
    return `npx server-bakeoff ${command}`;
  return `npm run ${command} --`;
}
