// Starts the server that a variant names: a known one with its config. Commands are in command.ts.
import { mkdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { lastLines, startLogged, type Child, type ChildOptions, type RunAs } from '../process.ts';
import type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  ServerName,
  ServerSpec,
} from '../scenario/model.ts';
import { pagePaths } from '../scenario/pages.ts';
import { isConfigured, programOf } from '../scenario/variants.ts';
import { lastLine, run } from '../setup/run.ts';
import { serverBuild } from './build.ts';
import { machineCertificate } from './certificate.ts';
import { startCommand } from './command.ts';
import { copyDocroot } from './docroot.ts';
import { h2oKind } from './h2o.ts';
import { watchLifecycle, whileItRuns } from './lifecycle.ts';
import { nghttpdKind } from './nghttpd.ts';
import { nginxKind } from './nginx.ts';
import { AddressInUse, onPort } from './on-port.ts';
import { ownComplaint } from './own/files.ts';
import {
  freePort,
  listeningOf,
  portProblem,
  requireLoopback,
  untilItHasThePort,
  type Address,
} from './ports.ts';
import { waitUntilReady, waitUntilServingInside, type ReadyCheck } from './ready.ts';
import { fileLimitFor, hardFilesLimit, requireRunnable, unprivilegedUser } from './rights.ts';
import { makeScratch, type Scratch } from './scratch.ts';
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
export type { Listen, OwnConfig } from './own/redirect.ts';
export { isLoopback } from './ports.ts';
export { answerOfAll } from './ready.ts';
export { waitUntilReady, type ReadyCheck } from './ready.ts';
export { temporaryFolder } from './scratch.ts';
export {
  isStarted,
  type Answer,
  type Build,
  type RunningServer,
  type StartedServer,
  type StartOptions,
} from './server.ts';
export { watchUpstreams } from './upstreams.ts';
export { stoppedIn } from './usage.ts';

const kinds: Record<ServerName, ServerKind> = {
  nginx: nginxKind,
  h2o: h2oKind,
  nghttpd: nghttpdKind,
};

/** Starts the server, unless it is an address, and returns once it serves the page. Throws UserError or the signal's reason. */
export function startServer(
  spec: ConfiguredServer | CommandServer,
  options: StartOptions,
): Promise<StartedServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer> {
  if (isConfigured(spec)) return start(kinds[spec.name], spec, options);
  return spec.name === 'command' ? startCommand(spec, options) : openAddress(spec, options);
}

/** A server that runs already. Throws UserError where it does not answer. */
async function openAddress(spec: AddressServer, options: StartOptions): Promise<RunningServer> {
  const { origin } = spec;
  const {
    page,
    protocol = 'http/1.1',
    request,
    tls,
    workers,
    signal = new AbortController().signal,
  } = options;
  return {
    name: programOf(spec),
    version: '',
    origin,
    workers,
    redirections: [],
    upstreams: [],
    answer: await waitUntilReady(
      { origin, page, protocol, request, tls, anyLength: true, isThere: true },
      signal,
    ),
    // When it ends, its load fails.
    died: new Promise(() => undefined),
    stop: () => Promise.resolve(),
  };
}

/** Composes a shipped config for another machine, with the name of its file. Throws UserError when it cannot. */
export async function composeFor(
  { name, config }: ConfiguredServer,
  place: Place,
  build: Build,
): Promise<ComposedConfig & { fileName: string }> {
  return { ...(await kinds[name].compose(config, place, build)), fileName: `${name}.conf` };
}

/** The number of workers: the article's with `exact`, otherwise the spec's for this number of cores. */
export function workersFor(spec: ServerSpec, serverCores: number, exact: boolean): number {
  // Not known: they may use all cores.
  if (!isConfigured(spec)) return serverCores;
  if (exact && spec.articleWorkers !== undefined) return spec.articleWorkers;
  return Math.max(
    spec.minWorkers ?? 1,
    spec.workers === 'server-cores' ? serverCores : spec.workers,
  );
}

interface StartHere extends Omit<StartOptions, 'binaries'> {
  binary: string;
}

/**
 * Starts a server on its address or in its network, pinned to `options.cpus`, and returns once it serves the page. Where root starts it,
 * it runs as nobody, or as the service user that a person's own config names. Throws UserError when binary, config, port, limit of open
 * files or answer is not right, or the signal's reason; nothing is left running then.
 */
