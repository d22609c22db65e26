// Whole configs of a person's own, run by the real servers: as they are, but for what would meet what runs already.
import { execFileSync } from 'node:child_process';
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  realpath,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { StartedServer, StartOptions } from '../../lib/servers/index.ts';
import { machineCertificate } from '../../lib/servers/certificate.ts';
import { portProblem } from '../../lib/servers/ports.ts';
import { listening } from '../fixtures/listening.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { getPage, negotiate } from '../fixtures/page.ts';
import { isRunning } from '../fixtures/processes.ts';
import { configFileOf, processesOf, useServers } from '../fixtures/servers.ts';

const test = useServers();
const { startOwn } = test;

const refusal = (file: string, options?: Partial<StartOptions>): Promise<string> =>
  test.refusal(startOwn(file, options));

/** Of all files of a folder: what is in them, and when that was written. */
async function fingerprint(folder: string): Promise<string> {
  if (!existsSync(folder)) return 'not there';
  const hash = createHash('sha256');
  for (const entry of (await readdir(folder, { recursive: true, withFileTypes: true })).toSorted(
    (a, b) => a.parentPath.localeCompare(b.parentPath) || a.name.localeCompare(b.name),
  )) {
    const file = path.join(entry.parentPath, entry.name);
    const { mtimeMs, mode, uid } = await stat(file);
    hash.update(`${file} ${mode} ${uid} ${mtimeMs}\n`);
    if (entry.isFile()) hash.update(await readFile(file));
  }
  return hash.digest('hex');
}

async function endsClean(server: StartedServer): Promise<void> {
  const pids = processesOf(server);
  await server.stop();
  expect(pids.filter(isRunning)).toEqual([]);
  expect(await test.scratchFolders()).toEqual([]);
}

/** Port 80 is in use while the test runs, by whomever. */
async function takePort80(): Promise<void> {
  if ((await portProblem({ address: '127.0.0.1', port: 80 })) === undefined)
    await listening(createServer(), 80);
}

/** The machine's certificate, its key with a password. */
async function lockedPem(): Promise<string> {
  const pem = await readFile(await machineCertificate(new AbortController().signal), 'utf8');
  const key = createPrivateKey(pem).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-128-cbc',
    passphrase: 'secret',
  });
  return `${String(key)}${new X509Certificate(pem).toString()}`;
}

