import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { addressLines, requirePermission } from '../../lib/cli/run.ts';
import { main } from '../../lib/cli/main.ts';
import {
  namesOf,
  ofSides,
  readSides,
  sidesOf,
  type Given,
  type Source,
  type Launch,
  type Side,
} from '../../lib/cli/sides.ts';
import { comparisonOf, sameSides } from '../../lib/cli/compare.ts';
import type { Tried } from '../../lib/cli/start-sides.ts';
import { makePlan } from '../../lib/runner/make-plan.ts';
import { isRunnable } from '../../lib/scenario/variants.ts';
import {
  address,
  command,
  defineScenario,
  nginx as nginxServer,
  wrk,
} from '../../lib/scenario/index.ts';
import { readPageList } from '../../lib/scenario/pages.ts';
import type { Answer, Listen, OwnConfig } from '../../lib/servers/index.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const plain: Listen = { port: 80, tls: false, http2: false, hosts: [] };
const tls: Listen = { port: 443, tls: true, http2: false, hosts: [] };
const h2: Listen = { ...tls, http2: true };
const config = (server: OwnConfig['server'], ...listens: Listen[]): OwnConfig => ({
  server,
  file: `/etc/${server}.conf`,
  workers: 1,
  listens,
});
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
const addressSide = async (url: string): Promise<Given> =>
  (await readSides([url, 'x=http://localhost/'], 'compare'))[0] as Given;
/** As the flags --url, --urls and --load. */
interface Asked {
  url?: string;
  urls?: string;
  load?: string | string[];
}
const asked = (
  { url, urls, load = [] }: Asked,
  given: readonly Given[],
): Parameters<typeof sidesOf>[1] => ({
  ...(url === undefined ? {} : { url }),
  ...(urls === undefined ? {} : { urls: readPageList('--urls', urls) }),
  load: ofSides(
    '--load',
    [load].flat(),
    given.map(({ name }) => name),
  ),
});
const oneCore: Parameters<typeof sidesOf>[2] = { generatorCpus: [0] };
const sidesFor = (given: readonly Given[], wanted: Asked = {}, cores = oneCore): Side[] =>
  sidesOf(given, asked(wanted, given), cores);
const sides = (
  one: OwnConfig,
  other: OwnConfig,
  wanted: Asked = {},
  cores = oneCore,
): [Side, Side] =>
  sidesFor([configSide('a', one), configSide('b', other)], wanted, cores) as [Side, Side];
const asTheyAre = (): Launch => ({});
const answerOf = (bytes: number, changed: Partial<Answer> = {}): Answer => ({
  status: 200,
  bytes,
  encoding: '',
  type: 'text/html',
  location: '',
  ...changed,
});
const nginx = config('nginx', plain);
const nginxH2 = config('nginx', h2);
const nghttpd = config('nghttpd', { ...plain, port: 8080, http2: true, http2Only: true });
const both = config('nginx', plain, h2);

/** The path of a list of pages. */
function listFile(text: string): string {
  const file = join(newFolder(), 'urls');
  writeFileSync(file, text);
  return file;
}

describe("without a load of the person's", () => {
  test.each<[string, OwnConfig, OwnConfig, string[], string[]]>([
    [
      'HTTP/1.1',
      nginx,
      nginx,
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
    ],
    [
      'HTTP/1.1 over TLS',
      config('nginx', tls),
      config('h2o', tls),
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
    ],
    [
      'HTTP/2 where both speak it',
      nginxH2,
      config('h2o', h2),
      ['h2load -c 100 -m 10 -t 3 -D 10', 'h2'],
      ['h2load -c 100 -m 10 -t 3 -D 10', 'h2'],
    ],
    [
      'HTTP/2 without TLS',
      nghttpd,
      config('nginx', { ...plain, http2: true, http2Only: true }),
      ['h2load -c 100 -m 10 -t 3 -D 10', 'h2c'],
      ['h2load -c 100 -m 10 -t 3 -D 10', 'h2c'],
    ],
    [
      'HTTP/2 over TLS, and without',
      nghttpd,
      nginxH2,
      ['h2load -c 100 -m 10 -t 3 -D 10', 'h2c'],
      ['h2load -c 100 -m 10 -t 3 -D 10', 'h2'],
    ],
    [
      'one request at a time where one speaks it',
      nginx,
      nginxH2,
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
      ['h2load -c 100 -m 1 -t 3 -D 10', 'h2'],
    ],
    [
      'HTTP/1.1 with h2o, which takes h2c too',
      config('h2o', { ...plain, http2: true }),
      nginx,
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
      ['wrk -c 100 -t 3 -d 10', 'http/1.1'],
    ],
  ])('it is %s', (_, one, other, ...expected) => {
    expect(
      sides(one, other, {}, { generatorCpus: [0, 2, 4] }).map(({ load }) => [
        load.command,
        load.protocol,
      ]),
    ).toEqual(expected);
  });

  test.each([
    [1, 16, 16],
    [2, 16, 32],
    [8, 16, 100],
  ])('%i other hosts of %i cores each have %i threads in all', (count, coresEach, threads) => {
    const hosts = {
      names: Array.from({ length: count }, (_, index) => `host-${index}`),
      coresEach,
    };
    expect(
      sides(nginx, nginxH2, {}, { ...oneCore, generatorHosts: hosts }).map(
        ({ load }) => load.threads,
      ),
    ).toEqual([threads, threads]);
  });
});

