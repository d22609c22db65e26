// A command of a person's own that answers HTTP: started without a shell, held to a port of loopback, and ended with all that it started.
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
  familyOf,
  groupOf,
  guardMarked,
  howToStay,
  newMark,
  watchLifecycle,
  whileItRuns,
  writersOf,
} from './lifecycle.ts';
import { fileLimitFor, hardFilesLimit } from './rights.ts';
import { AddressInUse, onPort } from './on-port.ts';
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
import { waitUntilReady, type ReadyCheck } from './ready.ts';
import { makeScratch } from './scratch.ts';
import type { Answer, StartedServer, StartOptions } from './server.ts';
import { watchUsage } from './usage.ts';

/** Some compile, or read all they serve, before they answer. */
const usualReadyLimitMs = 60_000;
/** Who listens elsewhere for so long, and not where it is told to, will not. A first port may be an administrator's. */
const elsewhereLimitMs = 5000;
const pollMs = 50;
const howToBind =
  "have it listen on loopback alone, such as with --listen 127.0.0.1:{port}, --bind 127.0.0.1 or server.listen(process.env.PORT, '127.0.0.1')";

/**
 * Starts a command in its folder, pinned to `options.cpus`, and returns once it answers the page on its port of 127.0.0.1. It has a
 * folder for temporary files of its own; its output is the log. Unlike the servers that the suite knows, it runs as who started
 * bakeoff, root too: its files, its home and its rights are that person's, who could run it in a shell as well.
 * Throws UserError where it cannot be run, ends, goes to the background, listens elsewhere or does not answer as it should, or the
 * signal's reason; nothing is left running then.
 */
export async function startCommand(
  spec: CommandServer,
  options: StartOptions,
): Promise<StartedServer> {
  await mkdir(options.folder, { recursive: true });
  const folder = spec.folder ?? fromCallersFolder('.');
  const binary = await programIn(folder, commandWords(spec.command, 0)[0] as string);
  return onPort(path.basename(binary), spec.port ?? options.port, (at) =>
    startOn(at, spec, options, folder, binary),
  );
}

/** The path of the program that a shell in the folder would run. */
async function programIn(folder: string, program: string): Promise<string> {
  const found = program.includes('/')
    ? [path.resolve(folder, program)]
    : await findAll(program, thisMachine());
  const [first] = found;
  if (first === undefined)
    throw new UserError(
      `there is no program ${program} on PATH: install it, or write its path (./${program})`,
    );
  if (!(await isExecutableFile(first)))
    throw new UserError(
      `${first} is no program that can be run: ${program.includes('/') && folder !== path.dirname(first) ? `paths are meant from ${folder}` : 'see that it is there, and executable (chmod +x)'}`,
    );
  return first;
}

