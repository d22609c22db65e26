import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, without a trailing slash. */
export const projectRoot = resolve(fileURLToPath(new URL('../../', import.meta.url)));

/** What bakeoff builds and keeps between runs: the k6 binary, InfluxDB's data. BAKEOFF_HOME moves it (tests use that). */
export const bakeoffFolder = process.env.BAKEOFF_HOME ? fromCallersFolder(process.env.BAKEOFF_HOME) : resolve(projectRoot, '.bakeoff');

/** A path as the person wrote it, made absolute: npm runs us in the project's folder and says in INIT_CWD where they stand. */
export function fromCallersFolder(path: string): string {
  return resolve(process.env.INIT_CWD ?? process.cwd(), path);
}
