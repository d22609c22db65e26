// What the proof has measured: results/proof/PART.json, one file for each part.
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import type { Environment, LatencyFigures, Verdict } from '../../lib/result/result.ts';
import { writeWhole } from '../../lib/write-whole.ts';
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
export interface LoadsAfter { share: number; kept: number; of: number }

/** A single round, `seconds` with the starts and ends of its servers. */
export interface TimedRound { startedAt: string; seconds: number; ratio: number }

/** So many more lines of config that cost something than the plain server has. */
export interface Cost {
  lines: number;
  /** Of the default length. All their rounds together say what the lines cost. */
  runs: Run[];
  /** With --precision 1%. */
  precise: Run[];
}

export type Way = 'frozen' | 'drained';

/** Ratios round by round: of open_file_cache to a plain server, and of such a one to itself. */
export interface Seen { effect: number[]; control: number[] }

/** What two servers differ by, round by round, and the share of its core, 0 to 1, that the generator used with the one that it took more for. */
export interface EffectSeen { ratios: number[]; generatorShares: number[] }

/** The same two servers as bakeoff sees them, and as each peer does by some turns in the same minute. */
export interface AgreementCase { title: string; ours: EffectSeen; peers: (EffectSeen & { name: string })[] }

/** In milliseconds. */
export type Percentiles = Pick<LatencyFigures, 'p50' | 'p99'>;

/** Of each side: of the one that is loaded alone, and right before or after it of those in turns. */
export interface LatencyRound { alone: Percentiles[]; inTurns: Percentiles[] }

export interface ProofData {
  aa: { runs: Run[] };
  search: { within: Within; runs: Run[]; /** Of all searches. */ loads: LoadsAfter[]; /** Of each of them. */ loadSeconds: number };
  power: { line: string; costs: Cost[] };
  width: { alternating: TimedRound[]; sequential: TimedRound[] };
  slices: { slices: (Seen & { milliseconds: number; way: Way })[]; wrk: Seen };
  latency: { rounds: LatencyRound[] };
  agreement: { cases: AgreementCase[] };
  disturbed: { control: Run[]; effect: Run[]; /** Whole builds that the compiler came to. */ builds: number };
}

export type PartName = keyof ProofData;

/** What did not come to an end, and is in no figure. */
export interface Failure { at: string; why: string }

export interface PartFile<Name extends PartName> {
  schema: 1;
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
export async function writePart<Name extends PartName>(folder: string, file: PartFile<Name>): Promise<void> {
  const partial = join(folder, `${file.part}.partial.json`);
  await mkdir(folder, { recursive: true });
  await writeWhole(file.state === 'partial' ? partial : join(folder, `${file.part}.json`), `${JSON.stringify(file, null, 1)}\n`);
  if (file.state === 'complete') await rm(partial, { force: true });
}

/** Reads a part: what is complete, or else what there is of it. @throws UserError for a file that is none */
export async function readPart<Name extends PartName>(folder: string, part: Name): Promise<PartFile<Name> | undefined> {
  for (const file of [`${part}.json`, `${part}.partial.json`].map((name) => join(folder, name))) {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw new UserError(`cannot read ${file}: ${error.message}`);
    });
    if (text === undefined) continue;
    try {
      return JSON.parse(text) as PartFile<Name>;
    } catch {
      throw new UserError(`${file} is no JSON: remove it, or measure that part again`);
    }
  }
  return undefined;
}
