// The load generators that are compared, each as the command a person would run.
import { join } from 'node:path';
import { UserError } from '../lib/errors.ts';
import { lastLine, run } from '../lib/setup/run.ts';

/** The same load for all: over HTTP/1, connections kept alive for a time, or a new one for each of a number of requests. */
export interface BenchLoad { url: string; connections: number; keepAlive: boolean; seconds: number; requests: number }

/** What one run of one contender came to. CPU is that of its whole process, start and end included. */
export interface Sample { requests: number; rps: number; errors: number; cpuMicrosPerRequest: number }

export interface Contender { name: string; run(load: BenchLoad, cpus: readonly number[], signal: AbortSignal): Promise<Sample> }

export interface Binaries { k6: string; wrk: string; ab: string }

/** k6's variables that matter for its cost: no reports, no downloads, and GOMAXPROCS as the runner sets it for one thread. */
const k6Variables = { K6_NO_USAGE_REPORT: 'true', K6_AUTO_EXTENSION_RESOLUTION: 'false' };
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
      return benchLine(await timed(k6, args, cpus, { ...k6Variables, ...output?.env, GOMAXPROCS: '3', LOAD: JSON.stringify(options) }, signal));
    },
  };
}

/** k6 as it comes: the reason for the load engine. It has all the threads it wants. */
export function stockK6(k6: string): Contender {
  return {
    name: 'k6/http',
    async run(load, cpus, signal) {
      const plan = { url: load.url, connections: load.connections, keepAlive: load.keepAlive, duration: `${load.seconds}s` };
      return benchLine(await timed(k6, [...k6Flags, script('k6-http.js')], cpus, { ...k6Variables, LOAD: JSON.stringify(plan) }, signal));
    },
  };
}

export function wrk(binary: string): Contender {
  return {
    name: 'wrk',
    async run(load, cpus, signal) {
      const finished = await timed(binary, ['-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`, load.url], cpus, {}, signal);
      const errors = [...finished.output.matchAll(/(?:connect|read|write|timeout|Non-2xx or 3xx responses:) (\d+)/g)];
      return {
        ...figures(finished, Number(match(finished, /(\d+) requests in/)), errors.reduce((sum, [, n]) => sum + Number(n), 0)),
        rps: Number(match(finished, /Requests\/sec: +([\d.]+)/)),
      };
    },
  };
}

export function ab(binary: string): Contender {
  return {
    name: 'ab',
    async run(load, cpus, signal) {
      const keep = load.keepAlive ? ['-k'] : [];
      const finished = await timed(binary, ['-q', ...keep, '-c', String(load.connections), '-n', String(load.requests), load.url], cpus, {}, signal);
      return {
        ...figures(finished, Number(match(finished, /Complete requests: +(\d+)/)), Number(match(finished, /Failed requests: +(\d+)/))),
        rps: Number(match(finished, /Requests per second: +([\d.]+)/)),
      };
    },
  };
}

interface Timed { name: string; output: string; cpuSeconds: number }

/** Runs a command; bash reports the CPU time of the whole process from the kernel's accounting, in milliseconds. */
async function timed(command: string, args: readonly string[], cpus: readonly number[], variables: Record<string, string>, signal: AbortSignal): Promise<Timed> {
  const { code, stdout, stderr } = await run({
    command: 'bash',
    args: ['-c', 'TIMEFORMAT="CPU %3U %3S"; time "$@"', 'bash', command, ...args],
    cpus,
    env: { ...process.env, LC_ALL: 'C', ...variables },
    signal,
  });
  const times = /^CPU ([\d.]+) ([\d.]+)$/m.exec(stderr);
  if (code !== 0 || times === null) throw new UserError(`${command} ended with code ${code}: ${lastLine(stderr.replace(/^CPU .*$/m, ''))}`);
  return { name: command, output: `${stdout}\n${stderr}`, cpuSeconds: Number(times[1]) + Number(times[2]) };
}

function match({ name, output }: Timed, pattern: RegExp): string {
  const found = pattern.exec(output)?.[1];
  if (found === undefined) throw new UserError(`${name} printed nothing like ${pattern}: is it another version?`);
  return found;
}

function figures(finished: Timed, requests: number, errors: number): Omit<Sample, 'rps'> {
  return { requests, errors, cpuMicrosPerRequest: (finished.cpuSeconds / requests) * 1e6 };
}

/** Both k6 scripts print one line of JSON. */
function benchLine(finished: Timed): Sample {
  const { requests, rps, errors } = JSON.parse(match(finished, /BENCH (\{.*\})/)) as { requests: number; rps: number; errors: number };
  return { ...figures(finished, requests, errors), rps };
}
