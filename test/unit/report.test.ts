// A run's table on the terminal and in Markdown, the heading, live progress.
import { expect, test, vi } from 'vitest';
import * as format from '../../lib/format.ts';
import {
  type RunHeading,
  headingLines,
  loadText,
  resultHeading,
} from '../../lib/report/heading.ts';
import { terminalReport } from '../../lib/report/texts.ts';
import { footnoteLines } from '../../lib/report/sentences.ts';
import { pageLines, pagesPart } from '../../lib/report/pages.ts';
import { leftColumn, tableOf, terminalTable, cellText, wrapLines } from '../../lib/report/table.ts';
import { createRunProgress } from '../../lib/cli/run-output.ts';
import { ab, wrk } from '../../lib/scenario/index.ts';
import {
  changed,
  compared,
  openFileCache,
  result,
  withPages,
  rounds,
  workers,
} from '../fixtures/result.ts';
import { latency, nginxWith } from '../fixtures/phase.ts';
import { columnOf } from '../fixtures/table.ts';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { fitLoad } from '../../lib/scenario/load.ts';
import type { Phase, Result } from '../../lib/result/result.ts';
import { loadPart } from '../../lib/report/load-tables.ts';
import { articleParts, variantTable } from '../../lib/report/run-tables.ts';

const plain = { width: Infinity, colour: false };
const both = result([workers, openFileCache]);
const unpublished = (variant: MeasuredVariant): MeasuredVariant => ({
  ...variant,
  published: null,
});

test('a cell that is too wide breaks between its clauses', () => {
  const cell =
    'p99 +14 % [−89, 1054] inconclusive, p50 +8 % [−24, 53] inconclusive (against open-file-cache-at-500)';
  const table = tableOf(
    ['access-log-buffered-64kb-at-500'],
    [leftColumn('variant', (name) => name), leftColumn('against its baseline', () => cell)],
  );
  expect(terminalTable(table, { width: 80, colour: false })).toEqual([
    'variant                          against its baseline',
    'access-log-buffered-64kb-at-500  p99 +14 % [−89, 1054] inconclusive,',
    '                                   p50 +8 % [−24, 53] inconclusive',
    '                                   (against open-file-cache-at-500)',
  ]);
});

const detailOf = (of: Result, title: string) =>
  loadPart(of, [])[0]?.tables.find(({ columns }) => columns[0]?.title === title);

test('a single connection has a connect time without a distribution', () => {
  const single = result([{ ...workers, load: { ...workers.load, connections: 1 } }, openFileCache]);
  const cellsOf = (title: string) =>
    detailOf(single, title)?.rows.map((row) => row.slice(1).map(cellText).join('|'));
  expect(cellsOf('time to connect')).toEqual([
    '||100 µs||',
    '100 µs|400 µs|100 µs|500 µs|100.00 %',
  ]);
  expect(cellsOf('time of a request')?.[0]).not.toContain('||');
});

test('a single thread has no distribution, and a side that opened no connection says so', () => {
  const kept = changed(workers, () => ({ connectMs: latency(0, 0, 0) }));
  const opened = changed(openFileCache, () => ({ connectMs: latency(1, 2, 3) }));
  const rowsOf = (title: string) => {
    const [part] = loadPart(result([kept, opened].map(unpublished)), []);
    const table = part?.tables.find(({ columns }) => columns[0]?.title === title);
    return table?.rows.map((row) => row.slice(1).map(cellText).filter(Boolean));
  };
  expect(rowsOf('time to connect')?.[0]).toEqual(['none']);
  expect(rowsOf('time to connect')?.[1]).toHaveLength(5);
  expect(rowsOf('requests/s of a thread')?.map((cells) => cells.length)).toEqual([1, 1]);
});

test('a note explains a change that medians would not make', () => {
  const line = /^Requests\/s are medians .*: open-file-cache \(\+33 %\)\.$/;
  const linesOf = (ratio: number, of = both) =>
    articleParts(compared(of, { ratio }), [])
      .flatMap(({ below }) => below)
      .filter((text) => (of === both ? line.test(text) : text.startsWith('Requests/s are')));
  expect(linesOf(1.32)).toEqual([]);
  expect(linesOf(0.98)).toHaveLength(1);
  expect(linesOf(1.2)).toHaveLength(1);
  // Without a change on display there is no note.
  expect(linesOf(0.999_999)).toEqual([]);
  // Nor if both are shown as −90 %.
  const slow = { ...openFileCache, rounds: rounds(Array(6).fill(58_000), 11.8, 1.2, 1.7, 8, 7.1) };
  expect(linesOf(0.1, result([workers, slow]))).toEqual([]);
  expect(linesOf(0.2, result([workers, slow]))).toHaveLength(1);
});

