// What is read of a HAR, and of vegeta's targets.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { readHar, readTargets } from '../../lib/traffic/lists.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const folder = sharedFolder();
beforeEach(() => void vi.stubEnv('INIT_CWD', folder));
const written = (text: string) => {
  writeFileSync(join(folder, 'f'), text);
  return 'f';
};

const entry = (url: string, request: object = {}, status = 200): object => ({
  request: { method: 'GET', url, headers: [], ...request },
  response: { status },
});
const har = (...entries: object[]) => written(JSON.stringify({ log: { entries } }));

test('a HAR: the most frequent host, headers that matter, bodies, equal requests once', () => {
  const headers = [
    { name: ':authority', value: 'a.example' },
    { name: 'accept', value: '*/*' },
    { name: 'If-None-Match', value: 'x' },
    { name: 'Connection', value: 'keep-alive' },
  ];
  const { requests, host, said } = readHar(
    har(
      entry('https://a.example/x?y=1#z', { headers }, 304),
      entry('https://a.example/x?y=1', { headers }),
      entry('https://cdn.example/logo.png'),
      entry('https://a.example/api', { method: 'POST', postData: { text: '{}' } }, 201),
      entry('https://a.example/up', {
        method: 'PUT',
        postData: { text: 'AAE=', encoding: 'base64' },
      }),
      entry('data:text/plain,x'),
      entry('https://a.example/blocked', {}, 0),
    ),
    'all',
  );
  expect(host).toBe('a.example');
  expect(requests).toEqual([
    { method: 'GET', target: '/x?y=1', headers: { accept: '*/*' }, status: 200, weight: 2 },
    { method: 'POST', target: '/api', headers: {}, body: '{}', status: 201, weight: 1 },
    { method: 'PUT', target: '/up', headers: {}, bodyBase64: 'AAE=', status: 200, weight: 1 },
  ]);
  expect(said[0]).toBe("Of the HAR's 7 entries, 57 % are in the load.");
  expect(said[1]).toMatch(
    /^Left out: 1 for no http\(s\) URL, .*; 1 without an answer, .*; 1 for other hosts than a\.example/,
  );
  expect(
    readHar(har(entry('http://a/'), entry('http://a/', { method: 'POST' }))).requests,
  ).toHaveLength(1);
  const two = har(entry('http://a/'), entry('http://a/'), entry('http://b/c'));
  expect(readHar(two, 'safe', 'b').requests).toMatchObject([{ target: '/c' }]);
});

test.each<[string, RegExp]>([
  ['{', /^--har f: .*JSON/],
  ['{"log":{"entries":[]}}', /^--har f has no requests \(log\.entries\)/],
  [
    JSON.stringify({ log: { entries: [entry('about:blank')] } }),
    /^--har f: none of its requests can be used\. Left out: 1 for no/,
  ],
])('the HAR %s is refused', async (text, message) => {
  expect(await refusalOf((async () => readHar(written(text)))())).toMatch(message);
});

test("vegeta's targets, as text and as JSON", () => {
  writeFileSync(join(folder, 'body'), Buffer.from([0, 1]));
  const asText = `# all\nGET http://a.example:81/x\nX-A: 1\nHost: b.example\n\nPOST http://a.example:81/y\n@body\n\nGET http://a.example:81/x\nX-A: 1\nHost: b.example\nGET http://a.example:81/z\n`;
  const { requests, host } = readTargets(written(asText));
  expect(host).toBe('a.example:81');
  expect(requests).toEqual([
    { method: 'GET', target: '/x', headers: { 'X-A': '1', Host: 'b.example' }, weight: 2 },
    { method: 'POST', target: '/y', headers: {}, bodyBase64: 'AAE=', weight: 1 },
    { method: 'GET', target: '/z', headers: {}, weight: 1 },
  ]);
  const json =
    '{"method":"PUT","url":"http://a/x","body":"AAE=","header":{"X-A":["1","2"]}}\n{"url":"http://a/"}';
  expect(readTargets(written(json)).requests).toEqual([
    { method: 'PUT', target: '/x', headers: { 'X-A': '1, 2' }, bodyBase64: 'AAE=', weight: 1 },
    { method: 'GET', target: '/', headers: {}, weight: 1 },
  ]);
});

test.each<[string, RegExp]>([
  ['# none\n', /^--targets f has no targets: write one such as GET/],
  ['GET /x', /^--targets f, line 1: write a method and a URL/],
  ['GET http://a/\n@none', /^--targets f, line 2: the body none: it is not there/],
  [
    'GET http://a/\n\nGET http://b/',
    /^--targets f, line 3: http:\/\/b is another server than http:\/\/a/,
  ],
  ['get http://a/', /^--targets f, line 1: "get" has to be a method/],
  ['{"method":1}', /^--targets f, line 1: write an object with method, url/],
  ['{', /^--targets f, line 1: .*JSON/],
])('the targets %j are refused', async (text, message) => {
  expect(await refusalOf((async () => readTargets(written(text)))())).toMatch(message);
});
