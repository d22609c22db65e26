// The plan of a run, and its duration.
import { expect, test } from 'vitest';
import type { Metric } from '../../lib/result/result.ts';
import type { LoadPlan, SideOptions } from '../../lib/k6/load-plan.ts';
import type { Cores } from '../../lib/machine/cores.ts';
import { loadPlanFor, type Target } from '../../lib/runner/k6-plan.ts';
import {
  coldFindings,
  unseenWaitsFindings,
  fewAnswersLines,
  fewRoundsLines,
  runName,
  serversOf,
  type PlanOptions,
} from '../../lib/runner/make-plan.ts';
import { orderOfRound, type Group, type Plan, type PlannedVariant } from '../../lib/runner/plan.ts';
import {
  estimatedSeconds,
  expectedRounds,
  expectedSeconds,
  roundsToLook,
} from '../../lib/runner/times.ts';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { address, defineScenario, h2load, vegeta } from '../../lib/scenario/index.ts';
import type { ConfiguredServer, Scenario, Variant } from '../../lib/scenario/model.ts';
import { cores, hereAndThere, planOf as anyPlan, scenarioOf } from '../fixtures/plan.ts';

const cached = await findScenario('nginx-open-file-cache');
const atRate = await findScenario('h2o-vs-nginx-h2-rate');
const img = await findScenario('nghttpd-img');

type Given = Parameters<typeof anyPlan>[2] & { scenario?: Scenario };

/** Plans nginx-open-file-cache, by default its first two variants. */
function planOf(options: Partial<PlanOptions> = {}, given: Given = {}) {
  const { scenario = cached } = given;
  return anyPlan(scenario, options, { variants: scenario.variants.slice(0, 2), ...given });
}

function loadPlanOf(
  plan: Plan,
  targets: readonly Target[],
  group = plan.groups[0] as Group,
): LoadPlan {
  return loadPlanFor(plan, group, 3, targets);
}

const targetsWith = (more: Partial<Target>): Target[] =>
  [8080, 8081].map((port) => ({ url: `http://127.0.0.1:${port}/`, ...more }));

test('the order of two variants alternates by round', () => {
  const orders = [1, 2, 3].map((round) => orderOfRound(['a', 'b'], round, 'run').join(''));
  expect(orders).toEqual(['ab', 'ba', 'ab']);
});

test('the order of more variants is random, and reproducible by seed', () => {
  const variants = ['a', 'b', 'c'];
  const orders = (seed: string) =>
    Array.from({ length: 600 }, (_, round) => orderOfRound(variants, round + 1, seed).join(''));
  expect(orders('run')).toEqual(orders('run'));
  expect(orders('run')).not.toEqual(orders('other'));
  // The mean is 100; 60 is more than 4 standard deviations below.
  for (const order of ['abc', 'acb', 'bac', 'bca', 'cab', 'cba'])
    expect(orders('run').filter((drawn) => drawn === order).length).toBeGreaterThan(60);
  expect(variants).toEqual(['a', 'b', 'c']);
});

test('a plan has a readable name and the load of the article', () => {
  const plan = planOf();
  expect(runName(cached.name, new Date('2026-11-20T08:15:30.123Z'))).toBe(
    '2026-11-20T08-15-30-nginx-open-file-cache',
  );
  expect(plan.groups).toEqual([{ sides: plan.variants }]);
  // A round: two servers, each with 0.41 s of warm-up and 1 s of load, and k6's start.
  expect(estimatedSeconds(plan)).toBeCloseTo(10 * (2 * (0.41 + 1 + 0.1) + 0.5), 9);
  expect(serversOf(plan.variants.map(({ variant }) => variant.server))).toEqual(['nginx']);
});

