// Credentials for the server do not appear in output or files of a run.
import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { textOf } from '../../lib/files.ts';
import { descendants } from '../fixtures/processes.ts';
import { storeOf } from '../fixtures/local-store.ts';
import {
  keptRounds,
  newOut,
  wholeResult,
  runFolder,
  startCommand,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'influxd']);

const secret = 'hunter2secret';
const encoded = Buffer.from(`me:${secret}`).toString('base64');
const hasSecret = new RegExp(`${secret}|${encoded}`);

/** The usual umask, because a stricter one would hide files with open permissions. */
const usually = ['sh', '-c', 'umask 022; exec "$@"', '-'];

const modesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => [name, statSync(join(folder, name))] as const)
    .filter(([, stats]) => (stats.mode & 0o777) !== (stats.isDirectory() ? 0o700 : 0o600))
    .map(([name, { mode }]) => `${name} ${(mode & 0o777).toString(8)}`);

const filesWithSecret = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile() && hasSecret.test(readFileSync(file, 'latin1')));

test('credentials reach the server, and are kept only in private configs', async () => {
  const configs = join(home.folder, 'configs');
  mkdirSync(configs);
  const config = (lines: string) =>
    `events {}\nhttp { ${lines} server { listen 8080; location / {\n` +
    `if ($http_authorization != "Basic ${encoded}") { return 401; }\nif ($cookie_sid != "${secret}") { return 401; }\nreturn 200 hello; } } }\n`;
  for (const [name, lines] of Object.entries({ 'a.conf': '', 'b.conf': 'tcp_nodelay off;' }))
    writeFileSync(join(configs, name), config(lines), { mode: 0o600 });
  const out = newOut();
  const run = startCommand(
    [
      ...`compare a.conf b.conf --quick --duration 0.3s --rounds 1 --out ${out} --load`.split(' '),
      `ab -k -c 2 -n 2000 -A me:${secret} -C sid=${secret} http://localhost:8080/?access_token=${secret}`,
    ],
    { ...home.env, INIT_CWD: configs },
  );
  const wordsOf = (pid: number) => textOf(`/proc/${pid}/cmdline`);
  const commandLines = await vi.waitUntil(
    () => {
      const all = descendants(run.pid).map(({ pid }) => wordsOf(pid));
      return all.some((commandLine) => commandLine.includes('--summary-export')) && all;
    },
    { timeout: 60_000, interval: 5 },
  );
  // Before exec, a child process has the arguments of its parent.
  const others = commandLines.filter((commandLine) => commandLine !== wordsOf(run.pid));
  expect(others.filter((commandLine) => hasSecret.test(commandLine))).toEqual([]);
  const result = await wholeResult(run, out);
  for (const { load, rounds } of result.variants) {
    expect(load.command).toBe(
      'ab -k -c 2 -n 2000 -A *** -C *** http://localhost:8080/?access_token=***',
    );
    expect(load).toMatchObject({ headers: { Authorization: '***', Cookie: '***' } });
    const [phase] = rounds[0]?.phases ?? [];
    expect(phase?.responses['2xx']).toBe(phase?.requests);
  }
  const folder = runFolder(out);
  expect(run.stdout() + run.stderr()).not.toMatch(hasSecret);

  // Configs are kept unchanged, and shown on the page.
  const withSecret = filesWithSecret(folder).map((file) => file.slice(folder.length + 1));
  const tries = Array.from(
    { length: keptRounds(result)[0] ?? NaN },
    (_, index) => `round-${index + 1}`,
  );
  expect(withSecret.sort()).toEqual([
    'report.html',
    ...tries.flatMap((round) => [`${round}/a/nginx.conf`, `${round}/b/nginx.conf`]),
  ]);
  for (const file of withSecret) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);

  const again = startCommand(['report', folder], home.env);
  expect(await again.ended, again.stderr()).toBe(0);
  expect(statSync(join(folder, 'report.html')).mode & 0o777).toBe(0o600);

  await storeOf(home);
  expect(filesWithSecret(join(home.folder, 'influxdb'))).toEqual([]);
});

const program = `
import { createServer } from 'node:http';
const [token, way] = process.argv.slice(2);
createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    const isRight = body.includes(token.split('=')[1]) && request.headers['x-token'] === token.split('=')[1];
    response.writeHead(isRight ? 200 : 401).end(way);
  });
}).listen(process.env.PORT, '127.0.0.1');`;

