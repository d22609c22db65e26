// The catalogue of knobs, their changes to a config, and their ranking.
import path from 'node:path';
import { expect, it, test, vi } from 'vitest';
import { additions } from '../../cli/main.ts';
import type { ServerName } from '../../setup/servers.ts';
import { knobsCommand } from './command.ts';
import {
  candidatesOf,
  checkKnobs,
  readKnobs,
  whyNot,
  type Candidate,
  type Surroundings,
} from './catalogue.ts';
import { changeLines } from '../../servers/own/changes.ts';
import { overlayTarget } from '../../servers/own/own-config.ts';
import {
  helpful,
  nothingHelpsLine,
  ranked,
  rankingTable,
  reasonLines,
  worthACloserLook,
  planOf,
} from './ranking.ts';
import { cellText } from '../../report/table.ts';
import type { Comparison, Result, Verdict } from '../../result/result.ts';
import { wrk } from '../../scenario/load/generators.ts';
import { nghttpdKind } from '../../servers/nghttpd.ts';
import { nginxKind } from '../../servers/nginx.ts';
import { adopt } from '../../../test/fixtures/adopted.ts';
import { expectGroupedHelp } from '../../../test/fixtures/help.ts';
import { ownFiles } from '../../../test/fixtures/own-files.ts';
import { cores } from '../../../test/fixtures/plan.ts';
import { openFileCache, result as measured, workers } from '../../../test/fixtures/result.ts';

function candidate(
  name: string,
  lines: string,
  context = 'http',
  more: Partial<Candidate['knob']> = {},
): Candidate {
  return {
    name,
    knob: { name, context, values: { on: lines }, claim: '', since: '1.0.0', source: '', ...more },
    overlay: { context, lines },
    isDefault: false,
  };
}

test.each(['nginx', 'h2o', 'nghttpd'] as const)('the catalogue of %s is valid', (server) => {
  for (const { claim } of readKnobs(server)) expect(claim).toMatch(/^[A-Zn].*\.$/);
});

const right = candidate('a', 'a on;', 'http', { claim: 'A.', source: 'S' }).knob;
test.each([
  [
    [{ ...right, context: 'location' }],
    /^f\.yaml: \[0\]\.context "location" has to be main, events, http or/,
  ],
  [[{ ...right, since: '1.9' }], /since "1\.9" has to be a version/],
  [[{ ...right, values: {} }], /values has to be an object of texts$/],
  [[right, right], /^f\.yaml: two are named "a"$/],
])('the catalogue with %j is refused', (knobs, message) => {
  expect(() => checkKnobs('nginx', knobs, 'f.yaml')).toThrow(message);
});

test.each([
  [{ cores: 'a {cores};', twice: 'a {twice-cores};' }, 3, ['a-cores: a 3;', 'a-twice: a 6;']],
])('the catalogue with values %j on %i cores has %j', (values, cores, lines) => {
  const [knob] = checkKnobs('nginx', [{ ...right, values }], '') as [Candidate['knob']];
  const candidates = candidatesOf(knob, cores);
  expect(candidates.map(({ name, overlay }) => `${name}: ${overlay.lines}`)).toEqual(lines);
});

type Where = Partial<Parameters<typeof overlayTarget>[1]>;
async function overlaid(
  server: ServerName,
  text: string,
  overlays: Candidate['overlay'][],
  others: Record<string, string> = {},
  where: Where = {},
) {
  const folder = await ownFiles({ 'own.conf': text, ...others });
  const file = path.join(folder, 'own.conf');
  const config = await overlayTarget(
    { server, file },
    { port: 80, paths: ['/'], cores: 2, ...where },
  );
  return changeLines(config.overlay(overlays).changes).map((line) =>
    line.replaceAll(`${folder}/`, ''),
  );
}

const nginx = (context: string, lines: string, text: string, where: Where = {}) =>
  overlaid('nginx', text, [{ context, lines }], {}, where);