export async function start(
  kind: ServerKind,
  spec: ConfiguredServer,
  { binaries, ...asked }: StartOptions,
): Promise<StartedServer> {
  const options: StartHere = { ...asked, binary: spec.binary ?? (binaries[spec.name] as string) };
  if (kind.http2Only && options.protocol?.startsWith('http/')) {
    throw new UserError(
      `${spec.name} speaks HTTP/2 only: choose the protocol h2 or h2c for it, or another server`,
    );
  }
  const build = await serverBuild(spec.name, options.binary, options.signal);
  await mkdir(options.folder, { recursive: true });
  if (options.network !== undefined) return startOn(options.network, kind, spec, options, build);
  return onPort(
    spec.name,
    options.port,
    (at) => startOn(at, kind, spec, options, build),
    options.address,
  );
}

async function startOn(
  at: Address,
  kind: ServerKind,
  spec: ConfiguredServer,
  options: StartHere,
  build: Build,
): Promise<StartedServer> {
  const { name } = spec;
  const signal = options.signal ?? new AbortController().signal;
  const folder = path.resolve(options.folder);
  const files = { config: path.join(folder, `${name}.conf`), log: path.join(folder, 'error.log') };
  const fileLimit = fileLimitFor(name, spec.fileLimit, options.connections ?? 0, hardFilesLimit());
  const logStart = await stat(files.log).then(
    ({ size }) => size,
    () => 0,
  );
  if (spec.asIs === undefined && options.page.docroot === undefined)
    throw new UserError(
      `${name} ${spec.config.join(' + ')}: the page has no docroot, which only a whole config of one's own can do without`,
    );
  const scratch = await makeScratch();
  let config: AdoptedConfig;
  let child: Child;
  try {
    if (spec.asIs === undefined && options.page.docroot !== undefined)
      await copyDocroot(options.page.docroot, scratch.docroot);
    const place = {
      ...at,
      fileLimit,
      temp: scratch.temp,
      user: await unprivilegedUser(name),
      handOver: scratch.handOver,
      certificateFile: async () => scratch.handOver(await machineCertificate(signal)),
    };
    const composed: AdoptedConfig =
      spec.asIs === undefined
        ? {
            ...(await kind.compose(
              spec.config,
              { ...place, workers: options.workers, docroot: scratch.docroot },
              build,
            )),
            workers: options.workers,
            redirections: [],
            hosts: [],
            upstreams: [],
          }
        : await kind.adopt(
            spec.config[0] as string,
            {
              ...place,
              cores: options.cpus.length,
              listen: spec.asIs.port,
              laid: spec.asIs.laid ?? [],
              paths: pagePaths(options.page),
              trustConfig: options.trustConfig === true,
              nextPort: () => freePort(),
            },
            build,
          );
    config = { ...composed, user: composed.user ?? place.user };
    await requireRunnable(options.binary, config.user);
    // A person's own config may be closed to others.
    await writeFile(files.config, config.text, spec.asIs === undefined ? {} : { mode: 0o600 });
    const launch: Launch = {
      before: options.network?.enter ?? [],
      command: options.binary,
      args: config.args(scratch.keep(files.config, config.text)),
      user: config.user,
      env: environmentFor(config.user),
      cwd: config.workingFolder ?? folder,
    };
    scratch.giveTo(config.user);
    await checkConfig(kind, build, spec, { launch, file: files.config, config, scratch, signal });
    signal.throwIfAborted();
    // Root may give more files than its children may take.
    const before = [...launch.before, 'prlimit', `--nofile=${fileLimit}:${fileLimit}`, '--'];
    child = await startLogged({ ...launch, before, cpus: options.cpus }, files.log, 'a');
  } catch (error) {
    scratch.remove();
    throw error;
  }
  const origin = `${config.tls ? 'https' : 'http'}://${at.address}:${at.port}`;
  let answer: Answer;
  const { died, stop } = watchLifecycle(name, child, files.log, () => scratch.remove());
  try {
    const check: ReadyCheck = {
      origin,
      page: options.page,
      protocol: options.protocol ?? config.protocol,
      request: options.request,
      tls: options.tls,
      // Pages of a person's own may have another length each time, such as by a date.
      ...(spec.asIs === undefined
        ? {}
        : { anyLength: true, hosts: config.hosts, user: config.user?.name }),
    };
    answer = await whileItRuns(died, signal, (until) =>
      untilServing(check, options, at, child.pid, until),
    );
    scratch.forget();
  } catch (error) {
    const own = spec.asIs !== undefined && child.hasExited();
    await stop();
    const said = await lastLines(files.log, logStart);
    const told = await explained(
      error,
      name,
      kind,
      at,
      said,
      own
        ? (line) => ownComplaint(kind, line, config.text, build, spec, config.user?.name)
        : undefined,
    );
    throw told instanceof UserError
      ? new UserError(scratch.withOwnPaths(told.message), told.exitCode)
      : told;
  }
  return {
    name,
    version: build.version,
    pid: child.pid,
    origin,
    workers: config.workers,
    redirections: config.redirections,
    upstreams: config.upstreams,
    answer,
    logFile: files.log,
    processes: () => processTree('/proc', String(child.pid)),
    usage: watchUsage(child.pid),
    died,
    stop,
  };
}

