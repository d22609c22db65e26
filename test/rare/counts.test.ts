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

const { home, inHome, writeConfig, writeServer, counting } = useCounting();

beforeAll(() => writeConfig('plain', 'sendfile on;'));

test('equal sides do not differ in 8 passes beside a busy loop', async () => {
  const busy = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  onTestFinished(() => void busy.kill('SIGKILL'));
  const sides = Array.from({ length: 4 }, (_, index) => `s${index}=plain.conf`);
  const run = await counting(sides, countNames.map((name) => `${name}>0`).join());
  expect(run.code, run.stderr).toBe(0);
  expect(run.stderr).not.toContain(': true');
  expect(run.result.counts?.sides.map(({ bytes = [] }) => bytes.length)).toSatisfy(
    (passes: number[]) => passes.every((number) => number >= 2),
  );
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

test('bisect --counts finds the config of a list that sends more', async () => {
  writeConfig('same', 'sendfile on; keepalive_timeout 60s;');
  writeConfig('header', `sendfile on; add_header X-Pad ${'p'.repeat(100)};`);
  const configs = ['plain', 'same', 'header'].map((name) => inHome(`${name}.conf`));
  const list = inHome('configs.txt');
  writeFileSync(list, configs.join('\n'));
  const flags = ['--counts', '--url', '/page.html', '--out', newOut()];
  const run = startCommand(['bisect', list, ...flags], home.env);
  expect(await run.ended, run.stdout() + run.stderr()).toBe(0);
  expect(run.stdout()).toContain('The search is for the side that made +109 bytes.\n');
  expect(run.stdout()).toContain(
    `The side with a probability of over 99 %: ${configs.at(-1)}. It has +109 bytes per request.\n`,
  );
});
