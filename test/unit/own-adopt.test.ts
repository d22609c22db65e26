// The redirected lines in the copy of a user's config of h2o or nghttpd.
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { h2oKind } from '../../lib/servers/h2o.ts';
import { nghttpdKind } from '../../lib/servers/nghttpd.ts';
import type { AdoptPlace } from '../../lib/servers/server.ts';
import { adopt, refusal, type Adopted } from '../fixtures/adopted.ts';

const h2o = async (
  text: string,
  place?: Partial<AdoptPlace>,
  others?: Record<string, string>,
): Promise<Adopted & { yaml: Record<string, unknown> }> => {
  const config = await adopt(h2oKind, text, place, others);
  const options = { uniqueKeys: false, schema: 'failsafe' } as const;
  const yaml = parse(config.text.replaceAll(config.folder, '~'), options);
  return { ...config, yaml: yaml as Record<string, unknown> };
};
const threads = 'num-threads (all cores) → 2, the number of server cores';
const moved = { 'num-threads': '2', listen: { host: '127.0.0.1', port: '9000' } };

it('sets address and threads, and keeps everything else', async () => {
  const { yaml, redirections, tls, protocol, workers, workingFolder, folder } = await h2o(
    'listen: 80\nhosts: {"a:b": {paths: {/: {mruby.handler: "|env|\\n [200, {}, [\\"#\\"]]\\n"}, /x: [{redirect: http://a.org/}, {status: ON}], /e: {}, /l: []}}}\nsetenv: {listen: "80", A: ""}',
  );
  expect(yaml).toEqual({
    ...moved,
    hosts: {
      'a:b': {
        paths: {
          '/': { 'mruby.handler': '|env|\n [200, {}, ["#"]]\n' },
          '/x': [{ redirect: 'http://a.org/' }, { status: 'ON' }],
          '/e': {},
          '/l': [],
        },
      },
    },
    setenv: { listen: '80', A: '' },
  });
  expect(redirections).toEqual(['listen 80 → 127.0.0.1:9000', threads]);
  expect([tls, protocol, workers, workingFolder]).toEqual([false, 'http/1.1', 2, folder]);
});

it.each([
  ['mruby.handler: "|env|"', true],
  ['fastcgi.spawn: php-cgi', true],
  ['file.dir: /srv', false],
])('knows whether code answers: %s is %j', async (handler, runsCode) => {
  const config = await h2o(`listen: 80\nhosts: {"a": {paths: {/: {${handler}}}}}`);
  expect(config.runsCode).toBe(runsCode);
});

const first = '/t/access-1.log';

it.each([
  ['user: www-data', {}, ['user www-data → an unprivileged user']],
  ['pid-file: /run/h2o.pid', {}, ['pid-file /run/h2o.pid: left out']],
  ['error-log: /a', {}, ['error-log /a → error.log of this run']],
  [
    'access-log: ["|cat", {path: /b, format: "%h"}, "|cat"]',
    { 'access-log': [first, { path: '/t/access-2.log', format: '%h' }, first] },
    ['access-log |cat → a temporary file', 'access-log /b → a temporary file'],
  ],
  ['access-log: /dev/null', { 'access-log': '/dev/null' }, []],
  ['reproxy: OFF', { reproxy: 'OFF' }, []],
  ['crash-handler: mail root', {}, ['crash-handler mail root: left out, it is a program']],
  [
    'ssl-session-resumption: {ticket-store: memcached, memcached: {host: localhost}}',
    { 'ssl-session-resumption': { 'ticket-store': 'memcached', memcached: { host: 'localhost' } } },
    ['memcached 11211: what runs there is loaded too (CPU µs/req is without it)'],
  ],
])('h2o has %j with its redirections', async (line, expected, messages) => {
  const { yaml, redirections } = await h2o(`listen: 80\nhosts: {a: {paths: {}}}\n${line}\n`);
  expect(yaml).toEqual({ ...moved, hosts: { a: { paths: {} } }, ...expected });
  expect(
    redirections.filter(
      (redirection) => !['listen 80 → 127.0.0.1:9000', threads].includes(redirection),
    ),
  ).toEqual(messages);
});

