// Latency by rate in the dashboards: made-up searches and sweeps, written to a real influxd by the runner, round by round.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import type { RunContext } from '../../lib/runner/round-types.ts';
import { storeResult as storeRound } from '../../lib/runner/store-result.ts';
import { columnsOf, DashboardDatabase, dashboardOf, type Answer } from '../dashboard-database.ts';
import { expectedRows, type Cell } from '../dashboard-figures.ts';
import { shippedScenario } from '../fixtures/h2-result.ts';
import { searchRun, sweepRun, type Written } from '../fixtures/rates.ts';
import { panelsOf } from '../grafana.ts';
import { madeUpRun, storeResult } from '../made-up-runs.ts';

let database: DashboardDatabase;
let found: Result;
let foundAtOnce: Result;
let swept: Result;
let plain: Result;
beforeAll(async () => {
  database = await DashboardDatabase.open();
  found = await ranLike(await searchRun(Date.parse('2026-02-06T07:08:09.000Z'), 4));
  foundAtOnce = await ranLike(await searchRun(Date.parse('2026-02-06T08:08:09.000Z'), 1));
  swept = await ranLike(await sweepRun(Date.parse('2026-02-06T09:08:09.000Z'), [1000, 2000, 5000]));
  plain = await storeResult(
    database.store,
    await madeUpRun(await shippedScenario(found.scenario), Date.parse('2026-02-06T10:08:09.000Z')),
  );
}, 300_000);
afterAll(() => database?.close());

it('has what a search found of each variant, and the interval where there are rounds enough', async () => {
  for (const result of [found, foundAtOnce])
    expect(await database.rows('comparison', 28, result)).toEqual(
      expectedRows(columnsOf('comparison', 28), result),
    );
});

it('has each step of a search once, whatever the rounds after it added, and each rate of a sweep', async () => {
  const steps = await database.rows('comparison', 29, found);
  const byRate = (one: Cell[], other: Cell[]): number => Number(one[1]) - Number(other[1]);
  expect(
    steps
      .map(
        ({ variant, rate, p50_ms: p50, p99_ms: p99, kept }) =>
          [variant, rate, p50, p99, kept] as Cell[],
      )
      .toSorted(byRate),
  ).toEqual(
    (found.search?.steps ?? [])
      .map(({ variant, rate, latencyMs: { p50, p99 }, kept }): Cell[] => [
        variant,
        rate,
        p50,
        p99,
        Number(kept),
      ])
      .toSorted(byRate),
  );
  expect(
    (await database.rows('comparison', 29, swept)).map(({ rate, variant, p99_ms: p99, kept }) => [
      rate,
      variant,
      p99,
      kept,
    ]),
  ).toEqual([
    [1000, 'workers', 1, null],
    [1000, 'open-file-cache', 0.8, null],
    [2000, 'workers', 2, null],
    [2000, 'open-file-cache', 1.6, null],
    [5000, 'workers', 5, null],
    [5000, 'open-file-cache', 4, null],
  ]);
});

it('is drawn as a series per variant and percentile, by rate', async () => {
  for (const [result, counts] of [
    [found, [8, 11]],
    [swept, [3, 3]],
  ] as const) {
    const [answers = []] = await database.panel('comparison', 30, result);
    const frames = partitioned(answers, 'variant');
    expect([...frames].map(([name, rows]) => [name, rows.length])).toEqual([
      ['workers', counts[0]],
      ['open-file-cache', counts[1]],
    ]);
    // Grafana finds out from the values that a column has numbers.
    for (const rows of frames.values())
      for (const row of rows)
        expect(row).toEqual({
          rate: expect.any(Number),
          p50_ms: expect.any(Number),
          p99_ms: expect.any(Number),
        });
  }
});

it("has no article's figures beside it, and in each round the ratio of the rates that were found", async () => {
  for (const id of [1, 4, 16])
    expect(await database.rows('comparison', id, found)).toEqual(
      expectedRows(columnsOf('comparison', id), found),
    );
  const [ratios = []] = await database.panel('comparison', 23, {
    ...found,
    variant: 'open-file-cache',
  });
  expect(ratios.flatMap(({ rows }) => rows).map(({ ratio }) => ratio)).toEqual(
    found.comparisons[0]?.roundRatios,
  );
});

it('of a search is a line of its own in History', async () => {
  const range = {
    ...found,
    startedAt: '2026-02-03T00:00:00.000Z',
    endedAt: '2026-02-07T00:00:00.000Z',
  };
  const [lines = []] = await database.panel('history', 2, range);
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
        [found, foundAtOnce].map(({ startedAt }) => Date.parse(startedAt)),
      ],
    ]),
  );
});

it('is not there of a run that has one rate only, and that is said', async () => {
  const panels = panelsOf(dashboardOf('comparison')).filter(({ id }) => [28, 29, 30].includes(id));
  expect(panels).toHaveLength(3);
  for (const { id, fieldConfig } of panels) {
    expect((await database.panel('comparison', id, plain)).flat()).toEqual([]);
    expect(fieldConfig.defaults.noValue).toMatch(/--within/);
  }
  expect((await database.panel('comparison', 28, swept)).flat()).toEqual([]);
});

/** Written after each round, as a run does it. */
async function ranLike({ plan, written }: Awaited<ReturnType<typeof searchRun>>): Promise<Result> {
  for (const { result, newest, ended } of written) {
    expect(
      await storeRound(
        { plan, store: database.store } as unknown as RunContext,
        result,
        newest,
        ended,
      ),
    ).toBeNull();
  }
  return (written.at(-1) as Written).result;
}

/** What Grafana's transformation of that name makes of a table: the rows of each value of a column, without it and without the time. */
function partitioned(answers: readonly Answer[], by: string): Map<Cell, Record<string, Cell>[]> {
  const frames = new Map<Cell, Record<string, Cell>[]>();
  for (const { time: _, [by]: value = null, ...row } of answers.flatMap(({ rows }) => rows))
    frames.set(value, [...(frames.get(value) ?? []), row]);
  return frames;
}