describe('nginx', () => {
  const packaged = '/etc/nginx/nginx.conf';

  it.runIf(existsSync('/etc/nginx/sites-enabled/default'))(
    "runs Debian's packaged config, and a copy elsewhere with one line changed, beside what has port 80",
    async () => {
      await takePort80();
      const text = await readFile(packaged, 'utf8');
      const folder = await ownFiles({
        'nginx.conf': text.replace('tcp_nopush on;', 'tcp_nopush off;'),
      });
      const touched = async (): Promise<string[]> =>
        Promise.all(
          ['/etc/nginx', '/var/log/nginx', '/var/lib/nginx', '/var/www', folder].map(fingerprint),
        );
      const before = await touched();
      const pidFile = existsSync('/run/nginx.pid');
      for (const [file, nopush] of [
        [packaged, 'on'],
        [path.join(folder, 'nginx.conf'), 'off'],
      ] as const) {
        // Beside it other packages put an index.html.
        const server = await startOwn(file, { page: { path: '/index.nginx-debian.html' } });
        const { status, body } = await getPage(`${server.origin}/index.nginx-debian.html`, true);
        expect({ status, length: body.length }).toEqual({
          status: 200,
          length: server.answer.bytes,
        });
        expect(server).toMatchObject({
          workers: 1,
          answer: { bytes: (await stat('/var/www/html/index.nginx-debian.html')).size },
        });
        expect(server.redirections).toEqual(
          expect.arrayContaining([
            `listen 80, [::]:80 → ${server.origin.slice('http://'.length)}`,
            'worker_processes auto → 1, the number of server cores',
          ]),
        );
        expect(await readFile(configFileOf(server), 'utf8')).toContain(
          `tcp_nopush ${nopush};  # from ${file}:`,
        );
        await endsClean(server);
      }
      expect(await touched()).toEqual(before);
      expect(existsSync('/run/nginx.pid')).toBe(pidFile);
    },
  );

  it('serves the host that is asked for, over TLS with what stands beside the config, on the port that is chosen', async () => {
    const folder = await ownFiles({
      'nginx.conf': `worker_processes 2; events {} http { include sites/*; server { listen 80; return 301 https://$host$request_uri; } }
        stream { server { listen 12345; proxy_pass 10.0.0.1:1; } }`,
      'sites/a':
        'server { listen 443 ssl http2 default_server; listen [::]:443 ssl http2 default_server; server_name a.org; include tls; return 200 "a"; }',
      'sites/b':
        'server { listen 443 ssl http2; server_name b.org; include tls; location / { return 200 "bb $ssl_server_name $http_host $arg_x"; } location /app { proxy_pass http://127.0.0.1:8080; } }',
      'sites/c':
        'server { listen 8080; listen unix:/run/nobody-has-this.sock; location / { return 200 "inner"; } location = /app { return 200 "the app"; } }',
      tls: 'ssl_certificate pem; ssl_certificate_key pem; ssl_session_ticket_key ticket;',
      pem: await readFile(await machineCertificate(new AbortController().signal)),
      ticket: Buffer.alloc(80, 7),
    });
    const file = path.join(folder, 'nginx.conf');
    const server = await startOwn(file, { port: 443, page: { path: '/?x=1', host: 'b.org' } });
    expect(server).toMatchObject({ workers: 2, answer: { bytes: 'bb b.org b.org 1'.length } });
    expect(server.origin).toMatch(/^https:/);
    expect((await negotiate(server.origin, {})).alpn).toBe('h2');
    expect(
      server.redirections
        .filter((line) => /^(listen|stream)/.test(line))
        .map((line) => line.replace(/(→ 127.0.0.1:)\d+$/, '$1N').replace(folder, '')),
    ).toEqual([
      'listen 443, [::]:443 → 127.0.0.1:N',
      'listen 8080 → 127.0.0.1:N',
      'listen unix:/run/nobody-has-this.sock → a temporary socket',
      'listen 80 → 127.0.0.1:N',
      'stream { } at /nginx.conf:2: left out, only HTTP is compared',
    ]);
    await endsClean(server);
    // Its own other port has moved, and what passes on to it with it.
    const passing = await startOwn(file, { port: 443, page: { path: '/app', host: 'b.org' } });
    expect(passing.answer.bytes).toBe('the app'.length);
    await endsClean(passing);
    expect(await refusal(file, { port: 80, page: { path: '/', host: 'a.org' } })).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/ \(host a\.org\) answers with status 301 to https:\/\/a\.org\/: give a page that it answers with 200 \(--url; in a scenario page\.path\), or expect this one \(--status 301; in a scenario page\.status\)$/,
    );
    expect(await refusal(file)).toBe(
      `${file} listens on the ports 443, 8080, 80: say which one is to be loaded`,
    );
  });

  const inHttp = (lines: string): string => `events {}\nhttp {\n${lines}\n}\n`;
  const inServer = (lines: string): string => inHttp(`server {\nlisten 80;\n${lines}\n}`);

  it.each([
    [
      'a directive that the build lacks',
      inServer('brotli on;'),
      /^FILE:5: nginx \S+ does not know "brotli": this build lacks its module, or it is misspelt; NGINX_BIN names another build$/,
    ],
    [
      'a module that is not there',
      `load_module modules/ngx_gone.so;\n${inServer('')}`,
      /^FILE:1: nginx \S+ does not accept it: dlopen\(\) "\S+ngx_gone.so" failed .*No such file or directory\)$/,
    ],
    [
      'a wrong word',
      inServer('sendfile maybe;'),
      /^FILE:5: nginx \S+ does not accept it: invalid value "maybe" in "sendfile" directive, it must be "on" or "off"$/,
    ],
    [
      'a line that is in an included file',
      inHttp('include inc;'),
      /^\/\S+\/inc:2: nginx \S+ does not accept it: invalid number of arguments in "root" directive$/,
    ],
    [
      'a certificate that is missing',
      inServer('ssl_certificate gone.pem;\nssl_certificate_key gone.key;').replace('80', '443 ssl'),
      /^FILE:5: nginx \S+ does not accept it: cannot load certificate "\S+\/gone\.pem": there is no such file$/,
    ],
    [
      'a certificate that is not named',
      inServer('').replace('80', '443 ssl'),
      /^FILE.*: nginx \S+ does not accept it: no "ssl_certificate" is defined/,
    ],
    [
      'a key with a password',
      inServer('ssl_certificate locked.pem;\nssl_certificate_key locked.pem;').replace(
        '80',
        '443 ssl',
      ),
      /^FILE:\d: nginx \S+ does not accept it: cannot load certificate key "\S+\/locked\.pem": \S+ failed; where the key has a password, name a file with it by ssl_password_file$/,
    ],
    [
      'the same location twice',
      inServer('location /a { }\nlocation /a { }'),
      /^FILE:6: nginx \S+ does not accept it: duplicate location "\/a"$/,
    ],
  ])('says in one line, by file and line, what is wrong: %s', async (_, text, message) => {
    const folder = await ownFiles({
      'nginx.conf': text,
      inc: '\nroot;\nserver { }',
      'locked.pem': await lockedPem(),
    });
    const file = path.join(folder, 'nginx.conf');
    expect((await refusal(file)).replaceAll(file, 'FILE')).toMatch(message);
  });

  it('says which status the page has, and why as its log has it', async () => {
    const folder = await ownFiles({
      'nginx.conf': inServer(
        'root /nowhere; location /closed { deny all; } location /go { return 302 /there; }',
      ),
    });
    const file = path.join(folder, 'nginx.conf');
    expect(await refusal(file)).toMatch(
      /answers with status 404: give a page that it answers with 200 \(--url; in a scenario page\.path\), or expect this one \(--status 404; in a scenario page\.status\); nginx's log: .*\/nowhere/,
    );
    expect(await refusal(file, { page: { path: '/closed' } })).toMatch(
      /\/closed answers with status 403: .*access forbidden by rule/,
    );
    expect(await refusal(file, { page: { path: '/go' } })).toMatch(
      /\/go answers with status 302 to http:\/\/\S+\/there: give a page/,
    );
  });

  it('keeps the keys of its maps, and answers as a client elsewhere has it', async () => {
    const folder = await ownFiles({
      'nginx.conf': inHttp(`map $http_upgrade $connection_upgrade { default upgrade; '' close; }
        server { listen 127.0.0.1:80; return 200 status; }
        server { listen 80; server_name www.a.org; return 200 "site $connection_upgrade"; }`),
    });
    const server = await startOwn(path.join(folder, 'nginx.conf'));
    expect(server.answer.bytes).toBe('site close'.length);
    await endsClean(server);
  });

  it('has no state, cache or log in common with what runs already', async () => {
    const folder = await ownFiles({
      'nginx.conf': `error_log ${test.folder}/theirs-error.log debug; pid ${test.folder}/theirs.pid; lock_file ${test.folder}/theirs.lock;
        events {} http { proxy_cache_path ${test.folder}/theirs-cache keys_zone=z:1m; client_body_temp_path ${test.folder}/theirs-body; access_log ${test.folder}/theirs.log combined buffer=4k;
        server { listen 80; access_log syslog:server=127.0.0.1:9; return 200 x; } }`,
    });
    const server = await startOwn(path.join(folder, 'nginx.conf'));
    const its = execFileSync('sh', ['-c', `ls -l /proc/${server.pid}/fd`], { encoding: 'utf8' });
    expect(its).not.toContain('theirs');
    await endsClean(server);
    expect((await readdir(test.folder)).filter((name) => name.startsWith('theirs'))).toEqual([]);
    expect(server.redirections.filter((line) => line.includes('theirs'))).toHaveLength(6);
  });

  it('runs without workers of its own, and as nobody where its user is not there', async () => {
    const folder = await ownFiles({
      'nginx.conf': `user nosuchuser;\nmaster_process off;\n${inServer('return 200 x;')}`,
    });
    const server = await startOwn(path.join(folder, 'nginx.conf'));
    expect(processesOf(server)).toHaveLength(1);
    expect(server.workers).toBe(1);
    await endsClean(server);
  });

  it('follows links, and finds its files from where the config is named', async () => {
    const folder = await ownFiles({
      'real/site': 'server { listen 80; return 200 xyz; }',
      'etc/nginx.conf': inHttp('include sites/*;'),
      'etc/none': '',
    });
    await mkdir(path.join(folder, 'etc/sites'));
    await symlink('../../real/site', path.join(folder, 'etc/sites/site'));
    const server = await startOwn(path.join(folder, 'etc/nginx.conf'));
    expect(server.answer.bytes).toBe(3);
    await endsClean(server);
  });

  it('keeps what is in it to itself, and may answer with another length each time', async () => {
    const folder = await ownFiles({
      'nginx.conf': inServer('proxy_set_header Authorization "Basic secret"; return 200 x;'),
    });
    const server = await startOwn(path.join(folder, 'nginx.conf'), {
      page: { path: '/', bodyBytes: 1000 },
    });
    expect((await stat(configFileOf(server))).mode & 0o777).toBe(0o600);
    await endsClean(server);
  });

  it('says of a server that turns strangers away which name to ask for', async () => {
    const folder = await ownFiles({
      'nginx.conf': inHttp(
        'server { listen 80 default_server; return 404; } server { listen 80; server_name _ www.a.org; return 200 x; }',
      ),
    });
    const file = path.join(folder, 'nginx.conf');
    expect(await refusal(file)).toMatch(
      /answers with status 404: give a page that it answers with 200 \(it serves www\.a\.org: --url http:\/\/www\.a\.org\/; in a scenario page\.host\), or expect this one \(--status 404; in a scenario page\.status\)$/,
    );
    await endsClean(await startOwn(file, { page: { path: '/', host: 'www.a.org' } }));
  });

  it('stores nothing among the files that it serves', async () => {
    const folder = await ownFiles({
      'nginx.conf': inHttp(
        'server { listen 81; return 200 fetched; } server { listen 80; root WWW; location / { error_page 404 = @fetch; } location @fetch { proxy_store on; proxy_pass http://127.0.0.1:81; } }',
      ),
      'www/x': '',
    });
    const file = path.join(folder, 'nginx.conf');
    await writeFile(file, (await readFile(file, 'utf8')).replace('WWW', path.join(folder, 'www')));
    await chmod(path.join(folder, 'www'), 0o777);
    await chmod(folder, 0o755);
    const server = await startOwn(file, { port: 80, page: { path: '/new' } });
    expect(server.answer.bytes).toBe('fetched'.length);
    await endsClean(server);
    expect(await readdir(path.join(folder, 'www'))).toEqual(['x']);
  });
});

