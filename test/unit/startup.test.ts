// When a command begins, and how exact the time to its first answer is.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandBegan, retryAfter } from '../../lib/servers/ready.ts';
import { newFolder } from '../fixtures/new-folder.ts';

function processAt(words: readonly string[]) {
  const proc = newFolder();
  mkdirSync(join(proc, '7'));
  const become = (line: readonly string[]) =>
    writeFileSync(join(proc, '7/cmdline'), line.map((word) => `${word}\0`).join(''));
  become(words);
  return { proc, become };
}

const started = (line: readonly string[], hasExited = () => false) => ({
  pid: 7,
  line,
  hasExited,
});
const line = ['/bin/setpriv', '--', '/bin/taskset', '-c', '1', '/bin/sh', '-c', 'exec "$@"', 'sh'];
const command = ['/opt/app', 'server.js'];

test.each([
  ['itself', command],
  ['a script with its interpreter', ['/bin/sh', ...command]],
  ['a server that changed its title', ['nginx: master process of some words']],
])('a process has become its command: %s', async (_, now) => {
  const { proc } = processAt(now);
  const child = started([...line, ...command]);
  await expect(commandBegan(child, 2, proc)).resolves.toBeGreaterThan(0);
});

test('programs before a command, and an empty line within exec, are not it', async () => {
  const all = [...line, ...command];
  const { proc, become } = processAt(all);
  let looks = 0;
  const after = [all.slice(2), all.slice(5), [], command];
  const look = () => {
    const now = after[looks++];
    if (now !== undefined) become(now);
    return false;
  };
  const began = commandBegan(started(all, look), 2, proc);
  await expect(began).resolves.toBeGreaterThan(0);
  expect(looks).toBe(4);
});

test('a process that ends before has no begin', async () => {
  const { proc } = processAt(['/bin/setpriv', '/bin/node']);
  rmSync(join(proc, '7'), { recursive: true });
  let looks = 0;
  const child = started(['/bin/setpriv', '/bin/node'], () => looks++ > 0);
  await expect(commandBegan(child, 1, proc)).resolves.toBeUndefined();
});

test('a starting server is asked again after 1 to 20 ms', () => {
  expect([0, 50, 500, 1500, 9000].map(retryAfter)).toEqual([1, 1, 5, 15, 20]);
});
