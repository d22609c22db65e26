// The dashboards' queries, sent to a real influxd as Grafana sends them, against what result.json says.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Result, VariantResult } from '../../lib/runner/result.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { openStore, runPoint, tablePoints, type Store } from '../../lib/store/index.ts';
import { expectedBuckets, expectedPhaseRows, expectedRoundRows, expectedRows, total, type Cell } from '../dashboard-figures.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { phase } from '../fixtures/phase.ts';
import { openFileCache, result as madeUp, workers } from '../fixtures/result.ts';
import { interpolate, panelsOf, queriesOf, readDashboard, selectedColumns, sorted, type Panel } from '../grafana.ts';

const dashboard = readDashboard('comparison.json');

let folder: string;
let store: Store;
let tools: Record<'k6' | 'nginx' | 'h2o' | 'influxd', string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bakeoff-dashboards-'));
  tools = await ensureTools(['k6', 'nginx', 'h2o', 'influxd']);
  store = await openStore({ influxdBinary: tools.influxd, folder: join(folder, 'influxd') });
}, 300_000);

afterAll(async () => {
  await store?.close();
  await rm(folder, { recursive: true, force: true });
});

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

/** Runs a scenario into the store. */
async function run(args: readonly string[]): Promise<Result> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    'bin/bakeoff.mjs', 'scenario', ...args, '--json', '--influx', store.influx.url, '--out', join(folder, 'results'),
  ], {
    cwd: projectRoot, maxBuffer: 2 ** 26, timeout: 90_000,
    // A bakeoff of its own: the person's may be measuring.
    env: { ...process.env, BAKEOFF_HOME: folder, K6_BIN: tools.k6, NGINX_BIN: tools.nginx, H2O_BIN: tools.h2o },
  });
  return JSON.parse(stdout) as Result;
}

const phasePanels = [6, 7, 9, 10, 11, 12, 13, 20];

/** A row per variant: the article's table, what is behind it, and how sure it is. */
const variantPanels = [1, 4, 16];

const articleBuckets = [
  '0–150 µs', '150–300 µs', '300–450 µs', '450–600 µs', '600–750 µs', '750–900 µs', '900 µs–1 ms', '1–2 ms', '2–5 ms', 'over 5 ms',
];

/** The histogram's panels, one per variant, have to show the result's buckets. */
async function expectHistograms(result: Result): Promise<void> {
  const variants = await choices('variant', result);
  expect(variants.toSorted()).toEqual(['h2o', 'nginx']);
  for (const name of variants) {
    const rows = await rowsOf(8, { ...result, variant: name });
    expect(rows.map(({ bucket }) => bucket)).toEqual(articleBuckets);
    expect(rows.map(({ bucket: _, ...figures }) => figures)).toEqual(expectedBuckets(result.variants.find((one) => one.name === name) as VariantResult));
  }
}

/** What a panel selects. */
function columnsOf(id: number): string[] {
  return selectedColumns(panel(id).targets[0]?.query ?? '');
}

