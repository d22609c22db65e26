// The first request to a started server.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { bundledForNode } from '../../bin/bundle.mjs';
import type { Protocol } from '../../lib/scenario/model.ts';
import { waitUntilReady } from '../../lib/servers/ready.ts';
import type { ReadyCheck } from '../../lib/servers/server.ts';
import { run } from '../../lib/process.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { closedPort, listening } from '../fixtures/listening.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

/** Other tests use ports of 127.0.0.1, so these tests use a different address. */
const quietAddress = '127.86.73.12';
const page = { docroot: 'nginx', path: '/', bodyBytes: 5 };
const protocols = ['http/1.1', 'h2c'] as const;
const never = new AbortController().signal;

const answering = (listener: RequestListener, protocol: Protocol = 'http/1.1'): Server =>
  protocol === 'h2c' ? createHttp2Server(listener as never) : createServer(listener);
const always =
  (status: number, body = '', headers = {}): RequestListener =>
  (_, response) =>
    response.writeHead(status, headers).end(body);
/** Answers each connection after the first data. The client may reset the connection at any time. */
const tcpServer = (answer: (socket: Socket) => void = () => undefined) =>
  createTcpServer((socket) =>
    socket.on('error', () => socket.destroy()).once('data', () => answer(socket)),
  );
const writing = (bytes: Buffer) => tcpServer((socket) => socket.write(bytes));

async function ready(
  server: Server,
  check: Partial<ReadyCheck> = {},
  { limitMs = 10_000, signal = never } = {},
) {
  const origin = `http://127.0.0.1:${await listening(server)}`;
  const load = { protocol: 'http/1.1' as const };
  return waitUntilReady({ origin, page, load, ...check }, signal, limitMs);
}

const refusal = async (...given: Parameters<typeof ready>) =>
  (await refusalOf(ready(...given))).replace(/http:\/\/127\.0\.0\.1:\d+/, '');

