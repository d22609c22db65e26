// Latency by rate in the dashboards: synthetic searches and sweeps in a real influxd.
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { additions } from '../../lib/cli/main.ts';
import type { Result } from '../../lib/result/result.ts';
import { DatabaseSink } from '../../lib/features/influxdb/sink.ts';
import { DashboardDatabase } from '../dashboard-database.ts';
import { expectedRows, type Cell } from '../dashboard-figures.ts';
import { shippedScenario } from '../fixtures/h2-result.ts';
import { searchRun, sweepRun, type Written } from '../fixtures/rates.ts';
import { madeUpRun, storeResult } from '../made-up-runs.ts';

let database: DashboardDatabase;
let searchResult: Result;
let foundAtOnce: Result;
let swept: Result;
let plain: Result;
beforeAll(async () => {
  database = await DashboardDatabase.open();
  searchResult = await ranLike(await searchRun(Date.parse('2026-02-06T07:08:09.000Z'), 4));
  foundAtOnce = await ranLike(await searchRun(Date.parse('2026-02-06T08:08:09.000Z'), 1));
  swept = await ranLike(await sweepRun(Date.parse('2026-02-06T09:08:09.000Z'), [1000, 2000, 5000]));
  plain = await storeResult(
    database.store,
    await madeUpRun(
      await shippedScenario(searchResult.scenario),
      Date.parse('2026-02-06T10:08:09.000Z'),
    ),
  );
}, 300_000);
afterAll(() => database?.close());

it('has the result of a search for each variant', async () => {
  const columns = ['variant', 'within', 'measured_rps', 'found_low', 'found_high'] as const;
  const shown = [...columns, 'found_at_least'] as const;
  for (const result of [searchResult, foundAtOnce])
    expect(await database.stored('bench_comparison', shown, result)).toEqual(
      expectedRows(shown, result),
    );
});

const curveColumns = ['rate', 'variant', 'p99_ms', 'kept'] as const;

it('has each step of a search once, and each rate of a sweep', async () => {
  const rows = async (result: Result): Promise<Cell[][]> =>
    (await database.stored('bench_curve', curveColumns, result)).map((row) =>
      curveColumns.map((column) => row[column] ?? null),
    );
  const steps = (searchResult.search?.steps ?? []).map(
    ({ rate, variant, latencyMs: { p99 }, kept }) => [rate, variant, p99, Number(kept)],
  );
  expect(steps).toHaveLength(19);
  expect((await rows(searchResult)).toSorted()).toEqual(steps.toSorted());
  expect(await rows(swept)).toEqual([
    [1000, 'workers', 1, null],
    [1000, 'open-file-cache', 0.8, null],
    [2000, 'workers', 2, null],
    [2000, 'open-file-cache', 1.6, null],
    [5000, 'workers', 5, null],
    [5000, 'open-file-cache', 4, null],
  ]);
});

it('has the ratio of the resulting rates for each round', async () => {
  const variant = 'open-file-cache';
  const [ratios = []] = await database.panel('comparison', 'Ratio per round: ${compared:csv}', {
    ...searchResult,
    variant,
  });
  expect(ratios.flatMap(({ rows }) => rows).map(({ ratio }) => ratio)).toEqual(
    searchResult.comparisons[0]?.roundRatios,
  );
});

it('of a search is a separate line in History', async () => {
  const range = {
    ...searchResult,
    startedAt: '2026-02-03T00:00:00.000Z',
    endedAt: '2026-02-07T00:00:00.000Z',
  };
  const [lines = []] = await database.panel('history', 'Requests/s, run by run', range);
  expect(
    lines.map(({ tags, rows }) => [
      tags?.['variant'],
      tags?.['within'],
      rows.map(({ time }) => Math.floor(Number(time))),
    ]),
  ).toEqual(
    expect.arrayContaining([
      ['workers', '', [Date.parse(plain.startedAt)]],
      [
        'workers',
        'p99 within 5.00 ms',
        [searchResult, foundAtOnce].map(({ startedAt }) => Date.parse(startedAt)),
      ],
    ]),
  );
});

async function ranLike({ plan, written }: Awaited<ReturnType<typeof searchRun>>): Promise<Result> {
  const sink = new DatabaseSink(database.store);
  const { signal } = new AbortController();
  const { contributionsTo, templates } = additions;
  const run = { plan, folder: tmpdir(), sink, signal, contributionsTo, templates };
  for (const { result, newest, ended } of written) {
    const kept = newest === undefined ? [] : [newest];
    expect(await sink.after(run, result, kept, ended)).toBeNull();
  }
  return (written.at(-1) as Written).result;
}
