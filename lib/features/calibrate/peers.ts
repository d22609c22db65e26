// Well-known load generators: the commands that a user would type, and how one is run.
import { join } from 'node:path';
import { helper } from '../../../bin/trust.mjs';
import { UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import { lastLine, run, withoutVariables } from '../../process.ts';
import { withoutK6Config, type LoadOptions } from '../../k6/load-plan.ts';
import type { LoadProfile } from '../../scenario/model.ts';
import { projectRoot } from '../../setup/paths.ts';
import type { ToolName } from '../../setup/tools.ts';
import {
  readAb,
  readH2load,
  readK6,
  readOha,
  readVegeta,
  readWrk,
  type Printed,
} from './printed.ts';

export interface GeneratorLoad
  extends
    Pick<LoadProfile, 'protocol' | 'connections' | 'keepAlive' | 'rate'>,
    Required<Pick<LoadProfile, 'streams'>> {
  /** A whole number: wrk knows no parts of a second. */
  seconds: number;
}

/** One run of a generator. CPU time includes the start and end of the process. */
export interface Sample extends Printed {
  cpuMicrosPerRequest: number;
}

export interface PeerGenerator<Tool extends string = ToolName> {
  name: string;
  /** The program that it is. */
  tool: Tool;
  command(url: string, load: GeneratorLoad): Command;
  /** Throws UserError for other output. */
  read(output: string): Printed;
}

interface Command {
  args: string[];
  /** A script for bash, which gets the program as $0 and `args`. */
  script?: string;
  env?: Record<string, string>;
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
): PeerGenerator {
  return {
    name,
    tool: 'k6',
    command(url, { protocol, connections, streams, keepAlive, seconds, rate }) {
      const options: LoadOptions = {
        url,
        protocol,
        connections,
        streams,
        keepAlive,
        duration: `${seconds}s`,
        ...engineOptions,
        ...present({
          rate,
          tls: url.startsWith('https:') ? { insecureSkipVerify: true } : undefined,
        }),
      };
      const script = join(projectRoot, 'lib/features/calibrate/loadgen.js');
      return {
        args: [...k6Flags, '--summary-mode=disabled', script],
        // GOMAXPROCS as the runner sets it for one thread.
        env: {
          ...k6Environment,
          GOMAXPROCS: '3',
          LOAD: JSON.stringify(options),
        },
      };
    },
    read: readK6,
  };
}

/** Stock k6, with its default number of threads. */
export const stockK6: PeerGenerator = {
  name: 'k6/http',
  tool: 'k6',
  command: (url, { connections, keepAlive, seconds, rate }) => ({
    args: [...k6Flags, join(projectRoot, 'lib/features/calibrate/k6-http.js')],
    env: {
      ...k6Environment,
      LOAD: JSON.stringify({ url, connections, keepAlive, seconds, rate }),
    },
  }),
  read: readK6,
};

const wrkArguments = (url: string, { connections, seconds }: GeneratorLoad): string[] => [
  '-t',
  '1',
  '-c',
  String(connections),
  '-d',
  `${seconds}s`,
  '--latency',
  url,
];

export const wrkPeer: PeerGenerator = {
  name: 'wrk',
  tool: 'wrk',
  command: (url, load) => ({ args: wrkArguments(url, load) }),
  read: readWrk,
};

export const wrk2Peer: PeerGenerator<string> = {
  name: 'wrk2',
  tool: 'wrk2',
  command: (url, load) => ({ args: ['-R', String(load.rate), ...wrkArguments(url, load)] }),
  read: readWrk,
};

/** Most requests of a load that ends by its time. */
const mostRequests = 10_000_000;

export const abPeer: PeerGenerator = {
  name: 'ab',
  tool: 'ab',
  command: (url, { connections, keepAlive, seconds }) => {
    const stop = ['-t', String(seconds), '-n', String(mostRequests)];
    const kept = keepAlive ? ['-k'] : [];
    return { args: ['-q', ...kept, '-c', String(connections), ...stop, url] };
  },
  read: readAb,
};

export const h2loadPeer: PeerGenerator = {
  name: 'h2load',
  tool: 'h2load',
  command: (url, { protocol, connections, streams, seconds, rate }) => {
    const version = protocol.startsWith('http/') ? ['--h1'] : [];
    const perClient = rate === undefined ? [] : ['--rps', String(rate / connections)];
    const clients = ['-c', String(connections), '-m', String(streams)];
    const stop = ['-D', String(seconds)];
    return { args: ['-t', '1', ...version, ...clients, ...perClient, ...stop, url] };
  },
  read: readH2load,
};

export const vegetaPeer: PeerGenerator<string> = {
  name: 'vegeta',
  tool: 'vegeta',
  command: (url, { connections, seconds, rate }) => {
    const workers = [`-workers=${connections}`, `-connections=${connections}`];
    // Without a rate its workers ask again at once.
    const pace =
      rate === undefined ? ['-rate=0', `-max-workers=${connections}`] : [`-rate=${rate}`];
    return {
      script: 'url=$1; shift; echo "GET $url" | "$0" attack "$@" | "$0" report -type=json',
      args: [url, ...pace, ...workers, `-duration=${seconds}s`, '-insecure'],
    };
  },
  read: readVegeta,
};

export const ohaPeer: PeerGenerator<string> = {
  name: 'oha',
  tool: 'oha',
  command: (url, { protocol, connections, streams, seconds, rate }) => {
    const pace = rate === undefined ? [] : ['-q', String(rate), '--latency-correction'];
    const version = protocol === 'h2' ? ['--http2', '-p', String(streams)] : [];
    const clients = ['-c', String(connections), '-z', `${seconds}s`];
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

export interface GeneratorRun {
  binary: string;
  cpus: readonly number[];
  /**
   * Whether the generator runs on the server's core. Then it runs under SCHED_BATCH like the load engine's threads, so that it does not
   * preempt the server.
   */
  sharesCore: boolean;
  /** It is ended after this time. */
  mostSeconds: number;
  signal: AbortSignal;
}

/**
 * Runs a generator once; bash reports the CPU time of the whole process. The parent-death signal is set again below bash, because
 * children do not inherit it. Throws UserError if the generator fails or its output is not understood, and the reason of an aborted
 * signal.
 */
export async function runGenerator(
  generator: PeerGenerator<string>,
  url: string,
  load: GeneratorLoad,
  { binary, cpus, sharesCore, mostSeconds, signal }: GeneratorRun,
): Promise<Sample> {
  const { args, script: shell, env } = generator.command(url, load);
  // Raise the soft limit of open files, which is often lower than the hard one.
  const script =
    'TIMEFORMAT="CPU %3U %3S"; ulimit -Sn hard; time "$0" --pdeathsig KILL -- "$@" || exit';
  const { code, stdout, stderr } = await run({
    command: 'bash',
    args: [
      '-c',
      script,
      helper('setpriv'),
      ...(sharesCore ? [helper('chrt'), '--batch', '0'] : []),
      ...(shell === undefined ? [] : [helper('bash'), '-o', 'pipefail', '-c', shell]),
      binary,
      ...args,
    ],
    cpus,
    // K6_ variables in the user's shell would change the load or redirect the samples.
    env: { ...withoutVariables(process.env, 'K6_'), ...env, LC_ALL: 'C' },
    signal,
    limit: {
      seconds: mostSeconds,
      message: `${generator.name} had not ended after ${mostSeconds} s`,
    },
  });
  const times = /^CPU ([\d.]+) ([\d.]+)$/m.exec(stderr);
  if (code !== 0 || times === null)
    throw new UserError(
      `${generator.name} ended with code ${code}: ${lastLine(stderr.replace(/^CPU .*$/gm, '')) || lastLine(stdout)}`,
    );
  const printed = generator.read(`${stdout}\n${stderr}`);
  const cpuSeconds = Number(times[1]) + Number(times[2]);
  return { ...printed, cpuMicrosPerRequest: (cpuSeconds / printed.requests) * 1e6 };
}
