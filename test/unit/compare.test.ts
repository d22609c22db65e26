// The sides of `compare` and their scenario.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { compareCommand, scenarioOfSides, sameSides } from '../../lib/cli/compare.ts';
import { addressLines, requirePermission } from '../../lib/cli/run.ts';
import { askedFlags, readAsked } from '../../lib/cli/asked.ts';
import { sidesWithLoads, type Side } from '../../lib/cli/side-loads.ts';
import { namesOf, readSides, type Given } from '../../lib/cli/sides.ts';
import { givenName, problemIn } from '../../lib/form.ts';
import type { Tried } from '../../lib/cli/start-sides.ts';
import { readArguments } from '../../lib/cli/arguments.ts';
import { address } from '../../lib/scenario/index.ts';
import { cellText, type Table } from '../../lib/report/table.ts';
import type { PlanDraft } from '../../lib/runner/plan.ts';
import type { Answer, Listen, OwnConfig } from '../../lib/servers/index.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';

const plain: Listen = { port: 80, tls: false, http2: false, hosts: [] };
const tls: Listen = { ...plain, port: 443, tls: true };
const h2: Listen = { ...tls, http2: true };
const quic: Listen = { ...tls, http3: true };
const config = (server: OwnConfig['server'], ...listens: Listen[]): OwnConfig => ({
  server,
  file: `/etc/${server}.conf`,
  workers: 1,
  listens,
});
const nginx = config('nginx', plain);
const nginxH2 = config('nginx', h2);
const nghttpd = config('nghttpd', { ...plain, port: 8080, http2: true, http2Only: true });
const both = config('nginx', plain, h2);
const highPort = config('nginx', plain, { ...tls, port: 8443 });

const configSide = (name: string, of: OwnConfig): Given => ({
  name,
  given: `${name}.conf`,
  source: { kind: 'config', config: { ...of, file: `/x/${name}.conf` } },
});
const commandSide = (name: string, command: string): Given => ({
  name,
  given: name,
  source: { kind: 'command', command, program: command.split(' ')[0] as string },
});
const addressSide = async (url: string) =>
  (await readSides([url, 'x=http://localhost/']))[0] as Given;

const port = { value: 'PORT', repeated: true, help: '' } as const;
const cgroup = { value: 'FOLDER', repeated: true, help: '' } as const;
const flags = { ...askedFlags([]), h3: { help: '' }, port, cgroup } as const;
const oneCore: Parameters<typeof sidesWithLoads>[2] = { generatorCpus: [0] };
async function sidesFor(given: readonly Given[], line = '', cores = oneCore) {
  const read = readArguments(line === '' ? [] : line.split(', '), flags);
  return sidesWithLoads(given, await readAsked(read, given, []), cores);
}
const twoSides = (first: OwnConfig, other: OwnConfig, flags = '', cores = oneCore) =>
  sidesFor([configSide('a', first), configSide('b', other)], flags, cores);
const folder = sharedFolder();
const listOf = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const tried = (side: Side, changed: Partial<Answer> = {}, more: Partial<Tried> = {}): Tried => {
  const usual = { status: 200, bytes: 5, hash: 'a', encoding: '', type: 'text/html', location: '' };
  return { ...side, answer: { ...usual, ...changed }, redirections: [], ...more };
};
const all = (sides: readonly Side[]) => sides.map((side) => tried(side));

const wrk = 'wrk -c 100 -t 3 -d 10 http/1.1';
const h2load = 'h2load -c 100 -m 10 -t 3 -D 10';

test.each([
  ['HTTP/2 with and without TLS', nghttpd, nginxH2, `${h2load} h2c`, `${h2load} h2`],
  ['one stream if one side speaks HTTP/2', nginx, nginxH2, wrk, 'h2load -c 100 -m 1 -t 3 -D 10 h2'],
  ['HTTP/1.1 for h2o without TLS', config('h2o', { ...plain, http2: true }), nginx, wrk, wrk],
])('the default load is %s', async (_, first, other, ...expected) => {
  const sides = await twoSides(first, other, '', { generatorCpus: [0, 2, 4] });
  expect(sides.map(({ load }) => `${load.command} ${load.protocol}`)).toEqual(expected);
});

