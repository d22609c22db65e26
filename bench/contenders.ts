// The load generators, with the commands that a user would run.
import { join } from 'node:path';
import { total } from '../lib/analysis/statistics.ts';
import { UserError } from '../lib/errors.ts';
import type { CallOptions, LoadOptions } from '../lib/k6/load-plan.ts';
import { withoutVariables, lastLine, run } from '../lib/process.ts';
import { textOf } from '../lib/files.ts';
import { instanceArguments } from '../lib/runner/generators.ts';
import { processTree } from '../lib/servers/usage.ts';
import type { LoadProfile } from '../lib/scenario/model.ts';
import type { Store } from '../lib/store/store.ts';
import { readAb, readH2load, readK6, readWrk, type Printed } from './printed.ts';

/** Stop rule: a time or a number of requests, repeated `runs` times (default 1). */
export type RunLength = { seconds: number } | { requests: number; runs?: number };

/** The load, the same for all generators. */
export interface BenchLoad {
  protocol: LoadProfile['protocol'];
  connections: number;
  streams: number;
  /** false: a new connection for each request. */
  keepAlive: boolean;
  length: RunLength;
  /** Open model, in requests/s; only for the load engine. */
  rate?: number;
}

/** One run of a contender. CPU time and memory include the start and end of the process. */
export interface Sample extends Printed {
  cpuMicrosPerRequest: number;
  peakRssBytes: number;
}

export interface Contender {
  name: string;
  tool: 'k6' | 'wrk' | 'ab' | 'h2load';
  /** Streams samples to the bench's InfluxDB. */
  streaming?: true;
  /** CPU time covers the load only, as the generator reports it, not the whole process. */
  withoutStart?: true;
  command(url: string, load: BenchLoad): Command;
  /** Throws UserError for other output. */
  read(output: string): Printed;
}

interface Command {
  args: string[];
  /** Arguments of additional processes that share the load. */
  beside?: string[][];
  env?: Record<string, string>;
  /** Number of starts (default 1). */
  runs?: number;
}

/** Two k6 processes start on one core within this time. */
const startMs = 2000;

/** k6 without usage reports and downloads. */
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

/** A few connections: the peer of many. */
export const loadgenOfTen: Contender = {
  ...loadgen,
  name: 'loadgen, 10 at a time',
  command: (url, load) => loadgen.command(url, { ...load, connections: 10 }),
};

/** Excludes the CPU time of the start. */
export const loadgenWithoutStart: Contender = {
  ...loadgen,
  name: 'loadgen, one k6',
  withoutStart: true,
};

/** Two k6 processes share the load and start together. */
export const twoLoadgens: Contender = {
  ...loadgenWithoutStart,
  name: 'loadgen, two k6',
  command(url, load) {
    const { args, env } = loadgen.command(url, load);
    const plan = JSON.parse(env?.['LOAD'] as string) as { options: LoadOptions };
    const options: LoadOptions & CallOptions = {
      ...plan.options,
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
      env: { ...env, LOAD: JSON.stringify({ ...plan, options, instances: 2 }) },
    };
  },
};

export const streamingLoadgen: Contender = {
  ...loadgen,
  name: 'loadgen, streaming',
  streaming: true,
};

/** Stock k6, with its default number of threads. */
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

/** h2load opens a new connection for each request if connections and requests are equal in number. */
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
  binary: string;
  cpus: readonly number[];
  /**
   * Shared with the server. Then the generator runs under SCHED_BATCH like the load engine's threads, so that it does not preempt
   * the server.
   */
  sharesCore: boolean;
  /** Only for contenders that stream samples. */
  output: ReturnType<Store['k6Output']> | null;
  signal: AbortSignal;
}

/**
 * Runs a contender; bash reports the CPU time of the whole process. The parent-death signal is set again below bash, because
 * children do not inherit it. Throws UserError if the contender fails or its output is not understood, and the reason of an
 * aborted signal.
 */
export async function runContender(
  contender: Contender,
  url: string,
  load: BenchLoad,
  { binary, cpus, sharesCore, output, signal }: RunOptions,
): Promise<Sample> {
  const { args, beside = [], env, runs = 1 } = contender.command(url, load);
  const stream = contender.streaming === true ? output : null;
  // Raise the soft limit of open files, which is often lower than the hard one.
  const script =
    'TIMEFORMAT="CPU %3U %3S"; ulimit -Sn hard; runs=$1; shift; ' +
    // & separates the arguments of one process from those of the next.
    'all() { local words=() beside=(); for word; do if [ "$word" = "&" ]; then setpriv --pdeathsig TERM -- "${words[@]}" & beside+=($!); words=(); else words+=("$word"); fi; done; ' +
    'setpriv --pdeathsig TERM -- "${words[@]}" || return; for pid in "${beside[@]}"; do wait "$pid" || return; done; }; ' +
    'time for ((run = 0; run < runs; run++)); do all "$@" || exit; done';
  const commandOf = (processArgs: readonly string[]): string[] => [
    ...(sharesCore ? ['chrt', '--batch', '0'] : []),
    binary,
    ...processArgs,
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
      ...beside.flatMap((others) => [...commandOf(others), '&']),
      ...commandOf(args),
    ],
    cpus,
    // K6_ variables in the user's shell would change the load or redirect the samples.
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

/** The kernel records each process's peak, so the sampling misses only growth right before the end. */
const periodMs = 250;

/**
 * Samples the memory of a shell's child processes; `start` takes the shell's pid. `bytes` is the largest sum of their peaks
 * (VmHWM); 0 if no process was seen.
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
