// The pages of real runs, opened in a real browser: what is drawn is what result.json says.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { findChromium, startChromium } from '../browser.ts';
import {
  newOut,
  readResult,
  runFolder,
  startCommand,
  startScenario,
  useHome,
} from '../scenario-run.ts';

const chromium = await findChromium();
if (chromium === undefined)
  console.warn(
    'SKIPPED: the report in a browser: there is no chromium on PATH and none in CHROMIUM_BIN',
  );

const home = useHome(['k6', 'nginx', 'h2o']);
let browser: Browser | undefined;
beforeAll(async () => {
  if (chromium !== undefined) browser = await startChromium(chromium);
});
afterAll(() => browser?.close());

/** Runs a scenario and returns its result and the path of its page. */
async function runOf(
  args: readonly string[],
): Promise<{ result: Result; file: string; folder: string }> {
  const out = newOut();
  const run = startScenario([...args, '--store', 'none', '--out', out], home.env);
  expect(await run.ended, run.stderr()).toBe(0);
  const folder = runFolder(out);
  const file = join(folder, 'report.html');
  expect(run.stdout().trimEnd().split('\n').at(-1)).toBe(
    `Not stored in InfluxDB (--store none) · ${file}`,
  );
  return { result: readResult(out), file, folder };
}

/** Opens a page; whatever it says to its console, or asks for, fails the test at its end. */
async function open(file: string, options: BrowserContextOptions = {}): Promise<Page> {
  if (browser === undefined) throw new Error('there is no browser');
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const said: string[] = [];
  const page = await context.newPage();
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('request', (request) => {
    if (request.url() !== pathToFileURL(file).href && !request.url().startsWith('data:'))
      said.push(request.url());
  });
  onTestFinished(async () => {
    await context.close();
    expect(said).toEqual([]);
  });
  await page.goto(pathToFileURL(file).href, { waitUntil: 'load' });
  return page;
}

/** The marks of a class in the plot with that title: their own titles, and one of their attributes. */
async function marks(
  page: Page,
  plot: string | RegExp,
  name: string,
  attribute = 'd',
): Promise<{ title: string; attribute: string }[]> {
  const found = page
    .locator('figure', { has: page.getByRole('heading', { name: plot }) })
    .locator(`svg [class~="${name}"] > *`);
  return found.evaluateAll(
    (elements, wanted) =>
      elements.map((element) => ({
        title: element.querySelector('title')?.textContent ?? '',
        attribute: element.getAttribute(wanted) ?? '',
      })),
    attribute,
  );
}

const widthsOf = (bars: readonly { attribute: string }[]): number[] =>
  bars.map(({ attribute }) => Number(attribute));
/** In the page: labels of horizontal axes that touch the ones before them. */
const crowded = `[...document.querySelectorAll('[aria-label="x-axis tick label"]')].flatMap((axis) => {
  const labels = [...axis.querySelectorAll('text')].map((label) => ({ text: label.textContent, ...label.getBoundingClientRect().toJSON() }));
  return labels.filter(({ left }, index) => index > 0 && left < labels[index - 1].right + 2).map(({ text }) => text);
})`;
const sideways = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');

