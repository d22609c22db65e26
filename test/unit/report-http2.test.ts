// The tables of the shipped HTTP/2 scenarios, next to the articles' figures.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { markdownReport, markdownTable, terminalReport } from '../../lib/report/texts.ts';
import { loadPart } from '../../lib/report/load-tables.ts';
import { tableParts, variantTable } from '../../lib/report/run-tables.ts';
import { footnoteLines } from '../../lib/report/sentences.ts';
import { type Table, cellText } from '../../lib/report/table.ts';
import type { Result } from '../../lib/result/result.ts';
import { type Figures, h2Result } from '../fixtures/h2-result.ts';
import { answers, latency } from '../fixtures/phase.ts';
import { findingLines, openFileCache, result, workers } from '../fixtures/result.ts';
import { columnOf } from '../fixtures/table.ts';

const about = (rps: number, phases?: Figures['phases']): Figures => ({
  rps: [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009].map((off) => rps * (1 + off)),
  ...(phases === undefined ? {} : { phases }),
});
const ends = [0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5];
const buckets = (counts: readonly number[]) =>
  counts.map((count, at) => ({ fromMs: ends[at] as number, toMs: ends[at + 1] ?? null, count }));
const paced = (
  answers: ReturnType<typeof latency>,
  delayMs: number,
  counts: readonly number[],
) => ({
  rps: [1000],
  phases: [
    { latencyMs: answers, sendDelayMs: latency(delayMs, 0.08, 1), buckets: buckets(counts) },
  ],
});
const imagePhase = (rps: number, succeeded: number) => ({
  rps,
  responses: answers({ '2xx': succeeded, '4xx': 100_000 - succeeded }),
});

const curve = await h2Result('h2o-vs-nginx-h2', { nginx: about(21_230), h2o: about(34_450) });
const rate = await h2Result('h2o-vs-nginx-h2-rate', {
  nginx: paced(latency(0.31, 1.9, 9.4), 0.012, [1200, 3900, 3000, 1100, 500, 100, 50, 100, 45, 5]),
  h2o: paced(latency(0.22, 0.7, 4.4), 0.011, [2600, 5900, 1000, 300, 100, 50, 20, 20, 10, 0]),
});
const images = await h2Result('nghttpd-img', {
  'nghttpd-1024': {
    rps: [1330],
    phases: [imagePhase(1200, 28_000), imagePhase(1400, 25_000), imagePhase(1391.5, 24_000)],
  },
});
const small = await h2Result('http1-vs-h2-small-file', {
  'nginx-http1': about(61_230),
  'nghttpd-h2': about(154_450),
});

function table80(of: Result, heading: string) {
  const lines = terminalReport(of, [], [], { width: 80, colour: false, verbose: true });
  const rest = lines.slice(lines.findIndex((line) => line.startsWith(heading)));
  return rest.slice(0, rest.indexOf(''));
}

test.each([curve, rate, images, small])(
  '$scenario fits 80 columns, and has the same tables in Markdown',
  (of) => {
    const lines80 = terminalReport(of, [], [], { width: 80, colour: false, verbose: true });
    expect(lines80.filter((line) => line.length > 80)).toEqual([]);
    const text = markdownReport(of, []);
    for (const table of tableParts(of, []).flatMap(({ tables }) => tables)) {
      const lines = markdownTable(table);
      expect(text).toContain(lines.join('\n'));
      expect(new Set(lines.map((line) => line.split('|').length)).size).toBe(1);
    }
  },
);

describe('each load in detail', () => {
  test('explains where latencies start', () => {
    expect(loadPart(curve, [])[0]?.below.join()).toContain('service time');
    expect(loadPart(rate, [])[0]?.below.join()).toContain('from when a request was due.');
  });

  test('shows the bytes of each load, even if only published', () => {
    expect(table80(small, 'traffic')).toContainEqual(
      expect.stringMatching(/^nginx-spdy   published +100,000 +5,215,400 +1,511,000 +2,100,000$/),
    );
  });
});