test('arguments of a command, and a body and headers from a file, are stored only in private files, not as plain text', async () => {
  const folder = join(home.folder, 'commands');
  mkdirSync(folder);
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write('server.mjs', program);
  write('headers', `X-Token: ${secret}\n`);
  write('body', JSON.stringify({ password: secret }));
  const out = newOut();
  const exported = join(folder, 'exported.json');
  if (process.getuid?.() === 0)
    for (const place of [folder, dirname(out)]) chownSync(place, 65_533, 65_533);
  const run = startCommand(
    [
      'compare',
      `a=node server.mjs --token=${secret} 1`,
      `b=node server.mjs --token=${secret} 2`,
      ...`--quick --warmup 100ms --duration 0.3s --rounds 1 --out ${out} --export-json ${exported}`.split(
        ' ',
      ),
      ...'--header @headers --data @body --allow-different-bodies'.split(' '),
    ],
    {
      ...home.env,
      BAKEOFF_HOME: folder,
      INIT_CWD: folder,
      SUDO_UID: '65533',
      SUDO_GID: '65533',
    },
    usually,
  );
  const result = await wholeResult(run, out);
  // The user who ran sudo may read the report, and run again without sudo.
  const ofRun = ['', 'report.html', 'round-1/a/output.log'].map((name) =>
    join(runFolder(out), name),
  );
  const database = join(folder, 'influxdb');
  const ofDatabase = readdirSync(database, { recursive: true, encoding: 'utf8' });
  const files = [out, exported, ...ofRun, ...ofDatabase.map((name) => join(database, name))];
  if (process.getuid?.() === 0)
    for (const file of files) expect(statSync(file).uid, file).toBe(65_533);
  expect(run.stdout() + run.stderr()).not.toMatch(hasSecret);
  for (const { load, server } of result.variants) {
    expect(load).toMatchObject({ body: '***', headers: { 'X-Token': '***' } });
    expect(server?.config.join()).toMatch(/^node server\.mjs --token=\*\*\* [12]$/);
  }
  expect(filesWithSecret(runFolder(out))).toEqual([]);
  expect(modesIn(out)).toEqual([]);
  expect(statSync(exported).mode & 0o777).toBe(0o644);
  await storeOf({ ...home, folder });
  expect(filesWithSecret(database)).toEqual([]);
});

test.each([
  ['goes', []],
  ['stays for --keep-secrets', ['--keep-secrets']],
])('the file with queries from a log %s', async (_, flags) => {
  const folder = join(home.folder, `logged-${flags.length}`);
  mkdirSync(folder);
  for (const name of ['a.conf', 'b.conf'])
    writeFileSync(
      join(folder, name),
      `events {}\nhttp { server { listen 8080; location / { return 200 hello; } } } # ${name}`,
    );
  const line = (target: string) =>
    `1.2.3.4 - - [01/Nov/2026:10:00:00 +0000] "GET ${target} HTTP/1.1" 200 5 "-" "-"\n`;
  writeFileSync(join(folder, 'log'), line(`/first?q=${secret}`).repeat(3) + line(`/b?q=${secret}`));
  const out = newOut();
  const run = startCommand(
    [
      ...`compare a.conf b.conf --quick --warmup 100ms --duration 0.3s --rounds 1 --log log --out ${out}`.split(
        ' ',
      ),
      ...flags,
      '--header',
      'Authorization: Basic hunter3',
    ],
    { ...home.env, INIT_CWD: folder },
    usually,
  );
  const result = await wholeResult(run, out);
  expect(run.stdout() + run.stderr()).not.toMatch(hasSecret);
  expect(result.variants[0]?.load).toMatchObject({ page: '/first', pages: 2 });
  const withSecret = filesWithSecret(runFolder(out)).map((file) => basename(file));
  const plan = readFileSync(join(runFolder(out), 'round-1/k6-1/load.json'), 'utf8');
  expect(plan.includes('Basic hunter3')).toBe(flags.length > 0);
  expect(JSON.stringify(result)).not.toContain('hunter3');
  const requests = expect.stringMatching(/^requests-\w+\.ndjson$/);
  expect(withSecret).toEqual(flags.length > 0 ? [requests] : []);
  expect(modesIn(out)).toEqual([]);
  await storeOf(home);
  expect(filesWithSecret(join(home.folder, 'influxdb'))).toEqual([]);
});
