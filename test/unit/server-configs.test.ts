// What the shipped configs say, against the articles' own text; and how h2o's and nghttpd's are composed.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { composeYaml, h2oKind, textOf } from '../../lib/servers/h2o.ts';
import { composeFlags } from '../../lib/servers/nghttpd.ts';
import { nghttpdKind } from '../../lib/servers/nghttpd.ts';
import { nginxKind } from '../../lib/servers/nginx.ts';
import type { Build, ComposedConfig, Place } from '../../lib/servers/server.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ownConfig } from '../fixtures/own-files.ts';

const place: Place = {
  address: '127.0.0.1',
  port: 8099,
  workers: 3,
  fileLimit: 4096,
  docroot: '/www',
  temp: '/t',
  certificateFile: async () => '/tls.pem',
};
const build: Build = { version: '1.22.1', answer: '' };

const codeLines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/\s*#.*/, '').trim())
    .filter((line) => line !== '');

describe('nginx', () => {
  const compose = (...names: string[]): Promise<ComposedConfig> =>
    nginxKind.compose(names, place, build);
  /** The lines of what is shipped, without those that depend on the machine. */
  const shippedLines = async (...names: string[]): Promise<string[]> =>
    codeLines(
      (await compose(...names)).text
        .split('\n')
        .filter((line) => !line.endsWith('# this machine'))
        .join('\n'),
    );

  it('base has the lines of article 000, and beside them only the defaults of 1.8.0', async () => {
    const article = `
      events {
      worker_connections 1024;
      }
      http {
      default_type application/octet-stream;
      access_log off;
      sendfile on;
      keepalive_timeout 65;
      server {
      server_name localhost;
      location / {
      index index.html index.htm;
      }
      }
      }`;
    const ours = [
      'accept_mutex on;',
      'keepalive_requests 100;',
      'types {',
      'text/html html htm;',
      '}',
    ];
    expect((await shippedLines('base')).toSorted()).toEqual(
      [...codeLines(article), ...ours].toSorted(),
    );
    const { text, tls, protocol } = await compose('base');
    expect({ tls, protocol }).toEqual({ tls: false, protocol: 'http/1.1' });
    expect(codeLines(text)).toEqual(
      expect.arrayContaining(['listen 127.0.0.1:8099;', 'root "/www";', 'worker_processes 3;']),
    );
  });

  // The lines that each step of article 000 adds, and those that go.
  it.each([
    [['workers'], ['worker_connections 10240;'], ['worker_connections 1024;']],
    [['workers', 'open-file-cache'], ['open_file_cache max=100 inactive=20s;'], []],
    [['workers', 'open-file-cache', 'accept-mutex-delay'], ['accept_mutex_delay 100ms;'], []],
    [['workers', 'open-file-cache', 'accept-mutex-delay', 'tcp-nopush'], ['tcp_nopush on;'], []],
    [['workers', 'connections-1024'], ['worker_connections 1024;'], ['worker_connections 10240;']],
    [['workers', 'connections-640'], ['worker_connections 640;'], ['worker_connections 10240;']],
    [
      ['workers', 'keepalive-unlimited'],
      ['keepalive_requests 2147483647;'],
      ['keepalive_requests 100;'],
    ],
  ])('base + %s: the last one adds %j and takes %j away', async (names, added, gone) => {
    const [before, after] = [
      await shippedLines('base', ...names.slice(0, -1)),
      await shippedLines('base', ...names),
    ];
    expect(after.filter((line) => !before.includes(line))).toEqual(added);
    expect(before.filter((line) => !after.includes(line))).toEqual(gone);
    expect(after).toHaveLength(before.length + added.length - gone.length);
  });

  it("base and workers name the article's workers, which the machine replaces", async () => {
    for (const [name, workers] of [
      ['base', 1],
      ['workers', 16],
    ] as const) {
      const text = await readFile(
        path.join(projectRoot, 'server-configs/nginx', `${name}.conf`),
        'utf8',
      );
      expect(codeLines(text)).toContain(`worker_processes ${workers};`);
      expect((await compose('base', name)).text.match(/worker_processes.*/g)).toEqual([
        'worker_processes 3;  # this machine',
      ]);
    }
  });

  it('h2-tuned has the lines of article 001, and beside them only what 1.10.3 had by default or on the wire', async () => {
    const ours = [
      'accept_mutex on;',
      'keepalive_requests 2147483647;',
      'server_tokens off;',
      'types {',
      'text/html html htm;',
      '}',
    ];
    const article = `
      events {
      worker_connections 10240;
      multi_accept on;
      accept_mutex_delay 100ms;
      }
      http {
      default_type application/octet-stream;
      open_file_cache max=100 inactive=20s;
      tcp_nopush on;
      keepalive_timeout 65;
      server {
      server_name _;
      location / {
      index index.html index.htm;
      }
      ssl_protocols TLSv1 TLSv1.1 TLSv1.2;
      ssl_ciphers "ECDHE-RSA-AES128-GCM-SHA256";
      ssl_prefer_server_ciphers on;
      ssl_ecdh_curve secp384r1;
      ssl_session_cache shared:SSL:10m;
      ssl_session_tickets off;
      ssl_session_timeout 10m;
      access_log off;
      }
      }`;
    expect((await shippedLines('h2-tuned')).toSorted()).toEqual(
      [...codeLines(article), ...ours].toSorted(),
    );
    const { text, tls, protocol } = await compose('h2-tuned');
    expect({ tls, protocol }).toEqual({ tls: true, protocol: 'h2' });
    expect(codeLines(text)).toEqual(
      expect.arrayContaining([
        'listen 127.0.0.1:8099 ssl http2 fastopen=256 default_server;',
        'ssl_certificate "/tls.pem";',
        'ssl_certificate_key "/tls.pem";',
        'root "/www";',
        'worker_processes 3;',
        'worker_rlimit_nofile 4096;',
      ]),
    );
    expect(text).not.toMatch(/^\s*(ssl on|sendfile)\b/m);
  });

  it('curve-p256 changes the curve alone', async () => {
    const [tuned, knob] = [
      await shippedLines('h2-tuned'),
      await shippedLines('h2-tuned', 'curve-p256'),
    ];
    expect(knob.filter((line) => !tuned.includes(line))).toEqual(['ssl_ecdh_curve prime256v1;']);
    expect(tuned.filter((line) => !knob.includes(line))).toEqual(['ssl_ecdh_curve secp384r1;']);
  });

  it('small-file has the lines of article 003 for HTTP/1.1, and the default of 1.5.11', async () => {
    const article = `
      events {
      worker_connections 1024;
      accept_mutex_delay 100ms;
      }
      http {
      default_type application/octet-stream;
      sendfile on;
      tcp_nopush on;
      access_log off;
      gzip on;
      gzip_comp_level 9;
      keepalive_requests 10000;
      keepalive_timeout 65;
      server {
      server_name localhost;
      location / {
      index index.html index.htm;
      }
      error_page 500 502 503 504 /50x.html;
      location = /50x.html {
      root html;
      }
      }
      }`;
    const ours = ['accept_mutex on;', 'types {', 'text/html html htm;', '}'];
    expect((await shippedLines('small-file')).toSorted()).toEqual(
      [...codeLines(article), ...ours].toSorted(),
    );
    const { text, tls, protocol } = await compose('small-file');
    expect({ tls, protocol }).toEqual({ tls: false, protocol: 'http/1.1' });
    expect(codeLines(text)).toContain('listen 127.0.0.1:8099;');
  });

  it("small-file-h2 has the TLS lines of article 003's SPDY server and a default of 1.5.11, without gzip", async () => {
    const [plain, secure] = [
      await shippedLines('small-file'),
      await shippedLines('small-file', 'small-file-h2'),
    ];
    expect(secure.filter((line) => !plain.includes(line))).toEqual([
      'gzip off;',
      'ssl_protocols TLSv1.2;',
      'ssl_session_cache shared:SSL:1m;',
      'ssl_session_timeout 5m;',
      'ssl_ciphers HIGH:!aNULL:!MD5;',
      'ssl_prefer_server_ciphers on;',
    ]);
    expect(plain.filter((line) => !secure.includes(line))).toEqual(['gzip on;']);
    const { text, protocol } = await compose('small-file', 'small-file-h2');
    expect(protocol).toBe('h2');
    expect(codeLines(text)).toContain('listen 127.0.0.1:8099 ssl http2;');
  });

  it("packaged is nginx.org's package of 1.10.2, with room for article 004's connections and a log in the server's own folder", async () => {
    const packaged = `
      events {
      worker_connections 1024;
      }
      http {
      default_type application/octet-stream;
      log_format main '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for"';
      access_log /var/log/nginx/access.log main;
      sendfile on;
      keepalive_timeout 65;
      server {
      server_name localhost;
      location / {
      index index.html index.htm;
      }
      }
      }`;
    const oneLine = (text: string): string[] => codeLines(text.replaceAll(/'\s*\n\s*'/g, "' '"));
    const lines = oneLine((await shippedLines('packaged')).join('\n'));
    const expected = oneLine(packaged).map(
      (line) =>
        ({
          'worker_connections 1024;': 'worker_connections 10240;',
          'access_log /var/log/nginx/access.log main;': 'access_log access.log main;',
        })[line] ?? line,
    );
    expect(lines.toSorted()).toEqual(
      [...expected, 'accept_mutex on;', 'types {', 'text/html html htm;', '}'].toSorted(),
    );
    expect(codeLines((await compose('packaged')).text)).toContain('listen 127.0.0.1:8099;');
  });

  // The lines that each row of article 004 adds, and those that go; the last one is beyond it.
  it.each([
    [['accept-mutex-delay'], ['accept_mutex_delay 100ms;'], []],
    [['tcp-nopush'], ['tcp_nopush on;'], []],
    [['access-log-off'], ['access_log off;'], ['access_log access.log main;']],
    [['backlog-16384'], [], []],
  ])('packaged + %s adds %j and takes %j away', async (names, added, gone) => {
    const [before, after] = [
      await shippedLines('packaged'),
      await shippedLines('packaged', ...names),
    ];
    expect(after.filter((line) => !before.includes(line))).toEqual(added);
    expect(before.filter((line) => !after.includes(line))).toEqual(gone);
    expect(after).toHaveLength(before.length + added.length - gone.length);
  });

  it('backlog-16384 asks for a longer listen queue where the server listens', async () => {
    expect(codeLines((await compose('packaged', 'backlog-16384', 'tcp-nopush')).text)).toContain(
      'listen 127.0.0.1:8099 backlog=16384;',
    );
  });

  it('h2 has room for the connections, requests and streams of article 002', async () => {
    expect(await shippedLines('h2')).toEqual(
      expect.arrayContaining([
        'worker_connections 10240;',
        'keepalive_requests 2147483647;',
        'http2_max_concurrent_streams 1024;',
        'open_file_cache max=100 inactive=20s;',
        'access_log off;',
      ]),
    );
    expect(codeLines((await compose('h2')).text)).toContain(
      'listen 127.0.0.1:8099 ssl http2 backlog=4096;',
    );
  });

  it.each([
    ['listen 80 http2;', 'h2c', 'listen 127.0.0.1:8099 http2;'],
    ['listen 80; http2 on;', 'h2c', 'listen 127.0.0.1:8099;'],
    ['listen [::]:443 ssl;', 'http/1.1', 'listen 127.0.0.1:8099 ssl;'],
    ['listen 443; ssl on;', 'http/1.1', 'listen 127.0.0.1:8099;'],
    ['', 'http/1.1', 'listen 127.0.0.1:8099;'],
  ])('knows what "%s" speaks: %s', async (lines, protocol, listen) => {
    const config = await compose(await ownConfig(`events { } http { server { ${lines} } }`));
    expect(config.protocol).toBe(protocol);
    expect(config.tls).toBe(/ssl/.test(lines));
    expect(codeLines(config.text)).toContain(listen);
  });

  it('is refused for HTTP/2 when it is too old for these configs', async () => {
    const old = { ...build, version: '1.18.0' };
    await expect(nginxKind.compose(['h2-tuned'], place, old)).rejects.toThrow(
      'nginx 1.18.0 is too old for the HTTP/2 config h2-tuned: set NGINX_BIN to nginx 1.19.7 or newer',
    );
    await expect(nginxKind.compose(['small-file'], place, old)).resolves.toMatchObject({
      tls: false,
    });
  });

  it('needs no certificate without TLS', async () => {
    const certificateFile = vi.fn(place.certificateFile);
    await nginxKind.compose(['small-file'], { ...place, certificateFile }, build);
    expect(certificateFile).not.toHaveBeenCalled();
  });
});

