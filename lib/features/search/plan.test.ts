// Plans of searches and of sweeps over rates.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inEveryRun } from '../../cli/run-options.ts';
import { additions } from '../../cli/main.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { planOf as anyPlan } from '../../../test/fixtures/plan.ts';
import { compareCommand } from '../../cli/compare.ts';
import { k6ScriptFlag } from '../../cli/k6-script.ts';
import { readArguments } from '../../cli/arguments.ts';
import { loadPlanFor } from '../../runner/k6-plan.ts';
import { compileScript } from '../../runner/k6.ts';
import { fewAnswersLines, type PlanOptions } from '../../runner/make-plan.ts';
import { drawnBy, type Group, type Plan } from '../../runner/plan.ts';
import { estimatedSeconds } from '../../runner/times.ts';
import { findScenario } from '../../cli/find-scenario.ts';
import type { Scenario, Within } from '../../scenario/model.ts';
import { readRates, readWithin, search } from './feature.ts';

const cached = await findScenario('nginx-open-file-cache');
const atRate = await findScenario('h2o-vs-nginx-h2-rate');
const img = await findScenario('nghttpd-img');

const within: Within = { metric: 'p99', ms: 5 };
const { planners } = inEveryRun(additions.runParts);

/** Plans the first two variants of a scenario, by default nginx-open-file-cache. @param flags as they are typed: "--within p99=5ms" */
function planOf(flags: string, options: Partial<PlanOptions> = {}, scenario = cached): Plan {
  const [flag = '', value = ''] = flags.split(' ');
  const given = new Map(flag === '' ? [] : [[flag.slice(2), value]]);
  const variants = scenario.variants.slice(0, 2);
  return anyPlan(scenario, { ...options, planners, flags: given }, { variants });
}

const searchIn = ({ stepped }: Plan) => stepped?.resultOf([], []).search?.within;

test('--within takes a percentile and a time', () => {
  expect(readWithin('--within', 'p50=250us')).toEqual({ metric: 'p50', ms: 0.25 });
  for (const wrong of ['p100=5ms', 'p99=5', 'p99=0ms', 'p99=61s'])
    expect(() => readWithin('--within', wrong)).toThrow(
      `--within ${wrong}: give p50, p90 or p99 and a time from 1us to 60s with its unit`,
    );
});

test('--rates takes requests/s, in thousands too, and sorts them', () => {
  expect(readRates('--rates', '2k, 500,1.5k')).toEqual([500, 1500, 2000]);
  expect(readRates('--rates', '1.001k,2.3k,8192.001k')).toEqual([1001, 2300, 8_192_001]);
  for (const wrong of ['1k,,2k', '1.0005k', '10000001'])
    expect(() => readRates('--rates', wrong)).toThrow(
      `--rates ${wrong}: give requests/s from 1 to 10,000,000 `,
    );
});

test('the rate of a load is set by --rates and --within', () => {
  const setting = Object.entries(search.run?.flags ?? {}).filter(([, flag]) => flag.setsRate);
  expect(setting.map(([name]) => name)).toEqual(['within', 'rates']);
});

test.each([['--rates 1k --within p99=5ms', /^--rates and --within do not go together/]])(
  'compare a.conf b.conf %s is refused before a config is read',
  async (flags, message) => {
    const asked = compareCommand(['a.conf', 'b.conf', ...flags.split(' ')], additions);
    await expect(asked).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(message),
    });
  },
);

test('a plan searches within the limit of the flag or the scenario', () => {
  const scenario = { ...cached, within };
  const plan = planOf('--within p99=5ms');
  expect(plan.rounds).toBe(6);
  expect(searchIn(plan)).toEqual(within);
  expect(searchIn(planOf('--within p50=1ms', {}, scenario))).toEqual({ metric: 'p50', ms: 1 });
  const quick = planOf('', { quick: true }, scenario);
  expect(quick.rounds).toBe(4);
  expect(searchIn(quick)).toEqual(within);
  // The rate of the load is ignored.
  for (const { load } of planOf('--within p99=5ms', { arrivals: 'poisson' }, atRate).variants) {
    expect(load).toMatchObject({ searched: true, arrivals: 'poisson', durationSeconds: 0.5 });
    expect(load).not.toHaveProperty('rate');
    expect(load).not.toHaveProperty('requests');
  }
  const targets = [8080, 8081].map((port) => ({
    url: `http://127.0.0.1:${port}/`,
    processes: [7],
  }));
  const names = plan.variants.map(({ variant }) => variant.name);
  const known = new Map(names.map((name, index) => [name, [1000 * (index + 3)]]));
  const { steps, phases } = loadPlanFor(plan, plan.groups[0] as Group, 3, targets, known);
  expect(steps).toEqual({
    within,
    known: [expect.closeTo(3000), expect.closeTo(4000)],
    lowest: expect.closeTo(3000),
    drawn: drawnBy('run 3'),
    expected: [{}, {}],
    stepSeconds: 0.5,
  });
  expect(phases).toMatchObject([
    { sides: [{ duration: '500ms', warmup: '100ms', cpuOf: [7] }, { duration: '500ms' }] },
  ]);
  expect(phases[0]?.sides[0]).not.toHaveProperty('spin');
});