test("a plan gives k6 the engine's options, tags and a maximum duration", () => {
  const plan = planOf({ durationSeconds: 1.5 });
  const targets = targetsWith({ processes: [7, 8] });
  const side = (index: number, variant: string): SideOptions => ({
    url: targets[index]?.url as string,
    cpuOf: [7, 8],
    protocol: 'http/1.1',
    connections: 100,
    threads: 1,
    keepAlive: true,
    duration: '1500ms',
    warmup: '410ms',
    warmupLimit: '30000ms',
    timeout: '5000ms',
    spin: true,
    tags: { phase: '1', variant, server: 'nginx', protocol: 'http/1.1' },
  });
  expect(loadPlanOf(plan, targets)).toEqual({
    scenario: 'nginx-open-file-cache',
    tags: { run: 'run', round: '3' },
    // For both sides: ten times the warm-up, five times the window, 40 s for slow answers, and the time-out; plus 10 s.
    maxDurationSeconds: 124,
    phases: [
      {
        sides: [side(0, 'workers'), side(1, 'open-file-cache')],
        first: expect.toSatisfy((first) => first === 1 || first === 2),
        seed: expect.toSatisfy(Number.isSafeInteger),
      },
    ],
  });
  const group = { ...(plan.groups[0] as Group), sliceSeconds: 0.02 };
  expect(loadPlanOf(plan, targets, group).phases).toMatchObject([{ slice: '20ms' }]);
});

test('a plan gives k6 the receive windows of the load', () => {
  const scenario = { ...cached, load: h2load('-p h2c -n 100 -w 16 -W 20') };
  const [phase] = loadPlanOf(planOf({}, { scenario }), targetsWith({})).phases;
  expect(phase?.sides[1]?.window).toEqual({ stream: 65_535, connection: 1_048_575 });
});

test('each side is first as often, with other turns in each round', () => {
  const plan = planOf();
  const rounds = Array.from({ length: 10 }, (_, index) => {
    const [phase] = loadPlanFor(plan, plan.groups[0] as Group, index + 1, targetsWith({})).phases;
    return [phase?.first, phase?.seed];
  });
  const firsts = rounds.map(([first]) => first);
  expect(firsts.filter((first) => first === 1)).toHaveLength(5);
  expect(firsts.filter((first) => first === 2)).toHaveLength(5);
  expect(new Set(rounds.map(([, seed]) => seed)).size).toBe(10);
});

test('the estimate has the ramps and drains of slow servers', () => {
  const plan = planOf();
  const names = plan.variants.map(({ variant }) => variant.name);
  const added = (seconds: number) => {
    const answerSeconds = new Map(names.map((name) => [name, seconds]));
    return estimatedSeconds({ ...plan, answerSeconds }, 1) - estimatedSeconds(plan, 1);
  };
  // Of two sides, in windows of 1 s: turns of 0.4 s, and of 20 ms.
  expect(added(0.1)).toBeCloseTo(2 * 0.1 * (4 + 3.5 * 2.5), 9);
  expect(added(0.0005)).toBeCloseTo(2 * 0.0005 * (4 + 3.5 * 50), 9);
});

test.each<[string, Partial<Cores>, boolean]>([
  ['cores of its own', {}, true],
  ['the cores of the server', { generatorCpus: [1] }, false],
  ['fewer cores than threads', {}, false],
])('the generator may spin only on separate cores: on %s', (title, other, spins) => {
  const plan = planOf({ exact: title.startsWith('fewer') }, { cores: { ...cores, ...other } });
  // Also where a side has a loopback of its own.
  const [phase] = loadPlanOf(plan, targetsWith({ enclosed: { netns: '/proc/1/ns/net' } })).phases;
  expect(new Set(phase?.sides.map(({ spin = false }) => spin))).toEqual(new Set([spins]));
});

test('a scenario may have its own number of rounds, and a quick run has 4', () => {
  const scenario = { ...cached, rounds: 8 };
  expect(planOf({}, { scenario }).rounds).toBe(8);
  expect(planOf({ quick: true }, { scenario }).rounds).toBe(4);
});

test('sides that are compared by their start-up have no own loopbacks', () => {
  expect(planOf().ownLoopbacks).toBeUndefined();
  expect(planOf({ ownLoopbacks: true }).ownLoopbacks).toBe(true);
  expect(planOf({ ownLoopbacks: true, metric: 'startup' }).ownLoopbacks).toBeUndefined();
  const failIf = { gates: [{ metric: 'startup' as const }] };
  expect(planOf({ ownLoopbacks: true, failIf }).ownLoopbacks).toBeUndefined();
});

