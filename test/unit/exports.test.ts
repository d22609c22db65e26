import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { checkExports, reportRun } from '../../lib/cli/run-output.ts';
import { readScenarioOptions } from '../../lib/cli/scenario.ts';
import { main } from '../../lib/cli/main.ts';
import { UserError } from '../../lib/errors.ts';
import { headlineHtml } from '../../lib/report/html/headline.ts';
import { csvReport, markdownReport, terminalReport } from '../../lib/report/texts.ts';
import type { Result, VariantResult } from '../../lib/result/result.ts';
import { resultJson } from '../../lib/result/result-file.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { asRunFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { phase } from '../fixtures/phase.ts';
import {
  changed,
  compared,
  openFileCache,
  renumbered,
  result,
  workers,
} from '../fixtures/result.ts';

const whole = result([workers, openFileCache]);

function spyOn(name: 'log' | 'error') {
  return vi.spyOn(console, name).mockImplementation(() => undefined);
}

/** A strict parser: throws on anything that RFC 4180 does not allow. */
function parseCsv(text: string) {
  const rows: string[][] = [[]];
  for (let rest = text; rest !== '';) {
    const [all, quoted, plain, end] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(rest) ?? [];
    if (all === undefined) throw new Error(`no CSV: ${rest.slice(0, 40)}`);
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    rest = rest.slice(all.length);
    if (end === '\r\n' && rest !== '') rows.push([]);
  }
  return rows;
}

function csvRows(of: Result): Record<string, string>[] {
  const [titles = [], ...rows] = parseCsv(csvReport(of));
  return rows.map((cells) => {
    expect(cells).toHaveLength(titles.length);
    return Object.fromEntries(cells.map((cell, index) => [titles[index], cell]));
  });
}

test('an interval that says nothing is in no cell, sentence or bar', async () => {
  const ci95: [number, number] = [0.0001, 10_900];
  const of = result([workers, openFileCache]);
  const cpu = { ratio: 1, ci95, verdict: 'inconclusive' as const };
  const comparisons = of.comparisons.map((comparison) => ({
    ...comparison,
    ci95,
    cpu,
    verdict: 'inconclusive' as const,
  }));
  const search = {
    within: { metric: 'p99', ms: 5 } as const,
    found: [{ variant: 'workers', rate: 100, ci95, atLeast: false }],
    steps: [],
  };
  const wide: Result = { ...of, comparisons, search, noiseFloor: { rounds: 4, ratio: 900 } };
  expect(csvRows(wide)[1]).toMatchObject({
    ratio: expect.stringMatching(/^1\.3/),
    ratio_low: '',
    ratio_high: '',
    cpu_ratio_low: '',
    cpu_ratio_high: '',
  });
  const texts = [
    ...terminalReport(wide, [], [], { width: 200, colour: false }),
    markdownReport(wide, []),
    (await headlineHtml(wide, [])).toString(),
  ].join('\n');
  expect(texts).not.toMatch(/10,?900|1,?089,?900|0\.0001|99\.99|±89/);
  expect(texts).toContain('[too wide]');
});

test('CSV has no interval of a single round', () => {
  const of = result([workers, openFileCache]);
  const once = of.comparisons.map((pair) => ({ ...pair, roundRatios: [0.8] }));
  expect(csvRows({ ...of, comparisons: once })[1]).toMatchObject({ ratio_low: '', ratio_high: '' });
});

test('CSV has a row per measured variant', () => {
  const published = { ...workers, name: 'spdy', server: null, rounds: [] };
  const rows = csvRows(result([workers, openFileCache, published]));
  expect(rows.map(({ variant }) => variant)).toEqual(['workers', 'open-file-cache']);
});

test('CSV quotes cells', () => {
  const command = 'wrk -H "Accept: a,b"\r\n-c 1\n';
  const odd = result([{ ...workers, load: { ...workers.load, command } }]);
  // A carriage return would go back to the line's begin in a terminal.
  expect(csvRows(odd)).toMatchObject([{ load: command.replace('\r', ' '), protocol: 'http/1.1' }]);
});

