// The scenarios of article 000: its figures against the lines that wrk printed, and what is compared with what.
import { cpus } from 'node:os';
import { describe, expect, test } from 'vitest';
import {
  baselineName,
  configOf,
  isRunnable,
  loadOf,
  type RunnableVariant,
} from '../../lib/scenario/variants.ts';
import { findVariants, loadScenarios } from '../../lib/scenario/catalogue.ts';
import type { Published, PublishedDistribution, Scenario } from '../../lib/scenario/model.ts';
import { workersFor } from '../../lib/servers/index.ts';
import { printedRuns, rounded } from '../fixtures/articles.ts';

const all = await loadScenarios();
const scenarios = all.filter((scenario) => scenario.article?.id === '000');
const ladder = scenarioNamed('h2o-vs-nginx');
const printed = printedRuns('000');

describe('the ladder', () => {
  test("has the article's seven rows, with all that wrk printed", () => {
    const rows = findVariants(ladder);
    expect(rows.map(({ name }) => name)).toEqual(printed.map(({ variant }) => variant));
    expect(rows).toHaveLength(7);
    for (const [index, { published }] of rows.entries()) {
      const { text = '' } = printed[index] ?? {};
      expect.soft(rounded(published), text).toEqual(rounded(figuresOf(text)));
    }
  });

  test('scales tuned workers to the cores of the server', () => {
    const workers = (cores: number, exact: boolean) =>
      findVariants(ladder)
        .filter(isRunnable)
        .map(({ server }) => workersFor(server, cores, exact));
    const machine = cpus().length;
    expect(workers(1, false)).toEqual([machine, 1, 1, 2, 2, 2, 2]);
    expect(workers(8, false)).toEqual([machine, 8, 1, 8, 8, 8, 8]);
    expect(workers(8, true)).toEqual([36, 16, 1, 16, 16, 16, 16]);
  });
});

test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
  "%s runs the article's command, and has its figures only for configs that the article ran",
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

test("the footnotes name all of the article's kernel settings, which are not applied", () => {
  const footnote = ladder.footnotes?.find((one) => one.includes('kernel settings')) ?? '';
  expect(footnote.match(/net\.[a-z0-9_.]+ = \d+/g)).toHaveLength(12);
  expect(footnote).toMatch(/not applied here/);
});

test.each([
  ['h2o-num-threads', 'threads-', [1, 2, 4, 8, 16, 36]],
  ['nginx-workers', 'workers-', [1, 2, 4, 8, 16]],
])(
  '%s runs server and generator on all cores, with so many workers on any machine',
  (name, prefix, counts) => {
    const scenario = scenarioNamed(name);
    expect(scenario.sharedCores).toBe(true);
    const variants = scenario.variants.filter(isRunnable);
    expect(variants.map((variant) => variant.name)).toEqual(counts.map((one) => prefix + one));
    for (const [index, variant] of variants.entries()) {
      for (const exact of [false, true])
        expect(workersFor(variant.server, 2, exact)).toBe(counts[index]);
      expect(baselineName(scenario, variant)).toBe(index === 0 ? undefined : `${prefix}1`);
    }
  },
);

test('aa is the base of the nginx scenarios against itself', () => {
  const aa = scenarioNamed('aa');
  const [workers] = scenarioNamed('nginx-open-file-cache').variants;
  expect(aa).toMatchObject({ control: true, load: ladder.load, page: ladder.page });
  expect(aa.variants.map(({ server }) => server)).toEqual([workers?.server, workers?.server]);
  expect(all.filter(({ control }) => control === true)).toEqual([aa]);
});

function scenarioNamed(name: string) {
  return all.find((scenario) => scenario.name === name) as Scenario;
}

/** What wrk printed of a run, in the units of Published. */
function figuresOf(text: string): Published {
  const find = (pattern: RegExp) => pattern.exec(text)?.slice(1) ?? [];
  const [requests = '', seconds = '', read = ''] = find(/^ +(\d+) requests in (\S+), (\S+) read$/m);
  return {
    rps: figure(find(/^Requests\/sec: +(\S+)$/m)[0]),
    transferBytesPerSecond: figure(find(/^Transfer\/sec: +(\S+)$/m)[0]),
    latencyMs: distributionOf(find(/^ +Latency +(\S+) +(\S+) +(\S+) +(\S+)$/m)),
    perThreadRps: distributionOf(find(/^ +Req\/Sec +(\S+) +(\S+) +(\S+) +(\S+)$/m)),
    requests: figure(requests),
    receivedBytes: figure(read),
    seconds: figure(seconds),
  };
}

function distributionOf([mean, sd, max, within]: string[]): PublishedDistribution {
  return { mean: figure(mean), sd: figure(sd), max: figure(max), withinSdPercent: figure(within) };
}

/** wrk's notation: us and ms become ms, k is 1000, MB and GB are powers of 1024. */
function figure(text = '') {
  const [, digits, unit = ''] = /^([\d.]+)(.*)$/.exec(text) ?? [];
  const factor = { '': 1, us: 1e-3, ms: 1, s: 1, k: 1e3, MB: 1024 ** 2, GB: 1024 ** 3, '%': 1 }[
    unit
  ];
  if (digits === undefined || factor === undefined)
    throw new Error(`the fixture has a figure that cannot be read: "${text}"`);
  return Number(digits) * factor;
}
