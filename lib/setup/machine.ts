// The machine: its programs, its settings for set-up, and progress on its terminal.
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { foldersOf, mayRun, systemPath, whoMayChange, whoMayPut } from '../../bin/trust.mjs';
import { UserError } from '../errors.ts';
import { liveLines, type LineStream } from '../live-lines.ts';
import { bakeoffFolder, fromCallersFolder, isInstalled, projectRoot } from './paths.ts';

export type Machine = ReturnType<typeof thisMachine>;

/** "no" forbids installing packages. */
export const installVariable = 'BAKEOFF_INSTALL';

/** "no": the servers and k6 do not go before other programs. */
const priorityVariable = 'BAKEOFF_PRIORITY';

/** Returns facts about this machine. Throws UserError (exit code 2) for a variable that is neither yes nor no. */
export function thisMachine() {
  return {
    env: process.env,
    isRoot: process.getuid?.() === 0,
    mayInstall: isYes(installVariable),
    goesFirst: isYes(priorityVariable),
    /** Searched after PATH: Debian's sbin folders, and the folder of Go's installer. */
    extraFolders: ['/usr/sbin', '/usr/local/sbin', '/sbin', '/usr/local/go/bin'],
    /** / outside of tests: /usr/sbin/policy-rc.d and /run are below it. */
    systemRoot: '/',
    bakeoffFolder,
    k6Sources: join(projectRoot, 'xk6-loadgen'),
    /** Where a package with a built k6 may be: never in the folders above a checkout. */
    packageFolders: isInstalled ? [join(projectRoot, 'node_modules'), dirname(projectRoot)] : [],
    progress: new Progress(),
  };
}

function isYes(variable: string): boolean {
  const value = process.env[variable];
  if (value === undefined || value === '' || value === 'yes') return true;
  // Half of all readers would take 0 or false for the opposite.
  if (value !== 'no') throw new UserError(`${variable}=${value}: write no or yes`, 2);
  return false;
}

let leftOut: readonly string[] = [];

/**
 * Variables of ld.so(8) with folders or libraries, and the signs between them. A library's name without a slash is looked up in the
 * system's folders.
 */
const libraryVariables = [
  { name: 'LD_LIBRARY_PATH', separators: /[:;]/, isPath: (entry: string) => entry !== '' },
  { name: 'LD_PRELOAD', separators: /[: ]/, isPath: (entry: string) => entry.includes('/') },
  { name: 'LD_AUDIT', separators: /:/, isPath: (entry: string) => entry.includes('/') },
  // OpenSSL's config may name libraries to load. An empty value means no config.
  { name: 'OPENSSL_CONF', separators: /\0/, isPath: (entry: string) => entry !== '' },
];

/**
 * Makes relative entries absolute: children start in other folders, and an empty entry means the current one. For root, entries that others
 * may change are removed.
 */
function useSafeLibraries(): void {
  const isRoot = process.geteuid?.() === 0;
  for (const { name, separators, isPath } of libraryVariables) {
    const entries = process.env[name]?.split(separators).flatMap((entry) => {
      // $ORIGIN is the folder of the program.
      if (!isPath(entry) || entry.startsWith('$')) return entry || [];
      const path = fromCallersFolder(entry);
      return isRoot && !isOwn(path) ? [] : path;
    });
    if (entries !== undefined) process.env[name] = entries.join(':');
  }
}

/** Returns whether nobody else may change or make the file. Returns false for a circular link, from which nothing could be loaded. */
function isOwn(path: string): boolean {
  try {
    return whoMayPut(path) === undefined;
  } catch {
    return false;
  }
}

/** Removes the folders that other users may change from this process's PATH. Its children get the rest. */
export function useSafePath(): void {
  useSafeLibraries();
  const folders = foldersOf(process.env['PATH']);
  leftOut = folders.leftOut;
  // An empty PATH would be the current folder.
  process.env['PATH'] = folders.kept.join(':') || systemPath;
}

/** Says which program is not used because others may change it, in words that follow "is missing"; '' if there is none. */
export async function leftOutOfPath(command: string): Promise<string> {
  for (const folder of [...leftOut, ...foldersOf(process.env['PATH']).kept]) {
    const path = join(folder, command);
    if ((await isExecutableFile(path)) && !mayRun(path))
      return ` (${path} is not used: ${whoMayChange(path)})`;
  }
  return '';
}

export async function isExecutableFile(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** PATH, and after it the machine's own folders. */
const searchPath = ({ env, extraFolders }: Machine): string =>
  [env.PATH ?? '', ...extraFolders].join(':');

/**
 * Returns the absolute paths of all executables of that name, in search order. Programs that others may change are left out, as in foldersOf
 * and mayRun.
 */
export async function findAll(command: string, machine: Machine): Promise<string[]> {
  const folders = foldersOf(searchPath(machine)).kept;
  const paths = [...new Set(folders)].map((folder) => join(folder, command));
  return paths.filter(mayRun);
}

/** undefined if it is not there. */
export async function find(command: string, machine: Machine): Promise<string | undefined> {
  return (await findAll(command, machine))[0];
}

/**
 * Returns whether a version is at least the needed one. It compares their numbers, as in "go1.26.8" or "2.3.0-DEV" and "1.25.0". A text
 * without a number is the oldest version.
 */
export function atLeast(version: string, needed: string): boolean {
  const have = numbers(version);
  const firstDifference =
    numbers(needed)
      .map((wanted, index) => (have[index] ?? 0) - wanted)
      .find((difference) => difference !== 0) ?? 0;
  return firstDifference >= 0;
}

function numbers(version: string): number[] {
  return /\d+(\.\d+)*/.exec(version)?.[0].split('.').map(Number) ?? [];
}

interface Step {
  doing(what: string): void;
  /** Replaces "done" in the step's last line. */
  result(what: string): void;
}

interface RunningStep {
  name: string;
  what: string;
  startedAt: number;
}

/** Shows steps that run side by side: on a terminal a live line for each, in a pipe a line at each start and end. */
export class Progress {
  readonly #live: ReturnType<typeof liveLines>;
  readonly #running = new Set<RunningStep>();
  readonly #work = {
    lines: () => [...this.#running].map((step) => `${step.name}: ${step.what} … ${elapsed(step)}`),
  };

  constructor(stream: LineStream = process.stderr) {
    this.#live = liveLines(stream);
  }

  async step<T>(name: string, what: string, work: (step: Step) => Promise<T>): Promise<T> {
    const running: RunningStep = { name, what, startedAt: performance.now() };
    let outcome = 'done';
    this.#running.add(running);
    this.#announce(running);
    try {
      return await work({
        doing: (now) => {
          running.what = now;
          this.#announce(running);
        },
        result: (text) => {
          outcome = text;
        },
      });
    } catch (error) {
      outcome = 'failed';
      throw error;
    } finally {
      this.#running.delete(running);
      this.print(`${name}: ${outcome}, ${elapsed(running)}`);
      if (this.#running.size === 0) this.#live.end(this.#work);
    }
  }

  /** Prints a line that stays, above the live ones. */
  print(line: string): void {
    this.#live.print([line]);
  }

  #announce(step: RunningStep): void {
    if (this.#live.isTerminal) this.#live.show(this.#work);
    else this.print(`${step.name}: ${step.what} …`);
  }
}

function elapsed(step: RunningStep): string {
  const seconds = (performance.now() - step.startedAt) / 1000;
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
