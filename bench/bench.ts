// npm run bench: the load engine's CPU, memory and throughput against other generators. One run interleaves all of them round by
// round, on the same server, cores and load. Figures are ratios to the peer, because absolute figures drift on a shared machine.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import {
  flagLines,
  noInstall,
  readArguments,
  seconds,
  wholeNumber,
  type Flag,
} from '../lib/cli/arguments.ts';
import { UserError, unknownWord } from '../lib/errors.ts';
import type { Generator } from '../lib/features/calibrate/peers.ts';
import { oneCoreEach } from '../lib/features/calibrate/lab.ts';
import { toolVersions } from '../lib/features/calibrate/versions.ts';
import { duration, scaledTime, whole, formatCpuList } from '../lib/format.ts';
import { readEnvironment } from '../lib/machine/cores.ts';
import { readProcessors } from '../lib/machine/processors.ts';
import { underSignals } from '../lib/signals.ts';
import { oneRunAtATime } from '../lib/machine/locks.ts';
import { writeWhole } from '../lib/writing.ts';
import { fileLimitFor, hardFilesLimit } from '../lib/servers/rights.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { ensureTools, type ToolName } from '../lib/setup/tools.ts';
import { openStore } from '../lib/features/influxdb/store.ts';
import { experiments, plain, type Experiment } from './experiments.ts';
import {
  allocationsPerRequest,
  expectedSeconds,
  k6StartSeconds,
  measure,
  measureRate,
  type AtRate,
  type Bench,
} from './measure.ts';
import { tableLines, type Row } from './ratios.ts';

