import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parsePoint, readRecord, recordedLine } from '../../lib/store/integrity.ts';
import { newFolder } from '../fixtures/new-folder.ts';

function sample(data: object, metric = 'loadgen_requests'): string {
  return JSON.stringify({
    metric,
    type: 'Point',
    data: { time: '2026-01-02T03:04:05.123456789Z', value: 1, tags: {}, ...data },
  });
}

it("splits tags and fields as k6's influxdb output does", () => {
  const point = parsePoint(
    sample({
      value: 0.25,
      tags: { run: 'a b', vu: '1', iter: '2', url: 'http://h/?a="b"', group: '' },
    }),
  );
  expect(point && recordedLine(point)).toBe(
    'loadgen_requests,run=a\\ b vu="1",iter="2",url="http://h/?a=\\"b\\"",value=0.25 1767323045123456789',
  );
});

it.each([
  [
    'a description of a metric',
    '{"type":"Metric","data":{"name":"m","type":"counter"},"metric":"m"}',
  ],
  ['half a line', sample({}).slice(0, 60)],
  ['nothing', ''],
  ['another JSON', '[1]'],
  ['a sample without a value', sample({ value: null })],
  ['a sample with another time', sample({ time: 'now' })],
])('takes %s for no sample', (_what, text) => {
  expect(parsePoint(text)).toBeNull();
});

it('takes samples without tags', () => {
  expect(parsePoint(sample({ tags: null }))).toMatchObject({
    metric: 'loadgen_requests',
    tags: {},
  });
});

it('reads a file whose writer was killed', async () => {
  const folder = newFolder();
  const file = join(folder, 'record.json');
  writeFileSync(
    file,
    `${sample({ value: 1 })}\n${sample({ value: 2 })}\n${sample({ value: 3 }).slice(0, -20)}`,
  );
  const values = [];
  for await (const point of readRecord(file)) values.push(point.value);
  expect(values).toEqual([1, 2]);
  await expect(readRecord(join(folder, 'none')).next()).rejects.toMatchObject({ code: 'ENOENT' });
});
