import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { knownServers } from '../../bench/proof/known.ts';
import { noted, runOf } from '../../bench/proof/lab.ts';
import { aloneIn, latencyScenario } from '../../bench/proof/parts.ts';
import { proofPage, viewOf, writePage } from '../../bench/proof/page.ts';
import { costLayer, costlyLine, linesFor } from '../../bench/proof/power.ts';
import {
  readPart,
  writePart,
  type KnownCase,
  type KnownFigures,
  type PartFile,
  type PartName,
  type ProofData,
  type Run,
} from '../../bench/proof/results.ts';
import { ratioOf, widthsByTime, widthWithin } from '../../bench/proof/statistics.ts';
import { intervalPlot } from '../../bench/proof/svg.ts';
import { latencyMs, simulated } from '../../bench/proof/queue.ts';
import { poolTruth, timedServers } from '../../bench/proof/timed.ts';
import { chosenCases } from '../../bench/proof/waiting.ts';
import { isBeyondBounds } from '../../bench/proof/waiting-view.ts';
import { halfWidth } from '../../lib/analysis/statistics.ts';
import { UserError } from '../../lib/errors.ts';
import { findVariants } from '../../lib/scenario/catalogue.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { planOf } from '../fixtures/plan.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const { environment } = result([workers, openFileCache]);

function partFile<Name extends PartName>(
  part: Name,
  data: ProofData[Name],
  changes: Partial<PartFile<Name>> = {},
): PartFile<Name> {
  return {
    schema: 2,
    part,
    state: 'complete',
    command: `npm run bench -- proof-${part}`,
    startedAt: '2026-11-21T08:00:12.000Z',
    endedAt: '2026-11-21T08:21:40.000Z',
    environment: { ...environment, versions: { k6: '2.2.0', nginx: '1.22.1' } },
    failures: [],
    data,
    ...changes,
  };
}

function runWith(
  ratio: number,
  half: number,
  verdict: Run['verdict'],
  changes: Partial<Run> = {},
): Run {
  return {
    startedAt: '2026-11-21T08:00:12.000Z',
    seconds: 31.4,
    rps: [70_000, 70_000 * ratio],
    ratio,
    ci95: [ratio / (1 + half), ratio * (1 + half)],
    verdict,
    roundRatios: [ratio, ratio, ratio, ratio],
    dropped: 0,
    othersShare: 0.02,
    ...changes,
  };
}

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

test('widths by time begin at the first possible verdict', () => {
  const rounds = [1, 1.02, 0.99, 1.01, 1].map((ratio) => ({ startedAt: '', seconds: 3, ratio }));
  const widths = widthsByTime(rounds);
  expect(widths.map(({ seconds }) => seconds)).toEqual([12, 15]);
  expect(widths[1]?.width).toBeCloseTo(halfWidth(ratioOf(rounds.map(({ ratio }) => ratio))), 12);
  const [first, second] = widths.map(({ width }) => width);
  const within = [11, 12, 14.9, 100].map((seconds) => widthWithin(widths, seconds));
  expect(within).toEqual([undefined, first, first, second]);
});

test('a run is read from its result', () => {
  const whole = result([workers, openFileCache]);
  const [{ ratio, ci95, roundRatios } = {}] = whole.comparisons;
  expect(runOf(whole)).toMatchObject({ ratio, ci95, roundRatios, verdict: 'faster' });
  expect(runOf(whole)).toMatchObject({ seconds: 140, rps: [60_411, 80_275], dropped: 0 });
  expect(() => runOf({ ...whole, comparisons: [] })).toThrow('no comparison');
});

test('a search has the resulting rates in place of requests/s', () => {
  const rates = (rate: number) => workers.rounds.map(() => ({ rate, atLeast: false }));
  const run = runOf(
    result([
      { ...workers, found: rates(20_000) },
      { ...openFileCache, found: rates(25_000) },
    ]),
  );
  expect(run.rps.map(Math.round)).toEqual([20_000, 25_000]);
});

