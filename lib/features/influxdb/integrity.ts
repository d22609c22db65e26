// Counts a run's points in the database, and writes missing ones again: k6's from its record, bakeoff's own as they were.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { groupedBy, total } from '../../analysis/statistics.ts';
import { messageOf } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { InfluxError, linesPerRequest } from '../../influx/client.ts';
import { failedWritesIn } from '../../influx/address.ts';
import { quoteIdentifier, quoteString } from '../../influx/line-protocol.ts';
import { k6Files } from '../../k6/load-plan.ts';
import { present } from '../../present.ts';
import type { Integrity, PointIntegrity } from '../../result/result.ts';
import type { StoreFinding } from './findings.ts';
import { recordedLines, recordedPoints, sampleName, type PointCounts } from './record.ts';
import { fieldOfEach } from './schema.ts';
import type { Store } from './store.ts';

/** A side's load in a round. */
export interface StoredRound {
  variant: string;
  round: number;
  /** The file of k6's `--out json`; undefined if there is none to repair from. */
  recordFile: string | undefined;
  /** k6 has sent nothing itself, so that writing its record is no repair. */
  unsent: boolean;
  /** All requests that k6 made. */
  requests: number;
}

interface RunIntegrity {
  /** `points` is absent if the record of a round is missing. */
  integrity: Integrity;
  problems: StoreFinding[];
}

/**
 * Counts all points of a run in the database at its end, because the database may have refused or lost some, or been replaced. Writes
 * missing points again, which replaces equal ones, and counts anew. A failing database is no error: `problems` says why points are
 * missing.
 * @param own lines of bakeoff's own points, each once
 */
export async function checkRun(
  store: Store,
  run: string,
  rounds: readonly StoredRound[],
  own: readonly string[],
): Promise<RunIntegrity> {
  const unread: StoreFinding[] = [];
  const records = new Map<string, PointCounts>();
  for (const recordFile of new Set(rounds.flatMap((round) => round.recordFile ?? [])))
    try {
      records.set(recordFile, await recordedPoints(recordFile));
    } catch (error) {
      unread.push({ code: 'record-unread', reason: messageOf(error) });
    }
  const unsentFiles = new Set(rounds.flatMap((round) => (round.unsent ? [round.recordFile] : [])));
  const unsent = sumOf(
    [...records].flatMap(([file, counts]) => (unsentFiles.has(file) ? [counts] : [])),
  );
  const written = { records, unsent, own };
  const { points, problems, ...requests } = await checkWritten(store, run, rounds, written);
  const failed = failedWritesOf([...records.keys()]);
  // Generators on other hosts each have a record of their own. They are joined in this folder, and their points are not counted.
  const isJoined = ([file]: [string, PointCounts]) =>
    existsSync(join(dirname(file), 'generator-1'));
  const isWhole =
    ![...records].some(isJoined) && rounds.every(({ recordFile = '' }) => records.has(recordFile));
  return {
    integrity: { ...requests, ...(isWhole ? { points: { ...points, ...failed } } : {}) },
    problems: [...problems, ...unread],
  };
}

/** What a run wrote to the database. */
interface WrittenPoints {
  /** Numbers of points in the readable records, by file. */
  records: ReadonlyMap<string, PointCounts>;
  /** Numbers of points that k6 has sent nowhere: to write these is no repair. */
  unsent: PointCounts;
  own: readonly string[];
}

async function checkWritten(
  store: Store,
  run: string,
  rounds: readonly StoredRound[],
  { records, unsent, own }: WrittenPoints,
) {
  const ownCounts = countsOf(own);
  const written = sumOf([...records.values(), ownCounts]);
  try {
    await store.reopen();
    const hadRequests = await requestsIn(store, run);
    const had = await pointsIn(store, run, written);
    const lacking = rounds.filter((round) => requestsOf(hadRequests, round) < round.requests);
    const failures: (string | undefined)[] = [];
    for (const [file, recorded] of records)
      if (lacks(had, recorded) || lacking.some(({ recordFile }) => recordFile === file))
        failures.push(await failureOf(writeAgain(store, file)));
    if (lacks(had, ownCounts)) failures.push(await failureOf(store.write(own)));
    const isSame = failures.length === 0;
    const requests = isSame ? hadRequests : await requestsIn(store, run);
    const now = isSame ? had : await pointsIn(store, run, written);
    const reason = failures.find((failure) => failure !== undefined);
    return {
      ...requestIntegrity(rounds, hadRequests, requests),
      points: pointIntegrity(written, sumOf([had, unsent]), now, reason),
      problems: rounds.flatMap((round) => problemsOf(round, requestsOf(requests, round), reason)),
    };
  } catch (error) {
    if (!(error instanceof InfluxError)) throw error;
    const { message } = error;
    const none: PointCounts = new Map();
    return {
      ...requestIntegrity(rounds, none, none),
      points: pointIntegrity(written, none, none, message),
      problems: [{ code: 'not-counted' as const, reason: message }],
    };
  }
}

/**
 * Counts the requests that are stored, written again (backfilled) and lost.
 * @param had the database's counts at first
 * @param now its counts after missing points were written again
 */
