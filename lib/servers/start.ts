// What all servers share: address, pages, certificate, config check, start, readiness and end.
import { closeSync, openSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import { startChild, type Child } from '../process.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { lastLine, run } from '../setup/run.ts';
import { askBuild } from './build.ts';
import { machineCertificate } from './certificate.ts';
import { fileLimitFor, hardFilesLimit } from './files-limit.ts';
import { watchLifecycle } from './lifecycle.ts';
import { ownComplaint } from './own/complaint.ts';
import { freePort, listensOn, portProblem, type Address } from './ports.ts';
import { waitUntilReadyInside } from './ready-inside.ts';
import { waitUntilReady, type ReadyCheck } from './ready.ts';
import { makeScratch } from './scratch.ts';
import type { AdoptedConfig, Build, Place, RunningServer, ServerKind, ServerSide, StartOptions } from './server.ts';
import { watchUsage } from './usage.ts';

/** Free ports to try: another process may take one between the look and the server's start. */
const portTries = 5;

/** Where it serves unless it has a network of the run's own. */
const loopback = '127.0.0.1';

/**
 * Starts a server on 127.0.0.1, or in its network, pinned to `options.cpus`, and returns once it serves the page. Throws
 * UserError when binary, config, port, limit of open files or answer is not right, or the signal's reason; nothing is left
 * running then.
 */
export async function start(kind: ServerKind, spec: ServerSpec, options: StartOptions): Promise<RunningServer> {
  if (kind.http2Only && options.protocol?.startsWith('http/')) {
    throw new UserError(`${spec.name} speaks HTTP/2 only: choose the protocol h2 or h2c for it, or another server`);
  }
  const build = await askBuild(kind.question, options.binary, options.signal);
  await mkdir(options.folder, { recursive: true });
  if (options.network !== undefined) return startOn(options.network.port, kind, spec, options, build);
  if (options.port !== undefined) await requirePort(spec.name, options.port);
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(port, kind, spec, options, build);
    } catch (error) {
      if (!(error instanceof AddressInUse)) throw error;
      if (options.port !== undefined || tries === portTries) throw portInUse(port);
    }
  }
}

class AddressInUse extends Error {}

async function startOn(port: number, kind: ServerKind, spec: ServerSpec, options: StartOptions, build: Build): Promise<RunningServer> {
  const { name } = spec;
  const signal = options.signal ?? new AbortController().signal;
  const at: Address = { address: options.network?.address ?? loopback, port };
  const files = filesIn(kind, options);
  const fileLimit = fileLimitFor(name, spec.fileLimit, options.connections ?? 0, hardFilesLimit());
  const logStart = await stat(files.log).then(({ size }) => size, () => 0);
  requireDocroot(spec, options);
  const scratch = await makeScratch(spec.asIs === undefined ? options.page.docroot : undefined);
  let config: AdoptedConfig;
  let child: Child;
  try {
    const place = {
      ...at, fileLimit, temp: scratch.temp, logFile: files.log, accessLogFile: files.accessLog,
      user: await unprivilegedUser(name), certificateFile: () => machineCertificate(signal),
    };
    config = spec.asIs === undefined
      ? { ...await kind.compose(spec.config, { ...place, workers: options.workers, docroot: scratch.docroot }, build), workers: options.workers, redirections: [], hosts: [] }
      : await kind.adopt(spec.config[0] as string, { ...place, cores: options.cpus.length, listen: spec.asIs.port, nextPort: otherPorts(port) }, build);
    // A person's own may have secrets in it, and their file may be closed to others.
    await writeFile(files.config, config.text, spec.asIs === undefined ? {} : { mode: 0o600 });
    await checkConfig(kind, build, spec, options, files, config);
    signal.throwIfAborted();
    child = await startProcess(options, files, fileLimit, config);
  } catch (error) {
    await scratch.remove();
    throw error;
  }
  const origin = `${config.tls ? 'https' : 'http'}://${at.address}:${port}`;
  let bodyBytes: number;
  const { died, stop } = watchLifecycle(name, child, files.log, scratch.remove);
  try {
    const check: ReadyCheck = {
      origin, page: options.page, protocol: options.protocol ?? config.protocol, request: options.request, tls: options.tls,
      // What a config of one's own serves may be as long as it likes each time: a date, a name of its own for each request …
      ...(spec.asIs === undefined ? {} : { anyLength: true, hosts: config.hosts }),
    };
    bodyBytes = await untilServing(check, options.network?.enter, at, child.pid, died, signal);
  } catch (error) {
    const own = spec.asIs !== undefined && child.hasExited();
    await stop();
    throw await explained(error, kind, at, files.log, logStart, own ? (said) => ownComplaint(kind, said, config.text, build, spec) : undefined);
  }
  return {
    name,
    version: build.version,
    pid: child.pid,
    origin,
    workers: config.workers,
    redirections: config.redirections,
    bodyBytes,
    configFile: files.config,
    logFile: files.log,
    ...(files.accessLog === undefined ? {} : { accessLogFile: files.accessLog }),
    usage: watchUsage(child.pid),
    died,
    stop,
  };
}

/** What is shipped serves what it is told to; a config of one's own says itself what it serves. */
function requireDocroot({ name, config, asIs }: ServerSpec, { page }: StartOptions): void {
  if (asIs === undefined && page.docroot === undefined) throw new UserError(`${name} ${config.join(' + ')}: the page has no docroot, which only a whole config of one's own can do without`);
}

/** Gives free ports that are neither `port` nor one that it gave before. */
function otherPorts(port: number): () => Promise<number> {
  const given = new Set([port]);
  return async () => {
    let next = port;
    while (given.has(next)) next = await freePort();
    given.add(next);
    return next;
  };
}

