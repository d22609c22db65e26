// Parsing of a user's config before anything is started.
import { execFileSync } from 'node:child_process';
import { symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readOwnConfig, type OwnConfig } from '../../lib/servers/index.ts';
import { addedTo } from '../../lib/servers/own/other-servers.ts';
import { globPattern } from '../../lib/servers/nginx-config.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

type Files = Record<string, string>;

const read = async (text: string | Buffer, others: Files = {}) =>
  readOwnConfig(path.join(await ownFiles({ 'own.conf': text, ...others }), 'own.conf'));

const portsOf = ({ listens }: OwnConfig) => listens.map(({ port }) => port);

async function refusal(text: string | Buffer, others: Files = {}, name = 'own.conf') {
  const folder = await ownFiles({ 'own.conf': text, ...others });
  return (await refusalOf(readOwnConfig(path.join(folder, name)))).replaceAll(folder, '');
}

it('finds all ports with their hosts, in all includes', async () => {
  const { file, ...config } = await read(
    'worker_processes 3;\nevents {}\nhttp { log_format own escape=json \'$status "$request"\' " $host"; include "conf.d/*.conf"; include none/*.conf;\n server { listen 80; listen [::]:80; server_name a.org www.a.org; } }',
    {
      'conf.d/b.conf':
        'server { listen 127.0.0.1:8443 ssl http2; listen 80; server_name "b.org"; include deep/names; }',
      'conf.d/c.conf':
        'server { listen unix:/run/c.sock; server_name c.org; }\nserver { listen 443 quic; listen 443 ssl; listen 9000; http2 on; }',
      'deep/names': 'server_name more.org;',
    },
  );
  expect(path.isAbsolute(file)).toBe(true);
  expect(config).toEqual({
    server: 'nginx',
    workers: 3,
    listens: [
      { port: 8443, tls: true, http2: true, hosts: ['b.org', 'more.org'] },
      { port: 80, tls: false, http2: false, hosts: ['b.org', 'more.org', 'a.org', 'www.a.org'] },
      { port: 443, tls: true, http2: true, http3: true, hosts: [] },
      { port: 9000, tls: false, http2: true, hosts: [] },
    ],
    logFormats: ['$status "$request" $host'],
  });
});

it.each([
  ['', 1],
  ['worker_processes "auto";', 'server-cores'],
  ['worker_processes \'4\'; master_process "off";', 1],
])('an nginx config with %j has %s workers', async (line, workers) => {
  expect((await read(`${line} http { server {} }`)).workers).toBe(workers);
});

it.each([
  ['server { listen 443; ssl on; }', 'tls'],
  ['http2 on; server { listen 443 ssl; } server { listen 444 ssl; http2 off; }', 'tls http2, tls'],
  [
    'server { listen 80 http2; } server { listen 81; http2 on; } server { listen 443 ssl http2; }',
    'http2 http2Only, http2, tls http2',
  ],
])('an nginx config with %s has ports with %s', async (http, expected) => {
  const { listens } = await read(`http { ${http} }`);
  const messages = listens.map((listen) =>
    (['tls', 'http2', 'http2Only'] as const).filter((name) => listen[name]).join(' '),
  );
  expect(messages.join(', ')).toBe(expected);
});

it.each([
  ['*.conf', [81, 82]],
  ['.*.conf', [83]],
  ['[!a-]?.conf', [82]],
  ['*/x', [84, 85]],
])('the pattern %s includes the same files as glob(3)', async (pattern, ports) => {
  const files = { 'a1.conf': 81, 'b1.conf': 82, '.h.conf': 83, 'dir/x': 84, 'e/x': 85 };
  const others = Object.entries(files).map(([name, port]) => [
    `sites/${name}`,
    `server { listen ${port}; }`,
  ]);
  const config = await read(`http { include sites/${pattern}; }`, Object.fromEntries(others));
  expect(portsOf(config)).toEqual(ports);
});

it('is read once, so later changes have no effect', async () => {
  const folder = await ownFiles({ 'own.conf': 'http { include c/*; }', 'c/a': 'server { }' });
  const file = path.join(folder, 'own.conf');
  const first = await readOwnConfig(file);
  await writeFile(path.join(folder, 'c/a'), 'server { listen 81; }');
  await writeFile(path.join(folder, 'c/b'), 'server { listen 82; }');
  expect(await readOwnConfig(file)).toEqual(first);
});

it('may contain large amounts of directives, and of data that looks alike', async () => {
  const lines = '/a/1 /b; # moved\n'.repeat(30_000);
  const listens = 'listen 80;'.repeat(60_000);
  const config = await read(
    `http { map $uri $x { listen 1; server 2; include 3x; default 4;\n${lines}}\nserver { ${listens} } }`,
    { '3x': '/a 5;' },
  );
  expect(portsOf(config)).toEqual([80]);
});

