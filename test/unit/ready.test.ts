import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createTcpServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { freePort, listensOn, portProblem } from '../../lib/servers/ports.ts';
import { waitUntilReady, waitUntilServing } from '../../lib/servers/ready.ts';
import { run } from '../../lib/setup/run.ts';
import type { Answer, Protocol } from '../../lib/servers/server.ts';
import { closedPort, listening } from '../fixtures/listening.ts';

/** An address of our own in 127.0.0.0/8: the ports of 127.0.0.1 come and go with other tests' connections. */
const quietAddress = '127.86.73.12';

const answering = (listener: RequestListener): Server => createServer(listener);
const never = new AbortController().signal;
const page = { docroot: 'nginx', path: '/', bodyBytes: 5 };

/** Asks what is at that address of this machine, over HTTP/1.1 unless said. */
const ready = (
  address: string,
  { protocol = 'http/1.1' as Protocol, signal = never, limitMs = 10_000 } = {},
): Promise<number> =>
  waitUntilReady({ origin: `http://${address}`, page, protocol }, signal, limitMs).then(
    ({ bytes }) => bytes,
  );

it('waits until the server is there', async () => {
  const port = await closedPort(quietAddress);
  const waiting = ready(`${quietAddress}:${port}`);
  let asked = 0;
  const server = answering((_, response) => {
    asked++;
    response.end('12345');
  });
  // Refused connections come first.
  const started = delay(100).then(() => listening(server, port, quietAddress));
  await Promise.all([waiting, started]);
  expect(asked).toBe(1);
});

it('tells a wrong status and a wrong length at once', async () => {
  const wrong = async (listener: RequestListener): Promise<number> =>
    ready(`127.0.0.1:${await listening(answering(listener))}`);
  await expect(
    wrong((_, response) => {
      response.statusCode = 403;
      response.end('12345');
    }),
  ).rejects.toThrow(/answers with status 403 instead of 200$/);
  await expect(
    wrong((_, response) => {
      response.end('123456');
    }),
  ).rejects.toThrow(/answers with 6 bytes instead of 5: /);
  await expect(
    wrong((_, response) => {
      response.end();
    }),
  ).rejects.toThrow(/answers with 0 bytes instead of 5: /);
});

it.each(['http/1.1', 'h2c'] as const)('asks as the load does, over %s', async (protocol) => {
  // Answers with what came: a page that takes POST only, from one host, with a header.
  const echo: RequestListener = (asked, response) => {
    const right =
      asked.method === 'POST' &&
      (asked.headers.host ?? asked.headers[':authority']) === 'example.org' &&
      asked.headers['x-key'] === 'k';
    if (!right) response.statusCode = 405;
    asked.pipe(response);
  };
  const server = protocol === 'h2c' ? createHttp2Server(echo as never) : answering(echo);
  const origin = `http://127.0.0.1:${await listening(server)}`;
  const asking = (request?: {
    method?: string;
    headers?: Record<string, string>;
    body?: string;
  }): Promise<number> =>
    waitUntilReady({ origin, page: { path: '/' }, protocol, request }, never).then(
      ({ bytes }) => bytes,
    );
  expect(
    await asking({
      method: 'POST',
      headers: { Host: 'example.org', 'X-Key': 'k' },
      body: '1234567',
    }),
  ).toBe(7);
  await expect(asking()).rejects.toThrow('status 405');
});

