// The load generators that are compared, each as the command a person would run.
import { join } from 'node:path';
import { total } from '../lib/analysis/statistics.ts';
import { UserError } from '../lib/errors.ts';
import type { CallOptions, LoadOptions } from '../lib/k6/load-plan.ts';
import { withoutVariables } from '../lib/process.ts';
import { textOf } from '../lib/files.ts';
import { instanceArguments } from '../lib/runner/generators.ts';
import { processTree } from '../lib/servers/usage.ts';
import { lastLine, run } from '../lib/setup/run.ts';
import type { Store } from '../lib/store/store.ts';
import { readAb, readH2load, readK6, readWrk, type Printed } from './printed.ts';

/** For a time, or a number of requests; `runs`: so often, one after another (1). */
export type RunLength = { seconds: number } | { requests: number; runs?: number };

/** The same load for all. */
export interface BenchLoad {
  protocol: 'http/1.0' | 'http/1.1' | 'h2' | 'h2c';
  connections: number;
  /** Concurrent requests per connection. */
  streams: number;
  /** false: a new connection for each request. */
  keepAlive: boolean;
  length: RunLength;
  /** Open model, in requests/s: of the load engine alone. */
  rate?: number;
}

/** What one run of one contender came to. CPU and memory are those of its whole process, start and end included. */
export interface Sample extends Printed {
  cpuMicrosPerRequest: number;
  peakRssBytes: number;
}

export interface Contender {
  name: string;
  tool: 'k6' | 'wrk' | 'ab' | 'h2load';
  /** Streams its samples to the bench's own InfluxDB. */
  streaming?: true;
  /** Its CPU is that of the load, as it says itself: of the whole process where absent. */
  withoutStart?: true;
  command(url: string, load: BenchLoad): Command;
  /** Throws UserError when that is not what the generator prints. */
  read(output: string): Printed;
}

interface Command {
  args: string[];
  /** Of further processes that make the load with it. */
  beside?: string[][];
  /** Beside the person's own. */
  env?: Record<string, string>;
  /** How often it is started, where one run of it is not the whole load. */
  runs?: number;
}

/** In which two k6 are up, on one core. */
const startMs = 2000;

/** k6 without reports and downloads. */
const k6Environment = { K6_NO_USAGE_REPORT: 'true', K6_AUTO_EXTENSION_RESOLUTION: 'false' };
const k6Flags = ['run', '--quiet', '--no-color', '--address', '', '--log-format', 'raw'];

/** k6 with the load engine. */
export const loadgen: Contender = {
  name: 'loadgen',
  tool: 'k6',
  command(url, { protocol, connections, streams, keepAlive, length, rate }) {
    const timed =
      'seconds' in length ? { duration: `${length.seconds}s` } : { requests: length.requests };
    const stop = rate === undefined ? timed : { ...timed, rate, warmup: '500ms' };
    const options = {
      url,
      protocol,
      connections,
      streams,
      keepAlive,
      ...stop,
      ...(url.startsWith('https:') ? { tls: { insecureSkipVerify: true } } : {}),
    };
    return {
      args: [...k6Flags, '--summary-mode=disabled', join(import.meta.dirname, 'loadgen.js')],
      // GOMAXPROCS as the runner sets it for one thread.
      env: {
        ...k6Environment,
        GOMAXPROCS: '3',
        LOAD: JSON.stringify({ options, runs: runsOf(length) }),
      },
    };
  },
  read: readK6,
};

/** The load of a few connections, for what many cost more. */
export const loadgenOfTen: Contender = {
  ...loadgen,
  name: 'loadgen, 10 at a time',
  command: (url, load) => loadgen.command(url, { ...load, connections: 10 }),
};

/** What the load itself costs. */
export const loadgenWithoutStart: Contender = {
  ...loadgen,
  name: 'loadgen, one k6',
  withoutStart: true,
};

/** The same load by two k6, which begin together once both are up. */
export const twoLoadgens: Contender = {
  ...loadgenWithoutStart,
  name: 'loadgen, two k6',
  command(url, load) {
    const { args, env } = loadgen.command(url, load);
    const one = JSON.parse(env?.['LOAD'] as string) as { options: LoadOptions };
    const options: LoadOptions & CallOptions = {
      ...one.options,
      segmented: true,
      startAt: Date.now() + startMs,
    };
    const [first = [], ...beside] = [1, 2].map((instance) => [
      ...args,
      ...instanceArguments(instance, 2),
    ]);
    return {
      args: first,
      beside,
      env: { ...env, LOAD: JSON.stringify({ ...one, options, instances: 2 }) },
    };
  },
};

export const streamingLoadgen: Contender = {
  ...loadgen,
  name: 'loadgen, streaming',
  streaming: true,
};

/** k6 as it comes: the reason for the load engine. It has all the threads it wants. */
export const stockK6: Contender = {
  name: 'k6/http',
  tool: 'k6',
  command: (url, { connections, keepAlive, length }) => ({
    args: [...k6Flags, join(import.meta.dirname, 'k6-http.js')],
    env: {
      ...k6Environment,
      LOAD: JSON.stringify({ url, connections, keepAlive, duration: `${secondsOf(length)}s` }),
    },
  }),
  read: readK6,
};

export const wrk: Contender = {
  name: 'wrk',
  tool: 'wrk',
  command: (url, { connections, length }) => ({
    args: ['-t', '1', '-c', String(connections), '-d', `${secondsOf(length)}s`, url],
  }),
  read: readWrk,
};

