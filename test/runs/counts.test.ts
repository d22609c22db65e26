// compare --counts, with real servers.
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { countNames, type CountName } from '../../lib/result/counts.ts';
import type { Result } from '../../lib/result/result.ts';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const isRoot = process.getuid?.() === 0;
const home = useHome(['k6', 'nginx', ...(isRoot ? (['perf'] as const) : [])]);

const inHome = (name: string) => join(home.folder, name);

function writeConfig(name: string, lines: string) {
  const server = `server { listen 8080; root ${inHome('www')}; }`;
  writeFileSync(
    inHome(`${name}.conf`),
    `worker_processes 1;\nevents { }\nhttp {\n  access_log off; ${lines}\n  ${server}\n}\n`,
  );
}

/** An answer of a length that the code gives, after some work that it may give too. */
function writeServer(name: string, length: string, first = '') {
  const answer = `${first} r.end('x'.repeat(${length}));`;
  const server = `require('node:http').createServer((q, r) => { ${answer} })`;
  writeFileSync(inHome(`${name}.js`), `${server}.listen(process.env.PORT, '127.0.0.1');\n`);
}

beforeAll(() => {
  mkdirSync(inHome('www'));
  chmodSync(inHome('www'), 0o755);
  writeFileSync(join(inHome('www'), 'page.html'), 'x'.repeat(2000));
  writeConfig('plain', 'sendfile on;');
  writeConfig('cached', 'sendfile on; open_file_cache max=100;');
  writeConfig('header', `sendfile on; add_header X-Pad ${'p'.repeat(100)};`);
  writeConfig('nopush', 'sendfile on; tcp_nopush on;');
});

interface Counting {
  code: number | NodeJS.Signals;
  result: Result;
  stdout: string;
  stderr: string;
}