async function startOn(
  at: Address,
  spec: CommandServer,
  options: StartOptions,
  folder: string,
  binary: string,
): Promise<StartedServer> {
  const { signal = new AbortController().signal, readyLimitMs = usualReadyLimitMs } = options;
  const [program = '', ...args] = commandWords(spec.command, at.port);
  const name = path.basename(program);
  const fileLimit = fileLimitFor(name, undefined, options.connections ?? 0, hardFilesLimit());
  const logFile = path.join(path.resolve(options.folder), 'output.log');
  const scratch = await makeScratch();
  const mark = newMark();
  const origin = `${spec.tls === true ? 'https' : 'http'}://${at.address}:${at.port}`;
  let child: Child;
  let unguard = (): Promise<void> => Promise.resolve();
  try {
    signal.throwIfAborted();
    unguard = await guardMarked(mark);
    child = await startLogged(
      {
        before: ['prlimit', `--nofile=${fileLimit}:${fileLimit}`, '--', 'env', mark],
        command: binary,
        args,
        cpus: options.cpus,
        cwd: folder,
        env: { ...process.env, PORT: String(at.port), PWD: folder, TMPDIR: scratch.temp },
      },
      logFile,
      'a',
    );
  } catch (error) {
    scratch.remove();
    await unguard();
    throw error;
  }
  const { pid } = child;
  const unbound = boundLog(logFile);
  const who = `${name} (pid ${pid})`;
  let serves = false;
  const { died, stop } = watchLifecycle(
    name,
    child,
    logFile,
    async () => {
      const others = serves ? holdersOf(at) : [];
      if (others.length > 0)
        console.error(
          `${who} has ended, and ${hostAndPort(at)} is still in use (pid ${others.join(', ')}): end that if ${name} has started it`,
        );
      try {
        scratch.remove();
      } finally {
        await Promise.all([unbound(), unguard()]);
      }
    },
    () => {
      const family = familyOf(pid, mark);
      return (family.length > 0 ? family : writersOf(logFile)).map(Number);
    },
  );
  const beganAtMs = performance.now();
  let answer: Answer;
  try {
    const check: ReadyCheck = {
      origin,
      page: options.page,
      protocol: options.protocol ?? 'http/1.1',
      request: options.request,
      tls: options.tls,
      anyLength: true,
    };
    answer = await whileItRuns(died, signal, async (until) => {
      const listening = (): Listening[] => familyOf(pid, mark).flatMap(listeningOf);
      const [answered] = await Promise.all([
        waitUntilReady(check, until, readyLimitMs),
        untilItListens(listening, at, { pid, name, readyLimitMs }, until),
      ]);
      // It may have begun to listen elsewhere meanwhile, or have gone to the background.
      requireLoopback(listening(), who, howToBind);
      if (child.hasExited()) throw new UserError(await died);
      return answered;
    });
    serves = true;
  } catch (error) {
    const endedWell = child.hasExited() && (await child.exited).code === 0;
    const isLate = performance.now() - beganAtMs >= readyLimitMs;
    await stop();
    if (error instanceof UserError && !isLate && (await portProblem(at))?.code === 'EADDRINUSE') {
      const [pid] = holdersOf(at);
      throw endedWell
        ? new UserError(
            `${error.message}; what listens on ${hostAndPort(at)}${pid === undefined ? '' : ` (pid ${pid})`} may be its own, gone to the background: end that, and ${howToStay}`,
          )
        : new AddressInUse();
    }
    throw error;
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

/** Returns once it listens where it is told to. Throws UserError where it listens for the network, or elsewhere and not there, or somebody else has its port. */
async function untilItListens(
  listening: () => Listening[],
  at: Address,
  { pid, name, readyLimitMs }: { pid: number; name: string; readyLimitMs: number },
  signal: AbortSignal,
): Promise<void> {
  const who = `${name} (pid ${pid})`;
  // Until then nobody may answer, which is told otherwise.
  const deadline = performance.now() + readyLimitMs + elsewhereLimitMs;
  let elsewhereSince: number | undefined;
  for (;;) {
    const found = listening();
    requireLoopback(found, who, howToBind);
    if (found.some((one) => isAt(one, at))) return;
    const now = performance.now();
    if (found.length > 0) elsewhereSince ??= now;
    if (now - (elsewhereSince ?? now) >= elsewhereLimitMs)
      throw new UserError(elsewhere(found, at, who));
    if (now >= deadline) throw new UserError(noPort(pid, at, name, readyLimitMs));
    await delay(pollMs, undefined, { signal });
  }
}

function elsewhere(found: readonly Listening[], at: Address, who: string): string {
  const there = `${who} listens on ${[...new Set(found.map(hostAndPort))].join(' and ')}, and not on ${hostAndPort(at)}`;
  const samePort = found.some(({ port }) => port === at.port);
  return samePort
    ? `${there}: write 127.0.0.1 where its address belongs`
    : `${there}: write {port} where its port belongs (PORT in its environment says it too), or say which port it has fixed (--port ${found[0]?.port}; in a scenario port: ${found[0]?.port})`;
}
