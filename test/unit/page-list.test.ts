import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { readPageList, type AskedPages } from '../../lib/scenario/pages.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { refused } from '../fixtures/refused.ts';

const folder = sharedFolder();
beforeEach(() => void vi.stubEnv('INIT_CWD', folder));

const read = (text: string) => {
  writeFileSync(join(folder, 'f'), text);
  return readPageList('--urls', 'f');
};

const once = (...targets: string[]) => targets.map((target) => ({ target, weight: 1 }));

test.each<[string, string, AskedPages]>([
  [
    'a comment, blanks, empty lines',
    '# all\n\n  /b?x=1#top\t2   # twice\r\n\r\n/a',
    {
      path: '/b?x=1',
      requests: [{ target: '/b?x=1', weight: 2 }, ...once('/a')],
    },
  ],
  [
    'URLs of one server, and a path',
    '/a\nhttp://www.example.com:8080/b\nHTTP://www.example.com:8080',
    {
      scheme: 'http',
      host: 'www.example.com:8080',
      port: 8080,
      path: '/a',
      requests: once('/a', '/b', '/'),
    },
  ],
  [
    'the default port',
    'https://a.example/\nhttps://a.example:443/b',
    {
      scheme: 'https',
      host: 'a.example',
      port: 443,
      path: '/',
      requests: once('/', '/b'),
    },
  ],
])('%s', (_, text, list) => {
  expect(read(text)).toEqual(list);
});

test('pages keep the order of the file', () => {
  const paths = ['/2', '/10', '/1', '/__proto__'];
  expect(read(paths.join('\n')).requests?.map(({ target }) => target)).toEqual(paths);
});

test.each<[string, RegExp]>([
  ['# nothing\n\n', /^--urls f has no page: write one a line, such as \/index\.html$/],
  ...['/a 0', '/a 1000000001', '/a 1 2', '/a x'].map((line): [string, RegExp] => [
    line,
    /^--urls f, line 1: write a path or URL, and its weight, a whole number from 1 to 1000000000$/,
  ]),
  ['/a\nindex.html', /^--urls f, line 2: "index\.html" is no URL .*, and no path such as/],
  [
    'http://a/\n/b\nhttp://b/',
    /^--urls f, line 3: http:\/\/b\/ has another scheme, host or port than http:\/\/a\/: all pages have to be one server's$/,
  ],
])('%j is refused', refused(read));

test('at most 100,000 pages are accepted', () => {
  const lines = Array.from({ length: 100_001 }, (_, index) => `/${index}.html ${1 + (index % 5)}`);
  expect(() => read(lines.join('\n'))).toThrow(
    /^--urls f, line 100001: more than 100000 pages are too many/,
  );
}, 120_000);

test('an unreadable list is named', () => {
  expect(() => readPageList('--urls', 'none')).toThrow(/^--urls none: it is not there$/);
  expect(() => readPageList('--urls', '.')).toThrow(/^--urls \.: it is a folder/);
  expect(() => read('/a\n'.repeat(6_000_000))).toThrow(/^--urls f: it has more than 16 MB$/);
});
