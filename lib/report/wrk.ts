// What wrk prints of a run, for every variant and load phase over HTTP/1, published above measured.
import { isHttp2 } from '../scenario/protocols.ts';
import { hundredths, whole } from '../format.ts';
import type { LatencyFigures, PhaseResult, Result } from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { column, distribution, distributionColumns, runsOf, runTable, type Readings } from './runs.ts';
import { countCell, figure, type Table } from './table.ts';

/** The lines of one run; what an article did not print is undefined. */
interface Run {
  latencyMs: PublishedDistribution | undefined;
  percentilesMs: LatencyFigures | undefined;
  perThreadRps: PublishedDistribution | undefined;
  requests: number | undefined;
  seconds: number | undefined;
  receivedBytes: number | undefined;
  rps: number | undefined;
  bytesPerSecond: number | undefined;
  failed: Pick<PhaseResult, 'errors' | 'responses' | 'hung'> | undefined;
}

const readings: Readings<Run> = {
  published: ({ latencyMs, perThreadRps, requests, seconds, receivedBytes, rps, transferBytesPerSecond }: Published) => (
    { latencyMs, percentilesMs: undefined, perThreadRps, requests, seconds, receivedBytes, rps, bytesPerSecond: transferBytesPerSecond, failed: undefined }
  ),
  measured: ({ latencyMs, perThreadRps, requests, seconds, bytes, rps, receivedBytesPerSecond, errors, responses, hung = 0 }) => ({
    latencyMs: distribution(latencyMs),
    percentilesMs: latencyMs.max === 0 ? undefined : latencyMs,
    perThreadRps: distribution(perThreadRps),
    requests, seconds, receivedBytes: bytes.received, rps: rps.median, bytesPerSecond: receivedBytesPerSecond,
    failed: errors.total + responses['4xx'] + responses['5xx'] + hung === 0 ? undefined : { errors, responses, hung },
  }),
};

/** A table for each of wrk's lines, and the percentiles of its --latency. Those with nothing in them are left out. */
export function wrkTables(result: Result): Table[] {
  const runs = runsOf(result.variants.filter(({ load }) => !isHttp2(load.protocol)), readings);
  // As wrk's "Thread Stats" print a distribution.
  const parts = { mean: 'avg', sd: 'stdev', max: 'max', withinSdPercent: '±stdev' };
  return [
    runTable(runs, 'Latency', distributionColumns(parts, (run) => run.latencyMs, wrkTime)),
    runTable(runs, 'Latency distribution', ([['50 %', 'p50'], ['75 %', 'p75'], ['90 %', 'p90'], ['99 %', 'p99']] as const).map(([title, key]) => (
      column(title, ({ percentilesMs }) => figure(percentilesMs?.[key], wrkTime))
    ))),
    runTable(runs, 'Req/Sec per thread', distributionColumns(parts, (run) => run.perThreadRps, (count) => scaled(count, 1000, ['', 'k', 'M', 'G']).join(''))),
    runTable(runs, 'total', [
      column('requests', ({ requests }) => figure(requests, whole)),
      column('time', ({ seconds }) => figure(seconds, (value) => wrkTime(value * 1000))),
      column('Requests/sec', ({ rps }) => figure(rps, hundredths)),
      column('read', ({ receivedBytes }) => figure(receivedBytes, wrkBytes)),
      { ...column<Run>('Transfer/sec', ({ bytesPerSecond }) => figure(bytesPerSecond, (value) => `${wrkBytes(value)}/s`)), joined: true },
    ]),
    runTable(runs, 'errors', [
      ...(['connect', 'tls', 'read', 'write', 'timeout', 'protocol'] as const).map((kind) => column<Run>(kind, ({ failed }) => figure(failed?.errors[kind], whole))),
      column('hung', ({ failed }) => countCell(failed?.hung)),
      column('non-2xx or 3xx', ({ failed }) => (failed === undefined ? '' : whole(failed.responses['4xx'] + failed.responses['5xx']))),
    ]),
  ].filter(({ rows }) => rows.length > 0);
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
