// Servers of known figures: their truth, bounds, and the score of a blind test.
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { possiblePairs } from './blind.ts';
import { outcome, tableOfCases, tableOfDeviations, voidReasons, type Case } from './judge.ts';
import { allOrNone } from './lab.ts';
import type { KnownSide } from './kinds.ts';
import { groupsOfSides, type Seen } from './measure.ts';
import {
  chanceText,
  drawPairs,
  scoreLine,
  scoreOf,
  scoreTables,
  sealOf,
  type KnownPair,
  type PairRun,
} from './pairs.ts';
import { latencyMs, simulated } from './queue.ts';
import { knownServers, poolTruth } from './known-servers.ts';
import type { Truth } from './servers.ts';
import { cellText, type Cell } from '../../report/table.ts';

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

test.each([
  [1, 80, 'constant', { rps: 800, p50Ms: 1, p99Ms: 1, queueGrowthPerSecond: 0 }],
  [4, 50, 'constant', { rps: 500, p50Ms: 4, p99Ms: 4, queueGrowthPerSecond: 0 }],
  [4, 130, 'poisson', { rps: 1000, queueGrowthPerSecond: 300 }],
] as const)('a pool of %i at %i %, %s, should have %j', (workers, percent, arrivals, truth) => {
  expect(poolTruth(workers, percent, arrivals)).toMatchObject(truth);
});

test.each([
  ['waits 100 ms', { rps: 1000, p50Ms: 100, cpuMicros: 200 }],
  ['500 tokens/s', { rps: 500, p50Ms: 100, p99Ms: 100 }],
  ['8 cores, waits 50 ms', { rps: 500 / 0.05005, p50Ms: 50.05 }],
  ['uneven connections', { rps: 8000, p99Ms: 20 }],
  ['stalls every 2,000 requests', { rps: 2000 / 0.7, p50Ms: 10, p99Ms: 510 }],
  ['compiles for 2 s', { rps: 1e6 / 140, p50Ms: 1.4, cpuMicros: 140 }],
  ['works after its answer', { rps: 1e6 / 150, cpuMicros: 150 }],
  ['1 of 50 waits 500 ms', { rps: 500, p50Ms: 5, p99Ms: 505, queueGrowthPerSecond: 0 }],
])('%s should have %j', (name, truth) => {
  const known = knownServers.find((server) => server.name === name)?.truth();
  for (const [figure, value] of Object.entries(truth))
    expect(known?.[figure as 'rps']).toBeCloseTo(value, 6);
});

test.each([
  ['alone', 1],
  ['2 sides', 2],
  ['8 sides', 8],
] as const)('%s: all have a rate or none, and each server is in one group', (arrangement, most) => {
  const groups = groupsOfSides(knownServers, arrangement);
  const fit = knownServers.filter(({ takesLong }) => most < 8 || !takesLong);
  expect(new Set(groups.flat())).toEqual(new Set(fit));
  expect(groups.flat()).toHaveLength(fit.length);
  for (const group of groups) {
    expect(group.length).toBeLessThanOrEqual(most);
    expect(new Set(group.map(({ load }) => load.rate === undefined)).size).toBe(1);
  }
});

const seen = (changes: Partial<Seen> = {}): Seen => ({
  rps: 1000,
  p50Ms: 10,
  p99Ms: 10,
  cpuMicros: 200,
  queueGrowthPerSecond: null,
  bodyBytes: 612,
  generatorMicros: 8,
  littleShare: 1,
  errors: 0,
  othersShare: 0.001,
  ...changes,
});

function caseOf(truth: Truth, all: Record<string, Seen>): Case {
  const [known] = knownServers as [(typeof knownServers)[number]];
  return { known, truth, seen: new Map(Object.entries(all)) };
}
const truth: Truth = { rps: 1000, p50Ms: 10, p99Ms: 10, cpuMicros: 200 };

