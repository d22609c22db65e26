// requests/s by concurrent streams per connection, against the line of HTTP/1.1.
import { bar, perSecond, times } from '../format.ts';
import type { Result, VariantResult } from '../runner/result.ts';
import { isHttp2, streamsOf } from './loads.ts';
import { tableOf, type Part } from './table.ts';

const barWidth = 40;

/** From this many numbers of streams on it is a curve. */
const fewestPoints = 3;

/** A variant that was measured, and its requests/s. */
export interface Point { variant: VariantResult; rps: number; ratio: number }

/** HTTP/1.1 and the same server's (or another's) HTTP/2 with several numbers of streams. */
export interface StreamSweep { line: Point; curve: Point[] }

/** The sweep in a result, most streams first; undefined where there is none. `ratio` is that of requests/s to HTTP/1.1's. */
export function streamSweep(result: Result): StreamSweep | undefined {
  const measured = result.variants.flatMap((variant) => (variant.rps === null ? [] : [{ variant, rps: variant.rps.median }]));
  const http1 = measured.find(({ variant }) => !isHttp2(variant));
  const http2 = measured.filter(({ variant }) => isHttp2(variant));
  if (http1 === undefined || new Set(http2.map(({ variant }) => streamsOf(variant))).size < fewestPoints) return undefined;
  const ratioOf = ({ variant, rps }: Omit<Point, 'ratio'>): number => (
    result.comparisons.find((one) => one.variant === variant.name && one.baseline === http1.variant.name)?.ratio ?? rps / http1.rps
  );
  return {
    line: { ...http1, ratio: 1 },
    curve: http2.map((point) => ({ ...point, ratio: ratioOf(point) })).sort((a, b) => streamsOf(b.variant) - streamsOf(a.variant)),
  };
}

/** The sweep as bars; a mark in each of them is where HTTP/1.1 ends. */
export function streamsPart(result: Result): Part[] {
  const sweep = streamSweep(result);
  if (sweep === undefined) return [];
  const { line, curve } = sweep;
  const highest = Math.max(line.rps, ...curve.map(({ rps }) => rps));
  if (highest === 0) return [];
  const mark = Math.min(barWidth - 1, Math.round((line.rps / highest) * barWidth));
  const table = tableOf([...curve, line], [
    { group: '', title: 'streams', align: 'left', cell: (point) => (point === line ? 'HTTP/1.1' : String(streamsOf(point.variant))) },
    { group: '', title: 'requests/s', align: 'right', cell: ({ rps }) => perSecond(rps) },
    { group: '', title: 'ratio', align: 'left', cell: (point) => (point === line ? '' : times(point.ratio)) },
    { group: '', title: '', align: 'left', cell: ({ rps }) => marked(bar(rps / highest, barWidth), mark) },
  ]);
  return [{ title: `requests/s by streams per connection; │ is ${line.variant.name}:`, tables: [table], below: [] }];
}

function marked(text: string, at: number): string {
  const padded = text.padEnd(at + 1);
  return `${padded.slice(0, at)}│${padded.slice(at + 1)}`;
}
