// Panels on the load phases of a run: what h2load, wrk and vegeta print, published beside measured.
import {
  benchBucket,
  benchPhase,
  type DistributionPart,
} from '../lib/features/influxdb/phase-points.ts';
import { pickedRun } from './influxql.ts';
import { tablePanel, variantColumn, type Column } from './tables.ts';

type PhaseColumn = Column<typeof benchPhase>;
type PhasePanel = ReturnType<typeof tablePanel<typeof benchPhase>>;

/** Where a panel is; what it is, is the same wherever it is. */
export interface Place {
  id: number;
  y: number;
}

/** How high a table is: seven rows fit. */
const tableHeight = 9;

/** A row per variant and load phase. */
function phaseTable({
  id,
  y,
  title,
  description,
  columns,
  variant = variantColumn,
}: Place & {
  title: string;
  description: string;
  columns: readonly PhaseColumn[];
  variant?: PhaseColumn;
}): PhasePanel {
  return tablePanel({
    id,
    title,
    description,
    grid: { x: 0, y, w: 24, h: tableHeight },
    from: benchPhase,
    where: pickedRun,
    noRows: 'This run has no figures yet.',
    columns: [variant, { name: 'phase', width: 55 }, ...columns],
  });
}

/** requests/s, success, time, bytes/s: a row per variant and load phase. Most scenarios have one phase. */
export const phasesPanel = (place: Place): PhasePanel =>
  phaseTable({
    ...place,
    title: 'Load phases: published beside measured',
    description:
      'One row per variant and load phase; most scenarios have one phase, nghttpd-img has three on one server that is not ' +
      'restarted. requests/s say nothing without the share that succeeded: 4xx answers are quick. MiB are 1024² bytes, which ' +
      'h2load and wrk write MB.',
    columns: [
      // What a run is for comes first: it fits 600 pixels.
      { name: 'published_rps', title: 'published req/s', width: 88 },
      { name: 'measured_rps', title: 'measured req/s', width: 88 },
      {
        name: 'published_success_ratio',
        title: 'published success',
        width: 88,
        percent: true,
        decimals: 2,
      },
      { name: 'success_ratio', title: 'success', width: 90, percent: true, decimals: 2 },
      { name: 'published_seconds', title: 'published time', width: 88 },
      { name: 'seconds', title: 'time', width: 90 },
      { name: 'published_bytes_per_second', title: 'published bytes/s', width: 105 },
      { name: 'bytes_per_second', title: 'bytes/s', width: 110 },
    ],
  });

/** The line "requests" of h2load and weighttp, with the 4xx answers, and the time beside the share that succeeded. */
export const outcomesPanel = (place: Place): PhasePanel =>
  phaseTable({
    ...place,
    title: '${scenario}: each load as its tool printed it',
    description:
      'One row per variant and load phase. Time and requests/s here are medians of the rounds, counts of requests and answers sums of ' +
      'all rounds, which are more than the one load of the article: compare the shares.',
    variant: { ...variantColumn, minWidth: 170 },
    columns: [
      { name: 'published_seconds', title: 'published time', width: 88 },
      { name: 'seconds', title: 'time', width: 85 },
      { name: 'published_rps', title: 'published req/s', width: 88, decimals: 2 },
      { name: 'measured_rps', title: 'req/s', width: 98, decimals: 2 },
      {
        name: 'published_success_ratio',
        title: 'published success',
        width: 88,
        percent: true,
        decimals: 3,
      },
      { name: 'success_ratio', title: 'success', width: 85, percent: true, decimals: 3 },
      { name: 'published_requests_succeeded', title: 'published succeeded', width: 88 },
      { name: 'requests_succeeded', title: 'succeeded', width: 98 },
      { name: 'published_requests_failed', title: 'published failed', width: 88 },
      { name: 'requests_failed', title: 'failed', width: 90 },
      { name: 'published_responses_4xx', title: 'published 4xx', width: 88 },
      { name: 'responses_4xx', title: '4xx', width: 90 },
    ],
  });

/** Header bytes, space savings, total and data bytes. */
export const trafficPanel = (place: Place): PhasePanel =>
  phaseTable({
    ...place,
    title: 'Traffic: published beside measured',
    description:
      "What the generator received: header bytes as sent, so compressed with HTTP/2; what HPACK saved of the headers' own " +
      'size; all bytes, framing included; data bytes. With TLS it is what was in its records. Medians over the rounds; they grow with the ' +
      'number of requests, which --quick cuts.',
    columns: [
      { name: 'published_header_bytes', title: 'published headers', width: 88, decimals: 2 },
      { name: 'header_bytes', title: 'headers', width: 85, decimals: 2 },
      {
        name: 'published_header_savings',
        title: 'published savings',
        width: 86,
        percent: true,
        decimals: 2,
      },
      { name: 'header_savings', title: 'savings', width: 78, percent: true, decimals: 2 },
      { name: 'published_total_bytes', title: 'published total', width: 88, decimals: 2 },
      { name: 'total_bytes', title: 'total', width: 85, decimals: 2 },
      { name: 'published_body_bytes', title: 'published data', width: 88, decimals: 2 },
      { name: 'body_bytes', title: 'data', width: 85, decimals: 2 },
      { name: 'requests', width: 85 },
    ],
  });