const responses = { '2xx': 8_999_998, '3xx': 0, '4xx': 0, '5xx': 2 };

test.each<[string, Result, object, object?]>([
  [
    'no ratio if nothing could be compared',
    compared(whole, { ratio: 0, verdict: 'none', why: 'nothing was answered' }),
    { ratio: '', ratio_low: '', ratio_high: '', verdict: 'none', why: 'nothing was answered' },
  ],
  [
    'counts and rates to the last digit',
    result([
      workers,
      changed({ ...openFileCache, load: { ...workers.load, rate: 1_234_567 } }, () =>
        phase({ requests: 9_000_000, responses }),
      ),
    ]),
    { rate_asked_per_s: '1234567', success_ratio: String(8_999_998 / 9_000_000) },
  ],
  [
    'the late link',
    compared(whole, { delayNotHeld: ['workers', 'open-file-cache'] }),
    { delay_not_held: 'workers open-file-cache', at_least: '' },
    { delay_not_held: '' },
  ],
])('CSV has %s', (_, of, second, first = {}) => {
  expect(csvRows(of)).toMatchObject([first, second]);
});

test('CSV has the columns described in docs/ci.md', () => {
  const [, page = ''] = readFileSync(join(projectRoot, 'docs/ci.md'), 'utf8').split('| column |');
  const explained = [...page.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| /gm)].flatMap(([, names = '']) =>
    names.replaceAll('`', '').split(', '),
  );
  expect(Object.keys(csvRows(whole)[0] ?? {})).toEqual(explained);
});

test('the comment uses the round numbers of the run', () => {
  const both = [workers, openFileCache].map((variant) =>
    renumbered(variant, (round) => round + Number(round > 2)),
  );
  const rows = markdownReport(result(both), []).matchAll(/^\| (\d) \| 1\.3\d{3} \|$/gm);
  expect([...rows].map(([, round]) => round).join(' ')).toBe('1 2 4 5 6 7');
});

test('the comment shows a log line as plain text', () => {
  const line =
    '[here](http://a.org) ![y](z) [a][b] @somebody &commat;all \\`q` a|b me@a.org [1.28, 1.35]' +
    ' HTTPS://b.org www.c.org, #12 GH-12 __main__.py ~~gone~~ open_file_cache _x_';
  expect(markdownReport({ ...whole, footnotes: [line] }, [])).toContain(
    '\n- [here]\\(http\u200b://a.org) ![y]\\(z) [a]\\[b] @\u200bsomebody \\&commat;all \\\\\\`q\\` a\\|b me@a.org [1.28, 1.35]' +
      ' HTTPS\u200b://b.org www\u200b.c.org, #\u200b12 GH-\u200b12 \\_\\_main\\_\\_.py \\~\\~gone\\~\\~ open_file_cache \\_x\\_\n',
  );
});

const commentOn = (configs: Record<string, string>, footnote: string) => {
  const redirections = ['error_log /var/log/nginx/error.log → error.log of this run'];
  const variants = Object.entries(configs).map(([name, config]) => {
    const server = { name: 'nginx', version: '', workers: 1, config: [config], redirections };
    return { ...(whole.variants[0] as VariantResult), name, server };
  });
  return markdownReport({ ...whole, comparisons: [], variants, footnotes: [footnote] }, []);
};

test('the comment distinguishes configs with the same name', () => {
  const files = { old: '/old/nginx.conf', new: '/new/nginx.conf', h2o: '/new/h2o.conf' };
  expect(commentOn(files, `They differ: ${Object.values(files).join(' ')}`)).toContain(
    '- They differ: old new h2o.conf\n',
  );
});

