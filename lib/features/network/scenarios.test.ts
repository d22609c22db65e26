// The scenarios of article 004.
import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { additions } from '../../cli/main.ts';
import { inEveryRun } from '../../cli/run-options.ts';
import { loadOf, networkOf } from '../../scenario/variants.ts';
import { findVariants, loadScenarios } from '../../scenario/catalogue.ts';
import { ab, type LoadProfile } from '../../scenario/index.ts';
import type { NetworkSpec, Scenario } from '../../scenario/model.ts';
import { readSettings } from './network.ts';
import type { Group } from '../../runner/plan.ts';
import { loadPlanFor } from '../../runner/k6-plan.ts';
import type { PlanOptions } from '../../runner/make-plan.ts';
import { projectRoot } from '../../setup/paths.ts';
import { planOf } from '../../../test/fixtures/plan.ts';
import path from 'node:path';

const { planners } = inEveryRun(additions.runParts);
const scenarios = await loadScenarios();
const table = scenarioNamed('nginx-tuning-under-delay');
const crossed = scenarioNamed('nginx-tuning-queue-limit');

test('the packets of a request are those of both directions', () => {
  for (const { published } of scenarioNamed('nginx-one-request').variants) {
    const { toServer = {}, toClient = {} } = published?.packets ?? {};
    const all = [...Object.values(toServer), ...Object.values(toClient)];
    expect(all.reduce((sum, count) => sum + count, 0)).toBe(published?.packetsPerRequest);
  }
});

test('the full cross has the figures of the table, and one of 20,000 connections', () => {
  const figures = crossed.variants.flatMap(({ name, published }) =>
    published === undefined ? [] : [[name, published]],
  );
  expect(figures).toEqual([
    ['to-server-limit-10k', table.variants[0]?.published],
    ['to-server-limit-10k-nopush', table.variants[2]?.published],
    ['to-server-limit-20k-nopush', expect.anything()],
  ]);
});

describe.each([
  ['the table', table],
  ['the cross', crossed],
] as const)('%s', (_, scenario) => {
  const limits = { files: 1_000_000, memoryBytes: Infinity };
  const planned = (options: Partial<PlanOptions>) =>
    planOf(scenario, { ...options, planners }, { variants: findVariants(scenario), limits });

  test('runs in full length with --exact', () => {
    for (const { load } of planned({ exact: true }).variants)
      expect(load).toMatchObject({ protocol: 'http/1.0', keepAlive: false, requests: 1_000_000 });
    for (const { load, variant } of planned({}).variants)
      expect(load.durationSeconds, variant.name).toBe(loadOf(scenario, variant).secondsHere);
  });
});

test('the longest duration of a count allows for delays and bandwidth', () => {
  const seconds = (changes: Partial<LoadProfile>, network: Partial<NetworkSpec> = {}) => {
    const load = { ...ab('-c 10 -n 10000'), ...changes };
    const delays = { toServer: { delayMs: 150 }, toClient: { delayMs: 50 } };
    const spec: NetworkSpec = { ...delays, serverSettings: [], clientSettings: [], ...network };
    const variants = table.variants.slice(0, 1);
    const scenario = { ...table, load, network: spec, variants };
    const plan = planOf(scenario, { rounds: 1, planners });
    const targets = [{ url: 'http://198.19.0.1:8080/' }];
    return loadPlanFor(plan, plan.groups[0] as Group, 1, targets).maxDurationSeconds / 20;
  };
  // 10 requests at a time, two round trips of 0.2 s each.
  expect(seconds({})).toBeGreaterThan(400);
  expect(seconds({})).toBeLessThan(405);
  expect(seconds({ keepAlive: true })).toBeLessThan(205);
  expect(seconds({}, { toClient: { delayMs: 50, bytesPerSecond: 612 } })).toBeGreaterThan(10_000);
  expect(seconds({ expectedRps: 1 })).toBeGreaterThan(10_000);
});

describe('kernel settings', () => {
  const folder = path.join(projectRoot, 'server-configs/sysctl');
  const shipped = async (name: string) =>
    new Map(readSettings({ file: name, text: await readFile(`${folder}/${name}.conf`, 'utf8') }));

  test('centos-7 differs in every value that a namespace can set', async () => {
    const base = await shipped('centos-7');
    const elsewhere = [
      'net.core.netdev_max_backlog',
      'net.ipv4.tcp_tw_recycle',
      'net.core.rmem_max',
      'net.core.wmem_max',
    ];
    for (const [name, value] of await shipped('article')) {
      if (elsewhere.includes(name)) expect(base.has(name), name).toBe(false);
      else expect(base.get(name), name).toMatch(new RegExp(`^(?!${value}$).+`));
    }
  });

  test('every shipped file is used', async () => {
    const used = scenarios
      .flatMap((scenario) => scenario.variants.map((variant) => networkOf(scenario, variant)))
      .flatMap((spec) => [...(spec?.serverSettings ?? []), ...(spec?.clientSettings ?? [])]);
    const shipped = (await readdir(folder)).map((file) => path.basename(file, '.conf'));
    expect([...new Set(used)].toSorted()).toEqual(shipped.toSorted());
  });
});

function scenarioNamed(name: string) {
  return scenarios.find((scenario) => scenario.name === name) as Scenario;
}