test.each([
  [
    "wins in the page's server, and leaves others alone",
    'http',
    'gzip off;',
    'gzip on;\n  server { listen 81; gzip on; }\n  server { listen 80; gzip on; location / { gzip on; } }',
    'http { } at own.conf:1:',
    '  gzip off;  # instead of own.conf:2: gzip on;',
    'server { } at own.conf:4:',
    '  gzip off;  # instead of own.conf:4: gzip on;',
    'location / { } at own.conf:4:',
    '  gzip off;  # instead of own.conf:4: gzip on;',
  ],
  [
    'keeps words, and leaves logs that nginx cannot buffer',
    'http',
    'access_log ... buffer=64k flush=5s;',
    'access_log a main buffer=4k gzip;\n  access_log b;\n  server { listen 80; access_log /l/$host.log; access_log syslog:server=a; }',
    'http { } at own.conf:1:',
    '  access_log a main gzip buffer=64k flush=5s;  # instead of own.conf:2: access_log a main buffer=4k gzip;',
    '  access_log b combined buffer=64k flush=5s;  # instead of own.conf:3: access_log b;',
  ],
  [
    'goes to the first listen line of each address',
    'server',
    'listen ... reuseport;',
    'server { listen 80; listen [::]:80; listen 81; }\n  server { listen *:80; }\n  server { listen 0.0.0.0:80; }',
    'server { } at own.conf:2:',
    '  listen 80 reuseport;  # instead of own.conf:2: listen 80;',
    '  listen [::]:80 reuseport;  # instead of own.conf:2: listen [::]:80;',
  ],
  [
    'goes to a server without a listen line',
    'server',
    'listen ... backlog=9;',
    'server { }',
    'server { } at own.conf:2:',
    '  listen 80 backlog=9;',
  ],
  [
    'goes to the listen line that has such words',
    'server',
    'listen ... backlog=16;',
    'server { listen 80; }\n  server { listen 80 "backlog=9"; }',
    'server { } at own.conf:3:',
    '  listen 80 backlog=16;  # instead of own.conf:3: listen 80 "backlog=9";',
  ],
])('a knob of nginx: %s', async (_, context, lines, text, ...expected) => {
  expect(await nginx(context, lines, `http {\n  ${text}\n}\n`)).toEqual(expected);
});

test.each([
  ['main', 'worker_processes 2;'],
  ['http', 'access_log ... buffer=64k;'],
])(
  'an nginx knob in %s, %s does not change lines that already have the setting',
  async (context, lines) => {
    const text = 'worker_processes "auto"; http { access_log off; server { listen 80; } }';
    expect(await nginx(context, lines, text, { cores: 2 })).toEqual([]);
  },
);

test.each([
  ['^~ /img/', '/img/a.png'],
  ['~* \\.PNG$', '/a.png'],
  ['~ (?<a>x', '/'],
  // It would take JavaScript years.
  ['~ ^/(([a-z]+)+)+[0-9]$', `/${'a'.repeat(40)}.html`],
  ['@fallback', '/'],
])('an nginx knob takes effect in location %s for a request of %s', async (location, asked) => {
  const text = `http { etag on; server { listen 80; location ${location} { etag on; } } }`;
  const changed = await nginx('http', 'etag off;', text, { paths: [asked] });
  expect(changed).toContain(`location ${location} { } at own.conf:1:`);
});

it('an nginx knob takes effect in every location that serves a page', async () => {
  const text =
    'http { etag on; server { listen 80; location = /a { etag on; } location /b/ { etag on; index c.html; } location = /b/c.html { etag on; } location /d { etag on; } } }';
  const lines = await nginx('http', 'etag off;', text, { paths: ['/a?x', '/b/'] });
  const blocks = lines.filter((line) => line.endsWith(':'));
  expect(blocks.map((line) => line.replace(/ \{ \}.*/, '')).join()).toBe(
    'http,location = /a,location /b/,location = /b/c.html',
  );
});

it('an nginx knob changes included files', async () => {
  const text = 'http { include more.conf; include sites; }';
  const others = { 'more.conf': 'gzip on; sendfile on;', sites: 'server { listen 80; }' };
  const overlays = [
    { context: 'http', lines: 'gzip off; etag off;' },
    { context: 'server', lines: 'listen ... backlog=9;' },
  ];
  expect(await overlaid('nginx', text, overlays, others)).toEqual([
    'http { } at own.conf:1:',
    '  gzip off;  # instead of more.conf:1: gzip on;',
    '  etag off;',
    'server { } at sites:1:',
    '  listen 80 backlog=9;  # instead of sites:1: listen 80;',
  ]);
  const auto = { context: 'main', lines: 'worker_processes auto;' };
  const run = await adopt(nginxKind, text, { overlays: [...overlays, auto] }, others);
  expect(run.workers).toBe(2);
  expect(run.lines).toEqual(
    expect.arrayContaining(['gzip off;', 'listen 127.0.0.1:9000 backlog=9;', 'sendfile on;']),
  );
  expect(run.lines).not.toContain('gzip on;');
});

