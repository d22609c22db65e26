// What of a person's own config of h2o or nghttpd is redirected, and that the rest is as it was.
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { h2oKind } from '../../lib/servers/h2o.ts';
import { nghttpdKind } from '../../lib/servers/nghttpd.ts';
import { originOfLine } from '../../lib/servers/own/files.ts';
import type { AdoptPlace } from '../../lib/servers/server.ts';
import { adopt, refusal, type Adopted } from '../fixtures/adopted.ts';

describe('h2o', () => {
  const h2o = async (
    text: string,
    place?: Partial<AdoptPlace>,
    others?: Record<string, string>,
  ): Promise<Adopted & { yaml: Record<string, unknown> }> => {
    const config = await adopt(h2oKind, text, place, others);
    return {
      ...config,
      yaml: parse(config.text.replaceAll(config.folder, '~'), {
        uniqueKeys: false,
        schema: 'failsafe',
      }) as Record<string, unknown>,
    };
  };
  const plain = { 'num-threads': '2' };
  const threads = 'num-threads (all cores) → 2, the number of server cores';

  it('gets an address, threads, a log and its user, and keeps everything else', async () => {
    const { yaml, redirections, tls, protocol, workers, workingFolder, folder } = await h2o(
      'listen: 80\nhosts:\n  "a:b":\n    paths:\n      /: {file.dir: www, mruby.handler: "|env|\\n [200, {}, [\\"#\\"]]\\n"}\n      /x:\n        - redirect: http://example.org/\n        - status: ON\n      /e: {}\n      /l: []\nsetenv:\n  listen: "80"\n  A: ""\n',
    );
    expect(yaml).toEqual({
      ...plain,
      listen: { host: '127.0.0.1', port: '9000' },
      hosts: {
        'a:b': {
          paths: {
            '/': { 'file.dir': 'www', 'mruby.handler': '|env|\n [200, {}, ["#"]]\n' },
            '/x': [{ redirect: 'http://example.org/' }, { status: 'ON' }],
            '/e': {},
            '/l': [],
          },
        },
      },
      setenv: { listen: '80', A: '' },
    });
    expect(redirections).toEqual([
      'listen 80 → 127.0.0.1:9000',
      threads,
      'mruby.handler: runs as it is, the files that it writes and the addresses that it calls are not redirected',
      'relative paths begin at ~, as if h2o were started there',
    ]);
    expect({ tls, protocol, workers, workingFolder }).toEqual({
      tls: false,
      protocol: 'http/1.1',
      workers: 2,
      workingFolder: folder,
    });
  });

  it.each([
    ['num-threads: 5', { 'num-threads': '5' }, []],
    ['user: nobody', {}, []],
    ['user: root', {}, ['user root → nobody, since no server needs to be root here']],
    ['user: nosuchuser', {}, ['user nosuchuser → nobody, since nosuchuser is not there']],
    ['pid-file: /run/h2o.pid', {}, ['pid-file /run/h2o.pid: left out']],
    ['error-log: "|cat"', {}, ['error-log |cat → error.log of this run']],
    [
      'access-log: "|rotatelogs x"',
      { 'access-log': '/t/access-1.log' },
      ['access-log |rotatelogs x → a temporary file'],
    ],
    [
      'access-log: {path: /var/log/a, format: "%h"}',
      { 'access-log': { path: '/t/access-1.log', format: '%h' } },
      ['access-log /var/log/a → a temporary file'],
    ],
    [
      'access-log: [/a, {path: /b}, /a]',
      { 'access-log': ['/t/access-1.log', { path: '/t/access-2.log' }, '/t/access-1.log'] },
      ['access-log /a → a temporary file', 'access-log /b → a temporary file'],
    ],
    ['access-log: /dev/null', { 'access-log': '/dev/null' }, []],
    ['reproxy: OFF', { reproxy: 'OFF' }, []],
  ])('has %j with what is said', async (line, expected, said) => {
    const { yaml, redirections } = await h2o(`listen: 80\nhosts: {a: {paths: {}}}\n${line}\n`);
    expect(yaml).toEqual({
      ...plain,
      listen: { host: '127.0.0.1', port: '9000' },
      hosts: { a: { paths: {} } },
      ...expected,
    });
    expect(
      redirections.filter((one) => !['listen 80 → 127.0.0.1:9000', threads].includes(one)),
    ).toEqual(said);
  });

  it('that root does not start stays who starts it', async () => {
    const { yaml, redirections } = await h2o('user: www-data\nlisten: 80\nhosts: {}', {
      user: undefined,
    });
    expect(yaml).not.toHaveProperty('user');
    expect(redirections).toContain(
      'user www-data: left out, since it takes root to become another one',
    );
  });

  it('listens on other addresses, with TLS as it was; the same twice is once', async () => {
    const { text, redirections, tls, protocol } = await h2o(
      'listen: {host: 0.0.0.0, port: 443, ssl: &s {certificate-file: c, key-file: k, minimum-version: TLSv1.2}}\nlisten: {host: "::", port: 443, ssl: *s}\nhosts:\n  a:\n    listen: 80\n    listen: {type: unix, port: /run/a, permission: "666"}\n    paths: {}\n',
      { listen: 443 },
    );
    expect(text.match(/^ *listen:/gm)).toHaveLength(3);
    expect(text.match(/^ {2}ssl:/gm)).toHaveLength(1);
    expect(text).toMatch(/minimum-version: TLSv1\.2 /);
    expect({ tls, protocol }).toEqual({ tls: true, protocol: 'h2' });
    expect(redirections.filter((line) => /^(listen|ocsp)/.test(line))).toEqual([
      'listen 0.0.0.0:443, :::443 → 127.0.0.1:9000',
      'listen 80 → 127.0.0.1:9001',
      'listen /run/a → a temporary socket',
      'ocsp-update-interval → 0, since it would ask another machine',
    ]);
  });

  it('does not expect the PROXY protocol', async () => {
    const { yaml, redirections } = await h2o(
      'listen: {port: 80, proxy-protocol: ON}\nhosts: {a: {paths: {}}}',
    );
    expect(yaml['listen']).toEqual({ host: '127.0.0.1', port: '9000' });
    expect(redirections).toContain('proxy-protocol: left out, load generators do not speak it');
  });

  it('passes on to this machine only, and follows what has moved', async () => {
    const paths =
      '/a: {proxy.reverse.url: "http://127.0.0.1:8080/x"}\n      /b: {proxy.reverse.url: "http://localhost:3000/"}\n      /c: {proxy.reverse.url: "http://[unix:/run/own]/y"}\n      /d: {fastcgi.connect: {port: /run/own, type: unix}}\n      /e: {fastcgi.connect: 9000}\n      /f: {proxy.reverse.url: [{url: "http://127.0.0.1:8080/"}, "http://[::1]:1/"]}\n      /g: {proxy.reverse.url: {balancer: least-conn, backends: ["http://127.0.0.1:8080/"]}}';
    const { yaml, redirections } = await h2o(
      `listen: 80\nlisten: 8080\nlisten: {type: unix, port: /run/own}\nhosts:\n  a:\n    paths:\n      ${paths}`,
      { listen: 80 },
    );
    expect(yaml['hosts']).toEqual({
      a: {
        paths: {
          '/a': { 'proxy.reverse.url': 'http://127.0.0.1:9001/x' },
          '/b': { 'proxy.reverse.url': 'http://localhost:3000/' },
          '/c': { 'proxy.reverse.url': 'http://[unix:/t/1.sock]/y' },
          '/d': { 'fastcgi.connect': { port: '/t/1.sock', type: 'unix' } },
          '/e': { 'fastcgi.connect': '9000' },
          '/f': { 'proxy.reverse.url': [{ url: 'http://127.0.0.1:9001/' }, 'http://[::1]:1/'] },
          '/g': {
            'proxy.reverse.url': { balancer: 'least-conn', backends: ['http://127.0.0.1:9001/'] },
          },
        },
      },
    });
    expect(redirections.filter((line) => line.includes('loaded too'))).toEqual(
      [
        'proxy.reverse.url http://localhost:3000/',
        'fastcgi.connect 9000',
        'proxy.reverse.url http://[::1]:1/',
      ].map((words) => `${words}: what runs there is loaded too`),
    );
  });

  it('tells where it passes requests to', async () => {
    const { upstreams } = await h2o(
      'listen: 80\nhosts:\n  a:\n    paths:\n      /a: {proxy.reverse.url: ["http://localhost:3000/", "http://127.0.0.1/"]}\n      /b: {proxy.reverse.url: "http://[unix:/run/b]/y"}\n      /c: {fastcgi.connect: {port: /run/c, type: unix}}\n      /d: {fastcgi.connect: 9000}\n',
    );
    expect(upstreams).toEqual([
      { port: 3000 },
      { socket: '/run/b' },
      { socket: '/run/c' },
      { port: 9000 },
    ]);
  });

  it.each([
    ['proxy.reverse.url: http://10.0.0.1/', 'proxy.reverse.url http://10.0.0.1/'],
    [
      'proxy.reverse.url: {backends: [{url: "http://10.0.0.1/"}]}',
      'proxy.reverse.url http://10.0.0.1/',
    ],
    ['fastcgi.connect: {host: php, port: 9000}', 'fastcgi.connect php'],
    [
      'file.custom-handler: {extension: .php, fastcgi.connect: {host: php, port: 9000}}',
      'fastcgi.connect php',
    ],
  ])('refuses to pass on elsewhere: %s', async (handler, words) => {
    expect(
      await refusal(h2oKind, `listen: 80\nhosts:\n  a:\n    paths:\n      /: {${handler}}`),
    ).toBe(
      `own.conf:5: ${words} may leave this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config`,
    );
  });

  it.each([
    'proxy.reverse.url: "http://127.0.0.1@evil.example/"',
    'proxy.reverse.url: "http://127.0.0.1:80@evil.example/"',
    'proxy.reverse.url: "http://127.0.0.1./"',
    'proxy.reverse.url: "http://2130706433/"',
    'proxy.reverse.url: "http://[::ffff:127.0.0.1]/"',
    'proxy.reverse.url: "http://localhost.example/"',
    'proxy.reverse.url: {BACKENDS: "http://evil.example/"}',
    'fastcgi.connect: {host: evil.example, host: 127.0.0.1, port: 9000}',
    'fastcgi.connect: {HOST: evil.example, port: 9000}',
    'fastcgi.connect: {host: evil.example, port: 9000, type: tcp, type: unix}',
    'reproxy: ON',
    'redirect: {url: "http://evil.example/", internal: YES, status: 302}',
    'error-doc: {status: 404, url: "//evil.example/x"}',
    'error-doc: [{status: 404, url: "http://evil.example/x"}]',
  ])('refuses what may leave this machine, however it is written: %s', async (handler) => {
    expect(
      await refusal(h2oKind, `listen: 80\nhosts:\n  a:\n    paths:\n      /: {${handler}}`),
    ).toMatch(
      /^own\.conf:5: (?:proxy\.reverse\.url|fastcgi\.connect|reproxy|redirect|error-doc) ?.*may leave this machine/,
    );
  });

  it.each([
    'redirect: {url: "http://example.org/", status: 301}',
    'redirect: "http://example.org/"',
    'error-doc: {status: 404, url: /404.html}',
    'redirect: {url: /x, internal: YES, status: 302}',
  ])('leaves to the client what the client follows: %s', async (handler) => {
    expect(
      (
        await h2o(`listen: 80\nhosts:\n  a:\n    paths:\n      /: {${handler}}`)
      ).redirections.filter((line) => line.includes('machine')),
    ).toEqual([]);
  });

  it.each([
    'mruby.handler: "x"',
    'mruby.handler-file: x.rb',
    'fastcgi.spawn: x',
    'file.custom-handler: {extension: .php, fastcgi.spawn: php-cgi}',
  ])('does not run as root starts it, unless root trusts it: %s', async (handler) => {
    const text = `listen: 80\nhosts:\n  a:\n    paths:\n      /: {${handler}}`;
    expect(await refusal(h2oKind, text, { trustConfig: false })).toMatch(
      /^own\.conf:5: (?:mruby\.handler|fastcgi\.spawn)\S* runs code of the config's own, and bakeoff was started by root: see what the code does and give --trust-config, or start bakeoff as another user$/,
    );
    for (const place of [{ trustConfig: true }, { trustConfig: false, user: undefined }])
      expect((await h2o(text, place)).redirections).toContainEqual(
        expect.stringContaining(': runs as it is'),
      );
  });

  it('never asks whether a certificate was revoked, and hands over keys that are closed to its user', async () => {
    const { yaml, redirections } = await h2o(
      'listen: {port: 443, ssl: {certificate-file: c.pem, key-file: k.pem, ocsp-update-cmd: /bin/evil}}\nhosts: {}',
      { handOver: (file) => (file.endsWith('k.pem') ? '/kept/k' : file) },
    );
    expect(yaml['listen']).toEqual({
      host: '127.0.0.1',
      port: '9000',
      ssl: { 'certificate-file': 'c.pem', 'key-file': '/kept/k', 'ocsp-update-interval': '0' },
    });
    expect(redirections).toContain(
      'key-file k.pem → a copy for its start, since it is closed to nobody',
    );
  });

  it('has what it spawns run as itself, which cannot make it another user', async () => {
    const spawned = async (text: string): Promise<unknown> =>
      (
        await h2o(
          `listen: 80\nhosts: {}\nfile.custom-handler: {extension: .php, fastcgi.spawn: ${text}}`,
        )
      ).yaml['file.custom-handler'];
    expect(await spawned('php-cgi')).toEqual({ extension: '.php', 'fastcgi.spawn': 'php-cgi' });
    expect(await spawned('{command: php-cgi, user: me}')).toEqual({
      extension: '.php',
      'fastcgi.spawn': { command: 'php-cgi' },
    });
  });

  it('knows of each line where it comes from, over what is included', async () => {
    const { text, folder } = await h2o(
      'listen: 80\n\nhosts:\n  a: !file a.yaml\n',
      {},
      { 'a.yaml': '# about\npaths:\n  /:\n    file.dir: /srv\n' },
    );
    const origin = (words: string): string | undefined =>
      originOfLine(text, text.split('\n').findIndex((line) => line.includes(words)) + 1);
    expect(origin('file.dir: ')).toBe(`${folder}/a.yaml:4`);
    expect(origin('  a:')).toBe(`${folder}/own.conf:4`);
  });
});

