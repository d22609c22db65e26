// The person's own commands: --prepare or a scenario's `prepare` before the servers start, and what builds a side. They come from a
// command line or a scenario file alone, so they run as the caller, with all rights that the caller has.
import { setTimeout as delay } from 'node:timers/promises';
import { helper } from '../../bin/trust.mjs';
import { inOneLine, printable, UserError } from '../errors.ts';
import { startChild, type Child } from '../process.ts';
import { shownCommand } from '../secrets.ts';
import { describeEnd, watchLifecycle } from './lifecycle.ts';
import { makeScratch, type Scratch } from './scratch.ts';
import { fromCallersFolder } from '../setup/paths.ts';

/** Work that takes longer belongs before the run. */
const prepareSeconds = 60;

/** Number of the command's characters in a message. */
const mostShown = 80;
/** Number of characters of the output that are kept, for its last line. */
const mostKept = 64 * 1024;
/**
 * How long to wait for output that is on its way when all processes have ended. A process that hangs in the kernel may keep the output
 * open.
 */
const lastOutputMs = 1000;

export interface BeforeStart {
  /** Runs in sh, in the caller's folder, without input. */
  command: string;
  signal: AbortSignal;
  /** Gets a line about processes that the command left running. */
  say: (line: string) => void;
  /** Tests set a shorter limit. */
  limitSeconds?: number;
}

/** Like runOwnCommand, with a limit of 60 s. */
export async function runBeforeStart({
  command,
  signal,
  say,
  limitSeconds = prepareSeconds,
}: BeforeStart): Promise<void> {
  await runOwnCommand({
    command,
    what: `prepare '${shownPart(command)}'`,
    folder: fromCallersFolder('.'),
    limitSeconds,
    ifLate: 'do what takes longer before the run',
    ifLeft: "start what servers need before bakeoff, or in the servers' commands",
    signal,
    say,
  });
}

interface OwnCommand {
  /** Runs in sh, without input. */
  command: string;
  /** Names it in messages. */
  what: string;
  folder: string;
  limitSeconds: number;
  /** What to do if it takes longer, and if it leaves processes. */
  ifLate: string;
  ifLeft: string;
  signal: AbortSignal;
  /** Gets a line about processes that the command left running. */
  say: (line: string) => void;
  /** Gets the end of its output, without credentials, if it fails or takes longer. */
  onFailure?: (output: string) => void;
}

/**
 * Runs the command to its end, and then ends the processes that it left running (TERM, KILL 5 s later). Keeps none of its output.
 * @throws UserError if it fails or takes longer than its limit; the signal's reason
 */
export async function runOwnCommand({
  command,
  what,
  folder,
  limitSeconds,
  ifLate,
  ifLeft,
  signal,
  say,
  onFailure,
}: OwnCommand): Promise<void> {
  signal.throwIfAborted();
  const scratch = await makeScratch();
  const child = await startIn(scratch, command, folder);
  const output = watchOutput(child);
  // The command writes no log.
  const { gone, stop } = watchLifecycle(what, child, '/dev/null', scratch, true);
  await untilOver(child, signal, limitSeconds);
  const isLate = !child.hasExited();
  await stop();
  const written = await output.end();
  const last = lastTellingLine(written);
  signal.throwIfAborted();
  const { code, signal: by, left } = await gone;
  if (isLate || code !== 0) onFailure?.(written);
  if (isLate)
    throw new UserError(
      `${what} has not ended within ${limitSeconds} s, so it was ended: ${ifLate}${last === '' ? '' : `; its output ends: ${last}`}`,
    );
  if (code !== 0)
    throw new UserError(
      `${what} ended ${by === null ? `with code ${code}` : `by ${by}`}${last === '' ? '' : `: ${last}`}`,
    );
  if (left.length > 0)
    say(`${what} left processes running (pid ${left.join(', ')}), which were ended: ${ifLeft}`);
}

function lastTellingLine(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  return printable(describeEnd(lines.filter(Boolean), 1));
}

async function startIn(scratch: Scratch, command: string, cwd: string): Promise<Child> {
  try {
    const child = await startChild({
      command: 'sh',
      // Both outputs share one pipe, so that their lines keep their order.
      args: ['-c', 'exec "$0" -c "$1" 2>&1', helper('sh'), command],
      before: scratch.enter,
      orphanedBy: 'TERM',
      cwd,
      // After `npm run -s`, npm would not say what is wrong.
      env: { ...process.env, npm_config_loglevel: undefined, PWD: cwd },
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
  // AbortSignal.any and .timeout are not used: their signals may be collected as garbage, and then never fire.
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
    /** Returns the end of the output, without credentials, once all processes have ended. */
    async end(): Promise<string> {
      await Promise.race([closed, delay(lastOutputMs, undefined, { ref: false })]);
      stdout?.destroy();
      return shownCommand(kept);
    },
  };
}

/** The command in one line, without credentials, shortened. */
function shownPart(command: string): string {
  const shown = inOneLine(shownCommand(command));
  return shown.length > mostShown ? `${shown.slice(0, mostShown)}…` : shown;
}
