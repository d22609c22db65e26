// Complete user configs with the real servers.
import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { type StartedServer, type StartOptions } from '../../lib/servers/index.ts';
import { machineCertificate } from '../../lib/servers/certificate.ts';
import { portProblem } from '../../lib/servers/ports.ts';
import { listening } from '../fixtures/listening.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { negotiate } from '../fixtures/page.ts';
import { isRunning } from '../fixtures/processes.ts';
import { configFileOf, processesOf, useServers } from '../fixtures/servers.ts';

const test = useServers();
const { startOwn } = test;

const refusal = (file: string, options?: Partial<StartOptions>) =>
  test.refusal(startOwn(file, options));

const written = async (text: string, others: Readonly<Record<string, string | Buffer>> = {}) =>
  path.join(await ownFiles({ 'own.conf': text, ...others }), 'own.conf');

const listingOf = (...folders: string[]) =>
  execFileSync(
    'sh',
    ['-c', 'find "$@" -printf "%p %m %U %T@\\n" -type f -exec md5sum {} + | sort', '-', ...folders],
    { encoding: 'utf8' },
  );

async function endsClean(server: StartedServer) {
  const pids = processesOf(server);
  await server.stop();
  expect(pids.filter(isRunning)).toEqual([]);
  expect(await test.scratchFolders()).toEqual([]);
}

async function takePort80() {
  if ((await portProblem({ address: '127.0.0.1', port: 80 })) === undefined)
    await listening(createServer(), 80);
}

const pem = async () => readFile(await machineCertificate(new AbortController().signal), 'utf8');

async function lockedPem() {
  const text = await pem();
  const password = { cipher: 'aes-128-cbc', passphrase: 'secret' };
  const key = createPrivateKey(text).export({ type: 'pkcs8', format: 'pem', ...password });
  return `${String(key)}${new X509Certificate(text).toString()}`;
}