test('the comment has no local paths and no HTML', () => {
  const path = '/home/me/secret/@b&c/a.conf';
  const text = commentOn({ a: path }, `Only ${path} encrypts <script>`);
  expect(text).toContain('- Only a.conf encrypts \\<script>');
  expect(text).not.toMatch(/secret|\/var\/log/);
  const dollars = '/me/a$$b.conf';
  expect(commentOn({ a: dollars }, `Of ${dollars}`)).toContain('- Of a$$b.conf\n');
});

const allIn = (folder: string): Parameters<typeof reportRun>[1] =>
  readScenarioOptions(
    ['markdown=/a.md', 'json=/a.json', 'csv=/a.csv'].map(
      (format) => `--export-${format.replace('/', `${folder}/`)}`,
    ),
    noAdditions,
  );

test('files are written atomically, and a link stays a link', async () => {
  spyOn('log');
  const ofBefore = 'variant,server,version,other columns\r\n';
  const folder = await ownFiles({ 'kept/there.csv': ofBefore, 'run/x': '' });
  symlinkSync('kept/there.csv', join(folder, 'a.csv'));
  const options = allIn(folder);
  const read = (file: string) => readFileSync(join(folder, file), 'utf8');
  await checkExports(options.exports);
  expect(read('kept/there.csv')).toBe(ofBefore);
  expect(readdirSync(folder)).toHaveLength(3);
  await reportRun({ result: whole, folder: asRunFolder(join(folder, 'run')) }, options);
  expect(read('kept/there.csv')).toBe(csvReport(whole));
  expect([read('a.md'), read('a.json')]).toEqual([markdownReport(whole, []), resultJson(whole)]);
  expect(readdirSync(folder)).toHaveLength(5);
});

test.each([
  ['--export-csv none/a.csv', /^--export-csv \S+\/none\/a\.csv .*: its folder is not there$/],
  ['--export-json folder', /folder cannot be written: there is a folder where a file has to be$/],
  ['--export-markdown /dev/null', /: it is a pipe, socket or device: name a file$/],
  ['--export-csv -', /^--export-csv -: name a file; --json /],
  ['--export-json a.csv --export-csv ./folder/../a.csv', / name one file, \S+\/a\.csv: name an/],
  ['--export-json link --export-csv folder/x', /^--export-json and --export-csv name one file, /],
])('%s is refused before anything runs', async (args, message) => {
  const folder = await ownFiles({ 'folder/x': '' });
  symlinkSync('folder/x', join(folder, 'link'));
  vi.stubEnv('INIT_CWD', folder);
  const complained = spyOn('error');
  const run = `scenario nginx-open-file-cache --out ${folder} ${args}`;
  expect(await main(run.split(' '))).toBe(2);
  expect(complained.mock.calls).toEqual([[expect.stringMatching(message)]]);
  expect(readdirSync(folder)).toEqual(['folder', 'link']);
});

test('an unwritable file does not affect the others', async () => {
  spyOn('log');
  const folder = await ownFiles({ 'run/x': '' });
  const run = join(folder, 'run');
  mkdirSync(join(folder, 'a.md'));
  await expect(
    reportRun({ result: whole, folder: asRunFolder(run) }, allIn(folder)),
  ).rejects.toThrow(`--export-markdown ${folder}/a.md cannot be written: `);
  for (const file of ['a.json', 'a.csv', 'run/table.md'])
    expect(existsSync(join(folder, file)), file).toBe(true);
  const ended = new UserError('round 3 failed twice');
  const early = { result: whole, ended, folder: asRunFolder(run) };
  await expect(reportRun(early, allIn(folder))).rejects.toBe(ended);
});

