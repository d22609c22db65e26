// The measurements of the proof: results/proof/PART.json.
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import type { Environment, LatencyFigures, Phase, Verdict } from '../../lib/result/result.ts';
import { writeWhole } from '../../lib/writing.ts';
import type { Within } from '../../lib/scenario/model.ts';

/** One comparison of two sides by the runner. */
export interface Run {
  startedAt: string;
  /** With all starts of servers. */
  seconds: number;
  /** Median requests/s, or the rates that a search found. */
  rps: [baseline: number, other: number];
  ratio: number;
  ci95: [low: number, high: number];
  verdict: Verdict;
  /** Of the rounds that count, in order. */
  roundRatios: number[];
  /** Rounds that were repeated. */
  dropped: number;
  /** The median share of the server's core that others used; null if not known. */
  othersShare: number | null;
}

/** How many of how many loads, at this share of the rate that a search found, kept the limit. */
export interface LoadsAfter {
  share: number;
  kept: number;
  of: number;
}

/** One round; `seconds` includes the starts and ends of its servers. */
export interface TimedRound {
  startedAt: string;
  seconds: number;
  ratio: number;
}

/** A server with so many more costly lines than the plain one. */
export interface Cost {
  lines: number;
  /** Of the default length; all their rounds together give the true cost. */
  runs: Run[];
  /** With preciseFlags, of the smallest cost. */
  precise: Run[];
}

/** Ratios of each round: open_file_cache to a plain server, and a plain server to itself. */
export interface Seen {
  effect: number[];
  control: number[];
}

/** Ratios of two servers for each round, and the share of its core, 0 to 1, that the generator used with the costlier one. */
export interface EffectSeen {
  ratios: number[];
  generatorShares: number[];
}

/** Two servers as bakeoff and each peer see them in the same minute. */
export interface AgreementCase {
  title: string;
  ours: EffectSeen;
  peers: (EffectSeen & { name: string })[];
}

/** Milliseconds. */
export type Percentiles = Pick<LatencyFigures, 'p50' | 'p99'>;

/** Of one side alone, and right before or after it of the sides in turns. */
export interface LatencyRound {
  alone: Percentiles[];
  inTurns: Percentiles[];
}

/** How many sides take turns. */
export type Arrangement = 'alone' | 'two' | 'eight';

/** A server's figures of one round. CPU time is µs per response. */
export interface KnownFigures {
  rps: number;
  meanMs: number;
  p50Ms: number;
  p99Ms: number;
  /** null: not known. */
  cpuMicros: number | null;
  /** By how many requests the queue grows in a second; null: not known. */
  queueGrowthPerSecond: number | null;
  errors: number;
  /** Connections made within the window. */
  reconnects: number;
  /** Cores that the server used while others were loaded; null for a server alone. */
  idleCpuShare: number | null;
  turns: Phase['turns'];
}

/** Figures that are known beforehand, or from the server alone in the same round. */
export type Expected = Partial<
  Pick<KnownFigures, 'rps' | 'p50Ms' | 'p99Ms' | 'errors' | 'reconnects' | 'queueGrowthPerSecond'>
> & {
  cpuMicros?: number | null;
  /** By how much a round of continuous load is off by chance (root of the mean square), where random arrivals make that much. */
  chance?: Partial<Record<'rps' | 'p50Ms' | 'p99Ms', number>>;
};

export interface KnownRound extends Record<Arrangement, KnownFigures> {
  expected: Expected;
}

/** A server of known figures; `how` says how they are known. */
export interface KnownCase {
  name: string;
  how: string;
  rounds: KnownRound[];
}

/** A server that waits and a server that computes: each alone, and two of each in turns. */
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
  waiting: {
    cases: KnownCase[];
    /** null: left out, as only some cases were named. */ mixed: {
      how: string;
      rounds: MixedRound[];
    } | null;
  };
  agreement: { cases: AgreementCase[] };
  disturbed: {
    control: Run[];
    effect: Run[];
    /** Whole builds that the compiler came to. */ builds: number;
  };
}

export type PartName = keyof ProofData;

/** A failed measurement, which is in no figure. */
export interface Failure {
  at: string;
  why: string;
}

/** Schema 1 was measured with servers that were stopped between their turns. */
export const schema = 2;

export interface PartFile<Name extends PartName> {
  schema: typeof schema;
  part: Name;
  /** 'partial': interrupted, or not done yet. */
  state: 'complete' | 'partial';
  command: string;
  startedAt: string;
  endedAt: string;
  environment: Environment;
  failures: Failure[];
  data: ProofData[Name];
}

export type ProofFiles = { [Name in PartName]?: PartFile<Name> };

/** Writes a part's file; a partial one is PART.partial.json, beside the last complete one. Throws the file system's error. */
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

/** Reads a part, the partial file if there is no complete one. @throws UserError for a broken file, or one of an earlier version */
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