test('a search refuses what it cannot load in steps', () => {
  expect(() => planOf('--within p99=5ms', {}, img)).toThrow(
    /^--within: nghttpd-img has 3 load phases on one server, /,
  );
  expect(() => planOf('--within p99=5ms', { metric: 'p50' })).toThrow(/: leave --metric out$/);
});

test('k6 gets the code of a search only for a search', async () => {
  const compiled = async (source?: string) => {
    const file = join(newFolder(), 'script.js');
    await compileScript(file, source);
    return readFileSync(file, 'utf8');
  };
  expect(await compiled()).not.toContain('RateSearch');
  expect(await compiled(planOf('--within p99=5ms').stepped?.script)).toContain('RateSearch');
});

test('a script refuses a load plan of the other kind in one line', async () => {
  const sources = { usual: undefined, search: planOf('--within p99=5ms').stepped?.script };
  const refusal = async (kind: keyof typeof sources, more: object) => {
    const file = join(newFolder(), 'script.mjs');
    await compileScript(file, sources[kind]);
    // What k6 has is not there: only what the script does before its load counts.
    const text = readFileSync(file, 'utf8').replace(/^import .*;$/gm, '');
    const load = JSON.stringify({ scenario: 's', tags: {}, phases: [], ...more });
    const body = `const __ENV = { BAKEOFF_LOAD: ${JSON.stringify(load)} };\n${text}`;
    writeFileSync(file, body);
    return import(file).then(
      () => 'none',
      (error: Error) => error.message,
    );
  };
  expect(await refusal('usual', {})).toBe('none');
  expect(await refusal('usual', { steps: {} })).toMatch(/^this load plan has steps: .*$/);
  expect(await refusal('search', { steps: {} })).toBe('none');
  expect(await refusal('search', {})).toMatch(/^this load plan has no steps: .*$/);
});

test('of the flags on rates, only the sweep over given rates goes into a k6 script', () => {
  const flags = search.run?.flags ?? {};
  const scriptFlag = k6ScriptFlag(flags);
  const { without } = scriptFlag['k6-script'];
  expect(without).toContain('within');
  expect(without).not.toContain('rates');
  const read = (...args: string[]) => readArguments(args, { ...flags, ...scriptFlag });
  expect(() => read('--k6-script', '--within', 'p99=5ms')).toThrow(
    /^--k6-script and --within do not go together/,
  );
  expect(flags['within']?.inSteps).toBe(true);
  expect(read('--k6-script', '--rates', '1k').flags.get('rates')).toBe('1k');
});

test('a plan with several rates compares each variant with its baseline at the same rate', () => {
  const scenario: Scenario = { ...cached, within };
  const plan = planOf('--rates 500,2000', {}, scenario);
  expect(plan).not.toHaveProperty('stepped');
  const of = plan.variants.map(({ variant, load }) => [
    variant.name,
    variant.against,
    load.requests,
  ]);
  expect(of.slice(1, 3)).toEqual([
    ['open-file-cache-at-500', 'workers-at-500', 1100],
    ['workers-at-2000', null, 4000],
  ]);
  expect(plan.variants[0]?.load.command).toBe('wrk -c 100 -t 10 -d 10 at 500 requests/s');
  expect(plan.variants.some(({ variant }) => 'published' in variant)).toBe(false);
  expect(plan.groups.map(({ sides }) => sides.length)).toEqual([4]);
});

test('a rate lasts until a verdict has its responses, and the estimate with it', () => {
  const requestsAt = (rate: number, options: Partial<PlanOptions> = {}) =>
    planOf(`--rates ${rate}`, { quick: true, ...options }).variants[0]?.load.requests;
  expect(requestsAt(200)).toBe(1100);
  expect(requestsAt(50)).toBe(1100);
  // Beyond 30 s no verdict is worth it.
  expect(requestsAt(20)).toBe(40);
  expect(requestsAt(200, { metric: 'p50' })).toBe(400);
  expect(requestsAt(200, { durationSeconds: 2 })).toBe(400);
  const secondsAt = (rate: number) => estimatedSeconds(planOf(`--rates ${rate}`, { quick: true }));
  expect(secondsAt(100) - secondsAt(500)).toBeCloseTo(4 * 2 * (11 - 2.2), 6);
});

test('rates that are too low for a verdict are said before the load, once', () => {
  const linesOf = (flags: string, options: Partial<PlanOptions> = {}) =>
    fewAnswersLines(planOf(flags, { quick: true, ...options }));
  expect(linesOf('--rates 200')).toEqual([]);
  expect(linesOf('--rates 10,20,500')).toEqual([
    'No verdict is possible on workers-at-10, open-file-cache-at-10, workers-at-20 and open-file-cache-at-20: p99 needs 1,000 responses in each round, and there are 20 to 40 requests: give a --duration of 110 s, or --metric p50, which needs 20.',
  ]);
  expect(linesOf('--rates 10', { durationSeconds: 110 })).toEqual([]);
});
