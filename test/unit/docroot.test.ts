import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readIfThere } from '../../lib/files.ts';
import { copyDocroot, imagePage } from '../../lib/servers/docroot.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';
import { swapping } from '../fixtures/swapping.ts';

async function copied(docroot: string) {
  const target = join(newFolder(), 'www');
  await copyDocroot(docroot, target);
  return target;
}

it("img.html has the article's 9144 pictures", () => {
  const tag = (name: string) => `<img src="101_ObjectCategories/${name}.jpg">\n`;
  const head = '<html>\n<head>\n</head>\n<body>\n<h1>HTTP2 TEST</h1>\n';
  const [begin, end] = [tag('BACKGROUND_Google/image_0001'), tag('yin_yang/image_0060')];
  const page = imagePage();
  expect(page.startsWith(head + begin)).toBe(true);
  expect(page.endsWith(`${end}</body>\n</html>\n`)).toBe(true);
  const tags = page.match(/^<img .*/gm);
  expect([tags?.length, new Set(tags).size]).toEqual([9144, 9144]);
});

it('a folder is copied with its links, readable for all', async () => {
  const original = newFolder();
  mkdirSync(join(original, 'closed/deep'), { mode: 0o700, recursive: true });
  writeFileSync(join(original, 'closed', 'a.html'), 'a', { mode: 0o600 });
  symlinkSync(join(original, 'closed/a.html'), join(original, 'absolute.html'));
  symlinkSync('../a.html', join(original, 'closed/deep/relative.html'));
  chmodSync(original, 0o700);
  const named = join(newFolder(), 'named');
  symlinkSync(original, named);
  const docroot = await copied(named);
  for (const file of ['absolute.html', 'closed/deep/relative.html'])
    expect(readFileSync(join(docroot, file), 'utf8')).toBe('a');
  const modes = (folder: string, ...paths: string[]) =>
    paths.map((path) => lstatSync(join(folder, path)).mode & 0o777);
  expect(modes(docroot, '', 'closed', 'closed/deep', 'closed/a.html', 'absolute.html')).toEqual([
    0o755, 0o755, 0o755, 0o644, 0o644,
  ]);
  expect(modes(original, '', 'closed/a.html')).toEqual([0o700, 0o600]);
});

it.skipIf(process.geteuid?.() !== 0)('no link of another user is followed to it', async () => {
  const [folder, of] = [newFolder(), newFolder()];
  writeFileSync(join(folder, 'secret'), 'text');
  const link = join(of, 'www');
  symlinkSync(folder, link);
  lchownSync(link, 1234, 1234);
  for (const named of [link, join(link, '.')])
    expect(await refusalOf(copied(named))).toBe(
      `cannot copy the docroot ${link}: ${link} is a link of another user: name the folder that it leads to`,
    );
});

it.each<[string, (docroot: string, link: string) => unknown, RegExp]>([
  [
    'a link out of it by another one',
    (docroot, link) => {
      const folder = newFolder();
      writeFileSync(join(folder, 'secret'), 'secret', { mode: 0o600 });
      symlinkSync(folder, join(docroot, 'dir'));
      symlinkSync('../dir/secret', link);
    },
    /: \S+ is a link out of it, .*: put a copy in its place$/,
  ],
  [
    'a link to a folder whose name begins alike',
    (folder, link) => {
      mkdirSync(`${folder}-else`);
      onTestFinished(() => rmSync(`${folder}-else`, { recursive: true }));
      symlinkSync(`${folder}-else`, link);
    },
    /: sub\/x is a link out of it, /,
  ],
  [
    'a link to its folder',
    (_, link) => symlinkSync('.', link),
    /sub\/x is .* a folder around the link/,
  ],
  [
    'a pipe',
    (_, link) => execFileSync('mkfifo', [link]),
    /sub\/x is a pipe, socket or device: take it out$/,
  ],
  [
    'a sparse file',
    (_, link) => execFileSync('truncate', ['--size=8T', link]),
    /sub\/x has 8796094 MB, more than \S+ has free$/,
  ],
])('a folder with %s is refused in one line', async (_, plant, message) => {
  const folder = newFolder();
  mkdirSync(join(folder, 'sub'));
  await plant(folder, join(folder, 'sub/x'));
  expect(await refusalOf(copied(folder))).toMatch(message);
});

it('a link that changes during the copy never leads to a file outside', async () => {
  const original = newFolder();
  const outside = join(newFolder(), 'secret');
  writeFileSync(outside, 'secret');
  const [page, next] = [join(original, 'page'), join(original, 'next')];
  writeFileSync(page, 'page');
  const swap = `
    fs.symlinkSync(data.outside, data.next);
    fs.renameSync(data.next, data.page);
    fs.writeFileSync(data.next, 'page');
    fs.renameSync(data.next, data.page);`;
  await swapping(swap, { page, next, outside });
  const folder = newFolder();
  for (let tries = 0; tries < 1000; tries++) {
    const target = join(folder, String(tries));
    await copyDocroot(original, target).catch(() => undefined);
    expect(readIfThere(join(target, 'page'))).not.toBe('secret');
  }
});

it.each([
  ['./www', 'docroot ./www: give a folder of your own as an absolute path'],
  ['imags', 'there is no docroot "imags": did you mean images?'],
  ['/nowhere/www', 'cannot copy the docroot /nowhere/www: ENOENT'],
])('a folder: %s is refused', async (docroot, message) => {
  await expect(copied(docroot)).rejects.toThrow(message);
});