/** Starts a server, or its check of the config. */
type Launch = Pick<ChildOptions, 'command' | 'args' | 'user' | 'env' | 'cwd'> & {
  before: readonly string[];
};

/** `config`, which stands in `file` for people to read. */
interface Checked {
  launch: Launch;
  file: string;
  config: AdoptedConfig;
  scratch: Scratch;
  signal: AbortSignal;
}

/** Far more than a check takes. */
const checkSeconds = 30;

/** Has the server check its config, with the rights that it will have. Throws UserError with the server's words, the file and the line. */
async function checkConfig(
  kind: ServerKind,
  build: Build,
  spec: ConfiguredServer,
  { launch, file, config, scratch, signal }: Checked,
): Promise<void> {
  if (kind.checkArgs === undefined) return;
  const read = spec.asIs === undefined ? file : spec.config[0];
  const late = `${spec.name} has not read its config ${read} within ${checkSeconds} s: look for what it waits for, or for aliases and includes without end`;
  const { code, stdout, stderr } = await run({
    ...launch,
    args: [...kind.checkArgs, ...launch.args],
    limit: { seconds: checkSeconds, words: late },
    signal,
  });
  if (code === 0) return;
  const complaints = scratch
    .withOwnPaths(stderr)
    .split('\n')
    .filter((line) => kind.complaint.test(line) && !buildsOwnLog.test(line));
  const words = complaints[0] ?? lastLine(scratch.withOwnPaths(stderr + stdout));
  if (spec.asIs !== undefined)
    throw new UserError(
      ownComplaint(kind, words, scratch.withOwnPaths(config.text), build, spec, config.user?.name),
    );
  const number = complaints
    .map((line) => kind.complaintLine?.exec(line)?.[1])
    .find((found) => found !== undefined);
  const line =
    number === undefined
      ? []
      : [`line ${number}: ${config.text.split('\n')[Number(number) - 1]?.trim()}`];
  throw new UserError(
    [
      `${spec.name} does not accept its config ${file}:`,
      ...(complaints.length > 0 ? complaints : [words]),
      ...line,
    ].join('\n'),
  );
}

/** An older nginx tries it first, where it may not write. */
const buildsOwnLog = /could not open error log file/;

/** Variables that a server may need. Others, such as tokens, could be read by all who run as the same user. */
const handedDown =
  /^(?:PATH|TZ|LANG|LANGUAGE|LC_\w+|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|H2O_\w+|OPENSSL_\w+|SSL_CERT_\w+)$/;

/** undefined: all of the environment. */
function environmentFor(user: RunAs | undefined): NodeJS.ProcessEnv | undefined {
  return user === undefined
    ? undefined
    : Object.fromEntries(Object.entries(process.env).filter(([name]) => handedDown.test(name)));
}

async function untilServing(
  check: ReadyCheck,
  { network, binary }: StartHere,
  at: Address,
  pid: number,
  signal: AbortSignal,
): Promise<Answer> {
  const answer = await (network === undefined
    ? waitUntilReady(check, signal)
    : waitUntilServingInside(network.enter, check, signal));
  await untilItHasThePort(pid, at, binary, signal);
  // A config may include what bakeoff has not read.
  requireLoopback(
    listeningOf(pid).filter(({ address }) => address !== at.address),
    `${binary} (pid ${pid})`,
    'take what listens there out of its config',
  );
  return answer;
}

/**
 * The error with the server's log. The server has ended: who still has the port is another one.
 * @param own words it for a person's own config with which the server ended by itself
 */
async function explained(
  error: unknown,
  name: string,
  { complaint }: ServerKind,
  at: Address,
  log: readonly string[],
  own: ((said: string) => string) | undefined,
): Promise<unknown> {
  if (!(error instanceof UserError)) return error;
  if ((await portProblem(at))?.code === 'EADDRINUSE') return new AddressInUse();
  const last = log.findLast((line) => complaint.test(line));
  if (last === undefined) return error;
  // A config of one's own may listen on more ports than this one.
  if (own !== undefined)
    return /address already in use/i.test(last) ? new AddressInUse() : new UserError(own(last));
  return error.message.includes(last)
    ? error
    : new UserError(`${error.message}; ${name}'s log: ${last}`);
}
