// Every dashboard for every scenario that it offers, in a real Grafana and a browser. Only with GRAFANA_HOME.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dashboardNames, type DashboardName } from '../../dashboards/names.ts';
import { dashboardUrl } from '../../lib/cli/grafana.ts';
import { findGrafana, startGrafana, type RunningGrafana } from '../../lib/grafana/start.ts';
import type { Result } from '../../lib/result/result.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { bakeoffFolder } from '../../lib/setup/paths.ts';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { findChromium, startChromium } from '../browser.ts';
import { DashboardDatabase, dashboardOf } from '../dashboard-database.ts';
import { expectedPanels, heightOf, openRows, problemsOn } from '../dashboard-page.ts';
import { shippedScenarios } from '../fixtures/h2-result.ts';
import { searchRun, sweepRun, type Written } from '../fixtures/rates.ts';
import { madeUpRun, storeResult } from '../made-up-runs.ts';

const chromium = await findChromium();
const missing =
  (process.env['GRAFANA_HOME'] ?? '') === ''
    ? 'GRAFANA_HOME is not set'
    : chromium === undefined
      ? 'there is no chromium on PATH and none in CHROMIUM_BIN'
      : undefined;
if (missing !== undefined) console.warn(`SKIPPED: the dashboards in a real Grafana: ${missing}`);

/** Kept, to be looked at. */
const screenshots = join(bakeoffFolder, 'screenshots');

