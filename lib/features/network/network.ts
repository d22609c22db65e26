// An emulated network: two namespaces joined by a link. The process delaylink makes both; without root it does so in a user namespace.
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { helper, helperIfThere } from '../../../bin/trust.mjs';
import { UserError, systemError, messageOf } from '../../errors.ts';
import type { Cores } from '../../machine/cores.ts';
import { startChild, prioritise, lastLine, pipesOf, run, type Before } from '../../process.ts';
import type { NetworkUse } from '../../result/network-use.ts';
import type { KernelSetting } from '../../result/result.ts';
import type { NetworkSpec } from '../../scenario/model.ts';
import { readLayers, type Layer } from '../../servers/config-files.ts';
import type { ServerSide } from '../../servers/server.ts';

type SettingOrder = Pick<KernelSetting, 'side' | 'name' | 'value'>;

/** `netns`: the path of a network namespace, as long as delaylink runs. */
interface LinkReady {
  /** `address`: IPv4. */
  server: { netns: string; address: string };
  client: { netns: string };
  settings: Omit<KernelSetting, 'variants'>[];
  /** The thread of the packets to the server. */
  toServerThread: number;
}

/** The use since the last report; some packets may still be on their way. `atMs`: CLOCK_MONOTONIC. */
export interface LinkCounts extends NetworkUse {
  atMs: number;
}

/** The use since the last report, taken once the link was empty for a round trip; `quiet` is false if that did not happen within 10 s. */
export interface LinkReport extends NetworkUse {
  quiet: boolean;
  /** Packets that the devices of both sides dropped; should be 0. */
  deviceDrops: number;
}

export type Network = Awaited<ReturnType<typeof openNetwork>>;

/** Free, because nothing else is in the server's namespace. */
const port = 8080;
const answerSeconds = 10;
/** The link itself waits 10 s at most to be empty. */
const reportSeconds = 30;
/** The highest priority, before servers and k6, so that packets leave on time. Needs root. */
const linkNice = -20;

/**
 * Starts the link and returns once both namespaces have their settings; `settings` says which ones failed.
 * @param binary delaylink's path
 * @throws UserError if the link does not start or a settings file cannot be read, Interrupted after a signal
 */