interface Files { config: string; log: string; accessLog: string | undefined }

function filesIn(kind: ServerKind, options: StartOptions): Files {
  const folder = path.resolve(options.folder);
  return {
    config: path.join(folder, kind.configFileName),
    log: path.join(folder, 'error.log'),
    accessLog: options.accessLog === true ? path.join(folder, 'access.log') : undefined,
  };
}

/** nobody and its group (nogroup on Debian, nobody elsewhere), for a server started by root; otherwise undefined. */
async function unprivilegedUser(name: string): Promise<Place['user']> {
  if (process.getuid?.() !== 0) return undefined;
  const { code, stdout, stderr } = await run({ command: 'id', args: ['-gn', 'nobody'] });
  if (code !== 0) throw new UserError(`${name} runs as the user nobody, which is not there (${lastLine(stderr)}): create it, or start bakeoff without root`);
  return { name: 'nobody', group: stdout.trim() };
}

async function requirePort(name: string, port: number): Promise<void> {
  const problem = await portProblem(port);
  if (problem?.code === 'EADDRINUSE') throw portInUse(port);
  if (problem !== undefined) throw new UserError(`${name} cannot listen on port ${port}: ${problem.message}`);
}

function portInUse(port: number): UserError {
  return new UserError(`port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`);
}

/** Far more than a check takes: it reads files, and asks for no names. */
const checkSeconds = 30;

function checkLimit({ name, asIs, config }: ServerSpec, files: Files): { seconds: number; words: string } {
  const file = asIs === undefined ? files.config : config[0];
  return { seconds: checkSeconds, words: `${name} has not read its config ${file} within ${checkSeconds} s: look for what it waits for, or for aliases and includes without end` };
}

/** Has the server read its config. Throws UserError with the server's own words, the file, and the line that they are about. */
async function checkConfig(kind: ServerKind, build: Build, spec: ServerSpec, options: StartOptions, files: Files, config: AdoptedConfig): Promise<void> {
  if (kind.checkArgs === undefined) return;
  // It tries to listen.
  const before = options.network?.enter;
  const args = [...kind.checkArgs, ...config.args(files.config)];
  const { code, stdout, stderr } = await run({ before, command: options.binary, args, cwd: folderOf(files, config), limit: checkLimit(spec, files), ...(options.signal === undefined ? {} : { signal: options.signal }) });
  if (code === 0) return;
  const complaints = stderr.split('\n').filter((line) => kind.complaint.test(line));
  if (spec.asIs !== undefined) throw new UserError(ownComplaint(kind, complaints[0] ?? lastLine(stderr + stdout), config.text, build, spec));
  const number = complaints.map((line) => kind.complaintLine.exec(line)?.[1]).find((found) => found !== undefined);
  const line = number === undefined ? [] : [`line ${number}: ${config.text.split('\n')[Number(number) - 1]?.trim()}`];
  const said = complaints.length > 0 ? complaints : [lastLine(stderr + stdout)];
  throw new UserError([`${kind.question.name} does not accept its config ${files.config}:`, ...said, ...line].join('\n'));
}

async function startProcess(options: StartOptions, files: Files, fileLimit: number, config: AdoptedConfig): Promise<Child> {
  const log = openSync(files.log, 'a');
  try {
    return await startChild({
      before: options.network?.enter,
      // Of util-linux, as what startChild itself uses.
      command: 'prlimit',
      args: [`--nofile=${fileLimit}:${fileLimit}`, '--', options.binary, ...config.args(files.config)],
      cpus: options.cpus,
      cwd: folderOf(files, config),
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
}

function folderOf(files: Files, { workingFolder }: AdoptedConfig): string {
  return workingFolder ?? path.dirname(files.config);
}

/**
 * Returns what the body had, in bytes.
 * @param enter as in ServerSide; undefined on loopback
 */
async function untilServing(
  check: ReadyCheck, enter: ServerSide['enter'] | undefined, at: Address, pid: number, died: Promise<string>, aborted: AbortSignal,
): Promise<number> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, aborted]);
  const ended = died.then((line): never => {
    throw new UserError(line);
  });
  const ready = enter === undefined ? waitUntilReady(check, signal) : waitUntilReadyInside(enter, check, signal);
  const serving = ready.then(async (bytes) => {
    await untilItHasThePort(at, pid, signal);
    return bytes;
  });
  try {
    return await Promise.race([serving, ended]);
  } finally {
    over.abort();
  }
}

/** The answer may have been another server's that took the port first: ours does not come to have it then, and ends. */
async function untilItHasThePort(at: Address, pid: number, signal: AbortSignal): Promise<void> {
  while (!listensOn(pid, at)) {
    await delay(20);
    signal.throwIfAborted();
  }
}

/**
 * Adds what the server's log says about it. The server has ended by now: who still has the port is another one.
 * @param own says it of a person's own config that the server ended by itself with
 */
async function explained(error: unknown, kind: ServerKind, { address, port }: Address, log: string, logStart: number, own: ((said: string) => string) | undefined): Promise<unknown> {
  if (!(error instanceof UserError)) return error;
  if (address === loopback && (await portProblem(port))?.code === 'EADDRINUSE') return new AddressInUse();
  const last = (await lastLines(log, logStart)).filter((line) => kind.complaint.test(line)).at(-1);
  if (last === undefined) return error;
  // A config of one's own may listen on more ports than this one.
  if (own !== undefined) return /address already in use/i.test(last) ? new AddressInUse() : new UserError(own(last));
  return error.message.includes(last) ? error : new UserError(`${error.message}; ${kind.question.name}'s log: ${last}`);
}
