// --server-host: another host on which the servers run.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, realpathSync } from 'node:fs';
import { readdir, readlink, stat } from 'node:fs/promises';
import { connect as connectTo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { asWords, messageOf, UserError, usageError } from '../errors.ts';
import { runHere } from '../machine/locks.ts';
import type { Processors } from '../machine/processors.ts';
import { limited } from '../limited.ts';
import { machineClock } from '../machine/usage.ts';
import { folderFlags, ifThere, openFolder, readBytes, textOf } from '../files.ts';
import type { ServerHostFacts } from '../result/environment.ts';
import { shownCommand } from '../secrets.ts';
import type { ServerName, ServerSpec } from '../scenario/model.ts';
import { isConfigured } from '../scenario/variants.ts';
import { waitUntilReady, type RunningServer, type StartOptions } from '../servers/index.ts';
import { ownPortsText } from '../servers/ports.ts';
import type { HostedServer } from './hosted.ts';
import { clocksAhead, keepLimitMs, openAgent, type AnswerOf } from './agent-connection.ts';
import { measureLink } from './link.ts';
import { mostSampleBytes, watchMs, type SentFile } from './messages.ts';
import { addressesOf, usualLineBytes } from './ssh.ts';

export type ServerHost = Awaited<ReturnType<typeof openServerHost>>;

const startLimitMs = 120_000;

/** To a server that answers there. */
const reachLimitMs = 5000;

/**
 * Connects, and starts the agent there.
 * @throws UserError with the remedy
 */
export async function openServerHost(name: string) {
  const agent = await openAgent(name);
  const { address, processors, environment, files } = agent.facts;
  const sent = new Map<string, Promise<string>>();
  const sendNow = async (folder: string) => {
    const given = { files: await filesOf(folder, name), open: true };
    return agent.ask('keep', given, { limitMs: keepLimitMs });
  };
  const send = (folder: string) => {
    const there = sent.get(folder) ?? sendNow(folder);
    sent.set(folder, there);
    return there;
  };
  const sendFile = async (file: string) =>
    path.join(await send(path.dirname(file)), path.basename(file));
  let link: Promise<ServerHostFacts> | undefined;
  return {
    /** The name as given by the user. */
    name,
    address,
    bootId: environment.bootId,
    processors: { ...processors, quota: processors.quota ?? Infinity } as Processors,
    files,
    /** Its facts for the result; measures the link once. Throws UserError if its ports are not reached from here. */
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
      const config = await Promise.all(
        spec.config.map((file) => (path.isAbsolute(file) ? sendFile(file) : file)),
      );
      const { asIs } = spec;
      const own = asIs?.within ? { asIs: { ...asIs, within: await sendFile(asIs.within) } } : {};
      const { docroot } = options.page;
      const page =
        docroot !== undefined && path.isAbsolute(docroot)
          ? { ...options.page, docroot: await send(docroot) }
          : options.page;
      await agent.ask('alone', runHere(), { signal });
      const there = await agent.ask(
        'start',
        { spec: { ...spec, config, ...own }, options: { ...options, page } },
        { limitMs: startLimitMs, signal },
      );
      // The load goes to this address.
      if (new URL(there.origin).hostname !== address)
        throw new UserError(
          `${name} is at ${address}, and says that its server is at ${there.origin}: nothing else than the host is loaded`,
        );
      const server = hosted(there);
      try {
        await reached(server, { ...options, page }, signal);
      } catch (error) {
        await server.stop();
        throw error;
      }
      return server;
    },
    lost: agent.lost,
    close: () => agent.close(),
  };

  function facts(): Promise<ServerHostFacts> {
    return (link ??= factsOf());
  }

  function hosted({ id, ...server }: AnswerOf<'start'>): HostedServer {
    let stopping: Promise<void> | undefined;
    return {
      ...server,
      died: agent.died(id),
      stop: () => (stopping ??= agent.ask('stop', { server: id }).catch(() => undefined)),
      alarms: () => agent.ask('alarms', { server: id }),
      async watch() {
        const { monotonicMs: aheadMs } = await clocksAhead(agent);
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

  async function reached(
    { origin }: RunningServer,
    options: Pick<StartOptions, 'page' | 'protocol' | 'request' | 'tls'>,
    signal: AbortSignal,
  ) {
    const { hostname, port } = new URL(origin);
    const socket = connectTo({ host: hostname, port: Number(port) });
    try {
      await once(socket, 'connect', { signal: limited(signal, reachLimitMs) });
    } catch {
      signal.throwIfAborted();
      throw new UserError(
        `the server on ${name} answers there, and port ${port} of ${hostname} does not from here: ${await remedy()}`,
      );
    } finally {
      socket.destroy();
    }
    // Before the first request: another machine may have the address that a host says to have.
    await facts();
    const { page, protocol = 'http/1.1', request, tls } = options;
    await waitUntilReady({ origin, page, protocol, request, tls, anyLength: true }, signal);
  }

  async function factsOf(): Promise<ServerHostFacts> {
    const { cpuModel, cores, memoryBytes, kernel, os, governor, bootedAt, bootId } = environment;
    const machine = { cpuModel, cores, memoryBytes, kernel, os, governor, bootedAt, bootId };
    const token = randomUUID();
    const port = await agent.ask('echo', token);
    const measured = await measureLink({ address, port }, token).catch(async (error: Error) => {
      throw new UserError(
        `${name} is reached by ssh, and port ${port} of ${address} is not from here (${error.message}): ${await remedy()}`,
      );
    });
    return { name, address, ...machine, ...measured };
  }

  async function remedy() {
    const [known, ...others] = await addressesOf(name);
    if (known === undefined || [known, ...others].includes(address))
      return `open ports ${ownPortsText} in the firewall between`;
    return `${name} is ${known} here, so it is behind address translation, and no firewall's rule helps: reach it by a VPN, or by a name that stands for ${address} here`;
  }
}

/** Configs and pages are far smaller. */
const most = { files: 2000, megabytes: 20 };

const keys = ['.ssh', '.gnupg'];

/** Whether a folder is /, a temporary folder, or contains a home, by any name. */
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

/** Reads all files of a folder; links stay links. Throws UserError if it is too large, unreadable, contains a home or has keys in it. */
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
  /** Other users may change the folder meanwhile, so all is reached by descriptors, which lead nowhere else. */
  async function add(descriptor: number, inner: string): Promise<void> {
    try {
      const opened = `/proc/self/fd/${descriptor}`;
      for (const one of await readdir(opened, { withFileTypes: true })) {
        const file = path.join(opened, one.name);
        const name = path.join(inner, one.name);
        if (keys.includes(one.name))
          throw new UserError(
            `${folder} would be sent to ${host} with all that is in it, ${name} too: ${ownFolder}`,
          );
        count(1, 0);
        if (one.isDirectory()) await add(openSync(file, folderFlags), name);
        else if (one.isSymbolicLink()) files.push({ path: name, link: await readlink(file) });
        else if (one.isFile()) {
          const { size, mode } = await stat(file);
          count(0, size);
          const read = () => readBytes(file, mostBytes, { below: opened });
          const content = asWords(read, `${isSent}, and ${name} cannot be read: `, 1);
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
      asWords(() => openFolder(folder), unread, 1),
      '',
    );
  } catch (error) {
    throw error instanceof UserError ? error : new UserError(unread + messageOf(error));
  }
  return files;
}
