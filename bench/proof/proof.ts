// npm run bench -- proof: a reproducible measurement of how accurate the project's comparisons are.
import { mkdtemp, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { pin, underSignals } from '../../lib/process.ts';
import { duration } from '../../lib/format.ts';
import { terminalTable } from '../../lib/report/table.ts';
import { readEnvironment, type Cores } from '../../lib/machine/cores.ts';
import { oneRunAtATime } from '../../lib/machine/locks.ts';
import { readProcessors } from '../../lib/machine/processors.ts';
import { compileScript } from '../../lib/runner/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ensureTools, type ToolName } from '../../lib/setup/tools.ts';
import { toolVersions } from '../versions.ts';
import { measureAgreement } from './agreement.ts';
import { mixed } from './known.ts';
import type { Lab } from './lab.ts';
import { partNames, viewOf, writePage } from './page.ts';
import {
  loadSeconds,
  measureAgainstItself,
  measureDisturbed,
  measureLatency,
  measureSearch,
  measureSlices,
  measureWidth,
  searchedWithin,
} from './parts.ts';
import { costlyLine, measurePower } from './power.ts';
import {
  readPart,
  schema,
  writePart,
  type PartFile,
  type PartName,
  type ProofData,
  type ProofFiles,
} from './results.ts';
import { measureWaiting } from './waiting.ts';
import os from 'node:os';

interface ProofPart<Name extends PartName> {
  title: string;
  tools: readonly ToolName[];
  /** Default number of repetitions. */
  repeats: number;
  /** Approximate duration of a repetition on 2 cores. */
  secondsEach: number;
  /** Returns the initial, empty data. */
  empty(): ProofData[Name];
  /** Measures, adds to the data, and calls `save` after each step. */
  measure(lab: Lab, data: ProofData[Name], save: () => Promise<void>): Promise<void>;
}

const parts: { readonly [Name in PartName]: ProofPart<Name> } = {
  aa: {
    title: 'a config against itself, in runs of the default length',
    tools: ['k6', 'nginx'],
    repeats: 40,
    secondsEach: 35,
    empty: () => ({ runs: [] }),
    measure: measureAgainstItself,
  },
  search: {
    title: 'searches for the highest rate within a limit, with a config against itself',
    tools: ['k6', 'nginx'],
    repeats: 20,
    secondsEach: 125,
    empty: () => ({ within: searchedWithin, runs: [], loads: [], loadSeconds }),
    measure: measureSearch,
  },
  power: {
    title: 'nginx with known extra costs of about 1.3 and 2.4 %: how often they are found',
    tools: ['k6', 'nginx'],
    repeats: 20,
    secondsEach: 170,
    empty: () => ({ line: costlyLine, costs: [] }),
    measure: measurePower,
  },
  width: {
    title: 'alternating against sequential rounds: half-width by time',
    tools: ['k6', 'nginx'],
    repeats: 8,
    secondsEach: 48,
    empty: () => ({ alternating: [], sequential: [] }),
    measure: measureWidth,
  },
  slices: {
    title: 'the effect by the length of a turn, and beside wrk',
    tools: ['k6', 'nginx', 'wrk'],
    repeats: 5,
    secondsEach: 75,
    empty: () => ({ slices: [], wrk: { effect: [], control: [] } }),
    measure: measureSlices,
  },
  latency: {
    title: 'whether turns show in latency: at a rate, in turns and alone',
    tools: ['k6', 'nginx'],
    repeats: 20,
    secondsEach: 9,
    empty: () => ({ rounds: [] }),
    measure: measureLatency,
  },
  waiting: {
    title:
      'servers of known truth, alone and in turns with others; it fails where one is beyond its bounds',
    tools: ['k6', 'nginx'],
    repeats: 4,
    secondsEach: 600,
    empty: () => ({ cases: [], mixed: { how: mixed.how, rounds: [] } }),
    measure: measureWaiting,
  },
  agreement: {
    title:
      'the effects of open_file_cache and of another server, beside what wrk, h2load and stock k6 see',
    tools: ['k6', 'nginx', 'nghttpd', 'wrk', 'h2load'],
    repeats: 10,
    secondsEach: 100,
    empty: () => ({ cases: [] }),
    measure: measureAgreement,
  },
  disturbed: {
    title: 'the same comparisons while a compiler runs on both cores',
    tools: ['k6', 'nginx'],
    repeats: 5,
    secondsEach: 70,
    empty: () => ({ control: [], effect: [], builds: 0 }),
    measure: measureDisturbed,
  },
};

/** Rewrites the page without a measurement. */
const pageName = 'proof-page';
const wordOf = (part: PartName): string => `proof-${part}`;

/** The names that the command accepts, with a line of help for each. */
export const proofWords: readonly { name: string; title: string }[] = [
  ...partNames.map((name) => ({
    name: wordOf(name),
    title: `${parts[name].title} (about ${duration(parts[name].repeats * parts[name].secondsEach)})`,
  })),
  { name: pageName, title: 'only docs/proof.md anew, from what was measured here before' },
];

export interface ProofOptions {
  /** The arguments as typed, for the page. */
  args: readonly string[];
  /** Names from proofWords. */
  words: readonly string[];
  /** For a trial: number of repetitions. A trial's results have a folder of their own. */
  repeats: number | undefined;
  /** For a trial: measure only the cases with this prefix, in a part that has cases. */
  only: string | undefined;
  cores: Cores;
}

/**
 * Measures the named parts and rewrites their sections of docs/proof.md from results/proof. With `repeats` or `only`, both are in
 * results/proof-try. Returns the exit code: 1 if a figure of these parts is out of bounds. Throws UserError and Interrupted;
 * results so far are kept.
 */
export async function proofCommand(options: ProofOptions): Promise<0 | 1> {
  const { args, words, repeats, only, cores } = options;
  const isTry = repeats !== undefined || only !== undefined;
  const results = join(projectRoot, 'results', isTry ? 'proof-try' : 'proof');
  const named = partNames.filter((name) => words.includes(wordOf(name)));
  if (only !== undefined && named.some((name) => name !== 'waiting'))
    throw new UserError(`--only: name a case of ${wordOf('waiting')}, and no other part`, 2);
  const filesOf = async (names: readonly PartName[]): Promise<ProofFiles> =>
    Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await readPart(results, name)])),
    ) as ProofFiles;
  // The page needs the other parts' files too, so an unreadable file is reported before the measurement.
  await filesOf(partNames.filter((name) => !named.includes(name)));
  if (named.length > 0) {
    const release = await oneRunAtATime();
    try {
      await underSignals('ending the proof in order; again to end it at once', (signal) =>
        measureAll(named, results, {
          command: ['npm run bench --', ...args].join(' '),
          repeats,
          only,
          cores,
          signal,
        }),
      );
    } finally {
      release();
    }
  }
  const files = await filesOf(partNames);
  const page = await writePage(isTry ? results : join(projectRoot, 'docs'), files);
  console.log(`\n${relative(projectRoot, page)} is made of ${relative(projectRoot, results)}/`);
  return named.some((name) => isBeyond(files[name])) ? 1 : 0;
}

