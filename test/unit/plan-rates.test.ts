// What is planned for a search, and for a sweep over rates.
import { beforeAll, expect, test } from 'vitest';
import type { Group } from '../../lib/runner/plan.ts';
import { loadPlanFor, type Target } from '../../lib/runner/k6-plan.ts';
import { makePlan } from '../../lib/runner/make-plan.ts';
import { findScenario, findVariants } from '../../lib/scenario/catalogue.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';

const cores = { serverCpus: [1], generatorCpus: [0] };
let scenario: Scenario;
let variants: Variant[];
beforeAll(async () => {
  scenario = await findScenario('nginx-open-file-cache');
  variants = findVariants(scenario);
});

test('a plan searches for rates within a limit: of the flag, or the scenario', async () => {
  const options = { quick: false, exact: false };
  const within = { metric: 'p99', ms: 5 } as const;
  const plan = makePlan(scenario, variants, cores, { ...options, within });
  expect(plan).toMatchObject({
    within,
    rounds: 6,
    variants: [{ load: { searched: true, durationSeconds: 0.5, warmupSeconds: 0.1 } }, {}],
  });
  expect(
    makePlan({ ...scenario, within }, variants, cores, {
      ...options,
      within: { metric: 'p50', ms: 1 },
    }).within,
  ).toEqual({ metric: 'p50', ms: 1 });
  expect(
    makePlan({ ...scenario, within }, variants, cores, { ...options, quick: true }),
  ).toMatchObject({ within, rounds: 4, variants: [{ load: { durationSeconds: 0.5 } }, {}] });
  // Of a load with a rate that counts for nothing.
  const atRate = await findScenario('h2o-vs-nginx-h2-rate');
  for (const { load } of makePlan(atRate, atRate.variants, cores, {
    ...options,
    within,
    arrivals: 'poisson',
  }).variants) {
    expect(load).toMatchObject({ searched: true, arrivals: 'poisson', durationSeconds: 0.5 });
    expect(load).not.toHaveProperty('rate');
    expect(load).not.toHaveProperty('requests');
  }
  const target: Target = { url: 'http://127.0.0.1:1/', processes: [7] };
  const from = [
    { rate: 900, factor: 1.06, least: 250 },
    { rate: 1000, factor: 2, least: 100 },
  ];
  const { search, phases } = loadPlanFor(
    { ...plan, run: 'run' },
    plan.groups[0] as Group,
    3,
    [target, target],
    from,
  );
  expect(search).toEqual({ within, from, expected: [{}, {}], stepSeconds: 0.5 });
  expect(phases).toMatchObject([
    { seed: 3, sides: [{ duration: '500ms', warmup: '100ms', cpuOf: [7] }, {}] },
  ]);
  expect(phases[0]?.sides[0]).not.toHaveProperty('spin');
});

test('a plan sweeps over rates: each variant at each of them, against its baseline there', () => {
  const plan = makePlan({ ...scenario, within: { metric: 'p99', ms: 5 } }, variants, cores, {
    quick: false,
    exact: false,
    rates: [500, 2000],
  });
  expect(plan).not.toHaveProperty('within');
  expect(
    plan.variants.map(
      ({ variant: { name, series, against }, load: { rate, requests, command } }) => [
        name,
        series,
        against,
        rate,
        requests,
        command,
      ],
    ),
  ).toEqual([
    ['workers-at-500', 'workers', null, 500, 1000, 'wrk -c 100 -t 10 -d 10 at 500 requests/s'],
    [
      'open-file-cache-at-500',
      'open-file-cache',
      'workers-at-500',
      500,
      1000,
      'wrk -c 100 -t 10 -d 10 at 500 requests/s',
    ],
    ['workers-at-2000', 'workers', null, 2000, 4000, 'wrk -c 100 -t 10 -d 10 at 2,000 requests/s'],
    [
      'open-file-cache-at-2000',
      'open-file-cache',
      'workers-at-2000',
      2000,
      4000,
      'wrk -c 100 -t 10 -d 10 at 2,000 requests/s',
    ],
  ]);
  expect(plan.variants.some(({ variant }) => 'published' in variant)).toBe(false);
  expect(plan.groups.map(({ sides }) => sides.length)).toEqual([4]);
});
