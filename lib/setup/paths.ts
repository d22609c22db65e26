import { homedir } from 'node:os';
import { basename, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, without a trailing slash. */
export const projectRoot = resolve(fileURLToPath(new URL('../../', import.meta.url)));

/** As a dependency, this folder may be read-only, and the next `npm ci` empties it. */
const isInstalled = projectRoot.split(sep).includes('node_modules');

/**
 * Keeps the k6 binary, InfluxDB's data and the certificate between runs. BAKEOFF_HOME moves it. An installed package has a folder
 * per user, so that all their projects share k6 and the history.
 */
export const bakeoffFolder = process.env.BAKEOFF_HOME
  ? fromCallersFolder(process.env.BAKEOFF_HOME)
  : isInstalled
    ? resolve(process.env.XDG_DATA_HOME || resolve(homedir(), '.local/share'), 'bakeoff')
    : resolve(projectRoot, '.bakeoff');

/**
 * Makes a user's path absolute. In a checkout, `npm run` starts bakeoff in the checkout's folder and names the user's in INIT_CWD.
 * Elsewhere paths begin at the current folder.
 */
export function fromCallersFolder(path: string): string {
  const folder = process.cwd();
  return resolve(folder === projectRoot ? (process.env.INIT_CWD ?? folder) : folder, path);
}

/** A command as the user types it: `npm run scenario --`, or `npx bakeoff scenario` with the installed package. */
export function typed(command: string): string {
  return basename(process.argv[1] ?? '') === 'bakeoff'
    ? `npx bakeoff ${command}`
    : `npm run ${command} --`;
}
