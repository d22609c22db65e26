// The shipped scenarios.
import { stat } from 'node:fs/promises';
import { cpus } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { configOf, isRunnable, loadOf, type RunnableVariant } from '../../lib/scenario/variants.ts';
import { findVariants, loadScenarios } from '../../lib/scenario/catalogue.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { workersFor } from '../../lib/servers/index.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

const scenarios = await loadScenarios();
const scenarioNamed = (name: string) =>
  scenarios.find((scenario) => scenario.name === name) as Scenario;
const ofArticles = (...ids: string[]) =>
  scenarios.filter(({ article }) => ids.includes(article?.id ?? ''));

const ofNoArticle = ['h2-receive-window', 'http3-loss', 'http3-vs-http2'];

describe.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
  '%s',
  (_, scenario) => {
    test('describes what it adds to the article', () => {
      if (scenario.article === undefined)
        expect(scenario.control ?? ofNoArticle.includes(scenario.name), 'has no article').toBe(
          true,
        );
      else
        for (const { published, note, name: variant } of scenario.variants)
          if (published === undefined) expect.soft(note, variant).toMatch(/article/);
    });

    test('requests a page of the stated length', async () => {
      const { docroot, path: url, bodyBytes } = scenario.page;
      if (docroot === 'images') return expect(bodyBytes).toBe(525_304);
      // The files that server-configs/caddy/static.caddyfile serves.
      const folder =
        url === '/LICENSE' ? 'xk6-loadgen' : path.join('server-configs/www', docroot ?? 'nginx');
      const file = path.join(projectRoot, folder, url.endsWith('/') ? 'index.html' : url);
      expect((await stat(file)).size).toBe(bodyBytes);
    });
  },
);

test('accept_mutex_delay is only used with two workers', () => {
  // Except in article 004, whose author says that the setting has no effect with one worker.
  const delayed = scenarios
    .filter(({ article }) => article?.id !== '004')
    .flatMap((scenario) => scenario.variants.filter(isRunnable))
    .filter(({ server }) =>
      ['accept-mutex-delay', 'h2-tuned', 'small-file'].some(
        (config) => server.name === 'nginx' && configOf(server).includes(config),
      ),
    );
  expect(new Set(delayed.map(({ server }) => configOf(server).join(' '))).size).toBeGreaterThan(4);
  for (const variant of delayed)
    expect.soft(variant.server, variant.name).toMatchObject({ minWorkers: 2 });
});

test('aa compares the base of the nginx scenarios with itself', () => {
  const aa = scenarioNamed('aa');
  const { load, page } = scenarioNamed('h2o-vs-nginx');
  const [workers] = scenarioNamed('nginx-open-file-cache').variants;
  expect(aa).toMatchObject({ control: true, load, page });
  expect(aa.variants.map(({ server }) => server)).toEqual([workers?.server, workers?.server]);
  expect(scenarios.filter(({ control }) => control === true)).toEqual([aa]);
});

/** The published figures of a variant, in the order of its scenario. */
function figuresIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [String(value)];
  return Object.values(value).flatMap(figuresIn);
}

// The figures of the golden file were compared with the articles by hand: only what is wrong there may change.
test('commands and published figures are those of the articles', async () => {
  const lines = scenarios.flatMap((scenario) =>
    findVariants(scenario).flatMap((variant) => {
      if (variant.published === undefined) return [];
      return `${loadOf(scenario, variant).command}: ${figuresIn(variant.published).join(' ')}`;
    }),
  );
  // Several scenarios have rows of one table.
  await expect(`${[...new Set(lines)].join('\n')}\n`).toMatchFileSnapshot(
    path.join(projectRoot, 'test/golden/published.txt'),
  );
});

describe('article 000', () => {
  const ladder = scenarioNamed('h2o-vs-nginx');

  test('scales the tuned workers to the cores of the server', () => {
    const workers = (cores: number, exact: boolean) =>
      findVariants(ladder)
        .filter(isRunnable)
        .map(({ server }) => workersFor(server, cores, exact));
    const machine = cpus().length;
    expect(workers(1, false)).toEqual([machine, 1, 1, 2, 2, 2, 2]);
    expect(workers(8, false)).toEqual([machine, 8, 1, 8, 8, 8, 8]);
    expect(workers(8, true)).toEqual([36, 16, 1, 16, 16, 16, 16]);
  });

  test.each(ofArticles('000').map((scenario) => [scenario.name, scenario] as const))(
    'has figures in %s only for configs that it ran',
    (_, scenario) => {
      const ran = ({ server, published }: RunnableVariant) => ({
        name: server.name,
        config: configOf(server),
        workers: workersFor(server, 4, true),
        published,
      });
      for (const variant of scenario.variants.filter(isRunnable))
        if (variant.published !== undefined)
          expect(ladder.variants.filter(isRunnable).map(ran)).toContainEqual(ran(variant));
    },
  );
});

test('articles 001, 002 and 003 offer TLS over HTTP/2, and none over HTTP/1.1', () => {
  for (const scenario of ofArticles('001', '002', '003'))
    for (const variant of scenario.variants) {
      const { protocol, tls } = loadOf(scenario, variant);
      const ciphers = ['ECDHE-RSA-AES128-GCM-SHA256'];
      if (protocol === 'h2') expect(tls).toMatchObject({ maxVersion: 'TLSv1.2', ciphers });
      else expect(tls).toBeUndefined();
      const seen = variant.published?.tls;
      if (seen === undefined) continue;
      expect(ciphers).toContain(seen.cipher);
      expect(tls?.curves).toContain(seen.keyExchange);
    }
});
