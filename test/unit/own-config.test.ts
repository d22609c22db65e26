// What is read from a person's own config before anything is started.
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { readOwnConfig, type OwnConfig } from '../../lib/servers/index.ts';
import { glob } from '../../lib/servers/nginx-config.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

const read = async (
  text: string | Buffer,
  others: Record<string, string> = {},
): Promise<OwnConfig> =>
  readOwnConfig(path.join(await ownFiles({ 'own.conf': text, ...others }), 'own.conf'));

/** The message without the folder, which is another one each time. */
async function refusal(
  text: string | Buffer,
  others: Record<string, string> = {},
): Promise<string> {
  const folder = await ownFiles({ 'own.conf': text, ...others });
  return (await refusalOf(readOwnConfig(path.join(folder, 'own.conf')))).replaceAll(folder, '');
}

describe('of nginx', () => {
  it('are all ports, with their hosts, over all includes', async () => {
    const { file, ...config } = await read(
      'worker_processes 3;\nevents {}\nhttp { include "conf.d/*.conf"; include none/*.conf;\n server { listen 80; listen [::]:80; server_name a.org www.a.org; } }',
      {
        'conf.d/b.conf':
          'server { listen 127.0.0.1:8443 ssl http2; listen 80; server_name "b.org"; include deep/names; }',
        'conf.d/c.conf':
          'server { listen unix:/run/c.sock; server_name c.org; }\nserver { listen 443 quic; listen 443 ssl; listen 9000-9001; http2 on; }',
        'deep/names': 'server_name more.org;',
        'conf.d/.hidden.conf': 'broken',
      },
    );
    expect(path.isAbsolute(file)).toBe(true);
    expect(config).toEqual({
      server: 'nginx',
      workers: 3,
      listens: [
        { port: 8443, tls: true, http2: true, hosts: ['b.org', 'more.org'] },
        { port: 80, tls: false, http2: false, hosts: ['b.org', 'more.org', 'a.org', 'www.a.org'] },
        { port: 443, tls: true, http2: true, hosts: [] },
        { port: 9000, tls: false, http2: true, hosts: [] },
        { port: 9001, tls: false, http2: true, hosts: [] },
      ],
    });
  });

  it.each([
    ['listen *:81;', 81],
    ['listen 10.1.2.3;', 80],
    ['listen localhost:8000 default_server;', 8000],
    ['listen [::1];', 80],
    ['listen example.org:444;', 444],
    ['', process.getuid?.() === 0 ? 80 : 8000],
  ])('with %j listens on %d', async (listen, port) => {
    expect((await read(`http { server { ${listen} } }`)).listens).toEqual([
      { port, tls: false, http2: false, hosts: [] },
    ]);
  });

  it.each([
    ['', 1],
    ['worker_processes auto;', 'server-cores'],
    ['worker_processes "auto";', 'server-cores'],
    ['worker_processes \'4\'; master_process "off";', 1],
    ['worker_processes 4;', 4],
    ['worker_processes 4; master_process off;', 1],
  ])('with %j has %s workers', async (line, workers) => {
    expect((await read(`${line} http { server {} }`)).workers).toBe(workers);
  });

  it('has TLS and HTTP/2 where the old and the new directives say so', async () => {
    const of = async (http: string): Promise<unknown> =>
      (await read(`http { ${http} }`)).listens.map(({ tls, http2 }) => [tls, http2]);
    expect(await of('server { listen 443; ssl on; }')).toEqual([[true, false]]);
    expect(
      await of('server { listen 443 "ssl" "http2"; } server { listen 444; ssl "on"; }'),
    ).toEqual([
      [true, true],
      [true, false],
    ]);
    expect(
      await of('http2 on; server { listen 443 ssl; } server { listen 444 ssl; http2 off; }'),
    ).toEqual([
      [true, true],
      [true, false],
    ]);
    expect(await of('server { listen 80 http2; } server { listen 81; http2 on; }')).toEqual([
      [false, true],
      [false, true],
    ]);
    expect(
      (
        await read(
          'http { server { listen 80 http2; } server { listen 81; http2 on; } server { listen 80; listen 443 ssl http2; } }',
        )
      ).listens.map(({ http2Only }) => http2Only),
    ).toEqual([true, undefined, undefined]);
  });

  it('takes names in included files from the folder of the config itself', async () => {
    expect(
      (
        await read('include sub/a;', {
          'sub/a': 'include sub/b;',
          'sub/b': 'http { server { listen 7; } }',
        })
      ).listens,
    ).toHaveLength(1);
  });

  it('may be long', async () => {
    const lines = Array.from(
      { length: 30_000 },
      (_, index) => `/a/${index} /b/${index}; # moved\n# note\n`,
    ).join('');
    expect(
      (await read(`http { map $uri $x {\n${lines}}\nserver { listen 80; } }`)).listens,
    ).toHaveLength(1);
  });

  it('says what it said at first, also when it is changed meanwhile', async () => {
    const folder = await ownFiles({
      'own.conf': 'http { include c/*; }',
      'c/a': 'server { listen 80; }',
    });
    const listens = async (): Promise<number[]> =>
      (await readOwnConfig(path.join(folder, 'own.conf'))).listens.map(({ port }) => port);
    expect(await listens()).toEqual([80]);
    await writeFile(path.join(folder, 'c/a'), 'server { listen 81; }');
    await writeFile(path.join(folder, 'c/b'), 'server { listen 82; }');
    expect(await listens()).toEqual([80]);
  });

  it('leaves data alone that looks like directives', async () => {
    expect(
      (
        await read(
          'http { map $uri $x { listen 1; server 2; include 3x; default 4; } server { listen 80; } }',
          { '3x': '/a 5;' },
        )
      ).listens.map(({ port }) => port),
    ).toEqual([80]);
  });

  it.each([
    [
      'http { include gone.conf; }',
      '/own.conf:1: includes /gone.conf, which is not there: what it names begins at its own folder, so keep a copy beside the original',
    ],
    [
      'http { include /nowhere/gone.conf; }',
      '/own.conf:1: includes /nowhere/gone.conf, which is not there',
    ],
    [
      'events {}\nhttp {\n include sub; }',
      '/own.conf:3: includes /sub, which is a folder: name a file in it',
    ],
    ['http {\n server { listen 80;\n', 'nginx config /own.conf:2: "{" without its "}"'],
    ['http {\n include broken; }', 'nginx config /broken:2: "}" without its "{"'],
    ['http { include loop; }', '/loop:1: includes /own.conf, which includes this file again'],
    ['http { }', '/own.conf has no server { } in http { }: there is nothing to load'],
    ['http { server { listen 99999; } }', '/own.conf:1: listen 99999 is no address'],
    ['http { server { listen a:b; } }', '/own.conf:1: listen a:b is no address'],
    [
      'http { server { listen 1-60000; } }',
      '/own.conf:1: listen 1-60000 has 60000 ports, more than the 100 that can be given others here',
    ],
    [
      '\nworker_processes many;\nhttp { server {} }',
      '/own.conf:2: worker_processes many is not a number of processes',
    ],
    [
      'http { server {\n listen 80; location / {\n  content_by_lua_block { ngx.say("}") } }',
      'nginx config /own.conf:3: "{" without its "}"',
    ],
  ])('refuses %j', async (text, message) => {
    expect(await refusal(text, { 'sub/x': '', broken: 'a 1;\n}', loop: 'include own.conf;' })).toBe(
      message,
    );
  });

  it('refuses a file that is linked to itself, and one that includes itself under another name', async () => {
    const folder = await ownFiles({ 'own.conf': 'http { include a/other; }', 'a/x': '' });
    await symlink('../own.conf', path.join(folder, 'a/other'));
    await expect(readOwnConfig(path.join(folder, 'own.conf'))).rejects.toThrow(
      /own\.conf:1: includes .*a\/other, which includes this file again$/,
    );
  });
});

