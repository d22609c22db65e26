// bakeoff's agent on another host. It starts servers for the bakeoff at the other end of ssh, and ends them when its stdin closes.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { UserError, messageOf, systemError } from '../../errors.ts';
import { machineClock, watchMachine, type MachineReading } from '../../machine/usage.ts';
import { readEnvironment } from '../../machine/cores.ts';
import { oneRunAtATime, type Run } from '../../machine/locks.ts';
import { cpusOf, readProcessors } from '../../machine/processors.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import { hardFilesLimit } from '../../servers/rights.ts';
import { alarmsIn } from '../../servers/lifecycle.ts';
import { versionsOf } from '../../servers/build.ts';
import {
  startServer,
  type RemoteSample,
  type StartedServer,
  type StartOptions,
} from '../../servers/index.ts';
import { freePort } from '../../servers/ports.ts';
import { temporaryFolder } from '../../servers/scratch.ts';
import { Progress, installVariable, thisMachine, useSafePath } from '../../setup/machine.ts';
import { projectRoot } from '../../setup/paths.ts';
import type { ServerName } from '../../setup/servers.ts';
import { ensureTools } from '../../setup/tools.ts';
import { greeting, patienceMs, watchMs, type Reply, type SentFile } from './messages.ts';

/** Files of server-configs/ by path, put in by the bundler. */
declare const shippedFiles: Readonly<Record<string, string>>;

const mostEchoMs = 20_000;

/** The time between readings of the server's cores. The kernel counts their use in ticks of 10 ms. */
const machineMs = 100;

interface Hosted {
  name: ServerName;
  server: StartedServer;
  machine: () => MachineReading;
  samples: RemoteSample[];
  timer?: NodeJS.Timeout;
}

const over = new AbortController();
const servers = new Map<number, Hosted>();
const pending = new Set<Promise<void>>();
/** Keeps other runs from measuring here. */
let lock: Promise<unknown> | undefined;
let count = 0;

for (const name of ['SIGINT', 'SIGHUP', 'SIGPIPE'] as const) process.on(name, () => undefined);
process.stdout.on('error', () => undefined);
// The server's user must be able to read its files.
process.umask(0o022);
useSafePath();
// A run may install only if its user allows it.
process.env[installVariable] = 'no';
writeShippedFiles();
const ownFolder = await temporaryFolder('bakeoff-agent-');
// Its contents have names that nobody can guess.
await chmod(ownFolder, 0o711);

interface Named {
  server: number;
}

export type Calls = typeof calls;

const calls = {
  /** `files`: the hard limit of open files of a process; `quota`: null without one. */
  facts: () => {
    const processors = readProcessors();
    const { cores, quota } = processors;
    const used = { serverCpus: cpusOf(cores), generatorCpus: [] };
    return {
      address: ownAddress(),
      processors: { cores, quota: quota === Infinity ? null : quota },
      environment: readEnvironment(processors, used, {}),
      files: hardFilesLimit(),
    };
  },
  /** Writes files below a new folder whose path nobody can guess; the server's user may enter it. */
  keep: (files: readonly SentFile[]) => {
    const folder = path.join(ownFolder, randomUUID());
    mkdirSync(folder, { mode: 0o711 });
    keepFiles(folder, files);
    return folder;
  },
  /** Finds servers, or installs them if allowed. */
  tools: async ({ names, mayInstall }: { names: readonly ServerName[]; mayInstall: boolean }) => {
    process.env[installVariable] = mayInstall ? 'yes' : 'no';
    const progress = new Progress({ write: (text) => say({ told: text }) });
    const machine = { ...thisMachine(), progress };
    const binaries: Partial<Record<ServerName, string>> = await ensureTools(
      names,
      machine,
      over.signal,
    );
    return { binaries, versions: await versionsOf(binaries, over.signal) };
  },
  /** Keeps other runs from measuring on the host until the agent ends. */
  alone: async (run: Run) => {
    await (lock ??= oneRunAtATime({ run }).catch((error: unknown) => {
      lock = undefined;
      throw error;
    }));
  },
  start: async (given: {
    spec: ConfiguredServer;
    options: Omit<StartOptions, 'signal' | 'folder' | 'address'>;
  }) => {
    const { spec, options } = given;
    const id = ++count;
    const folder = path.join(ownFolder, `server-${id}`);
    mkdirSync(folder, { mode: 0o700 });
    const localOptions = { folder, address: ownAddress(), signal: over.signal };
    const server = await startServer(spec, { ...options, ...localOptions });
    const machine = watchMachine(options.cpus, []);
    servers.set(id, { name: spec.name, server, samples: [], machine });
    void server.died.then((how) => say({ died: id, how }));
    const { name, version, origin, workers, redirections, upstreams, runsCode, answer } = server;
    const about = { name, version, origin, workers, redirections, upstreams, runsCode };
    return { id, ...about, answer };
  },
  stop: async ({ server: id }: Named) => {
    const hosted = servers.get(id);
    if (hosted === undefined) return;
    await endHosted(hosted);
    servers.delete(id);
    rmSync(path.join(ownFolder, `server-${id}`), { recursive: true, force: true });
  },
  /** Starts sampling a server's use. */
  watch: ({ server: id }: Named) => {
    const hosted = hostedBy(id);
    let machineAtMs = -Infinity;
    const take = () => {
      const atMs = machineClock.monotonicMs();
      const sample: RemoteSample = { atMs, ...hosted.server.usage() };
      if (atMs - machineAtMs >= machineMs) {
        machineAtMs = atMs;
        sample.machine = hosted.machine();
      }
      hosted.samples.push(sample);
    };
    hosted.samples = [];
    take();
    hosted.timer = setInterval(take, watchMs);
  },
  /** Ends that and returns the samples, by the agent's monotonic clock. */
  watched: ({ server: id }: Named) => {
    const { samples, timer, server, machine } = hostedBy(id);
    clearInterval(timer);
    samples.push({ atMs: machineClock.monotonicMs(), ...server.usage(), machine: machine() });
    return samples;
  },
  alarms: ({ server: id }: Named) => {
    const { server, name } = hostedBy(id);
    return alarmsIn(server.logFile, name);
  },
  clock: () => machineClock.monotonicMs(),
  echo: openEcho,
};

