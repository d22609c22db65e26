// The dashboards' queries, sent to a real influxd as Grafana sends them, against what result.json says.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Phase, PhaseResult, Result, VariantResult } from '../../lib/runner/result.ts';
import type { Published, PublishedDistribution } from '../../lib/scenario/model.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { openStore, runPoint, tablePoints, type Store } from '../../lib/store/index.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { phase } from '../fixtures/phase.ts';
import { openFileCache, result as madeUp, workers } from '../fixtures/result.ts';
import { interpolate, panelsOf, queriesOf, readDashboard, selectedColumns, sorted, type Panel } from '../grafana.ts';

const dashboard = readDashboard('comparison.json');

let folder: string;
let store: Store;
let tools: Record<'k6' | 'nginx' | 'influxd', string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bakeoff-dashboards-'));
  tools = await ensureTools(['k6', 'nginx', 'influxd']);
  store = await openStore({ influxdBinary: tools.influxd, folder: join(folder, 'influxd') });
}, 300_000);

afterAll(async () => {
  await store?.close();
  await rm(folder, { recursive: true, force: true });
});

type Cell = string | number | null;
interface Answer { tags: Record<string, string> | undefined; rows: Record<string, Cell>[] }

/** One query, over GET with epoch=ms and a token's header, as dashboards/provisioning has Grafana ask. */
async function ask(query: string): Promise<Answer[]> {
  const parameters = new URLSearchParams({ db: store.influx.database, epoch: 'ms', q: query });
  const response = await fetch(`${store.influx.url}/query?${parameters}`, { headers: { Authorization: 'Token unused' } });
  const answer = await response.json() as { results: [{ error?: string; series?: { tags?: Record<string, string>; columns: string[]; values: Cell[][] }[] }] };
  expect(answer.results[0].error).toBeUndefined();
  return (answer.results[0].series ?? []).map(({ tags, columns, values }) => ({
    tags, rows: values.map((value) => Object.fromEntries(columns.map((column, index) => [column, value[index] ?? null]))),
  }));
}

function panel(id: number): Panel {
  const found = panelsOf(dashboard).find((one) => one.id === id);
  if (found === undefined) throw new Error(`no panel ${id}`);
  return found;
}

/** What is picked in the dashboard; the variant by a panel that is repeated for each. */
interface Picked { scenario: string; run: string; variant?: string }

/** The rows of a table or of bars: one series, columns as selected. */
async function rowsOf(id: number, picked: Picked): Promise<Record<string, Cell>[]> {
  const query = panel(id).targets[0]?.query ?? '';
  const { scenario, run, variant = '' } = picked;
  const answers = await ask(interpolate(query, { scenario, run, variant }));
  expect(answers).toHaveLength(1);
  const rows = answers[0]?.rows ?? [];
  for (const row of rows) expect(Object.keys(row)).toEqual(['time', ...selectedColumns(query)]);
  return rows.map(({ time: _time, ...row }) => row);
}

/** What Grafana's picker offers, the one it picks first. */
async function choices(name: string, { scenario, run }: { scenario: string; run: string }): Promise<string[]> {
  const variable = dashboard.templating.list.find((one) => one.name === name);
  if (variable === undefined) throw new Error(`no variable ${name}`);
  const answers = await ask(interpolate(variable.query, { scenario, run }));
  return sorted(variable, answers.flatMap(({ rows }) => rows.map((row) => String(row['value']))));
}

