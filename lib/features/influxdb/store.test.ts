// Requests to an InfluxDB, and the handling of its responses.
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parseInfluxUrl } from '../../influx/address.ts';
import { openStore } from './store.ts';
import { closedPort, listening } from '../../../test/fixtures/listening.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';

interface Asked {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}
interface Answer {
  status?: number;
  body?: string;
  version?: string;
}

const databases = (...names: string[]) =>
  JSON.stringify({
    results: [
      { series: [{ name: 'databases', columns: ['name'], values: names.map((name) => [name]) }] },
    ],
  });

/** An HTTP server with the given responses; by default it responds like InfluxDB 2.7 with a bucket bakeoff. */
async function fakeInflux(
  answer: (asked: Asked, count: number) => Answer | undefined = () => undefined,
) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url: path = '', headers } = request;
    const received = { method, path, headers, body };
    asked.push(received);
    const fallback: Answer =
      received.path === '/query' ? { status: 200, body: databases('bakeoff') } : { status: 204 };
    const {
      status = 200,
      body: text = '',
      version = 'v2.7.12',
    } = answer(received, asked.length) ?? fallback;
    response.writeHead(status, version === '' ? {} : { 'X-Influxdb-Version': version }).end(text);
  });
  return { host: `127.0.0.1:${await listening(server)}`, asked };
}

const answering = (query: (body: string) => Answer | undefined, version = 'v2.7.12') =>
  fakeInflux(({ path, body }) =>
    path === '/query' ? { version, ...query(body) } : { status: 204, version },
  );

const open = (host: string) =>
  openStore({ url: `http://${host}`, folder: '/nowhere', retryForMs: 500 });

describe('--influx', () => {
  it.each([
    ['http://h:8086/', 'tok', 'http://h:8086', { user: 'token', password: 'tok' }],
    ['http://h', 'me:p:ss', 'http://h', { user: 'me', password: 'p:ss' }],
    ['https://h/bakeoff', '', 'https://h', null],
    ['http://me:p%40ss@h:1', 'tok', 'http://h:1', { user: 'me', password: 'p@ss' }],
    ['http://a%3D%3D@h:1', undefined, 'http://h:1', { user: 'token', password: 'a==' }],
    ['http://:a@[::1]:1', undefined, 'http://[::1]:1', { user: 'token', password: 'a' }],
  ])('reads %s', (text, token, url, credentials) => {
    expect(parseInfluxUrl(text, token)).toEqual({ url, credentials });
  });

  it.each(['localhost:8086', 'ftp://h', 'http://h?db=x', 'http://h/other', 'http://%E4@h'])(
    'refuses %j',
    (text) => {
      expect(() => parseInfluxUrl(text)).toThrow(
        expect.objectContaining({ message: expect.stringMatching(/^--influx takes/), exitCode: 2 }),
      );
    },
  );
});

it('uses the 1.x API for 2.x too, with the token as password', async () => {
  const { host, asked } = await fakeInflux();
  const store = await open(`s3cret@${host}`);
  await store.write(['m v=1 1', '', 'm v=2 2']);
  await store.query('SELECT "v" FROM m');
  expect(store.version).toBe('2.7.12');
  expect(asked.map(({ method, path, body }) => `${method} ${path} ${body}`)).toEqual([
    'GET /ping ',
    'POST /query db=bakeoff&q=SHOW+DATABASES',
    'POST /write?db=bakeoff&precision=ns m v=1 1\nm v=2 2',
    'POST /query db=bakeoff&q=SELECT+%22v%22+FROM+m',
  ]);
  for (const { headers } of asked)
    expect(headers.authorization).toBe(`Basic ${btoa('token:s3cret')}`);
  expect(asked[3]?.headers['content-type']).toMatch('application/x-www-form-urlencoded');
  // k6 sends no Authorization header without a user name.
  const { out, env } = store.k6Output();
  expect(out).toEqual([`influxdb=http://${host}/bakeoff`]);
  expect(env).toMatchObject({
    K6_INFLUXDB_USERNAME: 'token',
    K6_INFLUXDB_PASSWORD: 's3cret',
    K6_INFLUXDB_TAGS_AS_FIELDS: 'vu,iter,url',
  });
});

