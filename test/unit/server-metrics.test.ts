// Metrics of servers, memory and start-up among them: verdicts, columns, lines and files.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant, RunFacts } from '../../lib/analysis/verdict.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { serverLines } from '../../lib/report/server-lines.ts';
import { verdictLines } from '../../lib/report/sentences.ts';
import { measuredComparisons } from '../../lib/analysis/comparisons.ts';
import { headline } from '../../lib/report/html/headline.ts';
import { csvReport } from '../../lib/report/texts.ts';
import { cellText } from '../../lib/report/table.ts';
import type { Result, Round } from '../../lib/result/result.ts';
import { checkResult, resultJson } from '../../lib/result/result-file.ts';
import { factsOf, serverMetricNames } from '../../lib/result/server-metrics.ts';
import { answers, phase } from '../fixtures/phase.ts';
import { changed, openFileCache, result, workers } from '../fixtures/result.ts';

/** Megabytes and milliseconds of each round; undefined: not known. */
type Figures = readonly (number | undefined)[];
const jitter = [1, 1.004, 0.997, 1.002, 0.999, 1.001];
const about = (figure: number): Figures => jitter.map((by) => figure * by);

function having(variant: MeasuredVariant, megabytes: Figures, ms: Figures): MeasuredVariant {
  const rounds = variant.rounds.map((round, index): Round => {
    const [mb, startupMs] = [megabytes[index], ms[index]];
    return {
      ...round,
      ...(mb === undefined ? {} : { memoryBytes: 1e6 * mb }),
      ...(startupMs === undefined ? {} : { startupMs }),
    };
  });
  return { ...variant, rounds };
}

const run = (
  [memory, startup]: [Figures, Figures],
  facts: Partial<RunFacts> = {},
  changes: Partial<Result> = {},
): Result =>
  result(
    [
      having(workers, about(20).toReversed(), about(200).toReversed()),
      having(openFileCache, memory, startup),
    ],
    changes,
    facts,
  );

const titlesOf = (of: Result) => variantTable(of).columns.map(({ title }) => title);
const cellOf = (of: Result, title: string) =>
  cellText(variantTable(of).rows[1]?.[titlesOf(of).indexOf(title)] ?? '');

test('a comparison has the ratios of both, with verdicts if asked for', () => {
  const [comparison] = run([about(13.8), about(300)]).comparisons;
  expect(comparison?.ofServer).toMatchObject({
    memory: { ratio: expect.closeTo(0.69, 6), verdict: 'none' },
    startup: { ratio: expect.closeTo(1.5, 6), verdict: 'none' },
  });
  const [asked] = run([about(13.8), about(300)], { alsoAsked: ['memory', 'startup'] }).comparisons;
  expect(asked?.metric).toBe('rps');
  expect(asked?.ofServer).toMatchObject({
    memory: { verdict: 'faster' },
    startup: { verdict: 'slower' },
  });
});

test('a round without a figure leaves out the ratio', () => {
  const missing = [...about(13.8).slice(0, 5), undefined];
  const of = run([missing, about(300)], { metric: 'memory' });
  expect(of.comparisons[0]).toMatchObject({
    ratio: 0,
    verdict: 'none',
    why: 'its memory is not known in a whole round',
  });
  expect(of.comparisons[0]?.ofServer).not.toHaveProperty('memory');
  expect(cellOf(of, 'memory MB')).toBe('');
});

test('--metric decides by one of them, in its own words', () => {
  const small = run([about(13.8), about(300)], { metric: 'memory' });
  expect(small.comparisons[0]).toMatchObject({ metric: 'memory', verdict: 'faster' });
  expect(verdictLines(small, [])[0]).toMatch(
    /^open-file-cache is smaller than workers here: memory −31 % \(95 % interval −3\d % to −3\d %\)\.$/,
  );
  expect(measuredComparisons(small).map((comparison) => headline(comparison, small))).toEqual([
    'open-file-cache is smaller than workers: memory −31 %',
  ]);
  const slow = run([about(13.8), about(300)], { metric: 'startup' });
  expect(verdictLines(slow, [])[0]).toMatch(
    /^open-file-cache is slower to start than workers here: start-up \+50 %/,
  );
  const same = run([about(20), about(200)], { metric: 'startup' });
  expect(verdictLines(same, [])[0]).toMatch(
    /^open-file-cache is as quick to start as workers here/,
  );
});

