// The page of a run as text: what stands in it, and that nothing in it can break out of it or reach anyone.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configsHtml } from '../../lib/report/html/configs.ts';
import { effectFigures } from '../../lib/report/html/effects.ts';
import type { Bars, Effects, Figure, Percentiles, PlotData, Streams, Timeline } from '../../lib/report/html/figure.ts';
import { readRunFiles, writeHtmlReport } from '../../lib/report/html/index.ts';
import { diffLines } from '../../lib/report/html/line-diff.ts';
import { html, Html, scriptJson } from '../../lib/report/html/markup.ts';
import { tableHtml } from '../../lib/report/html/page.ts';
import { percentileFigures } from '../../lib/report/html/percentiles.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { severalPage } from '../../lib/report/html/several-page.ts';
import { histogramFigures, ladderFigures, ratioFigures, streamFigures } from '../../lib/report/html/shapes.ts';
import { timelineFigures, type Sample } from '../../lib/report/html/timeline.ts';
import { tableParts } from '../../lib/report/parts.ts';
import { textOf } from '../../lib/report/table.ts';
import type { Result } from '../../lib/result/result.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { latency, phase } from '../fixtures/phase.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const both = result([workers, openFileCache]);
const about = (rps: number): { rps: number[] } => ({ rps: [0.99, 1, 1.01, 1.005].map((off) => rps * off) });
const none = { samples: [], configs: [] };

const dataOf = <T extends PlotData>([figure]: readonly Figure[]): T => {
  if (figure === undefined) throw new Error('no figure');
  return figure.data as T;
};

describe('markup', () => {
  test('escapes all that is not HTML already, in content and in attributes', () => {
    const text = '<script>"&\'';
    expect(html`<p title="${text}">${text}${[text, new Html('<b>')]}${1.5}</p>`.text)
      .toBe('<p title="&lt;script&gt;&quot;&amp;\'">&lt;script&gt;&quot;&amp;\'&lt;script&gt;&quot;&amp;\'<b>1.5</p>');
  });

  test('JSON in a script element cannot end it', () => {
    const value = { name: '</script><!--<script>\u2028' };
    const { text } = scriptJson(value);
    expect(text).not.toMatch(/</);
    expect(JSON.parse(text)).toEqual(value);
  });

  test('a table has the cells of the terminal\'s, headings with their scope, and marked verdicts', () => {
    const [part] = tableParts(both);
    const table = part?.tables[0];
    if (table === undefined) throw new Error('no table');
    const { text } = tableHtml(table, 'the table');
    const plain = text.replaceAll(/<[^>]+>/g, '\n').replaceAll('&lt;', '<');
    for (const cell of table.rows.flat().map(textOf).filter((one) => one !== '')) expect(plain.replaceAll('\n', '')).toContain(cell);
    expect(text).toContain('<th scope="colgroup" colspan="2" class="group">published</th>');
    expect(text).toContain('<colgroup span="1"></colgroup><colgroup span="2"></colgroup><colgroup span="9"></colgroup><thead>');
    expect(text.match(/<th scope="col" /g)).toHaveLength(table.columns.length);
    expect(text.match(/<th scope="row" /g)).toHaveLength(2);
    expect(text).toContain('×1.33 [1.31, 1.34] <span class="verdict faster">faster</span>');
    expect(tableHtml({ columns: table.columns, rows: [] }, 'empty').text).toBe('');
  });
});

test('bars are for the eye alone, below a heading', async () => {
  const sweep = await h2Result('h2-stream-sweep', { 'nginx-http1': about(60_000), 'streams-10': about(110_000), 'streams-2': about(72_000), 'streams-1': about(6000) });
  const [table] = streamFigures(sweep).flatMap(({ tables }) => tables);
  const { text } = tableHtml(table as never, 'streams');
  expect(text).not.toMatch(/<th [^>]*><\/th>/);
  expect(text.match(/<span aria-hidden="true">[█-▏]+[^<]*<\/span>/g)).toHaveLength(4);
  expect(text.replaceAll(/<span aria-hidden="true">.*?<\/span>/g, '')).not.toMatch(/[█-▏│]/);
  expect(text).not.toContain('colgroup');
});

