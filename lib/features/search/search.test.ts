// The search for the highest rate within a limit.
import { expect, test, vi } from 'vitest';
import { curveRows } from '../../analysis/curves.ts';
import { curvesOf } from '../../report/found.ts';
import { foundLines, foundRates } from './found.ts';
import { type RateEnd, rateEnd, whyNotKept } from './kept.ts';
import type { PhaseOutcome } from '../../k6/load-plan.ts';
import {
  RateSearch,
  searchStarts,
  highestRate,
  lowestRate,
  mostSteps,
  stepsAround,
  type SearchStart,
} from './rate-search.ts';
import { UserError } from '../../errors.ts';
import { Disturbance } from '../../runner/failures.ts';
import type { SteppedSide } from '../../runner/plan.ts';
import type { Phase, RateStep, Result } from '../../result/result.ts';
import { searchIn, searchWithin, stepIn } from './search.ts';
import type { Within } from '../../scenario/model.ts';
import { comparisonOf, variant } from '../../../test/fixtures/comparison.ts';
import { answers, latency, phase } from '../../../test/fixtures/phase.ts';
import { cores } from '../../../test/fixtures/plan.ts';
import { facts } from '../../../test/fixtures/result.ts';
import { summarise } from '../../../test/fixtures/summary.ts';

const within: Within = { metric: 'p99', ms: 5 };
const fromNothing: SearchStart = { rate: 1000, factor: 2, least: lowestRate };

/** Runs a search with this rule for kept rates. Returns the search and all rates in order. */
function walk(isKept: (rate: number, tried: number) => boolean, start = fromNothing) {
  const search = new RateSearch(start, within);
  const tried: number[] = [];
  for (let rate = search.next(); rate !== undefined && tried.length < 100; rate = search.next()) {
    tried.push(rate);
    expect(search.next()).toBe(rate);
    search.told(rate, isKept(rate, tried.length));
  }
  if (tried.length < 100) expect([search.next(), search.next()]).toEqual([undefined, undefined]);
  return { search, tried };
}

const until = (limit: number) => (rate: number) => rate <= limit;

const farFrom = (limit: number, { found }: RateSearch) =>
  Math.abs(Math.log((found as number) / limit));

test('a search finds a limit within 3 %, in few steps from a close start', () => {
  expect(farFrom(150, walk(until(150)).search)).toBeLessThan(0.03);
  const { search, tried } = walk(until(9000), { rate: 14_000, factor: 1.2, least: 5000 });
  expect(farFrom(9000, search)).toBeLessThan(0.03);
  expect(tried.length).toBeLessThanOrEqual(14);
});

test('a search below what a side can do takes at most 38 steps, three per rate on the way to the limit', () => {
  const limits = Array.from(
    { length: 101 },
    (_, index) => lowestRate * (highestRate / lowestRate) ** (index / 100),
  );
  const steps = [1, 3, 10, 100, 1000].flatMap((above) =>
    limits.map((limit) => {
      const measured = Math.min(highestRate, above * limit);
      const [start] = searchStarts({ known: [null], lowest: null, drawn: 0 }, () => [measured]);
      const { tried } = walk(until(limit), start);
      return 3 * tried.length - 2 * stepsAround;
    }),
  );
  expect(Math.max(...steps)).toBe(38);
  expect(mostSteps).toBeGreaterThanOrEqual(38);
});

test('a search doubles, then halves, then goes up and down around the limit', () => {
  const { tried } = walk(until(7000));
  expect(tried.slice(0, 6)).toEqual([1000, 2000, 4000, 8000, 5657, 6727]);
  // The step is 8 % of the rate, halved at every reversal, but at least 3 %.
  expect(tried.slice(6)).toEqual([7336, 6772, 7048, 6840, 7048, 6840, 7048, 6840]);
});

test('a search ends if no rate keeps the limit, or if all rates do', () => {
  const low = walk(() => false);
  expect(low.search.found).toBeUndefined();
  expect(low.tried).toEqual([1000, 833, 578, lowestRate]);
  expect(walk(() => true).search.found).toBe(highestRate);
  expect(walk(() => false, { rate: 7000, factor: 1.2, least: 2500 }).tried).toEqual([
    7000, 5833, 4051, 2500,
  ]);
});

test.each([
  ['the first rate was broken by a pause', 1, false, 40_000],
  ['a much higher rate was kept by luck', 3, true, 1500],
])('a search recovers if %s', (_, at, luck, limit) => {
  const { search, tried } = walk((rate, number) => (number === at ? luck : rate <= limit));
  expect(farFrom(limit, search)).toBeLessThan(0.04);
  expect(tried.length).toBeLessThanOrEqual(30);
});