it('listens on other addresses, with the same TLS but without OCSP', async () => {
  const { text, redirections, tls, protocol } = await h2o(
    'listen: {host: 0.0.0.0, port: 443, ssl: &s {certificate-file: c, key-file: k, minimum-version: TLSv1.2, ocsp-update-cmd: x}}\nlisten: {host: "::", port: 443, ssl: *s}\nhosts:\n  a:\n    listen: {port: 80, proxy-protocol: ON}\n    listen: {type: unix, port: /run/a, permission: "666"}\n    paths: {}\n',
    { listen: 443 },
  );
  expect(text.match(/^ *listen:/gm)).toHaveLength(3);
  expect(text.match(/^ {2}ssl:/gm)).toHaveLength(1);
  expect(text).toMatch(/minimum-version: TLSv1\.2 /);
  expect(text).not.toMatch(/proxy-protocol|ocsp-update-cmd/);
  expect({ tls, protocol }).toEqual({ tls: true, protocol: 'h2' });
  expect(redirections.filter((line) => line !== threads)).toEqual([
    'listen 0.0.0.0:443, :::443 → 127.0.0.1:9000',
    'listen 80 → 127.0.0.1:9001',
    'listen /run/a → a temporary socket',
    'ocsp-update-interval → 0, since it would ask another machine',
    'proxy-protocol: left out, load generators do not speak it',
  ]);
});

it.each([true, false])('listens for HTTP/3 if the load uses it: %s', async (http3) => {
  const { yaml, redirections } = await h2o(
    'listen: {port: 443, ssl: &s {certificate-file: c, key-file: k, ocsp-update-interval: 0}}\nlisten: {<<: {port: 443, ssl: *s}, type: quic}\nlisten: {port: 444, ssl: *s, type: quic}\nhosts: {a: {paths: {}}}',
    { http3 },
  );
  const at = '127.0.0.1:9000';
  expect(yaml.listen).toMatchObject({ port: '9000', ...(http3 ? { type: 'quic' } : {}) });
  expect(redirections.filter((line) => line !== threads)).toEqual(
    http3
      ? [`listen 443, 443 quic → ${at}`, 'listen 444 quic: left out, another port is not loaded']
      : [
          `listen 443 → ${at}`,
          ...[443, 444].map((port) => `listen ${port} quic: left out, HTTP/3 is not loaded`),
        ],
  );
});

it('proxies to this machine only, with redirected addresses', async () => {
  const paths = [
    '/a: {proxy.reverse.url: "http://127.0.0.1:8080/x"}',
    '/b: {proxy.reverse.url: "http://localhost:3000/"}',
    '/c: {proxy.reverse.url: "http://[unix:/run/own]/y"}',
    '/d: {fastcgi.connect: {port: /run/own, type: unix}}',
    '/e: {fastcgi.connect: 9000}',
    '/f: {proxy.reverse.url: [{url: "http://127.0.0.1:8080/"}, "http://[unix:/run/b]/y"]}',
    '/g: {proxy.reverse.url: {balancer: least-conn, backends: ["http://127.0.0.1:8080/"]}}',
    '/h: {fastcgi.connect: {port: /run/c, type: unix}}',
  ];
  const { yaml, upstreams, redirections } = await h2o(
    `listen: 80\nlisten: 8080\nlisten: {type: unix, port: /run/own}\nhosts:\n  a:\n    paths:\n${paths.map((line) => `      ${line}\n`).join('')}`,
    { listen: 80 },
  );
  expect(yaml['hosts']).toEqual({
    a: {
      paths: {
        '/a': { 'proxy.reverse.url': 'http://127.0.0.1:9001/x' },
        '/b': { 'proxy.reverse.url': 'http://localhost:3000/' },
        '/c': { 'proxy.reverse.url': 'http://[unix:/t/2.sock]/y' },
        '/d': { 'fastcgi.connect': { port: '/t/2.sock', type: 'unix' } },
        '/e': { 'fastcgi.connect': '9000' },
        '/f': {
          'proxy.reverse.url': [{ url: 'http://127.0.0.1:9001/' }, 'http://[unix:/run/b]/y'],
        },
        '/g': {
          'proxy.reverse.url': { balancer: 'least-conn', backends: ['http://127.0.0.1:9001/'] },
        },
        '/h': { 'fastcgi.connect': { port: '/run/c', type: 'unix' } },
      },
    },
  });
  const sockets = [{ socket: '/run/b' }, { socket: '/run/c' }];
  expect(upstreams).toEqual([{ port: 3000 }, { port: 9000 }, ...sockets]);
  expect(redirections).toContain(
    'fastcgi.connect 9000: what runs there is loaded too (CPU µs/req is without it)',
  );
});

