import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import type { Published } from '../../lib/scenario/model.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

const scenarios = await loadScenarios();
const article = publishedFigures(path.join(projectRoot, 'test/fixtures/article-000.md'));

describe.each(scenarios.map((scenario) => [scenario.name, scenario] as const))('%s', (name, scenario) => {
  test('has the name of its file', async () => {
    expect((await stat(path.join(projectRoot, 'scenarios', `${name}.ts`))).isFile()).toBe(true);
  });

  test('has the figures that the article printed, and those only', () => {
    const published = scenario.variants.filter((variant) => variant.published !== undefined);
    expect(published).toHaveLength(2);
    for (const variant of published) expect.soft(closeTo(variant.published), variant.name).toEqual(closeTo(article.get(variant.name)));
    for (const variant of scenario.variants) expect(variant.onRequest === true).toBe(variant.published === undefined);
  });

  test('asks for a page of the length it names', async () => {
    const { size } = await stat(path.join(projectRoot, 'server-configs/www', scenario.page.path, 'index.html'));
    expect(scenario.page.bodyBytes).toBe(size);
    expect(size).toBe(612);
  });

  test('compares a step of the ladder with the step before it: one knob more', () => {
    for (const [index, variant] of scenario.variants.entries()) {
      if (index === 0 || variant.name.endsWith('workers-unlimited')) continue;
      const baseline = scenario.variants.find((other) => other.name === (variant.against ?? scenario.variants[0]?.name));
      const more = variant.server.config.filter((knob) => !baseline?.server.config.includes(knob));
      expect(more).toEqual([variant.name.replace('-unlimited', '')]);
      expect(variant.server.config).toHaveLength((baseline?.server.config.length ?? 0) + 1);
      expect({ ...variant.server, config: [] }).toEqual({ ...baseline?.server, config: [] });
    }
  });
});

test('the ladder has these scenarios', () => {
  expect(scenarios.map((scenario) => scenario.name)).toEqual(['nginx-accept-mutex-delay', 'nginx-open-file-cache', 'nginx-tcp-nopush']);
});

test('accept_mutex has two workers wherever the delay is set', () => {
  const delayed = scenarios.flatMap((scenario) => scenario.variants).filter((variant) => variant.server.config.includes('accept-mutex-delay'));
  expect(delayed.length).toBeGreaterThan(0);
  for (const variant of delayed) expect(variant.server.minWorkers).toBe(2);
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
