// When a command begins, and how exact the time to its first answer is.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandBegan, retryAfter } from '../../lib/servers/startup.ts';
import { newFolder } from '../fixtures/new-folder.ts';

/** A process whose command line is written to a folder like /proc. */
function processAt(words: readonly string[]) {
  const proc = newFolder();
  mkdirSync(join(proc, '7'));
  const become = (line: readonly string[]) =>
    writeFileSync(join(proc, '7/cmdline'), line.map((word) => `${word}\0`).join(''));
  become(words);
  return { proc, become };
}

const never = () => false;

test.each([
  ['itself', ['node', 'server.js']],
  ['a script with its interpreter', ['/usr/bin/env', 'node', 'server.js']],
  ['a server that changed its title', ['nginx: master process']],
])('a process has become its command: %s', async (_, line) => {
  const { proc } = processAt(line);
  await expect(commandBegan(7, ['node', 'server.js'], never, proc)).resolves.toBeGreaterThan(0);
});

test('programs before a command, and an empty line within exec, are not the command', async () => {
  const { proc, become } = processAt(['setpriv', '--', 'taskset', '-c', '1', 'node', 'server.js']);
  let looks = 0;
  const after = [
    ['taskset', '-c', '1', 'node', 'server.js'],
    ['sh', '-c', 'exec "$@"', 'sh', 'node', 'server.js'],
    [],
    ['node', 'server.js'],
  ];
  const began = commandBegan(
    7,
    ['node', 'server.js'],
    () => {
      const line = after[looks++];
      if (line !== undefined) become(line);
      return false;
    },
    proc,
  );
  await expect(began).resolves.toBeGreaterThan(0);
  expect(looks).toBe(4);
});

test('a process that ends before has no begin', async () => {
  const { proc } = processAt(['setpriv', 'node']);
  rmSync(join(proc, '7'), { recursive: true });
  let looks = 0;
  await expect(commandBegan(7, ['node'], () => looks++ > 0, proc)).resolves.toBeUndefined();
});

test('a starting server is asked again after a hundredth of its time, 1 to 20 ms', () => {
  expect([0, 50, 500, 1500, 9000].map(retryAfter)).toEqual([1, 1, 5, 15, 20]);
});