function isBeyond(file: PartFile<PartName> | undefined): boolean {
  return file !== undefined && (viewOf(file).beyond ?? []).length > 0;
}

interface Asked {
  command: string;
  repeats: number | undefined;
  only: string | undefined;
  cores: Cores;
  signal: AbortSignal;
}

async function measureAll(
  named: readonly PartName[],
  results: string,
  { command, repeats, only, cores, signal }: Asked,
): Promise<void> {
  const binaries = await ensureTools(
    [...new Set(named.flatMap((name) => parts[name].tools))],
    thisMachine(),
    signal,
  );
  // Read before pinning, because a pinned process does not see the other cores.
  const processors = readProcessors();
  await pin(process.pid, cores.generatorCpus);
  const versions = await toolVersions(binaries);
  const scratch = await mkdtemp(join(os.tmpdir(), 'bakeoff-proof-'));
  const expected = named.reduce(
    (sum, name) => sum + (repeats ?? parts[name].repeats) * parts[name].secondsEach,
    0,
  );
  if (only === undefined)
    console.log(`${named.map(wordOf).join(', ')}: about ${duration(expected)}`);
  try {
    const script = join(scratch, 'script.js');
    await compileScript(script);
    for (const name of named) {
      const environment = readEnvironment(processors, cores, versions);
      const lab: Lab = {
        cores,
        binaries,
        environment,
        signal,
        scratch,
        script,
        failures: [],
        repeats: repeats ?? parts[name].repeats,
        only,
        say: (line) => console.error(`${wordOf(name)} · ${line}`),
      };
      const file = await measurePart(name, parts[name], lab, command, results);
      console.log(['', ...outcomeLines(file)].join('\n'));
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function measurePart<Name extends PartName>(
  part: Name,
  { empty, measure }: ProofPart<Name>,
  lab: Lab,
  command: string,
  results: string,
): Promise<PartFile<Name>> {
  const startedAt = new Date().toISOString();
  const data = empty();
  const fileNow = (state: PartFile<Name>['state']): PartFile<Name> => ({
    schema,
    part,
    state,
    command,
    startedAt,
    endedAt: new Date().toISOString(),
    environment: lab.environment,
    failures: lab.failures,
    data,
  });
  await measure(lab, data, () => writePart(results, fileNow('partial')));
  const file = fileNow('complete');
  await writePart(results, file);
  return file;
}

/** A part's output on the terminal. */
function outcomeLines<Name extends PartName>(file: PartFile<Name>): string[] {
  const { title, findings, tables } = viewOf(file);
  return [
    title,
    ...tables
      .filter(({ rows }) => rows.length > 0)
      .flatMap((table) => terminalTable(table, { width: Infinity, colour: false })),
    ...findings,
  ];
}
