// nginx: checks its composed config, starts it in the foreground, waits until it serves the page.
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { startChild, type Child } from '../process.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { lastLine, run } from '../setup/run.ts';
import { watchLifecycle } from './lifecycle.ts';
import { lastLines } from '../log-file.ts';
import { nginxBuild, type NginxBuild } from './nginx-build.ts';
import { composeNginx } from './nginx-compose.ts';
import { freePort, portProblem } from './ports.ts';
import { waitUntilReady } from './ready.ts';
import { makeScratch } from './scratch.ts';
import type { RunningServer, StartOptions } from './server.ts';
import { watchUsage } from './usage.ts';

/** Free ports to try: another process may take one between the look and nginx's start. */
const portTries = 5;

/** A line of nginx's that says what is wrong; warnings and notices are not. */
const complaint = /\[(emerg|alert|crit|error)\]/;

/**
 * Starts nginx on 127.0.0.1, pinned to `options.cpus`, and returns once it serves the page. Throws UserError when binary,
 * config, port, limit of open files or answer is not right, or the signal's reason; nothing is left running then.
 */
export async function startNginx(spec: ServerSpec, options: StartOptions): Promise<RunningServer> {
  const build = await nginxBuild(options.binary, options.signal);
  await mkdir(options.folder, { recursive: true });
  if (options.port !== undefined) await requirePort(options.port);
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(port, spec, options, build);
    } catch (error) {
      if (!(error instanceof AddressInUse)) throw error;
      if (options.port !== undefined || tries === portTries) throw portInUse(port);
    }
  }
}

class AddressInUse extends Error {}

async function startOn(port: number, spec: ServerSpec, options: StartOptions, build: NginxBuild): Promise<RunningServer> {
  const files = filesIn(options);
  const logStart = await stat(files.log).then(({ size }) => size, () => 0);
  const scratch = await makeScratch();
  let child: Child;
  try {
    const config = await composeNginx(spec.config, {
      port,
      workers: options.workers,
      connections: options.connections,
      docroot: scratch.docroot,
      temp: scratch.temp,
      pidFile: files.pid,
      logFile: files.log,
      accessLogFile: files.accessLog,
      user: await unprivilegedUser(),
      tempModules: build.tempModules,
    });
    await writeFile(files.config, config);
    await checkConfig(options, files, config);
    child = await startMaster(options, files);
  } catch (error) {
    await scratch.remove();
    throw error;
  }
  const origin = `http://127.0.0.1:${port}`;
  const { died, stop } = watchLifecycle('nginx', child, files.log, scratch.remove);
  try {
    await untilServing(origin, options, files.pid, { pid: child.pid, died });
  } catch (error) {
    await stop();
    throw await explained(error, files.log, logStart);
  }
  return {
    name: 'nginx',
    version: build.version,
    pid: child.pid,
    origin,
    workers: options.workers,
    configFile: files.config,
    logFile: files.log,
    ...(files.accessLog === undefined ? {} : { accessLogFile: files.accessLog }),
    usage: watchUsage(child.pid),
    died,
    stop,
  };
}

interface Files { folder: string; config: string; log: string; pid: string; accessLog: string | undefined }

function filesIn(options: StartOptions): Files {
  const folder = path.resolve(options.folder);
  return {
    folder,
    config: path.join(folder, 'nginx.conf'),
    log: path.join(folder, 'error.log'),
    pid: path.join(folder, 'nginx.pid'),
    accessLog: options.accessLog === true ? path.join(folder, 'access.log') : undefined,
  };
}

/** nobody and its group (nogroup on Debian, nobody elsewhere), for an nginx started by root; otherwise undefined. */
async function unprivilegedUser(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const { code, stdout, stderr } = await run({ command: 'id', args: ['-gn', 'nobody'] });
  if (code !== 0) throw new UserError(`nginx's workers run as the user nobody, which is not there (${lastLine(stderr)}): create it, or start bakeoff without root`);
  return `nobody ${stdout.trim()}`;
}

async function requirePort(port: number): Promise<void> {
  const problem = await portProblem(port);
  if (problem?.code === 'EADDRINUSE') throw portInUse(port);
  if (problem !== undefined) throw new UserError(`nginx cannot listen on port ${port}: ${problem.message}`);
}

function portInUse(port: number): UserError {
  return new UserError(`port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`);
}

/** `nginx -t`. Throws UserError with nginx's own words, the file, and the line that they are about. */
async function checkConfig(options: StartOptions, files: Files, config: string): Promise<void> {
  const args = ['-t', '-q', '-p', files.folder, '-c', files.config];
  const { code, stderr } = await run({ command: options.binary, args, ...(options.signal === undefined ? {} : { signal: options.signal }) });
  if (code === 0) return;
  const complaints = stderr.split('\n').filter((line) => complaint.test(line));
  const number = complaints.map((line) => /:(\d+)$/.exec(line)?.[1]).find((found) => found !== undefined);
  const line = number === undefined ? [] : [`line ${number}: ${config.split('\n')[Number(number) - 1]?.trim()}`];
  const said = complaints.length > 0 ? complaints : [lastLine(stderr)];
  throw new UserError([`nginx does not accept its config ${files.config}:`, ...said, ...line].join('\n'));
}

async function startMaster(options: StartOptions, files: Files): Promise<Child> {
  options.signal?.throwIfAborted();
  // For what is said before nginx has read where its log is.
  const log = openSync(files.log, 'a');
  try {
    return await startChild({
      command: options.binary,
      args: ['-p', files.folder, '-c', files.config],
      cpus: options.cpus,
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
}

async function untilServing(origin: string, options: StartOptions, pidFile: string, { pid, died }: { pid: number; died: Promise<string> }): Promise<void> {
  const over = new AbortController();
  const signal = options.signal === undefined ? over.signal : AbortSignal.any([over.signal, options.signal]);
  const ended = died.then((line) => {
    throw new UserError(line);
  });
  const serving = waitUntilReady(origin, options.page, signal).then(() => untilItHasThePort(pidFile, pid, signal));
  try {
    await Promise.race([serving, ended]);
  } finally {
    over.abort();
  }
}

/** The answer may have been another server's that took the port first: nginx writes its pid file only once it listens. */
async function untilItHasThePort(pidFile: string, pid: number, signal: AbortSignal): Promise<void> {
  while ((await readFile(pidFile, 'utf8').catch(() => '')).trim() !== String(pid)) {
    signal.throwIfAborted();
    await delay(20);
  }
}

/** Adds what nginx's log says about it. */
async function explained(error: unknown, log: string, logStart: number): Promise<unknown> {
  if (!(error instanceof UserError)) return error;
  const complaints = (await lastLines(log, logStart)).filter((line) => complaint.test(line));
  if (complaints.some((line) => line.includes('(98: '))) return new AddressInUse();
  const last = complaints.at(-1);
  return last === undefined || error.message.includes(last) ? error : new UserError(`${error.message}; nginx's log: ${last}`);
}