describe('nghttpd', () => {
  const nghttpd = (text: string, others?: Record<string, string>): Promise<Adopted> =>
    adopt(nghttpdKind, text, {}, others);

  it('has its flags, with paths from the folder of the file', async () => {
    const { args, redirections, workers, tls, protocol } = await nghttpd(
      '-m 10\n-d www\n--mime-types-file=/etc/mime.types\n-n 3\n-D\n-a ::\n8443 k c\n',
      { k: '', c: '' },
    );
    expect(args('')).toEqual([
      '--max-concurrent-streams=10',
      '--htdocs=~/www',
      '--mime-types-file=/etc/mime.types',
      '--workers=3',
      '--address=127.0.0.1',
      '9000',
      '~/k',
      '~/c',
    ]);
    expect(redirections).toEqual([
      'port :::8443 → 127.0.0.1:9000',
      '--daemon: left out, so that its end is seen',
    ]);
    expect({ workers, tls, protocol }).toEqual({ workers: 3, tls: true, protocol: 'h2' });
  });

  it("has this machine's certificate where it names none, and none without TLS", async () => {
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

  it('says which certificate is missing', async () => {
    expect(await refusal(nghttpdKind, '-d /srv\n8443 key.pem cert.pem')).toMatch(
      /^own\.conf:2: the key or certificate \/\S+\/key\.pem is not there, or closed to this user$/,
    );
  });
});
