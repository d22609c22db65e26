// The shipped scenarios, with figures compared with the printed output in the articles.
import { stat } from 'node:fs/promises';
import { cpus } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { configOf, isRunnable, loadOf, type RunnableVariant } from '../../lib/scenario/variants.ts';
import { findVariants, loadScenarios } from '../../lib/scenario/catalogue.ts';
import type {
  Published,
  PublishedDistribution,
  Scenario,
  Variant,
} from '../../lib/scenario/model.ts';
import { workersFor } from '../../lib/servers/index.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { type PrintedRun, printedRuns, rounded } from '../fixtures/articles.ts';

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

describe('article 000', () => {
  const ladder = scenarioNamed('h2o-vs-nginx');
  const printed = printedRuns('000');

  test('has seven rows, with the complete output of wrk', () => {
    const rows = findVariants(ladder);
    expect(rows.map(({ name }) => name)).toEqual(printed.map(({ variant }) => variant));
    expect(rows).toHaveLength(7);
    for (const [index, { published }] of rows.entries()) {
      const { text = '' } = printed[index] ?? {};
      expect.soft(rounded(published), text).toEqual(rounded(wrkFigures(text)));
    }
  });

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
    'has its command in %s, and figures only for configs that it ran',
    (_, scenario) => {
      const ran = ({ server, published }: RunnableVariant) => ({
        name: server.name,
        config: configOf(server),
        workers: workersFor(server, 4, true),
        published,
      });
      for (const variant of scenario.variants.filter(isRunnable)) {
        for (const { command } of printed)
          expect(`${loadOf(scenario, variant).command} http://127.0.0.1/`).toBe(command);
        if (variant.published === undefined) continue;
        expect(ladder.variants.filter(isRunnable).map(ran)).toContainEqual(ran(variant));
      }
    },
  );
});