it('says what else to ask for only where the server answered', async () => {
  const hosts = ['shop.example'];
  const refused = { origin: `http://${quietAddress}:${await closedPort(quietAddress)}`, page };
  for (const how of [{}, { isThere: true } as const]) {
    const check = { ...refused, hosts, load: { protocol: protocols[0] }, ...how };
    const text = await refusalOf(waitUntilReady(check, never, 1000));
    expect(text).toContain('ECONNREFUSED');
    expect(text).not.toContain('shop.example');
  }
  expect(await refusal(tcpServer(), { hosts }, { limitMs: 1500 })).toMatch(/within 1\.5 s$/);
  expect(
    await refusal(
      tcpServer((socket) => socket.end()),
      { hosts },
      { limitMs: 1000 },
    ),
  ).toMatch(/ends the connection without an answer \(it serves shop\.example: --url /);
});

it('retries refused connections until the server is there', async () => {
  const port = await closedPort(quietAddress);
  const load = { protocol: protocols[0] };
  const check = { origin: `http://${quietAddress}:${port}`, page, load };
  expect(await refusalOf(waitUntilReady(check, never, 500))).toMatch(
    /did not answer over http\/1\.1 within 0\.5 s: connect ECONNREFUSED/,
  );
  let asked = 0;
  const server = answering((_, response) => {
    asked++;
    response.end('12345');
  });
  const started = delay(100).then(() => listening(server, port, quietAddress));
  await Promise.all([waitUntilReady(check, never), started]);
  expect(asked).toBe(1);
});

describe.each(protocols)('over %s', (protocol) => {
  const load = { protocol };

  it('sends the request of the load', async () => {
    const echo: RequestListener = ({ method, url, headers }, response) =>
      response.end(
        `${method} ${url} ${headers.host ?? headers[':authority']} ${headers['x-key'] ?? ''}`,
      );
    const asked = async (check: Partial<ReadyCheck>) =>
      (await ready(answering(echo, protocol), { load, ...check })).bytes;
    expect(await asked({ page: { path: '/a?b=c', host: 'example.org:81' } })).toBe(
      'GET /a?b=c example.org:81 '.length,
    );
    const headers = { Host: 'other.org', 'X-Key': 'k' };
    const post = { ...load, method: 'POST', headers, body: '1' };
    expect(await asked({ page: { path: '/' }, load: post })).toBe('POST / other.org k'.length);
  });

  it('closes the connections', async () => {
    const server = answering(always(200, '12345'), protocol);
    const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
    await ready(server, { load });
    await closed;
  });

  it("stops with the signal's reason", async () => {
    const controller = new AbortController();
    const waiting = ready(tcpServer(), { load }, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });

  it.each<[string, Server, RegExp]>([
    ['says nothing', tcpServer(), /^\/ did not answer over \S+ within 1\.5 s$/],
    [
      'closes the connection',
      tcpServer((socket) => socket.end()),
      /did not answer over \S+ within 1\.5 s: (it ends the connection without an answer|the connection was closed)$/,
    ],
    [
      'sends a body without an end',
      answering((_, response) => {
        const timer = setInterval(() => response.write('123'), 20);
        response.on('close', () => clearInterval(timer));
      }, protocol),
      /^\/ answers with a body that did not end within 1\.5 s: give a page that ends$/,
    ],
  ])('gives up after the limit on a server that %s', async (_, server, message) => {
    expect(await refusal(server, { load }, { limitMs: 1500 })).toMatch(message);
  });
});

it.each([
  ['Connection: close', /^\/ answers with a body that did not end within 1\.5 s: give a page that/],
  ['Content-Length: 300000', /^\/ answers with 300,000 bytes, of which \d{2,3} came within 1\.5 s/],
])('does not accept part of a body with %s as the page', async (header, message) => {
  const server = tcpServer((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n`);
    const timer = setInterval(() => socket.write('123'), 20);
    socket.on('close', () => clearInterval(timer));
  });
  expect(await refusal(server, { anyLength: true }, { limitMs: 1500 })).toMatch(message);
});

it.each<[string, string, RegExp]>([
  ['X: a\0b\r\nContent-Length: 1', '1', /\/ answers with something else than HTTP\/1\.1 .*header/],
  [`X: ${'a'.repeat(70_000)}`, '', /\/ answers with headers of more than 64 KiB$/],
  ['Content-Length: 9', '1', /\/ did not answer .* within 2 s: its answer breaks off$/],
])('a broken response is reported with a reason (%#)', async (headers, body, message) => {
  const server = tcpServer((socket) => socket.end(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n${body}`));
  expect(await refusal(server, {}, { limitMs: 2000 })).toMatch(message);
});

describe.each(protocols)('of several pages over %s', (protocol) => {
  // The first page has 10 bytes and a weight of 34, the other 166 have 20 bytes. They are requested in two batches.
  const requests = Array.from({ length: 167 }, (_, index) => ({
    target: `/${index}`,
    weight: index === 0 ? 34 : 1,
  }));
  const right: RequestListener = ({ url }, response) =>
    response.end('x'.repeat(url === '/0' ? 10 : 20));
  const serving = (listener: RequestListener, bodyBytes?: number) => {
    const several = { docroot: 'nginx', path: '/0', requests };
    const page = bodyBytes === undefined ? several : { ...several, bodyBytes };
    return ready(answering(listener, protocol), { page, load: { protocol }, allPages: true });
  };

  it('requests each page, and returns the weighted mean length', async () => {
    expect(await serving(right, 18)).toMatchObject({
      bytes: expect.closeTo(18.3, 9),
      sdBytes: expect.closeTo(10 * Math.sqrt(0.17 * 0.83), 9),
    });
    expect(await serving(always(200, '12345'))).toMatchObject({ bytes: 5, sdBytes: 0 });
    await expect(serving(right, 10)).rejects.toThrow(
      /have 18\.30 bytes on average, by their weights, and bodyBytes says 10: /,
    );
  });

  it('names the pages with a different status, or without a response', async () => {
    const wrong: RequestListener = (request, response) => {
      if (!/^\/(7|8|77|166)$/.test(request.url ?? '')) right(request, response as never);
      else if (request.url === '/166') request.socket.destroy();
      else response.writeHead(request.url === '/8' ? 204 : 404).end();
    };
    await expect(serving(wrong)).rejects.toThrow(
      ' not answered as expected: /7 (status 404), /8 (status 204), /77 (status 404) and 1 more:',
    );
  });

  it('requests only the first page by default', async () => {
    const server = answering(right, protocol);
    const check = { page: { path: '/0', requests }, load: { protocol } };
    const { bytes } = await ready(server, check);
    expect(bytes).toBe(10);
  });
});

it.each([
  [403, '12345', 'status 403 instead of 200'],
  [200, '123456', '6 bytes instead of 5: '],
])('refuses status %i with "%s" from a shipped config', async (status, body, message) => {
  expect(await refusal(answering(always(status, body)))).toContain(` answers with ${message}`);
});

it.each([
  [undefined, 'log'],
  ['HAR', 'HAR'],
])('names what the requests were recorded in (%s)', async (record, named) => {
  const requests = [
    { target: '/', status: 200 },
    { target: '/gone', status: 404 },
  ];
  const check = {
    page: { path: '/', requests },
    allPages: true,
    anyLength: true,
    record,
  } as const;
  expect(await refusal(answering(always(200, '12345')), check)).toContain(
    `with another status than the ${named}: /gone (200, not 404): have it serve what the ${named} has, take a ${named} of this site,`,
  );
});

it('accepts any length without docroot, or if the length may change', async () => {
  const server = answering(always(200, '1234567'));
  expect(await ready(server, { page: { path: '/' } })).toMatchObject({
    status: 200,
    bytes: 7,
    hash: expect.stringMatching(/^[0-9a-f]{40}$/),
  });
  expect((await ready(answering(always(200, '1')), { anyLength: true })).bytes).toBe(1);
});

const b = { path: '/x', host: 'b.org' };
const usual = '200 (--url; in a scenario page.path), or expect this one (--status 404; in ';

it.each<[number, Partial<ReadyCheck>, string]>([
  [504, {}, 'status 504: its backend does not answer: start it, since bakeoff does not'],
  [503, {}, 'status 503, as haproxy and Apache do if their backend does not answer: give a page'],
  [
    502,
    { user: 'some user' },
    'does not, or, at "Permission denied", open its socket to all users (chmod o+rw; php-fpm: listen.mode = 0666), since',
  ],
  [403, { user: 'some user' }, 'status 403: it runs as some user here: open '],
  [
    301,
    { page: b },
    'to https://example.org/: give a page that it answers with 200, such as --url https://example.org/ (in a scenario page.path), or',
  ],
  [
    404,
    { hosts: ['_', '*.b.org', '~^c', '', 'a.org:8080', 'd.org'] },
    'status 404: give a page that it answers with 200 (it serves a.org: --url http://a.org/x; ',
  ],
  [404, { hosts: ['a.org'], page: b }, usual],
])('a wrong status from a config without docroot: %i for %j', async (code, check, message) => {
  const server = answering(
    always(code, '', code === 301 ? { location: 'https://example.org/' } : {}),
  );
  expect(await refusal(server, { page: { path: '/x' }, ...check })).toContain(message);
});

it.each([
  ['/en/?a=1', 'such as --url /en/?a=1 ('],
  ['', 'give a page that it answers with 200 (--url;'],
])('a redirect on the same server to "%s" is answered with its path', async (location, message) => {
  const server = answering(always(302, '', location === '' ? {} : { location }));
  expect(await refusal(server, { page: { path: '/x' } })).toContain(message);
});

const frame = (type: number, flags: number, stream: number, ...payload: number[]): Buffer =>
  Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream, ...payload]);