describe('the address is', () => {
  test.each<[string, OwnConfig, Asked, number]>([
    ['the only one', nginx, {}, 80],
    ['the only one, with a path', nginx, { url: '/a' }, 80],
    ['the only one, whatever port the URL has', nginx, { url: 'http://localhost:8080/' }, 80],
    ["that of the URL's port", both, { url: 'https://localhost:443/' }, 443],
    ["that of the scheme's port", both, { url: 'http://localhost/' }, 80],
    [
      'the only one of that scheme',
      config('nginx', { ...plain, port: 8080 }, { ...tls, port: 8443 }),
      { url: 'https://localhost/' },
      8443,
    ],
    [
      'one of many',
      config('nginx', plain, { ...plain, port: 81 }, { ...plain, port: 82 }),
      { url: 'http://localhost:81' },
      81,
    ],
    ["that of the load's URL", both, { load: 'wrk http://localhost/' }, 80],
  ])('%s', (_, one, asked, port) => {
    expect(sides(one, one, asked).map(({ listen }) => listen.port)).toEqual([port, port]);
  });

  test.each<[OwnConfig, Asked, RegExp]>([
    [
      both,
      {},
      /^a\.conf listens on the ports 80, 443 \(TLS\): say which one is to be loaded, such as --url https:\/\/localhost:443\/$/,
    ],
    [both, { url: '/index.html' }, /^a\.conf listens on the ports 80, 443 \(TLS\)/],
    [both, { load: 'wrk -c 1 -t 1' }, /^a\.conf listens on the ports 80, 443 \(TLS\)/],
    [
      both,
      { url: 'http://localhost:81/' },
      /^--url says port 81 over http, and a\.conf listens on the ports 80, 443 \(TLS\): name one of them, such as --url http:\/\/localhost:80\/$/,
    ],
    [both, { url: 'http://localhost:443/' }, /^--url says port 443 over http/],
    [
      config('nginx', { ...plain, port: 8080 }, { ...tls, port: 8443 }),
      { url: 'https://localhost:443/' },
      /^--url says port 443 over https, and a\.conf listens on the ports 8080, 8443 \(TLS\): name one of them, such as --url https:\/\/localhost:8443\/$/,
    ],
    [
      nginx,
      { url: 'https://localhost/' },
      /^--url says https:\/\/, and a\.conf has no TLS on port 80: write http:\/\/$/,
    ],
    [
      nginxH2,
      { load: 'h2load -n 1 http://localhost/' },
      /^--load says http:\/\/, and a\.conf has TLS on port 443: write https:\/\/$/,
    ],
    [config('nginx'), {}, /^a\.conf listens on no TCP port/],
    [
      nginx,
      { url: 'index.html' },
      /^--url: "index\.html" is no URL such as http:\/\/localhost\/index\.html, and no path such as \/index\.html$/,
    ],
    [nginx, { url: 'ftp://localhost/' }, /^--url: "ftp:\/\/localhost\/" is no URL/],
    [
      nginx,
      { url: '/a', load: 'wrk http://localhost/b' },
      /^--url and the URL in --load: leave one of them out$/,
    ],
    [
      nginx,
      { load: 'wkr -c 100' },
      /^--load: there is no load generator "wkr" here: did you mean wrk\?/,
    ],
    [nginx, { load: 'wrk -s a.lua' }, /^--load: wrk: -s cannot be honoured here/],
    [
      nginx,
      { load: 'h2load -n 1' },
      /^--load: h2load -n 1 is HTTP\/2 without TLS, and a\.conf does not speak HTTP\/2 on port 80: take wrk, or h2load --h1$/,
    ],
    [
      config('h2o', tls),
      { load: 'h2load -n 1' },
      /^--load: h2load -n 1 is HTTP\/2 over TLS, and a\.conf does not speak HTTP\/2 on port 443/,
    ],
    [
      nghttpd,
      { load: 'wrk -c 5' },
      /^--load: wrk -c 5 is HTTP\/1\.1, and a\.conf speaks HTTP\/2 only on port 8080: take h2load$/,
    ],
  ])('wanted, or refused in one line: %#', (one, asked, message) => {
    const refusal = (): Error | undefined => {
      try {
        sides(one, nginx, asked);
        return undefined;
      } catch (error) {
        return error as Error;
      }
    };
    expect(refusal()).toMatchObject({
      message: expect.stringMatching(message),
      exitCode: one.listens.length === 0 ? 1 : 2,
    });
    expect(refusal()?.message).not.toContain('\n');
  });
});