describe('a real run over HTTP/1.1', () => {
  let result: Result;

  beforeAll(async () => {
    result = await run(['nginx-open-file-cache', '--rounds', '2', '--duration', '1s']);
  });

  it('is offered by the variables, and answers every query of the dashboard', async () => {
    expect(await choices('scenario', result)).toContain(result.scenario);
    expect(await choices('run', result)).toEqual([result.run]);
    for (const { from, query } of queriesOf(dashboard)) {
      const answers = await ask(interpolate(query, { scenario: result.scenario, run: result.run, variant: 'workers' }));
      // wrk counts no latency buckets, and only a config against itself shows a noise floor.
      const empty = query.includes('FROM "bench_bucket"') || query.includes('"noise_floor"');
      expect(answers.flatMap(({ rows }) => rows).length > 0, from).toBe(!empty);
    }
  });

  it.each(phasePanels)('has what h2load prints of it in panel %i', async (id) => {
    expect(await rowsOf(id, result)).toEqual(expectedPhaseRows(columnsOf(id), result));
  });

  it.each(variantPanels)('has the values of result.json in panel %i', async (id) => {
    const rows = await rowsOf(id, result);
    expect(rows).toEqual(expectedRows(columnsOf(id), result));
    expect(rows.map((row) => row['variant'])).toEqual(['workers', 'open-file-cache']);
  });

  it('has every round by itself, in the order of time', async () => {
    const rows = await rowsOf(21, result);
    expect(rows).toEqual(expectedRoundRows(columnsOf(21), result));
    expect(rows).toHaveLength(4);
  });

  it('has the requests/s and the ratios of result.json as bars', async () => {
    expect(await rowsOf(17, result)).toEqual(expectedRows(columnsOf(17), result));
    expect(await rowsOf(2, result)).toEqual(expectedRows(columnsOf(2), result, result.variants.slice(1)));
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

describe('a real run over HTTP/2 at a constant rate', () => {
  let result: Result;

  beforeAll(async () => {
    result = await run(['h2o-vs-nginx-h2-rate', '--rounds', '1', '--duration', '1s']);
  });

  it('answers every query of the dashboard but those for ratios, which the rate has set, and for the noise floor', async () => {
    for (const { from, query } of queriesOf(dashboard)) {
      const answers = await ask(interpolate(query, { scenario: result.scenario, run: result.run, variant: 'h2o' }));
      const rows = answers.flatMap((answer) => answer.rows);
      if (from === 'panel 2' || from === 'panel 18') expect(rows).toEqual([]);
      else expect(rows, from).not.toEqual([]);
    }
  });

  it.each(phasePanels)('has what h2load prints of it in panel %i', async (id) => {
    expect(await rowsOf(id, result)).toEqual(expectedPhaseRows(columnsOf(id), result));
  });

  it('has its histograms', async () => {
    await expectHistograms(result);
    const counted = result.variants.map(({ phases }) => phases[0]?.buckets.reduce((sum, { count }) => sum + count, 0));
    expect(counted).toEqual([1000, 1000]);
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

  it.each(variantPanels)('shows the picked run in panel %i, a row per variant in the order of the scenario', async (id) => {
    for (const result of [older, newer]) expect(await rowsOf(id, result)).toEqual(expectedRows(columnsOf(id), result));
  });

  it('shows bars of those variants that were measured, and ratios of those that have a baseline', async () => {
    expect(await rowsOf(17, newer)).toEqual(expectedRows(columnsOf(17), newer, newer.variants.slice(0, 2)));
    expect(await rowsOf(2, newer)).toEqual(expectedRows(columnsOf(2), newer, newer.variants.slice(1, 2)));
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
    for (const result of [rate, small, image]) expect(await rowsOf(id, result)).toEqual(expectedPhaseRows(columnsOf(id), result));
    expect((await rowsOf(id, image)).map(({ variant, phase }) => `${variant} ${phase}`)).toEqual([
      'nghttpd-1024 1', 'nghttpd-1024 2', 'nghttpd-1024 3', 'nghttpd-4096 1', 'nghttpd-4096 2', 'nghttpd-4096 3',
    ]);
  });

  it('show a histogram of each server, in the article\'s buckets', async () => {
    await expectHistograms(rate);
    expect(await choices('variant', small)).toEqual([]);
  });

  it('show what is published only in the table, with its ratio and the reason', async () => {
    const spdy = (await rowsOf(1, small)).find(({ variant }) => variant === 'nginx-spdy');
    expect(spdy).toMatchObject({ published_rps: 77_331, published_ratio: 77_331 / 44_326, measured_rps: null, ratio: null });
    expect((await rowsOf(7, small)).find(({ variant }) => variant === 'nginx-spdy')).toMatchObject({ published_header_bytes: 1_511_000, header_bytes: null });
  });
});

describe('made-up runs of a ladder and of a config against itself', () => {
  const about = (rps: number) => ({ rps: [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009].map((off) => rps * (1 + off)) });
  let ladder: Result;
  let control: Result;

  beforeAll(async () => {
    ladder = await h2Result('h2o-vs-nginx', {
      'h2o-initial': about(100_000), 'h2o-tuned': about(101_000), 'nginx-initial': about(57_000), 'nginx-workers': about(57_500),
      'nginx-open-file-cache': about(92_000), 'nginx-accept-mutex-delay': { rps: [92_000, 93_000, 91_500, 92_500, 90_500, 92_600] }, 'nginx-tcp-nopush': about(105_000),
    }, {}, { ceilings: [{ variants: ['h2o-initial', 'h2o-tuned', 'nginx-tcp-nopush'], rps: 140_000, generatorShare: 0.8 }] });
    control = await h2Result('aa', { a: about(100_000), again: { rps: [99_500, 100_300, 101_000, 99_900, 100_400, 99_700] } });
    for (const result of [ladder, control]) await store.write([...tablePoints(result), runPoint(result)]);
  });

  it.each(variantPanels)('show what result.json says in panel %i', async (id) => {
    for (const result of [ladder, control]) expect(await rowsOf(id, result)).toEqual(expectedRows(columnsOf(id), result));
  });

  it('show the ladder\'s bars in its order, the effect of each step published beside measured', async () => {
    const names = ladder.variants.map(({ name }) => name);
    expect((await rowsOf(17, ladder)).map(({ variant }) => variant)).toEqual(names);
    expect(await rowsOf(17, ladder)).toEqual(expectedRows(columnsOf(17), ladder));
    expect(await rowsOf(2, ladder)).toEqual(expectedRows(columnsOf(2), ladder, ladder.variants.slice(1)));
    expect((await rowsOf(2, ladder)).at(-1)).toEqual({ variant: 'nginx-tcp-nopush', published_ratio: 824_799.77 / 714_511.56, ratio: expect.closeTo(1.14, 2) });
  });

  it('say what is undecided, and how far the generator\'s ceiling is', async () => {
    const row = (await rowsOf(16, ladder)).find(({ variant }) => variant === 'nginx-accept-mutex-delay');
    expect(row).toMatchObject({ rounds_needed: expect.any(Number), ceiling_rps: null, ceiling_share: null, looks: '6' });
    expect(row?.['rounds_needed']).toBeGreaterThan(6);
    expect((await rowsOf(16, ladder))[0]).toMatchObject({ ceiling_rps: 140_000, ceiling_share: expect.closeTo(0.715, 3), rounds_needed: null });
  });

  it('have a noise floor where it is a config against itself, and none elsewhere', async () => {
    expect(await rowsOf(18, control)).toEqual([{ noise_floor: (control.noiseFloor?.ratio ?? 0) - 1 }]);
    const query = interpolate(panel(18).targets[0]?.query ?? '', { scenario: ladder.scenario, run: ladder.run });
    expect(await ask(query)).toEqual([]);
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