describe('with BAKEOFF_K6_OUTPUT=xk6-influxdb', () => {
  beforeEach(() => void vi.stubEnv('BAKEOFF_K6_OUTPUT', 'xk6-influxdb'));
  const withBuckets = (...buckets: object[]) =>
    fakeInflux(({ path }) =>
      path.startsWith('/api/v2/buckets') ? { body: JSON.stringify({ buckets }) } : undefined,
    );

  it('k6 writes to 2.x with that output, with the organization of the bucket', async () => {
    const { host, asked } = await withBuckets({ name: 'bakeoff', orgID: '0123456789abcdef' });
    const store = await open(`s3cret@${host}`);
    expect(store.k6Output()).toEqual({
      out: [`xk6-influxdb=http://${host}/bakeoff`],
      env: expect.objectContaining({
        K6_INFLUXDB_ORGANIZATION: '0123456789abcdef',
        K6_INFLUXDB_TOKEN: 's3cret',
        K6_INFLUXDB_PRECISION: '1ns',
      }),
    });
    expect(asked.at(-1)).toMatchObject({
      method: 'GET',
      path: '/api/v2/buckets?name=bakeoff',
      headers: { authorization: 'Token s3cret' },
    });
  });

  it.each([
    [[], 'no bucket'],
    [[{ orgID: 'a' }, { orgID: 'b' }], '2 buckets'],
  ])('reports an ambiguous organization: %j', async (buckets, shown) => {
    const { host } = await withBuckets(...buckets);
    await expect(open(`t@${host}`)).rejects.toThrow(
      `InfluxDB at http://${host} shows this token ${shown} bakeoff`,
    );
  });
});

it('refuses an unknown output, takes the token from INFLUX_TOKEN', async () => {
  vi.stubEnv('INFLUX_TOKEN', 'from-env');
  vi.stubEnv('BAKEOFF_K6_OUTPUT', 'influx2');
  const { host, asked } = await fakeInflux();
  await expect(open(host)).rejects.toThrow(
    'BAKEOFF_K6_OUTPUT=influx2 is not an output of k6 that bakeoff knows: set it to influxdb or ',
  );
  expect(asked[0]?.headers.authorization).toBe(`Basic ${btoa('token:from-env')}`);
});