it('names the nginx line that closes connections, without a wait', async () => {
  const file = await written(
    'events {}\nhttp { server { listen 80 default_server; server_name a.example.org;\nreturn 444; } }',
  );
  expect(await refusal(file)).toMatch(
    /did not answer: return 444 at \S+:3 closes a connection unanswered \(it serves a\.example\.org: --url http:\/\/a\.example\.org\/;/,
  );
});

it('nginx serves the given host and port over TLS', async () => {
  const file = await written(
    `worker_processes 2; events {} http { include sites/*; server { listen 80; return 301 https://$host$request_uri; } }
        stream { server { listen 12345; proxy_pass 10.0.0.1:1; } }`,
    {
      'sites/a':
        'server { listen 443 ssl http2 default_server; listen [::]:443 ssl http2 default_server; server_name a.org; include tls; return 200 "a"; }',
      'sites/b':
        'server { listen 443 ssl http2; server_name b.org; include tls; location / { return 200 "bb $ssl_server_name $http_host $arg_x"; } location /app { proxy_pass http://127.0.0.1:8080; } }',
      'sites/c':
        'server { listen 8080; listen unix:/run/nobody-has-this.sock; location = /app { return 200 "the app"; } }',
      tls: 'ssl_certificate pem; ssl_certificate_key pem; ssl_session_ticket_key ticket;',
      pem: await pem(),
      ticket: Buffer.alloc(80, 7),
    },
  );
  const server = await startOwn(file, { port: 443, page: { path: '/?x=1', host: 'b.org' } });
  expect(server).toMatchObject({ workers: 2, answer: { bytes: 'bb b.org b.org 1'.length } });
  expect((await negotiate(server.origin, {})).alpn).toBe('h2');
  await endsClean(server);
  // The config's other port was redirected, and so were the proxied requests.
  const passing = await startOwn(file, { port: 443, page: { path: '/app', host: 'b.org' } });
  expect(passing.answer.bytes).toBe('the app'.length);
  await endsClean(passing);
  expect(await refusal(file, { port: 80, page: { path: '/', host: 'a.org' } })).toMatch(
    /^http:\/\/127\.0\.0\.1:\d+\/ \(host a\.org\) answers with status 301 to https:\/\/a\.org\/: .*--status 301/,
  );
});

it('nginx listens for HTTP/3 if the build supports it; otherwise there is an error', async () => {
  const file = await written(
    'events {} http { server {\nlisten 443 quic reuseport;\nlisten 443 ssl reuseport; ssl_certificate pem; ssl_certificate_key pem; return 200 "a"; } }',
    { pem: await pem() },
  );
  const start = () => startOwn(file, { load: { protocol: 'h3' }, page: { path: '/' } });
  const { stderr } = spawnSync(process.env.NGINX_BIN ?? 'nginx', ['-V'], { encoding: 'utf8' });
  if (stderr.includes('http_v3_module')) await endsClean(await start());
  else
    expect(await test.refusal(start())).toMatch(
      /own\.conf:2: nginx \S+ does not know "quic": this build lacks its module/,
    );
});

const inHttp = (lines: string) => `events {}\nhttp {\n${lines}\n}\n`;
const inServer = (lines: string) => inHttp(`server {\nlisten 80;\n${lines}\n}`);
const inTls = (lines: string) => inServer(lines).replace('80', '443 ssl');

const h2oHosts = 'listen: 80\nhosts: ';

it.each([
  [
    inServer('brotli on;'),
    /^FILE:5: nginx \S+ does not know "brotli": .*; NGINX_BIN names another/,
  ],
  [
    `load_module modules/ngx_gone.so;\n${inServer('')}`,
    /^FILE:1: .*: dlopen\(\) "\S+ngx_gone.so" failed .*No such file or directory\); install the module /,
  ],
  [inHttp('include inc;'), /^\/\S+\/inc:2: .*: invalid number of arguments in "root" directive$/],
  [
    inTls('ssl_certificate locked.pem;\nssl_certificate_key locked.pem;'),
    /^FILE:\d: .*: cannot load certificate key "\S+\/locked\.pem": .*; if the key has a password, .* ssl_password_file$/,
  ],
  [
    `${h2oHosts}{a: {paths: {/:\n {file.dirr: /srv}}}}`,
    /^FILE:3: h2o \S+ does not know "file\.dirr": .*; H2O_BIN names another build$/,
  ],
  [`${h2oHosts}!file inc.yaml\n`, /^\/\S+\/inc\.yaml:4: h2o \S+ does not know "gone"/],
])('the error in %j is reported with file and line', async (text, message) => {
  const others = {
    inc: '\nroot;\nserver { }',
    'inc.yaml': '\na:\n  paths:\n    /: {gone: 1}\n',
    'locked.pem': await lockedPem(),
  };
  const file = await written(text, others);
  expect((await refusal(file)).replaceAll(file, 'FILE')).toMatch(message);
});

it('for nginx, the error gives the status of a page, and the reason from the log', async () => {
  const file = await written(inServer('root /nowhere; location /closed { deny all; }'));
  expect(await refusal(file, { page: { path: '/closed' } })).toMatch(
    /\/closed answers with status 403: .*access forbidden by rule/,
  );
});

it('nginx shares no state, cache or log with a running server', async () => {
  const theirs = `${test.folder}/theirs`;
  const file =
    await written(`error_log ${theirs}-error.log debug; pid ${theirs}.pid; lock_file ${theirs}.lock;
        events {} http { proxy_cache_path ${theirs}-cache keys_zone=z:1m; client_body_temp_path ${theirs}-body; access_log ${theirs}.log combined buffer=4k;
        server { listen 80; access_log syslog:server=127.0.0.1:9; return 200 x; } }`);
  const server = await startOwn(file, { page: { path: '/', bodyBytes: 1000 } });
  const its = execFileSync('sh', ['-c', `ls -l /proc/${server.pid}/fd`], { encoding: 'utf8' });
  expect(its).not.toContain('theirs');
  expect((await stat(configFileOf(server))).mode & 0o777).toBe(0o600);
  await endsClean(server);
  expect((await readdir(test.folder)).filter((name) => name.startsWith('theirs'))).toEqual([]);
  expect(server.redirections.filter((line) => line.includes('theirs'))).toHaveLength(6);
});

