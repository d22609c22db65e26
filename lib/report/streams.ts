// The sweep over concurrent streams per connection as text.
import { streamsOf, streamSweep } from '../analysis/stream-sweep.ts';
import { bar, perSecond, times } from '../format.ts';
import type { Result } from '../result/result.ts';
import { tableOf, type Part } from './table.ts';

const barWidth = 40;

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