describe.skipIf(missing !== undefined)('in a real Grafana', () => {
  let database: DashboardDatabase;
  let grafana: RunningGrafana;
  let browser: Browser;
  let folder: string;
  const results: Result[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bakeoff-grafana-'));
    mkdirSync(screenshots, { recursive: true });
    database = await DashboardDatabase.open();
    for (const [index, scenario] of (await shippedScenarios()).entries()) {
      results.push(
        await storeResult(
          database.store,
          await madeUpRun(scenario, Date.now() - 3_600_000 - 600_000 * index),
        ),
      );
    }
    // Latency by rate is what other runs have none of.
    for (const [index, { written }] of [
      await searchRun(Date.now() - 400_000, 4),
      await sweepRun(Date.now() - 200_000, [1000, 2000, 5000]),
    ].entries()) {
      results.push(
        await storeResult(database.store, {
          ...(written.at(-1) as Written).result,
          scenario: index === 0 ? 'a-search' : 'a-sweep',
        }),
      );
    }
    // The live dashboard has what was measured second by second, and of these the Comparison has a line over time.
    results.push(
      await database.run(['nginx-open-file-cache', '--rounds', '2', '--duration', '3s']),
      await database.run(['h2o-vs-nginx-h2-rate', '--rounds', '2', '--duration', '3s']),
    );
    const machine = thisMachine();
    grafana = await startGrafana({
      program: await findGrafana(machine),
      influx: database.store.influx,
      folder,
      cpus: cpusOf(readProcessors().cores),
      env: machine.env,
      signal: AbortSignal.timeout(240_000),
    });
    browser = await startChromium(chromium ?? '');
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await grafana?.stop();
    await database?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(Object.keys(dashboardNames) as DashboardName[])(
    'shows %s for every scenario that it offers: each panel what the database holds for it, or why that is nothing',
    async (name) => {
      const page = await loggedIn(grafana);
      const isOffered = await Promise.all(
        results.map(async (one) => (await database.choices(name, 'run', one)).includes(one.run)),
      );
      // The newest of each scenario: of one that was really run it is that run.
      const offered = [
        ...new Map(
          results.filter((_, index) => isOffered[index]).map((one) => [one.scenario, one]),
        ).values(),
      ];
      expect(offered).not.toEqual([]);
      for (const result of offered) {
        await showsAll(page, grafana, name, result, `${name}-${result.scenario}`);
      }
      const result = offered.at(-1) as Result;
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.reload();
      await openRows(page, name);
      await hasNoProblems(page, await expectedPanels(database, name, result), `${name}-dark`);
      await page.close();
    },
    600_000,
  );

  it('says of Live run that nothing is there, and no error of its own, where nothing was measured', async () => {
    const page = await loggedIn(grafana);
    const { run, scenario } = results.at(-1) as Result;
    await page.goto(
      dashboardUrl(grafana.origin, 'live', { run, scenario, startedMs: 0, endedMs: 600_000 }),
    );
    // Of a heatmap Grafana says it in words of its own.
    await expect
      .poll(
        async () => [
          await page.getByText('No data', { exact: true }).count(),
          (await page.getByText(/^Nothing was measured/).count()) > 1,
        ],
        { timeout: 30_000 },
      )
      .toEqual([1, true]);
    expect(await page.getByText(/TypeError/).count()).toBe(0);
    await page.close();
  }, 120_000);

  it('imports all four where the InfluxDB has another name, and shows the same', async () => {
    const own = join(folder, 'own');
    const program = await findGrafana(thisMachine());
    if (program.kind !== 'native')
      throw new Error('GRAFANA_HOME has no Grafana that is started from there');
    // Nothing that bakeoff writes for a Grafana of its own: no data source, no dashboards.
    const other = await startGrafana({
      program: {
        ...program,
        command: 'env',
        args: [`GF_PATHS_PROVISIONING=${join(own, 'nothing')}`, program.command, ...program.args],
      },
      influx: database.store.influx,
      folder: own,
      cpus: cpusOf(readProcessors().cores),
      env: process.env,
      signal: AbortSignal.timeout(240_000),
    });
    const page = await loggedIn(other);
    try {
      const post = async (path: string, data: object): Promise<number> =>
        (await page.request.post(`${other.origin}/api/${path}`, { data })).status();
      const { url, database: dbName, credentials } = database.store.influx;
      expect(
        await post('datasources', {
          name: 'Measurements',
          type: 'influxdb',
          access: 'proxy',
          url,
          jsonData: { dbName, httpMode: 'POST', version: 'InfluxQL' },
          ...(credentials && {
            basicAuth: true,
            basicAuthUser: credentials.user,
            secureJsonData: { basicAuthPassword: credentials.password },
          }),
        }),
      ).toBe(200);
      for (const name of Object.keys(dashboardNames) as DashboardName[]) {
        expect([
          name,
          await post('dashboards/import', {
            dashboard: dashboardOf(name),
            overwrite: false,
            inputs: [],
            folderUid: '',
          }),
        ]).toEqual([name, 200]);
        await showsAll(page, other, name, results.at(-1) as Result, `${name}-imported`);
      }
    } finally {
      await page.close();
      await other.stop();
    }
  }, 600_000);

  async function loggedIn({ origin, files: { password } }: RunningGrafana): Promise<Page> {
    const page = await browser.newPage({
      colorScheme: 'light',
      viewport: { width: 1680, height: 1000 },
    });
    await page.request.post(`${origin}/login`, { data: { user: 'admin', password } });
    return page;
  }

  async function showsAll(
    page: Page,
    { origin }: RunningGrafana,
    name: DashboardName,
    result: Result,
    picture: string,
  ): Promise<void> {
    const { run, scenario, startedAt, endedAt } = result;
    const expected = await expectedPanels(database, name, result);
    // Tables have all columns in sight beside Grafana's menu: some versions draw no others.
    await page.setViewportSize({ width: 1680, height: heightOf(name, expected) });
    const [startedMs, endedMs] = [Date.parse(startedAt), Date.parse(endedAt)];
    await page.goto(dashboardUrl(origin, name, { run, scenario, startedMs, endedMs }));
    await openRows(page, name);
    await hasNoProblems(page, expected, picture);
  }

  /** Waits until all is there, and takes the picture in any case. */
  async function hasNoProblems(
    page: Page,
    expected: Awaited<ReturnType<typeof expectedPanels>>,
    picture: string,
  ): Promise<void> {
    try {
      await expect
        .poll(() => problemsOn(page, expected), { timeout: 30_000, message: picture })
        .toEqual([]);
    } finally {
      // Not the full page, which would be drawn anew for it: all of it is in sight. What fades in is there at once.
      await page.screenshot({ path: join(screenshots, `${picture}.png`), animations: 'disabled' });
    }
  }
});