test('latency is measured in turns, and of one side alone', () => {
  const variants = findVariants(latencyScenario, undefined);
  const plan = planOf(latencyScenario, {}, { variants });
  const shown = ({ groups }: typeof plan) =>
    groups.map(({ sides }) => sides.map((side) => side.variant.name));
  expect(plan.variants.map(({ load }) => load.rate)).toEqual([1000, 1000]);
  expect(shown(plan)).toEqual([['a', 'again']]);
  expect(shown(aloneIn(plan))).toEqual([['a']]);
});

test('the number of lines for a cost', () => {
  // 100 lines that halve requests/s take as long as a request. So a line takes 1 % of a request, and 2.46 lines cost 2.4 %.
  expect(linesFor(0.024, 0.5)).toBe(2);
  expect(linesFor(0.024, 0.8)).toBe(10);
  expect(linesFor(0.013, 0.01)).toBe(1);
  expect(costLayer(2)).toContain(`location / {\n${costlyLine}\n${costlyLine}\n}`);
});

function knownFigures(changes: Partial<KnownFigures> = {}): KnownFigures {
  return {
    rps: 496,
    meanMs: 20.1,
    p50Ms: 20.1,
    p99Ms: 21,
    cpuMicros: 50,
    queueGrowthPerSecond: null,
    errors: 0,
    reconnects: 0,
    idleCpuShare: null,
    turns: null,
    ...changes,
  };
}

const inTurns = {
  idleCpuShare: 0.02,
  turns: { count: 3, responses: 0, sliceMs: 200, rampMs: 42, waits: true },
};
const alone20 = knownFigures();
const round20 = {
  expected: { rps: 10_000 / 20.1, p50Ms: 20.1, p99Ms: 21, cpuMicros: 50 },
  alone: alone20,
  two: knownFigures({ ...inTurns, rps: 900, p99Ms: 21.9 }),
  eight: knownFigures({ ...inTurns, rps: 500 }),
};
const waitingData = {
  cases: [
    {
      name: 'waits 20 ms',
      how: '10 connections / (20 ms + overhead alone)',
      rounds: [round20, { ...round20, eight: { ...round20.eight, reconnects: 3 } }, round20],
    },
  ],
  mixed: {
    how: 'one that waits',
    rounds: [
      {
        alone: { waiting: knownFigures({ rps: 2000 }), computing: knownFigures({ rps: 5000 }) },
        together: {
          waiting: [2000, 2000].map((rps) => knownFigures({ rps })),
          computing: [5200, 5200].map((rps) => knownFigures({ rps })),
        },
      },
    ],
  },
} satisfies ProofData['waiting'];

const backends = { inTurns: 'http://127.0.0.1:1234', alone: 'http://127.0.0.1:5678' };
const expectedOf = async (name: string, alone: KnownFigures): Promise<object | undefined> =>
  (await knownServers(folder, backends))
    .find((known) => known.name === name)
    ?.expected(alone, alone);

test.each([
  ['waits 20 ms', { meanMs: 20.2, p50Ms: 20.1 }, { rps: 10_000 / 20.2, p50Ms: 20.1, p99Ms: 21 }],
  // Earlier than the wait, and much later, are both out of bounds.
  ['waits 20 ms', { meanMs: 10, p50Ms: 10 }, { rps: 500, p50Ms: 20 }],
  ['waits 20 ms', { meanMs: 30, p50Ms: 30 }, { p50Ms: 22 }],
  ['burns 30 ms each second', { rps: 6000, cpuMicros: 97 }, { rps: 5820, cpuMicros: 100 }],
  ['burns 30 ms each second', { cpuMicros: null }, { cpuMicros: null }],
])('a server that %s, with %j alone, should have %j', async (name, alone, expected) => {
  expect(await expectedOf(name, knownFigures(alone))).toMatchObject(expected);
});

test('known servers without a measurement fail as well', () => {
  expect(viewOf(partFile('waiting', waitingData)).beyond).toHaveLength(3);
  const cases = waitingData.cases.map((known) => ({ ...known, rounds: [] }));
  const none = { cases, mixed: { ...waitingData.mixed, rounds: [] } };
  expect(viewOf(partFile('waiting', none)).beyond).toEqual([
    'waits 20 ms: not measured',
    'computes, against waits: not measured',
  ]);
});

