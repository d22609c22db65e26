// The command `compare` with user configs and the real servers.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { oneRunAtATime } from '../../lib/machine/locks.ts';
import { listening } from '../fixtures/listening.ts';
import { descendants, stillRunning } from '../fixtures/processes.ts';
import {
  newOut,
  readResult,
  wholeResult,
  startCommand,
  startedOf,
  useHome,
  type ScenarioRun,
} from '../scenario-run.ts';

const packaged = '/etc/nginx/nginx.conf';
const short = '--quick --no-look --warmup 100ms --duration 0.3s --store none'.split(' ');
const home = useHome(['k6', 'nginx', 'h2o', 'nghttpd']);
let configs = '';
beforeAll(async () => {
  configs = join(home.folder, 'configs');
  const www = join(home.folder, 'www');
  for (const folder of [configs, www]) mkdirSync(folder);
  writeFileSync(join(www, 'index.html'), 'hello\n');
  writeFileSync(join(www, 'large.html'), randomBytes(200_000).toString('hex'));
  const nginx = (lines: string) =>
    `events { }\nhttp {\n  ${lines}\n  server { listen 8080; root ${www}; }\n}\n`;
  writeFileSync(join(configs, 'fast.conf'), nginx('access_log off;'));
  writeFileSync(join(configs, 'slow.conf'), nginx('access_log off; gzip on; gzip_comp_level 9;'));
  writeFileSync(
    join(configs, 'h2o.yaml'),
    `listen: 8090\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: ${www}\n`,
  );
  // It has touched as many bytes before it listens.
  writeFileSync(
    join(configs, 'holds.cjs'),
    `const [port, bytes] = process.argv.slice(2).map(Number);
const held = Buffer.alloc(bytes, 1);
require('node:http').createServer((_, answer) => answer.end(String(held[0]))).listen(port, '127.0.0.1');\n`,
  );
  writeFileSync(join(configs, 'nghttpd.conf'), `--no-tls\n--htdocs=${www}\n8099\n`);
}, 300_000);

/** Runs compare in the folder of the configs, without a working perf. @param before a command prefix */
function compare(
  line: string,
  args: readonly string[] = [],
  before: readonly string[] = [],
): ScenarioRun {
  const allArgs = [...line.split(' '), ...args, ...short];
  const env = { ...home.env, INIT_CWD: configs, PERF_BIN: '/bin/false' };
  return startCommand(['compare', ...allArgs], env, before);
}

/** What Docker leaves root in a container: no CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_NET_ADMIN, among others. */
const inContainer =
  '-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap';
const asContained =
  process.getuid?.() === 0
    ? ['setpriv', `--bounding-set=${inContainer}`, '--inh-caps=-all', '--']
    : [];

test.skipIf(!existsSync(packaged))(
  "Debian's nginx.conf against a copy with one line changed, without edits",
  async () => {
    const text = readFileSync(packaged, 'utf8');
    const changed = text.replace('sendfile on;', 'sendfile off;');
    expect(changed).not.toBe(text);
    writeFileSync(join(configs, 'copy.conf'), changed);
    const files = [packaged, join(configs, 'copy.conf')];
    const theirs = [...files, '/etc/nginx', '/var/log/nginx', '/var/lib/nginx'];
    const states = () =>
      execFileSync('find', [...theirs, '-printf', '%p %s %m %U %T@\\n'], { encoding: 'utf8' });
    const before = states();

    const out = newOut();
    const run = compare(`${packaged} copy.conf --name one-line --rounds 1 --out ${out}`);
    const started = await startedOf(run, (commands) => {
      expect(run.stdout()).toContain('one-line ·');
      expect(commands).toEqual(expect.arrayContaining(['k6', 'nginx']));
    });
    expect(await run.ended, run.stderr()).toBe(0);

    expect(stillRunning(started)).toEqual([]);
    expect(states()).toBe(before);
    const [heading, table] = run.stdout().split('one-line ·');
    expect(heading).toMatch(/^nginx, copy: listen 80.* → 127\.0\.0\.1, a free port$/m);
    expect(heading?.match(/^nginx, copy: pid /gm)).toHaveLength(1);
    expect(table).toMatch(
      /^ wrk -c 100 -t \d+ -d 10 \(here 0\.3 s\) · [\d,]+ B over HTTP\/1\.1 · 1 round/,
    );
    expect(table).toMatch(/^copy +[\d,.]+ +[+−±]?[\d.]+ (?:%|times) needs 4 rounds/m);

    const result = readResult(out);
    expect(result).toMatchObject({
      run: expect.stringMatching(/-one-line$/),
      title: 'nginx.conf against copy.conf',
      state: 'complete',
      integrity: null,
    });
    expect(result.variants).toMatchObject(
      files.map((file) => ({
        server: { name: 'nginx', config: [file] },
        successRatio: 1,
        rounds: [{}],
      })),
    );
  },
);

