// What the proof has measured: results/proof/PART.json, one file for each part.
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import type { Environment, LatencyFigures, Phase, Verdict } from '../../lib/result/result.ts';
import { writeWhole } from '../../lib/files.ts';
import type { Within } from '../../lib/scenario/model.ts';

/** One comparison of two sides by the runner. */
export interface Run {
  startedAt: string;
  /** From its begin to its end, with all starts of servers. */
  seconds: number;
  /** Median requests/s of the baseline, and of the other side; of a search the rates that it found. */
  rps: [baseline: number, other: number];
  ratio: number;
  ci95: [low: number, high: number];
  verdict: Verdict;
  /** Of each round that counts, in order. */
  roundRatios: number[];
  /** Rounds that were repeated, since a server failed or something disturbed them. */
  dropped: number;
  /** The median share of the server's core that others used; null where the kernel does not tell. */
  othersShare: number | null;
}

/** Loads right after a search, at this share of the rate that it found: how many of how many kept the limit. */
export interface LoadsAfter {
  share: number;
  kept: number;
  of: number;
}

/** A single round, `seconds` with the starts and ends of its servers. */
export interface TimedRound {
  startedAt: string;
  seconds: number;
  ratio: number;
}

/** So many more lines of config that cost something than the plain server has. */
export interface Cost {
  lines: number;
  /** Of the default length. All their rounds together say what the lines cost. */
  runs: Run[];
  /** With preciseFlags, of the smallest cost. */
  precise: Run[];
}

/** Ratios round by round: of open_file_cache to a plain server, and of such a one to itself. */
export interface Seen {
  effect: number[];
  control: number[];
}

/** What two servers differ by, round by round, and the share of its core, 0 to 1, that the generator used with the one that it took more for. */
export interface EffectSeen {
  ratios: number[];
  generatorShares: number[];
}

/** The same two servers as bakeoff sees them, and as each peer does by some turns in the same minute. */
export interface AgreementCase {
  title: string;
  ours: EffectSeen;
  peers: (EffectSeen & { name: string })[];
}

/** In milliseconds. */
export type Percentiles = Pick<LatencyFigures, 'p50' | 'p99'>;

/** Of each side: of the one that is loaded alone, and right before or after it of those in turns. */
export interface LatencyRound {
  alone: Percentiles[];
  inTurns: Percentiles[];
}

/** One server with others beside it, or alone: 2 and 8 sides have 1 and 7 others. */
export type Arrangement = 'alone' | 'two' | 'eight';

/** A server's figures of one round. Times are milliseconds, CPU time is µs per response. */
export interface KnownFigures {
  rps: number;
  meanMs: number;
  p50Ms: number;
  p99Ms: number;
  /** null: not known. */
  cpuMicros: number | null;
  errors: number;
  /** Connections that were made within the window. */
  reconnects: number;
  /** Cores that the server used while others were loaded; null where it was alone. */
  idleCpuShare: number | null;
  turns: Phase['turns'];
}

/** The figures that are known beforehand, some of them from the server alone in the same round. */
export type Expected = Partial<
  Pick<KnownFigures, 'rps' | 'p50Ms' | 'p99Ms' | 'errors' | 'reconnects'>
> & { cpuMicros?: number | null };

export interface KnownRound extends Record<Arrangement, KnownFigures> {
  expected: Expected;
}

/** A server of known truth; `how` says how its figures are known. */
export interface KnownCase {
  name: string;
  how: string;
  rounds: KnownRound[];
}

/** A server that waits and one that computes: each alone, and two copies of each that take turns. */
export interface MixedRound {
  alone: Record<MixedSide, KnownFigures>;
  together: Record<MixedSide, KnownFigures[]>;
}
export type MixedSide = 'waiting' | 'computing';

export interface ProofData {
  aa: { runs: Run[] };
  search: {
    within: Within;
    runs: Run[];
    /** Of all searches. */ loads: LoadsAfter[];
    /** Of each of them. */ loadSeconds: number;
  };
  power: { line: string; costs: Cost[] };
  width: { alternating: TimedRound[]; sequential: TimedRound[] };
  slices: { slices: (Seen & { milliseconds: number })[]; wrk: Seen };
  latency: { rounds: LatencyRound[] };
  waiting: { cases: KnownCase[]; mixed: { how: string; rounds: MixedRound[] } };
  agreement: { cases: AgreementCase[] };
  disturbed: {
    control: Run[];
    effect: Run[];
    /** Whole builds that the compiler came to. */ builds: number;
  };
}

export type PartName = keyof ProofData;

/** What did not come to an end, and is in no figure. */
export interface Failure {
  at: string;
  why: string;
}

/** 1 were measured with servers that were stopped between their turns. */
export const schema = 2;

export interface PartFile<Name extends PartName> {
  schema: typeof schema;
  part: Name;
  /** 'partial': interrupted, or not done yet. */
  state: 'complete' | 'partial';
  /** As it was asked for. */
  command: string;
  startedAt: string;
  endedAt: string;
  environment: Environment;
  failures: Failure[];
  data: ProofData[Name];
}

/** Those that are there. */
export type ProofFiles = { [Name in PartName]?: PartFile<Name> };

/**
 * Writes a part's file. What is not complete stands beside what was complete before, as PART.partial.json, until it is. Throws
 * the file system's error.
 */
export async function writePart<Name extends PartName>(
  folder: string,
  file: PartFile<Name>,
): Promise<void> {
  const partial = join(folder, `${file.part}.partial.json`);
  await mkdir(folder, { recursive: true });
  await writeWhole(
    file.state === 'partial' ? partial : join(folder, `${file.part}.json`),
    `${JSON.stringify(file, null, 1)}\n`,
  );
  if (file.state === 'complete') await rm(partial, { force: true });
}

/** Reads a part: what is complete, or else what there is of it. @throws UserError for a file that is none, or of an earlier version */
export async function readPart<Name extends PartName>(
  folder: string,
  part: Name,
): Promise<PartFile<Name> | undefined> {
  for (const file of [`${part}.json`, `${part}.partial.json`].map((name) => join(folder, name))) {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw new UserError(`cannot read ${file}: ${error.message}`);
    });
    if (text === undefined) continue;
    let read: PartFile<Name>;
    try {
      read = JSON.parse(text) as PartFile<Name>;
    } catch {
      throw new UserError(`${file} is no JSON: remove it, and measure that part again`);
    }
    if (read.schema !== schema)
      throw new UserError(
        `${file} is of an earlier version, which measured in another way: remove it, and run npm run bench -- proof-${part}`,
      );
    return read;
  }
  return undefined;
}