test('known servers get more rounds until all medians are within bounds', () => {
  const good = { ...round20, two: alone20, eight: alone20 };
  const bad = { ...good, eight: knownFigures({ rps: 300 }) };
  const isBeyond = (...rounds: KnownCase['rounds']) =>
    isBeyondBounds({ name: 'waits 20 ms', how: '', rounds });
  expect(isBeyond()).toBe(true);
  expect(isBeyond(bad, good)).toBe(true);
  expect(isBeyond(bad, good, good)).toBe(false);
});

test.each([
  { workers: 1, serviceMs: 5, rate: 180 },
  { workers: 4, serviceMs: 4, rate: 500 },
  { workers: 4, serviceMs: 4, rate: 900 },
])('the latency of a queue by formula equals a simulation: %j', (queue) => {
  const sorted = simulated(queue, 1_000_000, 7).sort((a, b) => a - b);
  for (const quantile of [0.5, 0.9, 0.99]) {
    const ratio = latencyMs(queue, quantile) / (sorted[quantile * sorted.length] as number);
    expect(Math.abs(ratio - 1)).toBeLessThan(0.03);
  }
});

test('the latency of a single queue equals that of the formula by Erlang', () => {
  // P(wait ≤ t) = (1 − ρ) Σ (λ(kD − t))^k / k! · e^(−λ(kD − t)), k from 0 to ⌊t / D⌋, here for D = 1 ms, ρ = 0.8 and t = 2.5 ms.
  const terms = [0, 1, 2].map((k) => {
    const x = 0.8 * (k - 2.5);
    return (x ** k / [1, 1, 2][k]!) * Math.exp(-x);
  });
  const share = 0.2 * terms.reduce((sum, term) => sum + term, 0);
  expect(latencyMs({ workers: 1, serviceMs: 1, rate: 800 }, share)).toBeCloseTo(1 + 2.5, 4);
});

test.each([
  [1, 80, 'constant', { rps: 800, p50Ms: 1, p99Ms: 1, queueGrowthPerSecond: 0 }],
  [4, 50, 'constant', { rps: 500, p50Ms: 4, p99Ms: 4, queueGrowthPerSecond: 0 }],
  [4, 130, 'poisson', { rps: 1000, cpuMicros: 200, queueGrowthPerSecond: 300 }],
] as const)('a pool of %i at %i %, %s, should have %j', (workers, percent, arrivals, truth) => {
  expect(poolTruth(workers, percent, arrivals)).toMatchObject(truth);
});

test.each([
  ['token bucket', { rps: 500, p50Ms: 100, p99Ms: 100 }],
  ['token bucket at 600/s', { rps: 500, queueGrowthPerSecond: 100 }],
  ['8 cores, waits 50 ms', { rps: 500 / 0.05005, p50Ms: 50.05 }],
  ['16 cores, waits 100 ms', { rps: 1000 / 0.10005, p50Ms: 100.05 }],
  ['uneven connections', { rps: 8000, p99Ms: 20 }],
  ['stalls each 2,000 requests', { rps: 2000 / 0.7, p50Ms: 10, p99Ms: 510 }],
  ['stalls each 10 s', { rps: 8500, p50Ms: 10, p99Ms: 10 }],
  ['compiles for 3 s', { rps: 1e6 / 140, p50Ms: 1.4, cpuMicros: 140 }],
  ['works after its answer', { rps: 1e6 / 150, cpuMicros: 150 }],
])('%s should have %j', (name, truth) => {
  const alone = knownFigures();
  const seen = timedServers('timed')
    .find((known) => known.name === name)
    ?.expected(alone, alone);
  expect(Object.keys(seen ?? {})).toEqual(expect.arrayContaining(Object.keys(truth)));
  for (const [figure, value] of Object.entries(truth))
    expect(seen?.[figure as 'rps']).toBeCloseTo(value, 6);
});

test('cases are selected by prefix; by default the usual ones', () => {
  const names = (only?: string) =>
    chosenCases(timedServers('timed'), only).cases.map(({ name }) => name);
  expect(names('pool of 1, 9')).toEqual([
    'pool of 1, 90 %, constant',
    'pool of 1, 95 %, constant',
    'pool of 1, 90 %, poisson',
    'pool of 1, 95 %, poisson',
  ]);
  expect(names('token bucket')).toEqual(['token bucket']);
  expect(names()).toContain('pool of 4, 80 %, poisson');
  expect(names()).not.toContain('pool of 4, 90 %, poisson');
  expect(chosenCases(timedServers('timed'), 'computes')).toEqual({ cases: [], withMixed: true });
  expect(() => names('tokens')).toThrow('"token bucket"');
});

