import { expect, test } from 'vitest';
import { htmlReport } from '../../report/html/run-page.ts';
import { openFileCache, result, workers } from '../../../test/fixtures/result.ts';
import { storedIn } from './stored.ts';

test('the last line reports how much is stored, and the exit code what is missing', () => {
  const integrity = { requests: 2000, stored: 1990, backfilled: 500, lost: 10 };
  expect(storedIn({ integrity })).toEqual({
    line: 'Stored 1,990 of 2,000 requests in InfluxDB, 500 of them written again, 10 lost',
    lack: 'InfluxDB lacks 10 requests',
  });
  const complete = { requests: 2000, stored: 2000, backfilled: 0, lost: 0 };
  expect(storedIn({ integrity: complete })).toEqual({
    line: 'Stored 2,000 of 2,000 requests in InfluxDB, 0 lost',
  });
  expect(storedIn({ integrity: null })).toEqual({
    line: 'Not stored in InfluxDB (--store none)',
  });
});

test('the page of a run reports how much is stored', async () => {
  const page = await htmlReport(result([workers, openFileCache]), []);
  expect(page).toContain('<p>Stored 7,034,450 of 7,034,450 requests in InfluxDB, 0 lost.</p>');
});
