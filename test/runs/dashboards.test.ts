// The dashboards' queries against a real influxd with real runs, compared with result.json.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { valuesIn } from '../../lib/analysis/latency.ts';
import type { Phase, Result } from '../../lib/result/result.ts';
import { DashboardDatabase, dashboardOf, pickedOf } from '../dashboard-database.ts';
import { total } from '../dashboard-figures.ts';
import { interpolate, panelsOf, targetsOf } from '../grafana.ts';

let database: DashboardDatabase;
let wrk: Result;
let rate: Result;

beforeAll(async () => {
  database = await DashboardDatabase.open();
  // Long enough that nginx closes connections (after 100 requests) even on a busy machine.
  wrk = await database.run([
    'nginx-open-file-cache',
    '--rounds',
    '2',
    '--warmup',
    '100ms',
    '--duration',
    '3s',
  ]);
  rate = await database.run([
    'h2o-vs-nginx-h2-rate',
    '--rounds',
    '1',
    '--warmup',
    '100ms',
    '--duration',
    '1s',
  ]);
}, 300_000);

afterAll(() => database?.close());

it('the live dashboard offers the runs with samples per second', async () => {
  for (const { run } of [wrk, rate])
    expect(await database.choices('live', 'run', { ...wrk, run })).toEqual([rate.run, wrk.run]);
  for (const { scenario, ...others } of [wrk, rate])
    expect(await database.choices('live', 'scenario', { ...others, scenario: '' })).toEqual([
      scenario,
    ]);
});

it('every query on a real run returns data, except where there can be none', async () => {
  for (const result of [wrk, rate]) {
    // The run had no failures, no link and no look at causes.
    expect(await database.emptyPanels('comparison', result)).toEqual([
      ...(result === wrk ? ['Answers by latency: ${variant:csv}'] : []),
      'Attempts that failed, by cause',
      'What went over the link',
      'Why: CPU µs of a request',
    ]);
    expect(await database.emptyPanels('articles', result)).toEqual([]);
    // Ratios start with the third round, which is there if one was repeated.
    const rounds = result.variants.flatMap((variant) => variant.rounds);
    const hasThird = rounds.some(({ round }) => round > 2);
    expect(await database.emptyPanels('live', result)).toEqual([
      ...(hasThird ? [] : ['Ratio so far']),
      'Failures per second',
    ]);
  }
});

it('the live dashboard shows all samples, only within the time range', async () => {
  for (const result of [wrk, rate]) {
    const [responses = []] = await database.dividends('live', 'Responses/s', result);
    expect(sums(responses, 'variant')).toEqual(
      Object.fromEntries(
        result.variants.map((variant) => [variant.name, total(variant, answered)]),
      ),
    );
    const before = {
      ...result,
      startedAt: '2026-01-01T00:00:00.000Z',
      endedAt: '2026-01-01T01:00:00.000Z',
    };
    for (const panel of panelsOf(dashboardOf('live'))) {
      if (targetsOf(panel).some(({ query }) => query.includes('$timeFilter')))
        expect((await database.panel('live', panel.title, before)).flat()).toEqual([]);
    }
  }
});

it('the heatmap has every response once, in sorted buckets', async () => {
  // Latency excludes the first responses of a closed load's turns.
  for (const [result, of] of [
    [wrk, ({ latencyMs }: Phase) => valuesIn(latencyMs)],
    [rate, answered],
  ] as const) {
    const [buckets = []] = await database.panel('live', "Latency of each second's answers", result);
    const all = result.variants.reduce((sum, variant) => sum + total(variant, of), 0);
    expect(
      buckets.flatMap(({ rows }) => rows).reduce((sum, row) => sum + Number(row['sum']), 0),
    ).toBe(all);
    const ends = buckets.map(({ tags }) => tags?.['le'] ?? '');
    expect(ends.length).toBeGreaterThan(3);
    expect(ends.map(Number)).toEqual(ends.map(Number).toSorted((a, b) => a - b));
  }
});

it('the live dashboard shows percentiles, CPU time of both sides and bytes', async () => {
  const [percentiles = []] = await database.panel(
    'live',
    'Latency percentiles of each second',
    rate,
  );
  expect(percentiles.map(({ tags }) => [tags?.['variant'], tags?.['stat']])).toEqual(
    ['max', 'p50', 'p90', 'p99'].flatMap((stat) =>
      ['h2o', 'nginx'].map((variant) => [variant, stat]),
    ),
  );
  const [servers = [], generator = []] = await database.panel(
    'live',
    'CPU: 100 % is one core',
    rate,
  );
  expect(
    generator.flatMap(({ rows }) => rows).every(({ mean }) => Number(mean) > 0 && Number(mean) < 8),
  ).toBe(true);
  expect(servers.map(({ tags }) => tags?.['variant'])).toEqual(['h2o', 'nginx']);
  const [bytes = []] = await database.dividends('live', 'Bytes/s', wrk);
  const sent = (key: 'headers' | 'body' | 'sent') =>
    wrk.variants.reduce((sum, variant) => sum + total(variant, (phase) => phase.bytes[key]), 0);
  expect(sums(bytes, 'part')).toEqual({
    all: sent('sent'),
    headers: sent('headers'),
    body: sent('body'),
  });
});

it('the live dashboard marks where loads began', async () => {
  const [mark] = dashboardOf('live').annotations?.list ?? [];
  const [answer] = await database.ask(interpolate(mark?.query ?? '', pickedOf(wrk)));
  const begun = wrk.variants.flatMap(({ name, rounds }) =>
    rounds.map(({ round, phases }) => ({
      label: `round ${round}: ${name}`,
      time: Date.parse(phases[0]?.startedAt ?? ''),
    })),
  );
  expect(answer?.rows.map(({ label, time }) => ({ label, time }))).toEqual(
    begun.toSorted((a, b) => a.time - b.time),
  );
});

function answered({ responses }: Phase) {
  return Object.values(responses).reduce((a, b) => a + b);
}

function sums(
  answers: { tags: Record<string, string> | undefined; rows: Record<string, unknown>[] }[],
  tag: string,
): Record<string, number> {
  return Object.fromEntries(
    answers.map(({ tags, rows }) => [
      tags?.[tag],
      rows.reduce((sum, row) => sum + Number(row['value'] ?? row['sum']), 0),
    ]),
  );
}
