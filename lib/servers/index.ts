// Starts the server of a variant: nginx, h2o or nghttpd with its config, a command (command.ts), or none at an address.
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import {
  lastLines,
  startLogged,
  lastLine,
  run,
  type Child,
  type ChildOptions,
  type RunAs,
} from '../process.ts';
import type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  ServerName,
  ServerSpec,
} from '../scenario/model.ts';
import { requestsOf } from '../scenario/pages.ts';
import { isConfigured, programOf } from '../scenario/variants.ts';
import { serverBuild } from './build.ts';
import { machineCertificate } from './certificate.ts';
import { startCommand } from './command.ts';
import { copyDocroot } from './docroot.ts';
import { h2oKind } from './h2o.ts';
import { AddressInUse, onPort, watchLifecycle, whileItRuns } from './lifecycle.ts';
import { nghttpdKind } from './nghttpd.ts';
import { nginxKind } from './nginx.ts';
import { addressFor } from './own/stub.ts';
import { ownComplaint } from './config-files.ts';
import {
  freePort,
  listeningOf,
  portProblem,
  requireLoopback,
  untilItHasThePort,
  type Address,
} from './ports.ts';
import { waitUntilReady, waitUntilReadyInside, type ReadyCheck } from './ready.ts';
import { fileLimitFor, hardFilesLimit, requireRunnable, unprivilegedUser } from './rights.ts';
import { makeScratch, type Scratch } from './scratch.ts';
import { OnlyChecked } from './server.ts';
import type {
  AdoptedConfig,
  Answer,
  Build,
  ComposedConfig,
  Place,
  RunningServer,
  ServerKind,
  StartedServer,
  StartOptions,
} from './server.ts';
import { processTree, watchUsage } from './usage.ts';

export { serverBuild } from './build.ts';
export { readOwnConfig } from './own/own-config.ts';
export { readStub } from './own/stub.ts';
export type { Listen, OwnConfig } from './own/redirect.ts';
export { isLoopback } from './ports.ts';
export { answerOfAll, waitUntilReady, type ReadyCheck } from './ready.ts';
export { temporaryFolder } from './scratch.ts';
export {
  isStarted,
  OnlyChecked,
  type Answer,
  type Build,
  type RunningServer,
  type StartedServer,
  type StartOptions,
} from './server.ts';
export { watchUpstreams } from './usage.ts';

const kinds: Record<ServerName, ServerKind> = {
  nginx: nginxKind,
  h2o: h2oKind,
  nghttpd: nghttpdKind,
};

/** Variables that a server may need. */
const handedDown =
  /^(?:PATH|TZ|LANG|LANGUAGE|LC_\w+|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|H2O_\w+|OPENSSL_\w+|SSL_CERT_\w+)$/;

/** Starts the server, unless it is an address, and returns once it serves the page. Throws UserError or the signal's reason. */
export function startServer(
  spec: ConfiguredServer | CommandServer,
  options: StartOptions,
): Promise<StartedServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer> {
  if (isConfigured(spec)) return startConfigured(spec, options);
  return spec.name === 'command' ? startCommand(spec, options) : openAddress(spec, options);
}

async function openAddress(spec: AddressServer, options: StartOptions): Promise<RunningServer> {
  const { origin } = spec;
  const { page, protocol = 'http/1.1', request, tls, workers } = options;
  return {
    name: programOf(spec),
    version: '',
    origin,
    workers,
    redirections: [],
    upstreams: [],
    answer: await waitUntilReady(
      { origin, page, protocol, request, tls, anyLength: true, isThere: true },
      options.signal ?? new AbortController().signal,
    ),
    died: new Promise(() => undefined),
    stop: () => Promise.resolve(),
  };
}

export async function composeFor(
  { name, config }: ConfiguredServer,
  place: Place,
  build: Build,
): Promise<ComposedConfig & { fileName: string }> {
  return { ...(await kinds[name].compose(config, place, build)), fileName: `${name}.conf` };
}

/** Returns the number of workers: the article's with `exact`, otherwise the spec's for this number of cores. */
export function workersFor(spec: ServerSpec, serverCores: number, exact: boolean): number {
  // Commands and addresses may use all cores.
  if (!isConfigured(spec)) return serverCores;
  if (exact && spec.articleWorkers !== undefined) return spec.articleWorkers;
  return Math.max(
    spec.minWorkers ?? 1,
    spec.workers === 'server-cores' ? serverCores : spec.workers,
  );
}