async function counting(
  sides: readonly string[],
  failIf?: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Counting> {
  const out = newOut();
  const flags = ['--counts', '--url', '/page.html', '--out', out];
  if (failIf !== undefined) flags.push('--fail-if', failIf);
  const env = { ...home.env, INIT_CWD: home.folder, ...more };
  const run = startCommand(['compare', ...sides, ...flags], env);
  const code = await run.ended;
  expect(run.stderr()).not.toContain('unexpected');
  return { code, result: readResult(out), stdout: run.stdout(), stderr: run.stderr() };
}

const differenceOf = ({ result }: Counting, count: CountName) =>
  result.counts?.differences.find((difference) => difference.count === count);

test('a header of 100 bytes is bytes, exactly', async () => {
  const run = await counting(['plain.conf', 'header.conf'], 'bytes>100,segments>0');
  const bytes = `X-Pad: ${'p'.repeat(100)}\r\n`.length;
  expect(differenceOf(run, 'bytes')).toMatchObject({ difference: bytes, low: bytes, high: bytes });
  expect(run.stdout).toContain(
    `header sends ${bytes} more bytes to the client per request than plain`,
  );
  expect(run.stderr).toContain(`--fail-if bytes>100: header against plain: bytes +${bytes}: true`);
  expect(run.stderr).toContain('--fail-if segments>0: header against plain: segments 0: false');
  expect(run.code).toBe(3);
  const { comparisons, variants, integrity } = run.result;
  expect([comparisons, integrity]).toEqual([[], null]);
  expect(variants.map(({ rounds }) => rounds)).toEqual([[], []]);
});

test('tcp_nopush saves a segment', async () => {
  const run = await counting(['plain.conf', 'nopush.conf'], 'segments>5%');
  expect(differenceOf(run, 'segments')?.difference).toBeCloseTo(-1, 1);
  expect(run.code).toBe(0);
  const back = await counting(['nopush.conf', 'plain.conf'], 'segments>5%');
  expect(back.code).toBe(3);
});

describe.runIf(isRoot)('system calls', () => {
  test('open_file_cache saves those that open the file', async () => {
    const run = await counting(['cached.conf', 'plain.conf'], 'syscalls>0');
    expect(differenceOf(run, 'syscalls')?.difference).toBeCloseTo(3, 1);
    expect(run.stdout).toMatch(
      /plain makes 3 more system calls per request than cached: .*openat \+1/,
    );
    expect(run.code).toBe(3);
  });

  test('a server that reads a file for each answer makes more', async () => {
    writeServer('lean', '1000');
    writeServer('reading', '1000', `require('node:fs').readFileSync(__filename);`);
    const sides = ['lean=node lean.js', 'reading=node reading.js'];
    const run = await counting(sides, 'syscalls>2,bytes>0');
    expect(run.code, run.stderr).toBe(3);
    expect(run.stderr).toContain('--fail-if bytes>0: reading against lean: bytes 0: false');
  });

  // A container's root may list the calls, and not count them.
  test.each([
    ['lists nothing', 'exit 1', /perf does not look at these servers: /],
    ['may not count', 'echo Permission denied >&2; exit 1', /servers: Permission denied/],
    ['counts nothing', 'printf x >&4; read line; exit 0', /of lean, of which perf saw none/],
  ])('where perf %s, a condition on them cannot be told', async (name, stat, line) => {
    const list =
      name === 'lists nothing' ? '' : "[ $1 = list ] && echo 'syscalls:sys_enter_read'\n";
    const perf = inHome(`perf-${name.split(' ')[1]}`);
    writeFileSync(perf, `#!/bin/sh\n${list}[ $1 = stat ] || exit 0\n${stat}\n`, { mode: 0o755 });
    writeServer('lean', '1000');
    const sides = ['lean=node lean.js', 'too=node lean.js'];
    const run = await counting(sides, 'syscalls>2,bytes>0', { PERF_BIN: perf });
    expect(run.code, run.stderr).toBe(1);
    expect(run.stdout).toMatch(/Not counted: system calls/);
    expect(run.stdout.replaceAll('\n', ' ')).toMatch(line);
    expect(run.stderr).toContain('cannot be told: syscalls were not counted');
    expect(differenceOf(run, 'bytes')).toMatchObject({ low: 0, high: 0 });
  });
});

test('equal sides do not differ in 20 passes beside a busy loop', async () => {
  const busy = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  onTestFinished(() => void busy.kill('SIGKILL'));
  const sides = Array.from({ length: 10 }, (_, index) => `s${index}=plain.conf`);
  const run = await counting(sides, countNames.map((name) => `${name}>0`).join());
  expect(run.code, run.stderr).toBe(0);
  expect(run.stderr).not.toContain(': true');
  expect(run.result.counts?.sides.map(({ bytes = [] }) => bytes.length)).toSatisfy(
    (passes: number[]) => passes.every((number) => number >= 2),
  );
});

test('answers of another length each time make an interval, and no alarm', async () => {
  for (const name of ['one', 'other']) writeServer(name, '1000 + Math.floor(Math.random() * 500)');
  const flags = 'bytes>5%';
  const run = await counting(['node one.js', 'node other.js'], flags);
  const { low = 0, high = 0 } = differenceOf(run, 'bytes') ?? {};
  expect(low).toBeLessThan(0);
  expect(high).toBeGreaterThan(0);
  expect(run.code, run.stderr).toBe(0);
});

test.each([
  [
    'fails',
    'if (++n > 20 && n % 3 === 0) r.statusCode = 500;',
    /^of fails's [\d,]+ requests 66\.\d+ % succeeded/m,
  ],
  ['ends', 'if (++n > 2000) process.exit(3);', /^ends: node \(pid \d+\) ended with code 3/m],
])('a server that %s ends the run in one line', async (name, first, line) => {
  writeServer('sound', '1000');
  writeServer(name, '1000', `globalThis.n ??= 0; ${first}`);
  const run = await counting([`sound=node sound.js`, `${name}=node ${name}.js`], 'bytes>0');
  expect(run.stderr).toMatch(line);
  expect(run.code).toBe(1);
  expect(run.result).toMatchObject({ state: 'partial', endedBy: expect.stringMatching(line) });
});

test('a server whose answers are empty under load is not compared', async () => {
  writeServer('always', '1000');
  writeServer('first', 'n > 20 ? 0 : 1000', 'globalThis.n ??= 0; n++;');
  const run = await counting(['always=node always.js', 'first=node first.js'], 'bytes>0');
  expect(run.stderr).toMatch(
    /^nothing was compared: under load the bodies of first had 0\.0 % of the length of the page/m,
  );
  expect(run.code).toBe(1);
});

test('a slow server gets fewer requests', async () => {
  const slow = `setTimeout(() => r.end('x'), 20)`;
  const server = `require('node:http').createServer((q, r) => { ${slow} })`;
  writeFileSync(inHome('slow.js'), `${server}.listen(process.env.PORT, '127.0.0.1');\n`);
  writeServer('short', '1');
  const run = await counting(['node short.js', 'node slow.js'], 'bytes>0');
  expect(run.result.counts?.requests).toBeLessThanOrEqual(30);
  expect(run.code, run.stderr).toBe(0);
});

test('of a server that runs already, bytes and segments are known', async () => {
  const { createServer } = await import('node:http');
  const server = createServer((_, response) => response.end('x'.repeat(2000)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const run = await counting(['plain.conf', `http://127.0.0.1:${port}/`], 'switches>0');
  server.close();
  expect(run.code).toBe(1);
  expect(run.stdout).toContain('which was not started here');
  expect(run.stderr).toContain('cannot be told: switches were not counted');
  expect(differenceOf(run, 'bytes')?.difference).not.toBe(0);
});
