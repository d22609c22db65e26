// --server-host: another host on which the servers run.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, realpathSync } from 'node:fs';
import { readdir, readlink, stat } from 'node:fs/promises';
import { connect as connectTo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { prefixed, messageOf, UserError, usageError } from '../../errors.ts';
import { localRun } from '../../machine/locks.ts';
import { type Processors, cpusOf, readProcessors } from '../../machine/processors.ts';
import type { ServerName } from '../../setup/servers.ts';
import { limited } from '../../signals.ts';
import { machineClock } from '../../machine/usage.ts';
import { folderFlags, ifThere, openFolder, readBytes, textOf } from '../../files.ts';
import type { ServerHostFacts } from '../../result/environment.ts';
import { shownCommand } from '../../secrets.ts';
import type { ConfiguredServer, Page, ServerSpec } from '../../scenario/model.ts';
import { isConfigured } from '../../scenario/variants.ts';
import { waitUntilReady, type RemoteServer, type StartOptions } from '../../servers/index.ts';
import { ownPortsText } from '../../servers/ports.ts';
import { clockAheadMs, keepLimitMs, openAgent, type AnswerOf } from './agent-connection.ts';
import { measureLink } from './link.ts';
import { mostSampleBytes, watchMs, type SentFile } from './messages.ts';
import { addressesOf, usualLineBytes } from './ssh.ts';
import { requireCpus, usableCpus, type AskedCores, type Cores } from '../../machine/cores.ts';
import type { Machines } from '../../runner/machines.ts';

const startLimitMs = 120_000;

/** The time limit for reaching a server that already answers on the host itself. */
const reachLimitMs = 5000;

type Agent = Awaited<ReturnType<typeof openAgent>>;

/**
 * Connects, and starts the agent there.
 * @throws UserError with the remedy
 */
export async function openServerHost(name: string) {
  const agent = await openAgent(name);
  const { address, processors, files } = agent.facts;
  const sent = new SentFolders(agent, name);
  let measured: Promise<ServerHostFacts> | undefined;
  const facts = () => (measured ??= measuredFacts(agent, name));
  return {
    /** The name as given by the user. */
    name,
    address,
    processors: { ...processors, quota: processors.quota ?? Infinity } as Processors,
    files,
    /** Returns the host's facts for the result; measures the link once. Throws UserError if its ports cannot be reached from here. */
    facts,
    /** Finds servers there, or installs them if allowed. Throws UserError. */
    tools: (names: readonly ServerName[], mayInstall: boolean, signal: AbortSignal) =>
      agent.ask(
        'tools',
        { names, mayInstall },
        { limitMs: mayInstall ? Infinity : startLimitMs, signal },
      ),
    /** Like startServer, on the host. Sends the user's files. The agent chooses `folder` and `address`. */
    async start(
      spec: ServerSpec,
      {
        signal = new AbortController().signal,
        folder: _folder,
        address: _address,
        ...options
      }: StartOptions,
    ) {
      signal.throwIfAborted();
      if (!isConfigured(spec))
        throw usageError(
          `on ${name} only configs can be started: start ${spec.name === 'command' ? `'${shownCommand(spec.command)}'` : 'it'} there, and compare its address (http://${address}:PORT/ with --host ${address}) without --server-host`,
        );
      const remoteSpec = await sent.spec(spec);
      const page = await sent.page(options.page);
      await agent.ask('alone', localRun(), { signal });
      const started = await agent.ask(
        'start',
        { spec: remoteSpec, options: { ...options, page } },
        { limitMs: startLimitMs, signal },
      );
      // The load goes to this address.
      if (new URL(started.origin).hostname !== address)
        throw new UserError(
          `${name} is at ${address}, and says that its server is at ${started.origin}: nothing else than the host is loaded`,
        );
      const server = hostedServer(agent, started);
      try {
        await requireReached(server.origin, name, address, signal);
        // The facts come before the first request: they check that the address that the host claims is not another machine's.
        await facts();
        const load = { protocol: 'http/1.1' as const, ...options.load };
        const check = { origin: server.origin, page, load, anyLength: true } as const;
        await waitUntilReady(check, signal);
      } catch (error) {
        await server.stop();
        throw error;
      }
      return server;
    },
    lost: agent.lost,
    close: () => agent.close(),
  };
}

/** The user's folders on the host, each sent once. */
class SentFolders {
  readonly #agent: Agent;
  readonly #host: string;
  /** Paths there, by paths here. */
  readonly #remote = new Map<string, Promise<string>>();

  constructor(agent: Agent, host: string) {
    this.#agent = agent;
    this.#host = host;
  }

  /** The spec with paths there, for which it sends the folders of the config's files. */
  async spec(spec: ConfiguredServer): Promise<ConfiguredServer> {
    const config = await Promise.all(
      spec.config.map((file) => (path.isAbsolute(file) ? this.#file(file) : file)),
    );
    const { asIs } = spec;
    if (asIs?.within === undefined) return { ...spec, config };
    return { ...spec, config, asIs: { ...asIs, within: await this.#file(asIs.within) } };
  }

  /** The page with the path of its folder there. */
  async page(page: Page): Promise<Page> {
    const { docroot } = page;
    if (docroot === undefined || !path.isAbsolute(docroot)) return page;
    return { ...page, docroot: await this.#folder(docroot) };
  }

  async #file(file: string): Promise<string> {
    return path.join(await this.#folder(path.dirname(file)), path.basename(file));
  }

  #folder(folder: string): Promise<string> {
    const known = this.#remote.get(folder);
    if (known !== undefined) return known;
    const sending = this.#send(folder);
    this.#remote.set(folder, sending);
    return sending;
  }

  async #send(folder: string): Promise<string> {
    const files = await filesOf(folder, this.#host);
    return this.#agent.ask('keep', files, { limitMs: keepLimitMs });
  }
}

function hostedServer(agent: Agent, { id, ...server }: AnswerOf<'start'>): RemoteServer {
  let stopping: Promise<void> | undefined;
  return {
    ...server,
    died: agent.died(id),
    stop: () => (stopping ??= agent.ask('stop', { server: id }).catch(() => undefined)),
    alarms: () => agent.ask('alarms', { server: id }),
    async watch() {
      const aheadMs = await clockAheadMs(agent);
      await agent.ask('watch', { server: id });
      const beganMs = machineClock.monotonicMs();
      return async () => {
        const tookMs = machineClock.monotonicMs() - beganMs;
        const mostBytes = usualLineBytes + (tookMs / watchMs) * mostSampleBytes;
        const samples = await agent.ask('watched', { server: id }, { mostBytes });
        return samples.map((sample) => ({ ...sample, atMs: sample.atMs - aheadMs }));
      };
    },
  };
}

/**
 * Checks that the server's port can be reached.
 * @throws UserError with the remedy if it cannot, or the signal's reason
 */
async function requireReached(
  origin: string,
  name: string,
  address: string,
  signal: AbortSignal,
): Promise<void> {
  const { hostname, port } = new URL(origin);
  const socket = connectTo({ host: hostname, port: Number(port) });
  try {
    await once(socket, 'connect', { signal: limited(signal, reachLimitMs) });
  } catch {
    signal.throwIfAborted();
    throw new UserError(
      `the server on ${name} answers there, and port ${port} of ${hostname} does not from here: ${await remedy(name, address)}`,
    );
  } finally {
    socket.destroy();
  }
}

/**
 * Returns the host's facts, with those of the link to it.
 * @throws UserError with the remedy if its ports cannot be reached from here
 */
async function measuredFacts(agent: Agent, name: string): Promise<ServerHostFacts> {
  const { address, environment } = agent.facts;
  const { cpuModel, cores, memoryBytes, kernel, os, governor, bootedAt, bootId } = environment;
  const machine = { cpuModel, cores, memoryBytes, kernel, os, governor, bootedAt, bootId };
  const token = randomUUID();
  const port = await agent.ask('echo', token);
  const measured = await measureLink({ address, port }, token).catch(async (error: Error) => {
    throw new UserError(
      `${name} is reached by ssh, and port ${port} of ${address} is not from here (${error.message}): ${await remedy(name, address)}`,
    );
  });
  return { name, address, ...machine, ...measured };
}

async function remedy(name: string, address: string): Promise<string> {
  const [known, ...others] = await addressesOf(name);
  if (known === undefined || [known, ...others].includes(address))
    return `open ports ${ownPortsText} in the firewall between`;
  return `${name} is ${known} here, so it is behind address translation, and no firewall's rule helps: reach it by a VPN, or by a name that stands for ${address} here`;
}

/** Configs and pages are far smaller. */
const most = { files: 2000, megabytes: 20 };

const keys = ['.ssh', '.gnupg'];

/** Returns whether a folder is /, a temporary folder, or contains a home, by any name. */
function isOfMany(folder: string): boolean {
  const real = (name: string) =>
    name.startsWith('/') ? (ifThere(() => [realpathSync(name)]) ?? []) : [];
  // The home of a service's user has the service's files.
  const users = textOf('/etc/passwd').matchAll(/^(?!.*\/(?:nologin|false)$).*:(.*):.*$/gm);
  const homes = [homedir(), ...[...users].map(([, home = '']) => home)].flatMap(real);
  return real(folder).some(
    (place) =>
      [tmpdir(), '/tmp', '/'].flatMap(real).includes(place) ||
      homes.some((home) => `${home}/`.startsWith(`${place}/`)),
  );
}

/**
 * Reads all files of a folder; links stay links. Throws UserError for a folder that is too large or unreadable, or that contains a home
 * or keys.
 */
export async function filesOf(folder: string, host: string): Promise<SentFile[]> {
  const ownFolder = 'put the config and what it needs into a folder of its own';
  if (isOfMany(folder))
    throw new UserError(`${folder} would be sent to ${host} with all that is in it: ${ownFolder}`);
  const files: SentFile[] = [];
  const isSent = `${folder} is sent to ${host} with all that is in it`;
  const mostBytes = most.megabytes * 1e6;
  let [entries, bytes] = [0, 0];
  const count = (moreEntries: number, moreBytes: number) => {
    entries += moreEntries;
    bytes += moreBytes;
    if (entries <= most.files && bytes <= mostBytes) return;
    throw new UserError(
      `${isSent}, which is more than ${most.files} files or ${most.megabytes} MB: ${ownFolder}`,
    );
  };
  /** Other users may change the folder meanwhile, so all files are reached by descriptors, which cannot lead elsewhere. */
  async function add(descriptor: number, inner: string): Promise<void> {
    try {
      const opened = `/proc/self/fd/${descriptor}`;
      for (const entry of await readdir(opened, { withFileTypes: true })) {
        const file = path.join(opened, entry.name);
        const name = path.join(inner, entry.name);
        if (keys.includes(entry.name))
          throw new UserError(
            `${folder} would be sent to ${host} with all that is in it, ${name} too: ${ownFolder}`,
          );
        count(1, 0);
        if (entry.isDirectory()) await add(openSync(file, folderFlags), name);
        else if (entry.isSymbolicLink()) files.push({ path: name, link: await readlink(file) });
        else if (entry.isFile()) {
          const { size, mode } = await stat(file);
          count(0, size);
          const read = () => readBytes(file, mostBytes, { below: opened });
          const content = prefixed(read, `${isSent}, and ${name} cannot be read: `, 1);
          // It may have grown.
          count(0, content.length - size);
          files.push({ path: name, mode: mode & 0o777, base64: content.toString('base64') });
        }
      }
    } finally {
      closeSync(descriptor);
    }
  }
  const unread = `${isSent}, and cannot be read: `;
  try {
    await add(
      prefixed(() => openFolder(folder), unread, 1),
      '',
    );
  } catch (error) {
    throw error instanceof UserError ? error : new UserError(unread + messageOf(error));
  }
  return files;
}

/**
 * Connects to a host: servers start there, and this machine makes the load.
 * @param mayInstall whether servers may be installed there
 * @throws UserError if the host cannot be used
 */
export async function openHost(
  name: string,
  mayInstall: boolean,
  asked: AskedCores,
): Promise<Machines> {
  const host = await openServerHost(name);
  try {
    return {
      cores: coresOfTwo(readProcessors(), host, asked),
      neededLocally: () => [],
      tools: (servers, _here, signal) => host.tools(servers, mayInstall, signal),
      start: host.start,
      facts: async () => ({ serverHost: await host.facts() }),
      lost: host.lost,
      close: host.close,
    };
  } catch (error) {
    await host.close();
    throw error;
  }
}

/** Returns the cores of a run with servers on another host: the cores that were asked for, or all. Throws UserError for missing cores. */
export function coresOfTwo(
  local: Processors,
  remote: { name: string; processors: Processors; files: number },
  asked: AskedCores,
): Cores {
  requireCpus(cpusOf(remote.processors.cores), asked.server, `--server-cpus on ${remote.name}`);
  requireCpus(cpusOf(local.cores), asked.generator, '--generator-cpus');
  return {
    serverCpus: [...(asked.server ?? usableCpus(remote.processors))],
    generatorCpus: [...(asked.generator ?? usableCpus(local))],
    serverHost: remote.name,
    serverFiles: { host: remote.name, most: remote.files },
  };
}
