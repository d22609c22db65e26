// Prepares servers to start. It writes the config of a known server, and has the server check it. A user's command runs without a shell, as
// the current user.
import { readFile, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import {
  lastLine,
  run,
  sendIfThere,
  type Finished,
  type RunAs,
  type ProcessOptions,
} from '../process.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import type { CommandServer, ConfiguredServer } from '../scenario/model.ts';
import { pathsOf } from '../scenario/pages.ts';
import { find, isExecutableFile, leftOutOfPath, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { servers } from '../setup/servers.ts';
import { serverBuild } from './build.ts';
import { machineCertificate } from './certificate.ts';
import { complaintOf } from './config-files.ts';
import { copyDocroot } from './docroot.ts';
import type { ServerKind } from './kind.ts';
import { serverKinds } from './kinds.ts';
import { killedForMemory, watchMemoryKills } from './lifecycle.ts';
import { addedTo, withApachesReason } from './own/other-servers.ts';
import { addressFor } from './own/redirect.ts';
import { freePort, type Address } from './ports.ts';
import {
  fileLimitFor,
  hardFilesLimit,
  limiting,
  processesLimit,
  requireRunnable,
} from './rights.ts';
import type { Scratch } from './scratch.ts';
import type { AdoptPlace, AdoptedConfig, Build, Prepared, StartOptions } from './server.ts';

const handedDown =
  /^(?:PATH|TZ|LANG|LANGUAGE|LC_\w+|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|H2O_\w+|OPENSSL_\w+|SSL_CERT_\w+)$/;

/** A server's message when its user has reached the limit of processes and threads. */
const lacksProcesses = /(?:fork|thread).*Resource temporarily unavailable/;

const readyLimitMs = 10_000;
const checkSeconds = 30;

/**
 * Prepares a server to start, as the scratch folder's user.
 * @throws UserError with the server's message, file and line if its config cannot be used; the signal's reason
 */
export async function prepareConfigured(
  spec: ConfiguredServer,
  at: Address,
  options: StartOptions & { signal: AbortSignal },
  scratch: Scratch,
): Promise<Prepared> {
  const { name } = spec;
  const { signal, enclosure, load = {} } = options;
  const kind = serverKinds[name];
  if (servers[name].http2Only && load.protocol?.startsWith('http/'))
    throw new UserError(
      `${name} speaks HTTP/2 only: choose the protocol h2 or h2c for it, or another server`,
    );
  const command = spec.binary ?? options.binaries[name] ?? name;
  const build = await serverBuild(name, command, signal, spec.binary !== undefined);
  const isOwn = spec.asIs !== undefined;
  const folder = path.resolve(options.folder);
  const configFile = path.join(folder, `${name}.conf`);
  const fileLimit = fileLimitFor(name, spec.fileLimit, load.connections ?? 0, hardFilesLimit());
  const { user } = scratch;
  const { text, ...config } = await configFor(spec, at, options, build, fileLimit, user, scratch);
  await requireRunnable(command, user);
  // A user's own config may be secret.
  await writeFile(configFile, text, isOwn ? { mode: 0o600 } : {});
  const child = {
    command,
    args: config.args(scratch.keep(configFile, text)),
    user,
    // Other processes of the server's user could read all variables, such as tokens.
    env: user && variablesHandedDown(),
    cwd: config.workingFolder ?? (user === undefined ? folder : scratch.temp),
  };
  scratch.give();
  const complaintAbout = (line: string) =>
    complaintOf(kind, line, scratch.withOwnPaths(text), build, spec, user?.name);
  if (kind.checkArgs !== undefined) {
    const shownFile = isOwn ? spec.config[0] : configFile;
    const isKilledForMemory = watchMemoryKills();
    const check = await runCheck(scratch, {
      ...child,
      args: [...kind.checkArgs, ...child.args],
      before: [...scratch.enter, ...(enclosure?.enter ?? []), ...limiting(fileLimit, user)],
      limit: {
        seconds: checkSeconds,
        message: `${name} has not read its config ${shownFile} within ${checkSeconds} s: look for what it waits for, or for aliases and includes without end`,
      },
      signal,
    });
    const exceeded = scratch.exceeded();
    if (exceeded !== undefined) throw new UserError(`${name} ${exceeded}`);
    if (isKilledForMemory(check)) throw new UserError(`${name} ${killedForMemory}`);
    const complaint = complaintIn(check, kind, scratch);
    if (complaint !== undefined) throw new UserError(complaintAbout(complaint));
  }
  const { tls, protocol, hosts, hangsUp, workers, redirections, upstreams, runsCode } = config;
  let check: Prepared['check'] = {};
  // The length of a user's own page may change, for example with a date in it.
  if (isOwn) check = { anyLength: true, hosts, hangsUp, user: user?.name };
  return {
    about: { name, version: build.version, workers, redirections, upstreams, runsCode },
    process: child,
    isCommand: false,
    fileLimit,
    logFile: path.join(folder, 'error.log'),
    tls,
    protocol,
    check,
    readyLimitMs,
    explain(message, lines, hasEnded) {
      const lacking = user && lines.find((line) => lacksProcesses.test(line));
      if (lacking !== undefined)
        return `${message}; ${name}'s log: ${lacking}: its user may have at most ${processesLimit()} processes and threads here`;
      const complaint = lines.findLast((line) => kind.complaint.test(line));
      if (complaint === undefined) return message;
      if (hasEnded) return complaintAbout(complaint);
      return message.includes(complaint) ? message : `${message}; ${name}'s log: ${complaint}`;
    },
  };
}

function variablesHandedDown(): NodeJS.ProcessEnv {
  const variables = Object.entries(process.env);
  return Object.fromEntries(variables.filter(([name]) => handedDown.test(name)));
}

/** Has the server check its config, and ends processes that code in the config left running. */
function runCheck(scratch: Scratch, check: ProcessOptions): Promise<Finished> {
  const endLeft = () => {
    for (const pid of scratch.processes(true)) sendIfThere(Number(pid), 'SIGKILL');
  };
  return run({ ...check, ended: endLeft });
}

/** Returns the line in which the server complains about its config; undefined if there is none. */
function complaintIn(
  { code, stdout, stderr }: Finished,
  { complaint }: ServerKind,
  scratch: Scratch,
): string | undefined {
  if (code === 0) return undefined;
  const errors = scratch.withOwnPaths(stderr);
  // An older nginx first tries to open the log that it was built with, which it may not write.
  const isAboutConfig = (line: string) =>
    complaint.test(line) && !line.includes('could not open error log file');
  return errors.split('\n').find(isAboutConfig) ?? lastLine(errors + stdout);
}

async function configFor(
  { name, config, asIs }: ConfiguredServer,
  at: Address,
  { page, workers, cpus, load, signal }: StartOptions & { signal: AbortSignal },
  build: Build,
  fileLimit: number,
  user: RunAs | undefined,
  { temp, docroot, keep }: Scratch,
): Promise<AdoptedConfig> {
  const certificateFile = async () => {
    const file = await machineCertificate(signal);
    return user === undefined ? file : keep(file, await readFile(file));
  };
  const kind = serverKinds[name];
  const place = { ...at, fileLimit, temp, certificateFile };
  if (asIs === undefined) {
    if (page.docroot === undefined)
      throw new UserError(
        `${name} ${config.join(' + ')}: the page has no docroot, which only a whole config of one's own can do without`,
      );
    await copyDocroot(page.docroot, docroot);
    const composed = await kind.compose(config, { ...place, workers, docroot }, build);
    const own = { redirections: [], hosts: [], upstreams: [], runsCode: false };
    return { ...composed, workers, ...own };
  }
  const upstreams: NonNullable<AdoptPlace['upstreams']>[number][] = [];
  for (const [name, to] of Object.entries(asIs.upstreams ?? {}))
    upstreams.push({ name, to, address: await addressFor(to) });
  const adoptPlace: AdoptPlace = {
    ...place,
    user,
    cores: cpus.length,
    listen: asIs.port,
    http3: load?.protocol === 'h3',
    within: asIs.within,
    upstreams,
    overlays: asIs.overlays ?? [],
    paths: pathsOf(page),
    nextPort: () => freePort(),
  };
  return kind.adopt(config[0] as string, adoptPlace, build);
}

/** Some commands compile, or read all their files, before they answer. */
const commandReadyLimitMs = 60_000;

/** A container's processes are children of a daemon: they have other cores, and stay when this program ends. */
const containerPrograms = /^(?:docker|nerdctl|podman)$/;

/** Prepares a command to start in its folder. Throws UserError if there is no such program, or if it only asks for a container. */
export async function prepareCommand(
  spec: CommandServer,
  at: Address,
  options: StartOptions,
  { temp }: Scratch,
): Promise<Prepared> {
  const cwd = spec.folder ?? fromCallersFolder('.');
  const [program = '', ...args] = commandWords(spec.command, at.port);
  const name = path.basename(program);
  if (containerPrograms.test(name) && args.includes('run'))
    throw new UserError(
      `${name} only asks for a container, which bakeoff can neither watch nor end: have --prepare start it (${name} run -d --rm --name web -p 127.0.0.1:8081:80 …), and compare http://127.0.0.1:8081/, where requests/s and latency are measured, but no CPU time, memory or causes`,
    );
  const executable = await programIn(cwd, program);
  const added = addedTo(await realpath(executable), args, temp);
  const { redirections } = added;
  return {
    about: {
      name,
      version: '',
      workers: options.workers,
      redirections,
      upstreams: [],
      runsCode: false,
    },
    process: {
      command: executable,
      args: [...added.args, ...args],
      cwd,
      env: {
        ...added.env,
        ...process.env,
        // After `npm run -s`, a side's own npm would not say what is wrong with it.
        npm_config_loglevel: undefined,
        HOST: at.address,
        PORT: String(at.port),
        PWD: cwd,
        TMPDIR: temp,
      },
    },
    isCommand: true,
    fileLimit: fileLimitFor(name, undefined, options.load?.connections ?? 0, hardFilesLimit()),
    logFile: path.join(path.resolve(options.folder), 'output.log'),
    tls: spec.tls === true,
    protocol: 'http/1.1',
    check: { anyLength: true },
    readyLimitMs: commandReadyLimitMs,
    explain: withApachesReason,
  };
}

async function programIn(folder: string, program: string): Promise<string> {
  const isPath = program.includes('/');
  const file = isPath ? path.resolve(folder, program) : await find(program, thisMachine());
  if (file === undefined) {
    const leftOut = await leftOutOfPath(program);
    throw new UserError(
      `there is no program ${program} on PATH${leftOut}: install it, or write its path (./${program})`,
    );
  }
  if (await isExecutableFile(file)) return file;
  const remedy =
    isPath && folder !== path.dirname(file)
      ? `relative paths begin at ${folder}`
      : 'check that it exists and is executable (chmod +x)';
  throw new UserError(`${file} cannot be run: ${remedy}`);
}