/** What each column of the tables has to say of a variant, from result.json alone. */
const figures: Record<string, (variant: VariantResult, result: Result) => Cell | undefined> = {
  variant: (variant) => variant.name,
  published_rps: (variant) => variant.published?.rps,
  published_ratio: (variant, result) => comparisonOf(variant, result)?.publishedRatio,
  measured_rps: (variant) => variant.rps?.median,
  ratio: (variant, result) => comparisonOf(variant, result)?.ratio,
  ci_low: (variant, result) => comparisonOf(variant, result)?.ci95[0],
  ci_high: (variant, result) => comparisonOf(variant, result)?.ci95[1],
  verdict: (variant, result) => comparisonOf(variant, result)?.verdict,
  baseline: (variant, result) => comparisonOf(variant, result)?.baseline,
  why: (variant, result) => comparisonOf(variant, result)?.why,
  note: (variant) => variant.note,
  server: (variant) => variant.server?.name,
  server_version: (variant) => variant.server?.version,
  server_cpu_micros_per_request: (variant) => variant.serverCpuMicrosPerRequest?.median,
  p50_ms: (variant) => variant.latencyMs?.p50,
  p99_ms: (variant) => variant.latencyMs?.p99,
  max_ms: (variant) => variant.latencyMs?.max,
  errors_per_million: (variant) => variant.errorsPerMillion,
  success_ratio: (variant) => variant.successRatio,
  server_share: (variant) => variant.serverShare,
  generator_share: (variant) => variant.generatorShare,
  rounds: (variant) => variant.rounds.length,
  requests: (variant) => total(variant, (phase) => phase.requests),
  header_bytes_per_request: (variant) => perRequest(variant, (phase) => phase.bytes.headers),
  total_bytes_per_request: (variant) => perRequest(variant, (phase) => phase.bytes.received),
};

function expectedRows(id: number, result: Result, variants = result.variants): Record<string, Cell>[] {
  const columns = selectedColumns(panel(id).targets[0]?.query ?? '');
  return variants.map((variant) => Object.fromEntries(columns.map((column) => {
    const figure = figures[column];
    if (figure === undefined) throw new Error(`panel ${id} shows ${column}, which this test cannot check`);
    return [column, figure(variant, result) ?? null];
  })));
}

/** A load phase as it stands in the tables of phases. */
interface PhaseRow { variant: VariantResult; phase: number; published: Published | undefined; measured: PhaseResult | undefined }

/** What each column of those tables has to say, from result.json alone. */
const phaseFigures: Record<string, (row: PhaseRow) => Cell | undefined> = {
  variant: ({ variant }) => variant.name,
  phase: ({ phase }) => String(phase),
  protocol: ({ variant }) => variant.load.protocol,
  published_seconds: ({ published }) => published?.seconds,
  seconds: ({ measured }) => measured?.seconds,
  published_rps: ({ published }) => published?.rps,
  measured_rps: ({ measured }) => measured?.rps.median,
  published_success_ratio: ({ published }) => published?.successRatio,
  success_ratio: ({ measured }) => measured?.successRatio,
  published_bytes_per_second: ({ published }) => published?.transferBytesPerSecond,
  bytes_per_second: ({ measured }) => measured?.receivedBytesPerSecond,
  requests: ({ measured }) => measured?.requests,
  published_header_bytes: ({ published }) => published?.headerBytes,
  header_bytes: ({ measured }) => measured?.bytes.headers,
  published_header_savings: ({ published }) => asShare(published?.headerSavingsPercent),
  header_savings: ({ measured }) => asShare(measured?.headerSavingsPercent),
  published_total_bytes: ({ published }) => published?.receivedBytes,
  total_bytes: ({ measured }) => measured?.bytes.received,
  published_body_bytes: ({ published }) => published?.bodyBytes,
  body_bytes: ({ measured }) => measured?.bytes.body,
  published_tls: ({ published }) => tlsText(published?.tls),
  tls: ({ measured }) => tlsText(measured?.tls),
  responses_4xx: ({ measured }) => measured?.responses['4xx'],
  errors: ({ measured }) => measured?.errors.total,
  unsent: ({ measured }) => measured?.unsent,
  ...distributionFigures('request_ms', 'latencyMs'),
  ...distributionFigures('connect_ms', 'connectMs'),
  ...distributionFigures('first_byte_ms', 'firstByteMs'),
  ...distributionFigures('client_rps', 'perConnectionRps'),
};

