import { homedir } from 'node:os';
import { basename, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, without a trailing slash. */
export const projectRoot = resolve(fileURLToPath(new URL('../../', import.meta.url)));

/** The package lies in some node_modules, as a dependency: its folder may be read-only, and is emptied by the next `npm ci`. */
const isInstalled = projectRoot.split(sep).includes('node_modules');

/**
 * What bakeoff builds and keeps between runs: the k6 binary, InfluxDB's data, the certificate. BAKEOFF_HOME moves it (tests
 * use that). An installed package keeps it per person, as the XDG base directory specification has it, so that all of their
 * projects share one k6 and one history.
 */
export const bakeoffFolder = process.env.BAKEOFF_HOME
  ? fromCallersFolder(process.env.BAKEOFF_HOME)
  : isInstalled
    ? resolve(process.env.XDG_DATA_HOME || resolve(homedir(), '.local/share'), 'bakeoff')
    : resolve(projectRoot, '.bakeoff');

/**
 * A path as the person wrote it, made absolute. The checkout's own `npm run` starts us in its folder and says in INIT_CWD
 * where the person stands; anywhere else, as with npx or in a script of another package, a path is meant where we are.
 */
export function fromCallersFolder(path: string): string {
  const folder = process.cwd();
  return resolve(folder === projectRoot ? (process.env.INIT_CWD ?? folder) : folder, path);
}

/** A command as the person types it: `npm run scenario --` in the checkout, `npx bakeoff scenario` where the package put its link. */
export function typed(command: string): string {
  return basename(process.argv[1] ?? '') === 'bakeoff'
    ? `npx bakeoff ${command}`
    : `npm run ${command} --`;
}