test.each<[Partial<Seen>, boolean]>([
  [{}, false],
  [{ rps: 1029, p50Ms: 10.29, p99Ms: 10.9, cpuMicros: 205 }, false],
  [{ rps: 965 }, true],
  [{ p50Ms: 10.4 }, true],
  // 10 % or 1 ms.
  [{ p99Ms: 11.2 }, true],
  [{ cpuMicros: 210 }, true],
  [{ cpuMicros: null }, false],
  [{ littleShare: 1.05 }, true],
  [{ errors: 1 }, true],
])('%j is beyond the bounds: %s', (changes, isBeyond) => {
  const measured = caseOf(truth, { alone: seen(changes) });
  expect(outcome([measured]).beyond).toHaveLength(isBeyond ? 1 : 0);
});

test('where requests come at random, figures are off by chance', () => {
  const random = { p99Ms: 22.9, chance: { p99Ms: 6 } };
  const isBeyond = (p99Ms: number) =>
    outcome([caseOf(random, { alone: seen({ p99Ms }) })]).beyond.length > 0;
  expect(isBeyond(22.9 + 3 * 6 - 0.1)).toBe(false);
  expect(isBeyond(22.9 + 3 * 6 + 0.1)).toBe(true);
});

test('other generators are off without a mark, and have no bounds', () => {
  const slow = seen({ rps: 800, p50Ms: NaN, p99Ms: NaN });
  const measured = caseOf(truth, { alone: seen({ rps: 900 }), wrk: slow });
  const { columns, rows } = tableOfCases([measured], ['wrk']);
  expect(columns.map(({ title }) => title)).toEqual(['server', '', 'truth', 'alone', 'wrk']);
  expect(rows[0]?.map(cellText)).toEqual([
    'waits 50 ms',
    'requests/s',
    '1,000',
    '900.00 (−10.0 %) ✗',
    '800.00 (−20.0 %)',
  ]);
  // It prints no percentiles.
  expect(rows[1]?.map(cellText).at(-1)).toBe('');
  expect(outcome([measured]).beyond).toEqual(['waits 50 ms, alone: requests/s 900.00 (−10.0 %)']);
});

test('the short table has the farthest of the figures, and a row for each generator', () => {
  const measured = caseOf(truth, {
    alone: seen({ rps: 990, generatorMicros: 9 }),
    '8 sides': seen({ rps: 1010.4, p50Ms: 10.5 }),
    wrk: seen({ rps: 800, p50Ms: NaN, p99Ms: NaN, littleShare: null }),
  });
  const { columns, rows } = tableOfDeviations([measured], ['wrk', 'ab']);
  const [ours = [], others = []] = rows.map((row) => row.map(cellText));
  const cellsOf = (title: string) => {
    const place = columns.findIndex((column) => column.title === title);
    return [ours[place], others[place]];
  };
  expect(rows).toHaveLength(2);
  expect(cellsOf('seen by')).toEqual(['bakeoff', 'wrk']);
  expect(cellsOf('requests/s')).toEqual(['1,000 (+1.0 %)', '−20.0 %']);
  expect(cellsOf('p50')).toEqual(['10.00 ms (+5.0 %) ✗', '']);
  expect(cellsOf('generator CPU µs')).toEqual(['9.0', '8.0']);
});

test('a calibration beside other programs does not count', () => {
  const [quiet, busy] = [
    caseOf(truth, { alone: seen() }),
    caseOf(truth, { alone: seen({ othersShare: 0.2 }) }),
  ];
  expect(voidReasons([quiet])).toEqual([]);
  expect(voidReasons([busy])[0]).toContain("other programs used 20 % of the server's core");
});

test('a seed always draws the same pairs, and a seal holds them', () => {
  expect(drawPairs(50, 3, true)).toEqual(drawPairs(50, 3, true));
  expect(sealOf(drawPairs(50, 3, false))).not.toBe(sealOf(drawPairs(50, 4, false)));
  // The first pairs do not depend on how many there are.
  expect(drawPairs(10, 3, true)).toEqual(drawPairs(50, 3, true).slice(0, 10));
});