test('--metric memory and a condition on start-up: both are of the servers themselves', async () => {
  const out = newOut();
  // Node's space for new objects grows with the load, by up to 13 MB.
  const node = 'node --max-semi-space-size=1 holds.cjs {port}';
  const sides = [`a=${node} 0`, `b=${node} 80000000`];
  const gates = ['--fail-if', 'memory>50%, startup>9000%'];
  const run = startCommand(
    ['compare', ...sides, '--metric', 'memory', ...gates, '--out', out, ...short],
    { ...home.env, INIT_CWD: configs },
  );
  expect(await run.ended, run.stderr()).toBe(3);
  expect(run.stderr()).toMatch(/^--fail-if memory>50%: b against a: memory /m);
  expect(run.stdout()).toMatch(/^variant .* memory MB .* start-up ms +start-up change/m);
  const { variants, comparisons, alsoAsked } = readResult(out);
  expect(comparisons).toMatchObject([{ metric: 'memory', verdict: 'slower' }]);
  expect(alsoAsked).toEqual(['memory', 'startup']);
  const [a = [], b = []] = variants.map(({ rounds }) => rounds);
  for (const [index, { memoryBytes = NaN, startupMs }] of b.entries()) {
    const held = memoryBytes - (a[index]?.memoryBytes ?? NaN);
    expect(held / 80e6).toBeGreaterThan(0.95);
    expect(held / 80e6).toBeLessThan(1.05);
    expect(startupMs).toBeGreaterThan(0);
  }
}, 180_000);

test('nginx, h2o and nghttpd, each over its protocol, with the rights of a container', async () => {
  const out = newOut();
  const run = compare(`fast.conf h2o.yaml nghttpd.conf --rounds 1 --out ${out}`, [], asContained);
  const { variants, footnotes } = await wholeResult(run, out);
  const over = (protocol: string, command: RegExp) =>
    [protocol, expect.stringMatching(command), 1] as const;
  const http1 = over('http/1.1', /^wrk -c 100 -t \d+ -d 10$/);
  expect(variants.map(({ load }) => [load.protocol, load['command'], load.streams])).toEqual([
    http1,
    http1,
    over('h2c', /^h2load -c 100 -m 1 -t \d+ -D 10$/),
  ]);
  expect(variants.map(({ server }) => server?.name)).toEqual(['nginx', 'h2o', 'nghttpd']);
  expect(run.stdout()).toContain(
    'side     protocol\nfast     HTTP/1.1\nh2o      HTTP/1.1\nnghttpd  HTTP/2 without TLS\n',
  );
  expect(footnotes).toEqual([]);
  expect(variants.map(({ successRatio }) => successRatio)).toEqual([1, 1, 1]);
});

test('what does not run is refused in one line, before anything is measured or waited for', async () => {
  const out = newOut();
  const done = await oneRunAtATime();
  onTestFinished(done);
  const run = compare(`fast.conf slow.conf --url /nothing.html --wait 1h --out ${out}`);
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toMatch(/^fast\.conf: .*\/nothing\.html .* status 404.*\n$/);
  expect(run.stdout()).toBe('');
  expect(existsSync(out) ? readdirSync(out) : []).toEqual([]);
});

test('Ctrl-C during the trial of a config ends the server and leaves no files', async () => {
  // The backend accepts connections but never responds, so the server never becomes ready.
  const mute = createServer((socket) => {
    socket.on('error', () => undefined);
  });
  const port = await listening(mute);
  writeFileSync(
    join(configs, 'mute.conf'),
    `events { }\nhttp { server { listen 8080; location / { proxy_pass http://127.0.0.1:${port}; } } }\n`,
  );
  const trials = () => readdirSync(home.folder).filter((name) => name.startsWith('bakeoff-'));
  const before = trials();
  const asked = once(mute, 'connection');
  const run = compare(`mute.conf fast.conf --out ${newOut()}`);
  const [connection] = (await asked) as [Socket];
  const started = descendants(run.pid);
  expect(started.map(({ command }) => command)).toContain('nginx');
  expect(trials()).not.toEqual(before);
  run.kill('SIGINT');
  expect(await run.ended, run.stderr()).toBe(130);
  connection.destroy();
  expect(stillRunning(started)).toEqual([]);
  expect(trials()).toEqual(before);
  expect(run.stdout()).toBe('');
});

test.each([
  ['a page', '/large.html', '--url /large.html', 'empty'],
  // Nearly all answers are empty, but nearly all bytes are the large page's.
  ['the small page of two', '/index.html', '--urls large-and-small', 'empty for /index.html'],
])('a config that empties %s under load is not compared', async (_, page, asked, named) => {
  const out = newOut();
  writeFileSync(join(configs, 'large-and-small'), '/large.html\n/index.html 150\n');
  // The first request, which is checked, gets the page.
  writeFileSync(
    join(configs, 'empty.conf'),
    `events { }\nhttp {\n  access_log off;\n  limit_req_zone $binary_remote_addr zone=few:1m rate=1r/s;
  server {\n    listen 8080; root ${home.folder}/www;
    location = ${page} { limit_req zone=few burst=8 nodelay; limit_req_status 404; error_page 404 =200 @empty; }
    location @empty { return 200 ''; }\n  }\n}\n`,
  );
  const run = compare(`fast.conf empty.conf ${asked} --rounds 1 --out ${out}`);
  expect(await run.ended).toBe(1);
  // A server that is slow on a busy machine answers more of its few requests with the page.
  const why = expect.stringMatching(
    `^under load the bodies of ${named} had \\d\\.\\d % of the length of the page that was checked$`,
  );
  expect(readResult(out).comparisons).toMatchObject([{ verdict: 'none', why }]);
  expect(run.stderr()).toContain('nothing was compared: under load the bodies of empty ');
  expect(run.stdout()).toContain('No verdict on empty against fast: under load');
  expect(run.stdout()).not.toMatch(
    /measured [+−]|times the bytes|more memory|less memory|takes another time/,
  );
});
