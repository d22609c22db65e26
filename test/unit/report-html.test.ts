// The page of a run as text: what stands in it, and that nothing in it can break out of it or reach anyone.
import { readFileSync } from 'node:fs';
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  configDifferences,
  configsHtml,
  differencesHtml,
} from '../../lib/report/html/differences.ts';
import type {
  Bars,
  Figure,
  Percentiles,
  PlotData,
  Rounds,
  Streams,
} from '../../lib/report/html/figure.ts';
import { headlineHtml } from '../../lib/report/html/headline.ts';
import { htmlReport, writeHtmlReport } from '../../lib/report/html/run-page.ts';
import { Html, html, scriptJson, tableHtml } from '../../lib/report/html/markup.ts';
import {
  histogramFigures,
  ladderFigures,
  percentileFigures,
  ratioFigures,
  roundFigures,
  streamFigures,
} from '../../lib/report/charts.ts';
import { severalPage } from '../../lib/report/html/several-page.ts';
import { tableParts } from '../../lib/report/run-tables.ts';
import { textOf } from '../../lib/report/table.ts';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import type { Comparison, Phase, Result } from '../../lib/result/result.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { latency, phase } from '../fixtures/phase.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const both = result([workers, openFileCache]);
const about = (rps: number): { rps: number[] } => ({
  rps: [0.99, 1, 1.01, 1.005].map((off) => rps * off),
});
const none = { configs: [] };