describe('of h2o', () => {
  it('are all ports, with their hosts, over all that is included', async () => {
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

  it('has as many threads as cores where it does not say, and resolves anchors and merges', async () => {
    const { workers, listens } = await read(
      'hosts:\n  a: &a {listen: {port: 1}, paths: {}}\n  b: {<<: *a, paths: {/: {}}}\n  c: *a\n',
    );
    expect({ workers, listens }).toEqual({
      workers: 'server-cores',
      listens: [{ port: 1, tls: false, http2: true, hosts: ['a', 'b', 'c'] }],
    });
  });

  it.each([
    ['hosts: !file gone.yaml', '/own.conf:1: includes /gone.yaml, which is not there'],
    [
      'listen: 80\nhosts:\n  a: !file loop.yaml',
      '/loop.yaml:2: includes /own.conf, which includes this file again',
    ],
    ['listen: 80\nhosts: {a: [}', 'h2o config /own.conf:2: '],
    ['listen: http\nhosts: {}', '/own.conf:1: listen: "http" is no port'],
    ['num-threads: 0\nhosts: {}', '/own.conf:1: num-threads is not a number of threads'],
    ['listen: 80\nhosts: *gone', 'h2o config /own.conf:2: *gone stands for nothing above it'],
    ['listen: 80\nhosts: &h\n  a: *h', '/own.conf:3: *h stands inside of what it stands for'],
    ['listen: 80\nhosts: !file bad.yaml', 'h2o config /bad.yaml:2: '],
  ])('refuses %j', async (text, message) => {
    expect(
      await refusal(text, { 'loop.yaml': '\npaths: !file own.conf', 'bad.yaml': 'a: 1\nb: {' }),
    ).toContain(message);
  });
});

describe('of nghttpd', () => {
  it.each([
    [
      '--no-tls\n-n 4\n8080\n',
      4,
      { port: 8080, tls: false, http2: true, http2Only: true, hosts: [] },
    ],
    [
      '--no-tls\r\n8080 # mine\r\n',
      1,
      { port: 8080, tls: false, http2: true, http2Only: true, hosts: [] },
    ],
    [
      '# mine\n-d /srv\n 8443 key.pem cert.pem # all\n',
      1,
      { port: 8443, tls: true, http2: true, http2Only: true, hosts: [] },
    ],
    ['--htdocs=/srv\n', 1, { port: 443, tls: true, http2: true, http2Only: true, hosts: [] }],
  ])('are those of %j', async (text, workers, listen) => {
    expect(await read(text)).toMatchObject({ server: 'nghttpd', workers, listens: [listen] });
  });

  it.each([
    ['-d /srv\n8080\n8081', '/own.conf:3: a second port; nghttpd listens on one'],
    ['--no-tls\n70000', '/own.conf:2: 70000 is no port'],
    ['-n many', '/own.conf:1: many is not a number of workers'],
    [
      '-x 1',
      'nghttpd config /own.conf:1: "-x 1" is not a flag of nghttpd; write one a line, e.g. --max-concurrent-streams=100',
    ],
  ])('refuses %j', async (text, message) => {
    expect(await refusal(text)).toBe(message);
  });
});

describe('what is none of these', () => {
  it.each([
    [
      'Apache',
      'ServerRoot "/etc/apache2"\n<VirtualHost *:80>\n  DocumentRoot /var/www/html\n</VirtualHost>\n',
    ],
    ['Apache', 'Listen 8080\nLoadModule mpm_event_module modules/mod_mpm_event.so\n'],
    ['lighttpd', 'server.modules = ( "mod_access" )\nserver.document-root = "/var/www/html"\n'],
    ['Caddy', 'example.org {\n\troot * /var/www\n\tfile_server\n}\n'],
    ['Caddy', ':80\nreverse_proxy localhost:9000\n'],
    ['Caddy', '{\n  "apps": {"http": {"servers": {}}}\n}\n'],
    [
      'HAProxy',
      '# main\nglobal\n    daemon\n    maxconn 256\n\ndefaults\n    mode http\n\nlisten web\n    bind *:80\n',
    ],
    ['Varnish', 'vcl 4.1;\nbackend default { .host = "127.0.0.1"; }\n'],
    ['Envoy', 'static_resources:\n  listeners: []\n'],
    ['Traefik', 'entryPoints:\n  web:\n    address: ":80"\n'],
  ])('is told to be of %s', async (name, text) => {
    expect(await refusal(text)).toMatch(
      new RegExp(
        `^/own\\.conf is a config of ${name}: give the command that starts it, such as '[a-z]\\S+.* /own\\.conf' \\(bakeoff knows`,
      ),
    );
  });

  it.each([
    ['', 'the config /own.conf is empty'],
    ['# nothing\n\n   # at all', 'the config /own.conf is empty'],
    [
      'hello\nworld',
      "/own.conf is not a config of nginx (http { }), h2o (hosts:) or nghttpd (one flag a line); a command is given in quotes: 'node server.mjs'",
    ],
    [
      'server {\n  listen 80;\n}\n',
      '/own.conf is a part of an nginx config, which http { } is not in: name the whole one, e.g. /etc/nginx/nginx.conf',
    ],
  ])('%j is refused', async (text, message) => {
    expect(await refusal(text)).toBe(message);
  });

  it('that is no text is refused', async () => {
    expect(await refusal(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1]))).toBe(
      'the config /own.conf is not text',
    );
    expect(
      await refusal(Buffer.from('http { server { server_name b\xfccher.org; } }', 'latin1')),
    ).toBe('nginx config /own.conf:1: is not UTF-8 text');
    // In a comment nobody minds.
    expect(
      (await read(Buffer.from('http { server { listen 80; # b\xfccher\n } }', 'latin1'))).listens,
    ).toHaveLength(1);
  });

  it('that is a pipe is refused, before it is waited for', async () => {
    const folder = await ownFiles({ x: '' });
    execFileSync('mkfifo', [path.join(folder, 'pipe')]);
    await expect(readOwnConfig(path.join(folder, 'pipe'))).rejects.toThrow(
      new UserError(`the config ${folder}/pipe is a pipe or device: save it to a file`),
    );
  });

  it('whose path would end the comments of the composed config is refused, as is such a file that it includes', async () => {
    const folder = await ownFiles({
      'a\nuser root;\n#': 'events {}\nhttp { server { listen 80; } }',
      'main.conf': 'events {}\nhttp { include *; }',
    });
    await expect(readOwnConfig(path.join(folder, 'a\nuser root;\n#'))).rejects.toThrow(
      /\\nuser root;\\n#", which has control characters in its path: rename it$/,
    );
    await expect(readOwnConfig(path.join(folder, 'main.conf'))).rejects.toThrow(
      /^\S+\/main\.conf:2: includes ".*\\nuser root;\\n#", which has control characters in its path: rename it$/,
    );
  });

  it('that is not there, a folder, or closed is refused', async () => {
    const folder = await ownFiles({ 'a/b': '' });
    await expect(readOwnConfig(path.join(folder, 'gone'))).rejects.toThrow(
      new UserError(`the config ${folder}/gone is not there`),
    );
    await expect(readOwnConfig(path.join(folder, 'a'))).rejects.toThrow(
      new UserError(`the config ${folder}/a is a folder: name a file in it`),
    );
    await expect(readOwnConfig(path.join(folder, 'a/b/c'))).rejects.toThrow(
      new UserError(`the config ${folder}/a/b/c is not there`),
    );
    await symlink('itself', path.join(folder, 'itself'));
    await expect(readOwnConfig(path.join(folder, 'itself'))).rejects.toThrow(
      new UserError(`the config ${folder}/itself is a link to itself`),
    );
  });
});