test('the default load has one thread per generator core, up to 100', async () => {
  const threadsOn = async (count: number) => {
    const cores = { generatorCpus: Array.from({ length: count }, (_, cpu) => cpu) };
    return (await twoSides(nginx, nginxH2, '', cores)).map(({ load }) => load.threads);
  };
  expect(await threadsOn(32)).toEqual([32, 32]);
  expect(await threadsOn(128)).toEqual([100, 100]);
});

test.each([
  ['--h3', 'h2load -c 100 -m 10 -t 1 -D 10 --h3'],
  ['--h3, --load, h2load -c 2 -m 3 -D 1', 'h2load -c 2 -m 3 -D 1 --h3'],
  ['--load, h2load -c 2 -D 1 --h3', 'h2load -c 2 -D 1 --h3'],
])('HTTP/3 uses the port that supports it: %s', async (flags, command) => {
  const of = config('nginx', plain, tls, { ...quic, port: 8443 });
  for (const { listen, load } of await twoSides(of, of, flags))
    expect([listen.port, load.protocol, load.command]).toEqual([8443, 'h3', command]);
});

test.each([
  ['the only one, whatever port the URL has', nginx, '--url, http://localhost:8080/', 80],
  ['the only one of that scheme', highPort, '--url, https://localhost/', 8443],
  ['that of a list of pages', both, `--urls, ${listOf('https', 'https://a/')}`, 443],
])('the loaded address is %s', async (_, config, flags, port) => {
  for (const { listen } of await twoSides(config, config, flags)) expect(listen.port).toBe(port);
});