describe('a load at a constant rate', () => {
  test('has a table with latencies and their ratio', () => {
    const table = variantTable(rate);
    expect(columnOf(table, 'p50', 'published')).toEqual(['600–750 µs', '450–600 µs']);
    expect(columnOf(table, 'p99', 'published')).toEqual(['over 5 ms', '1–2 ms']);
    expect(columnOf(table, 'against nginx')?.[1]).toBe('p99 −63 % needs 4 rounds');
    expect(columnOf(table, 'p99 ms')).toEqual(['1.9', '0.70']);
    expect(findingLines(rate)[1]).toMatch(/ nginx 12 µs and 80 µs, h2o 11 µs and 80 µs\.$/);
  });

  test('shows the histograms of servers side by side', () => {
    const wide = terminalReport(rate, [], [], { width: 160, colour: false });
    const start = wide.indexOf('Answers by latency:') + 1;
    expect(wide[start]).toMatch(
      /^latency +nginx, published +h2o, published +nginx, here +h2o, here$/,
    );
    expect(wide[start + 4]).toMatch(
      /^450–600 µs +2,617 +26\.17 % +█████▎ +5,740 +57\.40 % +███████████▌ +1,100 .* 3\.00 % +▋$/,
    );
    expect(wide[start + 10]).toMatch(/^over 5 ms /);
  });

  test('has a row for every bucket of any server', () => {
    const having = (variant: MeasuredVariant, froms: readonly number[]): MeasuredVariant => {
      const buckets = froms.map((fromMs, at) => ({
        fromMs,
        toMs: froms[at + 1] ?? null,
        count: 1,
      }));
      const rounds = variant.rounds.map(({ round, phases }) => ({
        round,
        phases: phases.map((phase) => ({ ...phase, buckets })),
      }));
      return { ...variant, published: null, rounds };
    };
    const of = result([having(workers, [0, 1, 2, 5]), having(openFileCache, [0, 2, 5, 50])]);
    const { rows } = tableParts(of, [])[1]?.tables[0] as Table;
    const cells = rows.map((row) =>
      row.map((cell) => cellText(cell).trim().split('  ')[0]).join('|'),
    );
    expect(cells.join(', ')).toBe(
      '0–1 ms|6|, 0–2 ms||6, 1–2 ms|6|, 2–5 ms|6|6, 5–50 ms||6, over 5 ms|6|, over 50 ms||6',
    );
  });
});

test('header savings have a note if the article sent more requests', () => {
  const line =
    'Header savings here are those of 10,000 requests, the published ones of 100,000: the first requests of a connection save less.';
  expect(loadPart(curve, [])[0]?.below.join()).not.toContain('Header savings');
  const fewer = structuredClone(curve);
  for (const { traffic } of fewer.variants) if (traffic !== null) traffic.requests = 10_000;
  expect(loadPart(fewer, [])[0]?.below).toContain(line);
});

test('header bytes are shown by protocol; for SPDY only published ones', () => {
  const table = variantTable(small);
  expect(columnOf(table, 'variant')).toEqual(['nginx-http1', 'nginx-spdy', 'nghttpd-h2']);
  expect(columnOf(table, 'headers kB', 'published')).toEqual(['23,600', '1,511', '426.9']);
  expect(columnOf(table, 'headers kB', 'here')).toEqual(['23,600', '', '1,200']);
  const [headers] = tableParts(small, [])[1]?.tables ?? [];
  const first = `of nginx-http1`;
  expect(columnOf(headers as Table, first, 'published')).toEqual(['', '1/15.6', '1/55.3']);
  expect(columnOf(headers as Table, 'B/answer', 'published')).toEqual(['236.00', '15.11', '4.27']);
  expect(columnOf(headers as Table, first, 'here')).toEqual(['', '', '1/19.7']);
  expect(columnOf(table, 'requests/s', 'here')?.[1]).toBe('published only');
  expect(footnoteLines(small)[0]).toMatch(/^nginx-spdy is published only: /);
  expect(findingLines(small).join()).not.toContain('Header bytes');
  const fewer = structuredClone(small);
  for (const { traffic } of fewer.variants) if (traffic !== null) traffic.requests = 10_000;
  expect(findingLines(fewer)).toContain(
    'Header bytes here are those of 10,000 requests, the published ones of 100,000.',
  );
});
