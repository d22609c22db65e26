// A Grafana of ours: started on loopback, awaited, ended.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { UserError } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import { makeFolder } from '../folders.ts';
import { startLogged, weighSession, withoutVariables, type Child, type ChildOptions } from '../process.ts';
import { loopbackAddress, portProblem } from '../servers/ports.ts';
import type { Influx } from '../store/index.ts';
import type { GrafanaProgram } from './find.ts';
import { dashboardsFolder, writeGrafanaFiles, type GrafanaFiles } from './settings.ts';

export interface RunningGrafana {
  /** e.g. http://127.0.0.1:3000 */
  origin: string;
  port: number;
  files: GrafanaFiles;
  pid: number;
  /** Resolves when it ends by itself or by stop(), to why in one line. */
  ended: Promise<string>;
  /** May be called twice. */
  stop(): Promise<void>;
}

interface GrafanaOptions {
  program: GrafanaProgram;
  influx: Influx;
  /** Its files go below it; made when it is not there. */
  folder: string;
  /** Cores to run on. */
  cpus: readonly number[];
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}

export const firstPort = 3000;
/** How far from the first port a free one is looked for. */
const portsTried = 100;
/** The first start makes a database of some hundred steps. */
const startTimeoutMs = 180_000;

/** Returns when Grafana answers; from then on it comes after whatever else runs on its cores. Throws a UserError when it does not start, and the signal's reason when that fires. */
export async function startGrafana({ program, influx, folder, cpus, env, signal }: GrafanaOptions): Promise<RunningGrafana> {
  const port = await freePort();
  const logFile = join(folder, 'grafana.log');
  let child: Child;
  let files: GrafanaFiles;
  try {
    makeFolder(folder);
    files = writeGrafanaFiles(folder, port, influx);
    child = await startLogged({ ...commandOf(program, folder, files.config, cpus), env: withoutVariables(env, 'GF_') }, logFile, 'w');
  } catch (error) {
    throw error instanceof UserError ? error : new UserError(`Grafana does not start: ${(error as Error).message}`);
  }
  const running: RunningGrafana = {
    origin: `http://127.0.0.1:${port}`,
    port,
    files,
    pid: child.pid,
    ended: child.exited.then(async () => `${await lastComplaint(logFile)} (its log: ${logFile})`),
    // A container takes a moment to end; its own limit is 10 s.
    stop: () => child.stop(15_000),
  };
  try {
    await answering(running, child, logFile, signal);
    if (program.kind === 'native') await comeLast(child.pid);
    return running;
  } catch (error) {
    await running.stop();
    throw error;
  }
}

/** The container sees the host's loopback, where InfluxDB is, and the same files under the same names. */
function commandOf(program: GrafanaProgram, folder: string, config: string, cpus: readonly number[]): Pick<ChildOptions, 'command' | 'args' | 'cpus' | 'cwd'> {
  if (program.kind === 'native') {
    // Some versions look for files of theirs in the folder they are started in.
    return { command: program.command, args: [...program.args, '--homepath', program.home, '--config', config], cpus, cwd: program.home };
  }
  return {
    command: program.command,
    args: [
      'run', '--rm', '--init', '--network', 'host', '--cpuset-cpus', cpus.join(','), '--user', `${process.getuid?.()}:${process.getgid?.()}`,
      '--volume', `${folder}:${folder}`, '--volume', `${dashboardsFolder}:${dashboardsFolder}:ro`,
      '--entrypoint', '/usr/share/grafana/bin/grafana', program.image, 'server', '--homepath', '/usr/share/grafana', '--config', config,
    ],
  };
}

async function answering({ origin }: RunningGrafana, child: Child, logFile: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    signal.throwIfAborted();
    if (child.hasExited()) throw new UserError(`Grafana does not start: ${await lastComplaint(logFile)} (its log: ${logFile})`);
    if (await isHealthy(origin)) return;
    if (performance.now() > deadline) throw new UserError(`Grafana did not answer within ${startTimeoutMs / 1000} s (its log: ${logFile})`);
    await delay(100);
  }
}

/**
 * Leaves the cores to a run that goes on meanwhile: it is looked at, and that must not cost it anything. Not before it answers: beside
 * a load that takes whole cores its start would take minutes.
 */
async function comeLast(pid: number): Promise<void> {
  await Promise.allSettled([
    // All threads of its process group, which is its own.
    promisify(execFile)('renice', ['-n', '19', '-g', String(pid)]),
    // Where sessions are weighed, that counts within its own only.
    weighSession(pid, 19),
  ]);
}

async function isHealthy(origin: string): Promise<boolean> {
  try {
    const response = await fetch(`${origin}/api/health`, { signal: AbortSignal.timeout(5000) });
    return response.ok && ((await response.json()) as { database?: string }).database === 'ok';
  } catch {
    return false;
  }
}

/** The last line of its log that complains, or else the last. */
async function lastComplaint(logFile: string): Promise<string> {
  const lines = await lastLines(logFile);
  return (lines.findLast((line) => /level=(error|crit)|error/i.test(line)) ?? lines.at(-1) ?? 'it ended without a word').slice(0, 300);
}

/** The first port from 3000 on that nobody listens on. */
async function freePort(): Promise<number> {
  for (let port = firstPort; port < firstPort + portsTried; port++) {
    if (await portProblem({ address: loopbackAddress, port }) === undefined) return port;
  }
  throw new UserError(`ports ${firstPort} to ${firstPort + portsTried - 1} are all taken: free one for Grafana`);
}
