// Reading of access logs, HAR files and vegeta targets.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, expect, test, vi } from 'vitest';
import { readHar, readTargets } from './lists.ts';
import type { AskedRequests } from '../../scenario/pages.ts';
import { readLog, type LogOptions } from './log.ts';
import { newFolder, sharedFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';

const folder = sharedFolder();
beforeEach(() => void vi.stubEnv('INIT_CWD', folder));

const read = (text: string, options?: LogOptions) => {
  writeFileSync(join(folder, 'log'), text);
  return readLog(['log'], options);
};
const combined = (request: string, status = 200, before = '1.2.3.4 - - ') =>
  `${before}[10/Oct/2025:13:55:36 +0000] "${request}" ${status} 612 "-" "curl/8 [x] \\"y\\""\n`;
const get = { method: 'GET', target: '/a?b=1', status: 200, weight: 1 };

test.each<[string, string, Partial<AskedRequests>]>([
  [
    'common',
    '::1 - - [10/Oct/2025:13:55:36 +0000] "GET /a?b=1 HTTP/1.0" 200 -',
    { requests: [get] },
  ],
  [
    "Apache's vhost_combined",
    combined('GET /a?b=1 HTTP/1.1', 200, 'www.example.com:80 1.2.3.4 - - '),
    { host: 'www.example.com', requests: [get] },
  ],
  [
    "nginx's JSON",
    '{"time":"x","request":"GET /a?b=1 HTTP/1.1","status":"200","http_host":"a.example:8080"}\n',
    { host: 'a.example', requests: [get] },
  ],
  [
    'JSON of parts',
    '{"request_method":"GET","uri":"/a","args":"b=1","status":200}',
    { requests: [get] },
  ],
  [
    "Caddy's JSON",
    '{"level":"info","ts":1.5,"request":{"method":"GET","host":"c.example","uri":"/a?b=1"},"status":200,"size":5}',
    { host: 'c.example', requests: [get] },
  ],
])('a log in %s', async (_, text, traffic) => {
  expect(await read(text)).toMatchObject(traffic);
});

test('the most frequent come first, with their most frequent status; 304 is 200', async () => {
  const { requests, notes } = await read(
    combined('GET /b HTTP/1.1', 404).repeat(2) +
      combined('GET /b HTTP/1.1') +
      combined('HEAD /a HTTP/1.1', 304).repeat(4) +
      combined('GET /\\xC3\\xA4#x HTTP/1.1').repeat(1),
  );
  expect(requests).toEqual([
    { method: 'HEAD', target: '/a', status: 200, weight: 4 },
    { ...get, target: '/b', status: 404, weight: 3 },
    { ...get, target: '/%C3%A4' },
  ]);
  expect(notes).toEqual(["Of the log's 8 lines, 100 % are in the load: 3 different requests."]);
});

test('skipped lines are counted, with an example without secrets', async () => {
  const { requests, notes } = await read(
    combined('GET / HTTP/1.1').repeat(5) +
      combined('\\x16\\x03\\x01', 400).repeat(2) +
      combined('POST /pay?card=4111 HTTP/1.1') +
      combined('get / HTTP/1.1') +
      combined('CONNECT a:443 HTTP/1.1') +
      combined('GET http://other/ HTTP/1.1') +
      combined('GET /slow HTTP/1.1', 499) +
      'half a li\n' +
      'x'.repeat(2 ** 20),
  );
  expect(requests).toHaveLength(1);
  expect(notes[0]).toBe("Of the log's 14 lines, 36 % are in the load: 1 different request.");
  expect(notes[1]).toMatch(
    /^Left out: 3 no HTTP request, .*; 1 POST, .*\(--methods all\), such as "POST \/pay\?card=….*; 2 for another server, .*; 1 without an answer, .*; 1 of an unknown form, such as "half"; 1 longer than 64 KiB/,
  );
  expect(notes[1]).not.toContain('4111');
});

test('other methods are included on request, without bodies', async () => {
  const { requests } = await read(combined('POST /a HTTP/1.1', 201), { methods: 'all' });
  expect(requests).toEqual([{ ...get, method: 'POST', target: '/a', status: 201 }]);
});

test('uses the most frequent of several hosts', async () => {
  const at = (host: string) => combined('GET / HTTP/1.1', 200, `${host}:80 1.2.3.4 - - `);
  const { host, notes } = await read(at('b.example') + at('a.example').repeat(2));
  expect([host, notes[1]]).toEqual([
    'a.example',
    'Left out: 1 for other hosts than a.example, such as "b.example".',
  ]);
  const other = await read(at('b.example') + at('a.example').repeat(2), { host: 'b.example' });
  expect(other.requests).toEqual([{ ...get, target: '/' }]);
  expect(other.notes[1]).toMatch(/^Left out: 2 for other hosts than b\.example, such as "GET \/ /);
});

test('in a log_format of the config under test', async () => {
  const { requests } = await read(
    'x "a\\"b" 404|GET|/a?b=1|site.example\n' + combined('GET / HTTP/1.1'),
    {
      formats: ['$remote_addr "${http_user_agent}" $status|$request_method|$request_uri|$host'],
      host: 'site.example',
    },
  );
  expect(requests).toEqual([{ ...get, status: 404 }]);
});

test('keeps 10,000 distinct requests, and merges the rest by path', async () => {
  const lines = Array.from({ length: 29_999 }, (_, index) => {
    const target = index < 9999 ? `/${index}` : `/rest${(index + 1) % 2}?${index + 1}`;
    return combined(`GET ${target} HTTP/1.1`).repeat(index < 9999 ? 2 : 1);
  });
  const late = combined('GET /late?x=1 HTTP/1.1').repeat(500);
  const { requests, notes } = await read(lines.join('') + late);
  expect(notes).toEqual([
    "Of the log's 40,498 lines, 100 % are in the load: 10,000 different requests, and rarer ones of 2 paths.",
  ]);
  expect(requests).toHaveLength(10_002);
  expect(requests.find(({ target }) => target === '/late?x=1')?.weight).toBe(500);
  expect(requests.at(-1)).toMatchObject({ target: '/rest1?10001', weight: 10_000 });
});

test.each<[string, string, RegExp, LogOptions?]>([
  ['an empty log', '', /^--log log: it is empty$/],
  [
    'a site of a log without hosts',
    combined('GET / HTTP/1.1'),
    /^--log log: it names no hosts: leave --site out$/,
    { host: 'shop.example' },
  ],
  [
    'another format',
    'a b c\nd e\n',
    /none of 2 lines can be used\. Left out: 2 of an unknown form, such as "a"\. Give a log in the combined/,
  ],
])('%s is refused', async (_, text, message, options) => {
  expect(await refusalOf(read(text, options))).toMatch(message);
});

test('a gzipped log', async () => {
  writeFileSync(join(folder, 'log.gz'), gzipSync(combined('GET /a?b=1 HTTP/1.1')));
  expect((await readLog(['log.gz'])).requests).toEqual([get]);
  expect(await refusalOf(readLog(['none.gz']))).toMatch(/^--log none.gz: it is not there$/);
});

test('a device, a pipe without a writer and a sparse file as a log', async () => {
  const made = newFolder();
  execFileSync('mkfifo', [join(made, 'pipe')]);
  writeFileSync(join(made, 'holes'), '');
  truncateSync(join(made, 'holes'), 1e12);
  const device = 'it is a pipe, socket or device, not a file';
  for (const [file, why] of [
    ['/dev/zero', device],
    [join(made, 'pipe'), device],
    [join(made, 'holes'), /: nearly all of it is a hole .* without holes$/],
  ] as const)
    expect(await refusalOf(readLog([file]))).toMatch(why);
});

test('a line with many brackets, and a format without text between variables', async () => {
  const formats = ['$a$b$c$d$e "$request" $status', '$a\\$b\\$c\\$d\\$e "$request" $status'];
  const text = ['[ ', '\\x', '[a] "', '#'].map((part) => `${part.repeat(16_000)}\n`).join('');
  const hashes = JSON.stringify({ method: 'GET', uri: `/${'#'.repeat(60_000)}\nx`, status: 200 });
  const line = '1.2.3.4 "GET /a?b=1 HTTP/1.1" 200\n';
  const { requests } = await read(`${text}${hashes}\n${line}`, { formats });
  expect(requests).toEqual([{ method: 'GET', target: '/', status: 200, weight: 1 }, get]);
});

test('a malformed line is skipped or partly used', async () => {
  const json = (fields: object) =>
    `${JSON.stringify({ method: 'GET', uri: '/a?b=1', status: 200, ...fields })}\n`;
  const { requests } = await read(json({ uri: '/\ud800' }));
  expect(requests).toMatchObject([{ target: '/%EF%BF%BD' }]);
});

test('an example contains no control or invisible characters', async () => {
  const strange = ['\u202e', '\u200b', '\u00ad', '\u2028', '\u3164', '\u{e0041}', '\ufe0f'];
  const { notes } = await read(`${combined('GET /a?b=1 HTTP/1.1')}"x${strange.join('y')}"\n`);
  expect(notes[1]).toMatch(/such as "x y y y y y y "\.$/);
});

const written = (text: string) => {
  writeFileSync(join(folder, 'f'), text);
  return 'f';
};

const entry = (url: string, request: object = {}, status = 200): object => ({
  request: { method: 'GET', url, headers: [], ...request },
  response: { status },
});
const har = (...entries: (object | null)[]) => written(JSON.stringify({ log: { entries } }));

test('a HAR: the most frequent host, headers, bodies; duplicate requests are merged', () => {
  const names = [':authority', 'accept', 'If-None-Match', 'Connection'];
  const headers = names.map((name) => ({ name, value: 'x' }));
  const { requests, host, notes } = readHar(
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
    { method: 'GET', target: '/x?y=1', headers: { accept: 'x' }, status: 200, weight: 2 },
    { method: 'POST', target: '/api', headers: {}, body: '{}', status: 201, weight: 1 },
    { method: 'PUT', target: '/up', headers: {}, bodyBase64: 'AAE=', status: 200, weight: 1 },
  ]);
  expect(notes[0]).toBe("Of the HAR's 7 entries, 57 % are in the load.");
  expect(notes[1]).toMatch(
    /^Left out: 1 for no http\(s\) URL, .*; 1 without an answer, .*; 1 for other hosts than a\.example/,
  );
  expect(
    readHar(har(entry('http://a/'), entry('http://a/', { method: 'POST' }))).requests,
  ).toHaveLength(1);
  const two = har(entry('http://a/'), entry('http://a/'), entry('http://b/c'));
  expect(readHar(two, 'safe', 'b').requests).toMatchObject([{ target: '/c' }]);
});

test('too many different requests are refused when they are read', () => {
  const urls = Array.from({ length: 100_001 }, (_, index) => `http://a/${index}`);
  const refused = (flag: string, file: string) =>
    `${flag} ${file} has more than 100000 different requests: take a part of it`;
  const entries = har(...urls.map((url) => entry(url)));
  expect(() => readHar(entries)).toThrow(refused('--har', entries));
  const targets = written(urls.map((url) => `GET ${url}\n\n`).join(''));
  expect(() => readTargets(targets)).toThrow(refused('--targets', targets));
  // Others may be repeated as often as they come.
  const same = har(...urls.map(() => entry('http://a/')));
  expect(readHar(same).requests).toMatchObject([{ target: '/', weight: 100_001 }]);
});

test('invalid entries of a HAR are skipped', () => {
  const url = 'https://a.example/x';
  const header = (value: unknown) => ({ headers: [{ name: 'x-a', value }] });
  const { requests, notes } = readHar(
    har(
      entry(url),
      null,
      { request: null },
      entry(url, { headers: [null] }),
      entry(url, header(1)),
      entry(url, { postData: { text: {} } }),
      entry(url, header('a\r\nHost: b')),
      entry(url, header('\u0001')),
      entry(url, header('…')),
      entry(url, { method: 'CONNECT' }),
    ),
    'all',
  );
  expect(requests).toHaveLength(1);
  expect(notes).toEqual([
    "Of the HAR's 10 entries, 10 % are in the load.",
    'Left out: 5 of another form than an entry has, such as "has to be an object"; 3 with a header that HTTP does not allow, such as "GET https://a.example/x"; 1 no HTTP request, such as "CONNECT https://a.example/x".',
  ]);
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
  const x = 'GET http://a.example:81/x\nX-A: 1\nHost: b.example\n';
  const asText = `# all\n${x}\nPOST http://a.example:81/y\n@body\n\n${x}GET http://a.example:81/z\n`;
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

test.runIf(process.getuid?.() === 0)("another user's targets send no file of root's", async () => {
  const file = written('POST http://a.example/\n@body\n');
  writeFileSync(join(folder, 'body'), 'secret', { mode: 0o600 });
  chmodSync(join(folder, 'body'), 0o600);
  expect(readTargets(file).requests).toHaveLength(1);
  const elsewhere = join(newFolder(), 'body');
  writeFileSync(elsewhere, 'secret', { mode: 0o600 });
  const away = written(`POST http://a.example/\n@${elsewhere}\n`);
  expect(await refusalOf((async () => readTargets(away))())).toMatch(/not every user may read it/);
  written('POST http://a.example/\n@body\n');
  // Where others may put another file.
  chmodSync(folder, 0o777);
  expect(await refusalOf((async () => readTargets(file))())).toMatch(/not every user may read it/);
  chmodSync(folder, 0o755);
  chownSync(join(folder, file), 65_533, 65_533);
  expect(await refusalOf((async () => readTargets(file))())).toMatch(
    /^--targets f, line 2: the body body: not every user may read it/,
  );
});

test.each<[string, RegExp]>([
  ['# none\n', /^--targets f has no targets: write one such as GET/],
  ['GET /x', /^--targets f, line 1: write a method and a URL/],
  ['GET http://a/\n@none', /^--targets f, line 2: the body none: it is not there/],
  [
    'GET http://a/\n\nGET http://b/',
    /^--targets f, line 3: http:\/\/b is another server than http:\/\/a/,
  ],
  ['GET http://a/\nX-A: a\rb', /^--targets f, line 2: the value of X-A has a line break/],
  [
    '{"url":"http://a/","header":{"X-A":["a\\nb"]}}',
    /^--targets f, line 1: the value of X-A has a line break/,
  ],
  ['get http://a/', /^--targets f, line 1: "get" has to be a method/],
  ['{"method":1}', /^--targets f, line 1: write an object with method, url/],
  ['{', /^--targets f, line 1: .*JSON/],
])('the targets %j are refused', async (text, message) => {
  expect(await refusalOf((async () => readTargets(written(text)))())).toMatch(message);
});