describe.each(['http/1.1', 'h2c'] as const)('of several pages over %s', (protocol) => {
  const weights = Object.fromEntries(
    Array.from({ length: 250 }, (_, index) => [`/${index}`, index === 0 ? 51 : 1]),
  );
  const serving = async (listener: RequestListener, more: object = {}): Promise<Answer> => {
    const server = protocol === 'h2c' ? createHttp2Server(listener as never) : answering(listener);
    const origin = `http://127.0.0.1:${await listening(server)}`;
    return waitUntilServing(
      { origin, page: { path: '/0', weights }, protocol, allPages: true, ...more },
      never,
    );
  };
  // The first one, with a weight of 51, has 10 bytes, and the 249 others have 20.
  const answer: RequestListener = ({ url }, response) => {
    response.end('x'.repeat(url === '/0' ? 10 : 20));
  };

  it('asks for each, and knows what their bodies have on average', async () => {
    const { bytes, sdBytes } = await serving(answer);
    expect(bytes).toBeCloseTo(18.3, 9);
    expect(sdBytes).toBeCloseTo(10 * Math.sqrt(0.17 * 0.83), 9);
    expect(
      await serving((_, response) => {
        response.end('12345');
      }),
    ).toMatchObject({ bytes: 5, sdBytes: 0 });
  });

  it('takes the average that is to be measured, and no other', async () => {
    const asked = (bodyBytes: number): object => ({
      page: { docroot: 'nginx', path: '/0', weights, bodyBytes },
    });
    expect(await serving(answer, asked(18))).toMatchObject({ bytes: expect.closeTo(18.3, 9) });
    await expect(serving(answer, asked(10))).rejects.toThrow(
      /have 18\.30 bytes on average, by their weights, and bodyBytes says 10: /,
    );
  });

  it('names those that are not served', async () => {
    const missing: RequestListener = (request, response) => {
      if (/^\/(7|8|77|249)$/.test(request.url ?? '')) response.statusCode = 404;
      answer(request, response as never);
    };
    await expect(serving(missing)).rejects.toThrow(
      /^of 250 pages these are not served: \/7 \(status 404\), \/8 \(status 404\), \/77 \(status 404\) and 1 more: take them out/,
    );
    await expect(
      serving((request, response) => {
        if (request.url === '/9') request.socket.destroy();
        else answer(request, response);
      }),
    ).rejects.toThrow(/^of 250 pages these are not served: \/9 \(/);
  });

  it('takes no other status of a page than of the first one', async () => {
    const empty: RequestListener = (request, response) => {
      if (request.url === '/9') response.writeHead(204).end();
      else answer(request, response as never);
    };
    await expect(serving(empty)).rejects.toThrow(
      /^of 250 pages these are not served: \/9 \(status 204\): /,
    );
  });

  it('asks for the first one only unless it is to ask for all', async () => {
    const asked: (string | undefined)[] = [];
    expect(
      await serving(
        (request, response) => {
          asked.push(request.url);
          answer(request, response);
        },
        { allPages: false },
      ),
    ).toMatchObject({ bytes: 10 });
    expect(asked).toEqual(['/0']);
  });
});

describe("of a config of one's own", () => {
  const ask = async (
    listener: RequestListener,
    own: { path: string; host?: string },
    protocol: Protocol = 'http/1.1',
  ): Promise<number> => {
    const server = protocol === 'h2c' ? createHttp2Server(listener as never) : answering(listener);
    return (
      await waitUntilReady(
        { origin: `http://127.0.0.1:${await listening(server)}`, page: own, protocol },
        never,
      )
    ).bytes;
  };

  it('takes any length, and says which', async () => {
    expect(
      await ask(
        (_, response) => {
          response.end('1234567');
        },
        { path: '/' },
      ),
    ).toBe(7);
    expect(
      await ask(
        (_, response) => {
          response.end();
        },
        { path: '/' },
      ),
    ).toBe(0);
  });

  it('takes another length than it had', async () => {
    const server = await listening(
      answering((_, response) => {
        response.end('1234567');
      }),
    );
    expect(
      await waitUntilReady(
        { origin: `http://127.0.0.1:${server}`, page, protocol: 'http/1.1', anyLength: true },
        never,
      ),
    ).toMatchObject({ status: 200, bytes: 7 });
  });

  it('offers a name that it serves where none was asked for', async () => {
    const refusing = async (
      own: { path: string; host?: string },
      hosts: string[],
      listener: RequestListener,
    ): Promise<string> => {
      const port = await listening(answering(listener));
      const asked = waitUntilReady(
        { origin: `http://127.0.0.1:${port}`, page: own, protocol: 'http/1.1', hosts },
        never,
        200,
      );
      return asked.then(
        () => expect.fail('it was taken'),
        (error: Error) => error.message.replace(/^\S+ /, ''),
      );
    };
    const closed: RequestListener = (_, response) => {
      response.statusCode = 404;
      response.end();
    };
    const silent: RequestListener = ({ socket }) => {
      socket.destroy();
    };
    const hint = ' (it serves a.org: --url http://a.org/x; in a scenario page.host)';
    const other = 'or expect this one (--status 404; in a scenario page.status)';
    expect(
      await refusing({ path: '/x' }, ['_', '*.b.org', '~^c', '', 'a.org:8080', 'd.org'], closed),
    ).toBe(`answers with status 404: give a page that it answers with 200${hint}, ${other}`);
    expect(await refusing({ path: '/x' }, ['a.org'], silent)).toBe(
      `did not answer over http/1.1 within 0.2 s: socket hang up${hint}`,
    );
    expect(await refusing({ path: '/x' }, ['_', 'localhost'], closed)).toBe(
      `answers with status 404: give a page that it answers with 200 (--url; in a scenario page.path), ${other}`,
    );
    expect(await refusing({ path: '/x', host: 'b.org' }, ['a.org'], closed)).toBe(
      `(host b.org) answers with status 404: give a page that it answers with 200 (--url; in a scenario page.path), ${other}`,
    );
  });

  it.each([502, 504])('says of a status %i that something else does not answer', async (status) => {
    const passing: RequestListener = (_, response) => {
      response.statusCode = status;
      response.end();
    };
    await expect(ask(passing, { path: '/' })).rejects.toThrow(
      new RegExp(
        `answers with status ${status}: its backend does not answer; start the backend first, since bakeoff does not$`,
      ),
    );
  });

  it.each(['http/1.1', 'h2c'] as const)(
    'asks for path, query and host over %s',
    async (protocol) => {
      const echo: RequestListener = ({ url, headers }, response) => {
        response.end(`${url} ${headers.host ?? headers[':authority']}`);
      };
      expect(await ask(echo, { path: '/a?b=c', host: 'example.org:81' }, protocol)).toBe(
        '/a?b=c example.org:81'.length,
      );
    },
  );

  it.each(['http/1.1', 'h2c'] as const)('says where a page over %s has gone', async (protocol) => {
    const moved: RequestListener = (_, response) => {
      response.writeHead(301, { location: 'https://example.org/' }).end();
    };
    await expect(ask(moved, { path: '/', host: 'example.org' }, protocol)).rejects.toThrow(
      /^http:\/\/127\.0\.0\.1:\d+\/ \(host example\.org\) answers with status 301 to https:\/\/example\.org\/: give a page that it answers with 200 \(--url; in a scenario page\.path\), or expect this one \(--status 301; in a scenario page\.status\)$/,
    );
  });
});

it('gives up after its limit on a server that never answers, and on one that is not there', async () => {
  const silent = await listening(createTcpServer());
  await expect(ready(`127.0.0.1:${silent}`, { limitMs: 100 })).rejects.toThrow(
    new UserError(`http://127.0.0.1:${silent}/ did not answer over http/1.1 within 0.1 s`),
  );
  await expect(ready(`127.0.0.1:${silent}`, { protocol: 'h2c', limitMs: 100 })).rejects.toThrow(
    new UserError(`http://127.0.0.1:${silent}/ did not answer over h2c within 0.1 s`),
  );
  await expect(
    ready(`${quietAddress}:${await closedPort(quietAddress)}`, { limitMs: 100 }),
  ).rejects.toThrow(/did not answer over http\/1\.1 within 0\.1 s: connect ECONNREFUSED/);
  const closing = await listening(
    createTcpServer((socket) => socket.once('data', () => socket.end())),
  );
  await expect(ready(`127.0.0.1:${closing}`, { protocol: 'h2c', limitMs: 200 })).rejects.toThrow(
    /did not answer over h2c within 0\.2 s: the connection was closed/,
  );
});

const frame = (type: number, flags: number, stream: number, ...payload: number[]): Buffer =>
  Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream, ...payload]);