describe('articles 001, 002 and 003', () => {
  const ours = ofArticles('001', '002', '003');
  const runs = ['001', '002', '003'].flatMap(printedRuns);
  const variantOf = (run: PrintedRun) =>
    scenarioNamed(run.scenario).variants.find((variant) => variant.name === run.variant) as Variant;

  test('have every printed run as data of a variant, with the command', () => {
    expect(runs).toHaveLength(11);
    for (const run of runs) {
      const variant = variantOf(run);
      const { published } = variant;
      const printed = published?.phases === undefined ? published : published.phases[run.phase - 1];
      expect.soft(rounded(printed), run.text).toEqual(rounded(h2Figures(run.text)));
      expect.soft(loadOf(scenarioNamed(run.scenario), variant).command).toBe(run.command);
    }
  });

  test('have no other figures except two that the sweep repeats', () => {
    const printed = new Set(runs.map((run) => variantOf(run)));
    const rest = ours
      .flatMap(({ variants }) => variants)
      .filter((variant) => !printed.has(variant) && variant.published !== undefined);
    const table = scenarioNamed('http1-vs-h2-small-file');
    expect(rest.map(({ name, published }) => [name, published])).toEqual([
      ['nginx-http1', table.variants[0]?.published],
      ['streams-100', table.variants[2]?.published],
    ]);
  });

  test('offer TLS over HTTP/2, and none over HTTP/1.1', () => {
    for (const scenario of ours)
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
});

const finderIn =
  (text: string) =>
  (pattern: RegExp): string[] =>
    pattern.exec(text)?.slice(1) ?? [];

function wrkFigures(text: string): Published {
  const find = finderIn(text);
  const [requests, seconds, read] = find(/^ +(\d+) requests in (\S+), (\S+) read$/m);
  const distributionOf = (name: string): PublishedDistribution => {
    const figures = find(new RegExp(`^ +${name} (\\S+) (\\S+) (\\S+) (\\S+)$`, 'm'));
    const [mean, sd, max, withinSdPercent] = figures.map((text) => figure(text));
    return { mean, sd, max, withinSdPercent } as PublishedDistribution;
  };
  return {
    rps: figure(find(/^Requests\/sec: +(\S+)$/m)[0]),
    transferBytesPerSecond: figure(find(/^Transfer\/sec: +(\S+)$/m)[0]),
    latencyMs: distributionOf('Latency'),
    perThreadRps: distributionOf('Req/Sec'),
    requests: figure(requests),
    receivedBytes: figure(read),
    seconds: figure(seconds) / 1000,
  };
}

function h2Figures(text: string): Published {
  if (text.startsWith('[')) return histogramOf(text);
  const find = finderIn(text);
  const [time = '', rps, amount] = find(
    /^finished in (.+), ([\d.]+) req\/s, ([\d.]+ ?(?:MB|kbyte))s?\/s$/m,
  );
  const [line] = find(/^requests: (.*)$/m);
  const outcomes = Object.fromEntries(
    [...(line ?? '').matchAll(/(\d+) (\w+)/g)].map(([, count, name]) => [name, Number(count)]),
  );
  const { total: requests = NaN, errored = NaN, timeout = 0 } = outcomes;
  const classes = find(/^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$/m).map(Number);
  const responses = Object.fromEntries(
    classes.flatMap((count, index) => (count === 0 ? [] : [[`${index + 2}xx`, count]])),
  );
  const [received, headers, body] = [
    ...(/^traffic: (.*)$/m.exec(text)?.[1] ?? '').matchAll(
      /\(?(\d+)\)?(?: bytes)? (?:total|headers|http|data)/g,
    ),
  ].map((match) => Number(match[1]));
  const [saved] = find(/space savings ([\d.]+)%/);
  const [version, cipher, keyExchange] = find(
    /^TLS Protocol: (\S+)\nCipher: (\S+)\nServer Temp Key: ECDH (\S+) /m,
  );
  return JSON.parse(
    JSON.stringify({
      rps: Number(rps),
      transferBytesPerSecond: figure(amount),
      seconds: secondsOf(time),
      requests,
      outcomes,
      responses,
      successRatio: ((classes[0] ?? NaN) + (classes[1] ?? NaN)) / requests,
      errorsPerMillion: ((errored + timeout) / requests) * 1e6,
      receivedBytes: received,
      headerBytes: headers,
      headerSavingsPercent: saved === undefined ? undefined : Number(saved),
      bodyBytes: body,
      latencyMs: distributionIn(text, 'time for request:'),
      connectMs: distributionIn(text, 'time for connect:'),
      firstByteMs: distributionIn(text, 'time to 1st byte:'),
      perConnectionRps: distributionIn(text, 'req/s'),
      tls: version === undefined ? undefined : { version, cipher, keyExchange },
    }),
  ) as Published;
}

/** `12.09s`, or `1 sec, 293 millisec and 127 microsec`. */
function secondsOf(text: string) {
  const parts = /^(\d+) sec, (\d+) millisec and (\d+) microsec$/.exec(text);
  if (parts === null) return figure(text) / 1000;
  return parts.slice(1).reduce((sum, part, index) => sum + Number(part) / 1000 ** index, 0);
}

function distributionIn(text: string, title: string): PublishedDistribution | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(title));
  const figures = line?.slice(title.length).match(/[\d.]+(?:us|ms|s|%)?(?=\s|$)/g) ?? [];
  if (figures.length < 5) return undefined;
  const [min, max, mean, sd, withinSdPercent] = figures.map((text) => figure(text));
  return { min, max, mean, sd, withinSdPercent } as PublishedDistribution;
}

function histogramOf(text: string): Published {
  const buckets = [...text.matchAll(/^\[(\S+), +(\S+)\] +(\d+) /gm)].map(
    ([, from = '', to = '', count]) => ({
      fromSeconds: figure(from) / 1000,
      toSeconds: to === '+Inf' ? null : figure(to) / 1000,
      count: Number(count),
    }),
  );
  return { requests: buckets.reduce((sum, bucket) => sum + bucket.count, 0), buckets };
}

/** A figure in a tool's notation: times become ms, k is 1000, kbyte, MB and GB are powers of 1024. */
function figure(text = '') {
  const [, digits, unit = ''] = /^([\d.]+) ?(.*)$/.exec(text) ?? [];
  const times = { us: 1e-3, µs: 1e-3, ms: 1, s: 1e3 };
  const bytes = { kbyte: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };
  const factor = { '': 1, '%': 1, k: 1e3, ...times, ...bytes }[unit];
  if (digits === undefined || factor === undefined)
    throw new Error(`the fixture has a figure that cannot be read: "${text}"`);
  return Number(digits) * factor;
}