/** Starts a server at its address or in its network, pinned to `options.cpus`; as nobody if root starts it. Nothing is left after an error. */
async function startConfigured(
  spec: ConfiguredServer,
  options: StartOptions,
): Promise<StartedServer> {
  const { name } = spec;
  const binary = spec.binary ?? (options.binaries[name] as string);
  if (kinds[name].http2Only && options.protocol?.startsWith('http/')) {
    throw new UserError(
      `${name} speaks HTTP/2 only: choose the protocol h2 or h2c for it, or another server`,
    );
  }
  const build = await serverBuild(name, binary, options.signal);
  await mkdir(options.folder, { recursive: true });
  const startAt = (at: Address) => startOn(at, spec, options, binary, build);
  return options.network === undefined
    ? onPort(name, options.port, startAt, options.address)
    : startAt(options.network);
}

async function startOn(
  at: Address,
  spec: ConfiguredServer,
  options: StartOptions,
  binary: string,
  build: Build,
): Promise<StartedServer> {
  const { name } = spec;
  const { network, cpus, signal = new AbortController().signal } = options;
  const isOwn = spec.asIs !== undefined;
  const folder = path.resolve(options.folder);
  const configFile = path.join(folder, `${name}.conf`);
  const logFile = path.join(folder, 'error.log');
  const fileLimit = fileLimitFor(name, spec.fileLimit, options.connections ?? 0, hardFilesLimit());
  const logStart = await stat(logFile).then(
    ({ size }) => size,
    () => 0,
  );
  const scratch = await makeScratch();
  let config: ConfigToRun;
  let child: Child;
  try {
    config = await configFor(at, spec, { ...options, signal }, build, fileLimit, scratch);
    const { user } = config;
    await requireRunnable(binary, user);
    // A user's own config may be secret.
    await writeFile(configFile, config.text, isOwn ? { mode: 0o600 } : {});
    const launch: Launch = {
      before: network?.enter ?? [],
      command: binary,
      args: config.args(scratch.keep(configFile, config.text)),
      user,
      // Other processes of its user could read all variables, such as tokens.
      env:
        user &&
        Object.fromEntries(Object.entries(process.env).filter(([one]) => handedDown.test(one))),
      cwd: config.workingFolder ?? folder,
    };
    scratch.giveTo(user);
    await checkConfig(spec, build, config, configFile, launch, scratch, signal);
    signal.throwIfAborted();
    if (options.onlyCheck) throw new OnlyChecked();
    // Root's limit may be higher than its children may set it.
    const before = [...launch.before, 'prlimit', `--nofile=${fileLimit}:${fileLimit}`, '--'];
    child = await startLogged({ ...launch, before, cpus }, logFile, 'a');
  } catch (error) {
    scratch.remove();
    throw error;
  }
  const { pid } = child;
  const origin = `${config.tls ? 'https' : 'http'}://${at.address}:${at.port}`;
  const { died, stop } = watchLifecycle(name, child, logFile, scratch.remove);
  let answer: Answer;
  try {
    const check: ReadyCheck = {
      origin,
      page: options.page,
      protocol: options.protocol ?? config.protocol,
      request: options.request,
      tls: options.tls,
      // The length of a user's own page may change, such as by a date.
      ...(isOwn
        ? {
            anyLength: true,
            hosts: config.hosts,
            hangsUp: config.hangsUp,
            user: config.user?.name,
          }
        : {}),
    };
    answer = await whileItRuns(died, signal, async (until) => {
      const limitMs = options.readyLimitMs;
      const answered = await waitUntilReadyInside(network?.enter, check, until, limitMs);
      await untilItHasThePort(pid, at, binary, until, limitMs);
      // A config may include files that bakeoff has not read.
      requireLoopback(
        listeningOf(pid).filter(({ address }) => address !== at.address),
        `${binary} (pid ${pid})`,
        'take what listens there out of its config',
      );
      return answered;
    });
    scratch.forget();
  } catch (error) {
    const endedItself = child.hasExited();
    await stop();
    if (!(error instanceof UserError)) throw error;
    // The server has ended, so another process has the port.
    if ((await portProblem(at))?.code === 'EADDRINUSE') throw new AddressInUse();
    const kind = kinds[name];
    const last = (await lastLines(logFile, logStart)).findLast((line) => kind.complaint.test(line));
    // A user's own config may listen on further ports.
    if (isOwn && endedItself && /address already in use/i.test(last ?? ''))
      throw new AddressInUse();
    let message = error.message;
    if (last !== undefined && isOwn && endedItself)
      message = ownComplaint(kind, last, config.text, build, spec, config.user?.name);
    else if (last !== undefined && !message.includes(last)) message += `; ${name}'s log: ${last}`;
    throw new UserError(scratch.withOwnPaths(message), error.exitCode);
  }
  return {
    name,
    version: build.version,
    pid,
    origin,
    workers: config.workers,
    redirections: config.redirections,
    upstreams: config.upstreams,
    answer,
    logFile,
    processes: () => processTree('/proc', String(pid)),
    usage: watchUsage(pid),
    died,
    stop,
  };
}