function step(rate: number, p99: number, changes: Partial<Phase> = {}): Phase {
  return phase({
    requests: rate,
    seconds: 1,
    rps: rate,
    latencyMs: latency(p99 / 2, p99, 2 * p99, {
      histogram: [
        [p99 / 2, 0.8 * rate],
        [p99, 0.2 * rate],
      ],
    }),
    ...changes,
  });
}

test('a rate is kept if one of three steps keeps the limit', () => {
  const ends = (of: Phase) => [1, 2, 3].map((number) => rateEnd(of, number, 2000, within));
  expect(ends(step(2000, 5))).toEqual(['kept', 'kept', 'kept']);
  expect(ends(step(2000, 5.1))).toEqual(['open', 'open', 'broken']);
});

test('before the first kept rate, a single clear step breaks a rate', () => {
  const search = new RateSearch(fromNothing, within);
  // p50 is half of that, so half of the responses are beyond the limit.
  const tell = (to: RateSearch, p99: number) => {
    const rate = to.next() as number;
    return to.judge(rate, step(rate, p99, { latencyMs: step(2000, p99).latencyMs }));
  };
  expect(tell(search, 12)).toBe('broken');
  const other = new RateSearch(fromNothing, within);
  const ends = [4, 12, 12, 12].map((p99) => tell(other, p99));
  expect(ends).toEqual(['kept', 'open', 'open', 'broken']);
  const half = new RateSearch(fromNothing, { metric: 'p50', ms: 5 });
  expect(half.judge(half.next() as number, step(1000, 12))).toBe('open');
});

const half: Within = { metric: 'p50', ms: 5 };
const failed = { responses: answers({ '2xx': 1900, '5xx': 100 }) };
test.each<[string, Phase, Within, RateEnd, string]>([
  [
    'that was not reached',
    step(1700, 1, { unsent: 300 }),
    within,
    'broken',
    '1,700 requests/s were made',
  ],
  [
    'not reached because of a pause',
    step(1900, 1, { unsent: 100 }),
    half,
    'open',
    '1,900 requests/s were made',
  ],
  ['with failures', step(2000, 1, failed), within, 'broken', '5.0 % failed'],
  ['with too few answers', step(900, 1), within, 'broken', 'too few answers for a p99'],
])('a rate %s', (_, result, limit, end, why) => {
  const rate = result.requests + result.unsent;
  // This code runs in k6, where toLocaleString does not work.
  const inK6 = vi.spyOn(Number.prototype, 'toLocaleString').mockImplementation(() => {
    throw new RangeError('k6 takes the language for a radix');
  });
  expect(rateEnd(result, 1, rate, limit)).toBe(end);
  inK6.mockRestore();
  expect(whyNotKept(result, rate, limit)).toBe(why);
});

const planned = {
  variant: { name: 'a' },
  load: { protocol: 'http/1.1', threads: 1 },
} as SteppedSide['planned'];
const roundOf = (
  phases: readonly Phase[],
  outcomes: readonly PhaseOutcome[],
  known: readonly number[] = [],
) => searchIn({ planned, server: null, phases, outcomes, side: 0, cores, known, round: 1 }, within);
type Told = [rate: number, p99: number, changes?: Partial<Phase>];
const outcome = (result: Phase, rate: number | null, rateSoFar: number | null): PhaseOutcome => ({
  results: [result],
  step: { rates: [rate], found: [rateSoFar] },
});
/** Returns the result of a round with these steps, in the order in which the search requested them. */
const rateOf = (steps: readonly Told[], known: readonly number[] = []) => {
  const search = new RateSearch(fromNothing, within);
  const outcomes = steps.map(([rate, p99, changes]) => {
    const result = step(rate, p99, changes);
    search.judge(rate, result);
    return outcome(result, rate, search.found ?? null);
  });
  const phases = outcomes.flatMap(({ results }) => results as Phase[]);
  return roundOf(phases, outcomes, known).found;
};

const { search, tried } = walk(until(1800), { rate: 1700, factor: 1.2, least: lowestRate });
/** All steps of the search, with three steps for the broken rate on the way to the limit. */
const around = tried.flatMap((rate, index) =>
  Array<Told>(index === 1 ? 3 : 1).fill([rate, rate <= 1800 ? 1 : 19]),
);
const rate = search.found as number;
const closest = around.findIndex(
  ([rate]) => rate === Math.max(...tried.filter((each) => each <= 1800)),
);