const flags = {
  rounds: {
    value: 'N',
    help: 'rounds, each with every generator once (6)',
  },
  duration: { value: '8s', help: 'time of a run; counts are chosen to take about as long (8s)' },
  ...noInstall,
  help: { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** Results so far: results/bench/*.json. */
interface Results {
  k6StartCpuSeconds?: number;
  rows: Row[];
  allocations?: { perRequest: number; output: string };
  atRate?: AtRate;
  skipped: { experiment: string; why: string }[];
}

/** A part of the bench, selected by name. Adds to the results and returns blocks of text to print. */
interface Part {
  name: string;
  title: string;
  tools: readonly ToolName[];
  seconds(bench: Pick<Bench, 'rounds' | 'duration'>): number;
  run(bench: Bench, results: Results): AsyncGenerator<string[]>;
}

/** Input of k6StartSeconds, which is printed with every part. */
const k6StartTools: readonly ToolName[] = ['k6', plain.server.name];

/** Rate in requests/s of the lateness part, and the limit for the lateness's p99. */
const [sendRate, sendDelayLimitMs] = [20_000, 0.05];

const parts: readonly Part[] = [
  ...experiments.map(partOf),
  {
    name: 'rate',
    title: `how late requests leave at ${whole(sendRate)} a second`,
    tools: k6StartTools,
    seconds: ({ rounds, duration: each }) => rounds * (each + 1),
    async *run(bench, results) {
      const seen = await measureRate(sendRate, bench);
      results.atRate = seen;
      const held = seen.sendDelayP99Ms <= sendDelayLimitMs ? 'held' : 'NOT HELD';
      yield [
        `rate · ${whole(seen.rate)} requests/s over HTTP/1.1, ${seen.connections} connections: send delay p99 ${scaledTime(seen.sendDelayP99Ms)} (limit ${scaledTime(sendDelayLimitMs)}: ${held})` +
          `; latency p50 ${scaledTime(seen.latencyP50Ms)}, p99 ${scaledTime(seen.latencyP99Ms)}`,
      ];
    },
  },
  {
    name: 'allocations',
    title: "allocations per request in the engine's steady state",
    tools: [],
    seconds: () => 20,
    async *run(bench, results) {
      results.allocations = await allocationsPerRequest(bench.signal);
      const { perRequest } = results.allocations;
      yield [
        `allocations per request in the engine's steady state: ${perRequest} (limit 0: ${perRequest === 0 ? 'held' : 'NOT HELD'})`,
      ];
    },
  },
];

function partOf(experiment: Experiment): Part {
  const { name, title, server, contenders, arrangements, load } = experiment;
  return {
    name,
    title,
    tools: [
      ...k6StartTools,
      server.name,
      ...contenders.map(({ tool }) => tool),
      ...(contenders.some((contender: Generator) => contender.streaming)
        ? ['influxd' as const]
        : []),
    ],
    seconds: (bench) => expectedSeconds(experiment, bench),
    async *run(bench, results) {
      const why = tooFewFiles(server.name, load.connections);
      if (why !== undefined) {
        results.skipped.push({ experiment: name, why });
        yield [`${name} · skipped: ${why}`];
        return;
      }
      for (const arrangement of arrangements) {
        const rows = await measure(experiment, arrangement, bench);
        results.rows.push(...rows);
        yield tableLines(rows);
      }
    },
  };
}

/**
 * Returns the reason why the limit on open files does not allow that many connections; undefined if it does. The server needs
 * more files than the generator.
 */
function tooFewFiles(server: string, connections: number): string | undefined {
  try {
    fileLimitFor(server, undefined, connections, hardFilesLimit());
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}

/**
 * Resolves arguments to names: each is a full name or a prefix that ends before a dash. No arguments: all names. Throws UserError
 * (exit code 2) for an unknown argument.
 */
export function chosenNames(args: readonly string[], names: readonly string[]): string[] {
  const meant = (name: string, word: string): boolean =>
    name === word || name.startsWith(`${word}-`);
  for (const word of args) {
    if (!names.some((name) => meant(name, word))) throw unknownWord('experiment', word, names);
  }
  return names.filter((name) => args.length === 0 || args.some((word) => meant(name, word)));
}

/** Returns the exit code: 0 even if a limit is exceeded (the table and the JSON show that). Throws UserError. */
export async function benchCommand(args: readonly string[]): Promise<number> {
  const { positionals, flags: given } = readArguments(args, flags);
  if (given.has('help')) {
    const names = parts.map(({ name, title }) => `  ${name.padEnd(24)}${title}`);
    console.log(
      [
        'npm run bench -- [names] [flags]',
        '',
        'names, or their beginnings such as h2 (all):',
        ...names,
        '',
        ...flagLines(flags),
      ].join('\n'),
    );
    return 0;
  }
  const rounds = wholeNumber(100)('--rounds', given.get('rounds') ?? '6');
  const secondsPerRun = seconds(1)('--duration', given.get('duration') ?? '8s');
  if (!Number.isInteger(secondsPerRun))
    throw new UserError(`--duration ${secondsPerRun}: wrk knows whole seconds only`, 2);
  const ownNames = parts.map(({ name }) => name);
  const names = chosenNames(positionals, ownNames);
  const chosen = parts.filter(({ name }) => names.includes(name));
  const cores = oneCoreEach();
  const release = await oneRunAtATime();
  // A partial run does not replace the results of a full one.
  const name =
    chosen.length === parts.length ? 'bench' : [...new Set(positionals)].sort().join('+');
  try {
    await underSignals('ending the bench', (signal) =>
      benchAll(chosen, name, { rounds, duration: secondsPerRun, cores, signal }),
    );
    return 0;
  } finally {
    release();
  }
}

/** Gets the tools, starts a database for the bench, and runs the parts. */
async function benchAll(
  chosen: readonly Part[],
  name: string,
  asked: Pick<Bench, 'rounds' | 'duration' | 'cores' | 'signal'>,
): Promise<void> {
  const tools = [...new Set(chosen.flatMap((part) => part.tools))];
  const binaries: Partial<Record<ToolName, string>> = await ensureTools(
    tools,
    thisMachine(),
    asked.signal,
  );
  const scratch = await mkdtemp(join(os.tmpdir(), 'bakeoff-bench-'));
  const store =
    binaries.influxd === undefined
      ? null
      : await openStore({
          influxdBinary: binaries.influxd,
          folder: join(scratch, 'influxdb'),
          cpus: asked.cores.generatorCpus,
        });
  try {
    await benchOn(chosen, name, { ...asked, binaries, store, scratch });
  } finally {
    await store?.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Measures the parts, prints each as soon as it is done, and writes results/bench/NAME.json. After an early end the results so
 * far are in NAME.partial.json.
 */
async function benchOn(chosen: readonly Part[], name: string, bench: Bench): Promise<void> {
  const { cores, rounds, binaries } = bench;
  const environment = readEnvironment(
    readProcessors(),
    cores,
    await toolVersions(binaries, { influxd: bench.store?.version }),
  );
  const folder = join(projectRoot, 'results', 'bench');
  await mkdir(folder, { recursive: true });
  const results: Results = { rows: [], skipped: [] };
  const write = (file: string): Promise<void> =>
    writeWhole(
      join(folder, file),
      `${JSON.stringify({ schema: 1, rounds, environment, ...results }, null, 2)}\n`,
    );
  const expected = chosen.reduce((sum, part) => sum + part.seconds(bench), 0);
  console.log(
    [
      `load generators on ${environment.cpuModel}, ${environment.kernel}; ${Object.entries(
        environment.versions,
      )
        .map((nameAndVersion) => nameAndVersion.join(' '))
        .join(', ')}`,
      `server on core ${formatCpuList(cores.serverCpus)}, generator on core ${formatCpuList(cores.generatorCpus)} (one core: both on ${formatCpuList(cores.serverCpus)})`,
      ...(environment.coreNotes ?? []),
      `${rounds === 1 ? '1 round' : `${rounds} rounds`}, about ${duration(expected)}`,
    ].join('\n'),
  );
  if (binaries.k6 !== undefined) {
    results.k6StartCpuSeconds = await k6StartSeconds(bench);
    console.log(
      `CPU and memory are those of whole processes: k6's start, in all figures of k6, is ${results.k6StartCpuSeconds.toFixed(2)} CPU seconds`,
    );
  }
  const partial = `${name}.partial.json`;
  for (const part of chosen) {
    for await (const lines of part.run(bench, results)) {
      console.log(['', ...lines].join('\n'));
      await write(partial);
    }
  }
  await write(`${name}.json`);
  await rm(join(folder, partial), { force: true });
  console.log(`\nAll samples: ${join('results', 'bench', `${name}.json`)}`);
}