test('the sides of a pair are of different kinds, and their ratio is the one drawn', () => {
  const pairs = drawPairs(300, 5, false);
  for (const { sides, ratio, rate, number } of pairs) {
    const [a, b] = sides;
    expect(a.kind, `pair ${number}`).not.toBe(b.kind);
    const isKept = [a, b].every(({ kind }) => !/higher rate|stalls.*at a rate/.test(kind));
    if (isKept) expect(Math.abs(Math.log(ratio))).toBeLessThan(Math.log(1.2) + 1e-4);
    if (rate === undefined) expect(ratio).toBe(a.ns / b.ns);
  }
  const kinds = new Set(pairs.flatMap(({ sides }) => sides.map(({ kind }) => kind)));
  expect(kinds.size).toBe(21);
  expect(pairs.filter(({ rate }) => rate !== undefined).length).toBeGreaterThan(30);
});

test.each([
  ['spins a quarter of the time', / -job 1ms -job-each 4ms/, 0.75],
  ['has a job each second', / -job 100ms -job-each 1s/, 0.9],
  ['stalls 1.5 of 5 s', / -stall 1500ms -stall-each 5s/, 0.7],
])('a server that %s has the rest of the time for requests', (kind, flags, share) => {
  const sides = drawPairs(300, 5, false).flatMap((pair) => pair.sides);
  const { options, ns } = sides.find((side) => side.kind === kind) as KnownSide;
  expect(options).toMatch(flags);
  expect(Number(/^-(?:service|cpu) (\d+)ns/.exec(options)?.[1])).toBe(Math.round(share * ns));
});

test('what happens to a pair happens while it is measured', () => {
  for (const { disturbance } of drawPairs(100, 6, true)) {
    const { at = [] } = disturbance ?? {};
    expect(at).toHaveLength(3);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(at[0]).toBeGreaterThanOrEqual(4);
    expect(at[2]).toBeLessThan(24);
  }
});

test('pairs whose caches cannot be dropped are left out', async () => {
  const pairs = drawPairs(200, 6, true);
  const others = pairs.filter(({ disturbance }) => disturbance?.what !== 'drops caches');
  expect(others.length).toBeLessThan(pairs.length);
  expect(await possiblePairs(pairs, [], '/not/there')).toEqual(others);
  expect(await possiblePairs(pairs, [], import.meta.filename)).toEqual(pairs);
});

test('a pair that root has run counts, though its caches cannot be dropped now', async () => {
  const pairs = drawPairs(200, 6, true);
  const drops = pairs.filter(({ disturbance }) => disturbance?.what === 'drops caches');
  const [made] = drops as [KnownPair];
  const possible = await possiblePairs(pairs, [made], '/not/there');
  expect(possible).toContainEqual(made);
  expect(possible).toHaveLength(pairs.length - drops.length + 1);
});

test('where a part fails, the others are ended before the error is thrown', async () => {
  let isEnded = false;
  const preparing = allOrNone(new AbortController().signal, (signal) => [
    Promise.reject(new Error('no Go')),
    once(signal, 'abort').then(() => {
      isEnded = true;
    }),
  ]);
  await expect(preparing).rejects.toThrow('no Go');
  expect(isEnded).toBe(true);
});

test('the parts of a preparation end with the signal, whose reason is thrown', async () => {
  const interrupting = new AbortController();
  const preparing = allOrNone(interrupting.signal, (signal) => [
    once(signal, 'abort').then(() => Promise.reject(new Error('killed'))),
  ]);
  interrupting.abort(new Error('interrupted'));
  await expect(preparing).rejects.toThrow('interrupted');
});

const closedPair = drawPairs(40, 1, false).find(({ rate }) => rate === undefined) as KnownPair;
const pairRun = (changes: Partial<PairRun>): PairRun => ({
  number: 1,
  ratio: 1.05,
  ci95: [1.04, 1.06],
  verdict: 'inconclusive',
  byCpu: 'none',
  why: '',
  isChecked: true,
  seconds: 30,
  ...changes,
});

