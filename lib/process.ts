// Child processes. Every child starts here: in its own process group, so that Ctrl-C reaches the runner alone, which ends its children in
// order; and with a parent-death signal, so that it ends even if the runner is killed. No program is looked up in the user's PATH, because
// npm adds folders to it in which other users may write.
import {
  execFile,
  spawn,
  type ChildProcess,
  type ChildProcessWithoutNullStreams,
  type StdioOptions,
} from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { isAbsolute } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { callerOfSudo, callerOwning, helper } from '../bin/trust.mjs';
import { printable, UserError } from './errors.ts';
import { namesIn, textOf, userUmask } from './files.ts';

/** A program of the system with its first words. It becomes the command that follows and keeps its process id: `nsenter … --`. */
export type Before = readonly [program: string, ...words: string[]];

export interface ChildOptions {
  /** A path; or the name of a program of the system, such as sh. */
  command: string;
  args: readonly string[];
  before?: readonly Before[] | undefined;
  /** User to run as (needs root). All capabilities are dropped except the one that it `keeps`. Default: the current user. */
  user?: (Pick<RunAs, 'uid' | 'gid'> & { keeps?: 'syslog' }) | undefined;
  /** The CPUs that it may use. Default: all. */
  cpus?: readonly number[] | undefined;
  /**
   * The working folder, entered as the `user`. Default: /, because a relative entry of LD_LIBRARY_PATH would otherwise be in the caller's
   * folder.
   */
  cwd?: string;
  env?: NodeJS.ProcessEnv | undefined;
  stdio?: StdioOptions;
  /** Sends TERM if this process is killed, so that the child can end in order. Default: KILL, which ends a stopped process too. */
  orphanedBy?: 'TERM';
  /** The second signal spares it, as a database. Default: it kills the group. */
  isSpared?: boolean;
}

/** A user of this machine that a command can run as. */
export interface RunAs {
  name: string;
  uid: number;
  gid: number;
}

interface ChildExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Child {
  pid: number;
  /** All words of its command line; the command and its arguments come last. */
  line: readonly string[];
  process: ChildProcess;
  exited: Promise<ChildExit>;
  hasExited(): boolean;
  /**
   * Sends TERM, and KILL to the whole group after `graceMs`. Returns when the process is gone, or hangs in the kernel. May be called again.
   */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Returns the pipes of a child with three of them. `end` resolves when it has ended: `how` is "with code 1" or "by SIGKILL", `last` the
 * last line of its standard error.
 */
export function pipesOf({ process: child }: Child) {
  const { stdin, stdout, stderr } = child as ChildProcessWithoutNullStreams;
  let errors = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2000);
  });
  stdin.on('error', () => undefined);
  const end = once(child, 'close').then(([code, by]) => ({
    how: by === null ? `with code ${code}` : `by ${by}`,
    last: lastLine(errors),
  }));
  return { stdin, stdout, end };
}

/** A command prefix that changes to this user. A change of user clears the parent-death signal (prctl(2)), so setpriv sets it again. */
export const becoming = (
  { uid, gid, keeps }: NonNullable<ChildOptions['user']>,
  orphanedBy = 'KILL',
): Before => [
  'setpriv',
  `--pdeathsig=${orphanedBy}`,
  `--reuid=${uid}`,
  `--regid=${gid}`,
  '--clear-groups',
  ...(keeps === undefined
    ? ['--inh-caps=-all']
    : [`--inh-caps=-all,+${keeps}`, `--ambient-caps=-all,+${keeps}`]),
  // The kernel starts no program with capabilities beyond these.
  `--bounding-set=-all,+${keeps ?? 'net_bind_service'}`,
  '--no-new-privs',
  '--',
];

/** A command prefix that enters a folder as the child's user: root might follow a link to a place that is closed to that user. */
const entering = (folder: string): Before => ['sh', '-c', 'cd "$0" && exec "$@"', folder];

/** A command prefix that sets the umask. */
export const withUmask = (umask: number): readonly Before[] => [
  ['sh', '-c', `umask ${umask.toString(8)}; exec "$@"`, 'sh'],
];

export const withUserUmask = withUmask(userUmask);

/** The words of such programs, with their paths. */
export const wordsOf = (programs: readonly Before[]): string[] =>
  programs.flatMap(([program, ...words]) => [helper(program), ...words]);

const usualGraceMs = 5000;

const groups = new Set<number>();

/** Kills all children with their groups, but those that are spared. */
export function killChildren(): void {
  for (const group of groups) sendIfThere(-group, 'SIGKILL');
}

/** How long a process may take to end after KILL. A process that hangs in the kernel never ends. */
const killedMs = 5000;

/** Linux's O_CLOEXEC, in octal as /proc has it. */
const closedByExec = 0o2000000;

/**
 * Files that this process inherited open beside the standard ones, such as a shell's 200>lock. Node closes in children only the files that
 * it opened itself.
 */
