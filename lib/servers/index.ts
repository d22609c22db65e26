// Starts a variant's server: a known one with its config, a command, or none at an address.
import { mkdir, stat } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import { startLogged } from '../process.ts';
import { boundLog, lastLines } from '../program-logs.ts';
import type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  ServerSpec,
} from '../scenario/model.ts';
import { isConfigured, programOf } from '../scenario/variants.ts';
import { openCgroup } from './cgroup.ts';
import type { MachineReading } from '../machine/usage.ts';
import { watchLifecycle, whileItRuns, type LogAlarms } from './lifecycle.ts';
import {
  freePort,
  listeningOf,
  loopbackAddress,
  portProblem,
  requireLoopback,
  untilItListens,
  type Address,
} from './ports.ts';
import { prepareCommand, prepareConfigured } from './prepare.ts';
import { waitUntilReady, waitUntilReadyInside, commandBegan } from './ready.ts';
import { limiting, unprivilegedUser } from './rights.ts';
import { makeScratch, type Scratch } from './scratch.ts';
import type { Prepared, RunningServer, StartedServer, StartOptions } from './server.ts';
import { watchUsage, type ServerSample, type TreeUsage } from './usage.ts';

export { serverBuild } from './build.ts';
export { serverKinds } from './kinds.ts';
export { readOwnConfig } from './own/own-config.ts';
export { readStub, type Listen, type OwnConfig } from './own/redirect.ts';
export { isLoopback } from './ports.ts';
export { answerOfAll, waitUntilReady } from './ready.ts';
export {
  isStarted,
  isWatched,
  type Answer,
  type Build,
  type RunningServer,
  type StartedServer,
  type StartOptions,
} from './server.ts';

/**
 * Starts the server, unless it is an address, and returns once it serves the page. Throws UserError or the signal's reason; then nothing is
 * left behind.
 */
export function startServer(
  spec: ConfiguredServer | CommandServer,
  options: StartOptions,
): Promise<StartedServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
export async function startServer(
  spec: ServerSpec,
  { signal = new AbortController().signal, ...given }: StartOptions,
): Promise<RunningServer> {
  const options = { ...given, signal };
  if (spec.name === 'address') return openAddress(spec, options);
  await mkdir(options.folder, { recursive: true });
  const at = await addressOf(spec, options);
  const user = isConfigured(spec) ? unprivilegedUser() : undefined;
  const scratch = await makeScratch(user, programOf(spec));
  try {
    const prepared = isConfigured(spec)
      ? await prepareConfigured(spec, at, options, scratch)
      : await prepareCommand(spec, at, options, scratch);
    return await startPrepared(prepared, at, options, scratch);
  } catch (error) {
    await scratch.end();
    throw error;
  }
}

async function openAddress(spec: AddressServer, options: Interruptible): Promise<RunningServer> {
  const { origin, cgroup } = spec;
  const { page, workers, signal } = options;
  const load = { protocol: 'http/1.1' as const, ...options.load };
  const check = { origin, page, load, anyLength: true, isThere: true } as const;
  const group = cgroup === undefined ? undefined : openCgroup(cgroup);
  const answer = await waitUntilReady(check, signal);
  await group?.requireWork(origin, signal);
  const server: RunningServer = {
    name: programOf(spec),
    version: '',
    origin,
    workers,
    redirections: [],
    upstreams: [],
    runsCode: false,
    answer,
    atAddress: true,
    died: new Promise(() => undefined),
    stop: () => Promise.resolve(),
  };
  return group === undefined ? server : { ...server, ...group.watch() };
}

/** Returns the number of workers: the article's with `exact`, otherwise that of the spec for so many cores. */
export function workersFor(spec: ServerSpec, serverCores: number, exact: boolean): number {
  if (!isConfigured(spec)) return serverCores;
  if (exact && spec.articleWorkers !== undefined) return spec.articleWorkers;
  return Math.max(
    spec.minWorkers ?? 1,
    spec.workers === 'server-cores' ? serverCores : spec.workers,
  );
}

type Interruptible = StartOptions & { signal: AbortSignal };

