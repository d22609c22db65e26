// Pages in a real browser: the plots match the result, in both colour schemes, at any width.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { additions } from '../../lib/cli/main.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import type { Result } from '../../lib/result/result.ts';
import { findChromium, startChromium } from '../browser.ts';
import { h2Result, shippedScenario } from '../fixtures/h2-result.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { openFileCache, result, withPages, workers } from '../fixtures/result.ts';

const chromium = await findChromium();
if (chromium === undefined)
  console.warn('SKIPPED: no chromium on PATH and none in CHROMIUM_BIN: pages are not opened');

let browser: Browser | undefined;
beforeAll(async () => {
  if (chromium !== undefined) browser = await startChromium(chromium);
});
afterAll(() => browser?.close());

/** Opens the page of a result. Console output or a request fails the test. */
async function open(of: Result, options: BrowserContextOptions = {}) {
  if (browser === undefined) throw new Error('there is no browser');
  const file = join(newFolder(), 'report.html');
  writeFileSync(file, await htmlReport(of, additions.contributionsTo(of), []));
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const messages: string[] = [];
  const page = await context.newPage();
  page.on('console', (message) => messages.push(message.text()));
  page.on('pageerror', (error) => messages.push(error.message));
  page.on('request', (request) => {
    if (request.url() !== pathToFileURL(file).href && !request.url().startsWith('data:'))
      messages.push(request.url());
  });
  onTestFinished(async () => {
    await context.close();
    expect(messages).toEqual([]);
  });
  await page.goto(pathToFileURL(file).href, { waitUntil: 'load' });
  return page;
}

function marks(
  page: Page,
  plot: string | RegExp,
  name: string,
  attribute = 'd',
): Promise<{ title: string; attribute: string }[]> {
  const shapes = page
    .locator('figure', { has: page.getByRole('heading', { name: plot }) })
    .locator(`svg [class~="${name}"] > *`);
  return shapes.evaluateAll(
    (elements, wanted) =>
      elements.map((element) => ({
        title: element.querySelector('title')?.textContent ?? '',
        attribute: element.getAttribute(wanted) ?? '',
      })),
    attribute,
  );
}

/** Runs in the page: returns labels of horizontal axes that touch the previous label. */
const crowded = `[...document.querySelectorAll('[aria-label="x-axis tick label"]')].flatMap((axis) => {
  const labels = [...axis.querySelectorAll('text')].map((label) => ({ text: label.textContent, ...label.getBoundingClientRect().toJSON() }));
  return labels.filter(({ left }, index) => index > 0 && left < labels[index - 1].right + 2).map(({ text }) => text);
})`;

async function narrow(page: Page) {
  await page.setViewportSize({ width: 400, height: 800 });
  await expect
    .poll(() => page.locator('.plot > svg').last().getAttribute('width').then(Number))
    .toBeLessThan(400);
  const sideways = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  expect(await page.evaluate(sideways)).toBe(false);
  expect(await page.evaluate(crowded)).toEqual([]);
}

const inBrowser = test.skipIf(chromium === undefined);

inBrowser('a comparison: rounds and percentiles', async () => {
  const page = await open(result([workers, openFileCache]));

  const sides = await marks(page, 'Round by round', 'mark', 'transform');
  expect(sides).toHaveLength(12);
  // Larger values are higher up.
  const places = sides
    .map(({ title, attribute }) => ({
      value: Number(title.split(': ')[1]?.replaceAll(',', '')),
      y: Number(/,([\d.]+)\)/.exec(attribute)?.[1]),
    }))
    .sort((a, b) => b.value - a.value)
    .map(({ y }) => y);
  expect(places).toEqual([...places].sort((a, b) => a - b));

  const titles = (await marks(page, 'Latency by percentile', 'mark')).map((mark) => mark.title);
  for (const text of ['50 %: 1.6 ms', '99 %: 2.13 ms', 'max: 8.4 ms'])
    expect(titles).toContain(`workers, ${text}`);
  await narrow(page);
});