describe('h2o', () => {
  const compose = (names: string[], at: Partial<Place> = {}): Promise<ComposedConfig> =>
    h2oKind.compose(names, { ...place, ...at }, build);
  const yaml = async (names: string[], at: Partial<Place> = {}): Promise<unknown> =>
    parse((await compose(names, at)).text);

  it("base and tuned are article 000's first and last h2o.conf, word by word", async () => {
    const shipped = async (name: string): Promise<unknown> =>
      parse(await readFile(path.join(projectRoot, 'server-configs/h2o', `${name}.conf`), 'utf8'));
    expect(await shipped('base')).toEqual(
      parse(
        'listen: 80\nhosts:\n  "127.0.0.1:80":\n    paths:\n      /:\n        file.dir: /usr/local/nginx/html\n',
      ),
    );
    expect(await shipped('tuned')).toEqual(
      parse('num-threads: 16\nnum-name-resolution-threads: 1\nmax-connections: 10240\n'),
    );
  });

  it('base and tuned listen in plain at the place they are given', async () => {
    const machine = {
      listen: { host: '127.0.0.1', port: 8099 },
      hosts: { '127.0.0.1:80': { paths: { '/': { 'file.dir': '/www' } } } },
      'num-threads': 3,
    };
    expect(await yaml(['base'])).toEqual(machine);
    expect(await yaml(['base', 'tuned'])).toEqual({
      ...machine,
      'num-name-resolution-threads': 1,
      'max-connections': 10240,
    });
    expect(await compose(['base', 'tuned'])).toMatchObject({ tls: false, protocol: 'http/1.1' });
  });

  it("h2-tuned is article 001's, with the lines of the machine", async () => {
    expect(await yaml(['h2-tuned'])).toEqual({
      'max-connections': 10240,
      hosts: {
        'x.x.x.x:8081': {
          listen: {
            port: 8099,
            host: '127.0.0.1',
            'send-server-name': 'OFF',
            ssl: {
              'certificate-file': '/tls.pem',
              'key-file': '/tls.pem',
              'ocsp-update-interval': 0,
            },
          },
          paths: { '/': { 'file.dir': '/www' } },
        },
      },
      'num-threads': 3,
    });
    expect(await compose(['h2-tuned'])).toMatchObject({ tls: true, protocol: 'h2' });
    expect((await compose(['h2-tuned'])).text).toMatch(
      /# Replaced at start, by a loopback address\.\n *port: 8099 # this machine\n/,
    );
  });

  it('h2 is the same but for what says nothing', async () => {
    expect(await yaml(['h2'])).toMatchObject({
      'max-connections': 10240,
      hosts: { localhost: { paths: { '/': { 'file.dir': '/www' } } } },
    });
  });

  it('merges mappings, replaces everything else, and says whose a line is', () => {
    const config = composeYaml([
      { origin: 'base', text: '# the file\n\n# why a\na: 1\nb:\n  c: 1\n  d: [1, 2]\ne: OFF\n' },
      { origin: 'knob', text: '# the knob\n\n# why not\na: 2\nb:\n  d: 3\nf: [1]\n' },
      { origin: 'empty', text: '# nothing\n' },
    ]);
    expect(textOf(config)).toBe(
      '# why not\na: 2 # knob\nb:\n  c: 1\n  d: 3 # knob\ne: OFF\nf: [ 1 ]\n',
    );
    expect(parse(textOf(config))).toEqual({ a: 2, b: { c: 1, d: 3 }, e: 'OFF', f: [1] });
  });

  it('listens where all hosts do when the config does, in plain', async () => {
    const config = await compose([
      await ownConfig(
        'listen: 80\npid-file: /var/run/h2o.pid\nuser: www-data\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: x\n',
      ),
    ]);
    expect(config).toMatchObject({ tls: false, protocol: 'http/1.1' });
    expect(parse(config.text)).toEqual({
      listen: { host: '127.0.0.1', port: 8099 },
      hosts: { default: { paths: { '/': { 'file.dir': '/www' } } } },
      'num-threads': 3,
    });
  });

  it('keeps what else is said about the address', async () => {
    const own = await ownConfig(
      'hosts:\n  a:\n    listen:\n      - port: 443\n        ssl:\n          cipher-suite: X\n',
    );
    expect(await yaml([own])).toMatchObject({
      hosts: {
        a: { listen: { port: 8099, ssl: { 'cipher-suite': 'X', 'key-file': '/tls.pem' } } },
      },
    });
  });

  it.each([
    ['no host', 'listen: 80\n', '0 hosts and 1 listen entries'],
    [
      'two hosts',
      'listen: 80\nhosts: {a: {paths: {}}, b: {paths: {}}}\n',
      '2 hosts and 1 listen entries',
    ],
    ['two addresses', 'hosts: {a: {listen: [80, 81]}}\n', '1 hosts and 2 listen entries'],
    [
      'an address of all and one of its own',
      'listen: 80\nhosts: {a: {listen: 81}}\n',
      '1 hosts and 2 listen entries',
    ],
    ['none', 'hosts: {a: {paths: {}}}\n', '1 hosts and 0 listen entries'],
  ])('refuses %s', async (_, text, message) => {
    await expect(compose([await ownConfig(text)])).rejects.toThrow(
      `has ${message}; keep one of each`,
    );
  });

  it.each([
    ['a: [1\nb: 2', /^h2o config base:\d: Flow sequence/],
    ['- a\n- b\n', /^h2o config base:1: is not a YAML mapping/],
    ['# only this\n', /^h2o config base: is empty/],
  ])('refuses %j in one line', (text, message) => {
    expect(() => composeYaml([{ origin: 'base', text }])).toThrow(message);
  });

  it('offers the nearest file for one that is not there', async () => {
    await expect(compose(['h2-tunned'])).rejects.toThrow(
      'there is no h2o config "h2-tunned": did you mean h2-tuned?',
    );
    await expect(compose(['./mine.conf'])).rejects.toThrow(
      'h2o config ./mine.conf: a config of your own is named by its absolute path',
    );
  });
});

