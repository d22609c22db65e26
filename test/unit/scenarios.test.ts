import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { fitVariantLoad, isRunnable, loadOf, loadScenarios } from '../../lib/scenario/catalogue.ts';
import type { Published } from '../../lib/scenario/model.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

const scenarios = await loadScenarios();
const ladder = scenarios.filter((scenario) => scenario.article?.id === '000');
const article = publishedFigures(path.join(projectRoot, 'test/fixtures/article-000.md'));

test('these are shipped, in the order of their names', () => {
  expect(scenarios.map((scenario) => scenario.name)).toEqual([
    'h2-stream-sweep', 'h2o-vs-nginx-h2', 'h2o-vs-nginx-h2-rate', 'http1-vs-h2-small-file', 'nghttpd-img', 'nghttpd-index',
    'nginx-accept-mutex-delay', 'nginx-open-file-cache', 'nginx-tcp-nopush',
  ]);
});

describe.each(scenarios.map((scenario) => [scenario.name, scenario] as const))('%s', (name, scenario) => {
  test('has the name of its file', async () => {
    expect((await stat(path.join(projectRoot, 'scenarios', `${name}.ts`))).isFile()).toBe(true);
  });

  test('is one line of the list', () => {
    expect(scenario.title).toMatch(/^.{20,110}$/);
  });

  test('says what it adds to the article', () => {
    for (const { published, note, name: variant } of scenario.variants) if (published === undefined) expect.soft(note, variant).toMatch(/article/);
  });

  test('asks for a page of the length it names', async () => {
    const { docroot, path: url, bodyBytes } = scenario.page;
    expect({ nginx: 612, h2o: 177, small: 21, images: 525_304 }[docroot]).toBe(bodyBytes);
    // Not shipped, but generated to that length.
    if (docroot === 'images') return;
    const file = path.join(projectRoot, 'server-configs/www', docroot, url.endsWith('/') ? 'index.html' : url);
    expect((await stat(file)).size).toBe(bodyBytes);
  });

  test('names configs that are there', async () => {
    for (const { server } of scenario.variants.filter(isRunnable)) {
      for (const config of server.config) await stat(path.join(projectRoot, 'server-configs', server.name, `${config}.conf`));
    }
  });

  test('fits this machine: threads for its cores; connections, streams and rate as published', () => {
    for (const variant of scenario.variants) {
      const profile = loadOf(scenario, variant);
      for (const quick of [false, true]) {
        const load = fitVariantLoad(scenario, variant, { generatorCores: 2, exact: false, quick });
        expect(load).toMatchObject({ protocol: profile.protocol, connections: profile.connections, streams: profile.streams ?? 1 });
        expect(load.threads).toBe(Math.min(2, profile.threads));
        expect(load.rate).toBe(profile.rate);
        if (profile.requests === undefined) {
          expect(load).toMatchObject(quick ? { durationSeconds: 2, warmupSeconds: 0.5 } : { durationSeconds: profile.durationSeconds, warmupSeconds: 1 });
        } else {
          expect(load.requests).toBe(quick ? { 'h2-stream-sweep': 40_000, 'http1-vs-h2-small-file': 40_000, 'h2o-vs-nginx-h2-rate': 2000 }[name] ?? 10_000 : profile.requests);
        }
      }
      expect(fitVariantLoad(scenario, variant, { generatorCores: 2, exact: true })).toMatchObject({ threads: profile.threads });
      const timed = fitVariantLoad(scenario, variant, { generatorCores: 2, exact: false, durationSeconds: 3 });
      if (profile.rate === undefined) expect(timed).toMatchObject({ durationSeconds: 3 });
      else expect(timed).toMatchObject({ requests: profile.rate * 3, rate: profile.rate });
    }
  });
});

describe.each(ladder.map((scenario) => [scenario.name, scenario] as const))('the step %s', (_, scenario) => {
  test('has the figures that the article printed, and those only', () => {
    const published = scenario.variants.filter((variant) => variant.published !== undefined);
    expect(published).toHaveLength(2);
    for (const variant of published) expect.soft(closeTo(variant.published), variant.name).toEqual(closeTo(article.get(variant.name)));
    for (const variant of scenario.variants) expect(variant.onRequest === true).toBe(variant.published === undefined);
  });

  test('is compared with the step before it: one knob more', () => {
    const variants = scenario.variants.filter(isRunnable);
    expect(variants).toHaveLength(scenario.variants.length);
    for (const [index, variant] of variants.entries()) {
      if (index === 0 || variant.name.endsWith('workers-unlimited')) continue;
      const baseline = variants.find((other) => other.name === (variant.against ?? variants[0]?.name));
      const more = variant.server.config.filter((knob) => !baseline?.server.config.includes(knob));
      expect(more).toEqual([variant.name.replace('-unlimited', '')]);
      expect(variant.server.config).toHaveLength((baseline?.server.config.length ?? 0) + 1);
      expect({ ...variant.server, config: [] }).toEqual({ ...baseline?.server, config: [] });
    }
  });
});

test('accept_mutex has two workers wherever the delay is set', () => {
  const delayed = scenarios.flatMap((scenario) => scenario.variants).filter(isRunnable)
    .filter(({ server }) => server.name === 'nginx' && ['accept-mutex-delay', 'h2-tuned', 'small-file'].some((config) => server.config.includes(config)));
  expect(new Set(delayed.map(({ server }) => server.config.join(' '))).size).toBeGreaterThan(4);
  for (const variant of delayed) expect.soft(variant.server.minWorkers, variant.name).toBe(2);
});

/** The rows of the fixture, in the units of Published. */
function publishedFigures(file: string): Map<string, Published> {
  const rows = readFileSync(file, 'utf8').split('\n').filter((line) => /^\| [a-z]+-?[a-z-]* \| \d/.test(line));
  return new Map(
    rows.map((row) => {
      const [name = '', ...cells] = row.split('|').map((cell) => cell.trim()).filter((cell) => cell !== '');
      const [rps, transfer, mean, sd, max, within, threadMean, threadSd, threadMax, threadWithin, requests, read, seconds] = cells.map(figure);
      return [name, {
        rps, transferBytesPerSecond: transfer, requests, receivedBytes: read, seconds,
        latencyMs: { mean, sd, max, withinSdPercent: within },
        perThreadRps: { mean: threadMean, sd: threadSd, max: threadMax, withinSdPercent: threadWithin },
      } as Published];
    }),
  );
}

/** wrk's notation: us and ms become ms, k is 1000, MB and GB are powers of 1024. */
function figure(text: string): number {
  const [, digits, unit = ''] = /^([\d.]+)(.*)$/.exec(text) ?? [];
  const factor = { '': 1, us: 1e-3, ms: 1, s: 1, k: 1e3, MB: 1024 ** 2, GB: 1024 ** 3, '%': 1 }[unit];
  if (factor === undefined) throw new Error(`the fixture has a figure with an unknown unit: ${text}`);
  return Number(digits) * factor;
}

/** Figures rounded to 9 digits: 62.79 × 1000 is not 62790 in binary. */
function closeTo(published: Published | undefined): unknown {
  return JSON.parse(JSON.stringify(published), (_, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(9)) : value));
}
