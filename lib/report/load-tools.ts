// What h2load and wrk print of a run, for every variant and load phase, published above measured.
import { phasePairs, responsesOf, succeeded } from '../analysis/phases.ts';
import { exactPercent, hundredths, scaledBytesPerSecond, scaledTime, success, whole } from '../format.ts';
import { byName } from '../present.ts';
import type { Distribution, PhaseResult, Result, VariantResult } from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { isHttp2 } from '../scenario/protocols.ts';
import { countCell, figure, leftColumn, rightColumn, tableOf, type Column, type Table } from './table.ts';

/** What an article printed of a load, or what was measured, in the same units. */
type Figures = { [Name in keyof Published]?: Published[Name] | undefined };

/** A row. `measured`: what articles do not print. */
interface Run extends Figures { name: string; variant: VariantResult; measured?: PhaseResult }

/** One row per variant, phase and source; what was not published, or not measured, has none. */
function runsOf(variants: readonly VariantResult[], pairsOf = phasePairs): Run[] {
  const width = Math.max(...variants.map(({ name }) => name.length));
  const several = variants.some((variant) => pairsOf(variant).length > 1);
  return variants.flatMap((variant) => pairsOf(variant).flatMap(({ phase, published, measured }): Run[] => {
    const name = `${variant.name.padEnd(width)}  ${several ? `${phase}  ` : ''}`;
    return [
      ...(published === undefined ? [] : [{ ...published, name: `${name}published`, variant }]),
      ...(measured === undefined ? [] : [{ ...measuredFigures(measured), name: `${name}here`, variant, measured }]),
    ];
  }));
}

function measuredFigures(phase: PhaseResult): Figures {
  const { requests, seconds, rps, responses, bytes } = phase;
  return {
    requests, seconds, rps: rps.median, responses,
    successRatio: phase.successRatio ?? undefined,
    transferBytesPerSecond: phase.receivedBytesPerSecond,
    receivedBytes: bytes.received,
    headerBytes: bytes.headers,
    headerSavingsPercent: phase.headerSavingsPercent ?? undefined,
    bodyBytes: bytes.body,
    ...byName(['latencyMs', 'connectMs', 'firstByteMs', 'perConnectionRps', 'perThreadRps'], (name) => asPublished(phase[name])),
    tls: phase.tls ?? undefined,
  };
}

/** A measured distribution as articles print one; of nothing it is all zeros, and none then. */
function asPublished({ min, mean, sd, max, withinSd }: Distribution): PublishedDistribution | undefined {
  return max === 0 ? undefined : { min, mean, sd, max, withinSdPercent: withinSd * 100 };
}

/** A table of such rows under a title of its own. */
function runTable(runs: readonly Run[], title: string, columns: readonly Column<Run>[]): Table {
  return tableOf(runs, [leftColumn(title, ({ name }) => name), ...columns]);
}

/** The columns of a distribution, by the tool's own names for its figures. */
function distributionColumns(
  names: Partial<Record<keyof PublishedDistribution, string>>, of: (run: Run) => PublishedDistribution | undefined, format: (value: number) => string,
): Column<Run>[] {
  return (Object.entries(names) as [keyof PublishedDistribution, string][]).map(([part, name]) => (
    rightColumn(name, (run) => figure(of(run)?.[part], part === 'withinSdPercent' ? exactPercent : format))
  ));
}

/** h2load's "finished in …, … req/s, … MB/s", and with it the share that succeeded. */
export function finishTable({ variants }: Result, title = 'finished'): Table {
  return runTable(runsOf(variants), title, [
    rightColumn('time', ({ seconds }) => figure(seconds, (value) => scaledTime(value * 1000))),
    rightColumn('requests/s', ({ rps }) => figure(rps, hundredths)),
    rightColumn('success', ({ successRatio }) => figure(successRatio, success)),
    rightColumn('bytes/s', ({ transferBytesPerSecond }) => figure(transferBytesPerSecond, scaledBytesPerSecond)),
  ]);
}

/** h2load's other lines, a table each: requests, status codes, TLS, traffic, and four distributions. Those with nothing in them are left out. */
export function h2loadTables({ variants }: Result): Table[] {
  const runs = runsOf(variants);
  const parts = { min: 'min', max: 'max', mean: 'mean', sd: 'sd', withinSdPercent: '±sd' };
  const times = [['request', 'latencyMs'], ['connect', 'connectMs'], ['1st byte', 'firstByteMs']] as const;
  return [
    runTable(runs, 'requests', [
      ...(['done', 'succeeded', 'failed', 'errored'] as const).map((name) => rightColumn(name, (run: Run) => figure(endedOf(run)?.[name], whole))),
      rightColumn('unsent', ({ measured }) => countCell(measured?.unsent)),
      rightColumn('hung', ({ measured }) => countCell(measured?.hung)),
    ]),
    runTable(runs, 'status codes', (['2xx', '3xx', '4xx', '5xx'] as const).map((status) => (
      rightColumn(status, ({ responses }) => (responses === undefined ? '' : whole(responses[status] ?? 0)))
    ))),
    // One row for all phases, since they all come to the same.
    runTable(runsOf(variants, (variant) => phasePairs(variant).slice(0, 1)), 'TLS', [
      leftColumn('protocol', ({ tls }) => tls?.version ?? ''),
      leftColumn('cipher', ({ tls }) => tls?.cipher ?? ''),
      leftColumn('temp key', ({ tls }) => tls?.keyExchange ?? ''),
      leftColumn('ALPN', ({ tls, measured, variant }) => (tls === undefined || measured === undefined ? '' : variant.load.protocol)),
    ]),
    runTable(runs, 'traffic', [
      rightColumn('total B', ({ receivedBytes }) => figure(receivedBytes, whole)),
      rightColumn('headers B', ({ headerBytes }) => figure(headerBytes, whole)),
      rightColumn('savings', ({ headerSavingsPercent }) => figure(headerSavingsPercent, exactPercent)),
      rightColumn('data B', ({ bodyBytes }) => figure(bodyBytes, whole)),
    ]),
    ...times.map(([what, key]) => runTable(runs, `time for ${what}`, distributionColumns(parts, (run) => run[key], scaledTime))),
    runTable(runs, 'req/s per client', distributionColumns(parts, ({ perConnectionRps }) => perConnectionRps, hundredths)),
  ].filter(({ rows }) => rows.length > 0);
}