async function addressOf(
  spec: ConfiguredServer | CommandServer,
  { enclosure, port, address = loopbackAddress }: StartOptions,
): Promise<Address> {
  const wanted = (isConfigured(spec) ? undefined : spec.port) ?? port;
  if (enclosure !== undefined)
    return { address: enclosure.address, port: wanted ?? enclosure.port };
  if (wanted === undefined) return { address, port: await freePort(address) };
  const at = { address, port: wanted };
  const problem = await portProblem(at);
  if (problem === undefined) return at;
  if (problem.code === 'EADDRINUSE')
    throw new UserError(
      `port ${wanted} of ${address} is in use: end what listens there, or take another port`,
    );
  throw new UserError(`no server can listen on port ${wanted} of ${address}: ${problem.message}`);
}

/** A config's log may become this long, since it is read from its beginning. */
const mostConfigLogBytes = 64e6;

async function startPrepared(
  {
    about,
    process: its,
    isCommand,
    fileLimit,
    logFile,
    tls,
    protocol,
    check,
    explain,
    ...prepared
  }: Prepared,
  at: Address,
  options: Interruptible,
  scratch: Scratch,
): Promise<StartedServer> {
  const { enclosure, cpus, signal, readyLimitMs = prepared.readyLimitMs } = options;
  signal.throwIfAborted();
  const logStart = await sizeOf(logFile);
  const before = [
    ...scratch.enter,
    ...(enclosure?.enter ?? []),
    ...limiting(fileLimit, scratch.user),
  ];
  const orphanedBy = 'TERM';
  const child = await startLogged({ ...its, before, cpus, orphanedBy }, logFile, 'a');
  const { pid } = child;
  const began = commandBegan(child, 1 + its.args.length);
  scratch.led(pid);
  const who = `${about.name} (pid ${pid})`;
  const unbound = boundLog(logFile, isCommand ? undefined : mostConfigLogBytes);
  const { processes, exceeded } = scratch;
  async function end() {
    await scratch.end();
    await unbound({ shortens: isCommand }).catch(() => undefined);
  }
  const { died, stop } = watchLifecycle(
    who,
    child,
    logFile,
    { processes, end, exceeded },
    isCommand,
  );
  const listening = () => listeningOf(processes(), scratch.user?.uid);
  const origin = `${tls ? 'https' : 'http'}://${at.address}:${at.port}`;
  const asked = { ...check, origin, page: options.page, load: { protocol, ...options.load } };
  try {
    let readyAtMs = NaN;
    const answer = await whileItRuns(died, signal, async (until) => {
      const ready = waitUntilReadyInside(enclosure?.enter, asked, until, readyLimitMs).finally(
        () => {
          readyAtMs = performance.now();
        },
      );
      // Only a command may listen elsewhere, which is told before it answers.
      if (!isCommand) await ready;
      const [answered] = await Promise.all([
        ready,
        enclosure ?? untilItListens(listening, at, pid, who, readyLimitMs, until),
      ]);
      // It may have opened another port, or gone to the background.
      if (enclosure === undefined) requireLoopback(listening(), at, who);
      if (child.hasExited()) throw new UserError(await died);
      return answered;
    });
    scratch.forget();
    const usage = watchUsage(processes, { cpuSecondsOfGroup: scratch.cpuSeconds });
    const startupMs = readyAtMs - ((await began) ?? NaN);
    return {
      ...about,
      pid,
      startupMs: enclosure === undefined && startupMs > 0 ? startupMs : null,
      origin,
      answer,
      logFile,
      processes,
      usage,
      died,
      stop,
    };
  } catch (error) {
    const hasEnded = child.hasExited();
    await stop();
    if (!(error instanceof UserError) || exceeded() !== undefined) throw error;
    const lines = await lastLines(logFile, logStart);
    const message = explain?.(error.message, lines, hasEnded) ?? error.message;
    throw new UserError(scratch.withOwnPaths(message), error.exitCode);
  }
}

/** Bytes of a file; 0 if it is not there. */
async function sizeOf(file: string): Promise<number> {
  const stats = await stat(file).catch(() => undefined);
  return stats?.size ?? 0;
}

/** A server's use of CPU time and memory; every 100 ms also that of its cores. */
export interface RemoteSample extends ServerSample, TreeUsage {
  machine?: MachineReading;
}

/** A server on another machine, which alone knows the server's processes and log. */
export interface RemoteServer extends RunningServer {
  alarms(): Promise<LogAlarms>;
  /** Samples the server's use. The returned function stops that and returns the samples, with times by this machine's monotonic clock. */
  watch(): Promise<() => Promise<RemoteSample[]>>;
}

export function isRemote(server: RunningServer): server is RemoteServer {
  return 'watch' in server;
}
