// compare --counts, with servers whose counts vary or are not known.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { countNames } from '../../lib/result/counts.ts';
import { differenceOf, useCounting } from '../fixtures/counting.ts';
import { newOut, startCommand } from '../scenario-run.ts';

const { isRoot, home, inHome, writeConfig, writeServer, counting } = useCounting();

beforeAll(() => writeConfig('plain', 'sendfile on;'));

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

// How many calls node makes for an answer depends on what else runs.
test.runIf(isRoot)(
  'a server that reads a file for each answer makes more system calls',
  async () => {
    writeServer('lean', '1000');
    writeServer('reading', '1000', `require('node:fs').readFileSync(__filename);`);
    const run = await counting(['lean=node lean.js', 'reading=node reading.js'], 'bytes>0');
    expect(differenceOf(run, 'syscalls')?.difference).toBeGreaterThan(1);
    expect(run.stderr).toContain('--fail-if bytes>0: reading against lean: bytes 0: false');
    expect(run.code, run.stderr).toBe(0);
  },
);

// A container's root may list the calls, and not count them.
test.runIf(isRoot).each([
  ['lists nothing', '', 'exit 1', /perf does not look at these servers: /],
  [
    'may not count',
    'sys_enter_read',
    'echo Permission denied >&2; exit 1',
    /servers: Permission denied/,
  ],
  [
    'counts nothing',
    'sys_enter_read',
    'printf x >&4; read line; exit 0',
    /of lean, of which perf saw none/,
  ],
])('where perf %s, a condition on calls cannot be told', async (name, event, stat, line) => {
  const list = event && `[ $1 = list ] && echo 'syscalls:${event}'\n`;
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

test('answers of another length each time make an interval, and no alarm', async () => {
  for (const name of ['one', 'other']) writeServer(name, '1000 + Math.floor(Math.random() * 500)');
  const run = await counting(['node one.js', 'node other.js'], 'bytes>5%');
  const { low = 0, high = 0 } = differenceOf(run, 'bytes') ?? {};
  expect(low).toBeLessThan(0);
  expect(high).toBeGreaterThan(0);
  expect(run.code, run.stderr).toBe(0);
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
  const server = createServer((_, response) => response.end('x'.repeat(2000)));
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const run = await counting(['plain.conf', `http://127.0.0.1:${port}/`], 'switches>0');
  expect(run.code).toBe(1);
  expect(run.stdout).toContain('which was not started here');
  expect(run.stderr).toContain('cannot be told: switches were not counted');
  expect(differenceOf(run, 'bytes')?.difference).not.toBe(0);
});

/** Searches among configs, of which each has the lines of the one before it and its own. */
async function searching(...lines: readonly string[]) {
  const configs = lines.map((_, index) => {
    writeConfig(`c${index}`, lines.slice(0, index + 1).join(' '));
    return inHome(`c${index}.conf`);
  });
  writeFileSync(inHome('configs.txt'), configs.join('\n'));
  const flags = ['--counts', '--url', '/page.html', '--out', newOut()];
  const run = startCommand(['bisect', inHome('configs.txt'), ...flags], home.env);
  return { code: await run.ended, stdout: run.stdout(), all: run.stdout() + run.stderr(), configs };
}

const header = `add_header X-Pad ${'p'.repeat(100)};`;

test('bisect --counts finds the config of a list that sends more', async () => {
  const { code, stdout, all, configs } = await searching('', 'keepalive_timeout 60s;', header);
  expect(code, all).toBe(0);
  expect(stdout).toContain('The search is for the side that made +109 bytes.\n');
  expect(stdout).toContain(
    `The side with a probability of over 99 %: ${configs.at(-1)}. It has +109 bytes per request.\n`,
  );
});

test('bisect --counts says that more than one side has a part, and does not count again', async () => {
  const { code, stdout, all } = await searching('', header, header.replace('Pad', 'Also'));
  expect(code, all).toBe(1);
  expect(stdout).toContain('The search is for the side that made +219 bytes.\n');
  expect(stdout.match(/\+109 bytes$/gm), all).toHaveLength(1);
  expect(stdout).toContain('More than one side has a part in it, as the tables show.\n');
});
