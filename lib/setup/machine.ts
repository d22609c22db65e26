// What set-up needs to know of the machine. Tests hand in a machine of their own.
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { Progress } from './progress.ts';
import { bakeoffFolder, projectRoot } from './paths.ts';

export interface Machine {
  env: NodeJS.ProcessEnv;
  isRoot: boolean;
  /** Whether packages may be installed where that is possible. */
  mayInstall: boolean;
  /** Searched after PATH. Debian keeps servers in the sbin folders, and Go's own installer does not touch PATH. */
  extraFolders: readonly string[];
  /** The root of apt's surroundings: /usr/sbin/policy-rc.d and /run are below it. */
  systemRoot: string;
  bakeoffFolder: string;
  k6Sources: string;
  progress: Progress;
}

/** The variable that forbids with "no" that packages are installed. */
export const installVariable = 'BAKEOFF_INSTALL';

/** The machine that bakeoff runs on. Throws UserError (exit code 2) for a variable that says neither yes nor no. */
export function thisMachine(): Machine {
  return {
    env: process.env,
    isRoot: process.getuid?.() === 0,
    mayInstall: mayInstall(process.env[installVariable]),
    extraFolders: ['/usr/sbin', '/usr/local/sbin', '/sbin', '/usr/local/go/bin'],
    systemRoot: '/',
    bakeoffFolder,
    k6Sources: join(projectRoot, 'xk6-loadgen'),
    progress: new Progress(),
  };
}

function mayInstall(said: string | undefined): boolean {
  if (said === undefined || said === '' || said === 'yes') return true;
  // 0 or false would be understood wrongly by half of all people.
  if (said !== 'no') throw new UserError(`${installVariable}=${said}: write no or yes`, 2);
  return false;
}

export async function isExecutableFile(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Absolute paths of all executables of that name, in the order in which they are searched. */
export async function findAll(command: string, machine: Machine): Promise<string[]> {
  const folders = [
    ...(machine.env.PATH ?? '').split(':').filter((folder) => folder.startsWith('/')),
    ...machine.extraFolders,
  ];
  const paths = [...new Set(folders)].map((folder) => join(folder, command));
  const executable = await Promise.all(paths.map(isExecutableFile));
  return paths.filter((_, index) => executable[index]);
}

/** Absolute path of a command, undefined when it is not there. */
export async function find(command: string, machine: Machine): Promise<string | undefined> {
  return (await findAll(command, machine))[0];
}