/** The same result, its comparison changed. */
const compared = (changes: Partial<Comparison>, more: Partial<Result> = {}): Result => ({
  ...both,
  comparisons: both.comparisons.map((one) => ({ ...one, ...changes })),
  ...more,
});
/** The same variant, its phases changed. */
const changed = (
  variant: MeasuredVariant,
  changes: (one: Phase) => Partial<Phase>,
): MeasuredVariant => ({
  ...variant,
  rounds: variant.rounds.map(({ round, phases }) => ({
    round,
    phases: phases.map((one) => ({ ...one, ...changes(one) })),
  })),
});
/** What a reader sees. */
const plain = (part: Html): string =>
  part.text
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('\u00a0', ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

const dataOf = <T extends PlotData>([figure]: readonly Figure[]): T => {
  if (figure === undefined) throw new Error('no figure');
  return figure.data as T;
};

describe('markup', () => {
  test('escapes all that is not HTML already, in content and in attributes', () => {
    const text = '<script>"&\'';
    expect(html`<p title="${text}">${text}${[text, new Html('<b>')]}${1.5}</p>`.text).toBe(
      "<p title=\"&lt;script&gt;&quot;&amp;'\">&lt;script&gt;&quot;&amp;'&lt;script&gt;&quot;&amp;'<b>1.5</p>",
    );
  });

  test('JSON in a script element cannot end it', () => {
    const value = { name: '</script><!--<script>\u2028' };
    const { text } = scriptJson(value);
    expect(text).not.toMatch(/</);
    expect(JSON.parse(text)).toEqual(value);
  });

  test("a table has the cells of the terminal's, headings with their scope, and marked verdicts", () => {
    const [part] = tableParts(both);
    const table = part?.tables[0];
    if (table === undefined) throw new Error('no table');
    const { text } = tableHtml(table, 'the table');
    const plain = text.replaceAll(/<[^>]+>/g, '\n').replaceAll('&lt;', '<');
    for (const cell of table.rows
      .flat()
      .map(textOf)
      .filter((one) => one !== ''))
      expect(plain.replaceAll('\n', '')).toContain(cell);
    expect(text).toContain('<th scope="colgroup" colspan="2" class="group">published</th>');
    expect(text).toContain(
      '<colgroup span="1"></colgroup><colgroup span="2"></colgroup><colgroup span="9"></colgroup><thead>',
    );
    expect(text.match(/<th scope="col" /g)).toHaveLength(table.columns.length);
    expect(text.match(/<th scope="row" /g)).toHaveLength(2);
    expect(text).toContain('×1.33 [1.31, 1.34] <span class="verdict faster">faster</span>');
    expect(tableHtml({ columns: table.columns, rows: [] }, 'empty').text).toBe('');
  });
});

test('bars are for the eye alone, below a heading', async () => {
  const sweep = await h2Result('h2-stream-sweep', {
    'nginx-http1': about(60_000),
    'streams-10': about(110_000),
    'streams-2': about(72_000),
    'streams-1': about(6000),
  });
  const [table] = streamFigures(sweep).flatMap(({ tables }) => tables);
  const { text } = tableHtml(table as never, 'streams');
  expect(text).not.toMatch(/<th [^>]*><\/th>/);
  expect(text.match(/<span aria-hidden="true">[█-▏]+[^<]*<\/span>/g)).toHaveLength(4);
  expect(text.replaceAll(/<span aria-hidden="true">.*?<\/span>/g, '')).not.toMatch(/[█-▏│]/);
  expect(text).not.toContain('colgroup');
});

describe('the headline', () => {
  const by = (
    metric: Comparison['metric'],
    ratio: number,
    verdict: Comparison['verdict'],
    more: Partial<Comparison> = {},
  ): string =>
    /<h1>(.*?)<\/h1>/
      .exec(
        headlineHtml(
          compared({
            metric,
            ratio,
            ci95: [ratio * 0.99, ratio * 1.01],
            verdict,
            why: 'needs 4 rounds',
            ...more,
          }),
        ).text,
      )?.[1]
      ?.replaceAll('\u00a0', ' ') ?? '';

  test.each([
    ['rps', 1.089, 'faster', 'open-file-cache is 8.9 % faster than workers'],
    ['rps', 0.17, 'slower', 'open-file-cache is 83 % slower than workers'],
    ['rps', 6, 'faster', 'open-file-cache is 6 times as fast as workers'],
    ['cpu', 0.22, 'faster', 'open-file-cache uses 22 % of the CPU of workers'],
    ['cpu', 8.13, 'slower', 'open-file-cache uses 8.13 times the CPU of workers'],
    ['p99', 1.5, 'slower', 'open-file-cache is slower than workers: p99 +50 %'],
    ['rps', 1.001, 'same', 'open-file-cache is as fast as workers, within 1 %'],
    ['cpu', 1.001, 'same', 'open-file-cache is as cheap as workers, within 1 %'],
    ['rps', 1.01, 'inconclusive', 'Not decided whether open-file-cache is faster than workers'],
    ['rps', 1.01, 'none', 'No verdict on open-file-cache against workers: needs 4 rounds'],
  ] as const)('is the verdict with its size: %s %f %s', (metric, ratio, verdict, words) => {
    expect(by(metric, ratio, verdict)).toBe(words);
  });

  test('has its colour, and with it what is known of it, a bar and the title', () => {
    const { text } = headlineHtml(both);
    expect(text).toContain('<div class="effect faster">');
    expect(plain(headlineHtml(both))).toBe(
      'open-file-cache is 33 % faster than workers +33 % (95 % interval +31 % to +34 %); the article saw +12 %. slower, −27 % the same faster, +36 % nginx remembers open files',
    );
    expect(by('rps', 1.3, 'faster', { delayNotHeld: ['workers'] })).toMatch(/, delay not held$/);
    expect(headlineHtml(compared({}, { state: 'partial', looks: [10] })).text).toMatch(
      /<div class="effect inconclusive"><div><h1>.*, not final<\/h1>/,
    );
  });

  test('has the effect from the middle of its bar and the interval around its end, better ones to the right', () => {
    const places = (of: Result): number[][] =>
      [...headlineHtml(of).text.matchAll(/<[ib] style="left:([\d.]+)%;width:([\d.]+)%"/g)].map(
        ([, left, width]) => [Number(left), Number(left) + Number(width)],
      );
    const [effect = [], interval = []] = places(compared({ ratio: 1.2, ci95: [1.1, 1.3] }));
    const at = (ratio: number): number => 50 + (50 * Math.log(ratio)) / (1.05 * Math.log(1.3));
    for (const [index, place] of [50, at(1.2), at(1.1), at(1.3)].entries())
      expect([...effect, ...interval][index]).toBeCloseTo(place, 1);
    const [shorter = []] = places(compared({ metric: 'p99', ratio: 0.8, ci95: [0.7, 0.9] }));
    expect(shorter[0]).toBe(50);
    expect(shorter[1]).toBeGreaterThan(60);
    // Rounds that are far apart have no interval, what has no verdict no bar.
    expect(
      places(compared({ ratio: 1.2, ci95: [0, Infinity], verdict: 'inconclusive' })),
    ).toHaveLength(1);
    expect(places(compared({ verdict: 'none' }))).toEqual([]);
  });

  test('counts several verdicts, and has a line for each', () => {
    const refusing = changed({ ...openFileCache, name: 'refusing' }, ({ requests }) => ({
      responses: { '2xx': 0, '3xx': 0, '4xx': requests, '5xx': 0 },
    }));
    const text = plain(
      headlineHtml(result([workers, openFileCache, { ...openFileCache, name: 'other' }, refusing])),
    );
    expect(text).toMatch(
      /^Against workers: 2 faster and 1 without a verdict open-file-cache is 33 % faster than workers .* other is 33 % faster than workers /,
    );
    expect(text).toContain(
      'No verdict on refusing against workers: 100 % of the requests of refusing failed (measured +33 %)',
    );
    expect(text).toMatch(/No request of refusing succeeded: [\d,]+ answers with 4xx\./);
    const steps = result([
      workers,
      openFileCache,
      {
        ...openFileCache,
        name: 'step',
        against: 'open-file-cache',
        rounds: workers.rounds,
        setup: 'step',
      },
    ]);
    expect(plain(headlineHtml(steps))).toMatch(/^2 comparisons: 1 faster and 1 slower /);
  });

  test('is the title where nothing is compared, and of a config against itself what was found', () => {
    expect(headlineHtml(result([workers])).text).toMatch(/^<h1>nginx remembers open files<\/h1>/);
    const itself = (changes: Partial<Comparison>): string =>
      headlineHtml(compared(changes, { control: true })).text.replaceAll('\u00a0', ' ');
    expect(itself({ ratio: 1.005, ci95: [0.99, 1.02], verdict: 'inconclusive' })).toContain(
      '<div class="effect same"><div><h1>open-file-cache and workers are the same, and not called different</h1><p>+0.5 % (95 % interval −1 % to +2 %).</p>',
    );
    expect(itself({})).toContain(
      '<div class="effect inconclusive"><div><h1>open-file-cache is called faster than workers, and they are the same</h1><p>+33 % ',
    );
  });
});

describe('what differs', () => {
  const sides = (...variants: MeasuredVariant[]): string =>
    plain(
      differencesHtml(
        result(variants),
        [{ variant: 'none', file: 'nginx.conf', text: '' }],
        new Html(''),
      ),
    );
  test('in the answers: status, bytes', () => {
    expect(sides(workers, openFileCache)).toBe(
      'What differs All sides answer alike: 2xx, 612 B of body, 238 B of headers.',
    );
    const smaller = changed(openFileCache, ({ bytes }) => ({
      bytes: { ...bytes, body: bytes.body / 4 },
    }));
    expect(sides(workers, smaller)).toBe(
      'What differs side B of body workers 612 open-file-cache 153',
    );
    const by = (factor: number): MeasuredVariant =>
      changed(openFileCache, ({ bytes }) => ({ bytes: { ...bytes, body: bytes.body * factor } }));
    expect(sides(workers, by(615 / 612))).toBe(
      'What differs side B of body workers 612 open-file-cache 615',
    );
    // Means of several pages.
    expect(sides(workers, by(1.001))).toMatch(/All sides answer alike: /);
    const limited = changed(openFileCache, ({ requests }) => ({
      responses: {
        '2xx': requests * 0.25,
        '3xx': 0,
        '4xx': requests * 0.5,
        '5xx': requests * 0.25,
      },
      statuses: { 429: requests * 0.5 },
    }));
    expect(sides(workers, limited)).toContain(
      'side status workers 2xx open-file-cache 2xx 25.00 %, 429 50.00 %, 5xx 25.00 %',
    );
  });

  test('in servers and loads, and in the names of configs whose text is gone', () => {
    const h2o = {
      ...openFileCache,
      server: { name: 'h2o', version: '2.2.5', workers: 1, config: ['base'], redirections: [] },
      load: { ...openFileCache.load, command: 'wrk -c 400' },
    };
    expect(sides(workers, h2o)).toContain(
      'side server load workers nginx 1.22.1 HTTP/1.1, wrk -c 100 -t 10 -d 10 open-file-cache h2o 2.2.5 HTTP/1.1, wrk -c 400',
    );
    const renamed = {
      ...openFileCache,
      server: {
        name: 'nginx',
        version: '1.22.1',
        workers: 1,
        config: ['base', 'open-file-cache'],
        redirections: [],
      },
    };
    expect(plain(differencesHtml(result([workers, renamed]), [], new Html('')))).toContain(
      'side config workers base workers open-file-cache base open-file-cache',
    );
    expect(differencesHtml(result([workers]), [], html`<p>note</p>`).text).toBe('<p>note</p>');
  });
});

describe('configs', () => {
  const config = (port: number, folder: string, line: string): string =>
    `# Composed of x\nlisten 127.0.0.1:${port};\nroot /tmp/bakeoff-server-${folder}/www;\nssl_certificate_key "/tmp/bakeoff-server-${folder}/${randomUUID()}/0-a.key";\n${line}\nkeep <this>;\n`;
  const configs = [
    { variant: 'workers', file: 'nginx.conf', text: config(1234, '1-aB', 'sendfile on;') },
    {
      variant: 'open-file-cache',
      file: 'nginx.conf',
      text: config(4321, '1-cD', 'open_file_cache max=100;'),
    },
  ];
  const differences = (of: Result, [before = '', after = '']: readonly string[]): string[] =>
    [
      ...configDifferences(of, [
        { variant: 'workers', file: 'nginx.conf', text: before },
        { variant: 'open-file-cache', file: 'nginx.conf', text: after },
      ]).text.matchAll(/<(?:ins|del)>(.*?)</g),
    ].map(([, line]) => line ?? '');

  test('are shown with the lines in which they differ, ports, folders, comments and order aside', () => {
    const { text } = configDifferences(both, configs);
    expect(text).toContain(
      '<summary>2 lines of the configs of open-file-cache (+) and workers (−) differ</summary>',
    );
    expect(text).toContain(
      '<ins>+ open_file_cache max=100;</ins>\n<del>− sendfile on;</del>\n</code>',
    );
    expect(configsHtml(both, configs).text).toContain('keep &lt;this&gt;;');
    expect(configsHtml(both, configs).text).not.toContain('own files');
    expect(
      differences(both, ['a 1;\nb 1;\nc 1;\n', '# about b\nc 1;\n  # deeper\nb 1;\na 2;\n']),
    ).toEqual(['− a 1;', '+ a 2;']);
  });

  test('have each line behind its blocks, and as often as there are more of it', () => {
    const nginx = (server: string): string =>
      `http {\n    server {\n${server}    }\n    gzip on;\n}\n`;
    const line = (text: string): string => `        ${text}\n`;
    expect(
      differences(both, [
        nginx(line('listen 80;')),
        nginx(
          line('listen 80;') +
            line('listen 80;') +
            line('location / {') +
            line('    root /a;') +
            line('}'),
        ),
      ]),
    ).toEqual([
      '+ http › server › listen 80;',
      '+ http › server › location / {',
      '+ http › server › location / › root /a;',
    ]);
    expect(
      differences(both, ['hosts:\n  a:\n    paths: 1\n', 'hosts:\n  a:\n    paths: 2\n']),
    ).toEqual(['− hosts › a › paths: 1', '+ hosts › a › paths: 2']);
  });

  test('are folded where many lines differ', () => {
    const many = (mark: string, count: number): string =>
      Array.from({ length: count }, (_, index) => `${mark}${index};\n`).join('');
    const open = (count: number): boolean =>
      configDifferences(both, [
        { ...(configs[0] as (typeof configs)[number]), text: many('a', count) },
        { ...(configs[1] as (typeof configs)[number]), text: '' },
      ]).text.includes('<details open>');
    expect([open(12), open(13)]).toEqual([true, false]);
  });

  test("of a person's own differ in what they say, not in where it comes from", () => {
    const own = (file: string, more: string): string =>
      `# /a/${file} as it runs here: with what it includes\nhttp {  # from /a/${file}:3\n${more}    listen 127.0.0.1:1;  # from /a b/${file}:12\n}\n`;
    expect(
      differences(both, [
        own('one.conf', ''),
        own('two.conf', '    sendfile on;  # from /a/two.conf:4\n'),
      ]),
    ).toEqual(['+ http › sendfile on;']);
  });

  test("that are the same say so, and where only the order differs; a person's own are pointed out", () => {
    const [first, second] = configs as [(typeof configs)[number], (typeof configs)[number]];
    const own = structuredClone(both);
    Object.assign(own.variants[0]?.server ?? {}, { config: ['/home/anna/nginx.conf'] });
    expect(configDifferences(own, [first, { ...second, text: first.text }]).text).toBe(
      '<p>The configs of open-file-cache (+) and workers (−) have the same settings.</p>\n',
    );
    expect(
      configDifferences(own, [
        { ...first, text: 'a;\nb;\n' },
        { ...second, text: 'b;\na;\n' },
      ]).text,
    ).toContain('the same settings, in another order.');
    expect(configsHtml(own, configs).text).toContain('own files');
  });
});

describe('figures', () => {
  test('bars are the ratios of the result, published beside measured', () => {
    const {
      panels: [panel],
      reference,
    } = dataOf<Bars>(ratioFigures(both));
    expect(reference).toBe(1);
    expect(panel?.bars).toEqual([
      {
        group: 'open-file-cache',
        published: true,
        value: both.comparisons[0]?.publishedRatio,
        label: '×1.12',
      },
      {
        group: 'open-file-cache',
        published: false,
        value: both.comparisons[0]?.ratio,
        label: '×1.33',
      },
    ]);
    // Nothing to stand beside.
    expect(
      ratioFigures(
        result([
          { ...workers, published: null },
          { ...openFileCache, published: null },
        ]),
      ),
    ).toEqual([]);
  });

  test('each round has its sides, by what they are judged by', () => {
    const { axis, names, points } = dataOf<Rounds>(roundFigures(both));
    expect([axis, names]).toEqual(['requests/s', ['workers', 'open-file-cache']]);
    const value = (of: Result, name: string, round: number): number =>
      dataOf<Rounds>(roundFigures(of)).points.find(
        (one) => one.name === name && one.round === round,
      )?.value ?? NaN;
    for (const [index, ratio] of both.comparisons[0]?.roundRatios.entries() ?? [])
      expect(
        value(both, 'open-file-cache', index + 1) / value(both, 'workers', index + 1),
      ).toBeCloseTo(ratio, 9);
    expect(points).toHaveLength(12);
    expect(dataOf<Rounds>(roundFigures(compared({ metric: 'cpu' }))).axis).toBe(
      'CPU µs per request',
    );
    expect(value(compared({ metric: 'cpu' }), 'workers', 1)).toBeCloseTo(15.9, 6);
    expect(value(compared({ metric: 'p99' }), 'workers', 1)).toBe(2.13);
    // What failed is no speed, and one side alone is no pair.
    expect(
      roundFigures(
        result([
          workers,
          changed(openFileCache, ({ requests }) => ({
            responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': requests },
          })),
        ]),
      ),
    ).toEqual([]);
    expect(
      roundFigures({
        ...both,
        search: {
          within: { metric: 'p99', ms: 5 },
          found: [],
          steps: [
            {
              round: 1,
              variant: 'workers',
              rate: 1000,
              made: 1000,
              latencyMs: { p50: 1, p90: 1, p99: 1 },
              kept: true,
              why: '',
            },
          ],
        },
      }),
    ).toEqual([]);
  });

  test('percentiles end with the longest of so many responses', () => {
    const few = result([
      {
        ...workers,
        rounds: [
          {
            round: 3,
            phases: [
              phase({
                requests: 150,
                responses: { '2xx': 48, '3xx': 0, '4xx': 0, '5xx': 2 },
                latencyMs: latency(2, 5, 9),
              }),
            ],
          },
        ],
      },
    ]);
    const [line] = dataOf<Percentiles>(percentileFigures(few)).lines;
    expect(line).toMatchObject({ name: 'workers', round: null });
    expect(line?.points).toEqual([
      { at: 1, name: 'min', ms: 0.1 },
      { at: 2, name: '50 %', ms: 2 },
      { at: 4, name: '75 %', ms: 2 },
      { at: 10, name: '90 %', ms: 5 },
      { at: 20, name: '95 %', ms: 5 },
      { at: 50, name: 'max', ms: 9 },
    ]);
    expect(
      dataOf<Percentiles>(percentileFigures(both)).lines.filter(({ round }) => round === null),
    ).toHaveLength(2);
  });

  test('of several load phases are one each; of an unanswered variant none', async () => {
    const images = await h2Result('nghttpd-img', {
      'nghttpd-1024': { rps: [1330], phases: [{}, {}, {}] },
      'nghttpd-4096': { rps: [800], phases: [{}, {}, {}] },
    });
    expect(percentileFigures(images).map(({ title }) => title)).toEqual(
      [1, 2, 3].map((number) => `Latency by percentile, phase ${number}`),
    );
    const dead = result([
      {
        ...workers,
        rounds: [
          { round: 1, phases: [phase({ requests: 0, latencyMs: latency(0, 0, 0, { min: 0 }) })] },
        ],
      },
    ]);
    expect(percentileFigures(dead)).toEqual([]);
  });

  test('a ladder is by its first row, published and measured', async () => {
    const ladder = await h2Result('h2o-vs-nginx', {
      'h2o-initial': about(100_000),
      'h2o-tuned': about(101_000),
      'nginx-initial': about(57_000),
      'nginx-workers': about(58_000),
      'nginx-open-file-cache': about(92_000),
      'nginx-accept-mutex-delay': about(93_000),
      'nginx-tcp-nopush': about(105_000),
    });
    const bars = dataOf<Bars>(ladderFigures(ladder)).panels[0]?.bars ?? [];
    expect(bars).toHaveLength(14);
    expect(
      bars.find(({ group, published }) => group === 'nginx-tcp-nopush' && !published)?.value,
    ).toBeCloseTo(1.05, 9);
    expect(
      bars.find(({ group, published }) => group === 'nginx-tcp-nopush' && published)?.value,
    ).toBeCloseTo(824_799.77 / 582_269.87, 4);
    // Its steps are not shown a second time.
    const groups = dataOf<Bars>(ratioFigures(ladder)).panels[0]?.bars.map(({ group }) => group);
    expect(groups).not.toContain('h2o-tuned against h2o-initial');
    expect(ladderFigures(both)).toEqual([]);
  });

  test('a histogram has a panel per variant with the shares of both sources', async () => {
    const buckets = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5].map((toMs, index, all) => ({
      fromMs: all[index - 1] ?? 0,
      toMs,
      count: index === 2 ? 30 : 10,
    }));
    const rate = await h2Result('h2o-vs-nginx-h2-rate', {
      nginx: {
        rps: [1000],
        phases: [{ buckets: [...buckets, { fromMs: 5, toMs: null, count: 0 }] }],
      },
      h2o: { rps: [1000] },
    });
    const { panels } = dataOf<Bars>(histogramFigures(rate));
    expect(panels.map(({ title }) => title)).toEqual(['nginx', 'h2o']);
    const nginx = panels[0]?.bars ?? [];
    expect(
      nginx.filter(({ published }) => !published).map(({ value }) => Math.round(value * 100) / 100),
    ).toEqual([9.09, 9.09, 27.27, 9.09, 9.09, 9.09, 9.09, 9.09, 9.09, 0]);
    expect(nginx.filter(({ published }) => published)).toHaveLength(10);
    // The load sets requests/s: their ratio is no effect, and that of latencies is.
    expect(ratioFigures(rate)).toEqual([]);
    expect(dataOf<Rounds>(roundFigures(rate)).axis).toBe('p99, ms');
  });

  test('a sweep is requests/s by streams', async () => {
    const sweep = await h2Result('h2-stream-sweep', {
      'nginx-http1': about(60_000),
      'streams-100': about(150_000),
      'streams-10': about(110_000),
      'streams-2': about(72_000),
      'streams-1': about(54_000),
    });
    const { line, points } = dataOf<Streams>(streamFigures(sweep));
    expect(line).toBe('nginx-http1');
    expect(points.map(({ streams, ratio }) => [streams, Math.round(ratio * 100) / 100])).toEqual([
      [100, 2.5],
      [10, 1.83],
      [2, 1.2],
      [1, 0.9],
    ]);
    expect(ratioFigures(sweep)).toEqual([]);
    expect(streamFigures(both)).toEqual([]);
  });
});

