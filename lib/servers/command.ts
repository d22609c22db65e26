// Starts a user's command as a server: without a shell, on loopback, and ended with all its processes.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { boundLog, startLogged, type Child } from '../process.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import type { CommandServer } from '../scenario/model.ts';
import { findAll, isExecutableFile, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import {
  AddressInUse,
  groupOf,
  guardMarked,
  howToStay,
  newMark,
  onPort,
  watchLifecycle,
  whileItRuns,
} from './lifecycle.ts';
import {
  holdersOf,
  hostAndPort,
  isAt,
  listeningOf,
  noPort,
  portProblem,
  requireLoopback,
  type Address,
  type Listening,
} from './ports.ts';
import { waitUntilReadyInside } from './ready.ts';
import { fileLimitFor, hardFilesLimit } from './rights.ts';
import { makeScratch } from './scratch.ts';
import { OnlyChecked, type Answer, type StartedServer, type StartOptions } from './server.ts';
import { watchUsage } from './usage.ts';

/** Some commands compile, or read all their files, before they answer. */
const usualReadyLimitMs = 60_000;
/** A command may listen elsewhere first, such as for an administrator. */
const elsewhereLimitMs = 5000;
const pollMs = 50;
const howToBind =
  "have it listen on loopback alone, such as with --listen 127.0.0.1:{port}, --bind 127.0.0.1 or server.listen(process.env.PORT, '127.0.0.1')";

/**
 * Starts a command in its folder, pinned to `options.cpus`, as the current user, and returns once it answers the page on its port of
 * 127.0.0.1, or of its network. Its output is the log. Throws UserError if it cannot run, ends, goes to the background, listens
 * elsewhere or gives a wrong answer, or the signal's reason; nothing is left running then.
 */
export async function startCommand(
  spec: CommandServer,
  options: StartOptions,
): Promise<StartedServer> {
  await mkdir(options.folder, { recursive: true });
  const folder = spec.folder ?? fromCallersFolder('.');
  const binary = await programIn(folder, commandWords(spec.command, 0)[0] as string);
  if (options.onlyCheck) throw new OnlyChecked();
  const startAt = (at: Address) => startOn(at, spec, options, folder, binary);
  const { network } = options;
  return network === undefined
    ? onPort(path.basename(binary), spec.port ?? options.port, startAt)
    : startAt({ address: network.address, port: spec.port ?? network.port });
}

async function programIn(folder: string, program: string): Promise<string> {
  const isPath = program.includes('/');
  const [found] = isPath ? [path.resolve(folder, program)] : await findAll(program, thisMachine());
  if (found === undefined)
    throw new UserError(
      `there is no program ${program} on PATH: install it, or write its path (./${program})`,
    );
  if (!(await isExecutableFile(found)))
    throw new UserError(
      `${found} is no program that can be run: ${isPath && folder !== path.dirname(found) ? `paths are meant from ${folder}` : 'see that it is there, and executable (chmod +x)'}`,
    );
  return found;
}

async function startOn(
  at: Address,
  spec: CommandServer,
  options: StartOptions,
  folder: string,
  binary: string,
): Promise<StartedServer> {
  const {
    signal = new AbortController().signal,
    readyLimitMs = usualReadyLimitMs,
    network,
  } = options;
  const [program = '', ...args] = commandWords(spec.command, at.port);
  const name = path.basename(program);
  const fileLimit = fileLimitFor(name, undefined, options.connections ?? 0, hardFilesLimit());
  const logFile = path.join(path.resolve(options.folder), 'output.log');
  const scratch = await makeScratch();
  const mark = newMark();
  let unguard: (() => Promise<void>) | undefined;
  let child: Child;
  try {
    signal.throwIfAborted();
    unguard = await guardMarked(mark);
    child = await startLogged(
      {
        before: [
          ...(network?.enter ?? []),
          'prlimit',
          `--nofile=${fileLimit}:${fileLimit}`,
          '--',
          'env',
          mark,
        ],
        command: binary,
        args,
        cpus: options.cpus,
        cwd: folder,
        env: {
          ...process.env,
          HOST: at.address,
          PORT: String(at.port),
          PWD: folder,
          TMPDIR: scratch.temp,
        },
      },
      logFile,
      'a',
    );
  } catch (error) {
    scratch.remove();
    await unguard?.();
    throw error;
  }
  const { pid } = child;
  const unbound = boundLog(logFile);
  const { died, stop } = watchLifecycle(
    name,
    child,
    logFile,
    () =>
      Promise.all([unbound(), unguard()])
        .then(() => undefined)
        .finally(scratch.remove),
    () => groupOf(pid, mark).map(Number),
  );
  const origin = `${spec.tls === true ? 'https' : 'http'}://${at.address}:${at.port}`;
  const who = `${name} (pid ${pid})`;
  const listening = () => groupOf(pid, mark).flatMap(listeningOf);
  const beganAtMs = performance.now();
  let answer: Answer;
  try {
    answer = await whileItRuns(died, signal, async (until) => {
      const [answered] = await Promise.all([
        waitUntilReadyInside(
          network?.enter,
          {
            origin,
            page: options.page,
            protocol: options.protocol ?? 'http/1.1',
            request: options.request,
            tls: options.tls,
            anyLength: true,
          },
          until,
          readyLimitMs,
        ),
        network ?? untilItListens(listening, at, pid, name, readyLimitMs, until),
      ]);
      // It may have opened another port meanwhile, or gone to the background. Nobody else is in a network of the run.
      if (network === undefined) requireLoopback(listening(), who, howToBind);
      if (child.hasExited()) throw new UserError(await died);
      return answered;
    });
  } catch (error) {
    const endedWell = child.hasExited() && (await child.exited).code === 0;
    const isLate = performance.now() - beganAtMs >= readyLimitMs;
    await stop();
    if (!(error instanceof UserError) || isLate || (await portProblem(at))?.code !== 'EADDRINUSE')
      throw error;
    if (!endedWell) throw new AddressInUse();
    const holders = holdersOf(at).map((holder) => ` (pid ${holder})`);
    throw new UserError(
      `${error.message}; what listens on ${hostAndPort(at)}${holders[0] ?? ''} may be its own, gone to the background: end that, and ${howToStay}`,
    );
  }
  return {
    name,
    version: '',
    pid,
    origin,
    workers: options.workers,
    redirections: [],
    upstreams: [],
    answer,
    logFile,
    processes: () => groupOf(pid),
    usage: watchUsage(pid, undefined, () => groupOf(pid)),
    died,
    stop,
  };
}

/** Throws UserError if others on the network can reach the command, it listens elsewhere only, or another process has its port. */
async function untilItListens(
  listening: () => Listening[],
  at: Address,
  pid: number,
  name: string,
  readyLimitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const who = `${name} (pid ${pid})`;
  const deadlineMs = performance.now() + readyLimitMs + elsewhereLimitMs;
  let elsewhereSinceMs: number | undefined;
  for (;;) {
    const found = listening();
    requireLoopback(found, who, howToBind);
    if (found.some((one) => isAt(one, at))) return;
    const nowMs = performance.now();
    if (found.length > 0) elsewhereSinceMs ??= nowMs;
    if (nowMs - (elsewhereSinceMs ?? nowMs) >= elsewhereLimitMs)
      throw new UserError(elsewhere(found, at, who));
    if (nowMs >= deadlineMs) throw new UserError(noPort(pid, at, name, readyLimitMs));
    await delay(pollMs, undefined, { signal });
  }
}

function elsewhere(found: readonly Listening[], at: Address, who: string): string {
  const there = `${who} listens on ${[...new Set(found.map(hostAndPort))].join(' and ')}, and not on ${hostAndPort(at)}`;
  const port = found[0]?.port;
  return found.some((one) => one.port === at.port)
    ? `${there}: write 127.0.0.1 where its address belongs`
    : `${there}: write {port} where its port belongs (PORT in its environment says it too), or say which port it has fixed (--port ${port}; in a scenario port: ${port})`;
}
