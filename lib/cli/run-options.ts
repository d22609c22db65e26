// The flags of every command that runs a comparison.
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { metricNames } from '../analysis/metrics.ts';
import { usageError } from '../errors.ts';
import { firstOf, present, keysOf } from '../present.ts';
import { enumeration } from '../format.ts';
import { parseCpuList } from '../machine/processors.ts';
import { mostRounds } from '../scenario/model.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import type { Examined } from '../runner/examine.ts';
import type { PlannedSink } from '../runner/plan.ts';
import type { Additions, RunPart } from './feature.ts';
import { readFailIf } from './fail-if.ts';
import {
  noInstall,
  oneOfNames,
  seconds,
  wholeNumber,
  type Flag,
  type Arguments,
} from './arguments.ts';

/** Files for the result, beside those in --out. */
const exportFlags = {
  'export-markdown': {
    group: 'output',
    value: 'FILE',
    help: 'verdict and table, as a comment on a pull request',
  },
  'export-json': { group: 'output', rare: true, value: 'FILE', help: 'the result, as result.json' },
  'export-csv': {
    group: 'output',
    rare: true,
    value: 'FILE',
    help: 'a row per variant, with units in the titles',
  },
} as const satisfies Record<string, Flag>;

export type ExportFlag = keyof typeof exportFlags;

export const coreFlags = {
  arrivals: {
    group: 'request',
    rare: true,
    value: 'poisson',
    help: 'the gaps between the requests of a rate: constant, or poisson (constant)',
  },
  quick: {
    group: 'time',
    without: ['precision', 'exact'],
    help: 'at most 4 short rounds, for a first look',
  },
  rounds: {
    group: 'time',
    value: 'N',
    without: ['precision'],
    help: "rounds (4 to 10, a search 6, or the scenario's)",
  },
  precision: {
    group: 'time',
    value: '1%',
    help: 'go on until each effect is known to within this (5 to 80 rounds)',
  },
  'max-time': {
    group: 'time',
    value: '10m',
    help: 'begin no round that would end after this time (an article: 10m for open claims)',
  },
  duration: {
    group: 'time',
    value: '1s',
    help: 'measured time per variant and round (1s, at a rate 2s)',
  },
  warmup: {
    group: 'time',
    rare: true,
    value: '5s',
    help: 'load before each measured time (auto: as long as a server gets faster, at most 30s)',
  },
  metric: {
    group: 'verdict',
    value: 'p99',
    help: `judge by ${enumeration(metricNames, 'or')} (rps; at a rate p99 and p50; of pages p50)`,
  },
  'fail-if': {
    group: 'verdict',
    // A shell would write the output to a file named 3%.
    value: "'slower>3%'",
    help: 'exit 3 on slower, faster, different, inconclusive, cpu>3%, p99>5%, memory>5%; several with commas',
  },
  'same-within': {
    group: 'verdict',
    rare: true,
    value: '1%',
    help: 'the largest difference that counts as the same (1%)',
  },
  out: { group: 'output', value: 'DIR', help: 'folder of the results (results)' },
  verbose: {
    group: 'output',
    help: 'each load in detail, kernel settings and footnotes too',
  },
  json: { group: 'output', help: 'the result as JSON on stdout, everything else on stderr' },
  ...exportFlags,
  'keep-secrets': {
    group: 'output',
    rare: true,
    help: "credentials, bodies and a log's requests stay, to load again by hand (***)",
  },
  wait: {
    group: 'machine',
    value: '10m',
    help: 'wait this long for another run on this machine (not at all)',
  },
  'server-cpus': {
    group: 'machine',
    rare: true,
    value: '1',
    help: 'cores of the server, e.g. 2-3 (half of the whole ones)',
  },
  'generator-cpus': {
    group: 'machine',
    rare: true,
    value: '0',
    help: 'cores of the load generator, InfluxDB and the rest (the other half)',
  },
  prepare: {
    group: 'machine',
    rare: true,
    value: "'make -s'",
    help: 'a command for the shell before the servers start, in each round (none)',
  },
  host: {
    group: 'machine',
    value: 'HOST',
    repeated: true,
    help: 'an address beyond this machine that you may load',
  },
  ...noInstall,
  help: { group: 'help', help: 'this text' },
} as const satisfies Record<string, Flag>;

export type CoreFlag = keyof typeof coreFlags;

/** The flags of the features. */
export function addedFlags(parts: readonly RunPart[]): Readonly<Record<string, Flag>> {
  return Object.assign({}, ...parts.map(({ flags }) => flags));
}