describe('a line diff', () => {
  const signs = { same: ' ', added: '+', removed: '-' };
  const diff = (before: string, after: string, keyOf?: (line: string) => string): string => (
    diffLines(before.split(''), after.split(''), keyOf).map(({ kind, text }) => signs[kind] + text).join('')
  );
  test.each([
    ['', '', ''], ['abc', 'abc', ' a b c'], ['abc', 'axc', ' a-b+x c'], ['abc', 'ac', ' a-b c'], ['ac', 'abc', ' a+b c'],
    ['abcd', 'bcda', '-a b c d+a'], ['ab', 'cd', '-a-b+c+d'], ['aab', 'ab', ' a-a b'], ['', 'a', '+a'], ['a', '', '-a'],
  ])('%j → %j', (before, after, expected) => {
    expect(diff(before, after)).toBe(expected);
  });

  test('shows the lines of the second where the keys are the same', () => {
    expect(diff('aXb', 'aYc', (line) => (/[XY]/.test(line) ? 'Z' : line))).toBe(' a Y-b+c');
  });

  test('takes long texts in little time: what is beyond its means counts as different', () => {
    const long = (mark: string): string[] => Array.from({ length: 5000 }, (_, index) => `${mark}${index % 7}`);
    const lines = diffLines(['head', ...long('a'), 'tail'], ['head', ...long('b'), 'tail']);
    expect(lines).toHaveLength(10_004);
    expect(lines.filter(({ kind }) => kind === 'same')).toEqual([]);
  });
});

describe('configs', () => {
  const config = (port: number, folder: string, line: string): string => `# Composed of x\nlisten 127.0.0.1:${port};\nroot /tmp/bakeoff-server-${folder}/www;\nssl_certificate_key "/tmp/bakeoff-server-${folder}/${randomUUID()}/0-a.key";\n${line}\nkeep <this>;\n`;
  const configs = [
    { variant: 'workers', file: 'nginx.conf', text: config(1234, '1-aB', 'sendfile on;') },
    { variant: 'open-file-cache', file: 'nginx.conf', text: config(4321, '1-cD', 'open_file_cache max=100;') },
  ];
  test('are shown with the lines in which they differ, ports and folders aside', () => {
    const { text } = configsHtml(both, configs);
    expect(text.match(/<ins>/g)).toHaveLength(2); // In the differences and in the whole.
    expect(text).toContain('<p>2 lines differ from workers:</p>');
    expect(text).toContain('<del>− sendfile on;</del>\n<ins>+ open_file_cache max=100;</ins>');
    expect(text).toContain('keep &lt;this&gt;;');
    expect(text).not.toContain('own files');
  });

  test('of a person\'s own differ in what they say, not in where it comes from', () => {
    const own = (file: string, more: string): string => `# /a/${file} as it runs here: with what it includes\nhttp {  # from /a/${file}:3\n${more}    listen 127.0.0.1:1;  # from /a b/${file}:12\n}\n`;
    const { text } = configsHtml(both, [
      { variant: 'workers', file: 'nginx.conf', text: own('one.conf', '') }, { variant: 'open-file-cache', file: 'nginx.conf', text: own('two.conf', 'sendfile on;  # from /a/two.conf:4\n') },
    ]);
    expect(text).toContain('<p>1 line differs from workers:</p>');
    expect(text).toContain('<ins>+ sendfile on;  # from /a/two.conf:4</ins>');
  });

  test('that are the same say so; a person\'s own are pointed out', () => {
    const same = configs.map((one) => ({ ...one, text: configs[0]?.text ?? '' }));
    const own = structuredClone(both);
    Object.assign(own.variants[0]?.server ?? {}, { config: ['/home/anna/nginx.conf'] });
    const { text } = configsHtml(own, same);
    expect(text).toContain('<p>The same as workers.</p>');
    expect(text).toContain('own files');
    expect(text).not.toContain('<ins>');
  });
});

