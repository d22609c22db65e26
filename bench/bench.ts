// npm run bench: what the load engine costs, beside the generators that it has to match. All in one run, interleaved
// round by round on the same server, cores and load, as ratios to the peer: absolute figures of a shared machine move.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import { flagLines, readWords, seconds, wholeNumber, type Flag } from '../lib/cli/words.ts';
import { UserError } from '../lib/errors.ts';
import { allowedCpus, divideCores, formatCpuList, type Cores } from '../lib/runner/cores.ts';
import { readEnvironment } from '../lib/runner/environment.ts';
import { takeSignals } from '../lib/runner/interrupt.ts';
import { oneRunAtATime } from '../lib/runner/one-run.ts';
import { writeWhole } from '../lib/runner/results-folder.ts';
import { versionOf } from '../lib/runner/versions.ts';
import { nginx } from '../lib/scenario/index.ts';
import type { ServerSpec } from '../lib/scenario/model.ts';
import { startServer, type RunningServer } from '../lib/servers/index.ts';
import { findGo, goEnvironment } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { lastLine, run } from '../lib/setup/run.ts';
import { ensureTools } from '../lib/setup/tools.ts';
import { openStore } from '../lib/store/index.ts';
import { ab, loadgen, stockK6, wrk, type BenchLoad, type Binaries, type Contender } from './contenders.ts';
import { compareRounds, effectLines, sharedCore, tableLines, type Effect, type Limits, type Measured, type Row } from './ratios.ts';