export function runFlags(parts: readonly RunPart[]) {
  return { ...coreFlags, ...addedFlags(parts) };
}

/** What features add to every run, whatever its flags are. */
export function inEveryRun(parts: readonly RunPart[]) {
  return {
    planners: parts.flatMap(({ planner }) => planner ?? []),
    observers: parts.flatMap(({ observers = [] }) => observers),
    examiners: parts.flatMap(({ examiner }) => examiner ?? []),
  };
}

/** The options of every run; makePlan takes them as they are. */
export type RunOptions = ReturnType<typeof readRunOptions>;

/** Absent flags give absent options. Throws UserError (exit code 2). */
export function readRunOptions(
  { flags, lists, read }: Arguments,
  { runParts, contributionsTo, templates }: Additions,
) {
  for (const [name, { check }] of Object.entries(addedFlags(runParts)))
    if (check !== undefined) read(name, check);
  const instead = firstOf(runParts, (part) => part.instead?.({ flags, read }, runParts));
  const isGiven = (flag: CoreFlag) => flags.has(flag) || undefined;
  return {
    ...present({
      rounds: read('rounds', wholeNumber(mostRounds)),
      precision: read('precision', readPercent),
      maxTimeSeconds: read('max-time', seconds(1)),
      sameWithin: read('same-within', readPercent),
      arrivals: read('arrivals', oneOfNames(['constant', 'poisson'])),
      metric: read('metric', oneOfNames(metricNames)),
      failIf: instead ? undefined : read('fail-if', readFailIf),
      waitSeconds: read('wait', seconds(1)),
      durationSeconds: read('duration', seconds(0.1)),
      warmupSeconds: read('warmup', (flag, text) =>
        // The engine chooses if none is given.
        text === 'auto' ? undefined : seconds(0)(flag, text),
      ),
      serverCpus: read('server-cpus', (flag, text) => parseCpuList(text, flag)),
      generatorCpus: read('generator-cpus', (flag, text) => parseCpuList(text, flag)),
      prepare: flags.get('prepare'),
      keepSecrets: isGiven('keep-secrets'),
      verbose: isGiven('verbose'),
    }),
    help: flags.has('help'),
    quick: flags.has('quick'),
    /** All flags of the command, by name. */
    flags,
    examined: 'all' as Examined,
    sink: instead ? undefined : sinkOf(runParts, flags),
    /** The machine that starts the servers; undefined: this one. */
    machines: firstOf(runParts, ({ machines }) => machines?.({ flags, read })),
    ...inEveryRun(runParts),
    ...(instead && { instead, examiners: [instead] }),
    out: fromCallersFolder(flags.get('out') ?? 'results'),
    json: flags.has('json'),
    /** Hosts beyond this machine that may be loaded. */
    hosts: lists.get('host') ?? [],
    exports: readExports(flags),
    contributionsTo,
    templates,
  };
}

function readPercent(flag: string, text: string): number {
  const percent = Number(/^(\d+(?:\.\d+)?)%$/.exec(text)?.[1]);
  if (percent >= 0.01 && percent <= 50) return percent / 100;
  throw usageError(`${flag} ${text}: give a percentage from 0.01% to 50%, such as 1% or 0.5%`);
}

/** Returns where the figures are stored besides the run's folder. Throws UserError (exit code 2). */
export function sinkOf(
  parts: readonly RunPart[],
  flags: ReadonlyMap<string, string>,
): PlannedSink | undefined {
  return firstOf(parts, ({ sink }) => sink?.(flags));
}

/** `file` is absolute. */
export type Exports = readonly { flag: ExportFlag; file: string }[];

function readExports(flags: ReadonlyMap<string, string>): Exports {
  const exports = keysOf(exportFlags).flatMap((flag) => {
    const name = flags.get(flag);
    if (name === '-')
      throw usageError(`--${flag} -: name a file; --json writes the result on stdout`);
    return name === undefined ? [] : [{ flag, file: fromCallersFolder(name) }];
  });
  const placed = exports.map((some) => ({ ...some, place: realPlace(some.file) }));
  for (const { flag, file, place } of placed) {
    const earlier = placed.find((other) => other.place === place);
    if (earlier !== undefined && earlier.flag !== flag)
      throw usageError(
        `--${earlier.flag} and --${flag} name one file, ${file}: name another for one of them`,
      );
  }
  return exports;
}

/** The file's path without links; the path itself if its folder is missing. */
function realPlace(file: string): string {
  try {
    if (existsSync(file)) return realpathSync(file);
    return join(realpathSync(dirname(file)), basename(file));
  } catch {
    return file;
  }
}