type ConfigToRun = AdoptedConfig & { user: RunAs | undefined };

async function configFor(
  at: Address,
  { name, config, asIs }: ConfiguredServer,
  { page, workers, cpus, protocol, signal }: StartOptions & { signal: AbortSignal },
  build: Build,
  fileLimit: number,
  scratch: Scratch,
): Promise<ConfigToRun> {
  const { temp, docroot, keep } = scratch;
  const user = await unprivilegedUser(name);
  const certificateFile = async () => {
    const file = await machineCertificate(signal);
    return user === undefined ? file : keep(file, await readFile(file));
  };
  const place = { ...at, fileLimit, temp, certificateFile };
  if (asIs === undefined) {
    if (page.docroot === undefined)
      throw new UserError(
        `${name} ${config.join(' + ')}: the page has no docroot, which only a whole config of one's own can do without`,
      );
    await copyDocroot(page.docroot, docroot);
    const composed = await kinds[name].compose(config, { ...place, workers, docroot }, build);
    return { ...composed, user, workers, redirections: [], hosts: [], upstreams: [] };
  }
  const upstreams = await Promise.all(
    Object.entries(asIs.upstreams ?? {}).map(async ([name, to]) => ({
      name,
      to,
      address: await addressFor(to),
    })),
  );
  const adopted = await kinds[name].adopt(
    config[0] as string,
    {
      ...place,
      user,
      cores: cpus.length,
      listen: asIs.port,
      http3: protocol === 'h3',
      within: asIs.within,
      upstreams,
      laid: asIs.laid ?? [],
      paths: requestsOf(page).map(({ target }) => target),
      nextPort: () => freePort(),
    },
    build,
  );
  return { ...adopted, user };
}

type Launch = Pick<ChildOptions, 'command' | 'args' | 'user' | 'env' | 'cwd'> & {
  before: readonly string[];
};

const checkSeconds = 30;

/** Has the server check its config with the rights that it will have. Throws UserError with the server's words, the file and the line. */
async function checkConfig(
  spec: ConfiguredServer,
  build: Build,
  config: ConfigToRun,
  configFile: string,
  launch: Launch,
  scratch: Scratch,
  signal: AbortSignal,
): Promise<void> {
  const { name, asIs } = spec;
  const kind = kinds[name];
  if (kind.checkArgs === undefined) return;
  const { code, stdout, stderr } = await run({
    ...launch,
    args: [...kind.checkArgs, ...launch.args],
    limit: {
      seconds: checkSeconds,
      words: `${name} has not read its config ${asIs === undefined ? configFile : spec.config[0]} within ${checkSeconds} s: look for what it waits for, or for aliases and includes without end`,
    },
    signal,
  });
  if (code === 0) return;
  const complaints = scratch
    .withOwnPaths(stderr)
    .split('\n')
    // An older nginx first tries the log that it was built with, which it may not write.
    .filter((line) => kind.complaint.test(line) && !line.includes('could not open error log file'));
  const words = complaints[0] ?? lastLine(scratch.withOwnPaths(stderr + stdout));
  if (asIs !== undefined)
    throw new UserError(
      ownComplaint(kind, words, scratch.withOwnPaths(config.text), build, spec, config.user?.name),
    );
  const number = complaints.map((line) => kind.complaintLine?.exec(line)?.[1]).find(Boolean);
  const lines = [
    `${name} does not accept its config ${configFile}:`,
    words,
    ...complaints.slice(1),
  ];
  if (number !== undefined)
    lines.push(`line ${number}: ${config.text.split('\n')[Number(number) - 1]?.trim()}`);
  throw new UserError(lines.join('\n'));
}
