import { closeSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
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

test('a link in its place is refused, and its target left alone', async () => {
  const folder = newFolder();
  const [file, target] = [join(folder, 'lock'), join(folder, 'target')];
  writeFileSync(target, 'precious\n');
  symlinkSync(target, file);
  await expect(lockFile(file)).rejects.toThrow('ELOOP');
  expect(readFileSync(target, 'utf8')).toBe('precious\n');
});
