// What h2load prints of a run, for every variant and load phase, published above measured.
import { hungOf, phasePairs, responsesOf, succeeded } from '../analysis/phases.ts';
import { exactPercent, hundredths, scaledBytesPerSecond, scaledTime, success, whole } from '../format.ts';
import type { PhaseResult, Result, StatusClass } from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { column, distribution, distributionColumns, runsOf, runTable, widestName } from './runs.ts';
import { countCell, figure, tableOf, type Column, type Table } from './table.ts';

/** The lines of one run; what an article did not print is undefined. */
interface Run {
  seconds: number | undefined;
  rps: number | undefined;
  successRatio: number | undefined;
  bytesPerSecond: number | undefined;
  requests: { done: number; succeeded: number; errored: number; unsent: number; hung: number } | undefined;
  responses: Partial<Record<StatusClass, number>> | undefined;
  bytes: { total: number | undefined; headers: number | undefined; savingsPercent: number | undefined; data: number | undefined };
  latencyMs: PublishedDistribution | undefined;
  connectMs: PublishedDistribution | undefined;
  firstByteMs: PublishedDistribution | undefined;
  perConnectionRps: PublishedDistribution | undefined;
}

/** "finished in …, … req/s, … MB/s", and with it the share that succeeded. */
export function finishTable(result: Result, title = 'finished'): Table {
  return runTable(runsOf(result.variants, readings), title, [
    column('time', ({ seconds }) => figure(seconds, (value) => scaledTime(value * 1000))),
    column('requests/s', ({ rps }) => figure(rps, hundredths)),
    column('success', ({ successRatio }) => figure(successRatio, success)),
    column('bytes/s', ({ bytesPerSecond }) => figure(bytesPerSecond, scaledBytesPerSecond)),
  ]);
}

/** The other lines, a table each: requests, status codes, TLS, traffic, and four distributions. Those with nothing in them are left out. */
export function lineTables(result: Result): Table[] {
  const runs = runsOf(result.variants, readings);
  const parts = { min: 'min', max: 'max', mean: 'mean', sd: 'sd', withinSdPercent: '±sd' };
  const times = [['request', 'latencyMs'], ['connect', 'connectMs'], ['1st byte', 'firstByteMs']] as const;
  return [
    runTable(runs, 'requests', [
      column('done', ({ requests }) => figure(requests?.done, whole)),
      column('succeeded', ({ requests }) => figure(requests?.succeeded, whole)),
      column('failed', ({ requests }) => (requests === undefined ? '' : whole(requests.done - requests.succeeded))),
      column('errored', ({ requests }) => figure(requests?.errored, whole)),
      column('unsent', ({ requests }) => countCell(requests?.unsent)),
      column('hung', ({ requests }) => countCell(requests?.hung)),
    ]),
    runTable(runs, 'status codes', (['2xx', '3xx', '4xx', '5xx'] as const).map((status) => (
      column(status, ({ responses }) => (responses === undefined ? '' : whole(responses[status] ?? 0)))
    ))),
    tlsTable(result),
    runTable(runs, 'traffic', [
      column('total B', ({ bytes }) => figure(bytes.total, whole)),
      column('headers B', ({ bytes }) => figure(bytes.headers, whole)),
      column('savings', ({ bytes }) => figure(bytes.savingsPercent, exactPercent)),
      column('data B', ({ bytes }) => figure(bytes.data, whole)),
    ]),
    ...times.map(([what, key]) => runTable(runs, `time for ${what}`, distributionColumns(parts, (run) => run[key], scaledTime))),
    runTable(runs, 'req/s per client', distributionColumns(parts, (run) => run.perConnectionRps, hundredths)),
  ].filter(({ rows }) => rows.length > 0);
}

/** As negotiated: one row for all phases, since they all come to the same. */
function tlsTable(result: Result): Table {
  const runs = result.variants.flatMap((variant) => phasePairs(variant).slice(0, 1).map((pair) => ({ variant, ...pair })));
  const width = widestName(result.variants);
  const rows = runs.flatMap(({ variant, published, measured }) => [
    { name: `${variant.name.padEnd(width)}  published`, tls: published?.tls, application: '' },
    { name: `${variant.name.padEnd(width)}  here`, tls: measured?.tls ?? undefined, application: variant.load.protocol },
  ]);
  type Row = (typeof rows)[number];
  const left = (title: string, cell: (row: Row) => string): Column<Row> => ({ group: '', title, align: 'left', cell });
  return tableOf(rows.filter(({ tls }) => tls !== undefined), [
    left('TLS', ({ name }) => name),
    left('protocol', ({ tls }) => tls?.version ?? ''),
    left('cipher', ({ tls }) => tls?.cipher ?? ''),
    left('temp key', ({ tls }) => tls?.keyExchange ?? ''),
    left('ALPN', ({ application }) => application),
  ]);
}

const readings = { published: publishedRun, measured: measuredRun };

function publishedRun(published: Published): Run {
  const { requests, successRatio, responses } = published;
  return {
    seconds: published.seconds,
    rps: published.rps,
    successRatio,
    bytesPerSecond: published.transferBytesPerSecond,
    requests: requests === undefined || successRatio === undefined ? undefined : {
      done: requests,
      succeeded: Math.round(requests * successRatio),
      errored: Math.round((requests * (published.errorsPerMillion ?? 0)) / 1e6),
      unsent: 0,
      hung: 0,
    },
    responses,
    bytes: { total: published.receivedBytes, headers: published.headerBytes, savingsPercent: published.headerSavingsPercent, data: published.bodyBytes },
    latencyMs: published.latencyMs,
    connectMs: published.connectMs,
    firstByteMs: published.firstByteMs,
    perConnectionRps: published.perConnectionRps,
  };
}

function measuredRun(phase: PhaseResult): Run {
  const { responses, errors, bytes } = phase;
  return {
    seconds: phase.seconds,
    rps: phase.rps.median,
    successRatio: phase.successRatio ?? undefined,
    bytesPerSecond: phase.receivedBytesPerSecond,
    requests: { done: responsesOf(phase) + errors.total, succeeded: succeeded(phase), errored: errors.total, unsent: phase.unsent, hung: hungOf([phase]) },
    responses,
    bytes: { total: bytes.received, headers: bytes.headers, savingsPercent: phase.headerSavingsPercent ?? undefined, data: bytes.body },
    latencyMs: distribution(phase.latencyMs),
    connectMs: distribution(phase.connectMs),
    firstByteMs: distribution(phase.firstByteMs),
    perConnectionRps: distribution(phase.perConnectionRps),
  };
}