test('what is asked for: path, query and host of the URL; a Host header is stronger', () => {
  const pageOf = (asked: Asked): object => sides(nginx, nginx, asked)[1].page;
  expect(pageOf({})).toEqual({ path: '/' });
  expect(pageOf({ url: '/a b?c=1#d' })).toEqual({ path: '/a%20b?c=1' });
  expect(pageOf({ url: 'http://www.example.com:8080/a' })).toEqual({
    path: '/a',
    host: 'www.example.com:8080',
  });
  expect(pageOf({ load: 'wrk http://www.example.com/a' })).toEqual({
    path: '/a',
    host: 'www.example.com',
  });
  expect(pageOf({ url: 'http://www.example.com/a', load: 'wrk -H Host:b.example' })).toEqual({
    path: '/a',
    host: 'b.example',
  });
  expect(pageOf({ url: 'http://10.0.0.1/a' })).toEqual({ path: '/a' });
});

test('several pages come from --urls, with their address', () => {
  const of = (one: OwnConfig, asked: Asked): object => {
    const [{ listen, page }, { page: other }] = sides(one, one, asked);
    expect(other).toEqual(page);
    return { port: listen.port, page };
  };
  const weights = { '/': 2, '/b': 1 };
  expect(of(nginx, { urls: listFile('/ 2\n/b') })).toEqual({
    port: 80,
    page: { path: '/', weights },
  });
  expect(of(both, { urls: listFile('/ 2\nhttps://a.example/b') })).toEqual({
    port: 443,
    page: { path: '/', host: 'a.example', weights },
  });
  expect(of(nginx, { urls: listFile('/b 7'), load: 'wrk -c 3 -t 1' })).toEqual({
    port: 80,
    page: { path: '/b' },
  });
  for (const [asked, message] of [
    [{ urls: listFile('/'), url: '/' }, /^--url and --urls: leave one of them out$/],
    [
      { urls: listFile('/'), load: 'wrk http://localhost/' },
      /^--urls and the URL in --load: leave one of them out$/,
    ],
    [
      { urls: listFile('https://a.example/') },
      /^--urls says https:\/\/, and a\.conf has no TLS on port 80/,
    ],
    [{ urls: listFile('/ x') }, /^--urls \S+, line 1: the weight "x" has to be/],
  ] as const)
    expect(() => of(nginx, asked)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(message), exitCode: 2 }),
    );
});

test('a load goes to each side over what it speaks', () => {
  expect(
    sides(nghttpd, nginxH2, { load: 'h2load -n 5 -H a:b' }).map(({ load }) => [
      load.protocol,
      load.headers,
    ]),
  ).toEqual([
    ['h2c', { a: 'b' }],
    ['h2', { a: 'b' }],
  ]);
});