describe('a pattern', () => {
  it('matches as glob(3) does', async () => {
    const folder = await ownFiles({
      'b.conf': '',
      'a.conf': '',
      'A.conf': '',
      '.h.conf': '',
      'c.txt': '',
      'd/x.conf': '',
      'e/x.conf': '',
      'e/[1].conf': '',
    });
    await mkdir(path.join(folder, 'f'));
    const matches = async (pattern: string): Promise<string[]> =>
      (await glob(path.join(folder, pattern))).map((file) => path.relative(folder, file));
    expect(await matches('*.conf')).toEqual(['A.conf', 'a.conf', 'b.conf']);
    expect(await matches('.*.conf')).toEqual(['.h.conf']);
    expect(await matches('?.conf')).toEqual(['A.conf', 'a.conf', 'b.conf']);
    expect(await matches('[ac-z].*')).toEqual(['a.conf', 'c.txt']);
    expect(await matches('[!a]*.conf')).toEqual(['A.conf', 'b.conf']);
    expect(await matches('*/x.conf')).toEqual(['d/x.conf', 'e/x.conf']);
    expect(await matches('e/\\[*')).toEqual(['e/[1].conf']);
    expect(await matches('none/*')).toEqual([]);
  });
});

describe('without bounds are refused in one line, whatever they are of:', () => {
  const bomb = (levels: number): string =>
    [
      'listen: 80',
      'hosts: {a: {paths: {}}}',
      'a0: &a0 [x, x]',
      ...Array.from(
        { length: levels },
        (_, index) => `a${index + 1}: &a${index + 1} [${Array(9).fill(`*a${index}`).join(', ')}]`,
      ),
    ].join('\n');
  const doubling = (files: number, include: (name: string) => string): Record<string, string> =>
    Object.fromEntries(
      Array.from({ length: files }, (_, index) => [
        `f${index}`,
        index + 1 === files ? '' : include(`f${index + 1}`),
      ]),
    );

  it.each<[string, string, Record<string, string>, RegExp]>([
    [
      'aliases of aliases',
      bomb(9),
      {},
      /^h2o config \/own\.conf:\d+: its aliases and includes come to more than 4 MB/,
    ],
    [
      'aliases of one long text',
      `listen: 80\nhosts: {}\na: &a ${'x'.repeat(100_000)}\nb: [${'*a, '.repeat(1000)}]`,
      {},
      /^h2o config \/own\.conf:3: its aliases and includes come to/,
    ],
    [
      'files that include the next one twice',
      'listen: 80\nhosts: {a: !file f0}',
      doubling(40, (name) => `a: !file ${name}\nb: !file ${name}`),
      /its aliases and includes come to more than 4 MB/,
    ],
    [
      'lists in lists',
      `listen: 80\nhosts: ${'['.repeat(200_000)}`,
      {},
      /^h2o config \/own\.conf is nested more than 100 deep/,
    ],
    [
      'mappings in mappings',
      `listen: 80\nhosts: ${'{a: '.repeat(101)}${'}'.repeat(101)}`,
      {},
      /^h2o config \/own\.conf is nested more than 100 deep/,
    ],
    [
      'a long file',
      `listen: 80\nhosts: {}\n${'#\n'.repeat(200_000)}`,
      {},
      /^h2o config \/own\.conf has more than 256 kB/,
    ],
    [
      'blocks in blocks',
      `http {\n${'a {\n'.repeat(200_000)}${'}'.repeat(200_001)}`,
      {},
      /^nginx config \/own\.conf:101: is nested more than 100 deep/,
    ],
    [
      'blocks over includes',
      'http { include f0; }',
      Object.fromEntries(
        Array.from({ length: 5 }, (_, index) => [
          `f${index}`,
          `${'a {'.repeat(50)} include f${index + 1}*; ${'}'.repeat(50)}`,
        ]),
      ),
      /^nginx config \/own\.conf: is nested more than 100 deep with its includes/,
    ],
    [
      'includes that double',
      'http { include f0; }',
      doubling(40, (name) => `include ${name}; include ${name};\n#${'x'.repeat(40_000)}`),
      /includes come to more than 10000 files, 1000000 directives or 32 MB/,
    ],
    [
      'directives',
      `http {${'a;'.repeat(1_000_001)}}`,
      {},
      /^nginx config \/own\.conf:1: has more than 1000000 directives/,
    ],
    [
      'comments in Lua without an end',
      `http { content_by_lua_block {\n${'--[[\n'.repeat(100_000)}`,
      {},
      /"\{" without its "\}"$/,
    ],
    ['braces', `${'{\n'.repeat(100_000)}`, {}, /is not a config of nginx/],
  ])('%s', async (_, text, others, message) => {
    expect(await refusal(text, others)).toMatch(message);
  });

  it('a file of gigabytes', async () => {
    const folder = await ownFiles({ 'own.conf': '' });
    await truncate(path.join(folder, 'own.conf'), 2 ** 32);
    await expect(readOwnConfig(path.join(folder, 'own.conf'))).rejects.toThrow(
      `the config ${folder}/own.conf has more than 32 MB`,
    );
  });

  it('but aliases that have an end are what they stand for', async () => {
    expect(
      (
        await read(
          'a: &l {port: 80, host: 127.0.0.1}\nlisten: *l\nb: &l {port: 81}\nhosts: {a: {listen: *l, paths: {}}}',
        )
      ).listens.map(({ port }) => port),
    ).toEqual([80, 81]);
    expect(await refusal('a: *l\nb: &l x\nhosts: {}\nlisten: 80')).toMatch(
      /own\.conf:1: \*l stands for nothing above it$/,
    );
    expect(await refusal('a: &l [*l]\nhosts: {}\nlisten: 80')).toMatch(
      /own\.conf:1: \*l stands inside of what it stands for$/,
    );
  });
});
