// The person's own command before the servers start (--prepare, or a scenario's `prepare`). It runs with all the caller's rights.
import { setTimeout as delay } from 'node:timers/promises';
import { helper } from '../../bin/trust.mjs';
import { inOneLine, UserError } from '../errors.ts';
import { lastLine, startChild, type Child } from '../process.ts';
import { shownCommand } from '../secrets.ts';
import { watchLifecycle } from './lifecycle.ts';
import { makeScratch, type Scratch } from './scratch.ts';
import { fromCallersFolder } from '../setup/paths.ts';

/** Longer work belongs before the run. */
const prepareSeconds = 60;

/** A message has so much of the command. */
const mostShown = 80;
/** The output's end has its last line. */
const mostKept = 64 * 1024;
/** Output may be on its way when all processes have ended. One that hangs may keep it open. */
const lastOutputMs = 1000;

export interface BeforeStart {
  command: string;
  signal: AbortSignal;
  /** Gets a line about processes left running. */
  say: (line: string) => void;
  /** For tests. */
  limitSeconds?: number;
}

/** Runs it, and ends what it left running (TERM, KILL 5 s later). @throws UserError if it fails or takes over 60 s; the signal's reason */
export async function runBeforeStart({
  command,
  signal,
  say,
  limitSeconds = prepareSeconds,
}: BeforeStart): Promise<void> {
  signal.throwIfAborted();
  const what = `prepare '${shownPart(command)}'`;
  const scratch = await makeScratch();
  const child = await startIn(scratch, command);
  const output = watchOutput(child);
  const { gone, stop } = watchLifecycle(what, child, '/dev/null', scratch, true);
  await untilOver(child, signal, limitSeconds);
  const isLate = !child.hasExited();
  await stop();
  const last = await output.lastLine();
  signal.throwIfAborted();
  if (isLate)
    throw new UserError(
      `${what} has not ended within ${limitSeconds} s, so it was ended: do what takes longer before the run${last === '' ? '' : `; its output ends: ${last}`}`,
    );
  const { code, signal: by, left } = await gone;
  if (code !== 0)
    throw new UserError(
      `${what} ended ${by === null ? `with code ${code}` : `by ${by}`}${last === '' ? '' : `: ${last}`}`,
    );
  if (left.length > 0)
    say(
      `${what} left processes running (pid ${left.join(', ')}), which were ended: start what servers need before bakeoff, or in the servers' commands`,
    );
}

async function startIn(scratch: Scratch, command: string): Promise<Child> {
  const cwd = fromCallersFolder('.');
  try {
    const child = await startChild({
      command: 'sh',
      // One output keeps the order of lines.
      args: ['-c', 'exec "$0" -c "$1" 2>&1', helper('sh'), command],
      before: scratch.enter,
      orphanedBy: 'TERM',
      cwd,
      env: { ...process.env, PWD: cwd },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    scratch.led(child.pid);
    return child;
  } catch (error) {
    await scratch.end();
    throw error;
  }
}

async function untilOver(child: Child, signal: AbortSignal, seconds: number): Promise<void> {
  // Signals of AbortSignal.any or .timeout may be collected, and then never come.
  const patience = new AbortController();
  const giveUp = () => patience.abort();
  signal.addEventListener('abort', giveUp);
  if (signal.aborted) giveUp();
  const time = delay(seconds * 1000, undefined, { signal: patience.signal });
  await Promise.race([child.exited, time.catch(() => undefined)]);
  giveUp();
  signal.removeEventListener('abort', giveUp);
}

function watchOutput({ process: { stdout } }: Child) {
  let kept = '';
  const closed = new Promise((resolve) => stdout?.once('close', resolve));
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    kept = (kept + text).slice(-mostKept);
  });
  return {
    /** Waits until all processes have ended; leaves out credentials. */
    async lastLine(): Promise<string> {
      await Promise.race([closed, delay(lastOutputMs, undefined, { ref: false })]);
      stdout?.destroy();
      return shownCommand(lastLine(kept));
    },
  };
}

/** Leaves out credentials. */
function shownPart(command: string): string {
  const shown = inOneLine(shownCommand(command));
  return shown.length > mostShown ? `${shown.slice(0, mostShown)}…` : shown;
}