test('the rate of a round is a lower bound if the generator was at its limit, or no rate broke the limit', () => {
  const busy = { requests: 1700, unsent: 300, serverCpuSeconds: 0.5, generatorCpuSeconds: 0.97 };
  const withBusy = (isBusy: (rate: number) => boolean): typeof around =>
    around.map(([rate, p99]) => (p99 > 5 && isBusy(rate) ? [rate, p99, busy] : [rate, p99]));
  expect(rateOf(withBusy(() => true))).toMatchObject({ atLeast: true });
  expect(rateOf(around)).toMatchObject({ atLeast: false });
  // Steps below the resulting rate that a pause broke do not count.
  expect(rateOf(withBusy((rateOfStep) => rateOfStep > rate))).toMatchObject({ atLeast: true });
  expect(rateOf(withBusy((rateOfStep) => rateOfStep < rate || rateOfStep > 2000))).toMatchObject({
    atLeast: false,
  });
  const most: Told[] = [
    [1000, 1],
    [highestRate, 19],
    [highestRate, 2],
  ];
  expect(rateOf(most)).toEqual({ step: 2, rate: highestRate, atLeast: true });
});

test('a round without enough steps has no rate', () => {
  const two: Told[] = [1000, 2000].map((rate) => [rate, 1]);
  expect(() => rateOf(two)).toThrow(Disturbance);
  expect(() => rateOf(two)).toThrow(/not come to an end in 2 steps, the last at 2,000 requests/);
});

test('if the lowest rate breaks the limit, the first round is an error, later rounds count as disturbed', () => {
  const steps = [200, 200, 200, 100, 100, 100].map((rate): Told => {
    const { latencyMs } = step(2000, 18);
    return [rate, 18, { requests: 2000, seconds: 2000 / rate, latencyMs }];
  });
  expect(() => rateOf(steps)).toThrow(UserError);
  expect(() => rateOf(steps)).toThrow(
    /^a: p99 within 5\.00 ms is not kept at 100 requests\/s, the lowest rate \(p99 18\.00 ms\): /,
  );
  expect(() => rateOf(steps, [9000])).toThrow(Disturbance);
});

test('a round ignores steps that were made only for other sides', () => {
  const phases = [...around, [rate, 90] as const].map(([rate, p99]) => step(rate, p99));
  const outcomes = phases.map((phase, index) => outcome(phase, around[index]?.[0] ?? null, rate));
  expect(roundOf(phases, outcomes).found).toMatchObject({ step: closest, rate });
  expect(stepIn(outcomes.at(-1) as PhaseOutcome, 0, 'a', within, 1)).toEqual([]);
  expect(stepIn(outcome(step(2000, 19), 2000, null), 0, 'a', within, 1)).toEqual([
    {
      round: 1,
      variant: 'a',
      rate: 2000,
      made: 2000,
      latencyMs: { p50: 9.5, p90: 19, p99: 19 },
      kept: false,
      why: 'p99 19.00 ms',
    },
  ]);
});

const nothingMeasured = () => {
  throw new Error('the rates are known');
};

test('all searches of a round begin at the same rate below the lowest known rate; the start varies by round', () => {
  const rounds = [0, 0.4, 1].map((drawn) =>
    searchStarts({ known: [20_000, 10_000], lowest: 10_000, drawn }, nothingMeasured),
  );
  expect(rounds.map(([a]) => Math.round(a?.rate ?? 0))).toEqual([6000, 7000, 8500]);
  for (const [a, b] of rounds) {
    expect(a).toEqual({ rate: b?.rate, factor: 1.2, least: 5000 });
    expect(b?.least).toBe(2500);
  }
  // The same for a side that is loaded alone.
  const [alone] = searchStarts({ known: [20_000], lowest: 10_000, drawn: 0.4 }, nothingMeasured);
  expect(alone).toEqual(rounds[1]?.[0]);
});

test('the first searches begin below what the slowest side does without a rate', () => {
  const unknown = { known: [null, null], lowest: null };
  const starts = searchStarts({ ...unknown, drawn: 0.4 }, () => [20_000, 10_000]);
  const start = { rate: expect.closeTo(7000), factor: 1.2, least: 0 };
  expect(starts).toEqual([start, start]);
  // Nothing was answered right.
  const [none] = searchStarts({ ...unknown, drawn: 0 }, () => [0, 10_000]);
  expect(new RateSearch(none as SearchStart, within).next()).toBe(lowestRate);
});

const foundAt = (rate: number, atLeast = false) => ({ rate, atLeast });
const searched = (name: string, rates: readonly number[], atLeast = false) =>
  variant(
    name,
    rates.map((each) => step(Math.round(0.98 * each), 4)),
    {
      found: rates.map((each) => foundAt(each, atLeast)),
      load: { protocol: 'http/1.1', threads: 1, searched: true },
    },
  );

const around1000 = [1000, 1010, 990, 1000];
const lower = searched('a', around1000);

