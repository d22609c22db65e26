// npm run grafana, with a real influxd and a stand-in for Grafana.
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { lockFile } from '../../lib/machine/locks.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { curvesOf, foundIn } from '../../lib/report/found.ts';
import { runPoint, tablePoints } from '../../lib/features/influxdb/points.ts';
import { openStore } from '../../lib/features/influxdb/store.ts';
import { fakeGrafana, type FakeGrafana } from '../fixtures/fake-grafana.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { isRunning } from '../fixtures/processes.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';
import { storeOf } from '../fixtures/local-store.ts';
import { startCommand, useHome, type ScenarioRun } from '../scenario-run.ts';

const shown = result([workers, openFileCache]);
const older = result([workers, openFileCache], {
  run: '2026-11-19T08-15-30-nginx-open-file-cache',
});

/** A local Grafana would take precedence over Docker. */
const hasGrafana =
  (await find('grafana', thisMachine())) !== undefined ||
  (await find('grafana-server', thisMachine())) !== undefined;

const home = useHome(['influxd']);
beforeAll(async () => {
  const store = await openStore({
    influxdBinary: home.env['INFLUXD_BIN'] as string,
    folder: join(home.folder, 'influxdb'),
  });
  for (const result of [shown, older])
    await store.write([
      ...tablePoints(result, curvesOf(result), foundIn(result)),
      runPoint(result, true),
    ]);
  await store.close();
}, 120_000);

/** Only these programs are on PATH, so the machine's Grafana and Docker are hidden. */
function start(
  args: readonly string[],
  grafana: FakeGrafana | null,
  env: Readonly<Record<string, string>> = {},
) {
  return startCommand(['grafana', ...args], {
    ...home.env,
    ...(grafana && { GRAFANA_HOME: grafana.home }),
    ...env,
  });
}

async function announced(command: ScenarioRun) {
  await vi.waitFor(
    () => {
      if (command.hasEnded()) throw new Error(command.stderr());
      expect(command.stdout()).toContain('Ctrl-C ends it.');
    },
    { timeout: 30_000, interval: 50 },
  );
}

it('shows the newest run at a free port, and ends everything on Ctrl-C', async () => {
  // The port is now in use in any case.
  const squatter = createServer().on('error', () => undefined);
  squatter.listen(3000, '127.0.0.1');
  await Promise.race(['listening', 'error'].map((event) => once(squatter, event))).catch(() => {});
  onTestFinished(() => void squatter.close());
  const grafana = fakeGrafana();
  const command = start([], grafana, { GF_SERVER_HTTP_ADDR: '0.0.0.0' });
  await announced(command);

  const [origin = '', port] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(command.stdout()) ?? [];
  expect(Number(port)).toBeGreaterThan(3000);
  const [taken, address, , , , admin] = command.stdout().split('\n');
  expect(taken).toBe(`Port 3000 is taken, this is ${port}.`);
  expect(address).toBe(
    `Grafana: ${origin}/d/bakeoff-comparison?var-scenario=nginx-open-file-cache&var-run=${shown.run}&from=${Date.parse(shown.startedAt)}&to=${Date.parse(shown.endedAt)}`,
  );
  const passwordFile = join(home.folder, 'grafana/data/admin-password');
  const logIn = `  Log in as admin with ${readFileSync(passwordFile, 'utf8')} (kept in ${passwordFile})`;
  expect(admin).toBe(logIn);
  expect((await fetch(`${origin}/api/health`)).status).toBe(200);

  const { env, cpus, pid } = grafana.started();
  expect(Object.keys(env).filter((name) => name.startsWith('GF_'))).toEqual([]);
  expect(cpus).not.toBe(
    /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1],
  );

  // All of its threads have lower priority than a run's.
  expect(
    new Set(readdirSync(`/proc/${pid}/task`).map((thread) => getPriority(Number(thread)))),
  ).toEqual(new Set([19]));
  const session = `/proc/${pid}/autogroup`;
  expect(existsSync(session) ? readFileSync(session, 'utf8') : '').toMatch(/^$| nice 19$/m);

  // The provisioned data source is the started InfluxDB, with these runs.
  interface Source {
    url: string;
    basicAuthUser: string;
    jsonData: { dbName: string };
    secureJsonData: { basicAuthPassword: string };
  }
  const provisioned = join(home.folder, 'grafana/provisioning/datasources/bakeoff.yaml');
  const {
    datasources: [source],
  } = parse(readFileSync(provisioned, 'utf8')) as { datasources: [Source] };
  const query = `${source.url}/query?${new URLSearchParams({ db: source.jsonData.dbName, q: 'SELECT "run" FROM (SELECT "run", "title" FROM "bench_run")' })}`;
  expect((await fetch(query)).status).toBe(401);
  const answer = await fetch(query, {
    headers: {
      Authorization: `Basic ${btoa(`${source.basicAuthUser}:${source.secureJsonData.basicAuthPassword}`)}`,
    },
  });
  expect(await answer.text()).toContain(shown.run);

  command.kill('SIGINT');
  expect(await command.ended).toBe(0);
  expect(isRunning(pid)).toBe(false);
  await expect(fetch(`${source.url}/ping`)).rejects.toThrow();

  const again = start([], grafana);
  await announced(again);
  expect(again.stdout()).toContain(logIn);
  again.kill('SIGTERM');
  expect(await again.ended).toBe(0);
});