function distributionFigures(prefix: string, key: 'latencyMs' | 'connectMs' | 'firstByteMs' | 'perConnectionRps'): typeof phaseFigures {
  const parts = ['min', 'max', 'mean', 'sd'] as const;
  const published = ({ published }: PhaseRow): PublishedDistribution | undefined => published?.[key];
  return {
    ...Object.fromEntries(parts.flatMap((part) => [
      [`published_${prefix}_${part}`, (row: PhaseRow) => published(row)?.[part]],
      [`${prefix}_${part}`, ({ measured }: PhaseRow) => measured?.[key][part]],
    ])),
    [`published_${prefix}_within_sd`]: (row) => asShare(published(row)?.withinSdPercent),
    [`${prefix}_within_sd`]: ({ measured }) => measured?.[key].withinSd,
  };
}

function asShare(percent: number | null | undefined): number | undefined {
  return typeof percent === 'number' ? percent / 100 : undefined;
}

function tlsText(tls: Published['tls'] | null): string | undefined {
  return tls ? `${tls.version} ${tls.cipher} ${tls.keyExchange}` : undefined;
}

/** A row without any figure is not there. */
function expectedPhaseRows(id: number, result: Result): Record<string, Cell>[] {
  const columns = selectedColumns(panel(id).targets[0]?.query ?? '');
  return result.variants.flatMap((variant) => {
    const published = variant.published === null ? [] : variant.published.phases ?? [variant.published];
    return Array.from({ length: Math.max(published.length, variant.phases.length) }, (_, index): Record<string, Cell> => {
      const row = { variant, phase: index + 1, published: published[index], measured: variant.phases[index] };
      return Object.fromEntries(columns.map((column) => {
        const figure = phaseFigures[column];
        if (figure === undefined) throw new Error(`panel ${id} shows ${column}, which this test cannot check`);
        return [column, figure(row) ?? null];
      }));
    });
  }).filter((row) => Object.entries(row).some(([column, cell]) => !['variant', 'phase', 'protocol'].includes(column) && cell !== null));
}

const phasePanels = [6, 7, 9, 10, 11, 12, 13];

/** What the histogram of a variant has to show. */
function expectedBuckets({ phases, published }: VariantResult): Record<string, Cell>[] {
  const all = (published?.buckets ?? []).reduce((sum, { count }) => sum + count, 0);
  return (phases[0]?.buckets ?? []).map(({ count, share }, index) => {
    const article = published?.buckets?.[index]?.count ?? null;
    return { published_count: article, published_share: article === null ? null : article / all, count, share };
  });
}

function comparisonOf(variant: VariantResult, result: Result): Result['comparisons'][number] | undefined {
  return result.comparisons.find((comparison) => comparison.variant === variant.name);
}

function total(variant: VariantResult, of: (phase: Phase) => number): number {
  return variant.rounds.flatMap((round) => round.phases).reduce((sum, phase) => sum + of(phase), 0);
}

function perRequest(variant: VariantResult, of: (phase: Phase) => number): number | null {
  return variant.rounds.length === 0 ? null : total(variant, of) / total(variant, (phase) => phase.requests);
}