const looksOf = ({ looks }: Plan) => looks.map(({ rounds }) => rounds);

test.each<[Partial<PlanOptions>, number[]]>([
  [{}, [4, 6, 10]],
  [{ rounds: 10 }, [10]],
  [{ quick: true }, [4]],
  [{ precision: 0.01 }, [5, 10, 20, 40, 80]],
])('a plan with a fixed number of rounds has a single look: %j', (options, looks) => {
  const plan = planOf(options);
  expect(looksOf(plan)).toEqual(looks);
  expect(plan).toMatchObject({ rounds: looks.at(-1), sameWithin: 0.01 });
  expect(expectedRounds(plan)).toEqual({ fewest: looks[0], most: looks.at(-1) });
});

test('a plan has a single look if no verdict can end it, or the time limit will', () => {
  const alone = anyPlan(cached, {}, { variants: cached.variants.slice(1, 2) });
  const control = planOf({}, { scenario: { ...cached, control: true } });
  expect([alone, control].map(looksOf)).toEqual([[10], [10]]);
  const slow = { durationSeconds: 9.24 };
  expect(looksOf(planOf({ ...slow, maxTimeSeconds: 199 }))).toEqual([10]);
  expect(looksOf(planOf({ ...slow, maxTimeSeconds: 201 }))).toEqual([4, 6, 10]);
});

const slow = { durationSeconds: 9.24 };

test('the time limit determines the number of rounds, at least one', () => {
  const rounds = [150, 20].map((maxTimeSeconds) =>
    expectedRounds(planOf({ ...slow, precision: 0.01, maxTimeSeconds })),
  );
  expect(rounds).toEqual([
    { fewest: 5, most: 7 },
    { fewest: 1, most: 1 },
  ]);
  expect(() => planOf({ ...slow, maxTimeSeconds: 19 })).toThrow(
    /^--max-time 19 s is shorter than one round, which takes about 20 s: /,
  );
});

test('the time limit also applies to the rounds before the next look', () => {
  const plan = planOf({ ...slow, rounds: 100, maxTimeSeconds: 150 });
  expect([1, 9].map((place) => roundsToLook(plan, place))).toEqual([7, 1]);
});

test.each<[Partial<PlanOptions>, string | null]>([
  [{ rounds: 4, maxTimeSeconds: 14.1 }, null],
  [{ rounds: 3 }, 'takes 4 rounds: --rounds 4 or more'],
  [{ precision: 0.01, maxTimeSeconds: 14 }, '4 rounds, about 14 s: give a --max-time above'],
])('a plan with --fail-if has enough rounds for a verdict: %j', (options, message) => {
  const make = () => planOf({ failIf: {}, ...options });
  if (message === null) make();
  else expect(make).toThrow(message);
});

test('a plan with --fail-if needs a comparison', () => {
  const variants = cached.variants.slice(0, 2).map((variant) => ({ ...variant, against: null }));
  expect(() => planOf({ failIf: {} }, { variants })).toThrow(
    '--fail-if asks for a verdict, and nothing is compared',
  );
  const alsoCompare = [{ variant: 'open-file-cache', against: 'workers' }];
  const scenario = { ...cached, alsoCompare };
  expect(planOf({ failIf: {} }, { scenario, variants }).variants).toHaveLength(2);
});

test('a plan with --fail-if has enough responses for what it asks', () => {
  const make = (metric?: Metric, judge?: Metric) => {
    const gates = [metric === undefined ? {} : { metric }];
    const options = judge === undefined ? {} : { metric: judge };
    return () => planOf({ failIf: { gates }, durationSeconds: 0.3, ...options }, ofRate);
  };
  const message =
    /^--fail-if: .*: p99 needs [\d,]+ responses .*, and there are \d+ requests: give a --duration of /;
  expect(make()).toThrow(message);
  expect(make('cpu')).toThrow(message);
  expect(make('p99', 'p50')).toThrow(message);
  expect(make('p50', 'p50')().variants.length).toBeGreaterThan(1);
  expect(planOf({ failIf: {}, durationSeconds: 0.3 }, ofRate).variants.length).toBeGreaterThan(1);
});

