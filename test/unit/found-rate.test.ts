// A rate that was searched for, in reports. It is the result's own, so it stands there without the feature that searches, too.
import { expect, test } from 'vitest';
import { foundIn } from '../../lib/report/found.ts';
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

test('the legend of a search says that × is of the rate or of the limit', () => {
  const search = { within: { metric: 'p50' as const, ms: 50 }, found: [], steps: [] };
  expect(foundIn({ search })?.chart).toEqual({
    heading:
      'Latency by rate; bars are p99, × where the rate, or p50 within 50.00 ms, was not kept:',
    text: 'Each mark is the p99 of a step of the search, filled if it kept the rate with p50 within 50.00 ms; lines go through the medians of steps at about the same rate.',
  });
});