test('the growth of a queue is judged if it was measured', () => {
  const rows = (queueGrowthPerSecond: number | null) => {
    const seen = knownFigures({ queueGrowthPerSecond });
    const expected = { queueGrowthPerSecond: 300 };
    const cases = [
      { name: 'pool', how: '', rounds: [{ expected, alone: seen, two: seen, eight: seen }] },
    ];
    return viewOf(partFile('waiting', { cases, mixed: null })).beyond;
  };
  expect(rows(null)).toEqual([]);
  expect(rows(295)).toEqual([]);
  expect(rows(20)).toHaveLength(3);
});

test('random deviations are within bounds', () => {
  const isBeyond = (p99Ms: number, rounds: number) => {
    const seen = knownFigures({ p99Ms });
    const round = {
      expected: { p99Ms: 22.9, chance: { p99Ms: 6 } },
      alone: seen,
      two: seen,
      eight: seen,
    };
    return isBeyondBounds({ name: 'pool', how: '', rounds: Array(rounds).fill(round) });
  };
  expect(isBeyond(29, 1)).toBe(false);
  expect(isBeyond(29, 4)).toBe(true);
});

const lab = (signal = new AbortController().signal) => ({
  failures: [] as { at: string; why: string }[],
  signal,
  say: vi.fn(),
});
const failing = () => Promise.reject(new UserError('round 1 failed twice: nginx ended'));

test('failures are recorded, and the sixth one ends the part', async () => {
  const labWithFailures = lab();
  for (let time = 1; time <= 5; time++)
    expect(await noted(labWithFailures, failing)).toBeUndefined();
  expect(labWithFailures.failures).toHaveLength(5);
  expect(labWithFailures.failures[4]?.why).toBe('round 1 failed twice: nginx ended');
  await expect(noted(labWithFailures, failing)).rejects.toThrow('round 1 failed twice');
  expect(await noted(labWithFailures, () => Promise.resolve(7))).toBe(7);
});

test('failures after a signal and programming errors end the part at once', async () => {
  const stopped = lab(AbortSignal.abort(new Error('interrupted')));
  await expect(noted(stopped, failing)).rejects.toThrow('interrupted');
  expect(stopped.failures).toEqual([]);
  await expect(noted(lab(), () => Promise.reject(new TypeError('x')))).rejects.toThrow(TypeError);
});

test('the file of an interrupted part does not replace the complete one', async () => {
  const of = (ratio: number, state: 'complete' | 'partial') =>
    partFile('aa', { runs: [runWith(ratio, 0.01, 'inconclusive')] }, { state });
  expect(await readPart(folder, 'aa')).toBeUndefined();
  await writePart(folder, of(1.01, 'partial'));
  expect(await readPart(folder, 'aa')).toEqual(of(1.01, 'partial'));
  await writePart(folder, of(1.02, 'complete'));
  expect(await readdir(folder)).toEqual(['aa.json']);
  await writePart(folder, of(1.03, 'partial'));
  expect(await readPart(folder, 'aa')).toEqual(of(1.02, 'complete'));
});

test('files of an earlier version are refused, because the method was different', async () => {
  const file = join(folder, 'aa.json');
  await writeFile(file, JSON.stringify({ ...partFile('aa', { runs: [] }), schema: 1 }));
  await expect(readPart(folder, 'aa')).rejects.toThrow(`${file} is of an earlier version, `);
});

