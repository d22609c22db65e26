// What a report shows beside sentences, in the terminal and in Markdown alike.
import { wholeRounds } from '../analysis/phases.ts';
import { scaledTime } from '../format.ts';
import type { Result, VariantResult } from '../runner/result.ts';
import { hasPhases, variantTable } from './columns.ts';
import { finishTable, lineTables } from './h2load.ts';
import { histogramTable } from './histogram.ts';
import { hasHttp2, isOpenModel } from './loads.ts';
import { streamsPart } from './streams.ts';
import type { Part } from './table.ts';

/** The article's table and what belongs to it: phases, histogram, requests/s by streams. */
export function tableParts(result: Result): Part[] {
  const variants = variantTable(result);
  // In a terminal it stands below h2load's many tables.
  const title = hasHttp2(result) ? 'In short:' : '';
  return [
    ...(hasPhases(result)
      ? [{ title, tables: [finishTable(result, 'variant, phase')], below: [] }, { title: 'All phases together:', tables: [variants], below: [] }]
      : [{ title, tables: [variants], below: [] }]),
    ...histogramPart(result),
    ...streamsPart(result),
  ];
}

/** h2load's lines; nothing for results without HTTP/2. */
export function lineParts(result: Result): Part[] {
  if (!hasHttp2(result)) return [];
  const finish = hasPhases(result) ? [] : [finishTable(result)];
  return [{ title: `h2load's lines${ofRounds(result)}:`, tables: [...finish, ...lineTables(result)], below: [] }];
}

/** How figures of several rounds became one line. */
function ofRounds({ variants }: Result): string {
  const rounds = wholeRounds(variants);
  return rounds < 2 ? '' : `, here of ${rounds} rounds: medians; requests and status codes are sums; times and req/s per client are those of `
    + 'the round with the median requests/s';
}

function histogramPart(result: Result): Part[] {
  const table = histogramTable(result);
  return table === undefined ? [] : [{ title: 'Answers by latency:', tables: [table], below: sendDelayLine(result.variants.filter(isOpenModel)) }];
}

/** How late the generator was itself. */
function sendDelayLine(variants: readonly VariantResult[]): string[] {
  const delays = variants.flatMap(({ name, phases: [phase] }) => (
    phase === undefined ? [] : [`${name} ${scaledTime(phase.sendDelayMs.p50)} and ${scaledTime(phase.sendDelayMs.p99)}`]
  ));
  return delays.length === 0 ? [] : [`Send delay (p50 and p99), which is in these latencies: ${delays.join(', ')}.`];
}
