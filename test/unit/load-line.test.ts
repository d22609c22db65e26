import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { h2load, vegeta, wrk } from '../../lib/scenario/index.ts';
import { fitLoad } from '../../lib/scenario/load.ts';
import { readLoadLine, type LoadLine } from '../../lib/scenario/load/generators.ts';
import { shownCommand } from '../../lib/secrets.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refused } from '../fixtures/refused.ts';

const folder = sharedFolder();
writeFileSync(join(folder, 'body.json'), '{"a":1}');
writeFileSync(join(folder, 'binary'), Buffer.from([0xff, 0xfe, 0x00]));
writeFileSync(join(folder, 'empty'), '');
beforeEach(() => void vi.stubEnv('INIT_CWD', folder));

const cipher = 'ECDHE-RSA-AES128-GCM-SHA256';

function loadOfLine(
  line: string,
  scheme?: 'http' | 'https',
): Omit<LoadLine, 'over'> & ReturnType<LoadLine['over']> {
  const { over, ...target } = readLoadLine(line);
  return { ...target, ...over(scheme) };
}

test.each([
  ['  /usr/local/bin/wrk   -t4\t-c100 ', 'wrk -t4 -c100'],
  ['wrk -t4 -c8 \\\n  -d 5', 'wrk -t4 -c8 -d 5'],
])('the line: "%s" is shown as %s', (line, command) => {
  expect(loadOfLine(line).load.command).toBe(command);
});

test('the command line is quoted for a shell', () => {
  const line = String.raw`wrk -H 'A: $HOME \ "x"' -H "B: 'y' \$5 \n" -H "C: "'d'e -H "D: cost$" 'http://localhost/?a=1&b=2'`;
  const headers = { A: String.raw`$HOME \ "x"`, B: String.raw`'y' $5 \n`, C: 'de', D: 'cost$' };
  const load = { headers, command: line };
  expect(loadOfLine(line)).toMatchObject({ load, url: { path: '/?a=1&b=2' } });
  expect(Object.keys(loadOfLine('wrk -H __proto__:x').load.headers ?? {})).toEqual(['__proto__']);
});

