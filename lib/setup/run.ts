// Runs commands that end by themselves, and keeps their output.
import { printable, UserError } from '../errors.ts';
import { sendIfThere, startChild, type ChildOptions } from '../process.ts';

export interface RunOptions extends Omit<ChildOptions, 'stdio'> {
  /** Stops the command; `run` rejects after its end. */
  signal?: AbortSignal | undefined;
  /** SIGTERM (default) goes to the process group, and KILL 5 s later. SIGINT goes to the command alone, which may finish first. */
  stopWith?: 'SIGTERM' | 'SIGINT';
  /** Its standard input; default none. */
  input?: string;
  /** Kills the process group after this time, or after 128 million characters of output; `run` rejects with a UserError of these words. */
  limit?: { seconds: number; words: string };
  /** Called with its process id once it runs. */
  started?: (pid: number) => void;
}

const graceMs = 5000;

/** In characters, on both streams. */
const mostOutput = 128e6;

export interface Finished {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** Runs a command to its end and returns its exit code and output. Rejects with `signal`'s reason or `limit`'s words. */
export async function run(options: RunOptions): Promise<Finished> {
  const { signal: abort, stopWith = 'SIGTERM', input, limit, started, ...rest } = options;
  abort?.throwIfAborted();
  const child = await startChild({
    ...rest,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  started?.(child.pid);
  let killing: NodeJS.Timeout | undefined;
  const stop = (): void => {
    sendIfThere(stopWith === 'SIGINT' ? child.pid : -child.pid, stopWith);
    if (stopWith === 'SIGTERM') killing = setTimeout(kill, graceMs);
  };
  const kill = (): void => {
    sendIfThere(-child.pid, 'SIGKILL');
    // A process that left the group may keep them open.
    child.process.stdout?.destroy();
    child.process.stderr?.destroy();
  };
  let endless = false;
  const killEndless = (): void => {
    endless = true;
    kill();
  };
  const timer = limit && setTimeout(killEndless, limit.seconds * 1000);
  abort?.addEventListener('abort', stop);
  // The abort may have come while the child was starting.
  if (abort?.aborted) stop();
  child.process.stdin?.on('error', () => undefined).end(input);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child.process[name]?.setEncoding('utf8').on('data', (text: string) => {
      if (said.stdout.length + said.stderr.length + text.length <= mostOutput) said[name] += text;
      else killEndless();
    });
  const [exit] = await Promise.all([
    child.exited,
    new Promise((resolve) => child.process.once('close', resolve)),
  ]);
  abort?.removeEventListener('abort', stop);
  clearTimeout(timer);
  clearTimeout(killing);
  abort?.throwIfAborted();
  if (endless) throw new UserError(limit?.words ?? `${rest.command} prints without end`);
  return { ...exit, ...said };
}

/** The last line with text, or ''. */
export function lastLine(text: string): string {
  return printable(text.trimEnd().split('\n').at(-1)?.trim() ?? '');
}