describe('the page', () => {
  test('is one file that may reach nobody, with its own script alone', async () => {
    const text = await htmlReport(both, none);
    const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text)?.[1] ?? '';
    expect(policy).toMatch(/^default-src 'none'; /);
    const scripts = [...text.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(
      (match) => match[1] ?? '',
    );
    expect(scripts).toHaveLength(1);
    expect(policy).toContain(
      `script-src 'sha256-${createHash('sha256')
        .update(scripts[0] ?? '')
        .digest('base64')}'`,
    );
    expect(text).not.toMatch(/<(?:link|img|iframe|script)[^>]*(?:src|href)="(?!data:)/);
    expect(text.length).toBeLessThan(700_000);
  });

  test('says all that the terminal says, without its script', async () => {
    const text = (await htmlReport(both, none))
      .replaceAll(/<script[\s\S]*?<\/script>/g, '')
      .replaceAll('\u00a0', ' ');
    for (const words of [
      'nginx remembers open files',
      'open-file-cache is 33 % faster than workers',
      '+33 % (95 % interval +31 % to +34 %); the article saw +12 %.',
      'nginx was the limit',
      '×1.33 [1.31, 1.34]',
      'Stored 7,034,450 of 7,034,450',
      'Linux 6.18',
    ]) {
      expect(text).toContain(words);
    }
    expect(text).toContain('<noscript>');
  });

  test('of a run with warnings, a hostile title and no figures at all still holds', async () => {
    const odd = result(
      [{ ...workers, server: null, publishedOnly: 'it is gone', rounds: [], published: {} }],
      {
        title: '</title><script>alert(1)</script>',
        warnings: ['<b>mind</b>'],
        state: 'partial',
        looks: [6],
      },
    );
    const text = await htmlReport(odd, none);
    expect(text).not.toContain('<script');
    expect(text).toContain('&lt;b&gt;mind&lt;/b&gt;');
    expect(text).toContain('Ended early: 0 of 6 rounds');
  });

  test('of several runs has a group of columns for each, and says in what they differ', async () => {
    const later = {
      ...both,
      run: '2026-11-21T09-00-00-nginx-open-file-cache',
      environment: { ...both.environment, kernel: 'Linux 6.19' },
    };
    const other = await h2Result('nghttpd-index', {
      nghttpd: about(80_000),
      nginx: about(54_000),
      h2o: about(93_000),
    });
    const text = await severalPage([both, later, other]);
    expect(
      text.match(
        /<th scope="colgroup" colspan="5" class="group">2026-11-2[01] \d\d:\d\d:\d\d<\/th>/g,
      ),
    ).toHaveLength(3);
    expect(text).toContain('These runs differ in: system.');
    expect(text.match(/<h2>/g)).toHaveLength(2);
    expect(
      [...text.matchAll(/<strong>(open-file-cache .*?)<\/strong>(.*?)</g)].map(
        ([, words, run]) => `${words}${run}`,
      ),
    ).toEqual([
      'open-file-cache is 33\u00a0% faster than workers, 2026-11-20 08:15:30',
      'open-file-cache is 33\u00a0% faster than workers, 2026-11-21 09:00:00',
    ]);
  });

  test('of several runs says where they were loaded otherwise, and what was only the least', async () => {
    const [first, second] = both.variants;
    const otherLoad = {
      ...both,
      run: '2026-11-21T09-00-00-nginx-open-file-cache',
      variants: both.variants.map((one) => ({
        ...one,
        load: { ...one.load, command: 'wrk -c 400 -t 10 -d 10' },
      })),
    };
    expect(await severalPage([both, otherLoad])).toContain('These runs differ in: load.');
    const byCpu = {
      ...both,
      run: otherLoad.run,
      comparisons: both.comparisons.map((one) => ({ ...one, metric: 'cpu' as const })),
    };
    expect(await severalPage([both, byCpu])).toContain('These runs differ in: judged by.');
    // Also in what a heading has no room for, and of what is in no table.
    const three = (command: string): Result => ({
      ...both,
      run: otherLoad.run,
      variants: [...both.variants, ...both.variants.slice(1)].map((one, index) => ({
        ...one,
        name: `v${index}`,
        load: { ...one.load, command: index === 2 ? command : `wrk -c ${index + 1}` },
      })),
    });
    expect(await severalPage([three('wrk -c 3'), three('wrk -c 400')])).toContain(
      'These runs differ in: load.',
    );
    const server = {
      name: 'nginx',
      version: '1.22.1',
      workers: 8,
      config: ['base', 'other'],
      redirections: [],
    };
    expect(
      await severalPage([
        both,
        { ...both, variants: both.variants.map((one) => ({ ...one, server })) },
      ]),
    ).toContain('These runs differ in: workers, configs.');
    expect(await severalPage([both, both])).toContain(
      'No difference is known in how and where these runs were made; what is in their configs was not compared.',
    );
    const found = [first, second].map((one) => ({
      variant: one?.name ?? '',
      rate: 39_300,
      ci95: null,
      atLeast: true,
    }));
    expect(
      await severalPage([
        { ...both, search: { within: { metric: 'p99', ms: 5 }, found, steps: [] } },
      ]),
    ).toContain('at least 39,300');
  });

  test('of several runs of one scenario compares them, where both have rounds enough', async () => {
    const slower = {
      ...openFileCache,
      rounds: openFileCache.rounds.map(({ round, phases }) => ({
        round,
        phases: phases.map((one) => ({ ...one, seconds: 2 * one.seconds })),
      })),
    };
    const again = {
      ...result([workers, slower]),
      run: '2026-11-21T09-00-00-nginx-open-file-cache',
    };
    const rowsOf = (text: string): string[] =>
      [
        ...(/<h3>Run against run<\/h3>[^]*?<\/table>/.exec(text)?.[0] ?? '').matchAll(
          /<tr[^]*?<\/tr>/g,
        ),
      ].map(([row]) =>
        row
          .replaceAll(/<[^>]*>/g, ' ')
          .replaceAll(/\s+/g, ' ')
          .trim(),
      );
    expect(rowsOf(await severalPage([both, again]))).toEqual([
      '2026-11-21 09:00:00 against 2026-11-20 08:15:30',
      'variant requests/s ratio to its baseline',
      'workers ×1.0000 [0.9997, 1.0003]',
      expect.stringMatching(/^open-file-cache ×0\.50\d* \[.*\] ×0\.50\d* \[.*\]$/),
    ]);
    const byCpu = {
      ...both,
      run: again.run,
      comparisons: both.comparisons.map((one) => ({ ...one, metric: 'cpu' as const })),
    };
    expect(rowsOf(await severalPage([both, byCpu]))[1]).toBe('variant requests/s');
    const short = result(
      [workers, openFileCache].map((variant) => ({
        ...variant,
        rounds: variant.rounds.slice(0, 3),
      })),
    );
    expect(await severalPage([both, short])).not.toContain('Run against run');
    expect(await severalPage([both])).not.toContain('Run against run');

    // What fails is fast, and what a search finds is no load's requests/s.
    const refusing = {
      ...openFileCache,
      rounds: openFileCache.rounds.map(({ round, phases }) => ({
        round,
        phases: phases.map((one) => ({
          ...one,
          responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': one.requests },
        })),
      })),
    };
    const refused = { ...result([workers, refusing]), run: again.run };
    for (const pair of [
      [both, refused],
      [refused, both],
    ])
      expect(rowsOf(await severalPage(pair)).slice(1)).toEqual([
        'variant requests/s',
        expect.stringMatching(/^workers ×/),
      ]);
    const baseRefused = {
      ...result([{ ...workers, rounds: refusing.rounds }, openFileCache]),
      run: again.run,
    };
    expect(rowsOf(await severalPage([both, baseRefused])).slice(1)).toEqual([
      'variant requests/s',
      expect.stringMatching(/^open-file-cache ×/),
    ]);
    const searched = {
      ...both,
      run: again.run,
      search: { within: { metric: 'p99' as const, ms: 5 }, found: [], steps: [] },
    };
    expect(rowsOf(await severalPage([both, searched]))[1]).toBe('variant requests/s');
    expect(rowsOf(await severalPage([searched, searched]))[1]).toBe(
      'variant requests/s ratio to its baseline',
    );
  });

  test('of several runs has how much succeeded, their footnotes, and nothing published beside several phases', async () => {
    const text = (
      await severalPage([both, { ...both, footnotes: ['The bodies differ.'] }])
    ).replaceAll('\u00a0', ' ');
    expect(text.match(/<td class="right">100 %<\/td>/g)).toHaveLength(4);
    expect(text).toContain('<ul class="footnotes"><li>The bodies differ.</li>');
    expect(text).toContain('class="group">published</th>');
    const images = await h2Result('nghttpd-img', {
      'nghttpd-1024': { rps: [1330], phases: [{}, {}, {}] },
    });
    expect(await severalPage([images, images])).not.toContain('class="group">published</th>');
  });

  test('says how much time of cores a quota is', async () => {
    expect(
      await htmlReport({ ...both, environment: { ...both.environment, cpuQuota: 1 } }, none),
    ).toContain('<td class="left">the time of 1 core</td>');
  });

  test('has each load in detail, a table with a name for each part', async () => {
    const page = await htmlReport(both, none);
    const [, detail = ''] = page.split('<h2>Each load in detail</h2>');
    expect(
      [
        ...(detail.split('</section>')[0] ?? '').matchAll(/role="region" aria-label="([^"]*)"/g),
      ].map(([, name]) => name),
    ).toEqual([
      'load',
      'traffic',
      'time of a request',
      'time to connect',
      'time to first byte',
      'requests/s of a connection',
      'requests/s of a thread',
    ]);
  });

  test('is written whole beside the run', async () => {
    const folder = newFolder();
    const file = await writeHtmlReport(folder, both);
    expect(file).toBe(join(folder, 'report.html'));
    expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
    await expect(writeHtmlReport(join(folder, 'gone'), both)).rejects.toThrow(/ENOENT/);
  });
});