test('plots show every value at the right position of the axis', () => {
  const values = [0.99, 1.004, 1.021];
  const bars = values.map((value) => ({
    series: 0,
    value,
    interval: [value - 0.002, value + 0.003] as [number, number],
  }));
  const svg = intervalPlot({
    title: 'a <b>',
    series: ['one'],
    x: 'runs',
    y: { label: 'ratio', text: (value) => `=${value}=` },
    groups: [{ name: 'all', bars }],
  });
  expect(svg).toContain('a &lt;b&gt;');
  const numbers = (pattern: RegExp) =>
    [...svg.matchAll(pattern)].map(([, ...captures]) => captures.map(Number));
  const axis = numbers(/y1="([\d.]+)" y2="\1"\/><text class="end"[^>]*>=([\d.]+)=/g);
  const [[y = 0, from = 0] = [], [end = 0, to = 0] = []] = [axis[0], axis.at(-1)];
  const valueAt = (at: number) => Number((from + ((at - y) * (to - from)) / (end - y)).toFixed(3));
  const centres = numbers(/cy="([\d.]+)"/g).flat();
  expect(centres.map(valueAt)).toEqual(values);
  const [ends] = numbers(/stroke-width="1.5"[^>]* y1="([\d.]+)" y2="([\d.]+)"/g);
  expect(ends?.map(valueAt)).toEqual([0.988, 0.993]);
});

const aa = partFile('aa', {
  runs: [
    runWith(1.001, 0.008, 'inconclusive'),
    runWith(0.99, 0.006, 'slower', { seconds: 33, dropped: 2 }),
    runWith(1.0005, 0.009, 'same'),
  ],
});

test('the page lists missing parts, and has every figure from the files', () => {
  const { markdown, plots } = proofPage({ aa });
  for (const text of [
    '`proof-agreement` and `proof-disturbed`.',
    '2026-11-21 08:00 to 2026-11-21 08:21 UTC, `npm run bench -- proof-aa`; Xeon, 2 cores,',
    '1 of 3 runs called the two different; the median half-width was ±0.80 %.',
    '| 1 of 3 | ×1.0005 | ×0.9900 to ×1.0010 | ±0.80 % | ±0.60 % to ±0.90 % | 31 s | 2 | 2.0 % |',
    '| 70,000 → 69,300 | ×0.9900 | 0.9841, 0.9959 | ±0.60 % | slower | 4 | 33.0 |',
    '](proof/aa.svg)',
  ])
    expect(markdown).toContain(text);
  expect([...plots.keys()]).toEqual(['proof/aa.svg']);
  // Two equal runs, and the mark in the legend.
  expect(plots.get('proof/aa.svg')?.match(/<circle/g)).toHaveLength(2 + 1);
});

