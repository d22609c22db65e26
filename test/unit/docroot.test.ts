import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { copyDocroot, imagePage } from '../../lib/servers/docroot.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

async function copied(docroot: string) {
  const target = join(newFolder(), 'www');
  await copyDocroot(docroot, target);
  return target;
}

it.each([
  ['nginx', 'index.html', 612],
  ['h2o', 'index.html', 177],
  ['small', 'index.html', 21],
  ['images', 'img.html', 525_304],
])('%s has %s of %i bytes', async (docroot, file, bytes) => {
  const folder = await copied(docroot);
  expect(readdirSync(folder)).toEqual([file]);
  expect(statSync(join(folder, file)).size).toBe(bytes);
});

it("img.html is article 002's: a heading and a tag for each of 9144 pictures", () => {
  const lines = imagePage().split('\n');
  const tag = (name: string) => `<img src="101_ObjectCategories/${name}.jpg">`;
  const head = ['<html>', '<head>', '</head>', '<body>', '<h1>HTTP2 TEST</h1>'];
  expect(lines.slice(0, 6)).toEqual([...head, tag('BACKGROUND_Google/image_0001')]);
  expect(lines.slice(-4)).toEqual([tag('yin_yang/image_0060'), '</body>', '</html>', '']);
  const tags = lines.filter((line) => line.startsWith('<img '));
  expect([tags.length, new Set(tags).size]).toEqual([9144, 9144]);
});

describe("a person's own folder", () => {
  it('is copied with the links within it, and readable for all, whatever its own rights', async () => {
    const own = newFolder();
    mkdirSync(join(own, 'closed/deep'), { mode: 0o700, recursive: true });
    writeFileSync(join(own, 'closed', 'a.html'), 'a', { mode: 0o600 });
    symlinkSync(join(own, 'closed/a.html'), join(own, 'absolute.html'));
    symlinkSync('../a.html', join(own, 'closed/deep/relative.html'));
    symlinkSync('..', join(own, 'closed/deep/up'));
    symlinkSync(own, join(own, 'closed/root'));
    chmodSync(own, 0o700);
    const named = join(newFolder(), 'named');
    symlinkSync(own, named);
    const docroot = await copied(named);
    const files = ['absolute.html', 'closed/deep/relative.html', 'closed/deep/up/a.html'];
    for (const file of [...files, 'closed/root/closed/a.html']) {
      expect(readFileSync(join(docroot, file), 'utf8')).toBe('a');
      expect(realpathSync(join(docroot, file)).startsWith(docroot)).toBe(true);
    }
    const modes = (folder: string, ...paths: string[]) =>
      paths.map((path) => statSync(join(folder, path)).mode & 0o777);
    expect(modes(docroot, '', 'closed', 'closed/deep', 'closed/a.html')).toEqual([
      0o755, 0o755, 0o755, 0o644,
    ]);
    expect(modes(own, '', 'closed/a.html')).toEqual([0o700, 0o600]);
  });

  const linkTo =
    (target: (own: string, secret: string) => string) => (own: string, secret: string) =>
      symlinkSync(target(own, secret), join(own, 'sub/x'));
  const other = /: sub\/x is neither a file nor a folder: take it out$/;
  it.each<[string, (own: string, secret: string) => unknown, RegExp]>([
    [
      'a link out of it',
      linkTo((_, secret) => secret),
      /: sub\/x is a link to \/\S+\/secret, out of the docroot, .* readable for all: put a copy /,
    ],
    [
      'a link out of it by another one',
      (own, secret) => {
        symlinkSync(dirname(secret), join(own, 'dir'));
        symlinkSync('../dir/secret', join(own, 'sub/x'));
      },
      /: \S+ is a link to \/\S+, out of the docroot, /,
    ],
    [
      'a link to a folder whose name begins alike',
      linkTo((own) => {
        mkdirSync(`${own}-else`);
        onTestFinished(() => rmSync(`${own}-else`, { recursive: true }));
        return `${own}-else`;
      }),
      /: sub\/x is a link to \S+-else, out of the docroot, /,
    ],
    ['a link to nothing', linkTo(() => 'nothing'), / to nothing, which is not there: take it out$/],
    ['a link to itself', linkTo(() => 'x'), / to x, and so to itself: take it out$/],
    ['a pipe', (own) => execFileSync('mkfifo', [join(own, 'sub/x')]), other],
    [
      'a socket',
      async (own) => {
        const server = createServer().listen(join(own, 'sub/x'));
        await once(server, 'listening');
        onTestFinished(() => void server.close());
      },
      other,
    ],
  ])('with %s is refused in one line', async (_, plant, message) => {
    const own = newFolder();
    mkdirSync(join(own, 'sub'));
    const secret = join(newFolder(), 'secret');
    writeFileSync(secret, 'secret', { mode: 0o600 });
    await plant(own, secret);
    expect(await refusalOf(copied(own))).toMatch(message);
  });

  it.each([
    ['./www', 'docroot ./www: a folder of your own is named by its absolute path'],
    ['imags', 'there is no docroot "imags": did you mean images?'],
    ['/nowhere/www', 'cannot copy the docroot /nowhere/www: ENOENT'],
    ['/etc/passwd', 'cannot copy the docroot /etc/passwd: it is not a folder'],
  ])('%s is refused', async (docroot, message) => {
    await expect(copied(docroot)).rejects.toThrow(message);
  });
});
