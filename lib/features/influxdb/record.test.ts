import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { parseGoTime, recordedPoints } from './record.ts';

const point = (metric: string, second: number, tags: Record<string, string> | null) =>
  JSON.stringify({
    metric,
    type: 'Point',
    data: { time: `2026-01-01T00:00:0${second}.123456789Z`, value: 1, tags },
  });

it('counts points once that the database keeps as one', async () => {
  const file = join(newFolder(), 'record.ndjson');
  const tags = { run: 'r', round: '1', variant: 'a side' };
  const lines = [
    JSON.stringify({ type: 'Metric', metric: 'vus', data: { name: 'vus' } }),
    point('vus', 1, { round: '1' }),
    point('vus', 2, { round: '1', variant: '' }),
    point('loadgen_rps', 1, tags),
    // The same tags, as a database has them.
    point('loadgen_rps', 1, { ...tags, url: 'http://h/', vu: '1', group: '' }),
    point('loadgen_rps', 1, { ...tags, url: 'http://h/?q', vu: '2' }),
    point('loadgen_rps', 1, { ...tags, instance: '1' }),
    point('loadgen_rps', 2, tags),
    point('iterations', 1, null),
    point('iterations', 2, null).slice(0, -9),
  ];
  writeFileSync(file, lines.join('\n'));
  expect([...(await recordedPoints(file))]).toEqual([
    ['vus 1 ', 2],
    ['loadgen_rps 1 a side', 3],
    ['iterations  ', 1],
  ]);
});

it.each([
  ['2026-01-02T03:04:05.123456789Z', 1767323045123456789n],
  ['2026-01-02T03:04:05Z', 1767323045000000000n],
  ['2026-01-02T03:04:05.000000001+09:00', 1767290645000000001n],
  ['2026-01-02 03:04', null],
  ['2026-13-02T03:04:05Z', null],
])('parses %s with nanosecond precision', (text, expected) => {
  expect(parseGoTime(text)).toBe(expected);
});
