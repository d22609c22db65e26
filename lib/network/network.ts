// A network of the run's own: two namespaces joined by a link, held by one process (delaylink) and gone with it.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { startChild, weighSession } from '../process.ts';
import type { Cores } from '../machine/cores.ts';
import type { Interrupt } from '../interrupt.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import { lastLine } from '../setup/run.ts';
import type { ServerSide } from '../servers/server.ts';
import type { LinkCounts, LinkOrder, LinkReady, LinkReport } from './link-messages.ts';
import { enterAsMaker, enterNetwork, makeNamespaces, thisCaller } from './namespaces.ts';
import { settingsOf } from './settings.ts';

export interface Network {
  pid: number;
  /** The thread of the packets to the server. */
  toServerThread: number;
  server: ServerSide;
  /** `netns`: the path of its namespace; `enter` goes before a command that is to enter it. */
  client: { netns: string; enter: readonly string[] };
  /** All settings, with their problems. */
  settings: LinkReady['settings'];
  /** Settles when the link ends before stop() was called, with one line that says how. */
  died: Promise<string>;
  /** One question at a time. Throws as report(). */
  counts(): Promise<LinkCounts>;
  /** The same, and lateness begins anew. */
  mark(): Promise<LinkCounts>;
  /** Throws UserError, or Interrupted after a signal. */
  report(): Promise<LinkReport>;
  /** Ends the link, and with it devices and namespaces. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** Free: nothing else is in the server's namespace. */
const port = 8080;

const answerSeconds = 10;
/** The link itself gives up waiting for its rest after 10 s. */
const reportSeconds = 30;

/** So that packets leave on time. Takes root; where root may not, nice says so and goes on without. */
const firstNice = -15;

/**
 * Starts the link and returns once both namespaces have their settings. A setting that does not hold is in `settings`, and no error.
 * @param given `binary`: delaylink's path; `cores`: each direction's packets are carried on the cores of the side that receives them
 * @throws UserError when the link cannot be started or a file of settings not be read, Interrupted after a signal
 */
export async function openNetwork({
  binary,
  spec,
  cores: { serverCpus, generatorCpus },
  interrupt: { signal, guard },
}: {
  binary: string;
  spec: NetworkSpec;
  cores: Cores;
  interrupt: Interrupt;
}): Promise<Network> {
  const order: LinkOrder = {
    toServer: spec.toServer,
    toClient: spec.toClient,
    cpus: { toServer: serverCpus, toClient: generatorCpus },
    settings: await settingsOf(spec),
  };
  signal.throwIfAborted();
  const caller = thisCaller();
  const before = [
    ...(caller.uid === 0 ? ['nice', '-n', String(firstNice)] : []),
    ...makeNamespaces(caller),
  ];
  const child = await startChild({
    before,
    command: binary,
    args: [],
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const unguard = guard(child.pid);
  const { stdin, stdout, stderr } = child.process;
  if (stdin === null || stdout === null || stderr === null)
    throw new Error('the link has no pipes');
  let said = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2000);
  });
  // Its end is told by `ended`.
  stdin.on('error', () => undefined);
  const answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  let stopping: Promise<void> | undefined;
  const ended = once(child.process, 'close').then(([code, by]) => {
    const last = lastLine(said);
    return `the link (${binary}, pid ${child.pid}) ended ${by === null ? `with code ${code}` : `by ${by}`}${last === '' ? '' : `: ${last}`}`;
  });
  const died = new Promise<string>((resolve) => {
    void ended.then((line) => {
      if (stopping === undefined) resolve(line);
    });
  });

  /** Says a line to the link and returns its answer. */
  async function ask<T>(line: string, limitSeconds: number): Promise<T> {
    signal.throwIfAborted();
    const over = new AbortController();
    stdin?.write(`${line}\n`);
    try {
      return parsed<T>(
        await Promise.race([
          answers
            .next()
            .then(({ done, value }): string | Promise<never> =>
              done === true ? failed(ended) : value,
            ),
          failed(ended),
          once(signal, 'abort', { signal: over.signal }).then(
            () => signal.throwIfAborted() as never,
          ),
          failed(
            delay(limitSeconds * 1000, `the link did not answer within ${limitSeconds} s`, {
              signal: over.signal,
            }),
          ),
        ]),
      );
    } finally {
      over.abort();
    }
  }

  async function end(): Promise<void> {
    stdin?.end();
    await child.stop().catch(() => undefined); // It ended between the look and the signal.
    await ended;
    unguard();
  }
  const stop = (): Promise<void> => (stopping ??= end());

  try {
    // Where the kernel weighs sessions, the nice value counts only within the link's own.
    if (caller.uid === 0) await weighSession(child.pid, firstNice);
    const { server, client, settings, toServerThread } = await ask<LinkReady>(
      JSON.stringify(order),
      answerSeconds,
    );
    return {
      pid: child.pid,
      toServerThread,
      server: {
        address: server.address,
        port,
        enter: enterNetwork(caller, child.pid, server.netns),
      },
      client: { netns: client.netns, enter: enterAsMaker(caller, child.pid) },
      settings,
      died,
      counts: () => ask<LinkCounts>('counts', answerSeconds),
      mark: () => ask<LinkCounts>('mark', answerSeconds),
      report: () => ask<LinkReport>('report', reportSeconds),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Rejects with a UserError once the line is there. */
async function failed(line: Promise<string>): Promise<never> {
  throw new UserError(await line);
}

function parsed<T>(line: string): T {
  try {
    return JSON.parse(line) as T;
  } catch {
    throw new UserError(`the link says ${JSON.stringify(line.slice(0, 200))} instead of an answer`);
  }
}
