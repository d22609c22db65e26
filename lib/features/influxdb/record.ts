// Reads the points in k6's record (`--out json`), as k6 sends them to the database.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseGoTime } from '../../runner/k6-record.ts';
import { tagsAsFields } from '../../influx/k6-output.ts';
import { line } from '../../influx/line-protocol.ts';

/** Numbers of points by name. */
export type PointCounts = ReadonlyMap<string, number>;

/** Returns the name under which the points of a measurement in a round and variant are counted. */
export const sampleName = (
  measurement: string,
  { round = '', variant = '' }: Readonly<Record<string, string>>,
): string => `${measurement} ${round} ${variant}`;

/** Yields the record's points as lines that replace k6's own points. Throws the file system's error. */
export async function* recordedLines(file: string): AsyncGenerator<string> {
  for await (const { metric, tags, fields, timestampNs } of pointsIn(file))
    yield line(metric, tags, fields, timestampNs);
}

/**
 * Counts the record's points by sampleName. The database keeps one point of a tag set and time, so that more count once. Throws the file
 * system's error.
 */
export async function recordedPoints(file: string): Promise<PointCounts> {
  const series = new Map<string, { name: string; times: Set<bigint> }>();
  for await (const { metric, tags, timestampNs } of pointsIn(file)) {
    const key = line(metric, tags, { value: 0 });
    const known = series.get(key) ?? { name: sampleName(metric, tags), times: new Set() };
    series.set(key, known);
    known.times.add(timestampNs);
  }
  const counts = new Map<string, number>();
  for (const { name, times } of series.values())
    counts.set(name, (counts.get(name) ?? 0) + times.size);
  return counts;
}

type Texts = Record<string, string>;

async function* pointsIn(file: string) {
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const point = pointIn(text);
    if (point !== undefined) yield point;
  }
}

/** undefined for other lines: k6 describes each metric, and a killed k6 leaves half a line. */
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
  const { type, metric, data: { time = '', value, tags: all } = {} } = sample;
  const timestampNs = parseGoTime(time);
  if (type !== 'Point' || metric === undefined || value === undefined || timestampNs === null)
    return undefined;
  const tags: Texts = {};
  const texts: Texts = {};
  for (const [name, tag] of Object.entries(all ?? {}))
    if ((tagsAsFields as readonly string[]).includes(name)) texts[name] = tag;
    else tags[name] = tag;
  return { metric, tags, fields: { ...texts, value }, timestampNs };
}
