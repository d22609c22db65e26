import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { compareCommand } from '../../lib/cli/compare.ts';
import { printHelp } from '../../lib/cli/arguments.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const folder = sharedFolder();
beforeAll(() => {
  const nginx = 'events { }\nhttp { server { listen 8080; } }\n';
  for (const [name, text] of Object.entries({
    'a.conf': nginx,
    'b.conf': nginx,
    'site.conf': 'server { listen 8080; }\n',
    'app.mjs': 'import http from "node:http";\nhttp.createServer().listen(1);\n',
    'apache.conf': '<VirtualHost *:80>\n  DocumentRoot "/var/www"\n</VirtualHost>\n',
  }))
    writeFileSync(join(folder, name), text);
});
beforeEach(() => void vi.stubEnv('INIT_CWD', folder));

// Arguments separated by commas; flags alone apply to a.conf and b.conf.
test.each([
  ['a.conf', /^compare wants two sides or more, and a\.conf is one: /],
  [Array(17).fill('a.conf').join(', '), /at most 16 sides/],
  ['a.conf, :8080', /: for an address write http:\/\/127\.0\.0\.1:8080\/$/],
  ['a.conf, server.mjs', /^there is no file .*\/server\.mjs, and no program server\.mjs$/],
  [
    'node, server.js',
    /^there is no file .*\/server\.js: a command and its arguments are one side, in quotes: 'node server\.js'$/,
  ],
  ['a.conf, app.mjs', /app\.mjs is a program: give its command, 'node .*app\.mjs', /],
  ['a.conf, ', /^a side is empty: give /],
  ['a.conf, x=', /^the side x is empty: give/],
  ['a.conf, ws://localhost/', / ws:\/\/ cannot be loaded/],
  ['a.conf, apahce.conf', /did you mean apache\.conf\?$/],
  ['node, apahce.conf', /did you mean apache\.conf\?$/],
  ['x=a.conf, x=b.conf', /^two sides are named x: give another name, such as x-2=…$/],
  ['a.conf, http://example.com/', /add --host example\.com /],
  ['a.conf, c=node x.js, --port, a=3000', /^--port is for a command, and a is not one$/],
  ['--cgroup, a=/sys/fs/cgroup/x', /^--cgroup is for an address, and no side is one$/],
  ['a.conf, c=node x.js, --bin, c:nginx=/x', /^--bin nginx=… is for .* nginx, and c is not one$/],
  ['--status, 99', /^--status 99: give a status from 200 to 599$/],
  ['--url, /, --urls, list', /^--url and --urls do not go together: leave one out$/],
  ['--method, post', /^--method post: give a method such as POST$/],
  ['--data, @none', /^--data none: it is not there$/],
  ['--upstream, app:9000=10.0.0.1:80', /10\.0\.0\.1:80: write app:9000=127\.0\.0\.1:9000, or /],
  ['node a.js, node b.js, --upstream, app=stub:1s', /^--upstream is for a config, and no side/],
  ['--in, a.conf', /^--in is for a file of nginx without http { }, and no side/],
  ['--bin, apache=/x', /^--bin apache=\/x: write .* NAME:nginx=PATH for one side$/],
  ['--load, d=wrk', /^there is no side "d": there are a, b$/],
  ['--load, wrk, --load, wrk', /^--load is given twice for all sides$/],
  ['--load, b=', /^--load b=: there is nothing behind b=$/],
  ['a.conf, apache.conf', /apache\.conf.*'apache2 /],
  ['a.conf, ../', /^cannot read the config .*: it is a folder$/],
  ['a.conf, site.conf, --in, none.conf', /^cannot read the config .*none\.conf: it is not there$/],
])('%s: refused in one line', async (text, message) => {
  const args = text.split(', ');
  const asked = compareCommand(
    text.startsWith('--') ? ['a.conf', 'b.conf', ...args] : args,
    noAdditions,
  );
  await expect(asked).rejects.toMatchObject({ exitCode: 2 });
  expect(await refusalOf(asked)).toMatch(message);
});

const spyOnLog = () => vi.spyOn(console, 'log').mockImplementation(() => undefined);

test('without arguments, prints the help and exits with 2', async () => {
  const print = spyOnLog();
  expect(await compareCommand([], noAdditions)).toBe(2);
  expect(await compareCommand(['--help'], noAdditions)).toBe(0);
  const [first, second] = print.mock.calls.map(String);
  expect(first).toBe(second);
  expect(first).toMatch(/^npm run compare -- SIDE SIDE … \[flags\]\n[^]*--url URL/);
});

test('the help is wrapped only in a narrow terminal', () => {
  const print = spyOnLog();
  const lines = ['A side is a config or a command', '  --url URL  a path, or a URL'];
  printHelp(lines);
  vi.stubGlobal('process', { ...process, stdout: { columns: 24 } });
  printHelp(lines);
  expect(print.mock.calls.flat()).toEqual([
    lines.join('\n'),
    'A side is a config or a\ncommand\n  --url URL  a path, or\n             a URL',
  ]);
});