const settings = frame(4, 0, 0);

describe('a server of another protocol', () => {
  it.each<[string, Protocol, Server, string]>([
    ['HTTP/1.1', 'h2c', answering(always(200)), 'does not speak HTTP/2 without TLS (h2c)'],
    ['HTTP/2', 'http/1.1', writing(settings), 'does not answer in HTTP/1.1: it may expect TLS, '],
  ])('%s is refused at once', async (_, protocol, server, message) => {
    expect(await refusal(server, { load: { protocol } })).toContain(`/ ${message}`);
  });

  it('with broken HPACK or settings is a one-line error, even if nothing else is under way', async () => {
    const hpack = frame(1, 5, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    const broken = [Buffer.concat([settings, hpack]), frame(4, 0, 0, 1)];
    const ports = await Promise.all(broken.map((bytes) => listening(writing(bytes))));
    const script = `import { waitUntilReady } from ${JSON.stringify(path.join(projectRoot, 'lib/servers/ready.ts'))};
      process.exitCode = 7;
      for (const port of [${ports.join()}])
        await waitUntilReady({ origin: 'http://127.0.0.1:' + port, page: { path: '/' }, load: { protocol: 'h2c' } }, new AbortController().signal, 1000).catch((error) => console.log(error.message));
      process.exitCode = 1;`;
    const source = path.join(await ownFiles({ 'ask.ts': script }), 'ask.ts');
    const args = ['--input-type=module', '-e', await bundledForNode(pathToFileURL(source), {})];
    const { stdout, code } = await run({ command: process.execPath, args });
    expect(stdout).toMatch(/^(.*(does not speak HTTP\/2|did not answer over h2c).*\n){2}$/);
    expect(code).toBe(1);
  });

  it.each([
    ['http', 'h2', 'the load is h2, which needs TLS, and http://127.0.0.1:1/ has none: choose'],
    ['https', 'h2c', 'the load is h2c, which has no TLS, and https://127.0.0.1:1/ has it: choose'],
  ] as const)('%s is refused for %s before a request', async (scheme, protocol, message) => {
    const check = { origin: `${scheme}://127.0.0.1:1`, page, load: { protocol } };
    expect(await refusalOf(waitUntilReady(check, never))).toContain(message);
  });
});