const settings = frame(4, 0, 0);

describe('a first answer that is none', () => {
  it.each<[string, Protocol, string | Buffer, RegExp]>([
    [
      'another protocol',
      'http/1.1',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      /answers with status 101, and goes on in another protocol: give a page/,
    ],
    [
      'HTTP/1.1',
      'h2c',
      'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
      /does not speak HTTP\/2 without TLS \(h2c\)/,
    ],
    [
      'HPACK that is none',
      'h2c',
      Buffer.concat([settings, frame(1, 5, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)]),
      /does not speak HTTP\/2|did not answer over h2c/,
    ],
    [
      'settings of a wrong length',
      'h2c',
      frame(4, 0, 0, 1),
      /does not speak HTTP\/2|did not answer over h2c/,
    ],
    [
      'a ping of a wrong length',
      'h2c',
      Buffer.concat([settings, frame(6, 0, 0, 1)]),
      /does not speak HTTP\/2|did not answer over h2c/,
    ],
    [
      'more padding than there is',
      'h2c',
      Buffer.concat([settings, frame(0, 8, 1, 200, 0)]),
      /does not speak HTTP\/2|did not answer over h2c/,
    ],
    [
      'a frame that is too long',
      'h2c',
      Buffer.concat([settings, Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])]),
      /does not speak HTTP\/2|did not answer over h2c/,
    ],
  ])('is told in a line and with exit code 1: %s', async (_, protocol, bytes, message) => {
    const port = await listening(
      createTcpServer((socket) =>
        socket.on('error', () => socket.destroy()).once('data', () => socket.write(bytes)),
      ),
    );
    // In a process of its own, which nothing else keeps from ending.
    const script = `import { waitUntilReady } from ${JSON.stringify(new URL('../../lib/servers/ready.ts', import.meta.url).href)};
      process.exitCode = 7;
      await waitUntilReady({ origin: 'http://127.0.0.1:${port}', page: { path: '/' }, protocol: '${protocol}' }, new AbortController().signal, 1000).catch((error) => { console.log(error.message); process.exitCode = 1; });`;
    const { stdout, code } = await run({
      command: process.execPath,
      args: ['--import', 'tsx', '--input-type=module', '-e', script],
    });
    expect(stdout).toMatch(message);
    expect(code).toBe(1);
  });
});