const flags = {
  'rounds': { value: 'N', help: 'rounds, each with every generator once (6)' },
  'duration': { value: '8s', help: 'time of a keep-alive run; the others are as long, roughly (8s)' },
  'help': { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** nginx at its fastest: what a generator has to keep up with. */
const server = nginx(['base', 'workers', 'open-file-cache', 'tcp-nopush', 'keepalive-unlimited'], { workers: 1, articleWorkers: 1 });
const page = { path: '/', bodyBytes: 612 };
const connections = 100;
/** About what a core answers per second with a new connection each: makes count runs as long as timed ones. */
const newConnectionsPerSecond = 15_000;

/** The first article's question, asked through each generator: how much faster is nginx with open_file_cache? */
const effect = {
  name: 'open_file_cache (keepalive_requests 100), server on a core of its own',
  without: nginx(['base', 'workers'], { workers: 1, articleWorkers: 1 }),
  with: nginx(['base', 'workers', 'open-file-cache'], { workers: 1, articleWorkers: 1 }),
};

interface Experiment {
  load: string;
  keepAlive: boolean;
  rounds: number;
  /** The first one is measured, the second is its peer, others stand beside. */
  contenders: readonly Contender[];
  /** Server and generator on a core each, or sharing one. */
  arrangements: readonly Arrangement[];
  limits(arrangement: Arrangement): Limits;
}

type Arrangement = 'a core each' | typeof sharedCore;

/** Returns the exit code: 0 also when a limit is not held, which the table and bench.json say. Throws UserError. */
export async function benchCommand(args: readonly string[]): Promise<number> {
  const words = readWords(args, flags);
  if (words.positionals[0] !== undefined) throw new UserError(`bench: "${words.positionals[0]}" is one word too many`, 2);
  if (words.flags.has('help')) {
    console.log(['npm run bench -- [flags]', '', ...flagLines(flags)].join('\n'));
    return 0;
  }
  const rounds = wholeNumber('--rounds', words.flags.get('rounds') ?? '6', 100);
  const duration = seconds('--duration', words.flags.get('duration') ?? '8s', 1);
  if (!Number.isInteger(duration)) throw new UserError(`--duration ${duration}: wrk knows whole seconds only`, 2);
  const cores = oneEach(divideCores(allowedCpus(), {}));
  const release = await oneRunAtATime();
  const interrupt = takeSignals(() => console.error('ending the bench'));
  try {
    const tools = await ensureTools(['k6', 'nginx', 'wrk', 'ab', 'influxd'], thisMachine(), interrupt.signal);
    const scratch = await mkdtemp(join(os.tmpdir(), 'bakeoff-bench-'));
    try {
      await benchOn(tools, { rounds, duration, cores, nginx: tools.nginx, scratch, signal: interrupt.signal });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
    return 0;
  } catch (error) {
    // What a signal cut short fails in its own way.
    interrupt.signal.throwIfAborted();
    throw error;
  } finally {
    interrupt.release();
    release();
  }
}

/** Measures all, writes results/bench/bench.json and prints the table. */
async function benchOn(tools: Binaries & { influxd: string }, bench: Bench): Promise<void> {
  const { cores, rounds } = bench;
  const store = await openStore({ influxdBinary: tools.influxd, folder: join(bench.scratch, 'influxdb'), cpus: cores.generatorCpus });
  try {
    const measured = loadgen(tools.k6);
    const experiments: Experiment[] = [
      {
        load: `keep-alive, ${connections} connections`, keepAlive: true, rounds, arrangements: ['a core each', sharedCore],
        contenders: [measured, wrk(tools.wrk), stockK6(tools.k6)],
        // Only with a core each does the server set the pace.
        limits: (arrangement) => ({ cpu: 1, ...(arrangement === sharedCore ? {} : { rps: 0.98 }) }),
      },
      {
        load: `new connection each, ${connections} at a time`, keepAlive: false, rounds, arrangements: ['a core each', sharedCore],
        contenders: [measured, ab(tools.ab)], limits: () => ({ cpu: 0.95 }),
      },
      {
        // On one core, with the database on the other: what is billed to k6 is k6's. One percent needs more pairs to be seen.
        load: 'keep-alive, streaming to InfluxDB', keepAlive: true, rounds: 2 * rounds, arrangements: [sharedCore],
        contenders: [loadgen(tools.k6, 'loadgen, streaming', store.k6Output()), measured], limits: () => ({ cpu: 1.01 }),
      },
    ];
    const rows: Row[] = [];
    for (const experiment of experiments) {
      for (const arrangement of experiment.arrangements) rows.push(...await measure(experiment, arrangement, bench));
    }
    const effects = await measureEffect([measured, wrk(tools.wrk), stockK6(tools.k6)], bench);
    const allocations = await allocationsPerRequest(bench.signal);
    const environment = readEnvironment(cores, {
      k6: await versionOf('k6', tools.k6), nginx: await versionOf('nginx', bench.nginx), influxd: store.version,
    });
    const folder = join(projectRoot, 'results', 'bench');
    await mkdir(folder, { recursive: true });
    await writeWhole(join(folder, 'bench.json'), `${JSON.stringify({ schema: 1, rounds, environment, rows, effects, allocations }, null, 2)}\n`);
    console.log([
      `load generators on ${environment.cpuModel}, ${environment.kernel}; nginx ${environment.versions['nginx']}, k6 ${environment.versions['k6']}; ${rounds} rounds`,
      `server on core ${formatCpuList(cores.serverCpus)}, generator on core ${formatCpuList(cores.generatorCpus)} (one core: both on ${formatCpuList(cores.serverCpus)})`,
      '',
      ...tableLines(rows),
      '',
      `the effect of ${effect.name}, as each generator sees it`,
      ...effectLines(effects),
      '',
      `allocations per request in the engine's steady state: ${allocations.perRequest} (limit 0: ${allocations.perRequest === 0 ? 'held' : 'NOT HELD'})`,
      'All samples: results/bench/bench.json',
    ].join('\n'));
  } finally {
    await store.close();
  }
}

/** One core for each side: a ratio per core is what the articles' effects are seen through. */
function oneEach(cores: Cores): Cores {
  return { serverCpus: cores.serverCpus.slice(0, 1), generatorCpus: cores.generatorCpus.slice(0, 1) };
}

interface Bench { rounds: number; duration: number; cores: Cores; nginx: string; scratch: string; signal: AbortSignal }

/** Starts an nginx for the bench, one worker. */
async function start(spec: ServerSpec, bench: Bench): Promise<RunningServer> {
  return startServer(spec, {
    binary: bench.nginx, folder: await mkdtemp(join(bench.scratch, 'nginx-')), cpus: bench.cores.serverCpus, workers: 1, page, connections, signal: bench.signal,
  });
}

/** A run without errors, or none: an error is not a request that was served. */
async function sampleOf(contender: Contender, running: RunningServer, load: BenchLoad, cpus: readonly number[], bench: Bench, where: string): Promise<Measured> {
  console.error(`${where} · ${contender.name}`);
  const [before, startedAt] = [running.usage().cpuSeconds, performance.now()];
  const sample = await contender.run(load, cpus, bench.signal);
  const serverShare = (running.usage().cpuSeconds - before) / ((performance.now() - startedAt) / 1000);
  if (sample.errors > 0) throw new UserError(`${contender.name}: ${sample.errors} errors against nginx; the figures would mean nothing`);
  return { ...sample, serverShare };
}

/** One server for all rounds; every round runs each contender once, forwards and backwards in turn. */
async function measure(experiment: Experiment, arrangement: Arrangement, bench: Bench): Promise<Row[]> {
  const generatorCpus = arrangement === 'a core each' ? bench.cores.generatorCpus : bench.cores.serverCpus;
  const running = await start(server, bench);
  try {
    const load: BenchLoad = {
      url: `${running.origin}${page.path}`, connections, keepAlive: experiment.keepAlive,
      seconds: bench.duration, requests: Math.round(bench.duration * newConnectionsPerSecond),
    };
    const samples = new Map<Contender, Measured[]>(experiment.contenders.map((contender) => [contender, []]));
    for (let round = 1; round <= experiment.rounds; round++) {
      const order = round % 2 === 1 ? experiment.contenders : experiment.contenders.toReversed();
      for (const contender of order) {
        samples.get(contender)?.push(await sampleOf(contender, running, load, generatorCpus, bench, `${experiment.load} · ${arrangement} · round ${round} of ${experiment.rounds}`));
      }
    }
    const [measured, peer] = experiment.contenders as [Contender, Contender];
    const of = (contender: Contender): Measured[] => samples.get(contender) as Measured[];
    return experiment.contenders.map((contender) => ({
      load: experiment.load, arrangement, generator: contender.name, samples: of(contender),
      against: contender === peer ? null : { peer: peer.name, ...compareRounds(of(contender), of(peer)), ...(contender === measured ? { limits: experiment.limits(arrangement) } : {}) },
    }));
  } finally {
    await running.stop();
  }
}

/** Both servers stay up, which costs nothing while they are idle; each generator loads one, then the other. */
async function measureEffect(contenders: readonly Contender[], bench: Bench): Promise<Effect[]> {
  const servers: RunningServer[] = [];
  try {
    for (const spec of [effect.without, effect.with]) servers.push(await start(spec, bench));
    const effects: Effect[] = contenders.map(({ name }) => ({ generator: name, without: [], with: [] }));
    for (let round = 1; round <= bench.rounds; round++) {
      for (const [index, contender] of contenders.entries()) {
        const sides = [['without', servers[0]], ['with', servers[1]]] as const;
        for (const [side, one] of round % 2 === 1 ? sides : sides.toReversed()) {
          const running = one as RunningServer;
          const load: BenchLoad = { url: `${running.origin}${page.path}`, connections, keepAlive: true, seconds: bench.duration, requests: 0 };
          const sample = await sampleOf(contender, running, load, bench.cores.generatorCpus, bench, `open_file_cache · ${side} · round ${round} of ${bench.rounds}`);
          (effects[index] as Effect)[side].push(sample);
        }
      }
    }
    return effects;
  } finally {
    for (const running of servers) await running.stop();
  }
}

/** Go's own count, from a benchmark of one request on one of 100 connections. */
async function allocationsPerRequest(signal: AbortSignal): Promise<{ perRequest: number; output: string }> {
  console.error('allocations per request');
  const machine = thisMachine();
  const { stdout, stderr } = await run({
    command: (await findGo(machine)).binary, env: goEnvironment(machine.env),
    args: ['test', '-trimpath', '-buildvcs=false', '-run', '^$', '-bench', '^BenchmarkKeepAlive$', '-benchtime', '300000x', './engine'],
    cwd: join(projectRoot, 'xk6-loadgen'), signal,
  });
  const output = stdout.split('\n').find((line) => line.startsWith('BenchmarkKeepAlive')) ?? '';
  const perRequest = /(\d+) allocs\/op/.exec(output)?.[1];
  if (perRequest === undefined) throw new UserError(`go test printed no figure: ${lastLine(stderr) || lastLine(stdout)}`);
  return { perRequest: Number(perRequest), output };
}