it('takes the token from INFLUX_TOKEN_FILE, unless INFLUX_TOKEN is set', async () => {
  const file = join(newFolder(), 'token');
  writeFileSync(file, 'from-file\n');
  vi.stubEnv('INFLUX_TOKEN', '');
  vi.stubEnv('INFLUX_TOKEN_FILE', file);
  const { host, asked } = await fakeInflux();
  await open(host);
  vi.stubEnv('INFLUX_TOKEN', 'from-env');
  await open(host);
  const sent = new Set(asked.map(({ headers }) => headers.authorization));
  expect([...sent]).toEqual(
    ['from-file', 'from-env'].map((token) => `Basic ${btoa(`token:${token}`)}`),
  );
  vi.stubEnv('INFLUX_TOKEN', '');
  vi.stubEnv('INFLUX_TOKEN_FILE', `${file}s`);
  await expect(open(host)).rejects.toThrow(/^INFLUX_TOKEN_FILE cannot be read: ENOENT.*tokens'$/);
});

it('creates the database on 1.x, except for viewing; not on 2.x', async () => {
  const store = await answering(
    (body) => ({ body: body.includes('SHOW') ? databases('_internal') : '{"results":[{}]}' }),
    '1.8.10',
  );
  await expect(
    openStore({ url: `http://${store.host}`, folder: '/nowhere', purpose: 'view' }),
  ).rejects.toThrow('has no database bakeoff yet: run a scenario into it first');
  const { out } = (await open(store.host)).k6Output();
  expect(out).toEqual([`influxdb=http://${store.host}/bakeoff`]);
  expect(store.asked.map(({ body }) => body).filter((body) => body.includes('CREATE'))).toEqual([
    'db=bakeoff&q=CREATE+DATABASE+%22bakeoff%22',
  ]);

  const two = await answering(() => ({ body: databases('other') }));
  await expect(open(`t@${two.host}`)).rejects.toThrow(
    `InfluxDB 2.7.12 at http://${two.host} shows this token no bucket bakeoff: make it`,
  );

  const no = { status: 403, body: '{"error":"needs admin"}' };
  const refusing = (body: string) => (body.includes('SHOW') ? { body: databases() } : no);
  const denied = await answering(refusing, '1.8.10');
  await expect(open(`me:pw@${denied.host}`)).rejects.toThrow(
    'needs admin (status 403); an administrator must run: CREATE DATABASE bakeoff',
  );
});

it('reports an invalid address or invalid credentials in one line', async () => {
  const locked = await answering(() => ({ status: 401, body: '{"message":"unauthorized"}' }));
  await expect(open(locked.host)).rejects.toThrow(
    /wants a user name and password, or a token: give them in --influx .* or in INFLUX_TOKEN$/,
  );
  await expect(open(`wrong@${locked.host}`)).rejects.toThrow(
    /refuses the user name and password, or the token: give them in/,
  );

  const three = await fakeInflux(({ headers }) =>
    headers.authorization === undefined
      ? { status: 401, version: '' }
      : { body: '{"version":"3.11.2","process_id":"1"}', version: '3.11.2' },
  );
  await expect(open(three.host)).rejects.toThrow(/wants a user name and password, or a token: /);
  await expect(open(`apiv3_t@${three.host}`)).rejects.toThrow(
    `InfluxDB 3.11.2 at http://${three.host} is not supported, because its InfluxQL cannot make databases: use InfluxDB 2.x or 1.x`,
  );
  expect(three.asked.map(({ path }) => path)).toEqual(['/ping', '/ping']);

  const other = await fakeInflux(() => ({ status: 404, version: '' }));
  await expect(open(other.host)).rejects.toThrow(
    `the server at http://${other.host} is not InfluxDB: check --influx`,
  );

  const port = await closedPort();
  await expect(open(`127.0.0.1:${port}`)).rejects.toThrow(
    `InfluxDB at http://127.0.0.1:${port} does not answer (connect ECONNREFUSED 127.0.0.1:${port})`,
  );
});

describe('writing', () => {
  const lines = Array.from({ length: 12_000 }, (_, index) => `m v=${index} ${index + 1}`);
  const writes = (asked: readonly Asked[]) => asked.filter(({ path }) => path.startsWith('/write'));

  it('sends at most 5000 lines per request, and halves requests that are too large', async () => {
    const { host, asked } = await fakeInflux(({ path, body }) =>
      path.startsWith('/write') && body.split('\n').length > 1300 ? { status: 413 } : undefined,
    );
    await (await open(host)).write(lines);
    const batches = writes(asked).map(({ body }) => body.split('\n'));
    expect(batches.filter(({ length }) => length <= 1300).flat()).toEqual(lines);
    expect(Math.max(...batches.map(({ length }) => length))).toBe(5000);
  });

  it('retries for a while if the database is busy', async () => {
    // Even on a slow machine there are two tries.
    let refusals = 1;
    const { host, asked } = await fakeInflux(({ path }) =>
      path.startsWith('/write') && refusals-- > 0 ? { status: 503, body: 'busy\nvery' } : undefined,
    );
    const store = await open(host);
    await store.write(['m v=1 1']);
    expect(writes(asked).map(({ body }) => body)).toEqual(['m v=1 1', 'm v=1 1']);
    refusals = Infinity;
    await expect(store.write(['m v=2 2'])).rejects.toThrow(
      `InfluxDB at http://${host}: busy (status 503)`,
    );
  });

  it('writes the lines after refused ones, and reports the refusal', async () => {
    const { host, asked } = await fakeInflux(({ path, body }) =>
      path.startsWith('/write') && body.startsWith('m v=0 ')
        ? { status: 400, body: 'partial write' }
        : undefined,
    );
    await expect((await open(host)).write(lines)).rejects.toThrow('partial write (status 400)');
    expect(writes(asked).flatMap(({ body }) => body.split('\n'))).toEqual(lines);
  });

  it.each([
    [400, '{"error":"partial write: field type conflict"}', 'partial write: field type conflict'],
    [413, '{"error":"Request Entity Too Large"}', 'Request Entity Too Large'],
  ])('does not retry a line that is refused with %i', async (status, body, message) => {
    const { host, asked } = await fakeInflux(({ path }) =>
      path.startsWith('/write') ? { status, body } : undefined,
    );
    await expect((await open(host)).write(['m v=1 1'])).rejects.toThrow(
      `${message} (status ${status})`,
    );
    expect(writes(asked)).toHaveLength(1);
  });
});

it.each([
  ['<html>\n<p>log in</p>', 'is not InfluxDB, or something changes its answers'],
  ['{"results":[{"error":"database not found: bakeoff"}]}', 'database not found: bakeoff'],
  ['{"results":[{"partial":true,"series":[]}]}', 'max-row-limit'],
  ['{"results":[{"series":5}]}', 'is not InfluxDB'],
  ['{"results":[{"series":[null]}]}', 'is not InfluxDB'],
  ['{"results":[{"series":[{"values":[null]}]}]}', 'is not InfluxDB'],
  ['{"error":{"a":1}}', ': {"a":1}'],
])('reports an invalid response with status 200 in one line: %j', async (body, message) => {
  const { host } = await answering((asked) => ({
    body: asked.includes('SELECT') ? body : databases('bakeoff'),
  }));
  expect(await refusalOf((await open(host)).query('SELECT 1'))).toContain(message);
});