const neverbleed = { context: 'ssl', lines: 'neverbleed: OFF' };
const h2o =
  'listen: 80\nfile.etag: ON\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: /x\n        file.etag: ON # why\n';
test.each([
  [
    'takes the place of keys, and removes one',
    `${h2o}access-log: /l\ncompress:\n  - gzip\n`,
    [
      { context: 'top', lines: 'file.etag: OFF' },
      { context: 'top', lines: 'access-log: ~' },
      { context: 'top', lines: 'compress: OFF' },
    ],
    [
      'own.conf:',
      '  file.etag: OFF  # instead of own.conf:2: file.etag: ON',
      '  compress: OFF  # instead of own.conf:10: compress: [gzip]',
      '  # remove own.conf:9: access-log: /l',
      '/: at own.conf:6:',
      '  file.etag: OFF  # instead of own.conf:8: file.etag: ON',
    ],
  ],
  [
    'goes into the ssl of a list, once where an alias has it twice',
    'listen: &a\n  - ssl:\n      - x\n    port: 80\n  - port: 81\n    ssl:\n      certificate-file: a\nhosts:\n  b:\n    listen: *a\n',
    [neverbleed],
    ['ssl: at own.conf:6:', '  neverbleed: OFF'],
  ],
])('a knob of h2o %s', async (_, text, overlays, expected) => {
  expect(await overlaid('h2o', text, overlays)).toEqual(expected);
});

test.each([
  [
    '--workers=2',
    '--no-tls\n-n 1 # why\n80\n',
    ['own.conf:', '  --workers=2  # instead of own.conf:2: --workers=1'],
  ],
  ['--workers=1', '--workers=1\n80\n', []],
])('a knob of nghttpd is %s', async (flag, text, expected) => {
  const overlays = [{ context: 'flags', lines: flag }];
  expect(await overlaid('nghttpd', text, overlays)).toEqual(expected);
  const { args } = await adopt(nghttpdKind, text, { overlays });
  expect(args('')).toContain(flag);
});

const facts = (more: object) => ({ proxied: false, logs: true, logLine: false, ...more });
const plainSurroundings: Surroundings = {
  facts: facts({}),
  listen: { tls: false },
  load: wrk('-c 1 -t 1 -d 1'),
  bodyBytes: 612,
  workers: 1,
  build: { version: '1.22.1', answer: '--with-threads' },
};
const added = { block: '', text: 'a on;' };
const instead = { block: '', name: 'a', text: 'a off;', place: 'own.conf:1' };
const changes = () => ({ changes: [{ ...added, instead }] });
const gzipped = { load: wrk("-c 1 -t 1 -d 1 -H 'accept-encoding: gzip'") };
test.each<[string | undefined, Candidate['knob']['where'], Partial<Surroundings>?]>([
  ['this build is without --with-pcre-jit', { build: '--with-pcre-jit' }],
  ['only with HTTP/2', { http2: true }],
  ['only with bodies of 32,768 bytes or more', { bodyBytes: 32_768 }],
  ['only where requests are passed on', { proxied: true }],
  ['only where files are served', { static: true }, { facts: facts({ proxied: true }) }],
  [
    "only where requests accept gzip (add -H 'Accept-Encoding: gzip' to --load)",
    { acceptsGzip: true },
  ],
  [undefined, { acceptsGzip: true }, gzipped],
])('a knob is skipped: %s: %j', (why, where = {}, surroundings = {}) => {
  const knob = candidate('a', 'a on;', 'http', { where });
  expect(whyNot(knob, { ...plainSurroundings, ...surroundings }, changes)).toBe(why);
});

it('a knob is skipped if the server is too old, or already has the setting', () => {
  const newer = candidate('a', 'a on;', 'http', { since: '1.25.1' });
  expect(whyNot(newer, plainSurroundings, changes)).toBe(
    'needs version 1.25.1, and this is 1.22.1',
  );
  const usual = { ...candidate('a', 'a on;'), isDefault: true };
  expect(whyNot(usual, plainSurroundings, () => ({ changes: [added] }))).toBe(
    'already so, by default',
  );
  expect(whyNot(usual, plainSurroundings, changes)).toBeUndefined();
});

