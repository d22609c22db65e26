import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepCoresAwake } from '../../lib/machine/usage.ts';
import { linkOf, namesIn } from '../../lib/files.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const isOpen = (file: string) =>
  namesIn('/proc/self/fd').some((fd) => linkOf(`/proc/self/fd/${fd}`) === file);

test('cores are kept awake while the device is open', () => {
  const device = join(newFolder(), 'device');
  writeFileSync(device, '');
  const letSleep = keepCoresAwake(device);
  expect([...readFileSync(device)]).toEqual([0, 0, 0, 0]);
  expect(isOpen(device)).toBe(true);
  letSleep();
  expect(isOpen(device)).toBe(false);
});

test('does not create the device', () => {
  const device = join(newFolder(), 'none');
  keepCoresAwake(device)();
  expect(existsSync(device)).toBe(false);
});
