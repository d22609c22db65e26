// Every dashboard in a real Grafana and a browser; requires GRAFANA_HOME.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dashboardNames, type DashboardName } from '../../dashboards/names.ts';
import { dashboardUrl } from '../../lib/features/influxdb/grafana/command.ts';
import {
  findGrafana,
  startGrafana,
  type RunningGrafana,
} from '../../lib/features/influxdb/grafana/start.ts';
import type { Result } from '../../lib/result/result.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { bakeoffFolder } from '../../lib/setup/paths.ts';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { findChromium, startChromium } from '../browser.ts';
import { DashboardDatabase, dashboardOf } from '../dashboard-database.ts';
import { shippedScenario } from '../fixtures/h2-result.ts';
import { searchRun, type Written } from '../fixtures/rates.ts';
import { isRow, panelsOf } from '../grafana.ts';
import { madeUpRun, storeResult } from '../made-up-runs.ts';

const chromium = await findChromium();
let missing: string | undefined;
if (chromium === undefined) missing = 'there is no chromium on PATH and none in CHROMIUM_BIN';
if ((process.env['GRAFANA_HOME'] ?? '') === '') missing = 'GRAFANA_HOME is not set';
if (missing !== undefined) console.warn(`SKIPPED: the dashboards in a real Grafana: ${missing}`);

/** Screenshots are kept for inspection. */
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
    const delayed = await shippedScenario('nginx-tuning-under-delay');
    const { written } = await searchRun(Date.now() - 400_000, 4);
    for (const result of [
      await madeUpRun(delayed, Date.now() - 3_600_000),
      { ...(written.at(-1) as Written).result, scenario: 'a-search' },
    ])
      results.push(await storeResult(database.store, result));
    // Runs with samples per second appear in Live, and with a line over time in Comparison.
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

  const names = Object.keys(dashboardNames) as DashboardName[];
  it.each(names)(
    'shows %s for every run in the picker',
    async (name) => {
      const page = await loggedIn(grafana);
      let shown = 0;
      for (const result of results) {
        if (name === 'articles' && result.article === undefined) continue;
        if ((await database.choices(name, 'run', result)).includes(result.run)) {
          shown++;
          await showsAll(page, grafana, name, result, `${name}-${result.scenario}`);
        }
      }
      expect(shown).toBeGreaterThan(0);
      await page.close();
    },
    600_000,
  );

  async function loggedIn({ origin, files: { password } }: RunningGrafana) {
    const page = await browser.newPage({
      colorScheme: 'light',
      viewport: { width: 1680, height: 1000 },
    });
    await page.request.post(`${origin}/login`, { data: { user: 'admin', password } });
    return page;
  }

  /** Waits until all panels are loaded; takes the screenshot in any case. */
  async function showsAll(
    page: Page,
    { origin }: RunningGrafana,
    name: DashboardName,
    result: Result,
    picture: string,
  ) {
    const { article, run, scenario, startedAt, endedAt } = result;
    const { panels } = dashboardOf(name);
    const empty = await database.emptyPanels(name, result);
    // Grafana loads visible panels only. A grid row is 38 pixels high.
    const lines = panels
      .flatMap((panel) => (isRow(panel) ? [panel, ...panel.panels] : [panel]))
      .reduce((sum, { gridPos }) => sum + gridPos.h, 12);
    await page.setViewportSize({ width: 1680, height: 38 * lines });
    const [startedMs, endedMs] = [Date.parse(startedAt), Date.parse(endedAt)];
    const url = dashboardUrl(origin, name, { run, scenario, startedMs, endedMs });
    await page.goto(article === undefined ? url : `${url}&var-article=${article.id}`);
    for (const row of panels.filter(isRow).filter(({ collapsed }) => collapsed))
      await page.getByText(row.title, { exact: true }).click();
    const countOf = (id: string) =>
      page.locator(`[data-testid="data-testid ${id}"], [aria-label="${id}"]`).count();
    const headers = page.locator('section[data-testid^="data-testid Panel header "]');
    try {
      await expect
        .poll(
          async () => ({
            errors: (await countOf('Panel status error')) + (await countOf('Alert error')),
            allThere: (await headers.count()) >= panelsOf(dashboardOf(name)).length,
            wronglyEmpty: (await countOf('Panel data error message')) > empty.length,
          }),
          { timeout: 30_000, message: picture },
        )
        .toEqual({ errors: 0, allThere: true, wronglyEmpty: false });
    } finally {
      // Not a full-page screenshot, which would redraw the page. Without animations, everything is drawn at once.
      await page.screenshot({ path: join(screenshots, `${picture}.png`), animations: 'disabled' });
    }
  }
});