test('the page shows all parts', () => {
  const ratios = [0.97, 0.972, 0.968, 0.97];
  const timed = (seconds: number) =>
    [1.19, 1.21, 1.2, 1.22, 1.18].map((ratio) => ({ startedAt: '', seconds, ratio }));
  const seen = { effect: [1.2, 1.21, 1.19], control: [1, 1.001, 0.999] };
  const { markdown, plots } = proofPage({
    aa,
    search: partFile('search', {
      within: { metric: 'p99', ms: 2 },
      runs: [runWith(1.01, 0.03, 'inconclusive'), runWith(0.95, 0.02, 'slower')],
      loadSeconds: 0.5,
      loads: [
        { share: 0.95, kept: 5, of: 6 },
        { share: 1, kept: 3, of: 6 },
        { share: 0.95, kept: 4, of: 6 },
      ],
    }),
    power: partFile('power', {
      line: 'rewrite ^/none$ /;',
      costs: [
        {
          lines: 6,
          runs: [
            runWith(0.97, 0.008, 'slower', { roundRatios: ratios }),
            runWith(0.97, 0.009, 'inconclusive', { roundRatios: ratios }),
          ],
          precise: [runWith(0.97, 0.009, 'slower', { seconds: 17 })],
        },
      ],
    }),
    width: partFile('width', { alternating: timed(3.5), sequential: timed(24) }),
    slices: partFile('slices', {
      slices: [
        { milliseconds: 5, effect: [1.1, 1.1, 1.1], control: seen.control },
        { milliseconds: 10, ...seen },
        { milliseconds: 1000, effect: [], control: [] },
      ],
      wrk: seen,
    }),
    latency: partFile('latency', {
      rounds: [
        [0.1, 0.4, 0.1, 0.5, 0.1, 0.32],
        [0.1, 0.4, 0.11, 0.44, 0.11, 0.44],
        [0.12, 1.2, 0.12, 1.2, 0.12, 1.2],
      ].map((ms) => {
        const sides = [0, 2, 4].map((at) => ({ p50: ms[at] ?? 0, p99: ms[at + 1] ?? 0 }));
        return { alone: sides.slice(0, 1), inTurns: sides.slice(1) };
      }),
    }),
    waiting: partFile('waiting', waitingData),
    agreement: partFile('agreement', {
      cases: [
        {
          title: 'open_file_cache',
          ours: { ratios: seen.effect, generatorShares: [0.5, 0.6, 0.55] },
          peers: [
            { name: 'wrk', ratios: [1.19, 1.23, 1.18], generatorShares: [0.7, 0.8, 0.75] },
            { name: 'k6/http', ratios: [1.01, 1, 0.99], generatorShares: [0.98, 0.7, 0.99] },
          ],
        },
        {
          title: 'never measured',
          ours: { ratios: [], generatorShares: [] },
          peers: [{ name: 'h2load', ratios: [], generatorShares: [] }],
        },
      ],
    }),
    disturbed: partFile(
      'disturbed',
      { control: [runWith(1, 0.02, 'inconclusive')], effect: [], builds: 3 },
      { state: 'partial', failures: [{ at: '2026-11-21T08:05:12.000Z', why: 'it failed' }] },
    ),
  });
  expect(markdown).not.toContain('Missing');
  expect([...plots.keys()].map((at) => markdown.includes(`(${at})`))).toEqual(Array(9).fill(true));
  for (const line of [
    '2 searches for the highest rate with p99 within 2.00 ms, as',
    'at 95 % of it by 9 of 12 and at 100 % of it by 3 of 6 loads of 0.5 s.',
    'of 3 rounds: p50 ×1.032 [0.900, 1.183] and p99 ×1.032 [0.900, 1.183].',
    '| p99 | 400 µs | 440 µs | ×1.032',
    '| 6 more lines | ×0.970 [0.969, 0.971] | −3 % | 1 of 2 | ±0.85 % | 31 s | 1 of 1 | 17 s |',
    "0 of 1 generators that had time left see a larger ratio than bakeoff, within these intervals: bakeoff's by theirs is ×1.000 to ×1.000.",
    "wrk's interval and bakeoff's exclude each other at 1 of 2 lengths of a turn. How much of its",
    '| 10 ms | 3 | ×1.200 [1.175, 1.225] | ×1.000 [0.998, 1.002] |',
    '| 497.51 | 496.00 (−0.3 %) | 900.00 (+80.9 %) ✗ | 500.00 (+0.5 %) |  |',
    'Beyond their bounds are 3 of 16 figures: waits 20 ms, 2 sides: requests/s 900.00 (+80.9 %),',
    ' waits 20 ms, 8 sides: new connections 3 (none expected) and computes, against waits, 4 sides:',
    '| 50.0 | 0 | 3 | 2.0 % | 3 × 200.00 ms, ramps of 42.00 ms |',
    'The others: open_file_cache (k6/http, 98 % of its core).',
    '| wrk | 3 | 75 % | ×1.200 [1.136, 1.267] | ×1.000 [0.965, 1.036] |',
    '**Interrupted: only a part of it was measured.**',
    'Failed at 2026-11-21 08:05, and in no figure: it failed',
  ])
    expect(markdown).toContain(line);
  // Only lengths with measurements.
  expect(markdown).not.toMatch(/1000 ms|never measured/);
  for (const svg of plots.values()) expect(svg).not.toMatch(/NaN|Infinity|undefined/);
});

test('the page keeps other sections, and removes unused plots', async () => {
  const file = await writePage(folder, { aa });
  await writeFile(join(folder, 'proof', 'gone.svg'), '<svg/>');
  await writeFile(file, `${await readFile(file, 'utf8')}\n## By hand\n\nkept\n`);
  const runs = [runWith(1, 0.02, 'inconclusive')];
  await writePage(folder, {
    disturbed: partFile('disturbed', { control: runs, effect: [], builds: 3 }),
  });
  const both = await readFile(file, 'utf8');
  expect(both.match(/^## .*/gm)).toEqual([
    '## A config against itself',
    '## While a compiler runs',
    '## By hand',
  ]);
  expect((await readdir(join(folder, 'proof'))).sort()).toEqual(['aa.svg', 'disturbed.svg']);
});