const inherited = namesIn('/proc/self/fdinfo')
  .map(Number)
  .filter((descriptor) => {
    const flags = /^flags:\s+(\d+)/m.exec(textOf(`/proc/self/fdinfo/${descriptor}`))?.[1];
    return descriptor > 2 && flags !== undefined && (parseInt(flags, 8) & closedByExec) === 0;
  });

/** Puts /dev/null in place of inherited files, which children must not have. */
function closingInherited(stdio: StdioOptions): StdioOptions {
  if (!Array.isArray(stdio)) return stdio;
  const closed = [...stdio];
  for (const descriptor of inherited) {
    while (closed.length <= descriptor) closed.push('ignore');
    // Node leaves a descriptor above 2 as it is for "ignore".
    if (closed[descriptor] === 'ignore') closed[descriptor] = emptyFile();
  }
  return closed;
}

let devNull: number | undefined;

const emptyFile = (): number => (devNull ??= openSync('/dev/null', 'r+'));

/** All words of a child's command line. */
function lineOf(options: ChildOptions): string[] {
  const { command, args, before = [], user, cpus, cwd, orphanedBy = 'KILL' } = options;
  const programs: Before[] = [['setpriv', `--pdeathsig=${orphanedBy}`, '--']];
  if (cpus !== undefined) programs.push(['taskset', '-c', cpus.join(',')]);
  programs.push(...before);
  if (user !== undefined) programs.push(becoming(user, orphanedBy));
  if (user !== undefined && cwd !== undefined) programs.push(entering(cwd));
  return [...wordsOf(programs), isAbsolute(command) ? command : helper(command), ...args];
}

/** Starts a child process. Throws if the command cannot be started. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const line = lineOf(options);
  const [program = '', ...words] = line;
  const child = spawn(program, words, {
    cwd: options.user === undefined ? (options.cwd ?? '/') : '/',
    env: options.env,
    stdio: closingInherited(options.stdio ?? ['ignore', 'pipe', 'pipe']),
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
  if (options.isSpared !== true) {
    groups.add(pid);
    void exited.then(() => groups.delete(pid));
  }

  async function stop(graceMs = usualGraceMs) {
    if (gone) return;
    process.kill(pid, 'SIGTERM');
    // A stopped process gets TERM once it continues.
    process.kill(-pid, 'SIGCONT');
    const timer = setTimeout(() => sendIfThere(-pid, 'SIGKILL'), graceMs);
    const patience = new AbortController();
    const hangs = delay(graceMs + killedMs, true, { signal: patience.signal }).catch(() => false);
    if ((await Promise.race([exited.then(() => false), hangs])) && !gone)
      console.error(`${options.command} (pid ${pid}) does not end by KILL: it hangs in the kernel`);
    patience.abort();
    clearTimeout(timer);
  }

  return { pid, line, process: child, exited, hasExited: () => gone, stop };
}

/** Starts a shell that continues a child's group if this process is killed, because a stopped child does not react to TERM. */
export function continueWhenOrphaned({ pid, exited }: Child): void {
  void exited.then(onceGone('kill -s CONT -- "-$1"', String(pid)));
}

/**
 * Starts a shell that runs a script once this process has ended, however it ends.
 * @param words the script's "$1", "$2" …
 * @returns a function that ends the shell instead
 */
export function onceGone(script: string, ...words: readonly string[]): () => void {
  const waiting = `trap "" HUP INT TERM; read -r ended || { ${script}; }`;
  const guard = spawn(helper('sh'), ['-c', waiting, 'sh', ...words], {
    cwd: '/',
    stdio: closingInherited(['pipe', 'ignore', 'ignore']),
    detached: true,
  });
  guard.unref();
  guard.stdin?.on('error', () => undefined);
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => void guard.stdin?.end('ended\n');
}

/**
 * Kills a child and its process group on the signal or after this time. Call the returned function when the work has ended: it returns
 * whether the time was up.
 */
export function limitChild(child: Child, signal: AbortSignal, seconds: number): () => boolean {
  let isLate = false;
  const kill = () => void child.stop(0);
  const timer = setTimeout(() => {
    isLate = true;
    kill();
  }, seconds * 1000);
  signal.addEventListener('abort', kill);
  if (signal.aborted) kill();
  return () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', kill);
    return isLate;
  };
}

/**
 * Starts a child without input. Its output goes to a log file, which the flag `w` empties and `a` keeps. @param handed its descriptors from
 * 3 on
 */
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

/** Removes the variables whose names begin with `prefix`. */
export function withoutVariables(env: NodeJS.ProcessEnv, prefix: string): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(prefix)));
}

/**
 * Sets the priority of a process with its threads and its session: `nice` from -20 (first) to 19. Later threads and children inherit it.
 * Does nothing where the kernel does not allow it: below 0 only root may.
 * @param from leaves threads and sessions with another priority than this as they are: somebody has chosen it
 */
