// Which Grafana is found, and the files that it reads.
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { dashboardUrl } from '../../lib/cli/grafana.ts';
import { findGrafana, writeGrafanaFiles } from '../../lib/grafana/start.ts';
import { script, testMachine, type TestMachine } from '../fixtures/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';

/** The version that docker/compose.yaml pins. */
const image = /image: (grafana\/grafana:\S+)/.exec(
  readFileSync(new URL('../../docker/compose.yaml', import.meta.url), 'utf8'),
)?.[1];

/** Unpacks something like Grafana. */
function unpack(machine: TestMachine, folder: string, ...binaries: string[]) {
  const home = join(machine.folder, folder);
  for (const name of ['bin', 'conf']) mkdirSync(join(home, name), { recursive: true });
  writeFileSync(join(home, 'conf/defaults.ini'), '');
  for (const binary of binaries)
    writeFileSync(join(home, 'bin', binary), '#!/bin/sh\n', { mode: 0o755 });
  return home;
}

it('takes the Grafana of GRAFANA_HOME', async () => {
  const machine = testMachine();
  const home = unpack(machine, 'own', 'grafana');
  machine.env['GRAFANA_HOME'] = home;
  expect(await findGrafana(machine)).toEqual({
    command: join(home, 'bin/grafana'),
    home,
  });
});

it('finds what a command on PATH belongs to: where a link leads, or where a package puts its files', async () => {
  const linked = testMachine();
  const home = unpack(linked, 'opt', 'grafana');
  symlinkSync(join(home, 'bin/grafana'), join(linked.binFolder, 'grafana'));
  expect(await findGrafana(linked)).toMatchObject({ command: join(home, 'bin/grafana'), home });

  const packaged = testMachine();
  script(packaged, 'grafana', '');
  const share = unpack(packaged, 'system/usr/share/grafana', 'grafana');
  const found = { command: join(share, 'bin/grafana'), home: share };
  expect(await findGrafana(packaged)).toMatchObject(found);
});

it('takes the image of the compose file when Docker works', async () => {
  const machine = testMachine();
  const command = script(machine, 'docker', '[ "$1" = info ]');
  expect(await findGrafana(machine)).toEqual({ command, home: '/usr/share/grafana', image });
});

it('names three ways when there is none', async () => {
  const machine = testMachine();
  await expect(findGrafana(machine)).rejects.toThrow(
    new RegExp(
      `^Grafana is missing.*\n.*GRAFANA_HOME.*\n.*on PATH\n  install Docker .then ${image} is used.$`,
    ),
  );
  script(machine, 'docker', 'echo "Cannot connect to the Docker daemon" >&2; exit 1');
  await expect(findGrafana(machine)).rejects.toThrow(
    'let Docker work, which says: Cannot connect to the Docker daemon',
  );
});

const influx = { url: 'http://127.0.0.1:8086', credentials: null };

it('provisions the InfluxDB and the dashboards', () => {
  const folder = newFolder();
  writeGrafanaFiles(folder, 3001, influx);
  expect(
    parse(readFileSync(join(folder, 'provisioning/datasources/bakeoff.yaml'), 'utf8')),
  ).toMatchObject({ datasources: [{ url: influx.url, jsonData: { dbName: 'bakeoff' } }] });
  const [provider] = (
    parse(readFileSync(join(folder, 'provisioning/dashboards/bakeoff.yaml'), 'utf8')) as {
      providers: { type: string; options: { path: string } }[];
    }
  ).providers;
  expect(provider).toMatchObject({
    type: 'file',
    allowUiUpdates: false,
    options: { path: expect.stringMatching(/\/dashboards\/generated$/) },
  });
  expect(statSync(join(provider?.options.path ?? '', 'comparison.json')).isFile()).toBe(true);
});

it('gives Grafana the user and password, or the token, as they are', () => {
  const folder = newFolder();
  const file = join(folder, 'provisioning/datasources/bakeoff.yaml');
  // Its mode must not stay.
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, 'of before', { mode: 0o644 });
  writeGrafanaFiles(folder, 3000, {
    ...influx,
    credentials: { user: 'me', password: 'pa$HOME: "x"' },
  });
  const [source] = (parse(readFileSync(file, 'utf8')) as { datasources: object[] }).datasources;
  // Grafana makes one $ of two.
  expect(source).toMatchObject({
    basicAuth: true,
    basicAuthUser: 'me',
    secureJsonData: { basicAuthPassword: 'pa$$HOME: "x"' },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('makes a password once, and keeps it where only its owner may come', () => {
  const folder = newFolder();
  chmodSync(folder, 0o755);
  const { password, passwordFile } = writeGrafanaFiles(folder, 3000, influx);
  expect(password).toMatch(/^[\w-]{24}$/);
  expect(readFileSync(passwordFile, 'utf8')).toBe(password);
  expect(statSync(passwordFile).mode & 0o777).toBe(0o600);
  // Grafana's own database has the data source's password.
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(writeGrafanaFiles(folder, 3000, influx).password).toBe(password);
});

it('has Grafana listen on loopback, let nobody in without a password, and refresh each second', () => {
  const folder = newFolder('#;');
  const { config, passwordFile } = writeGrafanaFiles(folder, 3017, influx);
  const settings = settingsOf(readFileSync(config, 'utf8'));
  expect(settings).toMatchObject({
    'server.http_addr': '127.0.0.1',
    'server.http_port': '3017',
    'auth.anonymous.enabled': 'false',
    'dashboards.min_refresh_interval': '2s',
    'analytics.reporting_enabled': 'false',
    'news.news_feed_enabled': 'false',
    'paths.data': `"""${folder}/data"""`,
    'paths.provisioning': `"""${folder}/provisioning"""`,
    'security.admin_password': `"""$__file{${passwordFile}}"""`,
  });
});

/** Settings of an ini file by section and name. */
function settingsOf(ini: string): Record<string, string> {
  let section = '';
  return Object.fromEntries(
    ini.split('\n').flatMap((line): [string, string][] => {
      section = /^\[(.*)\]$/.exec(line)?.[1] ?? section;
      const [, name, value] = /^(\w+) = (.*)$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[`${section}.${name}`, value]];
    }),
  );
}

it('makes addresses of a run at its time, and of one that goes on', () => {
  const shown = { run: 'r&1', scenario: 's', startedMs: 1000, endedMs: 2000 };
  expect(dashboardUrl('http://127.0.0.1:3000', 'comparison', shown)).toBe(
    'http://127.0.0.1:3000/d/bakeoff-comparison?var-scenario=s&var-run=r%261&from=1000&to=2000',
  );
  expect(dashboardUrl('http://127.0.0.1:3000', 'live', { ...shown, endedMs: null })).toMatch(
    /&from=1000&to=now$/,
  );
  expect(dashboardUrl('http://127.0.0.1:3000', 'live')).toBe(
    'http://127.0.0.1:3000/d/bakeoff-live',
  );
});