function requestIntegrity(rounds: readonly StoredRound[], had: PointCounts, now: PointCounts) {
  const lostIn = (counts: PointCounts, round: StoredRound) =>
    Math.max(0, round.requests - requestsOf(counts, round));
  return {
    requests: total(rounds, ({ requests }) => requests),
    stored: total(rounds, (round) => requestsOf(now, round)),
    backfilled: total(rounds, (round) =>
      round.unsent ? 0 : lostIn(had, round) - lostIn(now, round),
    ),
    lost: total(rounds, (round) => lostIn(now, round)),
  };
}

/**
 * Finds whether the database has too few or too many requests of a round.
 * @param stored the round's requests in the database
 * @param reason why writing the missing ones failed
 */
function problemsOf(
  { variant, round, requests }: StoredRound,
  stored: number,
  reason: string | undefined,
): StoreFinding[] {
  if (stored === requests) return [];
  return [{ code: 'other-requests', variant, round, stored, requests, ...present({ reason }) }];
}

function pointIntegrity(
  written: PointCounts,
  had: PointCounts,
  now: PointCounts,
  reason: string | undefined,
): PointIntegrity {
  const names = [...written.keys()];
  const storedIn = (counts: PointCounts) =>
    total(names, (name) => Math.min(countOf(counts, name), countOf(written, name)));
  const all = total(names, (name) => countOf(written, name));
  const stored = storedIn(now);
  const lacking = names.filter((name) => countOf(now, name) < countOf(written, name));
  const isLost = lacking.length > 0;
  return {
    written: all,
    stored,
    backfilled: stored - storedIn(had),
    lost: all - stored,
    ...present({
      lacking: isLost ? [...new Set(lacking.map(measurementOf))] : undefined,
      reason: isLost ? reason : undefined,
    }),
  };
}

/** Returns how often k6 failed to write, by the logs beside its records. */
function failedWritesOf(records: readonly string[]): Pick<PointIntegrity, 'failedWrites'> {
  const failed = total(records, (file) => failedWritesIn(textOf(k6Files(dirname(file)).log)));
  return failed === 0 ? {} : { failedWrites: failed };
}

/** Returns the measurement with which a sampleName begins. No measurement has a space in its name. */
const measurementOf = (name: string): string => name.replace(/ .*/s, '');

const countOf = (counts: PointCounts, name: string): number => counts.get(name) ?? 0;

const lacks = (stored: PointCounts, written: PointCounts): boolean =>
  [...written].some(([name, count]) => countOf(stored, name) < count);

function sumOf(all: readonly PointCounts[]): PointCounts {
  const sum = new Map<string, number>();
  for (const [name, count] of all.flatMap((counts) => [...counts]))
    sum.set(name, countOf(sum, name) + count);
  return sum;
}

/** Counts bakeoff's own lines by measurement. */
function countsOf(lines: readonly string[]): PointCounts {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const measurement = line.slice(0, line.indexOf(','));
    counts.set(measurement, countOf(counts, measurement) + 1);
  }
  return counts;
}

/**
 * Counts the points of a run in the database, by measurement and by sampleName. Throws an InfluxError.
 * @param written names of what is counted
 */
async function pointsIn(store: Store, run: string, written: PointCounts): Promise<PointCounts> {
  const all = [...new Set([...written.keys()].map(measurementOf))];
  const counted = await Promise.all(
    [...groupedBy(all, fieldOfEach)].map(([field, measurements]) => {
      const from = measurements.map(quoteIdentifier).join(', ');
      return figuresIn(store, run, `COUNT(${quoteIdentifier(field)}) FROM ${from}`);
    }),
  );
  const figures = counted.flat();
  return sumOf(
    figures.map(({ name, tags, figure }) => {
      return new Map([
        [name, figure],
        [sampleName(name, tags), figure],
      ]);
    }),
  );
}

/** Sums loadgen_requests by sampleName. Throws an InfluxError. */
async function requestsIn(store: Store, run: string): Promise<PointCounts> {
  const sums = await figuresIn(store, run, 'SUM("value"::float) FROM "loadgen_requests"');
  return new Map(sums.map(({ name, tags, figure }) => [sampleName(name, tags), figure]));
}

const requestsOf = (counts: PointCounts, { round, variant }: StoredRound): number =>
  countOf(counts, sampleName('loadgen_requests', { round: String(round), variant }));

/** Returns a figure of a run for each measurement, variant and round. Throws an InfluxError. */
async function figuresIn(store: Store, run: string, figure: string) {
  const series = await store.query(
    `SELECT ${figure} WHERE "run" = ${quoteString(run)} GROUP BY "variant", "round"`,
  );
  return series.map(({ name, tags = {}, values }) => {
    return { name, tags, figure: Number(values[0]?.[1]) || 0 };
  });
}

/** Writes a record. Points that the database refuses do not stop the others; the first refusal is thrown at the end. */
async function writeAgain(store: Store, recordFile: string): Promise<void> {
  const refusals: InfluxError[] = [];
  const write = async (lines: readonly string[]) => {
    try {
      await store.write(lines);
    } catch (error) {
      if (!(error instanceof InfluxError) || error.transient) throw error;
      refusals.push(error);
    }
  };
  let lines: string[] = [];
  for await (const recorded of recordedLines(recordFile)) {
    lines.push(recorded);
    if (lines.length === linesPerRequest) {
      await write(lines);
      lines = [];
    }
  }
  await write(lines);
  if (refusals[0] !== undefined) throw refusals[0];
}

/** Returns why a write failed; undefined if it did not. */
function failureOf(write: Promise<void>): Promise<string | undefined> {
  return write.then(() => undefined, messageOf);
}
