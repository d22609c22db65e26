// report.html as text.
import { createHash, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { figuresOf } from '../../lib/report/charts.ts';
import { configsHtml, differencesHtml } from '../../lib/report/html/differences.ts';
import type { PlotData } from '../../lib/report/html/figure.ts';
import { headlineHtml } from '../../lib/report/html/headline.ts';
import { Html, html, nothing, page, tableHtml } from '../../lib/report/html/page.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { csvReport, markdownReport } from '../../lib/report/texts.ts';
import { cellText } from '../../lib/report/table.ts';
import type { Comparison, Phase, Result } from '../../lib/result/result.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { answers, latency, nginxWith, noLatency, phase } from '../fixtures/phase.ts';
import { changed, compared, openFileCache, result, workers } from '../fixtures/result.ts';

const both = result([workers, openFileCache]);

const refusing = changed(openFileCache, ({ requests }) => ({
  responses: answers({ '4xx': requests }),
}));
const images = await h2Result('nghttpd-img', {
  'nghttpd-1024': { rps: [1330], phases: [{}, {}, {}] },
});
const plain = ({ text }: Pick<Html, 'text'>) => text.replaceAll(/(?:<[^>]+>|\s)+/g, ' ').trim();

const linesOf = (of: Result, wanted: RegExp) =>
  figuresOf(of, []).flatMap(({ title, data }) =>
    data.kind === 'lines' && wanted.test(title) ? [data] : [],
  );

test('escapes everything but trusted HTML, in content and in attributes', () => {
  const text = '<script>"&\'';
  expect(html`<p title="${text}">${[text, new Html('<b>')]}${1.5}</p>`.text).toBe(
    '<p title="&lt;script&gt;&quot;&amp;\'">&lt;script&gt;&quot;&amp;\'<b>1.5</p>',
  );
});

test('JSON in a script element cannot end it', async () => {
  const data: PlotData = { kind: 'bars', names: ['</script><!--<script>\u2028'], bars: [] };
  const text = await page('', nothing, [{ title: '', text: '', data, tables: [] }]);
  const [, json = ''] = /id="figures">([^<]*)<\/script>\n<script>/.exec(text) ?? [];
  expect(JSON.parse(json)).toEqual([{ ...data, names: ['</script><!--<script> '] }]);
});

test('a table has the same cells as on the terminal, and marked verdicts', () => {
  const table = variantTable(both);
  const { text } = tableHtml(table, 'the table');
  const cells = [...text.matchAll(/<t[hd] (?:scope="row" )?class="(?:left|right)">(.*?)<\/t/g)];
  const plain = (cell = '') => cell.replaceAll(/<[^>]+>/g, '').replaceAll('\u00a0', ' ');
  expect(cells.map(([, cell]) => plain(cell))).toEqual(table.rows.flat().map(cellText));
  expect(text).toContain('<th scope="colgroup" colspan="2" class="group">published</th>');
  expect(text).toContain('[31,\u00a034] <span class="verdict faster">faster</span>');
});

test.each([
  ['rps', 6, 'faster', 'b is 6 times as fast as workers'],
  ['cpu', 0.22, 'faster', 'b uses 22 % of the CPU of workers'],
  ['p99', 1.5, 'slower', 'b is slower than workers: p99 +50 %'],
  ['rps', 1.01, 'inconclusive', 'Not decided whether b is faster than workers'],
] as const)(
  'the headline is the verdict with its size: %s %f %s',
  (metric, ratio, verdict, headline) => {
    const ci95: [number, number] = [ratio * 0.99, ratio * 1.01];
    const why = 'needs 4 rounds';
    const of = compared(both, { metric, ratio, ci95, verdict, why, cpu: null });
    const text = plain(headlineHtml(of, [])).replaceAll('open-file-cache', 'b');
    expect(text.slice(0, headline.length + 1)).toBe(`${headline} `);
  },
);

test("the headline has the verdict's colour, the effect, a bar and the title", () => {
  expect(headlineHtml(both, []).text).toContain('<div class="effect faster">');
  expect(plain(headlineHtml(both, []))).toMatch(
    /faster than workers \+33 % \(95 % .*the article saw \+12 %\. slower, −27 % the same faster, \+36 % nginx remembers open files$/,
  );
  expect(headlineHtml(compared(both, {}, { state: 'partial', looks: [10] }), []).text).toMatch(
    /<div class="effect inconclusive"><div><h1>.*, not final<\/h1>/,
  );
});

test('without a verdict the headline is that, and the reason stands below', () => {
  const why = 'workers waited 93 % of its turns for cores that other programs used, b 91 %';
  const ratio = { ratio: 2.19, publishedRatio: null, cpu: null };
  expect(headlineHtml(compared(both, { verdict: 'none', why, ...ratio }), []).text).toContain(
    `<h1>No verdict on open-file-cache against workers</h1><p>${why} (measured 2.19 times).</p>`,
  );
});

test("the headline's bar starts in the middle, with the interval at its end", () => {
  const bar = /<[ib] style="left:([\d.]+)%;width:([\d.]+)%"/g;
  const places = (of: Partial<Comparison>) =>
    [...headlineHtml(compared(both, of), []).text.matchAll(bar)].flatMap(([, left, width]) =>
      [Number(left), Number(left) + Number(width)].map(Math.round),
    );
  const at = (ratio: number) => Math.round(50 + (50 * Math.log(ratio)) / (1.05 * Math.log(1.3)));
  const shown = [50, at(1.2), at(1.1), at(1.3)];
  const longer: Partial<Comparison> = { ratio: 1.2, ci95: [1.1, 1.3], publishedRatio: 1.1 };
  expect(places(longer)).toEqual(shown);
  const { text } = headlineHtml(compared(both, longer), []);
  expect(Math.round(Number(/<u style="left:([\d.]+)/.exec(text)?.[1]))).toBe(at(1.1));
  const shorter = { metric: 'p99', ratio: 1 / 1.2, ci95: [1 / 1.3, 1 / 1.1] } as const;
  expect(places(shorter as never)).toEqual(shown);
  // Rounds with an extreme interval show none; without a verdict there is no bar.
  expect(places({ ratio: 1.2, ci95: [0, Infinity], verdict: 'inconclusive' })).toHaveLength(2);
  expect(places({ verdict: 'none' })).toEqual([]);
});

test('the headline counts several verdicts, with a line for each', () => {
  const other = { ...openFileCache, name: 'other' };
  const several = result([workers, openFileCache, other, { ...refusing, name: 'refusing' }]);
  expect(plain(headlineHtml(several, []))).toMatch(
    /^Against workers: 2 faster and 1 without a verdict open-file-cache is 33 .* other is .* No verdict on refusing .* No request of/,
  );
  const step = { ...workers, name: 'other', against: 'open-file-cache', setup: 'step' };
  expect(plain(headlineHtml(result([workers, openFileCache, step]), []))).toMatch(
    /^2 comparisons: 1 faster and 1 slower /,
  );
});

test('without comparisons the headline is the title; a control is neutral', () => {
  expect(headlineHtml(result([workers]), []).text).toMatch(/^<h1>nginx remembers open files<\/h1>/);
  const itself = (changes: Partial<Comparison>) =>
    headlineHtml(compared(both, changes, { control: true }), []).text;
  expect(itself({ verdict: 'inconclusive' })).toMatch(
    /<div class="effect same"><div><h1>[^<]* are equal, and no difference is found</,
  );
  expect(itself({})).toContain('<div class="effect inconclusive">');
});

const configs = [{ variant: 'none', file: 'nginx.conf', text: '' }];
test.each<[string, MeasuredVariant, string]>([
  [
    'nothing',
    openFileCache,
    'What differs All sides answer alike: 2xx, 612 B of body, 238 B of headers.',
  ],
  [
    'the status',
    changed(openFileCache, ({ requests: all }) => ({
      responses: answers({ '2xx': all / 4, '4xx': all / 2, '5xx': all / 4 }),
      statuses: { 429: all / 2 },
    })),
    'side status workers 2xx open-file-cache 2xx 25.00 %, 429 50.00 %, 5xx 25.00 %',
  ],
  [
    'server and load',
    {
      ...openFileCache,
      server: { ...nginxWith('base'), name: 'h2o', version: '2.2.5' },
      load: { ...openFileCache.load, command: 'wrk -c 400' },
    },
    'side server load workers nginx 1.22.1 HTTP/1.1, wrk -c 100 -t 10 -d 10 open-file-cache h2o 2.2.5 HTTP',
  ],
])('the differences show %s', (_, variant, text) => {
  const of = result([workers, variant]);
  expect(plain(differencesHtml(of, configs, nothing))).toContain(text);
});

test('the differences name configs whose text is missing', () => {
  const renamed = { ...openFileCache, server: nginxWith('base', 'cache') };
  expect(plain(differencesHtml(result([workers, renamed]), [], nothing))).toContain(
    'side config workers base workers open-file-cache base cache',
  );
  const command = (variant: MeasuredVariant, words: string) => ({
    ...variant,
    server: { ...nginxWith(words), version: '' },
  });
  const commands = result([command(workers, 'node a.js'), command(openFileCache, 'node b.js')]);
  expect(plain(differencesHtml(commands, [], nothing))).toContain(
    'side command workers node a.js open-file-cache node b.js',
  );
  expect(differencesHtml(result([workers]), [], html`<p>note</p>`).text).toBe('<p>note</p>');
});

const file = 'nginx.conf';
const configsOf = (before: string, after: string) => [
  { variant: 'workers', file, text: before },
  { variant: 'open-file-cache', file, text: after },
];
const differencesOf = (before: string, after: string) =>
  differencesHtml(both, configsOf(before, after), nothing);
const differences = (before: string, after: string) =>
  [...differencesOf(before, after).text.matchAll(/<(?:ins|del)>(.*?)</g)].map(([, line]) => line);
const config = (port: number, folder: string, line: string) =>
  `# Composed of x\nlisten 127.0.0.1:${port};\nroot /tmp/bakeoff-server-${folder}/www;\nssl_certificate_key "/tmp/bakeoff-server-${folder}/${randomUUID()}/0-a.key";\n${line}\nkeep <this>;\n`;
const nginx = (server: string) => `http {\n    server {\n${server}    }\n    gzip on;\n}\n`;
const userConfig = (name: string, more: string) =>
  `# /a/${name} as it runs here\nhttp {  # from /a/${name}:3\n${more}    listen 127.0.0.1:1;  # from /a b/${name}:12\n}\n`;

test.each([
  [
    'ports, folders and comments aside',
    config(1234, '1-aB', 'sendfile on;'),
    config(4321, '1-cD', 'open_file_cache max=100;'),
    ['+ open_file_cache max=100;', '− sendfile on;'],
  ],
  [
    'with one word for the paths of the user that are redirected',
    'access_log "/tmp/bakeoff-server-1-aB/temp/access-1.log" main;\n',
    "access_log '/tmp/bakeoff-server-1-cD/temp/access-2.log';\n",
    ['− access_log (a temporary file) main;', '+ access_log (a temporary file);'],
  ],
  [
    'behind their blocks, as often as there are more',
    nginx('        listen 80;\n'),
    nginx(
      '        listen 80;\n        listen 80;\n        location / {\n            root /a;\n        }\n',
    ),
    [
      '+ http › server › listen 80;',
      '+ http › server › location / {',
      '+ http › server › location / › root /a;',
    ],
  ],
  [
    'whatever file a line comes from',
    userConfig('one.conf', ''),
    userConfig('two.conf', '    sendfile on;  # from /a/two.conf:4\n'),
    ['+ http › sendfile on;'],
  ],
])('different config lines are shown %s', (_, before, after, lines) => {
  expect(differences(before, after)).toEqual(lines);
});

test('equal configs are reported as equal; user files are marked', () => {
  const same = (after: string) => plain(differencesOf('a;\nb;\n', after));
  expect(same('a;\nb;\n')).toMatch(/the same settings\. /);
  expect(same('b;\na;\n')).toMatch(/the same settings, in another order\. /);
  const theirs = structuredClone(both);
  Object.assign(theirs.variants[0]?.server ?? {}, { config: ['/home/anna/nginx.conf'] });
  expect(configsHtml(theirs, configsOf('', '')).text).toContain('own files');
  const shipped = configsHtml(both, configsOf('keep <this>;', '')).text;
  expect(shipped).toContain('keep &lt;this&gt;;');
  expect(shipped).not.toContain('own files');
});

test('each round shows both sides, by the metric of the verdict', () => {
  const first = (of: Partial<Comparison>) =>
    linesOf(compared(both, of), /^Round by round/)[0]?.marks[0];
  expect(first({ metric: 'cpu' })?.y).toBeCloseTo(15.9, 6);
  expect(first({ metric: 'p99' })?.y).toBe(2.13);
  // A failed side has no value, and a single side is no pair.
  expect(linesOf(result([workers, refusing]), /^Round by round/)).toEqual([]);
});

test('the last percentile is the longest of all responses', () => {
  const measurement = phase({
    requests: 150,
    responses: answers({ '2xx': 48, '5xx': 2 }),
    latencyMs: latency(2, 5, 9),
  });
  const having = (given: Phase) =>
    linesOf(
      result([{ ...workers, rounds: [{ round: 3, phases: [given] }] }]),
      /^Latency by percentile/,
    );
  const points = having(measurement)[0]?.marks.map(({ x, y }) => `${x} ${y}`);
  expect(points?.join()).toBe('1 0.1,2 2,4 2,10 5,20 5,50 9');
  expect(having(phase({ requests: 0, latencyMs: noLatency }))).toEqual([]);
  const titles = figuresOf(images, []).map(({ title }) => title);
  expect(titles.join()).toMatch(/percentile, phase 1.*percentile, phase 3$/);
});

test('the page of a run is one file that loads nothing and runs its own script only', async () => {
  const text = await htmlReport(both, [], []);
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text)?.[1] ?? '';
  expect(policy).toMatch(/^default-src 'none'; /);
  const [script = '', ...others] = text.match(/(?<=<script>)[\s\S]*?(?=<\/script>)/g) ?? [];
  expect(others).toEqual([]);
  const hash = createHash('sha256').update(script).digest('base64');
  expect(policy).toContain(`script-src 'sha256-${hash}'`);
  expect(text.length).toBeLessThan(700_000);
});

test('the page of a run has all text of the terminal, without the script too', async () => {
  const of = { ...both, environment: { ...both.environment, cpuQuota: 1 } };
  const text = (await htmlReport(of, [], [])).replaceAll(/<script[\s\S]*?<\/script>/g, '');
  expect(text).toContain('<noscript>');
  for (const phrase of ['nginx was the limit', '+33 % [31', 'the time of 1 core'])
    expect(text).toContain(phrase);
  const [, detail = ''] = text.split('<h2>Each load in detail</h2>');
  expect(detail.split('</section>')[0]?.match(/role="region" aria-label="/g)).toHaveLength(10);
});

test('the page of a run without figures has no empty table', async () => {
  const silent = { ...workers, rounds: [], published: null };
  expect(await htmlReport(result([silent]), [], [])).not.toContain('<h2>The table</h2>');
  expect(await htmlReport(both, [], [])).toContain('<h2>The table</h2>');
});

test('no file of a run has characters that control a terminal', async () => {
  const odd = 'x\u001by\u009bz\u202e';
  const sides = [{ ...workers, name: odd }, openFileCache];
  const of = result(sides, { title: odd, warnings: [odd] });
  for (const text of [await htmlReport(of, [], []), markdownReport(of, []), csvReport(of)]) {
    expect(text).toContain('x y z');
    expect(text).not.toMatch(/[\u001b\u009b\u202e]|\\u001b/);
  }
});

test('the page of a run is valid with a hostile title and no figures', async () => {
  const gone = { ...workers, server: null, publishedOnly: 'gone', rounds: [], published: {} };
  const title = '</title><script>alert(1)</script>';
  const odd = result([gone], { title, warnings: ['<b>mind</b>'], state: 'partial', looks: [6] });
  const text = await htmlReport(odd, [], []);
  expect(text).not.toContain('<script');
  expect(text).toContain('&lt;b&gt;mind&lt;/b&gt;');
  expect(text).toContain('Ended early, before a round was complete: nothing is compared.');
});
