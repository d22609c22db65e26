// Nothing is lost: after each round, and at the end of the run, the requests in the database are counted. Missing ones are
// written again from k6's own record.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { total } from '../analysis/statistics.ts';
import { messageOf } from '../errors.ts';
import { whole } from '../format.ts';
import type { Integrity } from '../result/result.ts';
import { tagsAsFields } from './client.ts';
import type { Store } from './store.ts';
import { line, parseGoTime, quoteString } from './line-protocol.ts';

/** What identifies a round's points, and what they have to add up to. */
interface RoundToCheck {
  variant: string;
  round: number;
  /** The file of k6's `--out json` of this round; undefined: it has none, so that what is lost stays so. */
  recordFile: string | undefined;
  /** k6 has sent nothing itself, so that writing its record is no repair. */
  unsent?: boolean;
  /** What the engine counted, in its summary. */
  requests: number;
  /** Of several that made them together, what each made: samples are told apart by their `instance_id`, from 1. */
  instances?: readonly number[] | undefined;
}

/** `problems`: one line each for the person; empty when all is stored. */
export interface RoundIntegrity extends Integrity {
  problems: string[];
}

/** Requests in the database, by variant, round and generator. */
type Held = readonly { tags: Readonly<Record<string, string>>; requests: number }[];

const pointsPerWrite = 5000;

/**
 * Compares the sums of loadgen_requests in the database with the engine's own counts. Where some are missing, the whole record is
 * written again (which replaces what is there) and the database is asked once more. Never throws for a database that fails: its
 * requests are then lost, and `problems` says why.
 * @param anew also where the database hung a moment ago
 * @returns for each round requests (as given), stored (of them, by query), backfilled (missing at first, there now), lost (missing
 *   still). `uncounted` says why the database could not be asked at all.
 */
export async function checkRounds(
  store: Store,
  run: string,
  rounds: readonly RoundToCheck[],
  anew = false,
): Promise<{ integrity: RoundIntegrity[]; uncounted: string | null }> {
  let [before, after, failure]: [Held | null, Held, string | null] = [null, [], null];
  try {
    await store.revive(anew);
    before = after = await heldOf(store, run);
    const records = new Set(
      rounds.flatMap((round) => (lackOf(round, after) > 0 ? (round.recordFile ?? []) : [])),
    );
    for (const file of records) await writeAgain(store, file);
    if (records.size > 0) after = await heldOf(store, run);
  } catch (error) {
    failure = messageOf(error);
  }
  const integrity = rounds.map((round): RoundIntegrity => {
    const { variant, requests, unsent = false, instances = [] } = round;
    const stored = requestsIn(after, round);
    const lacks = instances.map((made, index) =>
      Math.max(0, made - requestsIn(after, round, index + 1)),
    );
    // One generator's loss is not made good by what another has beyond its own.
    const lost = Math.max(
      lackOf(round, after),
      total(lacks, (lack) => lack),
    );
    const label = `${variant}, round ${round.round}`;
    const of = lacks.flatMap((lack, index) =>
      lack > 0 ? [`${whole(lack)} of generator ${index + 1}`] : [],
    );
    // Of one that cannot be asked, all rounds say the same.
    const problems =
      before === null
        ? [failure as string]
        : [
            ...(stored > requests
              ? [
                  `InfluxDB holds ${whole(stored)} requests of ${label}, more than the ${whole(requests)} that were made; the figures in result.json are right, those in InfluxDB are not`,
                ]
              : []),
            ...(lost > 0
              ? [
                  `InfluxDB lacks ${whole(lost)} of ${whole(requests)} requests of ${label}${of.length === 0 ? '' : ` (${of.join(', ')})`}${failure === null ? '' : `: ${failure}`}`,
                ]
              : []),
          ];
    return {
      requests,
      stored,
      backfilled: unsent || before === null ? 0 : lackOf(round, before) - lackOf(round, after),
      lost,
      problems,
    };
  });
  return { integrity, uncounted: before === null ? failure : null };
}

async function heldOf(store: Store, run: string): Promise<Held> {
  const series = await store.query(
    `SELECT SUM("value") FROM "loadgen_requests" WHERE "run" = ${quoteString(run)} GROUP BY "variant", "round", "instance_id"`,
  );
  return series.map(({ tags = {}, columns, values }) => ({
    tags,
    requests: Number(values[0]?.[columns.indexOf('sum')]) || 0,
  }));
}

async function writeAgain(store: Store, recordFile: string): Promise<void> {
  let lines: string[] = [];
  for await (const point of readRecord(recordFile)) {
    lines.push(recordedLine(point));
    if (lines.length === pointsPerWrite) {
      await store.write(lines);
      lines = [];
    }
  }
  await store.write(lines);
}

/** @param instance whose; undefined: of all */
function requestsIn(held: Held, { variant, round }: RoundToCheck, instance?: number): number {
  const ofRound = held.filter(
    ({ tags }) =>
      tags['variant'] === variant &&
      tags['round'] === String(round) &&
      (instance === undefined || tags['instance_id'] === String(instance)),
  );
  return total(ofRound, ({ requests }) => requests);
}

function lackOf(round: RoundToCheck, held: Held): number {
  return Math.max(0, round.requests - requestsIn(held, round));
}

// k6's own record of a round: the file of `--out json`, one line per sample, written as it happens.
/** A sample as k6's influxdb output writes it: some tags have become fields, tags without a value are left out. */
interface RecordedPoint {
  metric: string;
  tags: Record<string, string>;
  fields: Record<string, string>;
  value: number;
  timestampNs: bigint;
}

/** Reads the samples of a file, by its name or opened, in the order in which k6 made them. Throws the file system's error when there is no such file. */
export async function* readRecord(file: string | Readable): AsyncGenerator<RecordedPoint> {
  for await (const text of createInterface({
    input: typeof file === 'string' ? createReadStream(file) : file,
    crlfDelay: Infinity,
  })) {
    const point = parsePoint(text);
    if (point !== null) yield point;
  }
}

/** Null for what is not a sample: k6 describes each metric once, and a killed k6 leaves half a line at the end. */
export function parsePoint(text: string): RecordedPoint | null {
  let sample: {
    type?: string;
    metric?: string;
    data?: { time?: string; value?: number; tags?: Record<string, string> | null };
  };
  try {
    sample = JSON.parse(text) as typeof sample;
  } catch {
    return null;
  }
  const { type, metric, data } = sample;
  if (
    type !== 'Point' ||
    metric === undefined ||
    typeof data?.value !== 'number' ||
    data.time === undefined
  )
    return null;
  const timestampNs = parseGoTime(data.time);
  if (timestampNs === null) return null;
  const point: RecordedPoint = { metric, tags: {}, fields: {}, value: data.value, timestampNs };
  for (const [tag, value] of Object.entries(data.tags ?? {})) {
    if ((tagsAsFields as readonly string[]).includes(tag)) point.fields[tag] = value;
    else if (value !== '') point.tags[tag] = value;
  }
  return point;
}

/** The sample's point in line protocol: the same series, fields and nanosecond as k6's, so that writing it again replaces it. */
export function recordedLine(point: RecordedPoint): string {
  return line(point.metric, point.tags, { ...point.fields, value: point.value }, point.timestampNs);
}