const [row] = measured([workers, openFileCache]).comparisons as [Comparison];
type Found = [variant: string, ratio: number, verdict: Verdict, metric?: Comparison['metric']];
const result = (...rows: Found[]) => {
  const comparisons = rows.map(([variant, ratio, verdict, metric = 'rps']): Comparison => {
    const ci95: [number, number] = [ratio - 0.02, ratio + 0.02];
    return { ...row, metric, variant, baseline: 'as-it-is', ratio, ci95, verdict };
  });
  return { comparisons, sameWithin: 0.01 } as unknown as Result;
};
const all = [
  candidate('aio', 'aio threads;'),
  candidate('etag', 'etag off;'),
  candidate('buffered', 'access_log ... buffer=64k;'),
  candidate('log', 'access_log off;'),
  candidate('cache', 'open_file_cache max=1;'),
];
const others: Found[] = [
  ['aio', 0.5, 'slower'],
  ['etag', 1.01, 'inconclusive'],
  ['buffered', 1.08, 'faster'],
  ['log', 1.1, 'faster'],
];
const first = result(...others, ['cache', 1.3, 'faster']);
const effects = ranked(all, first);
const namesOf = (candidates: readonly { name: string }[]) =>
  candidates.map(({ name }) => name).join(' ');
const order = (of: typeof effects) => namesOf(of.map((effect) => effect.candidate));

it('the ranking begins with the largest gain', () => {
  expect(order(effects)).toBe('cache log buffered etag aio');
  const again = ranked(all, first, result(['cache', 1.05, 'inconclusive']));
  expect(order(again)).toBe('log buffered cache etag aio');
  const cpu = result(['log', 0.8, 'faster', 'cpu'], ['cache', 0.7, 'faster', 'cpu']);
  expect(order(ranked(all, cpu))).toBe('cache log');
});

it('the ranking suggests a precise comparison', () => {
  expect(namesOf(worthACloserLook(effects, 9))).toBe('cache log buffered etag');
  expect(namesOf(worthACloserLook(effects, 2))).toBe('cache log');
  const harmful = ranked(all, result(['etag', 0.99, 'inconclusive']));
  expect(worthACloserLook(harmful, 9)).toEqual([]);
});

it('a long reason for a missing verdict stands below the ranking, once', () => {
  const why = 'as-it-is waited 90 % of its turns for cores that other programs used, log 91 %';
  const made = result(...others, ['cache', 1.3, 'none']);
  made.comparisons[3] = { ...row, variant: 'log', verdict: 'none', why };
  made.comparisons[4] = { ...row, variant: 'cache', verdict: 'none', why };
  const found = ranked(all, made);
  const cells = rankingTable(found, made).rows.map((cells) => cells.map(cellText).at(-1));
  expect(cells.slice(0, 2)).toEqual(['no verdict', 'no verdict']);
  expect(reasonLines(found)).toEqual([`No verdict on log and cache: ${why}.`]);
  expect(reasonLines(effects)).toEqual([]);
});

it('the ranking combines candidates', () => {
  const combined = helpful(effects, { asItIs: 9, of: () => 9 });
  expect(namesOf(combined.chosen)).toBe('cache log');
  expect(combined.sentences.join('|')).toMatch(
    /^buffered [^|]* with log, which sets access_log[^|]*$/,
  );
  const of = ({ name }: Candidate) => (name === 'cache' ? 2000 : 9);
  const { chosen, sentences } = helpful(effects, { asItIs: 9, of });
  expect(namesOf(chosen)).toBe('log');
  expect(sentences[0]).toMatch(/^cache answers with 2,000 B instead of 9 B/);
});

it('an undecided knob may help', () => {
  const two = [candidate('aio', 'aio on;', 'http'), candidate('log', 'access_log off;', 'http')];
  const lineOf = (verdict: Comparison['verdict']) =>
    nothingHelpsLine(ranked(two, result(['aio', 0.9, 'slower'], ['log', 1, verdict])));
  expect(lineOf('same')).toBe(
    'No value that was tried helps this config here: there is nothing to verify.',
  );
  expect(lineOf('inconclusive')).toBe(
    'No value that was tried is known to help this config here, so there is nothing to verify; 1 of 2 values is undecided: more --rounds or a quieter machine may decide.',
  );
  // Its body has another length, so it is not put together.
  expect(lineOf('faster')).toBe('What helps is left out: there is nothing to verify.');
});

