// Every long-lived child of bakeoff is started here: pinned to cores, in a process group of its own (so that Ctrl-C
// reaches the runner alone, which then ends its children in order), and with a parent-death signal (so that it ends
// even when the runner is killed).
import { execFile, spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface ChildOptions {
  command: string;
  args: readonly string[];
  /** What is put before the command, and becomes it in the end, so that the process id is the command's: `nsenter …  --`. */
  before?: readonly string[] | undefined;
  /** Whom the command becomes, with no rights beyond that user's, and no way to new ones. Takes root. Absent: it stays who starts it. */
  user?: Pick<RunAs, 'uid' | 'gid'> | undefined;
  /** Cores to pin to; all when absent. */
  cpus?: readonly number[] | undefined;
  cwd?: string;
  /** Absent: this process's own. */
  env?: NodeJS.ProcessEnv | undefined;
  stdio?: StdioOptions;
}

/** A user of this machine that a command can run as. */
export interface RunAs {
  name: string;
  uid: number;
  gid: number;
}

export interface ChildExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Child {
  pid: number;
  process: ChildProcess;
  exited: Promise<ChildExit>;
  hasExited(): boolean;
  /** TERM, then KILL to the whole group after `graceMs`. Returns when the process is gone; may be called more than once. */
  stop(graceMs?: number): Promise<void>;
}

const endsWithParent = ['--pdeathsig', 'TERM'];

/** With the user the kernel forgets the parent-death signal (prctl(2)), so that it is set again; setpriv does that last. */
function becoming(user: ChildOptions['user']): string[] {
  if (user === undefined) return [];
  // The kernel starts no program whose file has rights (setcap) beyond the bounding set. Servers' files have this one, or none.
  const noRights = [
    '--clear-groups',
    '--inh-caps=-all',
    '--bounding-set=-all,+net_bind_service',
    '--no-new-privs',
  ];
  return [
    'setpriv',
    ...endsWithParent,
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    ...noRights,
    '--',
  ];
}

/** Starts a child process. Throws when the command cannot be started. `setpriv` and `taskset` are util-linux, on every Linux. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const pin = options.cpus === undefined ? [] : ['taskset', '-c', options.cpus.join(',')];
  const child = spawn(
    'setpriv',
    [
      ...endsWithParent,
      '--',
      ...pin,
      ...(options.before ?? []),
      ...becoming(options.user),
      options.command,
      ...options.args,
    ],
    {
      cwd: options.cwd,
      env: options.env,
      stdio: options.stdio ?? ['ignore', 'pipe', 'pipe'],
      detached: true,
    },
  );
  let gone = false;
  const exited = new Promise<ChildExit>((resolve) => {
    child.once('exit', (code, signal) => {
      gone = true;
      resolve({ code, signal });
    });
  });
  await once(child, 'spawn');
  const pid = child.pid as number;

  async function stop(graceMs = 5000): Promise<void> {
    if (gone) return;
    process.kill(pid, 'SIGTERM');
    // A process that somebody stopped hears of TERM once it goes on.
    process.kill(-pid, 'SIGCONT');
    const timer = setTimeout(() => sendIfThere(-pid, 'SIGKILL'), graceMs);
    await exited;
    clearTimeout(timer);
  }

  return { pid, process: child, exited, hasExited: () => gone, stop };
}

/** Starts a child without input whose output goes to a file: `w` empties it first, `a` appends. @param handed its descriptors from 3 on */
export async function startLogged(
  options: Omit<ChildOptions, 'stdio'>,
  logFile: string,
  how: 'w' | 'a',
  ...handed: readonly number[]
): Promise<Child> {
  const log = openSync(logFile, how);
  try {
    return await startChild({ ...options, stdio: ['ignore', log, log, ...handed] });
  } finally {
    closeSync(log);
  }
}

/** Without the variables of a program's own, by what their names begin with: they would change what it is told otherwise. */
export function withoutVariables(env: NodeJS.ProcessEnv, prefix: string): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(prefix)));
}

/** Weighs a child's session against all others: `nice` from -20 (first) to 19. Does nothing where the kernel does not allow it. */
export async function weighSession(pid: number, nice: number): Promise<void> {
  await writeFile(`/proc/${pid}/autogroup`, String(nice)).catch(() => undefined);
}

/** Moves a process that runs to these cores, with all its threads. */
export async function pin(pid: number, cpus: readonly number[]): Promise<void> {
  await promisify(execFile)('taskset', ['-a', '-c', '-p', cpus.join(','), String(pid)]);
}

/** Signals a process, or a group by its number below 0; one that has ended meanwhile needs none. */
export function sendIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended between the look and the signal.
  }
}
