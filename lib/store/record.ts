// k6's own record of a round: the file of `--out json`, one line per sample, written as it happens.
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import { tagsAsFields } from './k6-output.ts';
import { line, parseGoTime } from './line-protocol.ts';

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