describe('a body without an end', () => {
  const endless =
    (chunk: Buffer, everyMs: number): RequestListener =>
    (_, response) => {
      const more = (): void => {
        if (response.destroyed) return;
        if (response.write(chunk) && everyMs === 0) setImmediate(more);
        else if (everyMs > 0) setTimeout(more, everyMs);
        else response.once('drain', more);
      };
      more();
    };

  it.each(['http/1.1', 'h2c'] as const)(
    'is given up after the limit, over %s',
    async (protocol) => {
      const slow = endless(Buffer.from('123'), 20);
      const port = await listening(
        protocol === 'h2c' ? createHttp2Server(slow as never) : answering(slow),
      );
      await expect(ready(`127.0.0.1:${port}`, { protocol, limitMs: 200 })).rejects.toThrow(
        new UserError(
          `http://127.0.0.1:${port}/ answers with a body that did not end within 0.2 s or 1 GiB: give a page that ends`,
        ),
      );
    },
  );

  it('is given up after 1 GiB', async () => {
    const port = await listening(answering(endless(Buffer.alloc(4 * 1024 ** 2), 0)));
    const beganAtMs = performance.now();
    await expect(ready(`127.0.0.1:${port}`, { limitMs: 60_000 })).rejects.toThrow(
      /did not end within 60 s or 1 GiB/,
    );
    expect(performance.now() - beganAtMs).toBeLessThan(59_000);
  }, 70_000);
});

it("stops waiting with the signal's reason", async () => {
  const silent = await listening(createTcpServer());
  for (const protocol of ['http/1.1', 'h2c'] as const) {
    const controller = new AbortController();
    const waiting = ready(`127.0.0.1:${silent}`, { protocol, signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  }
});

it('asks over HTTP/2 without TLS, and closes the connection', async () => {
  const server = createHttp2Server((_, response) => response.end('12345'));
  const port = await listening(server);
  const closed = new Promise<void>((resolve) =>
    server.once('session', (session) => session.once('close', resolve)),
  );
  await ready(`127.0.0.1:${port}`, { protocol: 'h2c' });
  await closed;
});

it('tells a server of another protocol at once', async () => {
  const http1 = await listening(
    answering((_, response) => {
      response.end('12345');
    }),
  );
  await expect(ready(`127.0.0.1:${http1}`, { protocol: 'h2c' })).rejects.toThrow(
    new UserError(`http://127.0.0.1:${http1}/ does not speak HTTP/2 without TLS (h2c)`),
  );
  const http2 = await listening(
    createTcpServer((socket) => socket.end(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))),
  );
  await expect(ready(`127.0.0.1:${http2}`)).rejects.toThrow(
    new UserError(
      `http://127.0.0.1:${http2}/ does not answer in HTTP/1.1: it may expect TLS, or speak HTTP/2 only`,
    ),
  );
});

it('refuses h2 without TLS, and h2c with it', async () => {
  await expect(
    waitUntilReady({ origin: 'http://127.0.0.1:1', page, protocol: 'h2' }, never),
  ).rejects.toThrow(
    "the load is HTTP/2 over TLS (h2), and the server's config has no TLS: choose a config with it, or the protocol h2c",
  );
  await expect(
    waitUntilReady({ origin: 'https://127.0.0.1:1', page, protocol: 'h2c' }, never),
  ).rejects.toThrow(
    "the load is HTTP/2 without TLS (h2c), and the server's config has TLS: choose a config without it, or the protocol h2",
  );
});

it('knows which ports are taken', async () => {
  const port = await listening(createTcpServer());
  const address = '127.0.0.1';
  expect((await portProblem({ address, port }))?.code).toBe('EADDRINUSE');
  expect(await portProblem({ address, port: await freePort() })).toBeUndefined();
  expect(listensOn(process.pid, { address: '127.0.0.1', port })).toBe(true);
  expect(listensOn(process.pid, { address: '127.0.0.1', port: await freePort() })).toBe(false);
  // Another process has no part in it.
  expect(listensOn(process.ppid, { address: '127.0.0.1', port })).toBe(false);
});