test.each([
  [both, '', /^a\.conf listens on the ports 80, 443 \(TLS\): .* --url https:\/\/localhost\/$/],
  [
    config('nginx', plain, { ...tls, hosts: ['_', 'shop.example'] }),
    '',
    /: say which to load, such as --url https:\/\/shop\.example\/$/,
  ],
  [both, '--url, http://localhost:81/', /^--url says port 81 over http, .*\/localhost\/$/],
  [nginx, `--urls, ${listOf('https', 'https://a/')}`, /^--urls says https, .*\/localhost\/$/],
  [nginxH2, '--load, h2load -n 1 http://localhost/', /^--load says http, .* https:\/\//],
  [config('nginx'), '', /^a\.conf listens on no TCP port/],
  [nginx, '--url, index.html', /^--url: "index\.html" is no URL .* \/index\.html$/],
  [nginx, '--url, /a, --load, wrk http://localhost/b', /^--url and the URL in --load: leave/],
  [nginx, '--load, wkr -c 100', /^--load: .* "wkr" .* did you mean wrk\?/],
  [nginx, '--load, h2load -n 1', /HTTP\/2 without TLS, and a\.conf .* port 80: take wrk,/],
  [nghttpd, '--load, wrk -c 5', /speaks HTTP\/2 only on port 8080: take h2load$/],
  [nginxH2, '--load, h2load --h3 -n 5', /^a\.conf has no port with both TLS and HTTP\/3: give/],
  [config('nginx', quic, { ...quic, port: 8443 }), '--h3', /say which to load, such as/],
])('flags that do not match the config are refused: %#', async (config, flags, message) => {
  const asked = twoSides(config, nginx, flags);
  await expect(asked).rejects.toMatchObject({
    message: expect.stringMatching(message),
    exitCode: 2,
  });
});

test.each([
  ['--url, /a b?c=1#d', { path: '/a%20b?c=1' }],
  ['--url, http://a.example/a, --load, wrk -H Host:b.example', { path: '/a', host: 'b.example' }],
  [
    `--urls, ${listOf('pages', '/ 2\n/b')}`,
    {
      path: '/',
      requests: [
        { target: '/', weight: 2 },
        { target: '/b', weight: 1 },
      ],
    },
  ],
])('%s requests page %j', async (flags, page) => {
  for (const side of await twoSides(nginx, nginx, flags)) expect(side.page).toEqual(page);
});

test('names of sides', async () => {
  const sources = ['/old/1.conf', '/new/1.conf'].map((file) => ({
    source: { kind: 'config', config: { ...nginx, file } } as const,
  }));
  expect(namesOf(sources)).toEqual(['old-config-1', 'new-config-1']);
  const names = (...lines: string[]) =>
    namesOf(lines.map((line) => ({ source: commandSide('x', line).source })));
  expect(names('caddy run', '/usr/sbin/lighttpd -D')).toEqual(['caddy', 'lighttpd']);
  expect(names('node a.js', 'node b.js')).toEqual(['node-a-js', 'node-b-js']);
  expect(names('node a.js', 'node a.js')).toEqual(['node-a', 'node-b']);
  const given = await readSides(['old=node a.js', 'node b.js', 'http://127.0.0.1:80/x']);
  expect(given.map(({ name }) => name)).toEqual(['old', 'node', '127-0-0-1']);
});

test.each([
  [
    ['node a.js --cache 1000 --zip off', 'node a.js --cache 1000 --zip on'],
    ['node-off', 'node-on'],
  ],
  [
    [
      '/home/me/build-release-with-lto/bin/my-httpd -p 1',
      '/home/me/build-release-without/bin/my-httpd -p 1',
    ],
    ['build-release-with-lto', 'build-release-without'],
  ],
  [
    ['/srv/now/old/nginx/nginx.conf', '/srv/now/new/nginx/nginx.conf'],
    ['nginx-old', 'nginx-new'],
  ],
  [
    [
      '/srv/a-config-with-a-very-long-name-that-ends-with-one.conf',
      '/srv/a-config-with-a-very-long-name-that-ends-with-two.conf',
    ],
    ['with-one', 'with-two'],
  ],
  [
    ['/srv/nginx.conf', '/srv/a-config-with-a-very-long-name.conf'],
    ['nginx', 'a-config-with-a-very-long-name'],
  ],
  [
    [
      '/srv/2023/09/a-production-web-server.conf',
      '/srv/2024/09/a-production-web-server.conf',
      '/srv/2024/10/a-production-web-server.conf',
    ],
    ['2023-09', '2024-09', '2024-10'],
  ],
  [
    ['python3 -m http.server 80 --bind 127.0.0.1', 'python3 app.py'],
    ['python3-m-http-server-80', 'python3-app-py'],
  ],
])('names that are long or alike are of what differs: %j', (words, names) => {
  const sides = words.map((word) => ({
    source: word.startsWith('/srv/')
      ? ({ kind: 'config', config: { ...nginx, file: word } } as const)
      : commandSide('x', word).source,
  }));
  expect(namesOf(sides)).toEqual(names);
  expect(names.flatMap((name) => problemIn(givenName, name) ?? [])).toEqual([]);
});

test('protocols of a command', async () => {
  const given = [commandSide('one', 'node a.js'), configSide('b', nginxH2)];
  const loads = async (flags?: string) => (await sidesFor(given, flags)).map(({ load }) => load);
  expect(await loads()).toMatchObject([{ protocol: 'http/1.1' }, { protocol: 'h2' }]);
  expect(await loads('--load, one=wrk -c 7, --load, h2load -c 3 -m 4 -n 9')).toMatchObject([
    { connections: 7 },
    { connections: 3 },
  ]);
  const line = '--url, https://localhost/a, --load, h2load -c 1 -n 1';
  expect(await sidesFor(given.slice(0, 1), line)).toMatchObject([
    { listen: { tls: true }, load: { protocol: 'h2' } },
  ]);
});

test('the default load of a command over HTTP/3 is that of a config', async () => {
  const given = [commandSide('one', 'node a.js'), commandSide('two', 'node b.js')];
  for (const { load } of await sidesFor(given, '--h3, --url, https://localhost/'))
    expect(load.command).toBe('h2load -c 100 -m 10 -t 1 -D 10 --h3');
});

test('path and host of an address', async () => {
  const named = [configSide('a', nginx), await addressSide('http://www.example.com:8080/own?x=1')];
  expect((await sidesFor(named)).map(({ page }) => page)).toEqual([
    { path: '/own?x=1' },
    { path: '/own?x=1', host: 'www.example.com:8080' },
  ]);
  await expect(sidesFor(named, '--url, /a')).rejects.toThrow(/ and the path of www-example-com, /);
  const side = [await addressSide('http://127.0.0.1:8080')];
  for (const url of ['/other', 'http://localhost/other', 'http://localhost:8080/other'])
    expect(await sidesFor(side, `--url, ${url}`)).toMatchObject([
      { page: { path: '/other' }, listen: { port: 8080 } },
    ]);
});

test('a side given by address is loaded at that address only', async () => {
  const side = [await addressSide('http://127.0.0.1:8080')];
  // An explicit port counts even if it is the default of the scheme.
  await expect(sidesFor(side, '--load, ab -n 1 127.0.0.1:80/')).rejects.toThrow(
    /^--load says port 80.*, and 127-0-0-1 is http:\/\/127\.0\.0\.1:8080: write/,
  );
});

test('an address has a control group of its own, or that of all addresses', async () => {
  const group = async (flags: string) => {
    const sides = [commandSide('a', 'node a.js'), await addressSide('http://127.0.0.1:8080')];
    return (await sidesFor(sides, flags)).map(({ server }) => 'cgroup' in server && server.cgroup);
  };
  expect(await group('--url, /')).toEqual([false, false]);
  expect(await group('--cgroup, /sys/fs/cgroup/x')).toEqual([false, '/sys/fs/cgroup/x']);
  expect(await group('--cgroup, 127-0-0-1=/sys/x')).toEqual([false, '/sys/x']);
});

test('a path in one address applies to all sides', async () => {
  const paths = async (third: string) => {
    const [first, two] = [await addressSide('http://127.0.0.1/api'), await addressSide(third)];
    const sides = await sidesFor([commandSide('a', 'node a.js'), first, two]);
    return sides.map(({ page }) => page.path).join(' ');
  };
  expect(await paths('http://127.0.0.3/')).toBe('/api /api /api');
  expect(await paths('http://127.0.0.3/b')).toBe('/ /api /b');
});

test('a remote host is loaded only if it is allowed by name', () => {
  const at = (origin: string) => (): unknown => requirePermission([address(origin)], []);
  for (const host of ['127.9.9.9', '[::1]', 'LOCALHOST:8080'])
    expect(at(`http://${host}`)).not.toThrow();
  for (const host of ['a.localhost', 'localhost.', '[::]', '0.0.0.0', '127.0.0.1.example.com'])
    expect(at(`http://${host}`)).toThrow(/ is not on this machine: add --host /);
  const remote = [address('http://[2001:db8::1]'), address('http://Example.COM')];
  expect(() => requirePermission(remote, ['example.com'])).toThrow(/add --host 2001:db8::1 /);
  expect(() => requirePermission(remote, ['EXAMPLE.com', '[2001:db8::1]'])).not.toThrow();
});

test('an address is printed once for all rates', () => {
  const variants = ['a-at-1', 'a-at-2'].map((name) => ({
    variant: { name, server: address('http://localhost') },
    load: { connections: 100 },
  }));
  expect(addressLines({ variants: variants as unknown as PlanDraft['variants'] })).toEqual([
    expect.stringContaining('http://localhost is loaded with 100 connections'),
  ]);
});

test('the load follows the flags; credentials are hidden', async () => {
  const load = async (flags: string) => (await twoSides(nginx, nginx, flags))[1]?.load;
  expect(await load('--data, x, --header, X-A: 1, --header, Cookie: s=1')).toMatchObject({
    method: 'POST',
    body: 'x',
    headers: { 'X-A': '1', Cookie: 's=1' },
    command: "wrk -c 100 -t 1 -d 10 --header 'X-A: 1' --header 'Cookie: ***' --data …",
  });
  const puts = '--method, PUT, --header, x-a: new, --load, wrk -c 5 -H "X-A: old" -H "X-B: 2"';
  expect(await load(puts)).toMatchObject({ method: 'PUT', headers: { 'x-a': 'new', 'X-B': '2' } });
});

const alike = (await twoSides(nginx, nginx)) as [Side, Side];

test('the scenario has ports, builds and commands', async () => {
  const given = [commandSide('one', 'node a.js'), configSide('b', nginx), configSide('c', both)];
  const flags = '--url, http://localhost/, --port, one=3000, --bin, c:nginx=/opt/nginx';
  const sides = await sidesFor(given, flags);
  const { scenario } = scenarioOfSides(all(sides), []);
  expect(scenario.variants.map(({ server }) => server)).toMatchObject([
    { command: 'node a.js', folder: expect.stringMatching(/^\//), port: 3000 },
    { asIs: {} },
    { asIs: { port: 80 }, binary: '/opt/nginx' },
  ]);
  const page = { path: '/', bodyBytes: 5 };
  expect(scenario).toMatchObject({ title: 'one, b.conf and c.conf', knob: 'b', page });
});

const asText = (table: Table | undefined) => {
  if (table === undefined) return [];
  const titles = table.columns.map(({ title }) => title).join(' | ');
  return [titles, ...table.rows.map((row) => row.map(cellText).join(' | '))];
};

test.each<[Partial<Answer>, Partial<Tried>, ...string[]]>([
  [{ type: 'text/html; charset=utf-8' }, {}],
  [{ bytes: 6000 }, {}, 'side | B of body', 'a | 5', 'b | 6,000'],
  [{ status: 204 }, {}, 'side | status', 'a | 200', 'b | 204'],
  [
    { encoding: 'gzip', bytes: 3, hash: 'b' },
    {},
    'side | compression | B of body',
    'a | none | 5',
    'b | gzip | 3',
  ],
  [{ type: 'text/plain; charset=utf-8' }, {}, 'side | type', 'a | text/html', 'b | text/plain'],
  [{}, { page: { path: '/x' } }, 'side | page', 'a | /', 'b | /x'],
])('a table before the load says in what answers differ: %j %j', (answer, more, ...lines) => {
  const sides = [tried(alike[0]), tried(alike[1], answer, more)];
  const { scenario, table, advice } = scenarioOfSides(sides, []);
  expect(asText(table)).toEqual(lines);
  expect([...advice, ...(scenario.footnotes ?? [])]).toEqual([]);
});

test('what to do about answers that differ is said in a line', () => {
  const saidOf = (answer: Partial<Answer>, more: Partial<Tried> = {}) =>
    scenarioOfSides([tried(alike[0]), tried(alike[1], answer, more)], []);
  const bodies = saidOf({ hash: 'b' });
  expect(bodies.advice).toEqual([expect.stringContaining('differ, though not in length: ')]);
  expect(bodies.scenario.footnotes).toEqual(bodies.advice);
  const offer = saidOf({}, { offered: { encoding: 'br', bytes: 3 } });
  expect(offer.scenario.footnotes).toEqual([]);
  expect(offer.advice).toEqual([
    expect.stringMatching(/^No side was asked for compression, so it does not count here: /),
  ]);
  expect(asText(offer.table)).toEqual(['side | compression on offer', 'a | none', 'b | br, 3 B']);
});

test('the table tells protocols, and TLS for HTTP/1.1 too', async () => {
  const protocols = async (...of: Parameters<typeof twoSides>) =>
    asText(scenarioOfSides(all(await twoSides(...of)), []).table).slice(1);
  expect(await protocols(nginxH2, nginx)).toEqual(['a | HTTP/2 over TLS', 'b | HTTP/1.1']);
  expect(await protocols(config('nginx', tls), nginx)).toEqual([
    'a | HTTP/1.1 over TLS',
    'b | HTTP/1.1',
  ]);
});

test.each([
  ['root /srv/www;', 1],
  ['root www;', 0],
  ['include site.conf;', 0],
])('the same text in two folders, with %s: %i groups of equal sides', async (line, groups) => {
  const text = `events { }\nhttp { server { listen 80; ${line} } }`;
  const [a, b] = await Promise.all([1, 2].map(() => ownFiles({ 'a.conf': text, 'site.conf': '' })));
  const sides = await sidesFor(await readSides([`a=${a}/a.conf`, `b=${b}/a.conf`]));
  expect(await sameSides(sides)).toHaveLength(groups);
});

test('the scenario reports identical sides', async () => {
  const lines = ['node a.js', 'node b.js', 'node a.js', 'node a.js'];
  const given = lines.map((line, index) => commandSide(`s${index}`, line));
  const scenarioOf = async (flags: string) => {
    const sides = await sidesFor(given, flags);
    return scenarioOfSides(all(sides), await sameSides(sides)).scenario;
  };
  const some = await scenarioOf('');
  expect(some.footnotes).toEqual([expect.stringMatching(/^s0, s2 and s3 are written alike: /)]);
  expect(some).not.toHaveProperty('control');
  const files = [0, 2].map((index) => ({ ...(given[index] as Given), given: 'a.conf' }));
  const [twice] = scenarioOfSides(all(await sidesFor([...files, given[1] as Given])), [
    await sidesFor(files),
  ]).scenario.footnotes as [string];
  expect(twice).toMatch(/^s0 and s2 are written alike: /);
  const { footnotes } = await scenarioOf('--port, s2=80');
  expect(footnotes).toEqual([expect.stringMatching(/^s0 and s3 are/)]);
  expect(scenarioOfSides(all(alike), [alike]).scenario).toMatchObject({
    control: true,
    footnotes: [expect.stringMatching(/^Both sides are written alike/)],
  });
  const ports = [await addressSide('http://127.0.0.1'), await addressSide('http://127.0.0.1:80')];
  expect(await sameSides(await sidesFor(ports))).toHaveLength(1);
});

test.each([
  ['http://127.0.0.1:8080/', 'http://localhost:8080/', true],
  ['http://localhost:8080/', 'http://localhost:8080/', true],
  ['http://127.0.0.1:8080/', 'http://127.0.0.1:8081/', false],
  ['http://127.0.0.1:8080/', 'http://127.0.0.2:8080/', false],
  // A server may have a site for each name.
  ['http://one.invalid/', 'http://two.invalid/', false],
])('%s and %s are one server: %s', async (one, other, isOne) => {
  const sides = await sidesFor([await addressSide(`a=${one}`), await addressSide(`b=${other}`)]);
  const same = await sameSides(sides);
  expect(same).toHaveLength(isOne ? 1 : 0);
  const { variants, control } = scenarioOfSides(all(sides), same).scenario;
  expect(control).toBe(isOne || undefined);
  const [first, second] = variants.map(({ server }) => server);
  expect(isDeepStrictEqual(first, second)).toBe(isOne);
});

test('what cannot be planned is refused before a side is started', async () => {
  const sides = ['a=false --port={port}', 'b=false --port={port}'];
  const flags = ['--fail-if', 'slower>3%', '--rounds', '3', '--out', folder];
  await expect(compareCommand([...sides, ...flags], noAdditions)).rejects.toThrow(
    '--fail-if asks for a verdict, which takes 4 rounds',
  );
});