test('the result of a search is the geometric mean over rounds, with an interval from four rounds on', () => {
  expect(foundRates([{ name: 'a', found: [foundAt(1000), foundAt(4000)] }, { name: 'b' }])).toEqual(
    [{ variant: 'a', rate: expect.closeTo(2000, 6), ci95: null, atLeast: false }],
  );
  const [four] = foundRates([
    { name: 'a', found: [900, 1000, 1100, 1000].map((each) => foundAt(each, each === 900)) },
  ]);
  expect(four).toMatchObject({ rate: expect.closeTo(997.5, 0), atLeast: true });
  expect(four?.ci95?.[0]).toBeCloseTo(875.5, 1);
  expect(four?.ci95?.[1]).toBeCloseTo(1136.5, 1);
});

test('results of searches are compared; a lower bound is never called slower', () => {
  expect(comparisonOf([lower, searched('b', [1100, 1111, 1089, 1100])])).toMatchObject({
    metric: 'rps',
    verdict: 'faster',
    ratio: expect.closeTo(1.1, 6),
  });
  const less = [900, 909, 891, 900];
  expect(comparisonOf([lower, searched('b', less, true)]).verdict).toBe('none');
  expect(comparisonOf([searched('a', around1000, true), searched('b', less)]).verdict).toBe(
    'slower',
  );
});

test('where the generator was the limit is said of the rate alone, not of the load nearest to it', () => {
  const busy = (found: boolean) => {
    const cpu = { serverCpuSeconds: 0.5, generatorCpuSeconds: 0.99 };
    const phases = around1000.map((rate) => step(rate, 4, cpu));
    const rates = around1000.map((rate) => foundAt(rate));
    return variant('a', phases, found ? { found: rates } : {});
  };
  const warnings = (found: boolean) => summarise(facts, [busy(found)]).warnings.join();
  expect(warnings(false)).toContain('the generator was at its limit');
  expect(warnings(true)).not.toContain('the generator was at its limit');
});

const steps = (name: string, rates: readonly number[]): RateStep[] =>
  rates.map((rate) => ({
    round: 1,
    variant: name,
    rate,
    made: rate,
    latencyMs: { p50: rate / 1e4, p90: rate / 2e3, p99: rate / 1e3 },
    kept: rate < 5000,
    why: '',
  }));

test('a curve of a search has the steps by rate, and merges close rates', () => {
  const search = {
    within,
    found: [],
    steps: [...steps('a', [4000, 1000, 8000]), ...steps('b', [2000])],
  };
  const variants = [variant('a', []), variant('b', [])];
  const curves = curvesOf({ search, variants } as unknown as Result);
  expect(
    curveRows(curves).map(({ rate, seen }) => [rate, seen.get('a')?.p99, seen.get('b')?.kept]),
  ).toEqual([
    [1000, 1, undefined],
    [2000, undefined, true],
    [4000, 4, undefined],
    [8000, 8, undefined],
  ]);

  const many = curvesOf({
    search: {
      ...search,
      steps: Array.from({ length: 100 }, (_, index) => steps('a', [1000 + 90 * index])).flat(),
    },
    variants,
  } as unknown as Result);
  const rows = curveRows(many);
  expect(rows.length).toBeLessThanOrEqual(12);
  const kept = rows.map(({ seen }) => seen.get('a')?.kept);
  expect([kept[0], kept.at(-1)]).toEqual([true, false]);
  // The rates of a sweep are not merged.
  const points = Array.from({ length: 15 }, (_, index) => ({
    rate: 1000 + index,
    p50: 1,
    p99: 2,
  }));
  expect(curveRows([{ name: 'a', points }])).toHaveLength(15);
});

test('broken steps far below the resulting rate are reported', () => {
  const rates = [{ variant: 'a', rate: 10_000, ci95: null, atLeast: false }];
  const below = steps('a', [1000, 2000, 3000, 5500, 5900, 7000, 9000, 11_000]);
  const linesFor = (some: readonly RateStep[]) =>
    foundLines({ search: { within, found: rates, steps: [...some] } });
  expect(linesFor(below)).toEqual([
    'a keeps p99 within 5.00 ms up to 10,000 requests/s in half of its loads.',
    expect.stringMatching(/^a: 2 of 5 steps at less than 60 % of that rate broke p99 within 5/),
  ]);
  const fast = { p50: 1, p90: 2, p99: 4 };
  for (const few of [
    below.map((step) => ({ ...step, kept: step.rate < 5700 })),
    below.map((step) => ({ ...step, latencyMs: fast })),
    below.slice(0, 4).map((step) => ({ ...step, kept: false })),
  ])
    expect(linesFor(few)).toHaveLength(1);
});

test('the progress says of each step whether it kept the limit', () => {
  const { stepsIn, textOf } = searchWithin(within);
  const texts = [
    [1000, 4],
    [2000, 19],
  ].map(([rate = 0, p99 = 0]) =>
    stepsIn(outcome(step(rate, p99), rate, null), 0, 'a', 1).map(textOf),
  );
  expect(texts).toEqual([['p99 4.00 ms'], ['no, p99 19.00 ms']]);
});