/** Answers per latency bucket of one variant; it is repeated, so that the servers stand side by side. */
export const histogramPanel = ({
  id,
  y,
}: Place): ReturnType<typeof tablePanel<typeof benchBucket>> =>
  tablePanel({
    id,
    // As `csv` a variable without values is nothing, and not "All".
    title: 'Answers by latency: ${variant:csv}',
    description:
      "Answers per latency bucket, as the article's vegeta counted them, published beside measured. Measured counts are those of " +
      'all rounds. Latencies run from the moment at which a request was due.',
    grid: { x: 0, y, w: 24, h: 13 },
    from: benchBucket,
    where: { equal: { ...pickedRun.equal, variant: 'variant' } },
    noRows: 'This scenario counts no latency buckets: only loads at a constant rate do.',
    repeat: { variable: 'variant', perRow: 2 },
    columns: [
      { name: 'bucket', title: 'latency', width: 110 },
      { name: 'published_count', title: 'published', width: 85 },
      { name: 'published_share', title: 'published %', bar: true, percent: true, decimals: 2 },
      { name: 'count', title: 'measured', width: 85 },
      { name: 'share', title: 'measured %', bar: true, percent: true, decimals: 2 },
    ],
  });

/** Time for a request, to connect, to the first byte, and requests/s per client, as h2load prints them: four panels below each other. */
export function h2loadPanels({ id, y }: Place): PhasePanel[] {
  return (
    [
      ['Time for a request', 'request_ms'],
      ['Time to connect, TLS included', 'connect_ms'],
      ['Time to first byte, from the start of a connection', 'first_byte_ms'],
      ['Requests/s per client (connection)', 'client_rps'],
    ] as const
  ).map(([title, prefix], index) =>
    distributionPanel({ id: id + index, y: y + index * tableHeight, title, prefix }),
  );
}

/** Requests/s per thread, as wrk prints them. */
export function threadsPanel(place: Place): PhasePanel {
  return distributionPanel({
    ...place,
    title: 'Requests/s per thread of the generator, sampled each 100 ms as wrk does',
    prefix: 'thread_rps',
  });
}

/** What was negotiated, and what did not succeed. */
export const tlsPanel = (place: Place): PhasePanel =>
  phaseTable({
    ...place,
    title: 'TLS as negotiated, and what did not succeed',
    description:
      "TLS version, cipher and key exchange: they decide much of a handshake's cost, so compared servers should have the same. " +
      '"unsent" are requests that were due and could not leave (constant rate only). Counts are those of all rounds.',
    columns: [
      { name: 'protocol', width: 80 },
      { name: 'published_tls', title: 'published TLS', width: 352 },
      { name: 'tls', title: 'TLS', width: 352 },
      { name: 'responses_4xx', title: '4xx answers', width: 105 },
      { name: 'errors', width: 80 },
      { name: 'unsent', width: 80 },
    ],
  });

function distributionPanel({
  prefix,
  ...panel
}: Place & {
  title: string;
  prefix: 'request_ms' | 'connect_ms' | 'first_byte_ms' | 'client_rps' | 'thread_rps';
}): PhasePanel {
  // Those of a thread have six digits.
  const decimals = prefix === 'thread_rps' ? 0 : 2;
  const parts: readonly [part: DistributionPart, title: string][] = [
    ['min', 'min'],
    ['max', 'max'],
    ['mean', 'mean'],
    ['sd', 'sd'],
    ['within_sd', '±sd'],
  ];
  return phaseTable({
    ...panel,
    // All ten figures are to be seen beside Grafana's menu on a laptop.
    variant: { ...variantColumn, minWidth: 170 },
    description:
      'As h2load prints it (wrk: without the lowest): lowest, highest, mean, standard deviation, and the share within one standard deviation of the mean. Measured: ' +
      'over all rounds; per connection and thread, those of a round on average.',
    columns: parts.flatMap(([part, heading]): PhaseColumn[] => {
      const shown =
        part === 'within_sd' ? { width: 75, percent: true, decimals: 2 } : { width: 95, decimals };
      return [
        { name: `published_${prefix}_${part}`, title: `published ${heading}`, ...shown, width: 80 },
        { name: `${prefix}_${part}`, title: heading, ...shown },
      ];
    }),
  });
}