it.each([
  ['http { include gone.conf; }', /^cannot read \/gone.conf, which \/own.conf:1 .*keep a copy/],
  [
    'http { include /nowhere/x; }',
    /^cannot read \/nowhere\/x, which .* includes: it is not there$/,
  ],
  ['http {\n include broken; }', 'nginx config /broken:2: "}" without its "{"'],
  ['http { }', '/own.conf has no server { } in http { }: there is nothing to load'],
  ['http { server { listen 99999; } }', '/own.conf:1: listen 99999 is not a host and a port'],
  ['\nworker_processes many;\nhttp { server {} }', /^\/own.conf:2: worker_processes many is not/],
  [
    'http { server {\n listen 80; location / {\n  content_by_lua_block { ngx.say("}") } }',
    'nginx config /own.conf:3: "{" without its "}"',
  ],
])('an nginx config refuses %j', async (text, message) => {
  await expect(refusal(text, { broken: 'a 1;\n}' })).resolves.toMatch(message);
});

it('refuses a file that includes itself under another name', async () => {
  const folder = await ownFiles({ 'own.conf': 'http { include other; }' });
  await symlink('own.conf', path.join(folder, 'other'));
  expect(await refusalOf(readOwnConfig(path.join(folder, 'own.conf')))).toMatch(
    /own\.conf:1: includes .*\/other, which includes this file again$/,
  );
});

it('finds all ports with their hosts, in all includes', async () => {
  const { file: _, ...config } = await read(
    'num-threads: 2\nlisten: 80\nlisten:\n  host: 127.0.0.1\n  port: 8081\nhosts:\n  a.org: !file hosts/a.yaml\n  b.org:\n    listen: &tls {port: 443, ssl: {certificate-file: x, key-file: y}}\n    listen: {type: unix, port: /run/b.sock}\n    paths: {}\n',
    {
      'hosts/a.yaml': 'listen: {port: 8443, ssl: !file ssl.yaml}\npaths: {}\n',
      'ssl.yaml': 'certificate-file: a\nkey-file: a\n',
    },
  );
  expect(config).toEqual({
    server: 'h2o',
    workers: 2,
    listens: [
      { port: 80, tls: false, http2: true, hosts: ['a.org', 'b.org'] },
      { port: 8081, tls: false, http2: true, hosts: ['a.org', 'b.org'] },
      { port: 8443, tls: true, http2: true, hosts: ['a.org'] },
      { port: 443, tls: true, http2: true, hosts: ['b.org'] },
    ],
  });
});

it('runs a thread per core by default, with anchors and merge keys', async () => {
  const config = await read(
    'x: &l {port: 80, host: 127.0.0.1}\nlisten: *l\ny: &l {port: 81}\nhosts:\n  a: &a {listen: *l, paths: {}}\n  b: {<<: *a, paths: {/: {}}}\n  c: *a\n',
  );
  const hosts = ['a', 'b', 'c'];
  expect(config).toMatchObject({
    workers: 'server-cores',
    listens: [
      { port: 80, hosts },
      { port: 81, hosts },
    ],
  });
});

it.each([
  ['listen: 80\nhosts:\n  a: !file loop.yaml', '/loop.yaml:2: includes /own.conf, which'],
  ['listen: http\nhosts: {}', '/own.conf:1: listen: "http" is no port'],
  ['num-threads: 0\nhosts: {}', '/own.conf:1: num-threads is not a number of threads'],
  ['listen: 80\nhosts: *gone', 'h2o config /own.conf:2: *gone stands for nothing above it'],
  ['listen: 80\nhosts: !file bad.yaml', 'h2o config /bad.yaml:2: '],
  ['listen: 80\nhosts: |hunter2$1\n  x', 'extra characters: |hunter2$1'],
  ['listen: "my secret 1"\nhosts: {}', '/own.conf:1: listen: "my…" is no port'],
])('an h2o config refuses %j', async (text, message) => {
  expect(
    await refusal(text, { 'loop.yaml': '\npaths: !file own.conf', 'bad.yaml': 'a: 1\nb: {' }),
  ).toContain(message);
});