test('the table shows a failure rate that rounds to zero', () => {
  const failing = structuredClone(workers);
  const [first] = failing.rounds[0]?.phases ?? [];
  Object.assign(first?.errors ?? {}, { read: 1, total: 1 });
  Object.assign(first?.responses ?? {}, { '2xx': 603_999 });
  const table = variantTable(result([failing]));
  expect(columnOf(table, 'success')).toEqual(['99.99 %']);
  expect(columnOf(table, 'errors/M')).toEqual(['<1']);
});

test('the table heading has no baseline if rows have different ones', () => {
  const other = { ...workers, name: 'other', against: 'open-file-cache', setup: 'other' };
  const table = variantTable(result([workers, openFileCache, other]));
  expect(columnOf(table, 'against its baseline')?.[2]).toContain('(against open-file-cache)');
});

test('the name of a group may be longer than the first column', () => {
  const groups = ['', 'a long name', 'a long name', 'next', 'last'];
  const titles = ['name', 'a', 'bc', 'd', 'efghijk'];
  const columns = titles.map((title, index) => leftColumn(title, () => title, groups[index]));
  expect(terminalTable({ columns, rows: [] }, plain)).toEqual([
    '      a long name  next  last',
    'name  a  bc  d  efghijk',
  ]);
});

test('the table wraps long text, with and without colour', () => {
  const part = 'delay not held';
  const text = `some words that take more than one line, ${part}`;
  const table = tableOf(
    [{ text, part, verdict: 'inconclusive' as const }],
    [leftColumn('name', () => 'a'.repeat(40)), leftColumn('words', (cell) => cell)],
  );
  const lines = (colour: boolean) => terminalTable(table, { width: 80, colour });
  expect(lines(false)).toEqual([
    `name${' '.repeat(38)}words`,
    `${'a'.repeat(40)}  some words that take more than one`,
    `${' '.repeat(44)}line,`,
    `${' '.repeat(44)}delay not held`,
  ]);
  expect(lines(true)[3]).toBe(`${' '.repeat(44)}\u001b[33m${part}\u001b[39m`);
});

test.each([
  [0, false],
  [2, true],
])(
  'CPU time of %i µs per request, as the kernel counts it in ticks, is shown: %s',
  (us, isShown) => {
    const variants = both.variants.map((variant) => ({
      ...variant,
      rounds: variant.rounds.map((round) => ({
        ...round,
        phases: round.phases.map((of) => ({ ...of, perRequest: { userCpuUs: us, readBytes: 5 } })),
      })),
    }));
    const lines = terminalReport({ ...both, variants }, [], [], { ...plain, verbose: true });
    const [heading = ''] = lines.filter((line) => line.startsWith('per request'));
    expect([heading.includes('B read'), heading.includes('user CPU µs')]).toEqual([true, isShown]);
  },
);

test('the terminal shows table and sentences; --verbose loads and footnotes', () => {
  const noted = { ...both, warnings: ['quick run'], footnotes: ['A footnote.'] };
  const lines = terminalReport(noted, [], ['The end.'], plain);
  expect(lines.slice(5).map((line) => line.split(' ')[0])).toEqual(
    'open-file-cache Note: nginx Verdicts The'.split(' '),
  );
  const verbose = terminalReport(noted, [], ['The end.'], { ...plain, verbose: true });
  expect(verbose[0]).toBe('Each load in detail:');
  expect(verbose).toEqual(expect.arrayContaining([...lines, 'A footnote.']));
  // For user configs, the differences are part of the finding.
  const unpublished = noted.variants.map((variant) => ({ ...variant, published: null }));
  expect(terminalReport({ ...noted, variants: unpublished }, [], [], plain)).toContain(
    'A footnote.',
  );
});

test('equal notes and redirections appear once, with all names', () => {
  const userVariant = (name: string, ...redirections: string[]): MeasuredVariant => ({
    ...workers,
    name,
    note: 'One.',
    server: { ...nginxWith('/etc/n.conf'), redirections },
  });
  const nginx = userVariant('nginx', 'listen 80 → 127.0.0.1:40123', 'pid → a temporary file');
  expect(
    footnoteLines(result([nginx, userVariant('copy', 'listen 80 → 127.0.0.1:40999')])),
  ).toEqual([
    'nginx, copy: listen 80 → 127.0.0.1, a free port',
    'nginx: pid → a temporary file',
    'nginx, copy: One.',
  ]);
});

