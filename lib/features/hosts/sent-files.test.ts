// Folders that are sent to other hosts.
import { once } from 'node:events';
import { lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';
import { filesOf } from './server-host.ts';

test('a folder is sent without the targets of links', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'www'));
  writeFileSync(join(folder, 'a.conf'), 'events {}', { mode: 0o600 });
  writeFileSync(join(folder, 'www/index.html'), 'hello', { mode: 0o644 });
  symlinkSync('/etc/passwd', join(folder, 'elsewhere'));
  const files = await filesOf(folder, 'web1');
  expect(files.sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
    { path: 'a.conf', mode: 0o600, base64: btoa('events {}') },
    { path: 'elsewhere', link: '/etc/passwd' },
    { path: 'www/index.html', mode: 0o644, base64: btoa('hello') },
  ]);
});

test('home folders and large folders are not sent', async () => {
  vi.stubEnv('HOME', newFolder());
  for (const folder of [homedir(), userInfo().homedir, '/tmp', '/'])
    await expect(filesOf(folder, 'web1')).rejects.toThrow(
      `${folder} would be sent to web1 with all that`,
    );
  const [large, many] = [newFolder(), newFolder()];
  writeFileSync(join(large, 'file'), Buffer.alloc(20_000_001));
  for (let file = 0; file <= 2000; file++) symlinkSync('x', join(many, String(file)));
  for (const folder of [large, many])
    await expect(filesOf(folder, 'web1')).rejects.toThrow('which is more than 2000 files or 20 MB');
});

test('a home folder under another name is not sent, nor a folder with keys', async () => {
  const parent = newFolder();
  for (const name of ['home/me', 'home/you/.gnupg', 'services'])
    mkdirSync(join(parent, name), { recursive: true });
  symlinkSync('home/me', join(parent, 'link'));
  const refused = /^\S+ would be sent to web1 with all that is in it(?:, \S+ too)?: put the config/;
  for (const [home, folder] of [
    ['link', 'home/me'],
    ['home/me', 'link'],
    ['home/me', 'home/me/'],
    ['home/me', 'home'],
    ['services', 'home/you'],
  ] as const) {
    vi.stubEnv('HOME', `${parent}/${home}`);
    await expect(filesOf(`${parent}/${folder}`, 'web1'), folder).rejects.toThrow(refused);
  }
  await expect(filesOf(join(parent, 'home/me'), 'web1')).resolves.toEqual([]);
});

/** Makes a link that belongs to another user; needs root. */
function linkOfAnother(target: string): string {
  const link = join(newFolder(), 'link');
  symlinkSync(target, link);
  lchownSync(link, 1234, 1234);
  return link;
}

test.skipIf(process.geteuid?.() !== 0)(
  'a folder behind a link of another user is not sent',
  async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'secret'), 'text');
    const link = linkOfAnother(folder);
    const refused = `${link} is sent to web1 with all that is in it, and cannot be read: ${link} is a link of another user: name the folder that it leads to`;
    expect(await refusalOf(filesOf(link, 'web1'))).toBe(refused);
  },
);

test('a folder that is swapped for a link while being read does not lead elsewhere', async () => {
  const [folder, elsewhere] = [newFolder(), newFolder()];
  symlinkSync('nowhere', join(elsewhere, 'secret'));
  mkdirSync(join(folder, 'www'));
  // These folders delay the listing of www after the listing of the parent.
  for (let other = 0; other < 100; other++) mkdirSync(join(folder, `other-${other}`));
  const swapping = new Worker(
    `const { renameSync, rmSync, symlinkSync } = require('node:fs');
     const { folder, elsewhere } = require('node:worker_threads').workerData;
     for (;;) {
       renameSync(folder + '/www', folder + '/kept');
       symlinkSync(elsewhere, folder + '/www');
       rmSync(folder + '/www');
       renameSync(folder + '/kept', folder + '/www');
     }`,
    { eval: true, workerData: { folder, elsewhere } },
  );
  onTestFinished(async () => void (await swapping.terminate()));
  await once(swapping, 'online');
  for (let times = 0; times < 250; times++) {
    const files = await filesOf(folder, 'web1').catch(() => []);
    expect(files.filter(({ path }) => path.endsWith('secret'))).toEqual([]);
  }
});