describe('a real run', () => {
  let result: Result;

  beforeAll(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      'bin/bakeoff.mjs', 'scenario', 'nginx-open-file-cache', '--rounds', '2', '--duration', '1s', '--json',
      '--influx', store.influx.url, '--out', join(folder, 'results'),
    ], {
      cwd: projectRoot, maxBuffer: 2 ** 26, timeout: 90_000,
      // A bakeoff of its own: the person's may be measuring.
      env: { ...process.env, BAKEOFF_HOME: folder, K6_BIN: tools.k6, NGINX_BIN: tools.nginx },
    });
    result = JSON.parse(stdout) as Result;
  });

  it('is offered by the variables, and answers every query of the dashboard', async () => {
    expect(await choices('scenario', result)).toContain(result.scenario);
    expect(await choices('run', result)).toEqual([result.run]);
    for (const { from, query } of queriesOf(dashboard)) {
      const answers = await ask(interpolate(query, { scenario: result.scenario, run: result.run, variant: 'workers' }));
      // wrk counts no latency buckets.
      const empty = query.includes('FROM "bench_bucket"');
      expect(answers.flatMap(({ rows }) => rows).length > 0, from).toBe(!empty);
    }
  });

  it.each(phasePanels)('has what h2load prints of it in panel %i', async (id) => {
    expect(await rowsOf(id, result)).toEqual(expectedPhaseRows(id, result));
  });

  it.each([1, 4])('has the values of result.json in panel %i', async (id) => {
    const rows = await rowsOf(id, result);
    expect(rows).toEqual(expectedRows(id, result));
    expect(rows.map((row) => row['variant'])).toEqual(['workers', 'open-file-cache']);
  });

  it('has the ratios of result.json as bars', async () => {
    expect(await rowsOf(2, result)).toEqual(expectedRows(2, result, result.variants.slice(1)));
  });

  it('has a line of requests/s per variant, whose points add up to the requests of result.json', async () => {
    const answers = await ask(interpolate(panel(3).targets[0]?.query ?? '', { scenario: result.scenario, run: result.run }));
    const sums = Object.fromEntries(answers.map(({ tags, rows }) => [tags?.['variant'], rows.reduce((sum, row) => sum + Number(row['value']), 0)]));
    expect(sums).toEqual(Object.fromEntries(result.variants.map((variant) => [variant.name, total(variant, (phase) => phase.requests)])));
    for (const { rows } of answers) {
      const times = rows.map((row) => Number(row['time']));
      expect(Math.min(...times)).toBeGreaterThanOrEqual(Date.parse(result.startedAt));
      expect(Math.max(...times)).toBeLessThanOrEqual(Date.parse(result.endedAt));
    }
  });

  it('is listed with its state, counts and times', async () => {
    const { run, title, integrity } = result;
    const rows = await rowsOf(5, result);
    expect(rows).toEqual([{
      run, title, state: 'complete', started: Date.parse(result.startedAt), ended: Date.parse(result.endedAt), rounds: 2,
      requests: integrity?.requests, stored: integrity?.stored, backfilled: integrity?.backfilled, lost: integrity?.lost,
    }]);
  });
});

describe('made-up runs of scenarios with variants of every kind', () => {
  const older = madeUpResult('2026-01-31T23-59-59-made-up', '2026-01-31T23:59:59.000Z');
  const newer = madeUpResult('2026-02-01T00-00-00-made-up', '2026-02-01T00:00:00.000Z');
  const other = { ...madeUpResult('2026-03-01T00-00-00-another', '2026-03-01T00:00:00.000Z'), scenario: 'another' };

  beforeAll(async () => {
    for (const result of [newer, other, older]) {
      await store.write(tablePoints(result));
      await store.write([runPoint({ ...result, rounds: 1 })]);
    }
  });

  it('offers the runs of the picked scenario, the newest first', async () => {
    expect(await choices('scenario', newer)).toEqual(expect.arrayContaining(['another', 'made-up']));
    expect(await choices('run', newer)).toEqual([newer.run, older.run]);
    expect(await choices('run', other)).toEqual([other.run]);
  });

  it.each([1, 4])('shows the picked run in panel %i, a row per variant in the order of the scenario', async (id) => {
    for (const result of [older, newer]) expect(await rowsOf(id, result)).toEqual(expectedRows(id, result));
  });

  it('shows bars of those variants that have a baseline', async () => {
    expect(await rowsOf(2, newer)).toEqual(expectedRows(2, newer, newer.variants.slice(1, 2)));
  });

  it('lists the runs of the scenario, newest first', async () => {
    expect((await rowsOf(5, newer)).map((row) => row['run'])).toEqual([newer.run, older.run]);
  });
});

