// A rate that was searched for, in reports. It is the result's own, so it stands there without the feature that searches, too.
import { expect, test } from 'vitest';
import { chartsOf, figuresOf } from '../../lib/report/charts.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { cellText } from '../../lib/report/table.ts';
import { csvReport } from '../../lib/report/texts.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

test('the rate that a search has found is in the table, with "at least" if it was the highest tried', () => {
  const rates = [
    { variant: 'workers', rate: 7000, ci95: null, atLeast: false },
    { variant: 'open-file-cache', rate: 9000, ci95: null, atLeast: true },
  ];
  const search = { within: { metric: 'p99' as const, ms: 5 }, found: rates, steps: [] };
  const run = { ...result([workers, openFileCache]), search };
  const cells = variantTable(run).rows.map((row) => row.map(cellText));
  expect(cells[0]).toContain('7,000');
  expect(cells[1]).toContain('at least 9,000');
  const [titles = '', ...rows] = csvReport(run).trim().split('\n');
  const column = titles.split(',').indexOf('at_least');
  expect(rows.map((row) => row.split(',')[column])).toEqual(['false', 'true']);
});

test('a search shows the percentile of its limit, and of each rate that does not count why', () => {
  const step = (rate: number, p50: number, kept: boolean) => ({
    round: 1,
    variant: 'workers',
    rate,
    made: rate,
    kept,
    why: '',
    latencyMs: { p50, p90: 2 * p50, p99: 30 * p50 },
  });
  const steps = [step(1000, 2, true), step(2000, 4, false), step(4000, 60, false)];
  const search = { within: { metric: 'p50' as const, ms: 50 }, found: [], steps };
  const run = { ...result([workers]), search };
  const [chart] = chartsOf(run);
  expect(chart?.title).toBe(
    'Latency by rate; bars are p50, × where it was above 50.00 ms, < where the rate was not reached, or requests failed:',
  );
  const cells = chart?.tables[0]?.rows.map((row) => row.map((cell) => cellText(cell).trim()));
  expect(cells).toEqual([
    ['1,000', '60.00 ms', expect.stringMatching(/^2\.00 ms  +\S$/)],
    ['2,000', '120.00 ms', expect.stringMatching(/^4\.00 ms <\S$/)],
    ['4,000', '1.80 s', expect.stringMatching(/^60\.00 ms ×█/)],
  ]);
  const [figure] = figuresOf(run, []);
  expect(figure?.text).toContain('Each mark is the p50 of a step');
  const { marks = [], lines = [] } = figure?.data.kind === 'lines' ? figure.data : {};
  expect(marks.map(({ y, title }) => [y, title.split(', ').at(-1)])).toEqual([
    [2, 'p99 60.00 ms'],
    [4, 'or requests failed'],
    [60, 'above the limit'],
  ]);
  expect(lines.filter(({ look }) => look === 'strong').map(({ y }) => y)).toEqual([2, 4, 60]);
});
