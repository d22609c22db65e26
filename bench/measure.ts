// Runs servers, rounds and generators.
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import {
  runGenerator,
  type Generator,
  type GeneratorLoad,
} from '../lib/features/calibrate/peers.ts';
import { median } from '../lib/analysis/statistics.ts';
import { UserError } from '../lib/errors.ts';
import type { Cores } from '../lib/machine/cores.ts';
import type { Page, ConfiguredServer } from '../lib/scenario/model.ts';
import { startServer, type StartedServer } from '../lib/servers/index.ts';
import { goCompiler, goEnvironment } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { lastLine, run } from '../lib/process.ts';
import type { ToolName } from '../lib/setup/tools.ts';
import type { Store } from '../lib/features/influxdb/store.ts';
import { loadgen } from './engine.ts';
import { plain, type Experiment } from './experiments.ts';
import { compareRounds, judge, type Arrangement, type Measured, type Row } from './ratios.ts';

export interface Bench {
  rounds: number;
  /** Length of a run in seconds. */
  duration: number;
  /** One core on each side. */
  cores: Cores;
  binaries: Partial<Record<ToolName, string>>;
  /** null if no generator streams samples. */
  store: Store | null;
  /** An empty folder; the caller removes it. */
  scratch: string;
  signal: AbortSignal;
}

/** Seconds that a generator takes to start and end. */
const overheadSeconds = 0.3;

/** Estimates the duration of an experiment. */
export function expectedSeconds(
  { length, rounds = (n) => n, contenders, arrangements }: Experiment,
  bench: Pick<Bench, 'rounds' | 'duration'>,
): number {
  const stop = length(bench.duration);
  const seconds = ('seconds' in stop ? stop.seconds : bench.duration) + overheadSeconds;
  return arrangements.length * rounds(bench.rounds) * contenders.length * seconds;
}

/**
 * Measures an experiment with one server: each round runs every contender once, in alternating order. Throws UserError if a
 * generator fails, reports errors, leaves connections without a response or negotiates different TLS than its peers.
 */
export async function measure(
  experiment: Experiment,
  arrangement: Arrangement,
  bench: Bench,
): Promise<Row[]> {
  const { contenders, unit } = experiment;
  const cpus = arrangement === 'a core each' ? bench.cores.generatorCpus : bench.cores.serverCpus;
  const load: GeneratorLoad = { ...experiment.load, length: experiment.length(bench.duration) };
  const rounds = experiment.rounds?.(bench.rounds) ?? bench.rounds;
  const running = await start(experiment.server, experiment.page, load.connections, bench);
  try {
    const samples = new Map<Generator, Measured[]>(contenders.map((contender) => [contender, []]));
    for (let round = 1; round <= rounds; round++) {
      for (const contender of round % 2 === 1 ? contenders : contenders.toReversed()) {
        const where = `${experiment.name} · ${arrangement} · round ${round} of ${rounds}`;
        samples
          .get(contender)
          ?.push(await sampleOf(contender, running, experiment.page, load, cpus, bench, where));
      }
    }
    requireSameTls(experiment.name, samples);
    const [measured, peer] = contenders;
    const of = (contender: Generator): Measured[] => samples.get(contender) as Measured[];
    return contenders.map((contender): Row => {
      const row = {
        experiment: experiment.name,
        load: experiment.title,
        server: `${running.name} ${running.version}`,
        arrangement,
        generator: contender.name,
        unit,
        samples: of(contender),
      };
      if (contender === peer) return { ...row, against: null };
      const ratios = { peer: peer.name, ...compareRounds(of(contender), of(peer), unit) };
      if (contender !== measured) return { ...row, against: ratios };
      const limits = experiment.limits(arrangement);
      return {
        ...row,
        against: { ...ratios, limits, verdict: judge(ratios, limits, of(measured)) },
      };
    });
  } finally {
    await running.stop();
  }
}

/** Lateness of requests at a rate, and their latency from the due time: medians over the rounds, in milliseconds. */
export interface AtRate {
  rate: number;
  connections: number;
  sendDelayP99Ms: number;
  latencyP50Ms: number;
  latencyP99Ms: number;
}

/** @throws UserError as measure */
export async function measureRate(rate: number, bench: Bench): Promise<AtRate> {
  const running = await start(plain.server, plain.page, plain.load.connections, bench);
  try {
    const samples: NonNullable<Measured['atRate']>[] = [];
    for (let round = 1; round <= bench.rounds; round++) {
      const load: GeneratorLoad = { ...plain.load, rate, length: { seconds: bench.duration } };
      const { atRate } = await sampleOf(
        loadgen,
        running,
        plain.page,
        load,
        bench.cores.generatorCpus,
        bench,
        `rate · round ${round} of ${bench.rounds}`,
      );
      if (atRate !== undefined) samples.push(atRate);
    }
    const of = (figure: (sample: (typeof samples)[number]) => number): number =>
      median(samples.map(figure));
    return {
      rate,
      connections: plain.load.connections,
      sendDelayP99Ms: of((sample) => sample.sendDelayP99Ms),
      latencyP50Ms: of((sample) => sample.latencyP50Ms),
      latencyP99Ms: of((sample) => sample.latencyP99Ms),
    };
  } finally {
    await running.stop();
  }
}