describe('names', () => {
  test.each([
    [
      ['/x/a.conf', '/x/b.conf'],
      ['a', 'b'],
    ],
    [
      ['/etc/nginx/nginx.conf', '/home/me/My Nginx_2.conf.new'],
      ['nginx', 'my-nginx-2-conf'],
    ],
    [
      ['/old/nginx.conf', '/new/nginx.conf'],
      ['old-nginx', 'new-nginx'],
    ],
    [
      ['/x/nginx.conf', '/x/nginx.yaml'],
      ['nginx-a', 'nginx-b'],
    ],
    [
      ['/x/Ä.conf', '/y/ö.conf'],
      ['x-config', 'y-config'],
    ],
    [
      ['/conf', '/x/conf.d'],
      ['conf', 'x-conf'],
    ],
    [
      ['/x/1.conf', '/x/2.conf'],
      ['config-1', 'config-2'],
    ],
    [
      ['/x/1.conf', '/y/1.conf'],
      ['x-config-1', 'y-config-1'],
    ],
  ])('of %j are %j', (files, names) => {
    expect(
      namesOf(
        (files as string[]).map((file) => ({
          source: { kind: 'config', config: { ...nginx, file } },
        })),
      ),
    ).toEqual(names);
  });
});

describe('sides of other kinds', () => {
  test('a name, or what tells them apart', async () => {
    const commands = (...lines: string[]): { source: Source }[] =>
      lines.map((line) => commandSide('x', line)).map(({ source }) => ({ source }));
    expect(namesOf(commands('caddy file-server --root www', '/usr/sbin/lighttpd -D'))).toEqual([
      'caddy',
      'lighttpd',
    ]);
    expect(namesOf(commands('node a.js', 'node b.js'))).toEqual(['node-a-js', 'node-b-js']);
    expect(namesOf(commands('node a.js', 'node a.js'))).toEqual(['node-a', 'node-b']);
    expect(namesOf(commands('./7 a', './8 a'))).toEqual(['command-7', 'command-8']);
    expect(
      (await readSides(['old=node a.js', 'node b.js', 'http://127.0.0.1:8080/x'], 'compare')).map(
        ({ name, given }) => [name, given],
      ),
    ).toEqual([
      ['old', 'old'],
      ['node', 'node'],
      ['127-0-0-1', '127-0-0-1'],
    ]);
  });

  test('a command speaks HTTP/1.1 unless the load says otherwise, and TLS where the URL says so', () => {
    const given = [commandSide('one', 'node a.js'), configSide('b', nginxH2)];
    expect(sidesFor(given).map(({ load }) => load.command)).toEqual([
      'wrk -c 100 -t 1 -d 10',
      'h2load -c 100 -m 1 -t 1 -D 10',
    ]);
    expect(
      sidesFor(given, { load: ['one=wrk -c 7', 'h2load -c 3 -m 4 -n 9'] }).map(({ load }) => [
        load.connections,
        load.protocol,
      ]),
    ).toEqual([
      [7, 'http/1.1'],
      [3, 'h2'],
    ]);
    expect(
      sidesFor([commandSide('one', 'node a.js')], {
        url: 'https://localhost/a',
        load: 'h2load -c 1 -n 1',
      })[0],
    ).toMatchObject({ listen: { tls: true }, load: { protocol: 'h2' }, page: { path: '/a' } });
  });

  test('an address has its own path and host, unless another path is asked for', async () => {
    const given = [
      configSide('a', nginx),
      await addressSide('http://www.example.com:8080/own?x=1'),
    ];
    expect(sidesFor(given).map(({ page }) => page)).toEqual([
      { path: '/own?x=1' },
      { path: '/own?x=1', host: 'www.example.com:8080' },
    ]);
    expect(() => sidesFor(given, { url: '/other' })).toThrow(
      /^--url and the path of www-example-com, \/own\?x=1: leave one of them out$/,
    );
    const plainAddress = [await addressSide('http://127.0.0.1:8080')];
    expect(sidesFor(plainAddress, { url: '/other' })[0]).toMatchObject({
      page: { path: '/other' },
      listen: { port: 8080, tls: false },
    });
    expect(() => sidesFor(plainAddress, { url: 'https://localhost/' })).toThrow(
      /^--url says https:\/\/, and 127-0-0-1 is http:\/\/127\.0\.0\.1:8080: write http:\/\/$/,
    );
    expect(sidesFor(plainAddress, { url: 'http://localhost/' })[0]).toMatchObject({
      listen: { port: 8080 },
    });
    expect(sidesFor(plainAddress, { url: 'http://localhost:8080/' })[0]).toMatchObject({
      listen: { port: 8080 },
    });
    for (const [asked, flag, port] of [
      [{ url: 'http://127.0.0.1:9999/x' }, '--url', 9999],
      [{ load: 'wrk http://127.0.0.1:9999/' }, '--load', 9999],
      // The scheme's own, where it is written.
      [{ url: 'http://127.0.0.1:80/x' }, '--url', 80],
      [{ urls: listFile('/a\nhttp://127.0.0.1/b\nhttp://127.0.0.1:80/x') }, '--urls', 80],
      [{ load: 'ab -n 1 127.0.0.1:80/' }, '--load', 80],
    ] as const) {
      expect(() => sidesFor(plainAddress, asked)).toThrow(
        expect.objectContaining({
          message: `${flag} says port ${port}, and 127-0-0-1 is http://127.0.0.1:8080: leave the port out, or write 8080`,
          exitCode: 2,
        }),
      );
    }
    expect(
      sidesFor([await addressSide('http://127.0.0.1')], { url: 'http://127.0.0.1:80/x' })[0],
    ).toMatchObject({ listen: { port: 80 }, page: { path: '/x' } });
  });

  test('the one path that addresses name is that of all; where they name several, a footnote has them', async () => {
    const notes = (found: Side[]): readonly string[] =>
      comparisonOf(
        found.map((side): Tried => ({ ...side, answer: answerOf(1), redirections: [] })),
        asTheyAre,
        [],
      ).scenario.footnotes ?? [];
    const [one, two, plainAddress] = [
      await addressSide('http://127.0.0.1:8080/api'),
      await addressSide('http://127.0.0.2:8080/b'),
      await addressSide('http://127.0.0.3:8080/'),
    ];
    const alike = sidesFor([commandSide('a', 'node a.js'), one, plainAddress]);
    expect(alike.map(({ page }) => page.path)).toEqual(['/api', '/api', '/api']);
    expect(notes(alike)).toEqual([]);
    const others = sidesFor([commandSide('a', 'node a.js'), one, two]);
    expect(others.map(({ page }) => page.path)).toEqual(['/', '/api', '/b']);
    expect(notes(others)).toEqual([
      'The pages differ: a /, 127-0-0-1 /api, 127-0-0-2 /b; part of what is seen is theirs.',
    ]);
    expect(
      notes(
        sidesFor([commandSide('a', 'node a.js'), commandSide('b', 'node b.js')], {
          load: ['a=wrk http://localhost/x', 'b=wrk http://localhost/'],
        }),
      )[0],
    ).toBe('The pages differ: a /x, b /; part of what is seen is theirs.');
  });

  test('beyond this machine only what is named twice is loaded, by compare and by a scenario', async () => {
    const at = (origin: string) => (): unknown => requirePermission([address(origin)], []);
    for (const host of ['127.0.0.1', '127.9.9.9', '[::1]', 'localhost', 'LOCALHOST:8080'])
      expect(at(`http://${host}`)).not.toThrow();
    for (const host of [
      'a.localhost',
      'localhost.',
      '10.0.0.1',
      '[::]',
      '0.0.0.0',
      '127.0.0.1.example.com',
      'localhost.example.com',
    ])
      expect(at(`http://${host}`)).toThrow(/ is not on this machine: add --host /);
    const there = [
      nginxServer(['base'], { workers: 1 }),
      address('http://[2001:db8::1]'),
      address('http://Example.COM'),
    ];
    expect(() => requirePermission(there, ['example.com'])).toThrow(
      'http://[2001:db8::1] is not on this machine: add --host 2001:db8::1 if you may load it',
    );
    expect(() => requirePermission(there, ['EXAMPLE.com', '[2001:db8::1]'])).not.toThrow();

    const file = join(newFolder(), 'there.ts');
    writeFileSync(
      file,
      `import { address, defineScenario, wrk } from '${join(import.meta.dirname, '../../lib/scenario/index.ts')}';
      export default defineScenario({ name: 'there', title: 'there', knob: 'all', load: wrk('-c 7 -t 1 -d 1'), page: { path: '/', bodyBytes: 5 }, variants: [{ name: 'a', server: address('https://prod.example.com') }] });`,
    );
    const complained = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    onTestFinished(() => complained.mockRestore());
    expect(await main(['scenario', file])).toBe(2);
    expect(complained.mock.calls).toEqual([
      [
        'https://prod.example.com is not on this machine: add --host prod.example.com if you may load it',
      ],
    ]);
  });

  test('what runs at an address is said, once for all its rates', () => {
    const scenario = defineScenario({
      name: 'there',
      title: 'there',
      knob: 'all',
      load: wrk('-c 7 -t 1 -d 1'),
      page: { path: '/', bodyBytes: 5 },
      variants: [
        { name: 'a', server: address('http://localhost') },
        { name: 'b', server: command('node b.js') },
      ],
    });
    const lines = (rates?: number[]): string[] =>
      addressLines(
        makePlan(
          scenario,
          scenario.variants,
          { serverCpus: [0], generatorCpus: [0] },
          { quick: false, exact: false, ...(rates === undefined ? {} : { rates }) },
        ),
      );
    expect(lines()).toEqual([
      'a: what runs at http://localhost is loaded with 7 connections, and goes on running',
    ]);
    expect(lines([100, 200])).toHaveLength(1);
  });

  test('what starts each: a port, another build, an address', () => {
    const given = [commandSide('one', 'node a.js'), configSide('b', nginx), configSide('c', nginx)];
    const launch = (name: string): Launch =>
      name === 'one' ? { port: 3000 } : name === 'c' ? { binary: '/opt/nginx' } : {};
    const { scenario } = comparisonOf(
      sidesFor(given).map((side): Tried => ({ ...side, answer: answerOf(1), redirections: [] })),
      launch,
      [],
    );
    expect(scenario.variants.map(({ server }) => server)).toEqual([
      { name: 'command', command: 'node a.js', folder: expect.stringMatching(/^\//), port: 3000 },
      { name: 'nginx', config: ['/x/b.conf'], workers: 1, asIs: {} },
      { name: 'nginx', config: ['/x/c.conf'], workers: 1, asIs: {}, binary: '/opt/nginx' },
    ]);
    expect(scenario.title).toBe('one, b.conf and c.conf');
  });

  test('which of them are the same', async () => {
    const lines = ['node a.js', 'node b.js', 'node a.js', 'node a.js'];
    const given = sidesFor(lines.map((line, index) => commandSide(`s${index}`, line)));
    const names = async (launch: (name: string) => Launch): Promise<string[][]> =>
      (await sameSides(given, launch)).map((group) => group.map(({ name }) => name));
    expect(await names(asTheyAre)).toEqual([['s0', 's2', 's3']]);
    expect(await names((name) => (name === 's2' ? { port: 80 } : {}))).toEqual([['s0', 's3']]);
    expect(
      await sameSides(
        sidesFor([
          await addressSide('http://127.0.0.1'),
          await addressSide('http://127.0.0.1:80/'),
        ]),
        asTheyAre,
      ),
    ).toHaveLength(1);
    const tried = given.map((side): Tried => ({ ...side, answer: answerOf(1), redirections: [] }));
    const { scenario } = comparisonOf(tried, asTheyAre, await sameSides(given, asTheyAre));
    expect(scenario).not.toHaveProperty('control');
    expect(scenario.footnotes).toEqual([
      's0, s2 and s3 are the same: what differs between them is noise.',
    ]);
  });
});

describe('the scenario', () => {
  const tried = (
    one: OwnConfig,
    other: OwnConfig,
    [bytesA, bytesB]: [number, number],
    [saidA, saidB]: [string[], string[]] = [[], []],
  ): [Tried, Tried] => {
    const [sideA, sideB] = sides(one, other);
    return [
      { ...sideA, answer: answerOf(bytesA), redirections: saidA },
      { ...sideB, answer: answerOf(bytesB), redirections: saidB },
    ];
  };

  test('has both as they are', () => {
    const { scenario, said } = comparisonOf(tried(nginx, nginx, [615, 615]), asTheyAre, []);
    expect(scenario).toMatchObject({
      name: 'compare',
      title: 'a.conf against b.conf',
      page: { path: '/', bodyBytes: 615 },
      footnotes: [],
      variants: [
        { name: 'a', server: { name: 'nginx', config: ['/x/a.conf'], workers: 1, asIs: {} } },
        { name: 'b', server: { name: 'nginx', config: ['/x/b.conf'], workers: 1, asIs: {} } },
      ],
    });
    expect(scenario).not.toHaveProperty('control');
    expect(scenario.variants[1]).not.toHaveProperty('load');
    expect(scenario.variants[1]).not.toHaveProperty('page');
    expect(said).toEqual([]);
  });

  test('says which of several ports it is, that bodies and protocols differ, and that both are the same', () => {
    const two = config('nginx', { ...plain, port: 81 }, h2);
    const [one, other] = sides(two, nginx, { load: 'wrk -c 3 http://localhost:81/' });
    const { scenario } = comparisonOf(
      [
        { ...one, answer: answerOf(10_000), redirections: [] },
        { ...other, answer: answerOf(1), redirections: [] },
      ],
      asTheyAre,
      [[one, other]],
    );
    expect(scenario.variants.filter(isRunnable).map(({ server }) => server)).toMatchObject([
      { asIs: { port: 81 } },
      { asIs: {} },
    ]);
    expect(scenario).toMatchObject({
      control: true,
      page: { bodyBytes: 10_000 },
      variants: [{}, { page: { path: '/', bodyBytes: 1 } }],
    });
    expect(scenario.footnotes).toEqual([
      'Both sides are the same: what differs is noise.',
      'The bodies differ: a.conf 10,000 B, b.conf 1 B; part of what is seen is theirs.',
    ]);
    const mixed = comparisonOf(tried(nginxH2, nginx, [5, 5]), asTheyAre, []).scenario;
    expect(mixed.variants[1]?.load?.protocol).toBe('http/1.1');
    expect(mixed.footnotes).toEqual([
      'The protocols differ: a.conf is loaded over HTTP/2 over TLS, b.conf is loaded over HTTP/1.1; part of what is seen is theirs.',
      'Only a.conf encrypts (TLS): part of what is seen is its cost.',
    ]);
  });

  test('says what the answers differ in, and what compression would', () => {
    const differing = (one: Partial<Tried>, other: Partial<Tried>): readonly string[] => {
      const [a, b] = tried(nginx, nginx, [5, 5]);
      return (
        comparisonOf(
          [
            { ...a, ...one },
            { ...b, ...other },
          ],
          asTheyAre,
          [],
        ).scenario.footnotes ?? []
      );
    };
    expect(
      differing(
        { answer: answerOf(5, { encoding: 'gzip' }) },
        { answer: answerOf(5, { type: 'text/plain; charset=utf-8' }) },
      ),
    ).toEqual([
      'The encodings differ: a.conf gzip, b.conf none; part of what is seen is theirs.',
      'The types of the answers differ: a.conf text/html, b.conf text/plain.',
    ]);
    expect(differing({ answer: answerOf(5, { type: 'text/html; charset=utf-8' }) }, {})).toEqual(
      [],
    );
    const gzip = (bytes: number): Partial<Tried> => ({ offered: { encoding: 'gzip', bytes } });
    const none: Partial<Tried> = { offered: { encoding: '', bytes: 5 } };
    const hint =
      "and no answer was encoded: add -H 'Accept-Encoding: gzip' to --load to compare it.";
    expect(differing(gzip(3), none)).toEqual([
      `Compression differs (a.conf gzip 3 B, b.conf none), ${hint}`,
    ]);
    expect(differing(gzip(3), gzip(4))).toEqual([
      `Compression differs (a.conf gzip 3 B, b.conf gzip 4 B), ${hint}`,
    ]);
    expect(differing(gzip(3), gzip(3))).toEqual([]);
  });

  test('redirections are said once where they are equal but for the port', () => {
    const { said } = comparisonOf(
      tried(
        nginx,
        nginx,
        [1, 1],
        [['listen 80 → 127.0.0.1:40001', 'user x → nobody'], ['listen 80 → 127.0.0.1:40002']],
      ),
      asTheyAre,
      [],
    );
    expect(said).toEqual(['a, b: listen 80 → 127.0.0.1, a free port', 'a: user x → nobody']);
    const other = comparisonOf(
      tried(
        nginx,
        nginx,
        [1, 1],
        [
          [
            'proxy_pass http://127.0.0.1:3000: what runs there is loaded too',
            'listen 127.0.0.1:80 → 127.0.0.1:40001',
          ],
          [],
        ],
      ),
      asTheyAre,
      [],
    );
    expect(other.said).toEqual([
      'a: proxy_pass http://127.0.0.1:3000: what runs there is loaded too',
      'a: listen 127.0.0.1:80 → 127.0.0.1, a free port',
    ]);
  });
});
