// Pages of a mix in the report: on which of them two servers differ.
import { expect, test } from 'vitest';
import { pageLines, pagesPart } from '../../lib/report/pages.ts';
import { textOf } from '../../lib/report/table.ts';
import type { Result } from '../../lib/result/result.ts';
import { openFileCache, result, withPages, workers } from '../fixtures/result.ts';

const base = { '/': 0.1, '/api': 0.2, 'POST /a': 0.3 };
const of = (times: Record<string, number>, answers?: number): Result =>
  result([withPages(workers, base, answers), withPages(openFileCache, times, answers)]);

test.each<[string, Record<string, number>, string]>([
  [
    'one page',
    { ...base, '/api': 0.282 },
    'open-file-cache takes another time than workers for /api (+41 %); no difference is seen on the other 2 pages compared.',
  ],
  [
    'all pages',
    { '/': 0.05, '/api': 0.2 * 3, 'POST /a': 0.36 },
    'open-file-cache takes another time than workers for /api (3 times), / (−50 %) and POST /a (+20 %).',
  ],
  [
    'less than the page before may cause',
    { ...base, '/api': 0.204 },
    'No page is clearly faster or slower of open-file-cache than of workers, one at a time.',
  ],
])('a difference on %s', (_, times, line) => {
  expect(pageLines(of(times))).toEqual([line]);
});

test('without enough answers, or without pages, nothing is said', () => {
  expect(pageLines(of({ ...base, '/api': 0.5 }, 3))).toEqual([]);
  expect(pageLines(result([workers, openFileCache]))).toEqual([]);
  expect(pagesPart(result([workers, openFileCache]), 10)).toEqual([]);
});

test('the table has the largest pages, and says how many there are beside', () => {
  const [part] = pagesPart(of({ ...base, '/api': 0.4 }), 2);
  expect(part?.tables[0]?.rows.map((cells) => cells.map(textOf))).toEqual([
    ['/', '34 %', '100', '1.5', '3.0', '100', '1.5', '3.0', expect.stringMatching(/ same$/)],
    [
      '/api',
      '33 %',
      '100',
      '1.5',
      '3.0',
      '100',
      '1.5',
      '3.0',
      expect.stringMatching(/^2 times \[.*\] slower$/),
    ],
  ]);
  expect(part?.below[1]).toBe('1 page more is in report.html.');
});
