// Every long-lived child of bakeoff is started here: pinned to cores, in a process group of its own (so that Ctrl-C
// reaches the runner alone, which then ends its children in order), and with a parent-death signal (so that it ends
// even when the runner is killed).
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';

export interface ChildOptions {
  command: string;
  args: readonly string[];
  /** What is put before the command, and becomes it in the end, so that the process id is the command's: `nsenter …  --`. */
  before?: readonly string[] | undefined;
  /** Cores to pin to; all when absent. */
  cpus?: readonly number[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  stdio?: StdioOptions;
}

export interface ChildExit { code: number | null; signal: NodeJS.Signals | null }

export interface Child {
  pid: number;
  process: ChildProcess;
  exited: Promise<ChildExit>;
  hasExited(): boolean;
  /** TERM, then KILL to the whole group after `graceMs`. Returns when the process is gone; may be called more than once. */
  stop(graceMs?: number): Promise<void>;
}

/** Starts a child process. Throws when the command cannot be started. `setpriv` and `taskset` are util-linux, on every Linux. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const pin = options.cpus === undefined ? [] : ['taskset', '-c', options.cpus.join(',')];
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', '--', ...pin, ...(options.before ?? []), options.command, ...options.args], {
    cwd: options.cwd,
    env: options.env,
    stdio: options.stdio ?? ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
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
    const timer = setTimeout(() => {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // It ended between the check and the signal.
      }
    }, graceMs);
    await exited;
    clearTimeout(timer);
  }

  return { pid, process: child, exited, hasExited: () => gone, stop };
}
