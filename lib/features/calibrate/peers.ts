// The load generators that people know, with the commands that a user would run, and the run of one.
import { join } from 'node:path';
import { helper } from '../../../bin/trust.mjs';
import { total } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { present } from '../../present.ts';
import { lastLine, run, withoutVariables } from '../../process.ts';
import { withoutK6Config, type LoadOptions } from '../../k6/load-plan.ts';
import type { LoadProfile } from '../../scenario/model.ts';
import { processTree } from '../../servers/usage.ts';
import { projectRoot } from '../../setup/paths.ts';
import type { ToolName } from '../../setup/tools.ts';
import type { K6Options } from '../../runner/k6.ts';
import {
  readAb,
  readH2load,
  readK6,
  readOha,
  readVegeta,
  readWrk,
  type Printed,
} from './printed.ts';

/** Stop rule: a time or a number of requests, repeated `runs` times (default 1). */
export type RunLength = { seconds: number } | { requests: number; runs?: number };

/** The load, the same for all generators. Each generator writes the length in its own way. */
export interface GeneratorLoad
  extends
    Pick<LoadProfile, 'protocol' | 'connections' | 'keepAlive' | 'rate'>,
    Required<Pick<LoadProfile, 'streams'>> {
  length: RunLength;
}

/** One run of a generator. CPU time and memory include the start and end of the process. */
export interface Sample extends Printed {
  cpuMicrosPerRequest: number;
  peakRssBytes: number;
}

export interface Generator<Tool extends string = ToolName> {
  name: string;
  /** The program that it is. */
  tool: Tool;
  /** Streams samples to the bench's InfluxDB. */
  streaming?: true;
  /** CPU time covers the load only, as the generator reports it, not the whole process. */
  withoutStart?: true;
  command(url: string, load: GeneratorLoad): Command;
  /** Throws UserError for other output. */
  read(output: string): Printed;
}

interface Command {
  args: string[];
  /** A script for bash, which gets the program as $0 and `args`. */
  script?: string;
  /** Arguments of additional processes that share the load. */
  beside?: string[][];
  env?: Record<string, string>;
  /** Number of starts (default 1). */
  runs?: number;
}

/** k6 without usage reports, downloads and the user's settings. */
const k6Environment = {
  K6_NO_USAGE_REPORT: 'true',
  K6_AUTO_EXTENSION_RESOLUTION: 'false',
  ...withoutK6Config,
};
const k6Flags = ['run', '--quiet', '--no-color', '--address', '', '--log-format', 'raw'];