describe('figures', () => {
  test('bars are the ratios of the result, published beside measured', () => {
    const { panels: [panel], reference } = dataOf<Bars>(ratioFigures(both));
    expect(reference).toBe(1);
    expect(panel?.bars).toEqual([
      { group: 'open-file-cache', published: true, value: both.comparisons[0]?.publishedRatio, label: '×1.12' },
      { group: 'open-file-cache', published: false, value: both.comparisons[0]?.ratio, label: '×1.33' },
    ]);
    // Nothing to stand beside.
    expect(ratioFigures(result([{ ...workers, published: null }, { ...openFileCache, published: null }]))).toEqual([]);
  });

  test('effects have their interval and all rounds, those that lie apart marked', () => {
    const changed: Result = { ...both, comparisons: both.comparisons.map((one) => ({ ...one, outliers: [2] })) };
    const { effects, same } = dataOf<Effects>(effectFigures(changed));
    const [comparison] = both.comparisons;
    expect(same).toBe(0.01);
    expect(effects).toMatchObject([{ name: 'open-file-cache against workers', ratio: comparison?.ratio, interval: comparison?.ci95, verdict: 'faster' }]);
    expect(effects[0]?.rounds).toEqual(comparison?.roundRatios.map((ratio, index) => ({ round: index + 1, ratio, apart: index === 1 })));
  });

  test('of so few rounds that there is no verdict have no interval', () => {
    const two = result([workers, openFileCache].map((variant) => ({ ...variant, rounds: variant.rounds.slice(0, 2) })));
    expect(dataOf<Effects>(effectFigures(two)).effects).toMatchObject([{ interval: null, verdict: 'none', rounds: [{ round: 1 }, { round: 2 }] }]);
  });

  test('percentiles end with the longest of so many responses', () => {
    const few = result([{ ...workers, rounds: [{ round: 3, phases: [phase({ requests: 150, responses: { '2xx': 48, '3xx': 0, '4xx': 0, '5xx': 2 }, latencyMs: latency(2, 5, 9) })] }] }]);
    const [line] = dataOf<Percentiles>(percentileFigures(few)).lines;
    expect(line).toMatchObject({ name: 'workers', round: null });
    expect(line?.points).toEqual([
      { at: 1, name: 'min', ms: 0.1 }, { at: 2, name: '50 %', ms: 2 }, { at: 4, name: '75 %', ms: 2 }, { at: 10, name: '90 %', ms: 5 },
      { at: 20, name: '95 %', ms: 5 }, { at: 50, name: 'max', ms: 9 },
    ]);
    expect(dataOf<Percentiles>(percentileFigures(both)).lines.filter(({ round }) => round === null)).toHaveLength(2);
  });

  test('of several load phases are one each; of an unanswered variant none', async () => {
    const images = await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [1330], phases: [{}, {}, {}] }, 'nghttpd-4096': { rps: [800], phases: [{}, {}, {}] } });
    expect(percentileFigures(images).map(({ title }) => title)).toEqual([1, 2, 3].map((number) => `Latency by percentile, phase ${number}`));
    const dead = result([{ ...workers, rounds: [{ round: 1, phases: [phase({ requests: 0, latencyMs: latency(0, 0, 0, { min: 0 }) })] }] }]);
    expect(percentileFigures(dead)).toEqual([]);
  });

  test('rates over time are requests by the time they took, from the phase\'s begin', () => {
    const beganMs = Date.parse(workers.rounds[0]?.phases[0]?.startedAt ?? '');
    const sample = (atMs: number, responses: number): Sample => ({ variant: 'workers', round: 1, phase: 1, atMs: beganMs + atMs, responses });
    const { lines, rounds } = dataOf<Timeline>(timelineFigures(both, [sample(1000, 500), sample(2000, 700), sample(2500, 300), sample(2510, 1)]));
    expect(lines).toEqual([{ name: 'workers', round: 1, points: [[2, 500], [3, 700], [3.5, 600]] }]);
    expect(rounds).toEqual([{ round: 1, seconds: 2 }]);
    expect(timelineFigures(both, [])).toEqual([]);
    // Its samples are of steps, of which one is told.
    expect(timelineFigures({ ...both, search: { within: { metric: 'p99', ms: 5 }, found: [], steps: [] } }, [sample(1000, 500)])).toEqual([]);
  });

  test('rates over time are by the seconds under load where the record tells them', () => {
    const beganMs = Date.parse(workers.rounds[0]?.phases[0]?.startedAt ?? '');
    const sample = (atMs: number, responses: number, seconds: number): Sample => ({ variant: 'workers', round: 1, phase: 1, atMs: beganMs + atMs, responses, seconds });
    const { lines } = dataOf<Timeline>(timelineFigures(both, [sample(2000, 500, 1), sample(4000, 700, 1), sample(5500, 250, 0.5)]));
    expect(lines[0]?.points).toEqual([[3, 500], [5, 700], [6.5, 500]]);
  });

  test('a record\'s samples are as many as there are, and count what was answered', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'round-1', 'k6-1'), { recursive: true });
    const line = (metric: string, value: number, time: string, tags: object = {}): string => (
      `${JSON.stringify({ metric, type: 'Point', data: { time, value, tags: { variant: 'workers', ...tags } } })}\n`);
    const one = workers.rounds.slice(0, 1);
    const of = result([{ ...workers, rounds: one }]);
    const second = (at: number): string => new Date(Date.UTC(2026, 10, 20) + 1000 * at).toISOString();
    writeFileSync(join(folder, 'round-1', 'k6-1', 'record.ndjson'), [
      line('loadgen_requests', 9, second(0)) + line('loadgen_seconds', 1, second(0)) + line('loadgen_responses', 5, second(0), { class: '2xx' }) + line('loadgen_responses', 1, second(0), { class: '5xx' }),
      ...Array.from({ length: 150_000 }, (_, index) => line('loadgen_requests', 1, second(index + 1))),
    ].join(''));
    const { samples } = await readRunFiles(folder, of);
    expect(samples).toHaveLength(150_001);
    expect(samples[0]).toMatchObject({ variant: 'workers', round: 1, phase: 1, responses: 6, seconds: 1 });
    expect(samples[1]).toMatchObject({ responses: 0 });
  });

  test('two generators\' records come to the seconds of one load', async () => {
    const folder = newFolder();
    const line = (metric: string, value: number, atMs: number): string => (
      `${JSON.stringify({ metric, type: 'Point', data: { time: new Date(Date.UTC(2026, 10, 20) + atMs).toISOString(), value, tags: { variant: 'workers', class: '2xx' } } })}\n`);
    for (const [generator, lateMs, seconds] of [[1, 0, 3], [2, 4, 2]] as const) {
      mkdirSync(join(folder, 'round-1', `k6-${generator}`), { recursive: true });
      writeFileSync(join(folder, 'round-1', `k6-${generator}`, 'record.ndjson'), Array.from({ length: seconds }, (_, index) => (
        line('loadgen_seconds', 1, 1000 * index + lateMs) + line('loadgen_responses', 100 * generator + index, 1000 * index + lateMs))).join(''));
    }
    const { samples } = await readRunFiles(folder, result([{ ...workers, rounds: workers.rounds.slice(0, 1) }]));
    expect(samples.map(({ responses, seconds }) => [responses, seconds])).toEqual([[300, 1], [302, 1], [102, 1]]);
  });

  test('of a day\'s samples are means of several seconds', () => {
    const beganMs = Date.parse(workers.rounds[0]?.phases[0]?.startedAt ?? '');
    const samples = Array.from({ length: 86_400 }, (_, index): Sample => ({ variant: 'workers', round: 1, phase: 1, atMs: beganMs + 1000 * (index + 1), responses: 100 + (index % 2) }));
    const figures = timelineFigures(both, samples);
    const [line] = dataOf<Timeline>(figures).lines;
    expect(line?.points.length).toBeLessThanOrEqual(4000);
    expect(line?.points[10]?.[1]).toBeCloseTo(100.5, 5);
    expect(figures[0]?.tables[0]?.columns[1]?.group).toBe('lowest to highest 22 seconds of');
    expect(timelineFigures(both, samples.slice(0, 9))[0]?.tables[0]?.columns[1]?.group).toBe('lowest to highest second of');
  });

  test('a ladder is by its first row, published and measured', async () => {
    const ladder = await h2Result('h2o-vs-nginx', {
      'h2o-initial': about(100_000), 'h2o-tuned': about(101_000), 'nginx-initial': about(57_000), 'nginx-workers': about(58_000),
      'nginx-open-file-cache': about(92_000), 'nginx-accept-mutex-delay': about(93_000), 'nginx-tcp-nopush': about(105_000),
    });
    const bars = dataOf<Bars>(ladderFigures(ladder)).panels[0]?.bars ?? [];
    expect(bars).toHaveLength(14);
    expect(bars.find(({ group, published }) => group === 'nginx-tcp-nopush' && !published)?.value).toBeCloseTo(1.05, 9);
    expect(bars.find(({ group, published }) => group === 'nginx-tcp-nopush' && published)?.value).toBeCloseTo(824_799.77 / 582_269.87, 4);
    // Its steps are not shown a second time.
    const groups = dataOf<Bars>(ratioFigures(ladder)).panels[0]?.bars.map(({ group }) => group);
    expect(groups).not.toContain('h2o-tuned against h2o-initial');
    expect(ladderFigures(both)).toEqual([]);
  });

  test('a histogram has a panel per variant with the shares of both sources', async () => {
    const buckets = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5].map((toMs, index, all) => ({ fromMs: all[index - 1] ?? 0, toMs, count: index === 2 ? 30 : 10 }));
    const rate = await h2Result('h2o-vs-nginx-h2-rate', { nginx: { rps: [1000], phases: [{ buckets: [...buckets, { fromMs: 5, toMs: null, count: 0 }] }] }, h2o: { rps: [1000] } });
    const { panels } = dataOf<Bars>(histogramFigures(rate));
    expect(panels.map(({ title }) => title)).toEqual(['nginx', 'h2o']);
    const nginx = panels[0]?.bars ?? [];
    expect(nginx.filter(({ published }) => !published).map(({ value }) => Math.round(value * 100) / 100)).toEqual([9.09, 9.09, 27.27, 9.09, 9.09, 9.09, 9.09, 9.09, 9.09, 0]);
    expect(nginx.filter(({ published }) => published)).toHaveLength(10);
    // The load sets requests/s: their ratio is no effect, and that of latencies is.
    expect(ratioFigures(rate)).toEqual([]);
    expect(dataOf<Effects>(effectFigures(rate)).effects.map(({ name }) => name)).toEqual(['h2o against nginx, p99']);
  });

  test('a sweep is requests/s by streams', async () => {
    const sweep = await h2Result('h2-stream-sweep', {
      'nginx-http1': about(60_000), 'streams-100': about(150_000), 'streams-10': about(110_000), 'streams-2': about(72_000), 'streams-1': about(54_000),
    });
    const { line, points } = dataOf<Streams>(streamFigures(sweep));
    expect(line).toBe('nginx-http1');
    expect(points.map(({ streams, ratio }) => [streams, Math.round(ratio * 100) / 100])).toEqual([[100, 2.5], [10, 1.83], [2, 1.2], [1, 0.9]]);
    expect(ratioFigures(sweep)).toEqual([]);
    expect(streamFigures(both)).toEqual([]);
  });
});

