import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { compareCommand } from '../../lib/cli/compare.ts';
import { printHelp } from '../../lib/cli/words.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';

const folder = sharedFolder();
beforeAll(() => {
  const text = 'events { }\nhttp { server { listen 8080; } }\n';
  writeFileSync(join(folder, 'a.conf'), text);
  writeFileSync(join(folder, 'b.conf'), text);
  writeFileSync(join(folder, 'empty.conf'), '');
  writeFileSync(
    join(folder, 'app.mjs'),
    'import http from "node:http";\nhttp.createServer().listen(1);\n',
  );
  writeFileSync(
    join(folder, 'apache.conf'),
    '<VirtualHost *:80>\n  DocumentRoot "/var/www"\n</VirtualHost>\n',
  );
});
beforeEach(() => void vi.stubEnv('INIT_CWD', folder));

test.each<[string[], RegExp, 1 | 2]>([
  [
    ['a.conf'],
    /^compare wants two sides or more, and a\.conf is one: npm run compare -- A\.conf B\.conf$/,
    2,
  ],
  [Array.from({ length: 17 }, () => 'a.conf'), /at most 16 sides/, 2],
  [['a.conf', '127.0.0.1:8080'], / http:\/\/127\.0\.0\.1:8080\/$/, 2],
  [['a.conf', ':8080'], / http:\/\/127\.0\.0\.1:8080\/$/, 2],
  [['a.conf', 'server.mjs'], /^there is no file .*\/server\.mjs, and no program server\.mjs$/, 2],
  [['a.conf', 'app.mjs'], /app\.mjs .* in quotes: 'node server\.mjs'$/, 1],
  [['a.conf', ''], /^a side is empty: give a config, a command in quotes or an address$/, 2],
  [['a.conf', 'x='], /^the side x is empty: give/, 2],
  [['a.conf', 'ws://localhost/'], /^ws:\/\/localhost\/: ws:\/\/ cannot be loaded/, 2],
  [['a.conf', 'emtpy.conf'], /did you mean empty\.conf\?$/, 2],
  [['x=a.conf', 'x=b.conf'], /^two sides are named x: give another name, such as x-2=…$/, 2],
  [['a.conf', 'http://example.com/'], /add --host example\.com /, 2],
  [['a.conf', 'b.conf', '--host', 'example.com'], /^--host example\.com: no side/, 2],
  [['a.conf', 'c=node x.js', '--port', 'a=3000'], /^--port is for a command, and a is none$/, 2],
  [
    ['a.conf', 'b.conf', '--bin', 'h2o=/x'],
    /^--bin h2o=… is for a config of h2o, and no side is one$/,
    2,
  ],
  [
    ['a.conf', 'c=node x.js', '--bin', 'c:nginx=/x'],
    /^--bin nginx=… is for a config of nginx, and c is none$/,
    2,
  ],
  [
    ['a.conf', 'c=node x.js', '--port', 'c=0'],
    /^--port 0: give a whole number from 1 to 65535$/,
    2,
  ],
  [
    ['a.conf', 'b.conf', '--status', '99'],
    /^--status 99: give a status from 200 to 599, such as 404$/,
    2,
  ],
  [['a.conf', 'b.conf', '--pace', '10x'], /^--pace is for --log: give one, or leave it out$/, 2],
  [['a.conf', 'b.conf', '--site', 'a'], /^--site is for --log or --har: give one/, 2],
  [
    ['a.conf', 'b.conf', '--log', 'log', '--pace', '0x'],
    /^--pace 0x: give as-logged, or how many times as fast, such as 10x$/,
    2,
  ],
  [
    ['a.conf', 'b.conf', '--log', 'log', '--pace', '2x', '--rates', '1k'],
    /^--pace and --rates: each says when requests are made: leave one out$/,
    2,
  ],
  [['a.conf', 'b.conf', '--method', 'post'], /^--method post: give a method such as POST$/, 2],
  [['a.conf', 'b.conf', '--data', '@none'], /^--data none: there is no such file$/, 2],
  [
    ['a.conf', 'b.conf', '--upstream', 'app:9000=10.0.0.1:80'],
    /^--upstream app:9000=10\.0\.0\.1:80: write app:9000=127\.0\.0\.1:9000, or app:9000=stub:50ms:2KB/,
    2,
  ],
  [
    ['node a.js', 'node b.js', '--upstream', 'app=stub:1s'],
    /^--upstream is for a config, and no side is one$/,
    2,
  ],
  [
    ['a.conf', 'b.conf', '--in', 'a.conf'],
    /^--in is for a file of nginx without http { }, and no side is one$/,
    2,
  ],
  [
    ['a.conf', 'b.conf', '--bin', 'apache=/x'],
    /^--bin apache=\/x: write nginx=PATH, h2o=PATH, nghttpd=PATH, or NAME:nginx=PATH for one side$/,
    2,
  ],
  [['a.conf', 'b.conf', '--load', 'd=wrk'], /^there is no side "d": there are a, b$/, 2],
  [
    ['a.conf', 'b.conf', '--load', 'wrk', '--load', 'wrk -c 2'],
    /^--load is given twice for all sides$/,
    2,
  ],
  [['a.conf', 'b.conf', '--load', 'b='], /^--load b=: there is nothing behind b=$/, 2],
  [['a.conf', 'apache.conf'], /apache\.conf.*Apache/, 1],
  [
    ['a.conf', 'b.conf', '--loads', 'wrk'],
    /^there is no flag "--loads": did you mean --load\?$/,
    2,
  ],
])('%j are refused in one line', async (args, message, exitCode) => {
  const error = await compareCommand(args).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ message: expect.stringMatching(message), exitCode });
  expect((error as Error).message).not.toContain('\n');
});

test('no words show the help, with exit code 2; --help is 0', async () => {
  const print = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  expect(await compareCommand([])).toBe(2);
  expect(await compareCommand(['--help'])).toBe(0);
  expect(print.mock.calls[0]).toEqual(print.mock.calls[1]);
  expect(String(print.mock.calls[0])).toMatch(/^npm run compare -- SIDE SIDE … \[flags\]\n/);
  for (const flag of ['--url URL', '--load "wrk', '--rounds', '--fail-if'])
    expect(String(print.mock.calls[0])).toContain(flag);
});

test('a help goes on below its text in a narrow terminal, and is one line for each flag in a pipe', () => {
  const print = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const lines = [
    'A side is a config or a command',
    '  --url URL  a path, or a URL',
    '',
    '             and a port',
  ];
  printHelp(lines);
  vi.stubGlobal('process', { ...process, stdout: { columns: 24 } });
  printHelp(lines);
  expect(print.mock.calls.flat()).toEqual([
    lines.join('\n'),
    [
      'A side is a config or a',
      'command',
      '  --url URL  a path, or',
      '             a URL',
      '',
      '             and a port',
    ].join('\n'),
  ]);
});