describe('h2o', () => {
  it.runIf(existsSync('/etc/h2o/h2o.conf'))(
    "runs Debian's packaged config beside what has port 80",
    async () => {
      await takePort80();
      const touched = async (): Promise<string[]> =>
        Promise.all(['/etc/h2o', '/var/log/h2o', '/var/www'].map(fingerprint));
      const before = await touched();
      const server = await startOwn('/etc/h2o/h2o.conf', { page: { path: '/server-status' } });
      expect(server.workers).toBe(1);
      expect(server.redirections).toContain(`listen 80 → ${server.origin.slice('http://'.length)}`);
      expect(server.redirections.filter((line) => line.includes('rotatelogs'))).toHaveLength(2);
      const log = await readFile(server.logFile, 'utf8');
      expect(log).toContain('ready to serve');
      await endsClean(server);
      expect(await touched()).toEqual(before);
      expect(existsSync('/run/h2o.pid')).toBe(false);
    },
  );

  it('serves the host that is asked for, over TLS with what stands beside the config, on the port that is chosen', async () => {
    const folder = await ownFiles({
      'h2o.conf':
        'num-threads: 2\nhosts:\n  a.org: !file a.yaml\n  b.org:\n    listen: 80\n    paths: {/: {redirect: https://b.org/}}\n',
      'a.yaml':
        'listen: {port: 443, ssl: {certificate-file: pem, key-file: pem}}\nlisten: {type: unix, port: nobody-has-this.sock}\npaths:\n  /: {file.dir: www}\n',
      pem: await readFile(await machineCertificate(new AbortController().signal)),
      'www/index.html': 'hello',
    });
    const file = path.join(folder, 'h2o.conf');
    const server = await startOwn(file, { port: 443, page: { path: '/', host: 'a.org' } });
    expect(server).toMatchObject({ workers: 2, answer: { bytes: 5 } });
    expect((await negotiate(server.origin, {})).alpn).toBe('h2');
    await endsClean(server);
    expect(await readdir(folder)).toEqual(['a.yaml', 'h2o.conf', 'pem', 'www']);
    expect(await refusal(file, { port: 80 })).toMatch(
      / answers with status 302 to https:\/\/b\.org\/: give a page/,
    );
  });

  it('leaves no folder of its keeper of keys behind, and takes HTTP/2 without TLS', async () => {
    const keepers = async (): Promise<string[]> =>
      (await readdir('/tmp')).filter((name) => name.startsWith('openssl-privsep.'));
    const pem = await readFile(await machineCertificate(new AbortController().signal));
    const folder = await ownFiles({
      'h2o.conf':
        'hosts:\n  a:\n    listen: {port: 443, ssl: {certificate-file: pem, key-file: pem}}\n    listen: 80\n    paths: {/: {file.dir: www}}\n',
      pem,
      'www/index.html': 'hello',
    });
    const before = await keepers();
    const server = await startOwn(path.join(folder, 'h2o.conf'), { port: 80, protocol: 'h2c' });
    const begun = (await keepers()).filter((name) => !before.includes(name));
    expect(begun).not.toEqual([]);
    await endsClean(server);
    // Those of another test beside this one go too.
    await vi.waitFor(
      async () => expect((await keepers()).filter((name) => begun.includes(name))).toEqual([]),
      { timeout: 30_000, interval: 100 },
    );
  });

  it.each([
    [
      'a command that the build lacks',
      'listen: 80\nhosts:\n  a:\n    paths:\n      /:\n        file.dirr: /srv\n',
      /^FILE:6: h2o \S+ does not know "file\.dirr": this build lacks its module, or it is misspelt; H2O_BIN names another build$/,
    ],
    [
      'a value that is wrong',
      'listen: 80\nhosts:\n  a:\n    paths: {}\nmax-connections: many\n',
      /^FILE:5: h2o \S+ does not accept it: in command max-connections, /,
    ],
    [
      'a certificate that is missing',
      'listen:\n  port: 443\n  ssl:\n    certificate-file: gone\n    key-file: gone\nhosts: {a: {paths: {}}}\n',
      /^FILE:\d: h2o \S+ does not accept it: .*certificate/,
    ],
    [
      'a line of what is included',
      'listen: 80\nhosts: !file inc\n',
      /^\/\S+\/inc:4: h2o \S+ does not know "gone"/,
    ],
  ])('says in one line, by file and line, what is wrong: %s', async (_, text, message) => {
    const folder = await ownFiles({ 'h2o.conf': text, inc: '\na:\n  paths:\n    /: {gone: 1}\n' });
    const file = path.join(folder, 'h2o.conf');
    expect((await refusal(file)).replaceAll(file, 'FILE')).toMatch(message);
  });
});

describe('nghttpd', () => {
  it('serves the folder beside its flags, with the certificate beside them', async () => {
    const pem = await readFile(await machineCertificate(new AbortController().signal));
    const folder = await ownFiles({
      'n.conf': '# mine\n--htdocs=www\n-n 2\n-D\n8443 key.pem cert.pem\n',
      'key.pem': pem,
      'cert.pem': pem,
      'www/index.html': 'hello',
    });
    const server = await startOwn(path.join(folder, 'n.conf'));
    expect(server).toMatchObject({ workers: 2, answer: { bytes: 5 } });
    expect(server.redirections).toEqual([
      `port 8443 → ${server.origin.slice('https://'.length)}`,
      '--daemon: left out, so that its end is seen',
    ]);
    await endsClean(server);
    expect(await readdir(folder)).toEqual(['cert.pem', 'key.pem', 'n.conf', 'www']);
  });

  it('says in one line, by file and line, which flag it does not know', async () => {
    const folder = await ownFiles({ 'n.conf': '--no-tls\n--gone=1\n' });
    const file = path.join(await realpath(folder), 'n.conf');
    expect(await refusal(file)).toMatch(
      new RegExp(`^${file}:2: nghttpd \\S+ does not know "--gone`),
    );
  });
});