describe('the page', () => {
  test('is one file that may reach nobody, with its own script alone', async () => {
    const text = await htmlReport(both, none);
    const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text)?.[1] ?? '';
    expect(policy).toMatch(/^default-src 'none'; /);
    const scripts = [...text.matchAll(/<script>([\s\S]*?)<\/script>/g)].map((match) => match[1] ?? '');
    expect(scripts).toHaveLength(1);
    expect(policy).toContain(`script-src 'sha256-${createHash('sha256').update(scripts[0] ?? '').digest('base64')}'`);
    expect(text).not.toMatch(/<(?:link|img|iframe|script)[^>]*(?:src|href)="(?!data:)/);
    expect(text.length).toBeLessThan(700_000);
  });

  test('says all that the terminal says, without its script', async () => {
    const text = (await htmlReport(both, none)).replaceAll(/<script[\s\S]*?<\/script>/g, '').replaceAll('\u00a0', ' ');
    for (const words of ['nginx remembers open files', 'open-file-cache is faster than workers here: +33 %', '×1.33 [1.31, 1.34]', 'Stored 7,034,450 of 7,034,450', 'Linux 6.18']) {
      expect(text).toContain(words);
    }
    expect(text).toContain('<noscript>');
  });

  test('of a run with warnings, a hostile title and no figures at all still holds', async () => {
    const odd = result([{ ...workers, server: null, publishedOnly: 'it is gone', rounds: [], published: {} }], { title: '</title><script>alert(1)</script>', warnings: ['<b>mind</b>'], state: 'partial', looks: [6] });
    const text = await htmlReport(odd, none);
    expect(text).not.toContain('<script');
    expect(text).toContain('&lt;b&gt;mind&lt;/b&gt;');
    expect(text).toContain('Ended early: 0 of 6 rounds');
  });

  test('of several runs has a group of columns for each, and says in what they differ', async () => {
    const later = { ...both, run: '2026-11-21T09-00-00-nginx-open-file-cache', environment: { ...both.environment, kernel: 'Linux 6.19' } };
    const other = await h2Result('nghttpd-index', { nghttpd: about(80_000), nginx: about(54_000), h2o: about(93_000) });
    const text = await severalPage([both, later, other]);
    expect(text.match(/<th scope="colgroup" colspan="5" class="group">2026-11-2[01] \d\d:\d\d:\d\d<\/th>/g)).toHaveLength(3);
    expect(text).toContain('These runs differ in: system.');
    expect(text.match(/<h2>/g)).toHaveLength(2);
    const [effects] = (JSON.parse(/id="figures">(.*?)<\/script>/.exec(text)?.[1] ?? '[]') as Effects[]);
    expect(effects?.effects.map(({ name }) => name)).toEqual(['open-file-cache against workers, 2026-11-20 08:15:30', 'open-file-cache against workers, 2026-11-21 09:00:00']);
  });

  test('of several runs says where they were loaded otherwise, and what was only the least', async () => {
    const [first, second] = both.variants;
    const otherLoad = { ...both, run: '2026-11-21T09-00-00-nginx-open-file-cache', variants: both.variants.map((one) => ({ ...one, load: { ...one.load, command: 'wrk -c 400 -t 10 -d 10' } })) };
    expect(await severalPage([both, otherLoad])).toContain('These runs differ in: load.');
    const byCpu = { ...both, run: otherLoad.run, comparisons: both.comparisons.map((one) => ({ ...one, metric: 'cpu' as const })) };
    expect(await severalPage([both, byCpu])).toContain('These runs differ in: judged by.');
    // Also in what a heading has no room for, and of what is in no table.
    const three = (command: string): Result => ({
      ...both, run: otherLoad.run, variants: [...both.variants, ...both.variants.slice(1)].map((one, index) => ({ ...one, name: `v${index}`, load: { ...one.load, command: index === 2 ? command : `wrk -c ${index + 1}` } })),
    });
    expect(await severalPage([three('wrk -c 3'), three('wrk -c 400')])).toContain('These runs differ in: load.');
    const server = { name: 'nginx', version: '1.22.1', workers: 8, config: ['base', 'other'], redirections: [] };
    expect(await severalPage([both, { ...both, variants: both.variants.map((one) => ({ ...one, server })) }])).toContain('These runs differ in: workers, configs.');
    expect(await severalPage([both, both])).toContain('No difference is known in how and where these runs were made; what is in their configs was not compared.');
    const found = [first, second].map((one) => ({ variant: one?.name ?? '', rate: 39_300, ci95: null, atLeast: true }));
    expect(await severalPage([{ ...both, search: { within: { metric: 'p99', ms: 5 }, found, steps: [] } }])).toContain('at least 39,300');
  });

  test('of several runs of one scenario compares them, where both have rounds enough', async () => {
    const slower = { ...openFileCache, rounds: openFileCache.rounds.map(({ round, phases }) => ({ round, phases: phases.map((one) => ({ ...one, seconds: 2 * one.seconds })) })) };
    const again = { ...result([workers, slower]), run: '2026-11-21T09-00-00-nginx-open-file-cache' };
    const rowsOf = (text: string): string[] => [...(/<h3>Run against run<\/h3>[^]*?<\/table>/.exec(text)?.[0] ?? '').matchAll(/<tr[^]*?<\/tr>/g)].map(([row]) => row.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ').trim());
    expect(rowsOf(await severalPage([both, again]))).toEqual([
      '2026-11-21 09:00:00 against 2026-11-20 08:15:30', 'variant requests/s ratio to its baseline', 'workers ×1.0000 [0.9997, 1.0003]', expect.stringMatching(/^open-file-cache ×0\.50\d* \[.*\] ×0\.50\d* \[.*\]$/),
    ]);
    const byCpu = { ...both, run: again.run, comparisons: both.comparisons.map((one) => ({ ...one, metric: 'cpu' as const })) };
    expect(rowsOf(await severalPage([both, byCpu]))[1]).toBe('variant requests/s');
    const short = result([workers, openFileCache].map((variant) => ({ ...variant, rounds: variant.rounds.slice(0, 3) })));
    expect(await severalPage([both, short])).not.toContain('Run against run');
    expect(await severalPage([both])).not.toContain('Run against run');

    // What fails is fast, and what a search finds is no load's requests/s.
    const refusing = { ...openFileCache, rounds: openFileCache.rounds.map(({ round, phases }) => ({ round, phases: phases.map((one) => ({ ...one, responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': one.requests } })) })) };
    const refused = { ...result([workers, refusing]), run: again.run };
    for (const pair of [[both, refused], [refused, both]]) expect(rowsOf(await severalPage(pair)).slice(1)).toEqual(['variant requests/s', expect.stringMatching(/^workers ×/)]);
    const baseRefused = { ...result([{ ...workers, rounds: refusing.rounds }, openFileCache]), run: again.run };
    expect(rowsOf(await severalPage([both, baseRefused])).slice(1)).toEqual(['variant requests/s', expect.stringMatching(/^open-file-cache ×/)]);
    const searched = { ...both, run: again.run, search: { within: { metric: 'p99' as const, ms: 5 }, found: [], steps: [] } };
    expect(rowsOf(await severalPage([both, searched]))[1]).toBe('variant requests/s');
    expect(rowsOf(await severalPage([searched, searched]))[1]).toBe('variant requests/s ratio to its baseline');
  });

  test('of several runs has how much succeeded, their footnotes, and nothing published beside several phases', async () => {
    const text = (await severalPage([both, { ...both, footnotes: ['The bodies differ.'] }])).replaceAll('\u00a0', ' ');
    expect(text.match(/<td class="right">100 %<\/td>/g)).toHaveLength(4);
    expect(text).toContain('<ul class="footnotes"><li>The bodies differ.</li>');
    expect(text).toContain('class="group">published</th>');
    const images = await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [1330], phases: [{}, {}, {}] } });
    expect(await severalPage([images, images])).not.toContain('class="group">published</th>');
  });

  test('says how much time of cores a quota is', async () => {
    expect(await htmlReport({ ...both, environment: { ...both.environment, cpuQuota: 1 } }, none)).toContain('<td class="left">the time of 1 core</td>');
  });

  test('has each load in detail, a table with a name for each part', async () => {
    const page = await htmlReport(both, none);
    const [, detail = ''] = page.split('<h2>Each load in detail</h2>');
    expect([...(detail.split('</section>')[0] ?? '').matchAll(/role="region" aria-label="([^"]*)"/g)].map(([, name]) => name)).toEqual(['load', 'traffic', 'time of a request', 'time to connect', 'time to first byte', 'requests/s of a connection', 'requests/s of a thread']);
  });

  test('is written whole beside the run', async () => {
    const folder = newFolder();
    const file = await writeHtmlReport(folder, both);
    expect(file).toBe(join(folder, 'report.html'));
    expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
    await expect(writeHtmlReport(join(folder, 'gone'), both)).rejects.toThrow(/ENOENT/);
  });
});
