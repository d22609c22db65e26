// Two runs at a time would measure each other, whoever started them.
import { createConnection, createServer, type Server } from 'node:net';
import { hostname, userInfo } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { duration } from '../format.ts';
import { listeningAt, processIds, socketsOf } from '../process.ts';
import { ifThere } from '../files.ts';
import { fromCallersFolder } from '../setup/paths.ts';

/** As long as the kernel's field: Node before 22 pads a shorter name with zeros, and Node 22 does not. */
export const machineName = 'server-bakeoff measures'.padEnd(107, '.');

/** A holder that is stopped or hangs takes connections and says nothing. */
const patienceMs = 1000;

const askAgainMs = 500;

/** How long to wait for another run, 0: not at all. `say` gets the line that names it. */
export interface WaitForRun {
  seconds: number;
  signal: AbortSignal;
  say(line: string): void;
}

/** A run, for its parts on other hosts. `from`: the host where it was started; `about`: its line about itself. */
export interface Run {
  from: string;
  about: string;
}

/** The run of this process. */
export function runHere(): Run {
  return { from: hostname(), about: aboutThis() };
}

/**
 * Returns once this process is the only bakeoff that measures on this machine, whoever started the others; call the returned function
 * when it is done. The lock is a unix socket with an abstract name: any user may ask for it, the kernel frees it when its process
 * ends, and a network namespace (a container's) has its own.
 * @param name of the lock, at most 107 characters
 * @param run that this process is a part of: it may measure beside the run and its other parts. Absent: it is the run
 * @param wait absent where the command has no --wait
 * @throws UserError that says who measures, or the signal's reason
 */
export async function oneRunAtATime(
  name = machineName,
  run?: Run,
  wait?: WaitForRun,
): Promise<() => void> {
  const address = `\0${name}`;
  const about = run === undefined ? aboutThis() : `from ${run.from}: ${run.about}`;
  const beganAtMs = performance.now();
  let told = false;
  for (;;) {
    const server = await listen(address, about);
    if (server !== null) return () => server.close();
    const answer = await ask(address);
    if (run !== undefined && answer !== null && [about, run.about].map(inOneLine).includes(answer))
      return () => undefined;
    // The holder ended just when it was asked.
    if (answer === null) continue;
    const holder = answer || silentHolder(name);
    if (wait === undefined || wait.seconds === 0)
      throw new UserError(
        `another run of bakeoff is measuring (${holder}), and both would be slower: wait until it is done${wait === undefined ? '' : ' (--wait 10m)'}, or end it`,
      );
    if (performance.now() - beganAtMs > 1000 * wait.seconds)
      throw new UserError(
        `another run of bakeoff is still measuring after ${duration(wait.seconds)} (${holder}): give a longer --wait, or end it`,
      );
    if (!told)
      wait.say(
        `waiting for another run of bakeoff to end, ${duration(wait.seconds)} at most: ${holder}`,
      );
    told = true;
    await delay(askAgainMs, undefined, { signal: wait.signal }).catch(() =>
      wait.signal.throwIfAborted(),
    );
  }
}

/** Null when somebody else has the address. */
function listen(address: string, about: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      // Whoever asks and goes away is no concern of the run's, and does not keep it.
      socket
        .on('error', () => undefined)
        .unref()
        .end(`${about}\n`, () => socket.destroy());
    });
    server.unref();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null);
      else
        reject(
          new UserError(`cannot see whether another run of bakeoff is measuring: ${error.message}`),
        );
    });
    server.listen(address, () => resolve(server));
  });
}

/** The holder's line about itself; '' when it says nothing in time, null when it is gone. */
async function ask(address: string): Promise<string | null> {
  let text = '';
  try {
    const socket = createConnection({ path: address, signal: AbortSignal.timeout(patienceMs) });
    for await (const more of socket.setEncoding('utf8')) {
      text += more;
      if (text.length > 1000 || text.includes('\n')) break;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return null;
    // What it has said until then counts.
  }
  return inOneLine(text);
}

/** The first line of what a holder says, fit for a terminal. */
function inOneLine(text: string): string {
  return text.split('\n', 1)[0]?.replace(/\p{C}/gu, '').slice(0, 300) ?? '';
}

const startedAt = new Date();

/** e.g. "process 123 of root: scenario aa, since 2026-11-20 08:15 UTC, in /home/me". No flags: one may have a password. */
function aboutThis(): string {
  const words = process.argv.slice(2);
  const flag = words.findIndex((word) => word.startsWith('-'));
  const command = words.slice(0, flag < 0 ? words.length : flag).join(' ');
  // A container's user may have no name.
  const user = ifThere(() => userInfo().username) ?? `user ${process.getuid?.()}`;
  return `process ${process.pid} of ${user}: ${command}, since ${startedAt.toISOString().slice(0, 16).replace('T', ' ')} UTC, in ${fromCallersFolder('.')}`;
}

/** What the kernel tells of a holder that does not answer. */
function silentHolder(name: string): string {
  const [inode] = listeningAt(`@${name}`, '/proc');
  const pid =
    inode === undefined
      ? undefined
      : processIds('/proc').find((one) => socketsOf(`/proc/${one}`).includes(inode));
  return pid === undefined
    ? 'a process of another user, which does not answer'
    : `process ${pid}, which does not answer: it is stopped, or hangs`;
}