export async function openNetwork(options: {
  binary: string;
  spec: NetworkSpec;
  /** The packets that are lost depend on it. */
  seed: number;
  cores: Cores;
  signal: AbortSignal;
}) {
  const { binary, spec, seed, cores, signal } = options;
  const { toServer, toClient } = spec;
  const cpus = { toServer: cores.serverCpus, toClient: cores.generatorCpus };
  const order = { toServer, toClient, cpus, settings: await settingsOf(spec), seed };
  signal.throwIfAborted();
  const caller = thisCaller();
  const nice: Before[] = caller.uid === 0 ? [['nice', '-n', String(linkNice)]] : [];
  const child = await startChild({
    before: [...nice, ...makeNamespaces(caller)],
    command: binary,
    args: [],
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { stdin, stdout, end } = pipesOf(child);
  const answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const ended = end.then(({ how, last }) => {
    const line = `the link (${binary}, pid ${child.pid}) ended ${how}`;
    return last === '' ? line : `${line}: ${last}`;
  });
  const link: Link = { stdin, answers, ended, signal };
  let stopping: Promise<void> | undefined;
  const died = new Promise<string>((resolve) => {
    void ended.then((line) => {
      if (stopping === undefined) resolve(line);
    });
  });

  const stop = () =>
    (stopping ??= (async () => {
      stdin.end();
      await child.stop().catch(() => undefined);
      await ended;
    })());

  try {
    // The prefix alone does not change the session's.
    if (caller.uid === 0) await prioritise(child.pid, linkNice);
    const {
      server: { address, netns },
      client,
      ...ready
    } = await askLink<LinkReady>(link, JSON.stringify(order));
    const { pid } = child;
    const server: ServerSide = { address, port, enter: enterNetwork(caller, pid, netns) };
    return {
      ...ready,
      pid,
      server,
      /** `enter` goes before a command that opens sockets there. */
      client: { netns: client.netns, enter: enterAsMaker(caller, pid) },
      /** Settles if the link ends before stop() is called, with a line that says how. */
      died,
      /**
       * Returns the use now. Must not run while another call waits for the link's answer. Throws UserError, or Interrupted after a
       * signal.
       */
      counts: () => askLink<LinkCounts>(link, 'counts'),
      /** The same, and the lateness restarts. */
      mark: () => askLink<LinkCounts>(link, 'mark'),
      report: () => askLink<LinkReport>(link, 'report', reportSeconds),
      /** Ends the link with its devices and namespaces. Never throws; may be called twice. */
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A running delaylink (xk6-loadgen/cmd/delaylink). It ends with its input. */
interface Link {
  stdin: Writable;
  answers: AsyncIterator<string>;
  /** Settles with a line that says how it ended. */
  ended: Promise<string>;
  /** The run's signal. */
  signal: AbortSignal;
}

/** delaylink answers each line in JSON. Throws UserError, or the signal's reason. */
async function askLink<T>(
  { stdin, answers, ended, signal }: Link,
  line: string,
  limitSeconds = answerSeconds,
): Promise<T> {
  signal.throwIfAborted();
  const over = new AbortController();
  const whileAsked = { signal: over.signal };
  const late = `the link did not answer within ${limitSeconds} s`;
  stdin.write(`${line}\n`);
  try {
    const answer = await Promise.race([
      answers.next().then(({ done, value }) => (done === true ? failed(ended) : value)),
      failed(ended),
      once(signal, 'abort', whileAsked),
      failed(delay(limitSeconds * 1000, late, whileAsked)),
    ]);
    signal.throwIfAborted();
    return parsed<T>(String(answer));
  } finally {
    over.abort();
  }
}

function parsed<T>(answer: string): T {
  try {
    return JSON.parse(answer) as T;
  } catch {
    throw new UserError(
      `the link says ${JSON.stringify(answer.slice(0, 200))} instead of an answer`,
    );
  }
}

async function failed(line: Promise<string>): Promise<never> {
  throw new UserError(await line);
}

/** Reads the kernel settings of both sides; the last value of a name applies. Throws UserError for a wrong file or line. */
export async function settingsOf(spec: NetworkSpec): Promise<SettingOrder[]> {
  const orders: SettingOrder[] = [];
  for (const side of ['server', 'client'] as const) {
    const layers = await readLayers('sysctl', spec[`${side}Settings`]);
    const values = new Map(layers.flatMap((layer) => readSettings(layer)));
    for (const [name, value] of values) orders.push({ side, name, value });
  }
  return orders;
}

/**
 * Returns name and value of each line of sysctl.conf(5). Its `-`, which lets a setting fail, has no effect: each may fail. Throws
 * UserError for any other line.
 */
export function readSettings({ file, text, origin = file }: Layer): [string, string][] {
  return text.split('\n').flatMap((raw, index): [string, string][] => {
    const line = raw.trim();
    if (line === '' || /^[#;]/.test(line)) return [];
    const [, name, value] = /^-?\s*([\w./-]+)\s*=\s*(\S.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined || !settingName.test(dotted(name)))
      throw new UserError(
        `${origin}, line ${index + 1}: "${line}" is not a kernel setting: write name = value, e.g. net.core.somaxconn = 128`,
      );
    return [[dotted(name), value]];
  });
}

/** At least two parts: the link makes a path below /proc/sys of the name. */
const settingName = /^[\w-]+(\/[\w-]+)*(\.[\w-]+(\/[\w-]+)*)+$/;

/** In a name with slashes first, dots belong to the parts, such as eth0.1. */
function dotted(name: string): string {
  if (/[./]/.exec(name)?.[0] !== '/') return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}

type Caller = ReturnType<typeof thisCaller>;

export function thisCaller() {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

/** Returns the command prefix for a program that makes network namespaces. The program keeps its process id. */
function makeNamespaces({ uid }: Caller): readonly Before[] {
  return uid === 0 ? [] : [['unshare', '--user', '--map-root-user', '--']];
}

/** Returns the command prefix that runs a command in the namespace of process `maker`. The command keeps its process id and user. */
export function enterNetwork(caller: Caller, maker: number, netns: string): Before[] {
  const { uid, gid } = caller;
  if (uid === 0) return [['nsenter', `--net=${netns}`, '--']];
  // As root of the user namespace, the server would try to become nobody, and cannot.
  const asItself: Before = ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--'];
  return [...enterAsMaker(caller, maker, `--net=${netns}`), asItself];
}

/** Returns the command prefix for a program that opens sockets in the maker's namespaces; empty for root. */
function enterAsMaker({ uid }: Caller, maker: number, ...more: string[]): Before[] {
  // Without --preserve-credentials, nsenter would change the groups, which fails in this user namespace.
  const user = ['--preserve-credentials', `--user=/proc/${maker}/ns/user`];
  return uid === 0 ? [] : [['nsenter', ...user, ...more, '--']];
}

/** Throws UserError if this machine does not allow networks, or the signal's reason. */
export async function requireNetworks(caller: Caller, signal: AbortSignal): Promise<void> {
  const problem = (await noNamespaces(caller, signal)) ?? (await noTun(caller));
  if (problem !== undefined)
    throw new UserError(`a network of the run's own cannot be made: ${problem}`);
}

async function noNamespaces(caller: Caller, signal: AbortSignal): Promise<string | undefined> {
  for (const command of ['unshare', 'nsenter'])
    if (helperIfThere(command) === undefined) return `${command} is missing: install util-linux`;
  const { code, stderr } = await run({
    before: makeNamespaces(caller),
    command: 'unshare',
    args: ['--net', helper('true')],
    signal,
  });
  return code === 0 ? undefined : refusedNamespaces(caller, stderr);
}

/** Says what to do if unshare has refused a namespace, in words after a colon. */
export function refusedNamespaces(caller: Caller, stderr: string): string {
  const refusal = lastLine(stderr).replace(/^unshare: /, '');
  if (caller.uid === 0)
    return `network namespaces are not allowed here (${refusal}): a container has to be started with --privileged, or as the head of docker/Dockerfile says`;
  return (
    `namespaces are not allowed to this user (${refusal}): start as root, or have root allow user namespaces, by the settings that ` +
    'this kernel has of user.max_user_namespaces, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0'
  );
}

async function noTun({ uid }: Caller): Promise<string | undefined> {
  const device = '/dev/net/tun';
  try {
    await (await open(device, 'r+')).close();
    return undefined;
  } catch (error) {
    const { code } = systemError(error);
    if (code === 'ENOENT' || code === 'ENODEV')
      return `there is no ${device} (${code}): as root "modprobe tun"; a container has to be started with --device ${device}`;
    if (uid !== 0 && code === 'EACCES')
      return `${device} is closed to this user: start as root, or open it as root with "chmod 666 ${device}"`;
    return `${device} cannot be opened (${messageOf(error)})`;
  }
}
