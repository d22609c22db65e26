// Reads the points in k6's record (`--out json`), as k6 sends them to the database.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { tagsAsFields } from '../../influx/address.ts';
import { line } from '../../influx/line-protocol.ts';

export type PointCounts = ReadonlyMap<string, number>;

/** Returns the name under which the points of a measurement in a round and variant are counted. */
export const sampleName = (
  measurement: string,
  { round = '', variant = '' }: Readonly<Record<string, string>>,
): string => `${measurement} ${round} ${variant}`;

/** Yields the record's points as lines that replace k6's own points. Throws the file system's error. */
export async function* recordedLines(file: string): AsyncGenerator<string> {
  for await (const { metric, tags, value, timestampNs } of pointsIn(file)) {
    const fields: Record<string, string | number> = {};
    for (const name of tagsAsFields) if (tags[name] !== undefined) fields[name] = tags[name];
    yield line(metric, tagsOfSeries(tags), { ...fields, value }, timestampNs);
  }
}

/** A series of the database: a measurement and its tags. */
interface Series {
  name: string;
  times: Set<bigint>;
}

/**
 * Counts the record's points by sampleName. Points of one series and time count once, because the database keeps only one of them.
 * Throws the file system's error.
 */
export async function recordedPoints(file: string): Promise<PointCounts> {
  const all = new Map<string, Series>();
  // A record has few sets of tags, and each of them many times.
  const bySample = new Map<string, Series>();
  for await (const { metric, tags, timestampNs } of pointsIn(file)) {
    const sample = metric + JSON.stringify(tags);
    const series = bySample.get(sample) ?? seriesOf(all, metric, tags);
    bySample.set(sample, series);
    series.times.add(timestampNs);
  }
  const counts = new Map<string, number>();
  for (const { name, times } of all.values())
    counts.set(name, (counts.get(name) ?? 0) + times.size);
  return counts;
}

function seriesOf(all: Map<string, Series>, metric: string, tags: Texts): Series {
  const key = line(metric, tagsOfSeries(tags), { value: 0 });
  const series = all.get(key) ?? { name: sampleName(metric, tags), times: new Set() };
  all.set(key, series);
  return series;
}

type Texts = Readonly<Record<string, string>>;

/** Tags without those that are fields in the database. */
function tagsOfSeries(tags: Texts): Texts {
  const left = { ...tags };
  for (const name of tagsAsFields) delete left[name];
  return left;
}

async function* pointsIn(file: string) {
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const point = pointIn(text);
    if (point !== undefined) yield point;
  }
}

/** Returns the point of a line. Undefined for lines that describe a metric, and for the half line that a killed k6 leaves. */
function pointIn(text: string) {
  let sample: {
    type?: string;
    metric?: string;
    data?: { time?: string; value?: number; tags?: Texts | null };
  };
  try {
    sample = JSON.parse(text) as typeof sample;
  } catch {
    return undefined;
  }
  const { type, metric, data: { time = '', value, tags } = {} } = sample;
  const timestampNs = parseGoTime(time);
  if (type !== 'Point' || metric === undefined || value === undefined || timestampNs === null)
    return undefined;
  return { metric, tags: tags ?? {}, value, timestampNs };
}

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** Returns the exact nanoseconds since 1970 of a Go time in JSON (RFC 3339 with up to nine digits); null for other text. */
export function parseGoTime(text: string): bigint | null {
  const match = rfc3339.exec(text);
  if (match === null) return null;
  const seconds = Date.parse(`${match[1]}${match[3]}`);
  if (Number.isNaN(seconds)) return null;
  return BigInt(seconds) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
}