/** k6 with the load engine. @param engineOptions options that only the engine has */
export function loadgenWith(
  name: string,
  engineOptions: Pick<LoadOptions, 'spin'> = {},
): Generator {
  return {
    name,
    tool: 'k6',
    command(url, { protocol, connections, streams, keepAlive, length, rate }) {
      const timed =
        'seconds' in length ? { duration: `${length.seconds}s` } : { requests: length.requests };
      const stop = rate === undefined ? timed : { ...timed, rate, warmup: '500ms' };
      const options: LoadOptions = {
        url,
        protocol,
        connections,
        streams,
        keepAlive,
        ...stop,
        ...engineOptions,
        ...present({ tls: url.startsWith('https:') ? { insecureSkipVerify: true } : undefined }),
      };
      const script = join(projectRoot, 'lib/features/calibrate/loadgen.js');
      return {
        args: [...k6Flags, '--summary-mode=disabled', script],
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
}

/** Stock k6, with its default number of threads. */
export const stockK6: Generator = {
  name: 'k6/http',
  tool: 'k6',
  command: (url, { connections, keepAlive, length, rate }) => ({
    args: [...k6Flags, join(projectRoot, 'lib/features/calibrate/k6-http.js')],
    env: {
      ...k6Environment,
      LOAD: JSON.stringify({ url, connections, keepAlive, seconds: secondsOf(length), rate }),
    },
  }),
  read: readK6,
};

const wrkArguments = (url: string, { connections, length }: GeneratorLoad): string[] => [
  '-t',
  '1',
  '-c',
  String(connections),
  '-d',
  `${secondsOf(length)}s`,
  '--latency',
  url,
];

export const wrk: Generator = {
  name: 'wrk',
  tool: 'wrk',
  command: (url, load) => ({ args: wrkArguments(url, load) }),
  read: readWrk,
};

export const wrk2: Generator<string> = {
  name: 'wrk2',
  tool: 'wrk2',
  command: (url, load) => ({ args: ['-R', String(load.rate), ...wrkArguments(url, load)] }),
  read: readWrk,
};

/** Most requests of a load that ends by its time. */
const mostRequests = 10_000_000;

export const ab: Generator = {
  name: 'ab',
  tool: 'ab',
  command: (url, { connections, keepAlive, length }) => {
    const stop =
      'seconds' in length
        ? ['-t', String(length.seconds), '-n', String(mostRequests)]
        : ['-n', String(length.requests)];
    const kept = keepAlive ? ['-k'] : [];
    return { args: ['-q', ...kept, '-c', String(connections), ...stop, url] };
  },
  read: readAb,
};

/** h2load opens a new connection for each request if connections and requests are equal in number. */
export const h2load: Generator = {
  name: 'h2load',
  tool: 'h2load',
  command: (url, { protocol, connections, streams, length, rate }) => {
    const stop =
      'seconds' in length ? ['-D', String(length.seconds)] : ['-n', String(length.requests)];
    const version = protocol.startsWith('http/') ? ['--h1'] : [];
    const perClient = rate === undefined ? [] : ['--rps', String(rate / connections)];
    const clients = ['-c', String(connections), '-m', String(streams)];
    return {
      args: ['-t', '1', ...version, ...clients, ...perClient, ...stop, url],
      runs: runsOf(length),
    };
  },
  read: readH2load,
};

export const vegeta: Generator<string> = {
  name: 'vegeta',
  tool: 'vegeta',
  command: (url, { connections, length, rate }) => {
    const workers = [`-workers=${connections}`, `-connections=${connections}`];
    // Without a rate its workers ask again at once.
    const pace =
      rate === undefined ? ['-rate=0', `-max-workers=${connections}`] : [`-rate=${rate}`];
    return {
      script: 'url=$1; shift; echo "GET $url" | "$0" attack "$@" | "$0" report -type=json',
      args: [url, ...pace, ...workers, `-duration=${secondsOf(length)}s`, '-insecure'],
    };
  },
  read: readVegeta,
};

export const oha: Generator<string> = {
  name: 'oha',
  tool: 'oha',
  command: (url, { protocol, connections, streams, length, rate }) => {
    const pace = rate === undefined ? [] : ['-q', String(rate), '--latency-correction'];
    const version = protocol === 'h2' ? ['--http2', '-p', String(streams)] : [];
    const clients = ['-c', String(connections), '-z', `${secondsOf(length)}s`];
    return {
      args: [
        '--no-tui',
        '--output-format',
        'json',
        '--insecure',
        ...version,
        ...clients,
        ...pace,
        url,
      ],
    };
  },
  read: readOha,
};

function runsOf(length: RunLength): number {
  return 'runs' in length && length.runs !== undefined ? length.runs : 1;
}

function secondsOf(length: RunLength): number {
  if ('seconds' in length) return length.seconds;
  throw new Error('this generator runs for a time only');
}

/** How a generator is run. */
export interface RunOptions {
  binary: string;
  cpus: readonly number[];
  /**
   * Shared with the server. Then the generator runs under SCHED_BATCH like the load engine's threads, so that it does not preempt
   * the server.
   */
  sharesCore: boolean;
  /** Only for generators that stream samples. */
  output: K6Options['output'];
  /** It is ended after this time. */
  mostSeconds?: number;
  signal: AbortSignal;
}

/**
 * Runs a generator once; bash reports the CPU time of the whole process. The parent-death signal is set again below bash, because
 * children do not inherit it. Throws UserError if the generator fails or its output is not understood, and the reason of an
 * aborted signal.
 */
export async function runGenerator(
  generator: Generator<string>,
  url: string,
  load: GeneratorLoad,
  { binary, cpus, sharesCore, output, mostSeconds, signal }: RunOptions,
): Promise<Sample> {
  const { args, script: shell, beside = [], env, runs = 1 } = generator.command(url, load);
  const stream = generator.streaming === true ? output : null;
  // Raise the soft limit of open files, which is often lower than the hard one.
  const script =
    'TIMEFORMAT="CPU %3U %3S"; ulimit -Sn hard; setpriv=$1 runs=$2; shift 2; ' +
    // & separates the arguments of one process from those of the next.
    'all() { local words=() beside=(); for word; do if [ "$word" = "&" ]; then "$setpriv" --pdeathsig KILL -- "${words[@]}" & beside+=($!); words=(); else words+=("$word"); fi; done; ' +
    '"$setpriv" --pdeathsig KILL -- "${words[@]}" || return; for pid in "${beside[@]}"; do wait "$pid" || return; done; }; ' +
    'time for ((run = 0; run < runs; run++)); do all "$@" || exit; done';
  const commandOf = (processArgs: readonly string[]): string[] => [
    ...(sharesCore ? [helper('chrt'), '--batch', '0'] : []),
    ...(shell === undefined ? [] : [helper('bash'), '-o', 'pipefail', '-c', shell]),
    binary,
    ...processArgs,
    ...(stream?.out ?? []).flatMap((out) => ['--out', out]),
  ];
  const peak = watchPeakRss();
  const limit =
    mostSeconds === undefined
      ? undefined
      : { seconds: mostSeconds, message: `${generator.name} had not ended after ${mostSeconds} s` };
  const { code, stdout, stderr } = await run({
    command: 'bash',
    args: [
      '-c',
      script,
      'bash',
      helper('setpriv'),
      String(runs),
      ...beside.flatMap((others) => [...commandOf(others), '&']),
      ...commandOf(args),
    ],
    cpus,
    // K6_ variables in the user's shell would change the load or redirect the samples.
    env: { ...withoutVariables(process.env, 'K6_'), ...env, ...stream?.env, LC_ALL: 'C' },
    signal,
    ...present({ limit }),
    started: peak.start,
  }).finally(peak.stop);
  const times = /^CPU ([\d.]+) ([\d.]+)$/m.exec(stderr);
  if (code !== 0 || times === null)
    throw new UserError(
      `${generator.name} ended with code ${code}: ${lastLine(stderr.replace(/^CPU .*$/gm, '')) || lastLine(stdout)}`,
    );
  const printed = generator.read(`${stdout}\n${stderr}`);
  const cpuSeconds =
    generator.withoutStart === true
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