inBrowser('a histogram: in both colour schemes, by keyboard and without its script', async () => {
  const ends = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5, null];
  const buckets = ends.map((toMs, index) => ({ fromMs: ends[index - 1] ?? 0, toMs, count: index }));
  const rate = await h2Result('h2o-vs-nginx-h2-rate', {
    nginx: { rps: [1000], phases: [{ buckets }] },
    h2o: { rps: [1000] },
  });
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await open(rate, { colorScheme });
    const bars = await marks(page, /^Answers by latency/, 'bar', 'width');
    const shown = bars.filter(({ title }) => title.includes(', here: '));
    const shares = rate.variants[0]?.phases[0]?.buckets?.map(({ share }) => share) ?? [];
    expect(shown.slice(0, 10).map(({ title }) => title.split(': ')[1])).toEqual(
      shares.map((share) => `${(share * 100).toFixed(2)} %`),
    );
    const [fourth, tenth] = [shown[3], shown[9]].map((bar) => Number(bar?.attribute));
    expect((tenth ?? NaN) / (fourth ?? NaN)).toBeCloseTo(3, 1);
    const [ground = '', ink = ''] = await page.evaluate<string[]>(
      '[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]',
    );
    const light = (colour: string) => Number(/\d+/.exec(colour)?.[0]);
    expect(light(ground) > light(ink)).toBe(colorScheme === 'light');
    await narrow(page);
    await page.locator('summary').first().focus();
    await page.keyboard.press('Enter');
    expect(await page.locator('details').first().getAttribute('open')).toBe('');
  }
  const plain = await open(rate, { javaScriptEnabled: false });
  expect(await plain.locator('noscript').isVisible()).toBe(true);
  expect(await plain.locator('table').first().innerText()).toContain('nginx');
});

inBrowser('pages of a mix, sorted by a click on a title', async () => {
  const times = { '/': 0.1, '/b': 0.2, '/a': 0.3 };
  const page = await open(
    result([
      withPages(workers, times),
      withPages(openFileCache, { '/': 0.12, '/b': 0.6, '/a': 0.2 }),
    ]),
  );
  const table = page.getByRole('region', { name: 'By page' });
  const names = () => table.locator('tbody th').allTextContents();
  const sortBy = async (title: string | RegExp) => {
    await table.getByRole('button', { name: title }).click();
    return names();
  };
  expect(await names()).toEqual(['/', '/b', '/a']);
  expect(await sortBy(/^open-file-cache alone/)).toEqual(['/b', '/', '/a']);
  expect(await sortBy(/^open-file-cache alone/)).toEqual(['/a', '/', '/b']);
  expect(await sortBy('page')).toEqual(['/', '/a', '/b']);
  expect(await sortBy('share')).toEqual(['/', '/b', '/a']);
  await narrow(page);
});

inBrowser('latency by rate', async () => {
  const step = { round: 1, made: 1, kept: true, why: '', latencyMs: { p50: 1, p90: 2, p99: 4 } };
  const steps = [1000, 2000].flatMap((rate) =>
    ['workers', 'open-file-cache'].map((variant) => ({ ...step, rate, variant })),
  );
  const curve = await open(
    result([workers, openFileCache], {
      search: { within: { metric: 'p99', ms: 5 }, found: [], steps },
    }),
  );
  const shown = await marks(curve, 'Latency by rate', 'mark');
  expect(shown.map(({ title }) => title)).toContain(
    'workers, 1,000 requests/s: p50 1.00 ms, p90 2.00 ms, p99 4.00 ms',
  );
  expect(shown).toHaveLength(4);
  await narrow(curve);
});

/** Made-up rounds of every variant, none like another's. */
async function wholeTable(scenario: string, fastest = 20_000): Promise<Result> {
  const { variants } = await shippedScenario(scenario);
  const off = [0.93, 1.08, 0.97, 1.02, 1.05, 0.95];
  const figures = variants.map(({ name }, index) => {
    const rps = off.map((factor, at) => fastest * (1 + index / 7) * factor ** (1 + at / 7));
    return [name, { rps }];
  });
  return h2Result(scenario, Object.fromEntries(figures));
}

/** The table on a page for a wide screen, and how much of it is out of sight. */
async function wideTable(of: Result) {
  const page = await open(of, { viewport: { width: 1320, height: 900 } });
  const table = page.getByRole('region', { name: 'the table' }).first();
  const beyond = await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
  return { table, beyond };
}

inBrowser('the table of a ladder is no wider than the page', async () => {
  const { table, beyond } = await wideTable(await wholeTable('h2o-vs-nginx'));
  expect(await table.locator('tbody tr').count()).toBe(7);
  expect(await table.textContent()).toMatch(/\[.*\].*\(against h2o-initial\)/);
  expect(beyond).toBeLessThanOrEqual(0);
});

inBrowser('the table of two protocols is no wider than the page', async () => {
  const { table, beyond } = await wideTable(await wholeTable('http1-vs-h2-small-file', 200_000));
  expect(await table.textContent()).toMatch(/headers kB.*headers kB/);
  expect(beyond).toBeLessThanOrEqual(0);
});