it.runIf(existsSync('/etc/h2o/h2o.conf'))(
  "h2o runs Debian's packaged config beside what has port 80",
  async () => {
    await takePort80();
    const before = listingOf('/etc/h2o', '/var/log/h2o', '/var/www');
    const server = await startOwn('/etc/h2o/h2o.conf', { page: { path: '/server-status' } });
    expect(server.workers).toBe(1);
    expect(server.redirections).toContain(`listen 80 → ${server.origin.slice('http://'.length)}`);
    expect(server.redirections.filter((line) => line.includes('rotatelogs'))).toHaveLength(2);
    expect(await readFile(server.logFile, 'utf8')).toContain('ready to serve');
    await endsClean(server);
    expect(listingOf('/etc/h2o', '/var/log/h2o', '/var/www')).toBe(before);
    expect(existsSync('/run/h2o.pid')).toBe(false);
  },
);

it('h2o serves the given host and port over TLS', async () => {
  const file = await written(
    'num-threads: 2\nhosts:\n  a.org: !file a.yaml\n  b.org:\n    listen: 80\n    paths: {/: {redirect: https://b.org/}}\n',
    {
      'a.yaml':
        'listen: {port: 443, ssl: {certificate-file: pem, key-file: pem}}\nlisten: {type: unix, port: nobody-has-this.sock}\npaths:\n  /: {file.dir: www}\n',
      pem: await pem(),
      'www/index.html': 'hello',
    },
  );
  const server = await startOwn(file, { port: 443, page: { path: '/', host: 'a.org' } });
  expect(server).toMatchObject({ workers: 2, answer: { bytes: 5 } });
  expect((await negotiate(server.origin, {})).alpn).toBe('h2');
  await endsClean(server);
  expect(await readdir(path.dirname(file))).toEqual(['a.yaml', 'own.conf', 'pem', 'www']);
  expect(await refusal(file, { port: 80 })).toMatch(
    / answers with status 302 to https:\/\/b\.org\/: give a page/,
  );
});

it('h2o leaves no folder of its key process, and supports HTTP/2 without TLS', async () => {
  const folders = async () =>
    (await readdir('/tmp')).filter((name) => name.startsWith('openssl-privsep.'));
  const file = await written(
    'hosts:\n  a:\n    listen: {port: 443, ssl: {certificate-file: pem, key-file: pem}}\n    listen: 80\n    paths: {/: {file.dir: www}}\n',
    { pem: await pem(), 'www/index.html': 'hello' },
  );
  const before = await folders();
  const server = await startOwn(file, { port: 80, load: { protocol: 'h2c' } });
  const begun = (await folders()).filter((name) => !before.includes(name));
  expect(begun).not.toEqual([]);
  await endsClean(server);
  // Folders of a concurrent test may disappear too.
  await vi.waitFor(
    async () => expect((await folders()).filter((name) => begun.includes(name))).toEqual([]),
    { timeout: 30_000, interval: 100 },
  );
});

it('h2o shares session keys only on this machine', async () => {
  const memcached = createServer();
  const asked = once(memcached, 'connection');
  const port = await listening(memcached);
  const config = (host: string) =>
    `hosts:\n  a:\n    listen: {port: 443, ssl: {certificate-file: pem, key-file: pem}}\n    paths: {/: {file.dir: www}}\nssl-session-resumption:\n  mode: ticket\n  ticket-store: memcached\n  memcached: {host: ${host}, port: ${port}}\n`;
  const others = { pem: await pem(), 'www/index.html': 'hello' };
  expect(await refusal(await written(config('keys.example.org'), others))).toMatch(
    /:8: memcached keys\.example\.org may leave this machine/,
  );
  const server = await startOwn(await written(config('127.0.0.1'), others));
  expect(server.redirections).toContain(
    `memcached ${port}: what runs there is loaded too (CPU µs/req is without it)`,
  );
  const [socket] = (await asked) as [Socket];
  socket.destroy();
  await endsClean(server);
});

it('nghttpd serves the folder of its flags file', async () => {
  const file = await written('# mine\n--htdocs=www\n-n 2\n-D\n8443 key.pem cert.pem\n', {
    'key.pem': await pem(),
    'cert.pem': await pem(),
    'www/index.html': 'hello',
  });
  const server = await startOwn(file);
  expect(server).toMatchObject({ workers: 2, answer: { bytes: 5 } });
  expect(server.redirections).toContain(`port 8443 → ${server.origin.slice('https://'.length)}`);
  await endsClean(server);
  expect(await readdir(path.dirname(file))).toEqual(['cert.pem', 'key.pem', 'own.conf', 'www']);
});
