import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { dashboardUrl } from './command.ts';
import { findGrafana, writeGrafanaFiles } from './start.ts';
import { script, testMachine, type TestMachine } from '../../../../test/fixtures/machine.ts';
import { newFolder } from '../../../../test/fixtures/new-folder.ts';

const image = /image: (grafana\/grafana:\S+)/.exec(
  readFileSync(new URL('../../../../docker/compose.yaml', import.meta.url), 'utf8'),
)?.[1];

function unpack(machine: TestMachine, folder: string) {
  const home = join(machine.folder, folder);
  for (const name of ['bin', 'conf']) mkdirSync(join(home, name), { recursive: true });
  writeFileSync(join(home, 'conf/defaults.ini'), '');
  writeFileSync(join(home, 'bin/grafana'), '#!/bin/sh\n', { mode: 0o755 });
  return { home, command: join(home, 'bin/grafana') };
}

it('finds the home of a command on PATH', async () => {
  const linked = testMachine();
  const unpacked = unpack(linked, 'opt');
  symlinkSync(unpacked.command, join(linked.binFolder, 'grafana'));
  expect(await findGrafana(linked)).toMatchObject(unpacked);

  const packaged = testMachine();
  script(packaged, 'grafana', '');
  const share = unpack(packaged, 'system/usr/share/grafana');
  expect(await findGrafana(packaged)).toEqual(share);
  const plugins = join(packaged.systemRoot, 'var/lib/grafana/plugins-bundled');
  mkdirSync(plugins, { recursive: true });
  expect(await findGrafana(packaged)).toEqual({ ...share, plugins });
  mkdirSync(join(share.home, 'data/plugins-bundled'), { recursive: true });
  expect(await findGrafana(packaged)).toEqual(share);
});

it('with Docker, uses the image of the compose file', async () => {
  const machine = testMachine();
  const command = script(machine, 'docker', '[ "$1" = info ]');
  expect(await findGrafana(machine)).toEqual({ command, home: '/usr/share/grafana', image });
});

it('without Grafana, offers three ways to get it', async () => {
  const machine = testMachine();
  await expect(findGrafana(machine)).rejects.toThrow(
    new RegExp(
      `^Grafana is missing.*\n.*GRAFANA_HOME.*\n.*on PATH\n  install Docker: bakeoff then runs ${image}$`,
    ),
  );
  script(machine, 'docker', 'echo "Cannot connect to the Docker daemon" >&2; exit 1');
  await expect(findGrafana(machine)).rejects.toThrow(
    /^ {2}mend Docker \(Cannot connect to the Docker daemon\): bakeoff then runs \S+$/m,
  );
});

it('writes the files, with passwords readable only by the owner', () => {
  const folder = newFolder('#;');
  chmodSync(folder, 0o755);
  const sources = join(folder, 'provisioning/datasources/bakeoff.yaml');
  // The file's old mode must not survive.
  mkdirSync(dirname(sources), { recursive: true });
  writeFileSync(sources, 'of before', { mode: 0o644 });
  const credentials = { user: 'me', password: 'pa$HOME: "x"' };
  const influx = { url: 'http://127.0.0.1:8086', credentials };
  const { config, password, passwordFile } = writeGrafanaFiles(folder, 3017, influx);
  // Grafana reads $$ as $.
  const secureJsonData = { basicAuthPassword: 'pa$$HOME: "x"' };
  const datasources = [{ basicAuth: true, secureJsonData }];
  expect(parse(readFileSync(sources, 'utf8'))).toMatchObject({ datasources });
  const open = newFolder();
  writeGrafanaFiles(open, 3017, { ...influx, credentials: null });
  const without = readFileSync(join(open, 'provisioning/datasources/bakeoff.yaml'), 'utf8');
  expect(parse(without)).toMatchObject({ datasources: [{ basicAuth: false }] });
  const dashboards = readFileSync(join(folder, 'provisioning/dashboards/bakeoff.yaml'), 'utf8');
  const { providers } = parse(dashboards) as { providers: [{ options: { path: string } }] };
  expect(providers).toMatchObject([{ type: 'file', allowUiUpdates: false }]);
  expect(statSync(join(providers[0].options.path, 'comparison.json')).isFile()).toBe(true);

  expect(password).toMatch(/^[\w-]{24}$/);
  expect(readFileSync(passwordFile, 'utf8')).toBe(password);
  // Grafana's database contains the password of the data source.
  const modes = [folder, sources, passwordFile].map((file) => statSync(file).mode & 0o777);
  expect(modes).toEqual([0o700, 0o600, 0o600]);
  const settings = readFileSync(config, 'utf8');
  for (const lines of [
    `[paths]\ndata = """${folder}/data"""`,
    'http_addr = 127.0.0.1',
    '[auth.anonymous]\nenabled = false',
    '[dashboards]\nmin_refresh_interval = 2s',
    'reporting_enabled = false',
    'news_feed_enabled = false',
  ])
    expect(settings).toContain(`\n${lines}\n`);
});

it('links to runs', () => {
  const shown = { run: 'r&1', scenario: 's', startedMs: 1000, endedMs: 2000 };
  expect(dashboardUrl('http://a', 'comparison', shown)).toBe(
    'http://a/d/bakeoff-comparison?var-scenario=s&var-run=r%261&from=1000&to=2000',
  );
  const going = dashboardUrl('http://a', 'live', { ...shown, endedMs: null });
  expect(going).toMatch(/&from=1000&to=now$/);
  expect(dashboardUrl('http://a', 'live')).toBe('http://a/d/bakeoff-live');
});
