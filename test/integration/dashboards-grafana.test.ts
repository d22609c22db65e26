// Every dashboard for every scenario that it offers, in a real Grafana and a browser. Only with GRAFANA_HOME.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dashboardNames, type DashboardName } from '../../dashboards/names.ts';
import { dashboardUrl } from '../../lib/grafana/address.ts';
import { findGrafana } from '../../lib/grafana/find.ts';
import { startGrafana, type RunningGrafana } from '../../lib/grafana/start.ts';
import type { Result } from '../../lib/runner/result.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { bakeoffFolder } from '../../lib/setup/paths.ts';
import { allowedCpus } from '../../lib/runner/cores.ts';
import { findChromium, startChromium } from '../browser.ts';
import { DashboardDatabase, dashboardOf } from '../dashboard-database.ts';
import { shippedScenarios } from '../fixtures/h2-result.ts';
import { madeUpRun, storeResult } from '../made-up-runs.ts';
import { isRow, panelsOf } from '../grafana.ts';

const chromium = await findChromium();
const missing = (process.env['GRAFANA_HOME'] ?? '') === '' ? 'GRAFANA_HOME is not set' : chromium === undefined ? 'there is no chromium on PATH and none in CHROMIUM_BIN' : undefined;
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
      results.push(await storeResult(database.store, await madeUpRun(scenario, Date.now() - 3_600_000 - 600_000 * index)));
    }
    // The live dashboard has what was measured second by second, and of these the Comparison has a line over time.
    results.push(await database.run(['nginx-open-file-cache', '--rounds', '2', '--duration', '3s']), await database.run(['h2o-vs-nginx-h2-rate', '--rounds', '2', '--duration', '3s']));
    const machine = thisMachine();
    grafana = await startGrafana({
      program: await findGrafana(machine), influx: database.store.influx, folder, cpus: allowedCpus(), env: machine.env, signal: AbortSignal.timeout(240_000),
    });
    browser = await startChromium(chromium ?? '');
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await grafana?.stop();
    await database?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(Object.keys(dashboardNames) as DashboardName[])('shows %s for every scenario that it offers, without an error or a panel that does not say why it is empty', async (name) => {
    const page = await browser.newPage({ viewport: { width: 1366, height: heightOf(name) }, colorScheme: 'light' });
    const offered = new Set(await database.choices(name, 'scenario', results[0] as Result));
    expect(offered.size).toBeGreaterThan(0);
    for (const scenario of offered) {
      // The newest: of a scenario that was really run it is that run.
      const result = results.findLast((one) => one.scenario === scenario) as Result;
      const { run, startedAt, endedAt } = result;
      await page.goto(dashboardUrl(grafana.origin, name, { run, scenario, startedMs: Date.parse(startedAt), endedMs: Date.parse(endedAt) }));
      const titles = await openRows(page, name);
      await settled(page, titles);
      await page.screenshot({ path: join(screenshots, `${name}-${scenario}.png`), fullPage: true });
      expect({ scenario, problems: await problemsOn(page) }).toEqual({ scenario, problems: [] });
    }
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.reload();
    await settled(page, await openRows(page, name));
    await page.screenshot({ path: join(screenshots, `${name}-dark.png`), fullPage: true });
    await page.close();
  }, 300_000);

  /** Opens the rows that are closed. Returns the titles of panels that have to be there then, but for those with variables in them. */
  async function openRows(page: Page, name: DashboardName): Promise<string[]> {
    for (const row of dashboardOf(name).panels.filter(isRow).filter(({ collapsed }) => collapsed)) {
      await page.getByText(row.title, { exact: true }).click();
    }
    return panelsOf(dashboardOf(name)).map(({ title }) => title).filter((title) => !title.includes('${'));
  }

  /** Waits until every panel is there and none is loading. */
  async function settled(page: Page, titles: readonly string[]): Promise<void> {
    for (const title of titles) await page.getByText(title, { exact: true }).first().waitFor({ timeout: 30_000 });
    await page.waitForLoadState('networkidle', { timeout: 10_000 }).catch(() => {
      // The live dashboard asks each second.
    });
    await expect.poll(() => page.getByLabel('Panel loading bar').count(), { timeout: 30_000 }).toBe(0);
  }

  /** What a person would call broken: errors of panels and of the page, and panels that say no more than "No data". */
  async function problemsOn(page: Page): Promise<string[]> {
    const found = [
      page.locator('[data-testid="data-testid Panel status error"], [data-testid="data-testid Alert error"], [aria-label="Alert error"]'),
      page.getByText('No data', { exact: true }),
    ];
    const elements = (await Promise.all(found.map((locator) => locator.all()))).flat();
    // The panel around it says which it is.
    return Promise.all(elements.map(async (element) => (await element.locator('xpath=ancestor-or-self::section[1]').or(element).first().textContent()) ?? ''));
  }
});

/** High enough that no panel is left out for not being in sight: a line of Grafana's grid takes 38 pixels, and rows open. */
function heightOf(name: DashboardName): number {
  const lines = panelsOf(dashboardOf(name)).reduce((sum, { gridPos }) => sum + gridPos.h, 0);
  return 38 * (lines + 30);
}