/** Requests that ended, and what came of them; undefined where an article does not tell. */
function endedOf({ measured, requests, successRatio, errorsPerMillion = 0 }: Run): Record<'done' | 'succeeded' | 'failed' | 'errored', number> | undefined {
  const ended = (done: number, right: number, errored: number) => ({ done, succeeded: right, failed: done - right, errored });
  if (measured !== undefined) return ended(responsesOf(measured) + measured.errors.total, succeeded(measured), measured.errors.total);
  if (requests === undefined || successRatio === undefined) return undefined;
  return ended(requests, Math.round(requests * successRatio), Math.round((requests * errorsPerMillion) / 1e6));
}

/** A table for each of wrk's lines, of what is over HTTP/1, and the percentiles of its --latency. Those with nothing in them are left out. */
export function wrkTables({ variants }: Result): Table[] {
  const runs = runsOf(variants.filter(({ load }) => !isHttp2(load.protocol)));
  // As wrk's "Thread Stats" print a distribution.
  const parts = { mean: 'avg', sd: 'stdev', max: 'max', withinSdPercent: '±stdev' };
  const failed = runs.filter(({ measured }) => measured !== undefined && failuresIn(measured) > 0);
  return [
    runTable(runs, 'Latency', distributionColumns(parts, ({ latencyMs }) => latencyMs, wrkTime)),
    runTable(runs, 'Latency distribution', ([['50 %', 'p50'], ['75 %', 'p75'], ['90 %', 'p90'], ['99 %', 'p99']] as const).map(([title, key]) => (
      rightColumn(title, ({ measured, latencyMs }) => figure(latencyMs && measured?.latencyMs[key], wrkTime))
    ))),
    runTable(runs, 'Req/Sec per thread', distributionColumns(parts, ({ perThreadRps }) => perThreadRps, (count) => scaled(count, 1000, ['', 'k', 'M', 'G']).join(''))),
    runTable(runs, 'total', [
      rightColumn('requests', ({ requests }) => figure(requests, whole)),
      rightColumn('time', ({ seconds }) => figure(seconds, (value) => wrkTime(value * 1000))),
      rightColumn('Requests/sec', ({ rps }) => figure(rps, hundredths)),
      rightColumn('read', ({ receivedBytes }) => figure(receivedBytes, wrkBytes)),
      rightColumn('Transfer/sec', ({ transferBytesPerSecond }) => figure(transferBytesPerSecond, (value) => `${wrkBytes(value)}/s`), { joined: true }),
    ]),
    runTable(failed, 'errors', [
      ...(['connect', 'tls', 'read', 'write', 'timeout', 'protocol'] as const).map((kind) => rightColumn(kind, ({ measured }: Run) => figure(measured?.errors[kind], whole))),
      rightColumn('hung', ({ measured }) => countCell(measured?.hung)),
      rightColumn('non-2xx or 3xx', ({ measured }) => figure(measured && otherAnswers(measured), whole)),
    ]),
  ].filter(({ rows }) => rows.length > 0);
}

function failuresIn(phase: PhaseResult): number {
  return phase.errors.total + otherAnswers(phase) + phase.hung;
}

function otherAnswers({ responses }: PhaseResult): number {
  return responses['4xx'] + responses['5xx'];
}

/** 265.78 µs, 17.04 ms, 10.10 s, 1.25 min. */
function wrkTime(ms: number): string {
  const [text, unit] = ms < 850 ? scaled(ms * 1000, 1000, ['µs', 'ms']) : scaled(ms / 1000, 60, ['s', 'min', 'h']);
  return `${text} ${unit}`;
}

/** wrk writes MB for powers of 1024; with the unit's own name the figures stay as it prints them. */
function wrkBytes(bytes: number): string {
  return scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']).join(' ');
}

/** In the largest unit of which there is at least 0.85, as wrk chooses it (0.99 ms, not 990 µs); with two decimals, as it prints them. */
function scaled(amount: number, step: number, units: readonly [string, ...string[]]): [text: string, unit: string] {
  let [value, index] = [amount, 0];
  while (value >= 0.85 * step && index < units.length - 1) {
    value /= step;
    index++;
  }
  return [value.toFixed(2), units[index] as string];
}