test.each([
  ['compare a.conf b.conf', 'b.conf'],
  ['compare a.conf b.conf --bin nginx=./build', 'build'],
])('%s does not replace %s, which it reads', async (command, input) => {
  const config = 'events {} http { server { listen 8080; } }';
  const folder = await ownFiles({ 'a.conf': config, 'b.conf': config, build: 'x' });
  vi.stubEnv('INIT_CWD', folder);
  const before = readFileSync(join(folder, input), 'utf8');
  const complained = spyOn('error');
  const args = `${command} --out ${folder}/results --no-install --export-json ${input}`.split(' ');
  expect(await main(args)).toBe(2);
  expect(complained.mock.calls).toEqual([
    [
      `--export-json ${folder}/${input} cannot be written: another file is there, which bakeoff did not write: remove it, or name another`,
    ],
  ]);
  expect(readFileSync(join(folder, input), 'utf8')).toBe(before);
});

test('a k6 script does not replace its scenario', async () => {
  const ownScenario = `
    import { defineScenario, wrk } from 'server-bakeoff';
    const server = { name: 'command', command: './a.sh', folder: '.' };
    export default defineScenario({
      name: 'mine', title: 'mine', knob: 'x', load: wrk('-c 1 -t 1 -d 1'), page: { path: '/' },
      variants: [{ name: 'a', server }, { name: 'b', server }],
    });`;
  const folder = await ownFiles({ 'mine.ts': ownScenario });
  vi.stubEnv('INIT_CWD', folder);
  const complained = spyOn('error');
  expect(await main(['scenario', './mine.ts', '--k6-script', './mine.ts'])).toBe(2);
  expect(complained.mock.calls.join()).toMatch(
    /^--k6-script .*: another file is there, which bakeoff did not write: /,
  );
  expect(readFileSync(join(folder, 'mine.ts'), 'utf8')).toBe(ownScenario);
});

test('an export to the file of stdout is refused', async () => {
  const folder = await ownFiles({ out: '' });
  const { status, stderr } = spawnSync(
    'sh',
    [
      '-c',
      '"$@" --json --export-csv /dev/stdout --no-install >out',
      'sh',
      process.execPath,
      join(projectRoot, 'bin/bakeoff.mjs'),
      'scenario',
      'nginx-open-file-cache',
    ],
    { cwd: folder, encoding: 'utf8' },
  );
  expect([status, stderr]).toEqual([
    2,
    "--export-csv /dev/stdout cannot be written: it is this command's stdin, stdout or stderr: name another file\n",
  ]);
  expect(readFileSync(join(folder, 'out'), 'utf8')).toBe('');
});

test('an export replaces one, and no other file', async () => {
  spyOn('log');
  const folder = await ownFiles({ 'run/x': '', 'a.json.unfinished': 'mine' });
  const again = () =>
    reportRun({ result: whole, folder: asRunFolder(join(folder, 'run')) }, allIn(folder));
  await again();
  expect(await again()).toBe(0);
  expect(readFileSync(join(folder, 'a.json.unfinished'), 'utf8')).toBe('mine');
  const rowsOf = (csv: string) => csv.slice(csv.indexOf('\n') + 1);
  const others: [string, (text: string) => string][] = [
    ['a.md', () => 'a key'],
    ['a.md', (text) => `My notes:\n${text}`],
    ['a.md', (text) => `${text}My notes\n`],
    ['a.csv', () => 'a key'],
    ['a.csv', (text) => text + rowsOf(text).replaceAll(whole.run, 'another run')],
    ['a.csv', (text) => `${text}my notes\r\n`],
    ['a.json', () => 'a key'],
  ];
  for (const [name, made] of others) {
    const file = join(folder, name);
    const text = readFileSync(file, 'utf8');
    const other = made(text);
    writeFileSync(file, other);
    await expect(again(), other).rejects.toThrow(
      `${file} cannot be written: another file is there`,
    );
    expect(readFileSync(file, 'utf8')).toBe(other);
    writeFileSync(file, text);
  }
});

test("an export does not replace a run's own result", async () => {
  const folder = await ownFiles({ [`${whole.run}/result.json`]: resultJson(whole) });
  const file = join(folder, whole.run, 'result.json');
  await expect(checkExports([{ flag: 'export-json', file }])).rejects.toThrow(
    `${file} cannot be written: another file is there`,
  );
});