test.each<[number, Partial<PairRun>, 'false' | 'found' | 'neither']>([
  [1.05, { verdict: 'faster' }, 'found'],
  [1.05, { verdict: 'slower' }, 'false'],
  [1.05, { byCpu: 'faster' }, 'found'],
  [1.05, { verdict: 'faster', byCpu: 'slower' }, 'false'],
  [1.05, { verdict: 'same' }, 'false'],
  [1.05, {}, 'neither'],
  [1.01, { verdict: 'same' }, 'neither'],
  [1, { verdict: 'same' }, 'neither'],
  [1, { verdict: 'faster' }, 'false'],
  [1, { byCpu: 'slower' }, 'false'],
  [0.95, { verdict: 'slower' }, 'found'],
])('of a ratio of %f, %j is %s', (ratio, changes, outcomeOfIt) => {
  const pair = { ...closedPair, ratio, cpuRatio: 1 / ratio };
  const { isFalse, isFound } = scoreOf(pair, pairRun(changes), 0.01);
  expect([isFalse, isFound]).toEqual([outcomeOfIt === 'false', outcomeOfIt === 'found']);
});

test.each<[number, Partial<PairRun>, 'false' | 'found' | 'neither']>([
  [1.05, { verdict: 'slower' }, 'found'],
  [1.05, { verdict: 'faster' }, 'false'],
  [Infinity, { verdict: 'faster' }, 'false'],
  [Infinity, { verdict: 'same' }, 'false'],
  [0, { verdict: 'faster' }, 'found'],
  [0, { verdict: 'none' }, 'neither'],
])('at a rate, of a p99 of %f times, %j is %s', (ratio, changes, outcomeOfIt) => {
  const pair = { ...closedPair, rate: 800, ratio, cpuRatio: 1 };
  const { isFalse, isFound } = scoreOf(pair, pairRun(changes), 0.01);
  expect([isFalse, isFound]).toEqual([outcomeOfIt === 'false', outcomeOfIt === 'found']);
});

test('a verdict by CPU per request counts by what CPU per request is', () => {
  const pair = { ...closedPair, ratio: 1, cpuRatio: 0.1 };
  expect(scoreOf(pair, pairRun({ byCpu: 'faster' }), 0.01)).toMatchObject({ isFound: true });
  expect(scoreOf(pair, pairRun({ byCpu: 'slower' }), 0.01)).toMatchObject({ isFalse: true });
});

test('without a verdict an interval claims nothing', () => {
  const pair = { ...closedPair, ratio: 2 };
  expect(scoreOf(pair, pairRun({ verdict: 'none' }), 0.01).misses).toBe(false);
  expect(scoreOf(pair, pairRun({}), 0.01).misses).toBe(true);
});

// R: binom.test(3, 200)$conf.int
test.each([
  [3, 200, '[0.3, 4.3] %'],
  [0, 40, '[0.0, 8.8] %'],
  [196, 200, '[95.0, 99.5] %'],
])('%i of %i is %s', (times, runs, interval) => {
  expect(chanceText(times, runs)).toBe(interval);
});

test('the score counts by effect and kinds; few runs have no bounds', () => {
  const pair = { ...closedPair, ratio: 1.05, cpuRatio: 1 / 1.05 };
  const [good, bad, none] = [
    scoreOf(pair, pairRun({ verdict: 'faster' }), 0.01),
    scoreOf(pair, pairRun({ verdict: 'slower', ci95: [0.9, 1] }), 0.01),
    scoreOf(pair, pairRun({ verdict: 'none', ci95: [0.9, 1] }), 0.01),
  ];
  const [byEffect, byKind] = scoreTables([good, good, bad, none]);
  expect(byEffect?.rows.map((row) => row.map(cellText))).toEqual([
    ['5.0 % apart', '4', '2', '0', '0', '1', '1', '1'],
  ]);
  expect(byKind?.rows.map(([kind]) => cellText(kind as Cell))).toEqual(
    pair.sides.map(({ kind }) => kind),
  );
  expect(scoreLine([good, bad, none])).toEqual({
    line: '1 of 3 pairs have a false verdict, [0.8, 90.6] % (bound: 5.0 %); 1 of 2 intervals hold, [1.3, 98.7] % (bound: 94 %); 1 pair without a verdict',
    isGood: true,
  });
  const most = Array<typeof good>(38).fill(good);
  expect(scoreLine([...most, bad, bad]).isGood).toBe(true);
  expect(scoreLine([...most.slice(1), bad, bad, bad]).isGood).toBe(false);
});