export const ab: Contender = {
  name: 'ab',
  tool: 'ab',
  command: (url, { connections, keepAlive, length }) => ({
    args: [
      '-q',
      ...(keepAlive ? ['-k'] : []),
      '-c',
      String(connections),
      '-n',
      String(requestsOf(length)),
      url,
    ],
  }),
  read: readAb,
};

/** A new connection for each request is what it makes where there are as many connections as requests. */
export const h2load: Contender = {
  name: 'h2load',
  tool: 'h2load',
  command: (url, { protocol, connections, streams, length }) => {
    const stop =
      'seconds' in length ? ['-D', String(length.seconds)] : ['-n', String(length.requests)];
    const version = protocol.startsWith('http/') ? ['--h1'] : [];
    return {
      args: ['-t', '1', ...version, '-c', String(connections), '-m', String(streams), ...stop, url],
      runs: runsOf(length),
    };
  },
  read: readH2load,
};

function runsOf(length: RunLength): number {
  return 'runs' in length && length.runs !== undefined ? length.runs : 1;
}

function secondsOf(length: RunLength): number {
  if ('seconds' in length) return length.seconds;
  throw new Error('this generator runs for a time only');
}

function requestsOf(length: RunLength): number {
  if ('requests' in length) return length.requests;
  throw new Error('this generator makes a number of requests only');
}

export interface RunOptions {
  /** Of the contender. */
  binary: string;
  cpus: readonly number[];
  /** With the server. Then it runs under SCHED_BATCH, as the load engine's threads always do: it does not push the server aside when it wakes up. */
  sharesCore: boolean;
  /** For one that streams. */
  output: ReturnType<Store['k6Output']> | null;
  signal: AbortSignal;
}

/**
 * Runs a contender; bash reports the CPU time of its whole process from the kernel's accounting, in milliseconds. The
 * parent-death signal is set anew below bash: it does not pass to the children of a process. Throws UserError when it
 * fails or prints something else, or the signal's reason.
 */
export async function runContender(
  contender: Contender,
  url: string,
  load: BenchLoad,
  { binary, cpus, sharesCore, output, signal }: RunOptions,
): Promise<Sample> {
  const { args, beside = [], env, runs = 1 } = contender.command(url, load);
  const stream = contender.streaming === true ? output : null;
  // The limit of open files is per process, and many a shell's is lower than it may be.
  const script =
    'TIMEFORMAT="CPU %3U %3S"; ulimit -Sn hard; runs=$1; shift; ' +
    // Words up to & are a process beside that of the last words.
    'all() { local words=() beside=(); for word; do if [ "$word" = "&" ]; then setpriv --pdeathsig TERM -- "${words[@]}" & beside+=($!); words=(); else words+=("$word"); fi; done; ' +
    'setpriv --pdeathsig TERM -- "${words[@]}" || return; for pid in "${beside[@]}"; do wait "$pid" || return; done; }; ' +
    'time for ((run = 0; run < runs; run++)); do all "$@" || exit; done';
  const commandOf = (words: readonly string[]): string[] => [
    ...(sharesCore ? ['chrt', '--batch', '0'] : []),
    binary,
    ...words,
    ...(stream?.out ?? []).flatMap((out) => ['--out', out]),
  ];
  const peak = watchPeakRss();
  const { code, stdout, stderr } = await run({
    command: 'bash',
    args: [
      '-c',
      script,
      'bash',
      String(runs),
      ...beside.flatMap((words) => [...commandOf(words), '&']),
      ...commandOf(args),
    ],
    cpus,
    // What the person's shell says to k6 would change the load or send the samples elsewhere.
    env: { ...withoutVariables(process.env, 'K6_'), ...env, ...stream?.env, LC_ALL: 'C' },
    signal,
    started: peak.start,
  }).finally(peak.stop);
  const times = /^CPU ([\d.]+) ([\d.]+)$/m.exec(stderr);
  if (code !== 0 || times === null)
    throw new UserError(
      `${contender.name} ended with code ${code}: ${lastLine(stderr.replace(/^CPU .*$/m, '')) || lastLine(stdout)}`,
    );
  const printed = contender.read(`${stdout}\n${stderr}`);
  const cpuSeconds =
    contender.withoutStart === true
      ? (printed.cpuSeconds ?? NaN)
      : Number(times[1]) + Number(times[2]);
  return {
    ...printed,
    cpuMicrosPerRequest: (cpuSeconds / printed.requests) * 1e6,
    peakRssBytes: peak.bytes(),
  };
}

/** How often memory is looked at. The kernel keeps the peak itself, so that only growth in a process's last moments is missed. */
const periodMs = 250;

/**
 * Watches a command that is run by a shell. `start` takes the shell's process id; `bytes` is the largest peak (VmHWM) of the
 * processes below it together, 0 when none was seen.
 */
function watchPeakRss(): { start(pid: number): void; stop(): void; bytes(): number } {
  let peak = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    start(pid) {
      timer = setInterval(() => {
        peak = Math.max(peak, total(processTree('/proc', String(pid)).slice(1), peakRssBytes));
      }, periodMs);
    },
    stop: () => clearInterval(timer),
    bytes: () => peak,
  };
}

function peakRssBytes(pid: string): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0) * 1024;
}
