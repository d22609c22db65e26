import { expect, test } from 'vitest';
import { UserError } from '../../errors.ts';
import { plannedDatabase } from './flags.ts';

const planned = (flags: Record<string, string>) => plannedDatabase(new Map(Object.entries(flags)));

test('a run starts an influxd, unless it has the address of another or stores nothing', () => {
  expect(planned({})?.tools).toEqual(['influxd']);
  expect(planned({ store: 'influx' })?.tools).toEqual(['influxd']);
  expect(planned({ influx: 'http://a' })?.tools).toEqual([]);
  expect(planned({ store: 'none' })).toBeUndefined();
});

test.each([
  [{ store: 'influxdb' }, /did you mean influx\?$/],
  [{ store: 'none', influx: 'http://a' }, /^--store none and --influx do not go together/],
  [{ influx: 'localhost' }, /^--influx takes a URL such as /],
])('%j is a usage error', (flags, message) => {
  expect(() => planned(flags)).toThrow(message);
  expect(() => planned(flags)).toThrow(expect.objectContaining({ exitCode: 2 }) as UserError);
});