export async function prioritise(pid: number, nice: number, from?: number): Promise<void> {
  for (const thread of namesIn(`/proc/${pid}/task`).map(Number)) {
    try {
      if (from === undefined || getPriority(thread) === from) setPriority(thread, nice);
    } catch {
      // It has ended, or may not.
    }
  }
  // Where the kernel weighs sessions (autogroup), a nice value counts only within a session.
  const session = `/proc/${pid}/autogroup`;
  const ofSession = /nice (-?\d+)/.exec(textOf(session))?.[1];
  if (from === undefined || Number(ofSession) === from)
    await writeFile(session, String(nice)).catch(() => undefined);
}

/** Moves a running process with all its threads to these cores. */
export async function pin(pid: number, cpus: readonly number[]): Promise<void> {
  const words = ['-a', '-c', '-p', cpus.join(','), String(pid)];
  await promisify(execFile)(helper('taskset'), words, { cwd: '/' });
}

/** Signals a process, or a group by its negative number, unless it has ended. */
export function sendIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

export interface ProcessOptions extends Omit<ChildOptions, 'stdio'> {
  /** Stops the command; `run` rejects after its end. */
  signal?: AbortSignal | undefined;
  /** SIGTERM (default) goes to the group, and KILL follows 5 s later. SIGINT goes to the command alone, which may finish its work first. */
  stopWith?: 'SIGTERM' | 'SIGINT';
  input?: string;
  /**
   * Kills the process group after this time, or after 128 million characters of output; `run` rejects with a UserError with this message.
   */
  limit?: { seconds: number; message: string };
  /** Called with its process id once it runs. */
  started?: (pid: number) => void;
  /** Called with each piece of what it writes on stderr. */
  said?: (text: string) => void;
  /** Called when the command itself has ended. `run` waits until all other processes that have its output open have ended too. */
  ended?: () => void;
}

/** Limit of captured output in characters. */
const mostOutput = 128e6;

export type Finished = Awaited<ReturnType<typeof run>>;

/** Runs a command to its end and returns its exit code and output. Rejects with the reason of `signal`, or with the message of `limit`. */
export async function run(options: ProcessOptions) {
  const {
    signal: abort,
    stopWith = 'SIGTERM',
    input,
    limit,
    started,
    said,
    ended,
    ...rest
  } = options;
  abort?.throwIfAborted();
  const child = await startChild({
    ...rest,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  started?.(child.pid);
  void child.exited.then(ended);
  let giveUp: (exit: ChildExit) => void = () => undefined;
  const hangs = new Promise<ChildExit>((resolve) => (giveUp = resolve));
  const kill = () => {
    sendIfThere(-child.pid, 'SIGKILL');
    setTimeout(() => giveUp({ code: null, signal: 'SIGKILL' }), killedMs).unref();
    // A process that left the group may keep them open.
    child.process.stdout?.destroy();
    child.process.stderr?.destroy();
  };
  let isEndless = false;
  const killEndless = () => {
    isEndless = true;
    kill();
  };
  let timer = limit && setTimeout(killEndless, limit.seconds * 1000);
  const stop = () => {
    sendIfThere(stopWith === 'SIGINT' ? child.pid : -child.pid, stopWith);
    if (stopWith === 'SIGINT') return;
    clearTimeout(timer);
    timer = setTimeout(kill, usualGraceMs);
  };
  abort?.addEventListener('abort', stop);
  // The abort may have come while the child was starting.
  if (abort?.aborted) stop();
  child.process.stdin?.on('error', () => undefined).end(input);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child.process[name]?.setEncoding('utf8').on('data', (text: string) => {
      if (output.stdout.length + output.stderr.length + text.length <= mostOutput)
        output[name] += text;
      else killEndless();
    });
  if (said !== undefined) child.process.stderr?.on('data', said);
  const ends = Promise.all([child.exited, once(child.process, 'close')]).then(([exit]) => exit);
  const exit = await Promise.race([ends, hangs]);
  abort?.removeEventListener('abort', stop);
  clearTimeout(timer);
  abort?.throwIfAborted();
  if (isEndless) throw new UserError(limit?.message ?? `${rest.command} prints without end`);
  return { ...exit, ...output };
}

/** Gives a folder that is closed to all but its owner, such as a run's, to the user who called sudo. */
export async function giveToCaller(path: string): Promise<void> {
  const caller = callerOfSudo();
  if (caller === undefined) return;
  const owner = `${caller.uid}:${caller.gid}`;
  // The path alone may be a link.
  await run({ command: 'chown', args: ['-R', '-P', owner, '--', `${path}/.`] });
}

/** If one of bakeoff's own folders belongs to the user who called sudo, gives them what root has written there. */
export async function leaveToCaller(folder: string): Promise<void> {
  if (callerOwning(folder) !== undefined) await giveToCaller(folder);
}

/** Removes a folder, also one in which a build closed folders to its own user, as that of Go's modules is. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await run({ command: 'chmod', args: ['-R', 'u+rwX', '--', folder] });
    await rm(folder, { recursive: true, force: true });
  }
}

/** The last line with text, or ''. */
export function lastLine(text: string): string {
  return printable(text.trimEnd().split('\n').at(-1)?.trim() ?? '');
}