describe('made-up runs of the HTTP/2 scenarios', () => {
  const latencies = { buckets: [0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5].map((fromMs, index, all) => ({ fromMs, toMs: all[index + 1] ?? null, count: 1000 + index })) };
  let rate: Result;
  let small: Result;
  let image: Result;

  beforeAll(async () => {
    rate = await h2Result('h2o-vs-nginx-h2-rate', { nginx: { rps: [1000, 999], phases: [latencies] }, h2o: { rps: [1000, 1000], phases: [latencies] } });
    small = await h2Result('http1-vs-h2-small-file', { 'nginx-http1': { rps: [60_000] }, 'nghttpd-h2': { rps: [150_000] } });
    image = await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [800], phases: [{ rps: 900 }, { rps: 801 }, { rps: 702 }] }, 'nghttpd-4096': { rps: [900], phases: [{}, {}, {}] } });
    for (const result of [rate, small, image]) await store.write(tablePoints(result));
  });

  it.each(phasePanels)('show a row per variant and phase in panel %i, published beside measured', async (id) => {
    for (const result of [rate, small, image]) expect(await rowsOf(id, result)).toEqual(expectedPhaseRows(id, result));
    expect((await rowsOf(id, image)).map(({ variant, phase }) => `${variant} ${phase}`)).toEqual([
      'nghttpd-1024 1', 'nghttpd-1024 2', 'nghttpd-1024 3', 'nghttpd-4096 1', 'nghttpd-4096 2', 'nghttpd-4096 3',
    ]);
  });

  it('show a histogram of each server, in the article\'s buckets', async () => {
    const variants = await choices('variant', rate);
    expect(variants.toSorted()).toEqual(['h2o', 'nginx']);
    for (const name of variants) {
      const rows = await rowsOf(8, { ...rate, variant: name });
      expect(rows.map(({ bucket }) => bucket)).toEqual([
        '0–150 µs', '150–300 µs', '300–450 µs', '450–600 µs', '600–750 µs', '750–900 µs', '900 µs–1 ms', '1–2 ms', '2–5 ms', 'over 5 ms',
      ]);
      expect(rows.map(({ bucket: _, ...figures }) => figures)).toEqual(expectedBuckets(rate.variants.find((one) => one.name === name) as VariantResult));
    }
    expect(await choices('variant', small)).toEqual([]);
  });

  it('show what is published only in the table, with its ratio and the reason', async () => {
    const spdy = (await rowsOf(1, small)).find(({ variant }) => variant === 'nginx-spdy');
    expect(spdy).toMatchObject({ published_rps: 77_331, published_ratio: 77_331 / 44_326, measured_rps: null, ratio: null });
    expect((await rowsOf(7, small)).find(({ variant }) => variant === 'nginx-spdy')).toMatchObject({ published_header_bytes: 1_511_000, header_bytes: null });
  });
});

/** A run of a baseline with errors, a variant, and one that is published only; names in no alphabetical order. */
function madeUpResult(run: string, startedAt: string): Result {
  const failing = phase({
    requests: 3000, seconds: 1, rps: 3000, startedAt,
    responses: { '2xx': 2990, '3xx': 0, '4xx': 0, '5xx': 3 },
    errors: { connect: 0, tls: 0, read: 7, write: 0, timeout: 0, protocol: 0, total: 7 },
  });
  const knob = { ...openFileCache, name: 'knob', note: 'it\'s "the" knob, \\ and all', rounds: [{ round: 1, phases: [phase({ requests: 40_005, startedAt })] }] };
  return madeUp([
    { ...workers, rounds: [{ round: 1, phases: [failing] }] }, knob, { ...openFileCache, name: 'gone', rounds: [] },
  ], { run, scenario: 'made-up', title: 'Made up', startedAt, endedAt: startedAt });
}
