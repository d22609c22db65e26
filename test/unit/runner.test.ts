import {
  writeFileSync,
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  mkdirSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { requireSpace, writeWhole } from '../../lib/files.ts';
import { UserError } from '../../lib/errors.ts';
import type { Cores } from '../../lib/machine/cores.ts';
import type { SideOptions } from '../../lib/k6/load-plan.ts';
import {
  orderOfRound,
  estimatedSeconds,
  expectedRounds,
  expectedSeconds,
  roundsToLook,
  type Group,
  type PlanDraft,
  type PlannedVariant,
} from '../../lib/runner/plan.ts';
import { goDuration, loadOptions, loadPlanFor, type Target } from '../../lib/runner/k6-plan.ts';
import { makePlan, runName, serversOf, type PlanOptions } from '../../lib/runner/make-plan.ts';
import {
  readPhases,
  followPhases,
  followRate,
  compileScript,
  startK6,
} from '../../lib/runner/k6.ts';
import {
  checkResultsFolder,
  createRunFolder,
  folderError,
} from '../../lib/runner/results-folder.ts';
import { phaseLinePrefix } from '../../lib/k6/load-plan.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import { address, command, defineScenario } from '../../lib/scenario/index.ts';
import type { ConfiguredServer, LoadProfile, Scenario, Variant } from '../../lib/scenario/model.ts';
import { newFolder } from '../fixtures/new-folder.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

describe('orderOfRound', () => {
  test('alternates two variants', () => {
    expect([1, 2, 3, 4].map((round) => orderOfRound(['a', 'b'], round, 'run').join(''))).toEqual([
      'ab',
      'ba',
      'ab',
      'ba',
    ]);
  });

  test('permutes more of them, the same way for the same seed', () => {
    const variants = ['a', 'b', 'c'];
    const orders = Array.from({ length: 600 }, (_, round) =>
      orderOfRound(variants, round + 1, 'run').join(''),
    );
    expect(orders).toEqual(
      Array.from({ length: 600 }, (_, round) => orderOfRound(variants, round + 1, 'run').join('')),
    );
    expect(orders).not.toEqual(
      Array.from({ length: 600 }, (_, round) =>
        orderOfRound(variants, round + 1, 'other').join(''),
      ),
    );
    for (const order of ['abc', 'acb', 'bac', 'bca', 'cab', 'cba']) {
      // 100 each on average; 60 is more than 4 standard deviations away.
      expect(orders.filter((one) => one === order).length).toBeGreaterThan(60);
    }
    expect(variants).toEqual(['a', 'b', 'c']);
  });
});

describe('a plan', async () => {
  const scenario = await findScenario('nginx-open-file-cache');
  const variants = scenario.variants.slice(0, 2);
  const cores = { serverCpus: [1], generatorCpus: [0] };
  const run = runName(scenario.name, new Date('2026-11-20T08:15:30.123Z'));

  test("has a readable name and the article's load", () => {
    const plan = makePlan(scenario, variants, cores, { quick: false, exact: false });
    expect(run).toBe('2026-11-20T08-15-30-nginx-open-file-cache');
    expect(plan.variants.map(({ load }) => load)).toMatchObject(
      Array(2).fill({ connections: 100, threads: 1, durationSeconds: 1, keepAlive: true }),
    );
    expect(plan.groups).toEqual([{ sides: plan.variants }]);
    // A round: two servers, 0.41 s of warm-up and 1 s each, and k6.
    expect(estimatedSeconds(plan)).toBeCloseTo(10 * (2 * (0.41 + 1 + 0.1) + 0.5), 9);
    expect(serversOf(plan.variants.map(({ variant }) => variant.server))).toEqual(['nginx']);
  });

  test("gives k6 the engine's options, tags and a longest duration", () => {
    const plan = makePlan(scenario, variants, cores, {
      durationSeconds: 1.5,
      quick: false,
      exact: false,
    });
    const side = {
      protocol: 'http/1.1',
      connections: 100,
      threads: 1,
      keepAlive: true,
      duration: '1500ms',
      warmup: '410ms',
      timeout: '5s',
      spin: true,
    };
    const targets = [8080, 8081].map((port) => ({
      url: `http://127.0.0.1:${port}/`,
      processes: [port, port + 1],
    }));
    expect(loadPlanFor({ ...plan, run }, plan.groups[0] as Group, 3, targets)).toEqual({
      scenario: 'nginx-open-file-cache',
      tags: { run: '2026-11-20T08-15-30-nginx-open-file-cache', round: '3' },
      // Of each side ten times its warm-up, its window and its time-out; and 10 s.
      maxDurationSeconds: 44,
      phases: [
        {
          sides: [
            {
              ...side,
              url: 'http://127.0.0.1:8080/',
              cpuOf: [8080, 8081],
              tags: { phase: '1', variant: 'workers', server: 'nginx', protocol: 'http/1.1' },
            },
            {
              ...side,
              url: 'http://127.0.0.1:8081/',
              cpuOf: [8081, 8082],
              tags: {
                phase: '1',
                variant: 'open-file-cache',
                server: 'nginx',
                protocol: 'http/1.1',
              },
            },
          ],
          seed: 3,
        },
      ],
    });
    const [group] = plan.groups as [Group];
    expect(
      loadPlanFor({ ...plan, run }, { ...group, sliceSeconds: 0.02 }, 3, targets).phases,
    ).toMatchObject([{ slice: '20ms' }]);
  });

  test.each<[string, Partial<Cores>, Partial<Target>, boolean]>([
    ['cores of its own', {}, {}, true],
    ['the cores of the server', { generatorCpus: [1] }, {}, false],
    ['cores that the network needs too', {}, { netns: '/proc/1/fd/8' }, false],
    ['fewer cores than threads', {}, {}, false],
  ])(
    'has the generator spin where it has cores of its own: on %s',
    (title, other, target, spins) => {
      const plan = makePlan(
        scenario,
        variants,
        { ...cores, ...other },
        { quick: false, exact: title.startsWith('fewer') },
      );
      const targets = [8080, 8081].map((port) => ({ url: `http://127.0.0.1:${port}/`, ...target }));
      const {
        phases: [phase],
      } = loadPlanFor({ ...plan, run }, plan.groups[0] as Group, 1, targets);
      expect(phase?.sides.map(({ spin = false }) => spin)).toEqual([spins, spins]);
    },
  );

  test.each([
    [{}, false, undefined, 10],
    [{}, true, undefined, 4],
    [{ rounds: 1 }, false, undefined, 1],
    [{ rounds: 1 }, true, undefined, 1],
    [{ rounds: 8 }, true, undefined, 4],
    [{ rounds: 1 }, true, 3, 3],
  ])(
    'has the rounds of the person, else of the scenario, else 10, quick ones at most 4: %j, quick %s, --rounds %s',
    (own, quick, asked, rounds) => {
      expect(
        makePlan({ ...scenario, ...own }, variants, cores, {
          quick,
          exact: false,
          ...(asked === undefined ? {} : { rounds: asked }),
        }).rounds,
      ).toBe(rounds);
    },
  );

  test.each<[Pick<PlanOptions, 'rounds' | 'precision'>, number[]]>([
    [{}, [10]],
    [{ rounds: 3 }, [3]],
    [{ precision: 0.01 }, [5, 10, 20, 40, 80]],
  ])(
    'looks at the verdicts at the end, or with --precision several times: %j',
    (options, looks) => {
      const plan = makePlan(scenario, variants, cores, { quick: false, exact: false, ...options });
      expect(plan).toMatchObject({ looks, rounds: looks.at(-1), sameWithin: 0.01 });
      expect(expectedRounds(plan)).toEqual({ fewest: looks[0], most: looks.at(-1) });
    },
  );

  test('has as many rounds as the time has, one at least', () => {
    const options = {
      quick: false,
      exact: false,
      durationSeconds: 9.24,
      precision: 0.01,
      sameWithin: 0.02,
    };
    const [long, short] = [150, 20].map((maxTimeSeconds) =>
      makePlan(scenario, variants, cores, { ...options, maxTimeSeconds }),
    ) as [PlanDraft, PlanDraft];
    expect(expectedRounds(long)).toEqual({ fewest: 5, most: 7 });
    expect(expectedRounds(short)).toEqual({ fewest: 1, most: 1 });
    expect(short).toMatchObject({
      maxTimeSeconds: 20,
      sameWithin: 0.02,
      looks: [5, 10, 20, 40, 80],
      precision: 0.01,
    });
    expect(() => makePlan(scenario, variants, cores, { ...options, maxTimeSeconds: 19 })).toThrow(
      new UserError(
        '--max-time 19 s is shorter than one round, which takes about 20 s: give more, or a shorter --duration',
        2,
      ),
    );
  });

  test.each<[Partial<PlanOptions>, number, number]>([
    [{ rounds: 12 }, 1, 12],
    [{ rounds: 12 }, 12, 1],
    [{ precision: 0.01 }, 5, 1],
    [{ precision: 0.01 }, 6, 5],
    // 20 s a round: 7 of them in 150 s, and later ones only when they were faster than that.
    [{ rounds: 100, maxTimeSeconds: 150 }, 1, 7],
    [{ precision: 0.01, maxTimeSeconds: 150 }, 6, 2],
    [{ rounds: 100, maxTimeSeconds: 150 }, 9, 1],
  ])('with %j has from round %i on as many to the next look: %i', (options, place, rounds) => {
    expect(
      roundsToLook(
        makePlan(scenario, variants, cores, {
          quick: false,
          exact: false,
          durationSeconds: 9.24,
          ...options,
        }),
        place,
      ),
    ).toBe(rounds);
  });

  test.each<[Partial<PlanOptions>, RegExp | null]>([
    [{ rounds: 4 }, null],
    [{ precision: 0.01 }, null],
    [{ quick: true }, null],
    [{ rounds: 4, maxTimeSeconds: 14.1 }, null],
    [{ rounds: 3 }, /^--fail-if asks for a verdict, which takes 4 rounds: --rounds 4 or more$/],
    [
      { precision: 0.01, maxTimeSeconds: 14 },
      /^--fail-if asks for a verdict, which takes 4 rounds, about 14 s: give a --max-time above that$/,
    ],
  ])('has the rounds that the verdict asked about takes: %j', (options, message) => {
    const make = (): PlanDraft =>
      makePlan(scenario, variants, cores, { quick: false, exact: false, failIf: {}, ...options });
    if (message === null) expect(make().variants).toHaveLength(2);
    else expect(make).toThrow(message);
  });

  test('is one that k6 can be given: a body stands in it for each side', () => {
    const posting = (bytes: number): Scenario => ({
      ...scenario,
      load: { ...scenario.load, method: 'POST', body: 'x'.repeat(bytes) },
    });
    expect(
      makePlan(posting(60_000), variants, cores, { quick: false, exact: false }).variants,
    ).toHaveLength(2);
    expect(() =>
      makePlan(posting(64_000), variants, cores, { quick: false, exact: false }),
    ).toThrow(
      /^the requests of 2 variants that take turns come to 12\d,\d{3} bytes with their headers and bodies, and k6 takes 126,000: give a shorter body or fewer variants$/,
    );
  });

  test('has a comparison where a verdict is asked about, by what can be compared', async () => {
    const options = { quick: false, exact: false, failIf: {} };
    expect(() => makePlan(scenario, variants.slice(1), cores, options)).toThrow(
      new UserError(
        '--fail-if asks for a verdict, and nothing is compared: name a variant and its baseline with --variants',
        2,
      ),
    );
    const ladder = await findScenario('h2o-vs-nginx');
    const [beside] = ladder.alsoCompare ?? [];
    const pair = ladder.variants.filter(
      ({ name }) => name === beside?.variant || name === beside?.against,
    );
    expect(makePlan(ladder, pair, cores, options).variants).toHaveLength(2);
    const atRate = await findScenario('h2o-vs-nginx-h2-rate');
    expect(makePlan(atRate, atRate.variants, cores, options).metric).toBeUndefined();
    expect(makePlan(atRate, atRate.variants, cores, { ...options, metric: 'p50' }).metric).toBe(
      'p50',
    );
    expect(() => makePlan(atRate, atRate.variants, cores, { ...options, metric: 'rps' })).toThrow(
      /^--metric rps: vegeta .* sets requests\/s itself: take p50, p90, p99 or cpu, or a load without a rate$/,
    );
    const there = defineScenario({
      ...scenario,
      page: { path: '/', bodyBytes: 5 },
      variants: [
        { name: 'here', server: command('node a.js') },
        { name: 'there', server: address('http://127.0.0.1:8080') },
      ],
    });
    const byCpu = (asked: readonly Variant[]): PlanDraft =>
      makePlan(there, asked, cores, { quick: false, exact: false, metric: 'cpu' });
    expect(() => byCpu(there.variants)).toThrow(
      new UserError(
        '--metric cpu: how much CPU what runs at http://127.0.0.1:8080 uses is not known: take rps, p50, p90 or p99',
        2,
      ),
    );
    expect(byCpu(there.variants.slice(0, 1)).metric).toBe('cpu');
  });

  test('takes page, host, headers, method and body of each variant to the engine; a Host of the load is stronger', () => {
    const page = { docroot: 'nginx', path: '/a?b=c', host: 'example.org', bodyBytes: 5 };
    const load = {
      ...scenario.load,
      method: 'POST',
      headers: { Accept: 'text/html' },
      body: 'x=1',
    };
    const own = { ...(variants[0] as Variant), page };
    const [plain] = variants as [Variant];
    const sidesOf = (variant: Variant) => {
      const plan = makePlan({ ...scenario, load }, [variant], cores, {
        quick: false,
        exact: false,
      });
      return loadPlanFor({ ...plan, run }, plan.groups[0] as Group, 1, [
        { url: 'http://127.0.0.1:8080/' },
      ]).phases[0]?.sides;
    };
    expect(sidesOf(own)).toMatchObject([
      { method: 'POST', headers: { Host: 'example.org', Accept: 'text/html' }, body: 'x=1' },
    ]);
    expect(sidesOf(plain)).toMatchObject([{ headers: { Accept: 'text/html' } }]);
    expect(
      sidesOf({ ...own, load: { ...load, headers: { hOST: 'other' } } })?.[0]?.headers,
    ).toEqual({ hOST: 'other' });
  });

  test('refuses more connections than files may be open, in one line', () => {
    const options = { quick: false, exact: false };
    expect(() =>
      makePlan(scenario, variants, cores, options, { files: 355, memoryBytes: Infinity }),
    ).toThrow(
      /^workers: nginx needs 356 open files for 100 connections, but the hard limit here is 355: raise it as root with "prlimit --nofile=356:356 --pid \$\$" in this shell$/,
    );
    expect(
      makePlan(scenario, variants, cores, options, { files: 356, memoryBytes: Infinity }).variants,
    ).toHaveLength(2);
    // A server that is to have too few is no reason; the generator still needs its own.
    const few = variants.map((variant): Variant => ({
      ...variant,
      server: { ...(variant.server as ConfiguredServer), fileLimit: 50 },
    }));
    expect(() =>
      makePlan(scenario, few, cores, options, { files: 163, memoryBytes: Infinity }),
    ).toThrow(
      /^workers: 100 connections of the load generator need 164 open files, but the hard limit here is 163: /,
    );
    expect(
      makePlan(scenario, few, cores, options, { files: 164, memoryBytes: Infinity }).variants,
    ).toHaveLength(2);
  });

  test('asks of other hosts what these allow', () => {
    const planOn = (server: number, generator: number): unknown =>
      makePlan(
        scenario,
        variants,
        {
          ...cores,
          serverHost: 'web1',
          serverFiles: { host: 'web1', most: server },
          generatorHosts: { names: ['gen1'], coresEach: 1 },
          generatorFiles: { host: 'gen1', most: generator },
        },
        { quick: false, exact: false },
      );
    expect(() => planOn(355, 1e6)).toThrow(
      /^workers: nginx needs 356 open files for 100 connections, but the hard limit on web1 is 355: raise it there for who comes by ssh \(nofile in \/etc\/security\/limits\.conf\)$/,
    );
    expect(() => planOn(1e6, 163)).toThrow(
      /^workers: 100 connections of the load generator need 164 open files, but the hard limit on gen1 is 163: raise it there/,
    );
    // In two groups, since one k6 loads both sides of one.
    expect(planOn(356, 164)).toMatchObject({ groups: [{ sides: [{}] }, { sides: [{}] }] });
  });
});

describe('a plan over HTTP/2', () => {
  const spec: ConfiguredServer = { name: 'nghttpd', config: ['h2'], workers: 1, articleWorkers: 1 };
  const h2: LoadProfile = {
    command: 'h2load',
    protocol: 'h2',
    connections: 1020,
    streams: 1020,
    requests: 100_000,
    threads: 1,
    keepAlive: true,
    timeoutSeconds: 600,
  };
  const scenario: Scenario = {
    name: 'img',
    title: 'img',
    article: { id: '002', title: 'nghttpd', year: 2015 },
    knob: '',
    load: h2,
    page: { docroot: 'images', path: '/img.html', bodyBytes: 525_304 },
    phases: { count: 3, pauseSeconds: 5 },
    rounds: 1,
    variants: [
      { name: 'nghttpd', server: spec },
      { name: 'spdy', server: 'SPDY is gone', published: { rps: 1 } },
      {
        name: 'nginx',
        server: { ...spec, name: 'nginx' },
        load: { ...h2, protocol: 'http/1.1', streams: 1, connections: 100, timeoutSeconds: 5 },
      },
    ],
  };
  const cores = { serverCpus: [1], generatorCpus: [0] };
  const plan = {
    ...makePlan(
      scenario,
      scenario.variants,
      cores,
      { quick: false, exact: false },
      { files: 4096, memoryBytes: Infinity },
    ),
    run: 'run',
  };
  const [nghttpd, nginx] = plan.variants as [PlannedVariant, PlannedVariant];
  const groupOf = (planned: PlannedVariant): Group => ({ sides: [planned] });

  test('runs what can be run, each with its own load, and shows the rest', () => {
    expect(plan.shown.map(({ name }) => name)).toEqual(['nghttpd', 'spdy', 'nginx']);
    expect(
      plan.variants.map(({ variant, load }) => [variant.name, load.protocol, load.connections]),
    ).toEqual([
      ['nghttpd', 'h2', 1020],
      ['nginx', 'http/1.1', 100],
    ]);
    expect(serversOf(plan.variants.map(({ variant }) => variant.server))).toEqual([
      'nghttpd',
      'nginx',
    ]);
  });

  test('asks for all phases, apart by a tag, on one server', () => {
    const loadPlan = loadPlanFor(plan, groupOf(nghttpd), 1, [
      { url: 'https://127.0.0.1:8443/img.html', processes: [7] },
    ]);
    expect(loadPlan).toMatchObject({ pauseSeconds: 5, tags: { run: 'run', round: '1' } });
    expect(loadPlan.phases.map(({ sides }) => sides)).toEqual(
      ['1', '2', '3'].map((phase) => [
        {
          url: 'https://127.0.0.1:8443/img.html',
          protocol: 'h2',
          connections: 1020,
          streams: 1020,
          threads: 1,
          keepAlive: true,
          timeout: '600s',
          requests: 100_000,
          spin: true,
          cpuOf: [7],
          tls: { insecureSkipVerify: true },
          tags: { phase, variant: 'nghttpd', server: 'nghttpd', protocol: 'h2' },
        },
      ]),
    );
    // The article's own pace must not be cut off: 451 s, 72 s and 251 s.
    expect(loadPlan.maxDurationSeconds).toBeGreaterThan(3 * 451 + 10);
  });

  test('offers no TLS to a plain address, and what the profile says to the others', () => {
    const sideOf = (planned: PlannedVariant, url: string): SideOptions | undefined =>
      loadPlanFor(plan, groupOf(planned), 1, [{ url }]).phases[0]?.sides[0];
    const plain = sideOf(nginx, 'http://127.0.0.1:8080/');
    expect(plain).not.toHaveProperty('tls');
    expect(plain).not.toHaveProperty('streams');
    const offered = {
      ...nginx,
      load: { ...nginx.load, tls: { maxVersion: 'TLSv1.2' as const, curves: ['P-384'] } },
    };
    expect(sideOf(offered, 'https://127.0.0.1:8443/')?.tls).toEqual({
      insecureSkipVerify: true,
      maxVersion: 'TLSv1.2',
      curves: ['P-384'],
    });
    const tlsAt = (host: string): unknown =>
      loadOptions(offered.load, { url: 'https://127.0.0.1:8443/' }, { host }).tls;
    expect(tlsAt('a.example:8443')).toMatchObject({ curves: ['P-384'], serverName: 'a.example' });
    for (const address of ['10.0.0.1', '10.0.0.1:8443', '[::1]:8443'])
      expect(tlsAt(address)).not.toHaveProperty('serverName');
  });

  test('in the open model gives the rate and the buckets to the nanosecond', () => {
    const rate = {
      ...h2,
      connections: 1,
      streams: 250,
      requests: 10_000,
      rate: 1000,
      bucketSeconds: [150e-6, 300e-6, 0.001, 0.005],
    };
    const one = { ...scenario, load: rate, phases: { count: 1, pauseSeconds: 0 } };
    const open = makePlan(one, one.variants.slice(0, 1), cores, { quick: false, exact: false });
    const {
      phases: [phase],
      ...loadPlan
    } = loadPlanFor({ ...open, run: 'run' }, open.groups[0] as Group, 1, [
      { url: 'https://127.0.0.1:8443/' },
    ]);
    expect(phase?.sides[0]).toMatchObject({
      rate: 1000,
      requests: 10_000,
      buckets: ['150us', '300us', '1ms', '5ms'],
      streams: 250,
    });
    expect(loadPlan).not.toHaveProperty('pauseSeconds');
    expect(estimatedSeconds(open)).toBeCloseTo(0.402 + 10 + 0.1 + 0.5, 9);
  });

  test('takes as long as the bytes do, the phases and the pauses', () => {
    const phase = expectedSeconds(nghttpd.load, scenario.page);
    expect(phase).toBeGreaterThan(60);
    expect(phase).toBeLessThan(450);
    expect(expectedSeconds(nghttpd.load, { bodyBytes: 612 })).toBeLessThan(20);
    expect(estimatedSeconds(plan)).toBeCloseTo(
      3 * phase + 3 * expectedSeconds(nginx.load, scenario.page) + 2 * (10 + 0.1 + 0.5),
      6,
    );
  });
});

test.each([
  [10, '10s'],
  [1.5, '1500ms'],
  [0.15, '150ms'],
  [150e-6, '150us'],
  [300e-6, '300us'],
  [0.1 + 0.2, '300ms'],
  [900e-6, '900us'],
  [1e-9, '1ns'],
  [0.0123456, '12345600ns'],
  [86_400, '86400s'],
])('goDuration(%f) is %s', (seconds, text) => {
  expect(goDuration(seconds)).toBe(text);
});

describe('what k6 writes', () => {
  const point = (metric: string, value: number) =>
    `{"metric":"${metric}","type":"Point","data":{"time":"2026-11-20T08:15:31Z","value":${value},"tags":{}}}\n`;

  test.each([
    [
      'the error of a phase, which does not fail it',
      'GoError: loadgen.run: no such cipher\\n\\tat runPhases\\n\\n  TOTAL\\n    data_sent: 0 B',
      0,
      'k6 ended with code 0: loadgen.run: no such cipher',
    ],
    [
      'its last line where it failed itself',
      'starting\\nno space left\\n',
      107,
      'k6 ended with code 107: no space left',
    ],
    ['nothing', '', 3, 'k6 ended with code 3: it said nothing'],
    [
      'how it crashed',
      'starting\\npanic: no luck\\n\\ngoroutine 1 [running]:\\nmain.main()\\n\\t/main.go:3 +0x1d\\nexit status 2\\n',
      2,
      'k6 ended with code 2: panic: no luck',
    ],
    [
      'the signal that it crashed by',
      'SIGSEGV: segmentation violation\\nPC=0x46f3c1 m=0\\n\\nrax    0x0\\ngs     0x0\\n',
      2,
      'k6 ended with code 2: SIGSEGV: segmentation violation',
    ],
    [
      'that Go found no memory',
      'fatal error: runtime: cannot allocate memory\\n\\nruntime stack:\\nruntime.throw(...)\\n\\truntime/proc.go:302 +0xad\\n',
      2,
      'k6 ended with code 2: fatal error: runtime: cannot allocate memory',
    ],
  ])('is told when phases are missing: %s', async (_, said, code, message) => {
    const binary = join(folder, 'k6');
    writeFileSync(binary, `#!/bin/sh\nprintf '${said}' >&2\nexit ${code}\n`, { mode: 0o755 });
    const loadPlan = {
      scenario: 'x',
      tags: {},
      maxDurationSeconds: 1,
      phases: [{ sides: [{ protocol: 'h2' as const, connections: 1 }] }],
    };
    const k6 = await startK6({
      binary,
      script: 'script.js',
      folder,
      cpus: [0],
      loadPlan,
      output: null,
    });
    await expect(k6.results()).rejects.toThrow(new Error(message));
  });

  test('is followed while it grows, half lines included', () => {
    const file = join(folder, 'record.ndjson');
    const rate = followRate(file);
    expect(rate()).toBeNull();
    writeFileSync(
      file,
      '{"metric":"loadgen_seconds","type":"Metric","data":{"name":"loadgen_seconds"}}\n',
    );
    expect(rate()).toBeNull();
    const second = (seconds: number, ...responses: number[]): string =>
      point('loadgen_seconds', seconds) +
      point('loadgen_requests', 99_999) +
      responses.map((count) => point('loadgen_responses', count)).join('') +
      point('loadgen_bytes', 7);
    const last = point('loadgen_connections', 10);
    appendFileSync(file, second(1, 1) + last + second(0.5, 617, 3) + last.slice(0, 40));
    expect(rate()).toBe(1);
    appendFileSync(file, last.slice(40) + point('loadgen_latency_ms', 9).repeat(5000));
    expect(rate()).toBe(1240);
    appendFileSync(file, second(1e-9, 1) + last);
    expect(rate()).toBe(1240);
    appendFileSync(file, second(1) + last);
    expect(rate()).toBe(0);
  });

  test('of the script: the lines of phases among others', () => {
    const file = join(folder, 'phases.log');
    const phases = [
      { results: [{ requests: 5 }] },
      { results: [{ requests: 7 }], step: { rates: [100], tried: [true] } },
    ];
    writeFileSync(
      file,
      `hello\nbakeoff-phase-begins\n${phases.map((one) => `bakeoff-phase ${JSON.stringify(one)}\n`).join('')}`,
    );
    expect(readPhases(file)).toEqual({ phases, over: false });
    appendFileSync(file, 'bakeoff-load-over\n');
    expect(readPhases(file)).toEqual({ phases, over: true });
    expect(readPhases(join(folder, 'none'))).toEqual({ phases: [], over: false });
  });

  test('of the script: each phase once, and no half lines', () => {
    const file = join(folder, 'phases.log');
    const phases = followPhases(file);
    expect(phases()).toEqual([]);
    writeFileSync(file, `${phaseLinePrefix}{"results":`);
    expect(phases()).toEqual([]);
    appendFileSync(file, '[]}\n');
    expect(phases()).toEqual([{ results: [] }]);
    // A full disk cuts a line.
    appendFileSync(file, `${phaseLinePrefix}{"res\n${phaseLinePrefix}{"results":[2]}\n`);
    expect(phases()).toEqual([{ results: [2] }]);
  });
});

describe('the results folder', () => {
  test('is made, and left without a trace of the check', async () => {
    const out = join(folder, 'a', 'b');
    await checkResultsFolder(out, 1);
    expect(readdirSync(out)).toEqual([]);
  });

  test('with a file in the way is refused in one line', async () => {
    writeFileSync(join(folder, 'file'), '');
    await expect(checkResultsFolder(join(folder, 'file'), 1)).rejects.toThrow(
      /^cannot write results to .*\/file: there is a file of that name/,
    );
    await expect(checkResultsFolder(join(folder, 'file', 'deeper'), 1)).rejects.toThrow(
      /there is a file of that name in its path/,
    );
  });

  test('with too little space is refused', async () => {
    await expect(checkResultsFolder(folder, 1e18)).rejects.toThrow(
      /too little space, this run needs 1000000000000 MB/,
    );
    const home = join(folder, 'not', 'there', 'yet');
    await expect(
      requireSpace(home, 1e18, 'InfluxDB', 'name another folder in BAKEOFF_HOME'),
    ).rejects.toThrow(
      `${home} has too little space, InfluxDB needs 1000000000000 MB: free some, or name another folder in BAKEOFF_HOME`,
    );
    await requireSpace(home, 1, 'InfluxDB', '');
  });

  test('gives a second run of the same second a name of its own', async () => {
    expect(await createRunFolder(folder, 'run')).toEqual({
      run: 'run',
      folder: join(folder, 'run'),
    });
    expect(await createRunFolder(folder, 'run')).toEqual({
      run: 'run-2',
      folder: join(folder, 'run-2'),
    });
    expect(existsSync(join(folder, 'run-2'))).toBe(true);
  });

  test('keeps the file that is there when a new one cannot be written', async () => {
    const file = join(folder, 'result.json');
    await writeWhole(file, 'one');
    mkdirSync(`${file}.unfinished`);
    await expect(writeWhole(file, 'two')).rejects.toThrow('EISDIR');
    expect(readFileSync(file, 'utf8')).toBe('one');
  });

  test('that does not take the script fails as for any other file', async () => {
    const file = join(folder, 'script.js');
    await compileScript(file);
    expect(readFileSync(file, 'utf8')).toContain('from "k6/x/loadgen"');
    mkdirSync(join(folder, 'taken'));
    await expect(compileScript(join(folder, 'taken'))).rejects.toMatchObject({
      code: 'EISDIR',
      path: join(folder, 'taken'),
    });
  });

  test('explains errors of its own files only', () => {
    const error = (code: string, path?: string) => Object.assign(new Error(code), { code, path });
    expect(folderError('/results', error('ENOSPC'))).toMatchObject({
      message: expect.stringContaining('its file system is full') as string,
    });
    expect(folderError('/results', error('EACCES', '/results/run'))).toMatchObject({
      message: expect.stringContaining('you may not write there') as string,
    });
    const other = error('EACCES', '/usr/bin/k6');
    expect(folderError('/results', other)).toBe(other);
  });
});
