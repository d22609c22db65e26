// The shipped configs, compared with the articles' text, and how they are composed.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, test, vi } from 'vitest';
import { parse } from 'yaml';
import { h2oKind } from '../../lib/servers/h2o.ts';
import { nghttpdKind } from '../../lib/servers/nghttpd.ts';
import { nginxKind } from '../../lib/servers/nginx.ts';
import type { ServerKind } from '../../lib/servers/kind.ts';
import type { Build, ComposedConfig, Place } from '../../lib/servers/server.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { servers } from '../../lib/setup/servers.ts';
import { ownConfig, ownFiles } from '../fixtures/own-files.ts';

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

const composing =
  (kind: ServerKind) =>
  (...names: string[]): Promise<ComposedConfig> =>
    kind.compose(names, place, build);

const codeLines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.replace(/\s*#.*/, '').trim())
    .filter((line) => line !== '');

const shippedText = (name: string) =>
  readFile(path.join(projectRoot, 'server-configs', `${name}.conf`), 'utf8');

test.each(Object.entries(servers))(
  'editors know the configs of %s',
  async (server, { configs }) => {
    const files = await readdir(path.join(projectRoot, 'server-configs', server));
    expect(files.sort()).toEqual(configs.map((name) => `${name}.conf`).sort());
  },
);

describe('nginx', () => {
  const compose = composing(nginxKind);
  /** The lines of the shipped files, without machine-dependent ones. A value over several lines is joined. */
  const shippedLines = async (...names: string[]) => {
    const lines = (await compose(...names)).text.split('\n');
    return codeLines(lines.filter((line) => !line.endsWith('# this machine')).join('\n'));
  };
  const page = 'location / { index index.html index.htm; }';
  const common = 'default_type application/octet-stream; keepalive_timeout 65;';
  const types = ['types {', 'text/html html htm;', '}'];

  // `ours`: lines that set defaults of the article's nginx version, and lines without effect on the responses.
  it.each([
    [
      'base',
      `events { worker_connections 1024; } http { ${common} access_log off; sendfile on;
        server { server_name localhost; ${page} } }`,
      ['keepalive_requests 100;'],
    ],
    [
      'h2-tuned',
      `events { worker_connections 10240; multi_accept on; accept_mutex_delay 100ms; }
      http { ${common} open_file_cache max=100 inactive=20s; tcp_nopush on;
        server { server_name _; ${page} ssl_protocols TLSv1 TLSv1.1 TLSv1.2; ssl_ciphers "ECDHE-RSA-AES128-GCM-SHA256";
          ssl_prefer_server_ciphers on; ssl_ecdh_curve secp384r1; ssl_session_cache shared:SSL:10m; ssl_session_tickets off;
          ssl_session_timeout 10m; access_log off; } }`,
      ['keepalive_requests 2147483647;', 'server_tokens off;'],
    ],
    [
      'small-file',
      `events { worker_connections 1024; accept_mutex_delay 100ms; }
      http { ${common} sendfile on; tcp_nopush on; access_log off; gzip on; gzip_comp_level 9; keepalive_requests 10000;
        server { server_name localhost; ${page} error_page 500 502 503 504 /50x.html; location = /50x.html { root html; } } }`,
      [],
    ],
    [
      // The config of nginx.org's 1.10.2 package, with enough connections for the article and the log in the server's folder.
      'packaged',
      `events { worker_connections 10240; } http { ${common}
        log_format main '$remote_addr - $remote_user [$time_local] "$request" ' '$status $body_bytes_sent "$http_referer" ' '"$http_user_agent" "$http_x_forwarded_for"';
        access_log access.log main; sendfile on;
        server { server_name localhost; ${page} } }`,
      [],
    ],
  ])('%s has the lines of the article', async (name, article, ours) => {
    const normalised = (text: string) =>
      codeLines(text)
        .join(' ')
        .split(/(?<=[;{}]) /)
        .toSorted();
    expect(normalised((await shippedLines(name)).join('\n'))).toEqual(
      [...normalised(article), 'accept_mutex on;', ...types, ...ours].toSorted(),
    );
  });

  it.each([
    ['base workers', 'worker_connections 10240;', 'worker_connections 1024;'],
    ['base workers open-file-cache', 'open_file_cache max=100 inactive=20s;', ''],
    [
      'small-file small-file-h2',
      'gzip off; ssl_protocols TLSv1.2; ssl_session_cache shared:SSL:1m; ssl_session_timeout 5m; ssl_ciphers HIGH:!aNULL:!MD5; ssl_prefer_server_ciphers on;',
      'gzip on;',
    ],
    ['packaged access-log-off', 'access_log off;', 'access_log access.log main;'],
  ])('%s: the last file adds %j and removes %j', async (names, added, gone) => {
    const files = names.split(' ');
    const before = await shippedLines(...files.slice(0, -1));
    const after = await shippedLines(...files);
    expect(after.filter((line) => !before.includes(line)).join(' ')).toBe(added);
    expect(before.filter((line) => !after.includes(line)).join(' ')).toBe(gone);
    const countOf = (lines: string) => lines.split(';').length;
    expect(after).toHaveLength(before.length + countOf(added) - countOf(gone));
  });

  it.each([
    ['h2-tuned', 'h2', 'listen 127.0.0.1:8099 ssl http2 fastopen=256 default_server;'],
    ['h2-tuned', 'h2', 'ssl_certificate "/tls.pem"; worker_rlimit_nofile 4096;'],
    ['h2', 'h2', 'listen 127.0.0.1:8099 ssl http2 backlog=4096;'],
    ['base tls', 'http/1.1', 'listen 127.0.0.1:8099 ssl; ssl_certificate "/tls.pem";'],
  ])('%s speaks %s, with %s', async (names, protocol, lines) => {
    const config = await compose(...names.split(' '));
    expect(config).toMatchObject({ tls: /ssl/.test(lines), protocol });
    const wanted = lines.split(/(?<=;) /);
    expect(codeLines(config.text)).toEqual(expect.arrayContaining(wanted));
  });

  it.each([
    ['listen 80 http2;', 'h2c', 'listen 127.0.0.1:8099 http2;'],
    ['listen 80; http2 on;', 'h2c', 'listen 127.0.0.1:8099;'],
    ['listen 443; ssl on;', 'http/1.1', 'listen 127.0.0.1:8099;'],
    ['', 'http/1.1', 'listen 127.0.0.1:8099;'],
  ])('with "%s" the protocols are %s', async (lines, protocol, listen) => {
    const config = await compose(await ownConfig(`events { } http { server { ${lines} } }`));
    expect(config).toMatchObject({ protocol, tls: /ssl/.test(lines) });
    expect(codeLines(config.text)).toContain(listen);
  });

  it('is refused for HTTP/2 if too old for these configs', async () => {
    const old = { ...build, version: '1.18.0' };
    await expect(nginxKind.compose(['h2-tuned'], place, old)).rejects.toThrow(
      /1\.18\.0 is too old .* h2-tuned: set NGINX_BIN to nginx 1\.19\.7/,
    );
    await expect(nginxKind.compose(['small-file'], place, old)).resolves.toBeDefined();
  });
});

describe('files for nginx', () => {
  const textOf = async (...names: string[]) => (await composing(nginxKind)(...names)).text;

  it('have quoted paths, and temporary paths for the modules of the build', async () => {
    const lacking = '--without-http_fastcgi_module --without-http_uwsgi_module';
    const quoted = { ...place, docroot: '/d "x"' };
    const { text } = await nginxKind.compose(['base'], quoted, { ...build, answer: lacking });
    const lines = ['root "/d \\"x\\"";', 'scgi_temp_path "/t/scgi";'];
    expect(codeLines(text)).toEqual(expect.arrayContaining(lines));
    expect(text).not.toContain('fastcgi_temp_path');
  });

  it('resolve includes relative to their own folder', async () => {
    const files = await ownFiles({
      'nginx.conf': 'events { }\nhttp { include sub/*.conf; server { listen "443" "ssl"; } }',
      'sub/a.conf': 'types { text/x x; }\nsendfile on;',
    });
    const other = await ownFiles({ 'k.conf': 'http { include lines; }', lines: 'sendfile off;' });
    const text = await textOf(`${files}/nginx.conf`, `${other}/k.conf`);
    expect(text).toContain(` text/x x;  # ${files}/sub/a.conf:1\n`);
    expect(text).toContain(` sendfile off;  # ${other}/lines:1\n`);
    expect(text).not.toMatch(/include|sendfile on/);
  });

  it.each([
    ['open-file-cash', 'there is no nginx config "open-file-cash": did you mean open-file-cache?'],
    ['/nowhere/own.conf', 'cannot read the nginx config /nowhere/own.conf'],
    ['./mine.conf', 'as an absolute path'],
  ])('are refused if missing: %s', async (name, message) => {
    await expect(textOf('base', name)).rejects.toThrow(message);
  });

  it.each([
    ['a second server', 'http { server { listen 81; } server { listen 82; } }'],
    ['a stream', 'stream { server { listen 9000; } }'],
  ])('are refused with %s, which would not be on loopback, in includes too', async (_, text) => {
    const including = 'events { } include inc; http { server { listen 80; } }';
    const folder = await ownFiles({ 'own.conf': including, inc: text });
    for (const file of [await ownConfig(`events { } ${text}`), `${folder}/own.conf`])
      await expect(textOf(file)).rejects.toThrow('keep one server block');
  });
});

describe('h2o', () => {
  const compose = composing(h2oKind);

  it.each([
    [
      'base',
      'listen: 80\nhosts: {"127.0.0.1:80": {paths: {/: {file.dir: /usr/local/nginx/html}}}}',
    ],
    ['tuned', 'num-threads: 16\nnum-name-resolution-threads: 1\nmax-connections: 10240'],
  ])('%s is the config of article 000, verbatim', async (name, article) => {
    expect(parse(await shippedText(`h2o/${name}`))).toEqual(parse(article));
  });

  it('h2-tuned is the config of article 001, with machine-dependent lines', async () => {
    const { text, ...config } = await compose('h2-tuned');
    expect(parse(text)).toEqual(
      parse(`max-connections: 10240
num-threads: 3
hosts:
  x.x.x.x:8081:
    listen: {port: 8099, host: 127.0.0.1, send-server-name: "OFF", ssl: {certificate-file: /tls.pem, key-file: /tls.pem, ocsp-update-interval: 0}}
    paths: {/: {file.dir: /www}}`),
    );
    expect(config).toMatchObject({ tls: true, protocol: 'h2' });
    const userFile = await ownConfig('hosts: {a: {listen: [{port: 443, ssl: {cipher-suite: X}}]}}');
    const kept = { 'cipher-suite': 'X', 'key-file': '/tls.pem' };
    expect(parse((await compose(userFile)).text)).toMatchObject({
      hosts: { a: { listen: { port: 8099, ssl: kept } } },
    });
  });

  it("merges mappings, replaces the rest, and knows each line's origin", async () => {
    const base = await ownConfig(
      'a: 1\nb:\n  c: 1\n  d: [1, 2]\nlisten: 80\npid-file: /x\nuser: www-data\nhosts: {default: {paths: {}}}\n',
    );
    const knob = await ownConfig('a: 2\nb:\n  d: 3\nf: [1]\n');
    const { text } = await compose(base, knob, await ownConfig('# nothing\n'));
    expect(text).toContain(
      `a: 2  # ${knob}:1\nb:  # ${base}:2\n  c: 1  # ${base}:3\n  d: 3  # ${knob}:3\n`,
    );
    expect(parse(text)).toMatchObject({
      f: [1],
      listen: { host: '127.0.0.1', port: 8099 },
      hosts: { default: { paths: { '/': { 'file.dir': '/www' } } } },
    });
    expect(text).not.toMatch(/pid-file|user/);
  });

  it.each([
    ['listen: 80\n', /has 0 hosts and 1 listen entries; keep one of each/],
    ['- a\n- b\n', /^h2o config \S+own\.conf:1: is not a YAML mapping/],
  ])('refuses %j', async (text, message) => {
    await expect(compose(await ownConfig(text))).rejects.toThrow(message);
  });
});

describe('nghttpd', () => {
  const compose = composing(nghttpdKind);
  const machine = ['--address=127.0.0.1', '--workers=3', '--htdocs=/www'];
  const last = ['8099', '/tls.pem', '/tls.pem'];

  it("runs the articles' command lines, and knows the file of each flag", async () => {
    expect((await compose('h2')).args('')).toEqual([...machine, ...last]);
    const config = await compose('h2', 'streams-1024');
    const flag = '--max-concurrent-streams=1024';
    expect(config.args('')).toEqual([flag, ...machine, ...last]);
    expect(config).toMatchObject({ tls: true, protocol: 'h2' });
    expect(codeLines(config.text)).toEqual([flag, ...machine, last.join(' ')]);
    expect(config.text).toContain(`${flag}  # streams-1024.conf\n`);
  });

  it('knows flags by short and long name', async () => {
    const config = await compose(
      await ownConfig('-m 10\n-w15\n--trailer foo: bar # why\n-e\n-p /=/a'),
      await ownConfig('--max-concurrent-streams=20\n--error-gzip\n-p /=/b\n--push=/=/c'),
    );
    expect(config.args('').slice(0, 6).join(' ')).toBe(
      '--window-bits=15 --trailer=foo: bar --max-concurrent-streams=20 --error-gzip --push=/=/b --push=/=/c',
    );
  });

  it.each(['8080 key cert', '-Z 1'])('refuses the line "%s"', async (text) => {
    const file = await ownConfig(`# about\n\n${text}\n`);
    await expect(compose(file)).rejects.toThrow(
      `nghttpd config ${file}:3: "${text.split(' ')[0]}" is not a flag of nghttpd`,
    );
  });

  it('refuses several flags in a line', async () => {
    const file = await ownConfig('-d /www --no-tls 8080\n');
    await expect(compose(file)).rejects.toThrow(`nghttpd config ${file}:1: write one flag a line`);
  });

  it('refuses to run in the background', async () => {
    await expect(compose('h2', await ownConfig('-D\n'))).rejects.toThrow(/leave out --daemon/);
  });
});

it.each([
  ['nginx', nginxKind, ['small-file']],
  ['h2o', h2oKind, ['base']],
  ['nghttpd', nghttpdKind, ['h2', '--no-tls\n']],
] as const)('%s needs no certificate without TLS', async (_, kind, [name, text]) => {
  const certificateFile = vi.fn(place.certificateFile);
  const names = [name, ...(text === undefined ? [] : [await ownConfig(text)])];
  const config = await kind.compose(names, { ...place, certificateFile }, build);
  expect(config.tls).toBe(false);
  expect(certificateFile).not.toHaveBeenCalled();
});