it.each([
  ['proxy.reverse.url: "http://127.0.0.1@x.example/"', 'proxy.reverse.url'],
  ['proxy.reverse.url: {BACKENDS: [{url: "http://10.0.0.1/"}]}', 'proxy.reverse.url'],
  ['fastcgi.connect: {HOST: php, port: 9000, type: tcp, type: unix}', 'fastcgi.connect php'],
  ['file.custom-handler: {extension: .php, fastcgi.connect: {host: php}}', 'fastcgi.connect php'],
  ['reproxy: ON', 'reproxy'],
  ['proxy.connect: ["+*"]', 'proxy.connect'],
  ['redirect: {url: "http://x.example/", internal: YES}', 'redirect http://x.example/'],
  ['error-doc: [{status: 404, url: "//x.example/x"}]', 'error-doc //x.example/x'],
])('h2o must not contact another machine: %s', async (handler, expected) => {
  const message = await refusal(h2oKind, `listen: 80\nhosts: {a: {paths: {/:\n {${handler}}}}}`);
  expect(message).toMatch(/^own\.conf:3: .* may leave this machine/);
  expect(message).toContain(expected);
});

it('an h2o path may have the same name as a key with data', async () => {
  const paths = '{setenv: {proxy.reverse.url: "http://x.example/"}}';
  expect(await refusal(h2oKind, `listen: 80\nhosts: {a: {paths: ${paths}}}`)).toMatch(
    /^own\.conf:2: proxy\.reverse\.url http:\/\/x\.example\/ may leave this machine/,
  );
});

it.each([
  [
    'ssl-session-resumption: {mode: cache, cache-store: memcached, Memcached: {HOST: keys.example}}',
    'memcached keys.example',
  ],
  [
    'ssl-session-resumption:\n  {ticket-store: memcached, memcached: {host: 127.0.0.1}, memcached: {host: 10.0.0.1}}',
    'memcached 10.0.0.1',
  ],
  [
    'ssl-session-resumption:\n  {ticket-store: memcached, memcached: {host: 127.0.0.1, host: 10.0.0.1}}',
    'memcached 10.0.0.1',
  ],
  [
    'ssl-session-resumption: {ticket-store: redis, redis: {host: key.example}}',
    'redis key.example',
  ],
  ['quic-nodes: {self: 1, mapping: {1: "10.0.0.1:443"}}', 'quic-nodes'],
])('h2o must not send keys or packets to another machine: %s', async (line, expected) => {
  const message = await refusal(h2oKind, `listen: 80\nhosts: {a: {paths: {}}}\n${line}`);
  expect(message).toMatch(/^own\.conf:[34]: .* may leave this machine/);
  expect(message).toContain(expected);
});

it.each([
  'redirect: {url: "http://example.org/", status: 301}',
  'redirect: {url: /x, internal: YES, status: 302}',
])('h2o addresses that only the client follows are kept: %s', async (handler) => {
  const { redirections } = await h2o(`listen: 80\nhosts: {a: {paths: {/: {${handler}}}}}`);
  expect(redirections).toEqual(['listen 80 → 127.0.0.1:9000', threads]);
});

const nghttpd = (text: string, others?: Record<string, string>) =>
  adopt(nghttpdKind, text, {}, others);

it('keeps the flags, with paths relative to the folder of the file', async () => {
  const { args, redirections, workers, tls, protocol } = await nghttpd(
    '-m 10\n-d www\n--mime-types-file=/etc/mime.types\n-n 3\n-D\n-a ::\n8443 k c\n',
    { k: '', c: '' },
  );
  expect(args('').join(' ')).toBe(
    '--max-concurrent-streams=10 --htdocs=~/www --mime-types-file=/etc/mime.types --workers=3 --address=127.0.0.1 9000 ~/k ~/c',
  );
  expect(redirections).toEqual([
    'port :::8443 → 127.0.0.1:9000',
    '--daemon: left out, so that its end is seen',
  ]);
  expect([workers, tls, protocol]).toEqual([3, true, 'h2']);
});

it('leaves out an abbreviated --daemon, which nghttpd accepts', async () => {
  const { args, redirections } = await nghttpd('--no-t\n--addr=0.0.0.0\n--da\n-d /srv');
  expect(args('')).toEqual(['--no-tls', '--htdocs=/srv', '--address=127.0.0.1', '9000']);
  expect(redirections).toContain('--daemon: left out, so that its end is seen');
});

it("gets bakeoff's certificate if none is given, and none without TLS", async () => {
  const tls = await nghttpd('-d /srv\n8443');
  expect(tls.args('').slice(-3)).toEqual(['9000', '/machine.pem', '/machine.pem']);
  expect(tls.redirections).toEqual([
    'port 8443 → 127.0.0.1:9000',
    'key and certificate (none there) → those of this machine',
  ]);
  const plain = await nghttpd('--no-tls');
  expect(plain.args('')).toEqual(['--no-tls', '--htdocs=~', '--address=127.0.0.1', '9000']);
  expect(plain.redirections).toEqual([
    'port (none there) → 127.0.0.1:9000',
    'htdocs (where it is started) → ~',
  ]);
  expect(plain.protocol).toBe('h2c');
});