test('columns are those that were asked for', () => {
  const figures: [Figures, Figures] = [about(13.8), about(300)];
  expect(titlesOf(run(figures)).filter((title) => /memory|start/.test(title))).toEqual([]);
  const decided = run(figures, { metric: 'memory' });
  expect(titlesOf(decided).filter((title) => /memory|start/.test(title))).toEqual(['memory MB']);
  expect(cellOf(decided, 'memory MB')).toBe('13.8');
  const gated = run(figures, { alsoAsked: ['startup'] }, { alsoAsked: ['startup'] });
  expect(titlesOf(gated)).toContain('start-up ms');
  expect(cellOf(gated, 'start-up change')).toMatch(/^\+50 % \[4\d, 5\d\]$/);
});

test.each<[string, [Figures, Figures], string[]]>([
  ['nothing of equal servers', [about(20), about(200)], []],
  [
    'a large difference',
    [about(13.8), about(300)],
    [
      'open-file-cache uses 31 % less memory than workers: 13.8 against 20.0 MB, in all 6 rounds.',
      'open-file-cache takes 50 % more time to start than workers: 300 against 200 ms, in all 6 rounds.',
    ],
  ],
  [
    'a difference of twice and more',
    [about(90), about(200)],
    [
      'open-file-cache uses 4.5 times the memory of workers: 90.0 against 20.0 MB, in all 6 rounds.',
    ],
  ],
  ['nothing below a tenth', [about(18.5), about(215)], []],
  [
    'nothing if a round disagrees',
    [
      [13, 13, 13, 19, 13, 13],
      [300, 300, 190, 300, 300, 300],
    ],
    [],
  ],
  ['nothing of a round that is not known', [[13, 13, 13, undefined, 13, 13], []], []],
])('a line that nobody asked for says %s', (_, figures, lines) => {
  expect(serverLines(run(figures))).toEqual(lines);
});

test('a small server needs a difference that matters, and what was asked has its verdict', () => {
  const tiny = [having(workers, about(2), about(20)), having(openFileCache, about(1.5), about(40))];
  expect(serverLines(result(tiny))).toEqual([]);
  const asked = run([about(13.8), about(300)], { metric: 'memory' });
  expect(serverLines(asked)).toEqual([expect.stringContaining('time to start')]);
  expect(serverLines({ ...run([about(13.8), about(300)]), control: true })).toEqual([]);
});

test('a line is of sides with as many connections and no failures, and there are at most four', () => {
  const small = having(openFileCache, about(13.8), about(200));
  const big = having(workers, about(20), about(200));
  const load = { ...workers.load, connections: 10 };
  expect(serverLines(result([big, { ...small, load }]))).toEqual([]);
  const failing = changed(small, () =>
    phase({ requests: 100, responses: answers({ '5xx': 100 }) }),
  );
  expect(serverLines(result([big, having(failing, about(13.8), about(200))]))).toEqual([]);
  const many = ['b', 'c', 'd', 'e', 'f'].map((name) => ({ ...small, name }));
  expect(serverLines(result([big, ...many]))).toEqual([
    ...['b', 'c', 'd'].map((name) => expect.stringContaining(`${name} uses 31 % less memory`)),
    '2 more comparisons differ as clearly in memory: --metric memory shows all.',
  ]);
});

describe.each(serverMetricNames)('%s, as each metric of the list', (metric) => {
  const { field, perUnit, column, title } = factsOf(metric);
  /** Fifty in its unit for the baseline, a hundred for the variant. */
  const sides = [workers, openFileCache].map((variant, side) => {
    const rounds = variant.rounds.map((round, index): Round => {
      const figure = 50 * (side + 1) * (jitter[index] as number);
      return { ...round, [field]: perUnit * figure };
    });
    return { ...variant, rounds };
  });
  const of = result(sides, {}, { metric });

  test('decides, and has a column', () => {
    expect(of.comparisons).toMatchObject([
      { metric, ratio: expect.closeTo(2, 6), verdict: 'slower' },
    ]);
    expect(cellOf(of, title)).toMatch(/^100/);
  });

  test('is kept in result.json and CSV', () => {
    expect(checkResult(resultJson(of), 'result.json')).toEqual(of);
    const [titles = '', , row = ''] = csvReport(of).split('\r\n');
    const cell = (title: string) => Number(row.split(',')[titles.split(',').indexOf(title)]);
    expect(cell(column) / perUnit).toBeCloseTo(100, 0);
    expect(cell(`${metric}_ratio`)).toBeCloseTo(2, 3);
    expect(cell(`${metric}_ratio_high`)).toBeCloseTo(2, 3);
  });
});