const environment = { ...both.environment, versions: { k6: '2.2.0' } };
const heading: RunHeading = {
  scenario: 'some',
  load: 'wrk -c 10',
  bodyBytes: [612],
  pages: [1],
  addresses: [],
  protocol: 'HTTP/1.1',
  network: '',
  rounds: 6,
  seconds: 140,
  estimated: true,
  server: 'nginx 1.22.1',
  environment,
};
const on = (serverCpus: number[], generatorCpus: number[]): Partial<RunHeading> => ({
  environment: { ...environment, serverCpus, generatorCpus },
});

test.each<[Partial<RunHeading>, string]>([
  [{ rounds: 1, seconds: 12.4, estimated: false }, '612 B over HTTP/1.1 · 1 round, 12 s'],
  [
    { bodyBytes: [612, 615, 612], rounds: 5, atMost: { rounds: 20, seconds: 240 } },
    '612 B and 615 B over HTTP/1.1 · 5 to 20 rounds, about 2 min 20 s to 4 min',
  ],
  [
    { protocol: 'HTTP/1.1 and HTTP/2 over TLS', network: '5 ms each way' },
    '612 B over HTTP/1.1 and HTTP/2 over TLS · 5 ms each way · 6 rounds, about 2 min 20 s',
  ],
])('the heading describes the measurement: %j', (changes, line) => {
  expect(headingLines({ ...heading, ...changes })[0]).toBe(`some · wrk -c 10 · ${line}`);
});

test.each<[Partial<RunHeading>, string]>([
  [{}, 'nginx 1.22.1 on core 1, k6 2.2.0 on core 0'],
  [on([4, 5, 6, 7], [0, 1, 3]), 'nginx 1.22.1 on cores 4-7, k6 2.2.0 on cores 0-1,3'],
  [on([0, 1], [0, 1]), 'nginx 1.22.1 and k6 2.2.0 on cores 0-1, shared'],
])('the heading describes the servers: %j', (changes, line) => {
  expect(headingLines({ ...heading, ...changes })[1]).toBe(`${line} · Linux 6.18 · Xeon`);
});

test('the heading says what runs before the servers', () => {
  expect(headingLines(heading)).toHaveLength(2);
  const [, , line] = headingLines({ ...heading, prepare: 'make -s' });
  expect(line).toBe('before the servers start, in each round: make -s');
});

test('the heading names commands by side, and servers by version', () => {
  const server = { ...nginxWith(), name: 'node', version: '' };
  const of = result([workers, { ...workers, name: 'mine', server }]);
  expect(resultHeading(of).server).toBe('nginx 1.22.1, mine');
});

test.each([
  [wrk('-t 10 -d 10'), { durationSeconds: 1.5 }, 'wrk -t 10 -d 10 (here 1 thread, 1.5 s)'],
  [ab('-c 1 -n 100000'), { quick: true }, 'ab -c 1 -n 100000 (here 10,000 requests)'],
])(
  'the heading has the load as written, and what differs here: %j with %j',
  (profile, options, text) => {
    expect(
      loadText(profile, fitLoad(profile, { exact: false, generatorCores: 1, ...options })),
    ).toBe(text);
  },
);

test('long lines break at spaces, but not before a percent sign', () => {
  expect(wrapLines(['+62 % (95 % interval +61 % to +63 %).', 'short'], 22)).toEqual([
    '+62 % (95 % interval',
    '  +61 % to +63 %).',
    'short',
  ]);
  expect(wrapLines(['a nginx at 97 %'], 14)).toEqual(['a nginx at', '  97 %']);
});

const { short, effect, percent, success, duration } = format;
test.each<[string, (value: number) => string, number, string]>([
  ['ms', short, 99.96, '100'],
  ['ratio', effect, 1.0996, '+10 %'],
  ['ratio', effect, 1 + 1e-7, '±0 %'],
  ['ratio', effect, 0.00017, '−99.98 %'],
  ['share', percent, 0.0123, '1.2 %'],
  ['success', success, 1 - 1e-9, '99.99 %'],
  ['seconds', duration, 59.6, '1 min'],
])('%s: %o of %f is %s', (_, formatted, value, text) => {
  expect(formatted(value)).toBe(text);
});

test.each<[number, [number, number] | undefined, string]>([
  [0.0041, [0.0038, 0.0046], '−99.6 % [−99.6, −99.5]'],
  [1.006, [0.98, 1.04], '+0.6 % [−2.0, 4.0]'],
  [0.836, [0.8352, 0.8368], '−16.4 % [−16.5, −16.3]'],
  [1, [1 - 1e-9, 1.02], '±0.000 % [−0.000, 2.000]'],
  [2, [0, Infinity], '2 times [too wide]'],
  [0.5, [0.01, 25], '−50 % [too wide]'],
])('a ratio of %f within %j is %s', (ratio, interval, text) => {
  expect(format.effect(ratio, interval)).toBe(text);
});

