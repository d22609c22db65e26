// Databases that answer, and hang or answer nonsense when they are asked.
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { checkRounds } from '../../lib/store/integrity.ts';
import { type Store, openStore } from '../../lib/store/store.ts';
import { listening } from '../fixtures/listening.ts';

/** A store whose InfluxDB takes all that is written. Queries get the answer, once it has been opened; without one they hang. */
async function storeWith(answer: () => string | undefined): Promise<Store> {
  let isOpen = false;
  const databases = JSON.stringify({
    results: [{ series: [{ name: 'databases', columns: ['name'], values: [['bakeoff']] }] }],
  });
  const server = createServer(async (request, response) => {
    await buffer(request);
    response.setHeader('X-Influxdb-Version', '1.8.10');
    const text = request.url !== '/query' ? '' : isOpen ? answer() : databases;
    if (text !== undefined) response.writeHead(text === '' ? 204 : 200).end(text);
  });
  const store = await openStore({
    url: `http://127.0.0.1:${await listening(server)}`,
    folder: '/nowhere',
    retryForMs: 500,
  });
  isOpen = true;
  return store;
}

const rounds = [1, 2].map((round) => ({
  variant: 'v',
  round,
  recordFile: undefined,
  requests: 10,
}));

test('one that answers pings and hangs over queries is left alone, and all rounds say the same of it', async () => {
  const store = await storeWith(() => undefined);
  const beganAtMs = performance.now();
  // So that k6 is not told to write there: it would ask first.
  expect(await store.revive()).toBe(false);
  const hangs = `InfluxDB at ${store.influx.url} does not answer: it hangs`;
  await expect(store.query('SELECT 1')).rejects.toThrow(hangs);
  const { integrity, uncounted } = await checkRounds(store, 'run', rounds);
  expect([uncounted, ...integrity.map(({ lost, problems }) => [lost, problems])]).toEqual([
    hangs,
    [10, [hangs]],
    [10, [hangs]],
  ]);
  // One request was waited for, and no query.
  expect(performance.now() - beganAtMs).toBeLessThan(8000);
}, 20_000);

test('one whose sums are no numbers has none of the requests', async () => {
  const sums = {
    name: 'loadgen_requests',
    tags: { variant: 'v', round: '1' },
    columns: ['time', 'sum'],
    values: [['1970-01-01T00:00:00Z', 'many']],
  };
  const store = await storeWith(() => JSON.stringify({ results: [{ series: [sums] }] }));
  const { integrity } = await checkRounds(store, 'run', rounds.slice(0, 1));
  expect(integrity).toEqual([
    {
      requests: 10,
      stored: 0,
      backfilled: 0,
      lost: 10,
      problems: ['InfluxDB lacks 10 of 10 requests of v, round 1'],
    },
  ]);
});