test.each([
  ['server', 'listen ... reuseport;', 'listen ... backlog=9;', true],
  ['top', 'num-threads: 1', 'num-threads: 2', false],
])('the ranking in %s, %s and %s go together: %s', (context, first, second, goTogether) => {
  const two = [candidate('aio', first, context), candidate('log', second, context)];
  const both = result(['aio', 1.1, 'faster'], ['log', 1.2, 'faster']);
  const { chosen } = helpful(ranked(two, both), { asItIs: 9, of: () => 9 });
  expect(chosen).toHaveLength(goTogether ? 2 : 1);
});

it('the ranking is a table with a row per candidate', () => {
  const same = result(...others, ['cache', 1, 'same']);
  const { columns, rows } = rankingTable(ranked(all, same), same);
  expect(columns.map(({ title }) => title).join()).toBe('knob,requests/s,CPU/request,p99,here');
  expect(rows.map((row) => [0, 1, 4].map((index) => cellText(row[index] ?? '')))).toEqual([
    ['log', '+10 % [8, 12]', 'helps'],
    expect.any(Array),
    ['etag', '+1.0 % [−1.0, 3.0]', 'undecided'],
    ['cache', '±0.0 % [−2.0, 2.0]', 'nothing here, same within 1 %'],
    ['aio', '−50 % [−52, −48]', 'harms'],
  ]);
});

it('the ranking has intervals from four rounds on', () => {
  const few = result(['log', 1.1, 'none']);
  const comparisons = few.comparisons.map((of) => ({ ...of, roundRatios: [1.1, 1.1, 1.1] }));
  const [shown] = rankingTable(ranked(all.slice(2), { ...few, comparisons }), few).rows;
  expect(cellText(shown?.[1] ?? '')).toBe('+10 %');
});

it('the ranking joins groups by their baselines', () => {
  const page = { path: '/', bodyBytes: 9 };
  const server = { name: 'nginx', config: ['/n.conf'], workers: 1, asIs: {} } as const;
  const changed = Array.from({ length: 12 }, (_, index) => ({
    name: `k${index}`,
    server,
    page: index === 0 ? { ...page, bodyBytes: 8 } : page,
  }));
  const asItIs = { given: 'n.conf', server, load: wrk('-c 1 -t 1 -d 1'), page };
  const options = { quick: false, exact: false };
  const { groups, scenario } = planOf('knobs', 'On', asItIs, changed, cores, options);
  expect(groups.map(({ sides }) => sides[0]?.variant.name)).toEqual(['as-it-is', 'as-it-is-2']);
  for (const { sides } of groups) {
    const [baseline, ...others] = sides.map(({ variant }) => variant);
    expect(others.map(({ against }) => against)).toEqual(Array(6).fill(baseline?.name));
  }
  expect(scenario.variants[1]).toMatchObject({ page: { bodyBytes: 8 } });
});

test('invalid arguments of knobs are refused', async () => {
  const folder = await ownFiles({ 'own.conf': 'http { server { listen 80; } }' });
  const config = path.join(folder, 'own.conf');
  for (const [args, message] of [
    [['--quick'], /^knobs wants a config: /],
    [[config, '--knobs', 'open-file-cach'], /did you mean open-file-cache\?$/],
    [[config, '--knobs', 'foo'], /^there is no knob of nginx "foo": --list prints them$/],
    [[config, '--fail-if', 'slower'], /^there is no flag "--fail-if"/],
  ] as const) {
    const refused = { message: expect.stringMatching(message), exitCode: 2 };
    await expect(knobsCommand(args, additions)).rejects.toMatchObject(refused);
  }
});

test('the help of knobs has groups, and the usual one fits a screen', async () => {
  const printed = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  await expectGroupedHelp(async (...more) => {
    expect(await knobsCommand(['--help', ...more], additions)).toBe(0);
    return printed.mock.calls.splice(0).join('\n').split('\n');
  });
});
