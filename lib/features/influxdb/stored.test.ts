import { expect, test } from 'vitest';
import { additions } from '../../cli/main.ts';
import { htmlReport } from '../../report/html/run-page.ts';
import { openFileCache, result, workers } from '../../../test/fixtures/result.ts';
import { storedIn } from './stored.ts';

const { environment } = result([workers, openFileCache]);
const points = { written: 310, stored: 310, backfilled: 0, lost: 0 };

test.each([
  [
    { requests: 2000, stored: 2000, backfilled: 0, lost: 0, points },
    { line: 'Stored 2,000 of 2,000 requests and 310 of 310 points in InfluxDB, 0 lost' },
  ],
  [
    {
      requests: 2000,
      stored: 1990,
      backfilled: 500,
      lost: 10,
      points: { ...points, stored: 309, backfilled: 120, lost: 1, failedWrites: 3 },
    },
    {
      line: 'Stored 1,990 of 2,000 requests and 309 of 310 points in InfluxDB (k6 failed to write 3 times), 500 requests and 120 points written again, 10 requests and 1 point lost',
      lack: 'InfluxDB lacks 10 requests and 1 point',
    },
  ],
  [
    {
      requests: 2000,
      stored: 2000,
      backfilled: 0,
      lost: 0,
      points: {
        ...points,
        stored: 180,
        lost: 130,
        lacking: ['loadgen_latency_ms', 'server_rss'],
        reason: 'field type conflict',
      },
    },
    {
      line: 'Stored 2,000 of 2,000 requests and 180 of 310 points in InfluxDB, 130 points lost (loadgen_latency_ms, server_rss): field type conflict',
      lack: 'InfluxDB lacks 130 points',
    },
  ],
  [
    { requests: 5, stored: 5, backfilled: 5, lost: 0 },
    { line: 'Stored 5 of 5 requests in InfluxDB, 5 requests written again' },
  ],
  [
    { requests: 10, stored: 15, backfilled: 0, lost: 0, points },
    {
      line: 'Stored 15 of 10 requests and 310 of 310 points in InfluxDB, 5 requests too many',
      lack: 'InfluxDB has 5 requests that this run did not make',
    },
  ],
  [null, { line: 'Not stored in InfluxDB (--store none)' }],
])(
  'the last line reports how much is stored, and the exit code what is missing: %j',
  (integrity, said) => {
    expect(storedIn({ integrity, environment })).toEqual(said);
  },
);

test('a run that was ended before its end says so', () => {
  const versions = { ...environment.versions, influxdb: '1.6.7' };
  const { line } = storedIn({ integrity: null, environment: { ...environment, versions } });
  expect(line).toBe('Not counted in InfluxDB: the run was ended');
});

test('the page of a run reports how much is stored', async () => {
  const page = await htmlReport(
    result([workers, openFileCache]),
    additions.contributionsTo(result([workers, openFileCache])),
    [],
  );
  expect(page).toContain(
    '<p>Stored 7,034,450 of 7,034,450 requests and 5,120 of 5,120 points in InfluxDB, 0 lost.</p>',
  );
});