describe('nghttpd', () => {
  const compose = (names: string[], at: Partial<Place> = {}): Promise<ComposedConfig> =>
    nghttpdKind.compose(names, { ...place, ...at }, build);

  it("runs article 003's command line, and 002's with streams-1024", async () => {
    const machine = [
      '--address=127.0.0.1',
      '--workers=3',
      '--htdocs=/www',
      '8099',
      '/tls.pem',
      '/tls.pem',
    ];
    expect((await compose(['h2'])).args('')).toEqual(machine);
    expect((await compose(['h2', 'streams-1024'])).args('')).toEqual([
      '--max-concurrent-streams=1024',
      ...machine,
    ]);
    expect(await compose(['h2'])).toMatchObject({ tls: true, protocol: 'h2' });
  });

  it('keeps the command line as its config, and says whose a flag is', async () => {
    expect(codeLines((await compose(['h2', 'streams-1024'])).text)).toEqual([
      '--max-concurrent-streams=1024',
      '--address=127.0.0.1',
      '--workers=3',
      '--htdocs=/www',
      '8099 /tls.pem /tls.pem',
    ]);
    expect((await compose(['h2', 'streams-1024'])).text).toContain(
      '\n--max-concurrent-streams=1024  # streams-1024.conf\n',
    );
  });

  it('goes without TLS, key and certificate', async () => {
    const certificateFile = vi.fn(place.certificateFile);
    const config = await compose(['h2', await ownConfig('--no-tls\n')], { certificateFile });
    expect(config).toMatchObject({ tls: false, protocol: 'h2c' });
    expect(config.args('').at(-1)).toBe('8099');
    expect(certificateFile).not.toHaveBeenCalled();
  });

  it('knows a flag by its short and its long name, with and without =', () => {
    const flags = (...texts: string[]): unknown =>
      composeFlags(texts.map((text) => ({ origin: 'x', text }))).map(({ name, value }) =>
        value === undefined ? [name] : [name, value],
      );
    expect(
      flags(
        '-m 10\n-w15\n--trailer foo: bar # said\n-e',
        '--max-concurrent-streams=20\n--error-gzip',
      ),
    ).toEqual([
      ['window-bits', '15'],
      ['trailer', 'foo: bar'],
      ['max-concurrent-streams', '20'],
      ['error-gzip'],
    ]);
    // One that may be given more than once.
    expect(flags('-p /=/a\n', '-p /=/b\n--push=/=/c')).toEqual([
      ['push', '/=/b'],
      ['push', '/=/c'],
    ]);
  });

  it.each([
    ['8080 key cert', '8080 key cert'],
    ['-Z 1', '-Z 1'],
    ['m 5', 'm 5'],
  ])('refuses the line "%s"', (text, said) => {
    expect(() => composeFlags([{ origin: 'own.conf', text: `# about\n\n${text}\n` }])).toThrow(
      `nghttpd config own.conf:3: "${said}" is not a flag of nghttpd; write one a line, e.g. --max-concurrent-streams=100`,
    );
  });

  it('refuses what bakeoff could not end', async () => {
    await expect(compose(['h2', await ownConfig('-D\n')])).rejects.toThrow(
      'leave out --daemon, it would go on when bakeoff has ended',
    );
  });
});
