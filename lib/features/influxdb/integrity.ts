// Counts a run's points in the database, and writes missing ones again.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { groupedBy, total } from '../../analysis/statistics.ts';
import { messageOf } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { whole } from '../../format.ts';
import { InfluxError, linesPerRequest } from '../../influx/client.ts';
import { failedWritesIn } from '../../influx/address.ts';
import { quoteIdentifier, quoteString } from '../../influx/line-protocol.ts';
import { k6Files } from '../../k6/load-plan.ts';
import { present } from '../../present.ts';
import type { PointIntegrity } from '../../result/result.ts';
import type { RoundIntegrity } from '../../runner/plan.ts';
import { recordedLines, recordedPoints, sampleName, type PointCounts } from './record.ts';
import { fieldOfEach } from './schema.ts';
import type { Store } from './store.ts';

interface RoundToCheck {
  variant: string;
  round: number;
  /** The file of k6's `--out json`; undefined if there is none to repair from. */
  recordFile: string | undefined;
  /** k6 has sent nothing itself, so that writing its record is no repair. */
  unsent?: boolean;
  requests: number;
}

/**
 * Compares the database's sum of loadgen_requests with the engine's count. If some miss, writes the whole record again, which replaces
 * points. A failing database is no error: `problems` says why. @returns counts (backfilled: missing at first, stored now)
 */
export async function checkRound(
  store: Store,
  run: string,
  checked: RoundToCheck,
): Promise<RoundIntegrity> {
  const { variant, round, recordFile, requests } = checked;
  const where = `"variant" = ${quoteString(variant)} AND "round" = '${round}'`;
  const count = async () => requestsOf(await requestsIn(store, run, where), checked);
  let before: number | null = null;
  let stored = 0;
  let failure: string | undefined;
  try {
    await store.revive();
    before = stored = await count();
    if (recordFile !== undefined && stored < requests) {
      failure = await failureOf(writeAgain(store, recordFile));
      stored = await count();
    }
  } catch (error) {
    failure ??= messageOf(error);
  }
  return integrityOf(checked, before, stored, failure);
}

/** @param before requests in the database; null: not counted, for the reason in `failure` */
function integrityOf(
  { variant, round, requests, unsent }: RoundToCheck,
  before: number | null,
  stored: number,
  failure: string | undefined,
): RoundIntegrity {
  const lost = Math.max(0, requests - stored);
  const lostAtFirst = Math.max(0, requests - (before ?? 0));
  const label = `${variant}, round ${round}`;
  const problems: string[] = [];
  if (before === null) problems.push(failure as string);
  else if (lost > 0)
    problems.push(
      `InfluxDB lacks ${whole(lost)} of ${whole(requests)} requests of ${label}${failure === undefined ? '' : `: ${failure}`}`,
    );
  else if (stored > requests)
    problems.push(
      `InfluxDB holds ${whole(stored)} requests of ${label}, more than the ${whole(requests)} that were made; the figures in result.json are right, those in InfluxDB are not`,
    );
  const backfilled = unsent === true || before === null ? 0 : lostAtFirst - lost;
  return { requests, stored, backfilled, lost, problems };
}

interface StoredRound extends RoundToCheck {
  integrity: RoundIntegrity;
}

interface RunIntegrity<R> {
  /** New counts of rounds. */
  changed: Map<R, RoundIntegrity>;
  /** undefined if the record of a round is missing. */
  points: PointIntegrity | undefined;
  /** Lines for the user. */
  problems: string[];
}

/**
 * Counts all of a run's points at its end: the database may have refused or lost some, or been replaced. Writes missing ones again and
 * counts anew. Never throws. @param own lines of bakeoff's points, each once
 */
export async function checkRun<R extends StoredRound>(
  store: Store,
  run: string,
  rounds: readonly R[],
  own: readonly string[],
): Promise<RunIntegrity<R>> {
  const problems: string[] = [];
  const records = new Map<string, PointCounts>();
  for (const recordFile of new Set(rounds.flatMap((round) => round.recordFile ?? [])))
    try {
      records.set(recordFile, await recordedPoints(recordFile));
    } catch (error) {
      problems.push(`the record of k6 cannot be read: ${messageOf(error)}`);
    }
  const { changed, points } = await checkWritten(store, run, rounds, { records, own });
  const failed = failedWritesOf([...records.keys()]);
  // Generators on other hosts have records of their own, joined here and not counted.
  const isJoined = ([file]: [string, PointCounts]) =>
    existsSync(join(dirname(file), 'generator-1'));
  const isWhole =
    ![...records].some(isJoined) && rounds.every(({ recordFile = '' }) => records.has(recordFile));
  return { changed, points: isWhole ? { ...points, ...failed } : undefined, problems };
}

