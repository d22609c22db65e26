// The measurements of the proof: results/proof/PART.json.
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import type { Environment, LatencyFigures, Phase, Verdict } from '../../lib/result/result.ts';
import { writeWhole } from '../../lib/writing.ts';
import type { Within } from '../../lib/scenario/model.ts';

/** A comparison of two sides by the runner. */
export interface Run {
  startedAt: string;
  /** Includes the starts of the servers. */
  seconds: number;
  /** Median requests/s, or the rates from a search. */
  rps: [baseline: number, other: number];
  ratio: number;
  ci95: [low: number, high: number];
  verdict: Verdict;
  /** Ratios of the valid rounds, in order. */
  roundRatios: number[];
  /** Number of repeated rounds. */
  dropped: number;
  /** Median share of the server's core that other processes used; null if unknown. */
  othersShare: number | null;
}

/** Loads at this share of the search's rate: `kept` of `of` loads kept the limit. */
export interface LoadsAfter {
  share: number;
  kept: number;
  of: number;
}

/** One round; `seconds` includes starting and ending the servers. */
export interface TimedRound {
  startedAt: string;
  seconds: number;
  ratio: number;
}

/** A server with `lines` more costly lines than the plain server. */
export interface Cost {
  lines: number;
  /** Default runs; the rounds of all runs together give the true cost. */
  runs: Run[];
  /** Runs with preciseFlags; for the smallest cost only. */
  precise: Run[];
}

/** Ratios per round: open_file_cache to the plain server, and the plain server to itself. */
export interface Seen {
  effect: number[];
  control: number[];
}

/** Per round: the ratio of two servers, and the share of the generator's core in use, 0 to 1, under the more expensive server. */
export interface EffectSeen {
  ratios: number[];
  generatorShares: number[];
}

/** Two servers as measured by bakeoff and by each peer in the same minute. */
export interface AgreementCase {
  title: string;
  ours: EffectSeen;
  peers: (EffectSeen & { name: string })[];
}

/** Milliseconds. */
export type Percentiles = Pick<LatencyFigures, 'p50' | 'p99'>;

/** Latency of one side alone, and of the sides in turns right before or after. */
export interface LatencyRound {
  alone: Percentiles[];
  inTurns: Percentiles[];
}

/** Number of sides in turns. */
export type Arrangement = 'alone' | 'two' | 'eight';

/** Figures of a server in one round. CPU time is in µs per response. */
export interface KnownFigures {
  rps: number;
  meanMs: number;
  p50Ms: number;
  p99Ms: number;
  /** null if unknown. */
  cpuMicros: number | null;
  /** Growth of the queue in requests per second; null if unknown. */
  queueGrowthPerSecond: number | null;
  errors: number;
  /** New connections during the measurement. */
  reconnects: number;
  /** Cores in use by the server during other sides' turns; null for a server alone. */
  idleCpuShare: number | null;
  turns: Phase['turns'];
}

/** Expected figures: calculated, or measured on the server alone in the same round. */
export type Expected = Partial<
  Pick<KnownFigures, 'rps' | 'p50Ms' | 'p99Ms' | 'errors' | 'reconnects' | 'queueGrowthPerSecond'>
> & {
  cpuMicros?: number | null;
  /** Random error of a round of continuous load (root mean square), if arrivals are random. */
  chance?: Partial<Record<'rps' | 'p50Ms' | 'p99Ms', number>>;
};

export interface KnownRound extends Record<Arrangement, KnownFigures> {
  expected: Expected;
}

/** A server with known figures; `how` explains the calculation. */
export interface KnownCase {
  name: string;
  how: string;
  rounds: KnownRound[];
}

/** A waiting server and a computing server: each alone, and two of each in turns. */
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
    /** The limit of all searches. */ loads: LoadsAfter[];
    /** Length of each load. */ loadSeconds: number;
  };
  power: { line: string; costs: Cost[] };
  width: { alternating: TimedRound[]; sequential: TimedRound[] };
  slices: { slices: (Seen & { milliseconds: number })[]; wrk: Seen };
  latency: { rounds: LatencyRound[] };
  waiting: {
    cases: KnownCase[];
    /** null if left out by a selection of cases. */ mixed: {
      how: string;
      rounds: MixedRound[];
    } | null;
  };
  agreement: { cases: AgreementCase[] };
  disturbed: {
    control: Run[];
    effect: Run[];
    /** Number of builds that the compiler completed. */ builds: number;
  };
}

export type PartName = keyof ProofData;

/** A failed measurement, which no figure includes. */
export interface Failure {
  at: string;
  why: string;
}

/** In schema 1, servers were stopped between their turns. */
export const schema = 2;

export interface PartFile<Name extends PartName> {
  schema: typeof schema;
  part: Name;
  /** 'partial': interrupted or still running. */
  state: 'complete' | 'partial';
  command: string;
  startedAt: string;
  endedAt: string;
  environment: Environment;
  failures: Failure[];
  data: ProofData[Name];
}

export type ProofFiles = { [Name in PartName]?: PartFile<Name> };

/** Writes a part's file; a partial file is PART.partial.json, and the last complete file stays. Throws file system errors. */
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

/**
 * Reads a part's file; the partial file if there is no complete one. @throws UserError if the file is invalid or from an earlier
 * version
 */
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
