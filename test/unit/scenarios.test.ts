import { stat } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { configOf, isRunnable } from '../../lib/scenario/variants.ts';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

const scenarios = await loadScenarios();

describe.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
  '%s',
  (_, scenario) => {
    test('is one line of the list', () => {
      expect(scenario.title).toMatch(/^.{20,82}$/);
    });

    test('says what it adds to the article', () => {
      if (scenario.article === undefined)
        expect(scenario.control ?? scenario.name.startsWith('http3-'), 'has no article').toBe(true);
      else
        for (const { published, note, name: variant } of scenario.variants)
          if (published === undefined) expect.soft(note, variant).toMatch(/article/);
    });

    test('asks for a page of the length it names', async () => {
      const { docroot, path: url, bodyBytes } = scenario.page;
      // Not shipped, but generated to that length.
      if (docroot === 'images') return expect(bodyBytes).toBe(525_304);
      // As server-configs/caddy/static.caddyfile serves them.
      const folder =
        url === '/LICENSE' ? 'xk6-loadgen' : path.join('server-configs/www', docroot ?? 'nginx');
      const file = path.join(projectRoot, folder, url.endsWith('/') ? 'index.html' : url);
      expect((await stat(file)).size).toBe(bodyBytes);
    });
  },
);

test('accept_mutex has two workers wherever the delay is set', () => {
  // But for article 004's, whose author says that with one worker it has nothing to do.
  const delayed = scenarios
    .filter(({ article }) => article?.id !== '004')
    .flatMap((scenario) => scenario.variants)
    .filter(isRunnable)
    .filter(
      ({ server }) =>
        server.name === 'nginx' &&
        ['accept-mutex-delay', 'h2-tuned', 'small-file'].some((config) =>
          configOf(server).includes(config),
        ),
    );
  expect(new Set(delayed.map(({ server }) => configOf(server).join(' '))).size).toBeGreaterThan(4);
  for (const variant of delayed)
    expect.soft(variant.server, variant.name).toMatchObject({ minWorkers: 2 });
});
