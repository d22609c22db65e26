import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { copyDocroot } from '../../lib/servers/docroot.ts';
import { imagePage } from '../../lib/servers/image-page.ts';
import { makeScratch } from '../../lib/servers/scratch.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'bakeoff-docroot-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function copied(docroot: string): Promise<string> {
  const target = join(newFolder(), 'www');
  await copyDocroot(docroot, target);
  return target;
}

it.each([
  ['nginx', 'index.html', 612], ['h2o', 'index.html', 177], ['small', 'index.html', 21], ['images', 'img.html', 525_304],
])('%s has %s of %i bytes', async (docroot, file, bytes) => {
  const folder = await copied(docroot);
  expect(readdirSync(folder)).toEqual([file]);
  expect(statSync(join(folder, file)).size).toBe(bytes);
});

it("img.html is article 002's: a heading and a tag for each of 9144 pictures", () => {
  const lines = imagePage().split('\n');
  const tag = (name: string): string => `<img src="101_ObjectCategories/${name}.jpg">`;
  expect(lines.slice(0, 7)).toEqual([
    '<html>', '<head>', '</head>', '<body>', '<h1>HTTP2 TEST</h1>', tag('BACKGROUND_Google/image_0001'), tag('BACKGROUND_Google/image_0002'),
  ]);
  expect(lines.slice(-5)).toEqual([tag('yin_yang/image_0059'), tag('yin_yang/image_0060'), '</body>', '</html>', '']);
  const tags = lines.filter((line) => line.startsWith('<img '));
  expect(tags).toHaveLength(9144);
  expect(new Set(tags).size).toBe(9144);
});

it("h2o's page says what the article shows", async () => {
  const text = readFileSync(join(await copied('h2o'), 'index.html'), 'utf8');
  expect(text.split('\n').map((line) => line.trim())).toEqual([
    '<!DOCTYPE html>', '<html>', '<head>', '<title>Welcome to H2O</title>', '</head>', '<body>',
    '<p>Welcome to H2O - an optimized HTTP server</p>', '<p>It works!</p>', '</body>', '</html>', '',
  ]);
});

describe("a person's own folder", () => {
  it('is copied with what its links point to, and readable for all, whatever its own rights', async () => {
    const own = newFolder();
    const secret = join(newFolder(), 'secret.html');
    writeFileSync(secret, 'page', { mode: 0o600 });
    mkdirSync(join(own, 'closed'), { mode: 0o700 });
    writeFileSync(join(own, 'closed', 'a.html'), 'a', { mode: 0o600 });
    symlinkSync(secret, join(own, 'closed', 'link.html'));
    chmodSync(own, 0o700);
    const { docroot, remove } = await makeScratch(own);
    onTestFinished(remove);
    const modeOf = (path: string): number => statSync(path).mode & 0o777;
    expect(readFileSync(join(docroot, 'closed/link.html'), 'utf8')).toBe('page');
    expect(['', 'closed', 'closed/a.html', 'closed/link.html'].map((path) => modeOf(join(docroot, path)))).toEqual([0o755, 0o755, 0o644, 0o644]);
    expect([own, join(own, 'closed/a.html'), secret].map(modeOf)).toEqual([0o700, 0o600, 0o600]);
  });

  it('is named by its absolute path', async () => {
    await expect(copied('./www')).rejects.toThrow('docroot ./www: a folder of your own is named by its absolute path');
  });

  it('that is not there, or no folder, is refused in one line', async () => {
    await expect(copied('/nowhere/www')).rejects.toThrow(/^cannot copy the docroot \/nowhere\/www: ENOENT[^\n]*$/);
    const file = join(newFolder(), 'page.html');
    writeFileSync(file, 'page');
    await expect(copied(file)).rejects.toThrow(`cannot copy the docroot ${file}: it is not a folder`);
  });
});

it('offers the nearest folder for one that is not there', async () => {
  await expect(copied('imags')).rejects.toThrow('there is no docroot "imags": did you mean images?');
});