describe.skipIf(chromium === undefined)('in a browser', () => {
  test('a comparison: headline, bars, intervals, rounds and percentiles are those of result.json', async () => {
    const scenario = join(home.folder, 'short-rounds.mts');
    writeFileSync(
      scenario,
      `
      import { defineScenario, nginx, wrk } from ${JSON.stringify(join(projectRoot, 'lib/scenario/index.ts'))};
      export default defineScenario({
        name: 'short-rounds', title: 'short <rounds>', knob: 'open_file_cache',
        load: { ...wrk('-c 10 -t 4 -d 1'), durationSeconds: 0.3, warmupSeconds: 0.1 }, page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
        variants: [
          { name: 'workers', server: nginx(['base'], { workers: 1 }), published: { rps: 1000 } },
          { name: 'open-file-cache', server: nginx(['base', 'open-file-cache'], { workers: 1 }), published: { rps: 1120 } },
        ],
      });`,
    );
    const { result, file, folder } = await runOf([scenario, '--rounds', '4']);
    const [comparison] = result.comparisons;
    if (comparison === undefined) throw new Error('nothing was compared');
    const page = await open(file);

    const bars = await marks(page, /^requests\/s against workers/, 'bar', 'width');
    expect(bars.map(({ title }) => title)).toEqual([
      `open-file-cache, published: ×${comparison.publishedRatio?.toFixed(2)}`,
      `open-file-cache, here: ×${comparison.ratio.toFixed(2)}`,
    ]);
    const [published = NaN, here = NaN] = widthsOf(bars);
    expect(here / published).toBeCloseTo(comparison.ratio / (comparison.publishedRatio ?? NaN), 2);

    expect(
      (await page.locator('h1').innerText()).startsWith(
        comparison.verdict === 'inconclusive' ? 'Not decided' : 'open-file-cache',
      ),
    ).toBe(comparison.verdict !== 'none');
    if (comparison.verdict !== 'none') {
      // Its bar reaches from the middle to the right where it is better, and ends within the interval.
      const [effect, interval, same] = (await page.evaluate<{ left: number; right: number }[]>(
        "['i', 'b', 's'].map((name) => document.querySelector(`.bar ${name}`).getBoundingClientRect().toJSON())",
      )) as [
        { left: number; right: number },
        { left: number; right: number },
        { left: number; right: number },
      ];
      const middle = (same.left + same.right) / 2;
      expect(effect.right - middle > middle - effect.left).toBe(comparison.ratio > 1);
      const end = comparison.ratio > 1 ? effect.right : effect.left;
      expect(end).toBeGreaterThanOrEqual(interval.left);
      expect(end).toBeLessThanOrEqual(interval.right);
    }

    const sides = await marks(page, 'Round by round', 'side', 'transform');
    const values = result.variants.map(({ name, rounds }) =>
      rounds.map(
        ({ round }) =>
          sides.find(({ title }) => title.startsWith(`${name}, round ${round}: `))?.title ?? '',
      ),
    );
    const figure = (title: string): number => Number(title.split(': ')[1]?.replaceAll(',', ''));
    expect(sides).toHaveLength(values.flat().length);
    for (const [index, ratio] of comparison.roundRatios.entries())
      expect(figure(values[1]?.[index] ?? '') / figure(values[0]?.[index] ?? '')).toBeCloseTo(
        ratio,
        3,
      );
    // Where marks stand says the same as their words: what is more is further up.
    const places = sides
      .map(({ title, attribute }) => ({
        value: figure(title),
        y: Number(/,([\d.]+)\)/.exec(attribute)?.[1]),
      }))
      .sort((a, b) => b.value - a.value);
    expect(places.map(({ y }) => y)).toEqual(places.map(({ y }) => y).sort((a, b) => a - b));

    const percentiles = await marks(page, 'Latency by percentile', 'percentile');
    for (const {
      name,
      phases: [phase],
    } of result.variants) {
      for (const [title, key] of [
        ['50 %', 'p50'],
        ['99 %', 'p99'],
        ['max', 'max'],
      ] as const) {
        expect(percentiles.map((one) => one.title)).toContain(
          `${name}, ${title}: ${phase?.latencyMs[key]} ms`,
        );
      }
    }

    expect(await page.locator('ins, del').allTextContents()).toEqual([
      expect.stringMatching(/^\+ http › open_file_cache max=/),
    ]);
    expect(await page.locator('.title').textContent()).toBe(result.title);
    await page.setViewportSize({ width: 400, height: 800 });
    await expect
      .poll(() => page.locator('.plot > svg').last().getAttribute('width').then(Number))
      .toBeLessThan(400);
    expect(await page.evaluate(crowded)).toEqual([]);

    // Made again from the files it is the same.
    const before = readFileSync(file, 'utf8');
    const again = startCommand(['report', folder], home.env);
    expect(await again.ended, again.stderr()).toBe(0);
    expect(again.stdout()).toBe(`${file}\n`);
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(existsSync(`${file}.unfinished`)).toBe(false);
  });

  test('a histogram at a given rate: in both colour schemes, narrow and wide, by keyboard and without its script', async () => {
    const { result, file } = await runOf([
      'h2o-vs-nginx-h2-rate',
      '--rounds',
      '1',
      '--duration',
      '300ms',
    ]);
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open(file, { colorScheme });
      const bars = await marks(page, /^Answers by latency/, 'bar', 'width');
      const shares = result.variants.flatMap(({ phases }) => phases[0]?.buckets ?? []);
      const drawn = bars.filter(({ title }) => title.includes(', here: '));
      expect(drawn.map(({ title }) => title.split(': ')[1])).toEqual(
        shares.map(({ share }) => `${(share * 100).toFixed(2)} %`),
      );
      const [highest = NaN] = widthsOf(bars).toSorted((a, b) => b - a);
      const largest = Math.max(...shares.map(({ share }) => share), ...publishedShares(result));
      for (const [index, width] of widthsOf(drawn).entries())
        expect(width / highest).toBeCloseTo((shares[index]?.share ?? NaN) / largest, 2);
      const [ground = '', ink = ''] = await page.evaluate<string[]>(
        '[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]',
      );
      const light = (colour: string): number => Number(/\d+/.exec(colour)?.[0]);
      expect(light(ground) > light(ink)).toBe(colorScheme === 'light');

      expect(await sideways(page)).toBe(false);
      await page.setViewportSize({ width: 400, height: 800 });
      await expect
        .poll(() => page.locator('.plot > svg').last().getAttribute('width').then(Number))
        .toBeLessThan(400);
      expect(await sideways(page)).toBe(false);
      for (const plot of await page.locator('.plot').all())
        expect((await plot.getAttribute('aria-label'))?.length).toBeGreaterThan(20);
      await page.locator('summary').first().focus();
      await page.keyboard.press('Enter');
      expect(await page.locator('details').first().getAttribute('open')).toBe('');
    }
    const plain = await open(file, { javaScriptEnabled: false });
    expect(await plain.locator('noscript').isVisible()).toBe(true);
    expect(await plain.locator('table').first().innerText()).toContain('nginx');
  });
});

function publishedShares({ variants }: Result): number[] {
  return variants.flatMap(({ published }) => {
    const counts = (published?.buckets ?? []).map(({ count }) => count);
    return counts.map((count) => count / counts.reduce((sum, one) => sum + one, 0));
  });
}