const gateOn = (metric: Metric) => ({ failIf: { gates: [{ metric }] } });
const ofRate: Given = { scenario: atRate, variants: atRate.variants };
const elsewhere = defineScenario({
  ...cached,
  page: { path: '/', bodyBytes: 5 },
  variants: hereAndThere,
});
const server = address('http://127.0.0.1:8080', { cgroup: '/sys/fs/cgroup/x' });
const grouped: Given = {
  scenario: elsewhere,
  variants: elsewhere.variants.map((variant) => ({ ...variant, server })),
};

test.each<[Partial<PlanOptions>, Given, RegExp]>([
  [{ metric: 'rps' }, ofRate, /^--metric rps: vegeta .*: take p50, .*, or a load without a rate$/],
  [
    { metric: 'cpu' },
    { scenario: elsewhere },
    /^--metric cpu: .*:8080 .*--cgroup, or take rps, p50,/,
  ],
  [
    gateOn('startup'),
    { scenario: elsewhere },
    /^--fail-if startup: the start-up time .*:8080 is not known: leave it out$/,
  ],
  [
    gateOn('cpu'),
    { scenario: elsewhere },
    /^--fail-if cpu: the CPU time .*:8080 is not known: .* --cgroup, or leave it out$/,
  ],
  [{ metric: 'memory' }, grouped, /^--metric memory: the memory of /],
])('a metric that is not measured is refused: %j', (options, given, message) => {
  expect(() => planOf(options, given)).toThrow(message);
});

test('a metric that is measured is taken', () => {
  expect(planOf({}, ofRate).metric).toBeUndefined();
  expect(planOf({ metric: 'p50' }, ofRate).metric).toBe('p50');
  const two = [{ metric: 'startup' as const }, { metric: 'memory' as const }, {}];
  expect(planOf({ failIf: { gates: two } }).alsoAsked).toEqual(['memory', 'startup']);
  expect(planOf(gateOn('cpu')).alsoAsked).toBeUndefined();
  const variants = elsewhere.variants.slice(0, 1);
  for (const given of [{ scenario: elsewhere, variants }, grouped])
    expect(planOf({ metric: 'cpu' }, given).metric).toBe('cpu');
  expect(planOf(gateOn('cpu'), grouped).variants).toHaveLength(2);
});

test('a plan is small enough for k6, with a body for each side', () => {
  const posting = (bytes: number): Given => ({
    scenario: { ...cached, load: { ...cached.load, method: 'POST', body: 'x'.repeat(bytes) } },
  });
  expect(planOf({}, posting(49_000)).variants).toHaveLength(2);
  expect(() => planOf({}, posting(51_000))).toThrow(
    /^the requests of workers, open-file-cache come to 102,\d{3} bytes .*, and k6 takes 100,000: /,
  );
});

test("a plan has each variant's request; the Host of the load comes first", () => {
  const page = { docroot: 'nginx', path: '/a?b=c', host: 'example.org', bodyBytes: 5 };
  const post = { method: 'POST', headers: { Accept: 'text/html' }, body: 'x=1' };
  const load = { ...cached.load, ...post };
  const [plain] = cached.variants as [Variant];
  const changed = { ...plain, page };
  const sideOf = (variant: Variant) => {
    const plan = planOf({}, { scenario: { ...cached, load }, variants: [variant] });
    return loadPlanOf(plan, [{ url: 'http://127.0.0.1:8080/' }]).phases[0]?.sides[0];
  };
  expect(sideOf(changed)).toMatchObject({
    ...post,
    headers: { Host: 'example.org', Accept: 'text/html' },
  });
  expect(sideOf(plain)).toMatchObject({ headers: { Accept: 'text/html' } });
  const named = { ...changed, load: { ...load, headers: { hOST: 'other' } } };
  expect(sideOf(named)?.headers).toEqual({ hOST: 'other' });
});

