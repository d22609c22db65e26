// A network of the run's own: two namespaces joined by a link, held by one process (delaylink).
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { startChild, weighSession, type Interrupt } from '../process.ts';
import type { Cores } from '../machine/cores.ts';
import type { KernelSetting, NetworkUse } from '../result/result.ts';
import type { LinkDirection, NetworkSpec } from '../scenario/model.ts';
import { readLayers, type ConfigLayer } from '../servers/config-layers.ts';
import type { ServerSide } from '../servers/server.ts';
import { lastLine } from '../setup/run.ts';
import { enterAsMaker, enterNetwork, makeNamespaces, thisCaller } from './namespaces.ts';

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

/** The settings of both sides, each once: the last of several lines or files holds. Throws UserError for a wrong file or line. */
export async function settingsOf({
  serverSettings,
  clientSettings,
}: NetworkSpec): Promise<SettingOrder[]> {
  return [
    ...(await settingsOfSide('server', serverSettings)),
    ...(await settingsOfSide('client', clientSettings)),
  ];
}

async function settingsOfSide(
  side: SettingOrder['side'],
  files: readonly string[],
): Promise<SettingOrder[]> {
  const layers = await readLayers('sysctl', files);
  const values = new Map(layers.flatMap((layer) => readSettings(layer)));
  return [...values].map(([name, value]) => ({ side, name, value }));
}

/**
 * Name and value of each line of sysctl.conf(5). A `-` before a name is ignored: settings may fail, and are named then. Throws UserError
 * for any other line.
 */
export function readSettings({ origin, text }: ConfigLayer): [name: string, value: string][] {
  return text.split('\n').flatMap((raw, index): [string, string][] => {
    const line = raw.trim();
    if (line === '' || /^[#;]/.test(line)) return [];
    const [, name, value] = /^-?\s*([\w./-]+)\s*=\s*(\S.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined || !settingName.test(dotted(name)))
      throw new UserError(
        `${origin}, line ${index + 1}: "${line}" is no kernel setting: write name = value, e.g. net.core.somaxconn = 128`,
      );
    return [[dotted(name), value]];
  });
}

/** At least two parts, none of them empty: the link makes a path below /proc/sys of it. */
const settingName = /^[\w-]+(\/[\w-]+)*(\.[\w-]+(\/[\w-]+)*)+$/;

/** After a first slash, dots are parts of names, such as eth0.1. */
function dotted(name: string): string {
  if (/[./]/.exec(name)?.[0] !== '/') return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}

export interface LinkOrder {
  toServer: LinkDirection;
  toClient: LinkDirection;
  /** The cores of each direction's packets; absent: all that the process may use. */
  cpus?: { toServer: readonly number[]; toClient: readonly number[] };
  settings: SettingOrder[];
}

/** A kernel setting of one side's namespace, in sysctl's notation. They are written in order, before anything else runs there. */
export type SettingOrder = Pick<KernelSetting, 'side' | 'name' | 'value'>;

export interface LinkReady {
  server: SideReady;
  client: SideReady;
  /** One per order, in order. */
  settings: Omit<KernelSetting, 'variants'>[];
  /** The thread of the packets to the server. */
  toServerThread: number;
}

export interface SideReady {
  /** The path of its network namespace, for setns and nsenter; it is there as long as delaylink runs. */
  netns: string;
  /** IPv4. */
  address: string;
}

/** The use since the last report, or the start, while packets may be on their way. */
export interface LinkCounts extends NetworkUse {
  /** Milliseconds of CLOCK_MONOTONIC, as the engine's `monotonicMs`. */
  atMs: number;
}

/**
 * The use since the last report, or the start, once the link is empty and nothing has come for a round trip, or after 10 s without that
 * (then `quiet` is false).
 */
export interface LinkReport extends NetworkUse {
  quiet: boolean;
  /** Packets that the devices themselves dropped, on both sides: 0 unless something is wrong here. */
  deviceDrops: number;
}
