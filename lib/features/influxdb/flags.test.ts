import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { additions } from '../../cli/main.ts';
import { readScenarioOptions } from '../../cli/scenario.ts';
import { UserError } from '../../errors.ts';
import { projectRoot } from '../../setup/paths.ts';
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

test('scenarios in compose.yaml use the InfluxDB of compose.yaml', () => {
  interface Service {
    entrypoint?: string[];
    environment?: Record<string, string>;
  }
  const compose = readFileSync(join(projectRoot, 'docker/compose.yaml'), 'utf8');
  const { services } = parse(compose) as { services: Record<string, Service> };
  const [command, subcommand, ...flags] = services['bakeoff']?.entrypoint ?? [];
  expect([command, subcommand]).toEqual(['bakeoff', 'scenario']);
  const options = readScenarioOptions([...flags, 'nginx-open-file-cache', '--quick'], additions);
  expect(options).toMatchObject({ name: 'nginx-open-file-cache', quick: true });
  expect(options.flags.get('influx')).toBe('http://influxdb:8086');
  expect(services['grafana']?.environment?.['INFLUX_URL']).toBe('http://influxdb:8086');
});