test.each([
  ['', /^give the command line of a load generator, such as "wrk -c 100 -d 10": wrk, h2load, /],
  ['wrk -c "$(nproc)"', /^the load: \$\( needs a shell/],
  ['wrk -s post.lua http://a/', /^wrk: -s cannot be honoured here: no script is run\. Several /],
  ['wrk2 -c 100 -d 10', /^wrk2: give it the requests\/s .* -R 1000$/],
  ['wrk http://a/ http://b/', /^wrk: "http:\/\/a\/" and "http:\/\/b\/": one URL at a time; /],
  ['wrk ftp://a/', /^wrk: "ftp:\/\/a\/" is no URL/],
  ['wrk http://me:secret@a/', /^wrk: a user name in a URL cannot be honoured here/],
  ['vegeta report', /^vegeta: only "vegeta attack" makes load/],
  ['vegeta attack http://a/ -duration=1s', /^vegeta: leave "http:\/\/a\/" out: the URL is --url$/],
  ['vegeta attack -body=a -duration=1s', /-body cannot be honoured here: all requests are GET; /],
  ['h2load -d binary', /^h2load -d binary is not text in UTF-8/],
  ['h2load --groups X25519:X448', /^h2load --groups X448 cannot .*; these can: X25519 P-256 /],
  ['h2load -H "TE: trailers"', /^h2load -H "TE: trailers": TE is not allowed in HTTP\/2 and 3$/],
  ['h2load --h3 http://localhost/', /^h2load: HTTP\/3 goes with https:/],
])('the line: "%s" is refused in one line', refused(loadOfLine));

test.each([
  ['wrk -t2 -c100 -d30s -R2k -L', { connections: 100, rate: 2000, requests: 60_000 }],
  ['wrk2 -t2 -c100 -d30s -R2k --latency', { connections: 100, rate: 2000, requests: 60_000 }],
  ['h2load -c 10 --rps 20.5 -D 4', { connections: 10, rate: 205, requests: 820 }],
  ['ab -t 30 -s 5 -c 4 -klq', { durationSeconds: 30, timeoutSeconds: 5, keepAlive: true }],
])('"%s" has a number or a duration: %j', (line, expected) => {
  const neither = { durationSeconds: undefined, requests: undefined };
  const { load } = loadOfLine(`${line} http://localhost/`);
  expect({ ...neither, ...load }).toMatchObject({ ...neither, ...expected });
});

test.each([
  ['wrk http://localhost:8080/a%20b?q=%2F', { scheme: 'http', port: 8080, path: '/a%20b?q=%2F' }],
  ['wrk http://[::80]/a:80/', { scheme: 'http', path: '/a:80/' }],
  ['wrk "http://a.localhost/ä?x y"', { scheme: 'http', path: '/%C3%A4?x%20y' }],
  ['ab -n 1 www.example.com/', { scheme: 'http', host: 'www.example.com', path: '/' }],
])('the URL of "%s" is %o', (line, url) => {
  const parsed = loadOfLine(line);
  expect(parsed.url).toEqual(url);
  expect(parsed.host).toBe('host' in url ? url.host : undefined);
});

test('the URL is optional; a header overrides the host', () => {
  expect(loadOfLine('wrk -c 2')).not.toHaveProperty('url');
  const both = loadOfLine('wrk -c 2 -H "host: b.example" -H A:b http://a.example/');
  expect(both).toMatchObject({ host: 'b.example', load: { headers: { A: 'b' } } });
});

test.each<[string, 'http' | 'https' | undefined, object]>([
  ['h2load -n 1', undefined, { protocol: 'h2' }],
  ['h2load -n 1 -p http/1.1 http://a/', undefined, { protocol: 'http/1.1' }],
  ['h2load -n 1 -p http/1.1 https://a/', undefined, { protocol: 'h2' }],
  ['vegeta attack -duration=1s', 'http', { protocol: 'http/1.1', connections: 50, requests: 50 }],
  ['vegeta attack -duration=1s -h2c', 'http', { protocol: 'h2c', connections: 1 }],
  ['vegeta attack -duration=1s -http2=false', 'https', { protocol: 'http/1.1' }],
])('the URL determines the protocol with "%s" (server: %s)', (line, scheme, load) => {
  expect(loadOfLine(line, scheme).load).toMatchObject(load);
});

test.each([
  ['ab -n 1 -i http://localhost/', { method: 'HEAD' }],
  [
    'ab -n 1 -p body.json -T application/json http://localhost/',
    { method: 'POST', body: '{"a":1}', headers: { 'Content-Type': 'application/json' } },
  ],
  [
    'ab -n 1 -u body.json -H "content-type: a/b" http://localhost/',
    { method: 'PUT', body: '{"a":1}', headers: { 'content-type': 'a/b' } },
  ],
  [
    'ab -n 1 -m PATCH -p empty http://localhost/',
    { method: 'PATCH', body: '', headers: { 'Content-Type': 'text/plain' } },
  ],
  [
    'ab -n 1 -C a=1 -C b=2 -A me:secret http://localhost/',
    { headers: { Cookie: 'a=1; b=2', Authorization: 'Basic bWU6c2VjcmV0' } },
  ],
  [
    'h2load -n 1 -d body.json -H "A: b" https://localhost/',
    { method: 'POST', body: '{"a":1}', headers: { A: 'b' } },
  ],
])('the request of "%s" is %o', (line, request) => {
  const { load } = loadOfLine(line);
  expect(load).toMatchObject(request);
  expect(fitLoad(load, { generatorCores: 1, exact: false, quick: true })).toMatchObject(request);
});

test.each([
  ['wrk -c 2 -t 2 -d 5S -T 3s -L', wrk('-c 2 -t 2 -d 5s --timeout 3s --latency')],
  [
    `h2load -n 10 --ciphers=${cipher} --groups=P-256:X25519 https://a/`,
    h2load('-n 10', { tls: { ciphers: [cipher], curves: ['P-256', 'X25519'] } }),
  ],
  [
    'vegeta attack -duration=1s -workers=5 -http2=false -connections=9 -output=a.bin',
    vegeta('-duration=1s -http2=false'),
  ],
])('request flags: "%s" is supported', (line, { command: _, ...profile }) => {
  const { command: __, ...load } = loadOfLine(line).load;
  expect(load).toEqual(profile);
});

test.each([
  [
    "ab -kAme:hunter2 -C sid=hunter2 -n 5 -H 'X: y' http://localhost/",
    "ab -kA*** -C *** -n 5 -H 'X: y' http://localhost/",
  ],
  [
    "wrk -H 'X-Token: hunter2' 'http://localhost/a?author=b&access_token=hunter2&key=hunter2'",
    "wrk -H 'X-Token: ***' 'http://localhost/a?author=b&access_token=***&key=***'",
  ],
  [
    "wrk -H'Cookie: hunter2' --header='X-Api-Key: hunter2' --header \"Accept: a\"",
    "wrk '-HCookie: ***' '--header=X-Api-Key: ***' --header \"Accept: a\"",
  ],
  [
    'vegeta attack -rate=1 -duration=1s -header "Authorization: hunter2" -header=\'X-Token: hunter2\'',
    "vegeta attack -rate=1 -duration=1s -header 'Authorization: ***' '-header=X-Token: ***'",
  ],
])('credentials are sent and not shown: %s', (line, shown) => {
  const { command, headers } = loadOfLine(line).load;
  expect(command).toBe(shown);
  expect(Object.values(headers ?? {}).join()).toMatch(/hunter2|bWU6aHVudGVyMg==/);
});

test('headers may come from a file, which is read once', async () => {
  const folder = await ownFiles({ headers: 'X-Token: hunter2\r\n\nAccept: a\n', bad: 'hunter2\n' });
  const line = `wrk -H @${folder}/headers -H 'Accept: b'`;
  const { command, headers } = loadOfLine(line).load;
  expect(command).toBe(`wrk -H @${folder}/headers -H 'Accept: b'`);
  expect(headers).toEqual({ 'X-Token': 'hunter2', Accept: 'a, b' });
  rmSync(`${folder}/headers`);
  expect(loadOfLine(line).load.headers).toEqual(headers);
  expect(() => loadOfLine(`wrk -H @${folder}/bad`)).toThrow('wrk -H "***" has to be a header');
  expect(() => loadOfLine(`wrk -H @${folder}/none`)).toThrow('none: it is not there');
});

test.each([
  ['node s.js --token=hunter2 --port $PORT', 'node s.js --token=*** --port $PORT'],
  ['env DB_PASSWORD=hunter2 API_KEY="hunter2 x" node s', 'env DB_PASSWORD=*** API_KEY=*** node s'],
  ['x --password hunter2 -q --api-key -v', 'x --password *** -q --api-key -v'],
  ["sh -c 'PW=hunter2 x redis://me:hunter2@h/'", "sh -c 'PW=*** x redis://***@h/'"],
  [
    "x -H 'Authorization: Bearer hunter2' http://a/?key=hunter2",
    "x -H 'Authorization: ***' http://a/?key=***",
  ],
])('a command is shown without credentials: %s', (command, shown) => {
  expect(shownCommand(command)).toBe(shown);
});