it.each([
  ['a: '.padEnd(1e5, '[')],
  [Array.from({ length: 1000 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')],
  ['a: '.repeat(20_000)],
  [
    `a0: &a0 x\n${Array.from({ length: 200 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}]\n`).join('')}`,
  ],
])('an h2o config with too deep nesting is refused: %.20s…', async (text) => {
  expect(await refusal(`listen: 80\nhosts:\n  x: y\n${text}`)).toMatch(/nested more than 100 deep/);
});

it('an included file with too deep nesting on its first line is refused', async () => {
  const main = 'listen: 80\nhosts: !file deep.yaml\n';
  const deep = await refusal(main, { 'deep.yaml': '- '.repeat(15_000) });
  expect(deep).toMatch(/deep\.yaml:1: is nested more than 100 deep/);
});

it('an include whose links multiply its paths is refused', async () => {
  const folder = await ownFiles({});
  for (let name = 0; name < 40; name++) await symlink('.', path.join(folder, String(name)));
  expect(await refusal(`http { include ${folder}/*/*/*/*/*/*; }`)).toMatch(
    /has more than 10000 paths to look at: name fewer$/,
  );
});

it('nested aliases are counted before they are expanded', async () => {
  const bomb = Array.from({ length: 30 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]\n`);
  expect(await refusal(`listen: 80\nhosts:\n  x: y\na0: &a0 x\n${bomb.join('')}`)).toMatch(
    /^h2o config \/own.conf:\d+: has more than 1000000 values, aliases included$/,
  );
  const many = Array.from({ length: 6000 }, (_, n) => `a${n}: &a${n} x\nb${n}: *a${n}\n`);
  expect(portsOf(await read(`listen: 80\nhosts: {}\n${many.join('')}`))).toEqual([80]);
});

it('an h2o config that is too long with its includes is not parsed', async () => {
  const text = 'listen: 80\nhosts:\n  x: !file big\n';
  expect(await refusal(text, { big: `#${'x'.repeat(4e6)}` })).toMatch(
    /^h2o config \/big:1: the config has more than 4 MB with its includes: /,
  );
});

it.each([
  [`"${'x'.repeat(1e7)}"`, /^nginx config \/own.conf:2: has a word of more than 4096 letters$/],
  ['${'.repeat(1e5), /word of more than 4096 letters$/],
  [`x; ${'a { '.repeat(1e5)}`, /^nginx config \/own.conf:2: is nested more than 100 deep$/],
  [`x; access_by_lua_block { ${'"\\'.repeat(1e5)}`, /^nginx config \/own.conf:2: "{" without its/],
  ['x; include big; include big', /^\/own.conf:2: the config has more than 16 MB with its/],
  [`x; ${'#'.repeat(16e6)}`, /^cannot read the config \/own.conf: it has more than 16 MB$/],
  [`x;\n${'#'.repeat(9e6)}\ninclude big`, /^\/own.conf:4: the config has more than 16 MB with its/],
  ['x; include [z-a]*', / has no server \{ \} in http/],
  ['x; include *d*.conf', /^\/own.conf:2: includes "\/a\\nd.conf", which has control characters/],
])(
  'an nginx config with excessive or strange content is refused: %.20s…',
  async (text, message) => {
    const files = { big: `#${'x'.repeat(8e6)}`, 'a\nd.conf': '' };
    const refused = await refusal(`events {}\nhttp { add_header a ${text}; }`, files);
    expect(refused).toMatch(message);
  },
);

it.each<[string, string[], string[]]>([
  ['*', ['a', 'a.b', 'a\nb'], ['.a']],
  ['.*', ['.a'], ['a']],
  ['a*b*c', ['abc', 'abbcbc', 'a.c.b.c'], ['ab', 'acb', 'abcd']],
  ['[!a-c]?.conf', ['dx.conf'], ['ax.conf', 'd.conf', 'dxxconf']],
  ['[]^*]x', [']x', '^x', '*x'], ['ax', 'x']],
  [`${'*a'.repeat(60)}*b`, [`${'a'.repeat(60)}b`], ['a'.repeat(250)]],
])('the pattern %s of an include', (pattern, matching, others) => {
  const form = globPattern(pattern);
  expect(matching.filter((name) => !form.test(name))).toEqual([]);
  expect(others.filter((name) => form.test(name))).toEqual([]);
});

it.each([
  ['--no-tls\r\n-n 4\r\n8080 # mine\r\n', 4, { port: 8080, tls: false }],
  ['--htdocs=/srv\n', 1, { port: 443, tls: true }],
])('an nghttpd config has the workers and the port of %j', async (text, workers, listen) => {
  expect(await read(text)).toMatchObject({
    server: 'nghttpd',
    workers,
    listens: [{ ...listen, http2: true, http2Only: true, hosts: [] }],
  });
});

it('refuses text in place of a number', async () => {
  expect(await refusal('-n many')).toContain('/own.conf:1: many is not a number of workers');
});

it.each([
  ['# nothing\n\n   # at all', 'the config /own.conf is empty'],
  ['some = words\n', "another server's command in the foreground"],
  ['server {\n  listen 80;\n}\n', '/own.conf is a part of an nginx config, without http { }'],
  ['upstream a { server 127.0.0.1:9; }', 'or the one to put it into by --in /etc/nginx/nginx.conf'],
  [Buffer.of(0), 'cannot read the config /own.conf: it is not text'],
  [
    Buffer.from('http { server { server_name b\xfccher.org; } }', 'latin1'),
    'nginx config /own.conf:1: is not UTF-8 text',
  ],
])('anything else is refused: %j', async (text, message) => {
  expect(await refusal(text)).toContain(message);
});

it.each([
  [
    'example.org {\n\troot * /var/www\n\tfile_server\n}\n',
    "of Caddy: give its command, 'caddy run --adapter caddyfile --config /own.conf' (it has to listen on 127.0.0.1, at {$PORT}, or",
  ],
  ['{\n  "apps": { "http": { "servers": {} } }\n}', "'caddy run --config /own.conf'"],
  [
    'defaults\n  mode http # all\nfrontend page\n  bind 127.0.0.1:8080\n',
    "of HAProxy: give its command, 'haproxy -db -f /own.conf' (it has to listen on 127.0.0.1, at ${PORT}, ",
  ],
  ['ServerRoot "/etc/apache2"\n<VirtualHost *:80>\n', "'apache2 -DFOREGROUND -f /own.conf'"],
  ['server.port = 80\nserver.document-root = "/srv"\n', "'lighttpd -D -f /own.conf'"],
  ['static_resources:\n  clusters:\n  - hosts: []\n', "'envoy -c /own.conf'"],
  ['entryPoints:\n  web:\n    address: :80\n', "'traefik --configFile=/own.conf'"],
  ['vcl 4.1;\nbackend default { .host = "127.0.0.1"; }\n', "'varnishd -F -a 127.0.0.1:{port} "],
])('a config of another server has its command: %j', async (text, message) => {
  const refused = await refusal(text);
  expect(refused).toContain(message);
  expect(
    refused.match(/caddy run|haproxy -db|apache2 -D|lighttpd -D|envoy -c|traefik -|varnishd/g),
  ).toHaveLength(1);
});

it.each([
  ['/usr/sbin/apache2', ['-DFOREGROUND', '-f', 'a.conf']],
  ['/usr/sbin/httpd', ['-D', 'FOREGROUND']],
  ['/usr/sbin/httpd-prefork', ['-f', 'a.conf', '-X']],
  ['/opt/apache2-worker', ['-DNO_DETACH']],
])('%s %j gets a PidFile of its own', (program, words) => {
  const { args, redirections } = addedTo(program, words, '/t');
  expect(args).toContain('PidFile "/t/apache2.pid"');
  expect(redirections).toContain('PidFile → a temporary file');
});

it.each([
  ['/usr/sbin/httpd', ['-f', '-p', '8080', '-h', '/srv']],
  ['/opt/mine/httpd', ['-D', '-X=1', 'FOREGROUND']],
  ['/bin/busybox', ['httpd', '-DFOREGROUND']],
])('%s %j is no Apache, and gets nothing', (program, words) => {
  expect(addedTo(program, words, '/t')).toEqual({ args: [], env: {}, redirections: [] });
});

it.each([
  ['Caddyfile', '(mine) {\n}\n', /^.* of Caddy: .*--adapter caddyfile --config \/Caddyfile'/],
  ['server.mjs', 'import http from "node:http";\n', /is a program: .*'node \/server.mjs', which /],
])('a file with the name %s, too', async (name, text, message) => {
  const folder = await ownFiles({ [name]: text });
  const refused = await refusalOf(readOwnConfig(path.join(folder, name)));
  expect(refused.replaceAll(folder, '')).toMatch(message);
});

it('may contain any bytes in a comment', async () => {
  const text = Buffer.from('http { server { listen 80; # b\xfccher\n } }', 'latin1');
  expect(portsOf(await read(text))).toEqual([80]);
});

it.each([
  ['a', 'cannot read the config /a: it is a folder'],
  ['pipe', 'cannot read the config /pipe: it is a pipe'],
  // A line break in the name would end the comment that contains the name.
  ['a\nuser root;\n#', '\\nuser root;\\n#", which has control characters in its path: rename it'],
])('anything else is refused at %j', async (name, message) => {
  const folder = await ownFiles({ 'a/b': '', 'a\nuser root;\n#': 'http { server { } }' });
  execFileSync('mkfifo', [path.join(folder, 'pipe')]);
  const refused = await refusalOf(readOwnConfig(path.join(folder, name)));
  expect(refused.replaceAll(folder, '')).toContain(message);
});
