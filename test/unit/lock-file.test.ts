import { closeSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { holder, lockFile, writeHolder } from '../../lib/machine/locks.ts';
import { newFolder } from '../fixtures/new-folder.ts';

test('a lock is held by one at a time, who is named', async () => {
  const file = join(newFolder(), 'lock');
  const first = (await lockFile(file)) ?? expect.fail();
  writeHolder(first, 123);
  expect(await lockFile(file)).toBeNull();
  expect(holder(file)).toBe(' (process 123)');
  closeSync(first);
  closeSync((await lockFile(file)) ?? expect.fail());
});

test.each(['link', 'link to nothing', 'pipe', 'folder'])(
  'a %s in its place is refused and left alone',
  async (kind) => {
    const folder = newFolder();
    const [file, target] = [join(folder, 'lock'), join(folder, 'target')];
    if (kind !== 'link to nothing') writeFileSync(target, 'precious\n');
    if (kind.startsWith('link')) symlinkSync(target, file);
    if (kind === 'pipe') execFileSync('mkfifo', [file]);
    if (kind === 'folder') mkdirSync(file);
    await expect(lockFile(file)).rejects.toThrow(/must be a regular file .*: remove/);
    if (kind === 'link') expect(readFileSync(target, 'utf8')).toBe('precious\n');
  },
);