test('a plan checks the limit of open files against its connections', () => {
  const limited = (files: number, variants = cached.variants.slice(0, 2)) =>
    planOf({}, { variants, limits: { files, memoryBytes: Infinity } });
  expect(() => limited(355)).toThrow(
    /^workers: nginx needs 356 open files for 100 connections, .* 355: .*--nofile=356:356 /,
  );
  expect(limited(356).variants).toHaveLength(2);
  // A server may run with too few; the generator needs enough for all connections.
  const few = cached.variants.slice(0, 2).map((variant): Variant => {
    return { ...variant, server: { ...(variant.server as ConfiguredServer), fileLimit: 50 } };
  });
  expect(() => limited(163, few)).toThrow('of the load generator need 164 open files');
  expect(limited(164, few).variants).toHaveLength(2);
});

test('a plan checks the limit of open files on another host', () => {
  const planOn = (most: number) => {
    const remote = { serverHost: 'web1', serverFiles: { host: 'web1', most } };
    return planOf({}, { cores: { ...cores, ...remote } });
  };
  expect(() => planOn(355)).toThrow('hard limit on web1 is 355: raise it there');
});

const { page } = img;
const limits = { files: 4096, memoryBytes: Infinity };
const plan = planOf({}, { scenario: img, variants: img.variants.slice(0, 1), limits });
const [nghttpd] = plan.variants as [PlannedVariant];

test('a plan over HTTP/2 runs all phases on one server, with a tag each', () => {
  const url = 'https://127.0.0.1:8443/img.html';
  const loadPlan = loadPlanOf(plan, [{ url, processes: [7] }]);
  expect(loadPlan.pauseSeconds).toBe(5);
  const side = { url, streams: 1020, timeout: '600000ms', requests: 100_000 };
  expect(loadPlan.phases).toMatchObject(
    ['1', '2', '3'].map((phase) => ({ sides: [{ ...side, tags: { phase } }] })),
  );
  // The maximum must allow the article's durations: 451 s, 72 s and 251 s.
  expect(loadPlan.maxDurationSeconds).toBeGreaterThan(3 * 451 + 10);
});

test('a plan over HTTP/2 sets TLS from load and host', () => {
  const tlsAt = (host?: string): unknown => {
    const sides = [{ ...nghttpd, page: { ...page, ...(host === undefined ? {} : { host }) } }];
    return loadPlanOf(plan, [{ url: 'https://127.0.0.1:8443/' }], { sides }).phases[0]?.sides[0]
      ?.tls;
  };
  const { tls } = nghttpd.load;
  expect(tlsAt()).toEqual({ insecureSkipVerify: true, ...tls });
  expect(tlsAt('a.example:8443')).toMatchObject({ ...tls, serverName: 'a.example' });
  for (const number of ['10.0.0.1', '[::1]:8443'])
    expect(tlsAt(number)).not.toHaveProperty('serverName');
});

test('a plan at a rate has rate and buckets to the nanosecond', () => {
  const bucketSeconds = [1e-9, 150e-6, 0.1 + 0.2, 0.0123456, 10];
  const scenario = { ...atRate, load: { ...atRate.load, bucketSeconds } };
  const open = planOf({}, { scenario, variants: atRate.variants.slice(0, 1) });
  const loadPlan = loadPlanOf(open, [{ url: 'https://127.0.0.1:8443/' }]);
  expect(loadPlan.phases[0]?.sides[0]).toMatchObject({
    rate: 1000,
    requests: 2000,
    buckets: ['1ns', '150000ns', '300ms', '12345600ns', '10000ms'],
  });
  expect(loadPlan).not.toHaveProperty('pauseSeconds');
});

test('the duration of a plan over HTTP/2 includes bytes, phases and pauses', () => {
  const phase = expectedSeconds(nghttpd.load, page);
  expect(phase).toBeGreaterThan(60);
  expect(expectedSeconds(nghttpd.load, { bodyBytes: 612 })).toBeLessThan(20);
  expect(estimatedSeconds(plan)).toBeCloseTo(plan.rounds * (3 * phase + 10 + 0.1 + 0.5), 6);
});

const counting = h2load('-n 1000 -c 10 --h1');

