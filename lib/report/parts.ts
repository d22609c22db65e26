// What a report shows beside sentences, in the terminal and in Markdown alike.
import { comparisonOf, measuredComparisons, roundRatiosOf } from '../analysis/comparisons.ts';
import { curvesOf } from '../analysis/curve.ts';
import { wholeRounds } from '../analysis/phases.ts';
import { enumeration } from '../format.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { isAtRate } from '../scenario/load/fit.ts';
import { isHttp2 } from '../scenario/protocols.ts';
import { histogramPart, ladderPart, streamsPart } from './bars.ts';
import { hasPhases, variantTable } from './columns.ts';
import { curvePart } from './curve.ts';
import { finishTable, h2loadTables, wrkTables } from './load-tools.ts';
import { linkPart } from './network.ts';
import type { Part, Table } from './table.ts';

/** The article's table and what belongs to it: phases, the link, histogram, the ladder, requests/s by streams. */
export function tableParts(result: Result): Part[] {
  return [...articleParts(result), ...curvePart(result), ...histogramPart(result), ...ladderPart(result), ...streamsPart(result)];
}

/** The article's table, with several load phases one of them above it, and what went over the link below it. */
export function articleParts(result: Result): Part[] {
  const variants = { tables: [variantTable(result)], below: rowLines(result) };
  const phases = hasPhases(result) ? [{ title: '', tables: [finishTable(result, 'variant, phase')], below: [] }] : [];
  return [...phases, { title: phases.length === 0 ? '' : 'All phases together:', ...variants }, ...linkPart(result)];
}

/** What a row's figures leave open: why requests/s and CPU time say different things, and its rounds where they are apart. */
function rowLines(result: Result): string[] {
  const measured = measuredComparisons(result);
  const shown = measured.filter(({ outliers, verdict }) => outliers.length > 0 || verdict === 'inconclusive');
  return [
    ...measured.filter(({ disagreement }) => disagreement !== '').map((one) => `${nameOf(one)}, where requests/s and CPU per request disagree: ${one.disagreement}.`),
    ...shown.map((one) => `${nameOf(one)}, rounds${one.outliers.length > 0 ? ' (! lies apart)' : ''}: ${roundsText(one)}`),
  ];

  /** A comparison that is not its row's own needs both names. */
  function nameOf({ variant, baseline }: Comparison): string {
    return comparisonOf(result, variant)?.baseline === baseline ? variant : `${variant} against ${baseline}`;
  }

  /** "×1.40 ×1.44 ×1.80! ×1.42"; with three decimals where all of them are near to 1. */
  function roundsText(comparison: Comparison): string {
    const rounds = roundRatiosOf(comparison, result);
    const decimals = rounds.every(({ ratio }) => Math.abs(ratio - 1) < 0.1) ? 3 : 2;
    return rounds.map(({ ratio, apart }) => `×${ratio.toFixed(decimals)}${apart ? '!' : ''}`).join(' ');
  }
}

/** The lines of the load tool that the articles used: h2load's where there is HTTP/2, wrk's for what is over HTTP/1. */
export function lineParts(result: Result): Part[] {
  // They print one load, and a curve is of many.
  if (curvesOf(result).length > 0) return [];
  const finish = hasPhases(result) ? [] : [finishTable(result)];
  const h2load = result.variants.some(({ load }) => isHttp2(load.protocol)) ? [...finish, ...h2loadTables(result)] : [];
  return [
    ...toolPart(result, 'h2load', h2load, 'requests and status codes are sums, req/s per client means; times are those of'),
    ...toolPart(result, 'wrk', wrkTables(result), 'errors are sums, Req/Sec per thread means; latency is that of'),
  ];
}

/** @param how figures of several rounds became one line where they are no medians, up to whose latencies they are */
function toolPart({ variants }: Result, tool: string, tables: readonly Table[], how: string): Part[] {
  const rounds = wholeRounds(variants);
  // Results of earlier versions have no histograms.
  const isMerged = variants.some((variant) => variant.rounds.some(({ phases }) => phases.some(({ latencyMs }) => latencyMs.histogram.length > 0)));
  const ofRounds = `, here of ${rounds} rounds: medians; ${how} ${isMerged ? 'all rounds together' : 'the round with the median requests/s'}`;
  return tables.length === 0 ? [] : [{ title: `${tool}'s lines${rounds < 2 ? '' : ofRounds}:`, tables, below: [timesFrom(variants)] }];
}

/** What latencies are times of: in the closed model the server sets the pace, so that what it delays is not asked in time. */
export function timesFrom(variants: readonly Pick<VariantResult, 'load'>[]): string {
  const open = variants.filter(({ load }) => isAtRate(load));
  if (open.length === 0) return 'Latency is service time: from when a request left, which is when the one before it was answered.';
  return open.length === variants.length ? 'Latency is from when a request was due.' : `Latency is from when a request was due with ${enumeration(open.map(({ load }) => load.command ?? ''))}, else service time.`;
}