/** CPU seconds of k6 with a single request: the cost of start and end, which all figures of loadgen include. */
export async function k6StartSeconds(bench: Bench): Promise<number> {
  const running = await start(plain.server, plain.page, 1, bench);
  try {
    const load: GeneratorLoad = { ...plain.load, connections: 1, length: { requests: 1 } };
    const seconds: number[] = [];
    // Not counted: the first start also reads the binary from disk.
    for (let round = 0; round <= 3; round++) {
      const { cpuMicrosPerRequest } = await sampleOf(
        loadgen,
        running,
        plain.page,
        load,
        bench.cores.generatorCpus,
        bench,
        "k6's start",
      );
      if (round > 0) seconds.push(cpuMicrosPerRequest / 1e6);
    }
    return median(seconds);
  } finally {
    await running.stop();
  }
}

/** Starts the bench's server with one worker. */
async function start(
  spec: ConfiguredServer,
  page: Page,
  connections: number,
  bench: Bench,
): Promise<StartedServer> {
  return startServer(spec, {
    binaries: bench.binaries,
    folder: await mkdtemp(join(bench.scratch, `${spec.name}-`)),
    cpus: bench.cores.serverCpus,
    workers: 1,
    page,
    load: { connections },
    signal: bench.signal,
  });
}

/** Runs one contender once. Throws UserError if the run has errors. */
async function sampleOf(
  contender: Generator,
  running: StartedServer,
  page: Page,
  load: GeneratorLoad,
  cpus: readonly number[],
  bench: Bench,
  where: string,
): Promise<Measured> {
  console.error(`${where} · ${contender.name}`);
  const [before, startedAt] = [running.usage().cpuSeconds, performance.now()];
  const sample = await runGenerator(contender, `${running.origin}${page.path}`, load, {
    binary: bench.binaries[contender.tool] as string,
    cpus,
    sharesCore: cpus === bench.cores.serverCpus,
    output: bench.store?.k6Output() ?? null,
    signal: bench.signal,
  });
  const seconds = (performance.now() - startedAt) / 1000;
  const serverCpuSeconds = running.usage().cpuSeconds - before;
  const { requests, rps, errors, errorExample, minConnectionRps } = sample;
  if (errors > 0)
    throw new UserError(
      `${where}: ${contender.name} had ${errors} errors against ${running.name}${errorExample === undefined ? '' : ` (${errorExample})`}; the figures would mean nothing`,
    );
  if (requests === 0 || minConnectionRps === 0) {
    throw new UserError(
      `${where}: ${contender.name} had connections without a single answer, so not all ${load.connections} were open at once: end what else uses the machine, or give it more time with --duration`,
    );
  }
  return {
    ...sample,
    serverShare: serverCpuSeconds / (requests / rps),
    generatorShare:
      (sample.cpuMicrosPerRequest * requests) /
      1e6 /
      (contender.withoutStart === true ? requests / rps : seconds),
  };
}

/** Throws UserError unless all negotiated the same TLS and protocol: h2load falls back to HTTP/1.1 silently. */
export function requireSameTls(
  name: string,
  samples: ReadonlyMap<Pick<Generator, 'name'>, readonly Pick<Measured, 'tls'>[]>,
): void {
  const seen = new Map(
    [...samples].flatMap(([contender, list]) =>
      list.map(({ tls = 'none' }) => [tls, contender.name] as const),
    ),
  );
  if (seen.size > 1)
    throw new UserError(
      `${name}: not the same TLS on both sides: ${[...seen].map(([tls, generator]) => `${generator} has ${tls}`).join(', ')}`,
    );
}

/** Go benchmarks of the engine's steady states. */
const steadyStates = [
  'KeepAlive',
  'NewConnection',
  'H2C',
  'Spin',
  'Rate',
  'PartOfARate',
  'Record',
].map((name) => `Benchmark${name}`);

/**
 * The largest number of allocations per request in any steady state, as counted by Go. Throws UserError if a benchmark prints no
 * count.
 */
export async function allocationsPerRequest(
  signal: AbortSignal,
): Promise<{ perRequest: number; output: string }> {
  console.error('allocations per request');
  const machine = thisMachine();
  const { stdout, stderr } = await run({
    command: await goCompiler(machine),
    env: goEnvironment(machine.env),
    args: [
      'test',
      '-trimpath',
      '-buildvcs=false',
      '-run',
      '^$',
      '-bench',
      `^(${steadyStates.join('|')})$`,
      '-benchtime',
      '300000x',
      './engine',
    ],
    cwd: join(projectRoot, 'xk6-loadgen'),
    signal,
  });
  const output = stdout.split('\n').filter((line) => line.startsWith('Benchmark'));
  const counts = output.flatMap((line) => /(\d+) allocs\/op/.exec(line)?.[1] ?? []).map(Number);
  if (counts.length !== steadyStates.length)
    throw new UserError(`go test printed no figure: ${lastLine(stderr) || lastLine(stdout)}`);
  return { perRequest: Math.max(...counts), output: output.join('\n') };
}