function shown(stream: { isTTY: boolean; columns?: number }) {
  let text = '';
  const write = (piece: string) => {
    text += piece;
  };
  const progress = createRunProgress({ ...stream, write });
  progress.running({ what: 'round 2 of 10', seen: 'b +21 %', secondsLeft: 75.2 });
  progress.finished('done');
  progress.say('round 2 is repeated');
  progress.clear();
  return text;
}

test('live progress on a terminal is one line, cut to the width', () => {
  const line = (columns: number) => shown({ isTTY: true, columns }).split('\r\u001b[2K');
  const live = 'round 2 of 10 · 1:15 left · b +21 %';
  expect(line(200)).toEqual([live, `round 2 is repeated\n${live}`, '']);
  // What stays is wrapped.
  expect(line(12)).toEqual(['round 2 of ', 'round 2 is\n  repeated\nround 2 of ', '']);
});

test('the time of live progress goes on between reports, and beyond the end', () => {
  vi.useFakeTimers();
  const written: string[] = [];
  const stream = { isTTY: true, write: (piece: string) => written.push(piece) };
  const progress = createRunProgress(stream);
  progress.running({ what: 'checking', seen: 'a', secondsLeft: 2 });
  vi.advanceTimersByTime(4000);
  const times = written.map((line) => / · (.*) · /.exec(line)?.[1]);
  expect(times.slice(0, 3)).toEqual(['0:02 left', '0:02 left', '0:01 left']);
  expect(times.at(-1)).toBe('0:02 longer than expected');
  expect(times.join()).not.toContain('0:00');
  progress.clear();
  const lines = written.length;
  vi.advanceTimersByTime(4000);
  expect(written).toHaveLength(lines);
});

test('live progress is plain lines in a pipe', () => {
  expect(shown({ isTTY: false })).toBe('done\nround 2 is repeated\n');
});

const pageTimes = { '/': 0.1, '/api': 0.2, 'POST /a': 0.3 };
const mixOf = (times: Record<string, number>, answers?: number): Result =>
  result([withPages(workers, pageTimes, answers), withPages(openFileCache, times, answers)]);

test.each<[string, Record<string, number>, string]>([
  [
    'one page',
    { ...pageTimes, '/api': 0.282 },
    'open-file-cache takes another time than workers for /api (+41 %); no difference is seen on the other 2 pages compared.',
  ],
  [
    'all pages',
    { '/': 0.05, '/api': 0.2 * 3, 'POST /a': 0.36 },
    'open-file-cache takes another time than workers for /api (3 times), / (−50 %) and POST /a (+20 %).',
  ],
  [
    'less than the page before may cause',
    { ...pageTimes, '/api': 0.204 },
    'Loaded one at a time, no page is clearly faster or slower on open-file-cache than on workers.',
  ],
])('a difference on %s of a mix', (_, times, line) => {
  expect(pageLines(mixOf(times))).toEqual([line]);
});

test('pages of a mix are not compared if one is another page under load', () => {
  const side = withPages(openFileCache, { ...pageTimes, '/api': 0.282 });
  const { pages } = side.rounds[0]?.phases[0] as Phase;
  const empty = pages.map((page) => ({ ...page, ...(page.page === '/api' && { bodyRatio: 0 }) }));
  const emptied = changed(side, () => ({ pages: empty }));
  expect(pageLines(result([withPages(workers, pageTimes), emptied]))).toEqual([]);
});

test('pages of a mix need enough responses', () => {
  expect(pageLines(mixOf({ ...pageTimes, '/api': 0.5 }, 3))).toEqual([]);
  expect(pageLines(both)).toEqual([]);
  expect(pagesPart(both, 10)).toEqual([]);
});

test('the table of a mix shows the most requested pages, and counts the others', () => {
  const [part] = pagesPart(mixOf({ ...pageTimes, '/api': 0.4 }), 2);
  expect(part?.tables[0]?.rows.map((cells) => cells.map(cellText).join('|'))).toEqual([
    expect.stringMatching(/^\/\|34 %\|100\|1\.5\|3\.0\|100\|1\.5\|3\.0\|.* same$/),
    expect.stringMatching(/^\/api\|33 %\|100\|1\.5\|3\.0\|100\|1\.5\|3\.0\|2 times \[.*\] slower$/),
  ]);
  expect(part?.below[1]).toBe('1 page more is in report.html.');
});