/** What a run wrote to the database. */
interface WrittenPoints {
  /** Numbers of points in the readable records, by file. */
  records: ReadonlyMap<string, PointCounts>;
  own: readonly string[];
}

async function checkWritten<R extends StoredRound>(
  store: Store,
  run: string,
  rounds: readonly R[],
  { records, own }: WrittenPoints,
): Promise<{ changed: Map<R, RoundIntegrity>; points: PointIntegrity }> {
  const ownCounts = countsOf(own);
  const written = sumOf([...records.values(), ownCounts]);
  try {
    await store.reopen();
    const hadRequests = await requestsIn(store, run);
    const had = await pointsIn(store, run, written);
    const lacking = rounds.filter(
      (round) => requestsOf(hadRequests, round) < round.requests || round.integrity.lost > 0,
    );
    const failures: (string | undefined)[] = [];
    for (const [file, recorded] of records)
      if (lacks(had, recorded) || lacking.some(({ recordFile }) => recordFile === file))
        failures.push(await failureOf(writeAgain(store, file)));
    if (lacks(had, ownCounts)) failures.push(await failureOf(store.write(own)));
    const isSame = failures.length === 0;
    const requests = isSame ? hadRequests : await requestsIn(store, run);
    const now = isSame ? had : await pointsIn(store, run, written);
    const reason = failures.find((failure) => failure !== undefined);
    const changed = lacking.map((round) => {
      const counted = [requestsOf(hadRequests, round), requestsOf(requests, round)] as const;
      return [round, joined(round.integrity, integrityOf(round, ...counted, reason))] as const;
    });
    return { changed: new Map(changed), points: pointIntegrity(written, had, now, reason) };
  } catch (error) {
    if (!(error instanceof InfluxError)) throw error;
    const { message } = error;
    const unknown = rounds.map((round) => [round, integrityOf(round, null, 0, message)] as const);
    const none: PointCounts = new Map();
    return { changed: new Map(unknown), points: pointIntegrity(written, none, none, message) };
  }
}

/** Stored and now missing counts as lost, lost and now stored as rewritten. */
function joined(before: RoundIntegrity, now: RoundIntegrity): RoundIntegrity {
  return { ...now, backfilled: Math.min(now.stored, before.backfilled + now.backfilled) };
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

/** How often k6 failed to write, by the logs beside its records. */
function failedWritesOf(records: readonly string[]): Pick<PointIntegrity, 'failedWrites'> {
  const failed = total(records, (file) => failedWritesIn(textOf(k6Files(dirname(file)).log)));
  return failed === 0 ? {} : { failedWrites: failed };
}

/** A sampleName begins with its measurement, which has no space. */
const measurementOf = (name: string): string => name.split(' ', 1)[0] as string;

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

/** Counts by measurement and by sampleName. Throws an InfluxError. @param written names of what is counted */
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
async function requestsIn(store: Store, run: string, where?: string): Promise<PointCounts> {
  const sums = await figuresIn(store, run, 'SUM("value"::float) FROM "loadgen_requests"', where);
  return new Map(sums.map(({ name, tags, figure }) => [sampleName(name, tags), figure]));
}

const requestsOf = (counts: PointCounts, { round, variant }: RoundToCheck): number =>
  countOf(counts, sampleName('loadgen_requests', { round: String(round), variant }));

/** A figure per measurement, variant and round. Throws an InfluxError. */
async function figuresIn(store: Store, run: string, figure: string, where?: string) {
  const ofRun = `"run" = ${quoteString(run)}`;
  const condition = where === undefined ? ofRun : `${ofRun} AND ${where}`;
  const series = await store.query(
    `SELECT ${figure} WHERE ${condition} GROUP BY "variant", "round"`,
  );
  return series.map(({ name, tags = {}, values }) => {
    return { name, tags, figure: Number(values[0]?.[1]) || 0 };
  });
}

/** Goes on after refused points; throws the first refusal at the end. */
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