it('ends at the first Ctrl-C even while influxd starts', async () => {
  const folder = newFolder();
  const [influxd, pidFile] = [join(folder, 'influxd'), join(folder, 'pid')];
  writeFileSync(
    influxd,
    `#!/bin/sh\n[ "$1" = run ] || exec '${home.env['INFLUXD_BIN']}' "$@"\necho $$ >'${pidFile}.new' && mv '${pidFile}.new' '${pidFile}'\nexec sleep 1000\n`,
    { mode: 0o755 },
  );
  const command = start([], fakeGrafana(), { BAKEOFF_HOME: folder, INFLUXD_BIN: influxd });
  const waits = { timeout: 30_000, interval: 50 };
  await vi.waitFor(() => expect(existsSync(pidFile)).toBe(true), waits);
  command.kill('SIGINT');
  await vi.waitFor(() => expect(command.hasEnded()).toBe(true), waits);
  expect(await command.ended).toBe(130);
  expect(isRunning(Number(readFileSync(pidFile, 'utf8')))).toBe(false);
});

it('continues after a run, runs once per folder, and ends with Grafana', async () => {
  const grafana = fakeGrafana();
  const command = start([], grafana);
  const run = await storeOf(home);
  await announced(command);
  const { url } = run.influx;
  await run.close();
  await vi.waitFor(async () => expect((await fetch(`${url}/ping`)).status).toBe(204), {
    timeout: 15_000,
    interval: 100,
  });
  expect(command.hasEnded()).toBe(false);

  const second = start([], fakeGrafana());
  expect(await second.ended).toBe(1);
  expect(lastLine(second)).toBe(
    `Grafana runs in ${join(home.folder, 'grafana')} already (process ${command.pid}): look there, or end it`,
  );
  // The same check as in `npm run clean`.
  expect(await lockFile(join(home.folder, 'grafana/lock'))).toBeNull();

  process.kill(grafana.started().pid, 'SIGKILL');
  expect(await command.ended).toBe(1);
  expect(lastLine(command)).toMatch(/^Grafana has ended: /);
});

it('reports in one line that Grafana does not start', async () => {
  const failing = start([], fakeGrafana(), { FAKE_GRAFANA: 'fails' });
  expect(await failing.ended).toBe(1);
  expect(lastLine(failing)).toMatch(
    /^Grafana does not start: .*"database is locked" \(its log: \S+\/grafana\.log\)$/,
  );
});

it("names no other server at Grafana's port", async () => {
  const grafana = fakeGrafana();
  const command = start([], grafana, { FAKE_GRAFANA: 'late' });
  const { args } = await vi.waitFor(grafana.started, { timeout: 30_000, interval: 20 });
  const [, port] =
    /^http_port = (\d+)$/m.exec(
      readFileSync(args[args.indexOf('--config') + 1] as string, 'utf8'),
    ) ?? expect.fail();
  const other = createHttpServer((_, response) => void response.end('{"database":"ok"}'));
  other.listen(Number(port), '127.0.0.1');
  onTestFinished(() => void other.close());
  expect(await command.ended).toBe(1);
  expect(lastLine(command)).toMatch(/^Grafana does not start: .*EADDRINUSE/);
  expect(command.stdout()).not.toContain('Log in');
});

it.skipIf(hasGrafana)('runs the image of the compose file if Docker works', async () => {
  const grafana = fakeGrafana();
  const folder = join(grafana.home, 'path');
  mkdirSync(folder);
  // Flags for Docker, the image, and arguments for Grafana.
  writeFileSync(
    join(folder, 'docker'),
    `#!/bin/sh
[ "$1" = info ] && exit 0
echo "$@" >'${grafana.home}/docker-args'
while [ "\${1#grafana/}" = "$1" ]; do shift; done
[ "$2 $3 $4 $5" = "server --homepath /usr/share/grafana --config" ] || exit 1
exec '${grafana.home}/bin/grafana' server --homepath '${grafana.home}' --config "$6"
`,
    { mode: 0o755 },
  );
  const command = start([], null, { PATH: `${folder}:${process.env['PATH']}`, GRAFANA_HOME: '' });
  await announced(command);
  const given = readFileSync(join(grafana.home, 'docker-args'), 'utf8');
  const files = join(home.folder, 'grafana');
  expect(given).toMatch(/^run --rm --init .* --network=host --cpuset-cpus=[\d,]+ --user=\d+:\d+ /);
  expect(given).toContain(
    ` --volume=${files}:${files} --volume=${projectRoot}/dashboards:${projectRoot}/dashboards:ro `,
  );
  expect(given).toMatch(/ grafana\/grafana:\d+\.\d+\.\d+ server /);
  command.kill('SIGINT');
  expect(await command.ended).toBe(0);
  expect(isRunning(grafana.started().pid)).toBe(false);
});

it('refuses unknown arguments, and a folder without Grafana', async () => {
  const commands = [
    start(['aa'], null),
    start(['--inflix', 'x'], null),
    start([], null, { GRAFANA_HOME: home.folder }),
  ];
  expect(await Promise.all(commands.map(({ ended }) => ended))).toEqual([2, 2, 1]);
  expect(commands.map((command) => command.stderr().trim())).toEqual([
    expect.stringMatching(/^grafana takes no name, and got aa: /),
    expect.stringMatching(/--inflix.*--influx/),
    expect.stringMatching(/^GRAFANA_HOME=\S+ has no Grafana in it /),
  ]);
});

function lastLine(command: ScenarioRun) {
  return command.stderr().trim().split('\n').at(-1);
}