test('where servers may be cold, a count of requests has a load before it', () => {
  const warmed = anyPlan(scenarioOf(hereAndThere, { load: counting }));
  const loadPlan = loadPlanOf(warmed, targetsWith({}));
  const warmUp = { warmup: '401ms', warmupLimit: '30000ms' };
  expect(loadPlan.warmUps).toEqual([warmUp, warmUp]);
  for (const side of loadPlan.phases[0]?.sides ?? []) {
    expect(side.requests).toBe(1000);
    expect(side).not.toHaveProperty('warmup');
    expect(side).not.toHaveProperty('warmupLimit');
  }
  const seconds = (load: Scenario['load'], options: Partial<PlanOptions> = {}) =>
    anyPlan(scenarioOf(hereAndThere, { load }), options).variants.map(
      ({ load: { warmupSeconds, warmupLimitSeconds = 0 } }) => [warmupSeconds, warmupLimitSeconds],
    );
  expect(seconds(counting, { warmupSeconds: 2 })).toEqual([
    [2, 0],
    [2, 0],
  ]);
  // nginx answers the first request as the last; a load of a time has its warm-up in itself.
  const natives = planOf({}, { scenario: { ...cached, load: counting } });
  const timed = anyPlan(scenarioOf(hereAndThere, { load: h2load('-D 5 -c 10 --h1') }));
  for (const plan of [natives, timed])
    expect(loadPlanOf(plan, targetsWith({}))).not.toHaveProperty('warmUps');
  // Beside another program, nginx is warmed up alike.
  const [first] = cached.variants;
  const both = scenarioOf([
    { ...(first as Variant), name: 'n', page: cached.page },
    hereAndThere[0] as Variant,
  ]);
  expect(loadPlanOf(anyPlan({ ...both, load: counting }), targetsWith({})).warmUps).toHaveLength(2);
});

test('commands whose waits nobody can see are named', () => {
  const plan = anyPlan(scenarioOf(hereAndThere));
  const [command] = plan.variants.filter(({ variant }) => variant.server.name === 'command');
  const finding = { code: 'no-ss', variants: [command?.variant.name] };
  expect(unseenWaitsFindings(plan, false)).toEqual([finding]);
  expect(unseenWaitsFindings(plan, true)).toEqual([]);
  expect(unseenWaitsFindings(planOf(), false)).toEqual([]);
});

test('servers that may be cold are named where nothing warms them up', () => {
  const notesOf = (load: Scenario['load'], options: Partial<PlanOptions> = {}, given: Given = {}) =>
    coldFindings(anyPlan(scenarioOf(hereAndThere, { load }), options, given));
  const cold = [{ code: 'no-warm-up', variants: ['here', 'there'] }];
  expect(notesOf(counting, { warmupSeconds: 0 })).toEqual(cold);
  expect(notesOf(counting, { exact: true })).toEqual(cold);
  expect(notesOf(counting)).toEqual([]);
  expect(notesOf(h2load('-D 5 -c 10 --h1'))).toEqual([]);
  expect(notesOf(vegeta('-rate 100 -duration 5s'))).toEqual([]);
  expect(coldFindings(planOf({}, { scenario: { ...cached, load: counting } }))).toEqual([]);
});

test('a time limit below the rounds of a verdict is said before the load', () => {
  const linesOf = (maxTimeSeconds: number, options: Partial<PlanOptions> = {}) =>
    fewRoundsLines(planOf({ maxTimeSeconds, ...options }));
  const perRound = estimatedSeconds(planOf(), 1);
  expect(linesOf(4 * perRound + 1)).toEqual([]);
  expect(linesOf(2 * perRound)).toEqual([
    expect.stringMatching(
      /^No verdict is likely within --max-time [^:]*: 4 rounds take about [^:]* s\. Give a longer one\.$/,
    ),
  ]);
  expect(linesOf(8, { rounds: 2 })).toEqual(['No verdict is possible in 2 rounds: it takes 4.']);
  expect(fewRoundsLines(planOf())).toEqual([]);
});

test('a rate that is too low for a verdict is said before the load', () => {
  expect(fewAnswersLines(planOf({ quick: true }))).toEqual([]);
  const load = { ...cached.load, rate: 8, requests: 80 };
  expect(fewAnswersLines(planOf({}, { scenario: { ...cached, load } }))).toEqual([
    expect.stringMatching(/and there are 16 requests: give a --duration of 138 s/),
  ]);
});