function hostedBy(id: number): Hosted {
  const hosted = servers.get(id);
  if (hosted === undefined) throw new Error(`there is no server ${id}`);
  return hosted;
}

interface Question {
  id: number;
  name: keyof Calls;
  given: never;
}

async function answer({ id, name, given }: Question): Promise<void> {
  try {
    const answer: unknown = await calls[name](given);
    say({ id, answer });
  } catch (error) {
    const exitCode = error instanceof UserError ? error.exitCode : undefined;
    say({ id, problem: messageOf(error), exitCode });
  }
}

async function end(): Promise<void> {
  over.abort(new UserError('the agent ends'));
  // Starts and installations under way end in order.
  await Promise.allSettled(pending);
  await Promise.all([...servers.values()].map(endHosted));
  rmSync(ownFolder, { recursive: true, force: true });
}

async function endHosted({ server, timer }: Hosted): Promise<void> {
  clearInterval(timer);
  await server.stop();
}

function keepFiles(folder: string, files: readonly SentFile[]): void {
  for (const sent of files) {
    const file = path.join(folder, sent.path);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 });
    if ('link' in sent) symlinkSync(sent.link, file);
    else writeFileSync(file, Buffer.from(sent.base64, 'base64'), { mode: sent.mode });
  }
}

function say(reply: Reply): void {
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}

function ownAddress(): string {
  const address = process.env.SSH_CONNECTION?.split(' ')[2] ?? '';
  if (address.startsWith('127.'))
    throw new UserError(
      `the connection came to ${address} there: name an address of the host that others reach it at`,
    );
  if (/^\d+(\.\d+){3}$/.test(address)) return address;
  if (address === '')
    throw new UserError('the connection does not say to which address it came (SSH_CONNECTION)');
  throw new UserError(`the connection came to ${address}: name an IPv4 address of the host`);
}

/** Opens an echo for a single connection, to measure the link: sends `token`, then what it receives. Returns its port. */
async function openEcho(token: string): Promise<number> {
  const server = createServer((socket) => {
    socket.setNoDelay(true).on('error', () => undefined);
    socket.write(token);
    socket.pipe(socket);
    server.close();
    setTimeout(() => socket.destroy(), mostEchoMs).unref();
  });
  setTimeout(() => server.close(), mostEchoMs).unref();
  const address = ownAddress();
  const port = await freePort(address);
  await once(server.listen(port, address), 'listening');
  return port;
}

/** Moved into place at once: other agents may use these files. */
function writeShippedFiles(): void {
  if (existsSync(path.join(projectRoot, 'server-configs'))) return;
  const folder = `${projectRoot}/.${process.pid}`;
  keepFiles(
    folder,
    Object.entries(shippedFiles).map(([name, base64]) => ({ path: name, mode: 0o644, base64 })),
  );
  try {
    renameSync(path.join(folder, 'server-configs'), path.join(projectRoot, 'server-configs'));
  } catch (error) {
    // Another agent was faster.
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemError(error).code ?? '')) throw error;
  }
  rmSync(folder, { recursive: true, force: true });
}

const input = createInterface({ input: process.stdin });
let silent: NodeJS.Timeout | undefined;
const heard = (): void => {
  clearTimeout(silent);
  silent = setTimeout(() => input.close(), patienceMs);
};
heard();
// A long line may take its time.
process.stdin.on('data', heard);
input.on('line', (line) => {
  if (line === '') return;
  const answering = answer(JSON.parse(line) as Question).finally(() => pending.delete(answering));
  pending.add(answering);
});
process.on('SIGTERM', () => input.close());
process.stdout.write(`${greeting}\n`);
await once(input, 'close');
await end();
process.exit(0);
