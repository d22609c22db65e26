// The load generators that are compared, each as the command a person would run.
import { join } from 'node:path';
import { UserError } from '../lib/errors.ts';
import { lastLine, run } from '../lib/setup/run.ts';

/** The same load for all: over HTTP/1, connections kept alive for a time, or a new one for each of a number of requests. */
export interface BenchLoad { url: string; connections: number; keepAlive: boolean; seconds: number; requests: number }

/** What a generator prints of a run. `errors`: everything but 2xx and 3xx. */
export interface Printed { requests: number; rps: number; errors: number }

/** What one run of one contender came to. CPU is that of its whole process, start and end included. */
export interface Sample extends Printed { cpuMicrosPerRequest: number }

export interface Contender { name: string; run(load: BenchLoad, cpus: readonly number[], signal: AbortSignal): Promise<Sample> }

export interface Binaries { k6: string; wrk: string; ab: string }

/** k6 without reports and downloads, and without what the person's shell says to k6. */
const k6Environment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('K6_'))),
  K6_NO_USAGE_REPORT: 'true', K6_AUTO_EXTENSION_RESOLUTION: 'false',
};
const k6Flags = ['run', '--quiet', '--no-color', '--address', '', '--log-format', 'raw'];

function script(name: string): string {
  return join(import.meta.dirname, name);
}

/** k6 with the load engine; `output` streams its samples to a database. */
export function loadgen(k6: string, name = 'loadgen', output?: { out: readonly string[]; env: Readonly<Record<string, string>> }): Contender {
  return {
    name,
    async run(load, cpus, signal) {
      const options = {
        url: load.url, connections: load.connections, keepAlive: load.keepAlive,
        ...(load.keepAlive ? { duration: `${load.seconds}s` } : { requests: load.requests, protocol: 'http/1.0' }),
      };
      const args = [...k6Flags, '--summary-mode=disabled', ...(output?.out ?? []).flatMap((out) => ['--out', out]), script('loadgen.js')];
      // GOMAXPROCS as the runner sets it for one thread.
      return timed({ command: k6, args, cpus, env: { ...k6Environment, ...output?.env, GOMAXPROCS: '3', LOAD: JSON.stringify(options) }, signal }, readK6);
    },
  };
}

/** k6 as it comes: the reason for the load engine. It has all the threads it wants. */
export function stockK6(k6: string): Contender {
  return {
    name: 'k6/http',
    async run(load, cpus, signal) {
      const plan = { url: load.url, connections: load.connections, keepAlive: load.keepAlive, duration: `${load.seconds}s` };
      return timed({ command: k6, args: [...k6Flags, script('k6-http.js')], cpus, env: { ...k6Environment, LOAD: JSON.stringify(plan) }, signal }, readK6);
    },
  };
}

export function wrk(binary: string): Contender {
  return {
    name: 'wrk',
    run: (load, cpus, signal) => timed({ command: binary, args: ['-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`, load.url], cpus, env: process.env, signal }, readWrk),
  };
}

export function ab(binary: string): Contender {
  return {
    name: 'ab',
    run: (load, cpus, signal) => {
      const keep = load.keepAlive ? ['-k'] : [];
      return timed({ command: binary, args: ['-q', ...keep, '-c', String(load.connections), '-n', String(load.requests), load.url], cpus, env: process.env, signal }, readAb);
    },
  };
}

/** Reads what wrk prints. Throws UserError when it is not what wrk 4 prints. */
export function readWrk(output: string): Printed {
  const errors = [...output.matchAll(/(?:connect|read|write|timeout|Non-2xx or 3xx responses:) (\d+)/g)];
  return {
    requests: Number(match(output, /(\d+) requests in/)),
    rps: Number(match(output, /Requests\/sec: +([\d.]+)/)),
    errors: errors.reduce((sum, [, n]) => sum + Number(n), 0),
  };
}

/** Reads what ab prints; the line on other answers than 2xx is only there when there were some. */
export function readAb(output: string): Printed {
  return {
    requests: Number(match(output, /Complete requests: +(\d+)/)),
    rps: Number(match(output, /Requests per second: +([\d.]+)/)),
    errors: Number(match(output, /Failed requests: +(\d+)/)) + Number(/Non-2xx responses: +(\d+)/.exec(output)?.[1] ?? 0),
  };
}

/** Both k6 scripts print one line of JSON. */
export function readK6(output: string): Printed {
  return JSON.parse(match(output, /BENCH (\{.*\})/)) as Printed;
}

function match(output: string, pattern: RegExp): string {
  const found = pattern.exec(output)?.[1];
  if (found === undefined) throw new UserError(`a load generator printed nothing like ${pattern}: is it another version? ${lastLine(output)}`);
  return found;
}

interface Timed { command: string; args: readonly string[]; cpus: readonly number[]; env: NodeJS.ProcessEnv; signal: AbortSignal }

/**
 * Runs a command; bash reports the CPU time of the whole process from the kernel's accounting, in milliseconds. The
 * parent-death signal is set anew below bash: it does not pass to the children of a process.
 */
async function timed({ command, args, cpus, env, signal }: Timed, read: (output: string) => Printed): Promise<Sample> {
  const { code, stdout, stderr } = await run({
    command: 'bash',
    args: ['-c', 'TIMEFORMAT="CPU %3U %3S"; time setpriv --pdeathsig TERM -- "$@"', 'bash', command, ...args],
    cpus,
    env: { ...env, LC_ALL: 'C' },
    signal,
  });
  const times = /^CPU ([\d.]+) ([\d.]+)$/m.exec(stderr);
  if (code !== 0 || times === null) throw new UserError(`${command} ended with code ${code}: ${lastLine(stderr.replace(/^CPU .*$/m, ''))}`);
  const printed = read(`${stdout}\n${stderr}`);
  return { ...printed, cpuMicrosPerRequest: ((Number(times[1]) + Number(times[2])) / printed.requests) * 1e6 };
}
