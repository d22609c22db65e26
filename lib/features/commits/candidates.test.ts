import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { readCandidates, sideNamedIn } from './candidates.ts';

const known = { good: { value: 'COMMIT', help: '' }, repo: { value: 'DIR', help: '' } };

function listOf(text: string): string {
  const file = join(newFolder(), 'sides.txt');
  writeFileSync(file, text);
  return file;
}

const read = (positionals: string[], flags: Readonly<Record<string, string>> = {}) =>
  readCandidates({ positionals, flags: new Map(Object.entries(flags)) }, known);

test('a file has a side in each line, a name or none, blank lines and comments', async () => {
  const file = listOf('# versions\nold=node a.js\n\n  node b.js --token=abc \r\nc.conf');
  expect(await read([file])).toEqual([
    { side: 'node a.js', text: 'old' },
    { side: 'node b.js --token=abc', text: 'node b.js --token=***' },
    { side: 'c.conf', text: 'c.conf' },
  ]);
});

test.each([
  ['a.conf\nb.conf\n', {}, /^.*sides\.txt has 2 sides, and a search needs three or more, /],
  ['', {}, /^.*sides\.txt has 0 sides/],
  ['a\nb\nc', { good: 'v1' }, /sides\.txt lists what to look among: leave it out, or --good$/],
])('%j with %j is refused', async (text, flags, message) => {
  await expect(read([listOf(text)], flags)).rejects.toThrow(message);
});

test('no file, two files, and a file that is not there', async () => {
  await expect(read([])).rejects.toThrow(/^bisect needs --repo DIR, or a file with a side in each/);
  await expect(read(['a', 'b'])).rejects.toThrow(/bisect takes one file.*: leave out "b"$/);
  await expect(read(['/nowhere/sides.txt'])).rejects.toThrow(/^\/nowhere\/sides\.txt: /);
});

test.each([
  'the build of c2 ended with code 1: no rule',
  'c2: node (pid 7) ended with code 1',
  'c2 has no folder web: --repo names one that all have',
  'round 1 failed twice: c2: node (pid 7) ended with code 9; its log ends: boom',
  "of c2's 3,000 requests 66.6 % succeeded: look at its log",
])('the side of %j', (message) => {
  expect(sideNamedIn(message)).toBe('c2');
});
