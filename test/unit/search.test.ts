// The search for the highest rate within a limit: which rates it tries, what a step came to, and what a round found.
import { describe, expect, test } from 'vitest';
import { curveRows, curvesOf } from '../../lib/analysis/curve.ts';
import { foundRates } from '../../lib/analysis/found-rates.ts';
import { rateEnd, whyNotKept, type RateEnd } from '../../lib/analysis/within.ts';
import { LimitSearch, searchSides } from '../../lib/k6/limit-search.ts';
import type { PhaseOutcome } from '../../lib/k6/load-plan.ts';
import { highestRate, lowestRate, mostSteps, RateSearch, type SearchStart } from '../../lib/k6/rate-search.ts';
import { UserError } from '../../lib/errors.ts';
import { Disturbance } from '../../lib/runner/disturbance.ts';
import type { Phase } from '../../lib/result/result.ts';
import { foundIn, searchStarts, stepsIn } from '../../lib/runner/search.ts';
import type { Within } from '../../lib/scenario/model.ts';
import { one, variant } from '../fixtures/comparison.ts';
import { latency, phase } from '../fixtures/phase.ts';

const fromNothing: SearchStart = { rate: 1000, factor: 2, least: lowestRate };

/** Searches where such rates are kept, and returns the search and all that it tried. */
function search(isKept: (rate: number, tried: number) => boolean, start = fromNothing): { search: RateSearch; tried: number[] } {
  const search = new RateSearch(start);
  const tried: number[] = [];
  for (let rate = search.next(); rate !== undefined && tried.length < 100; rate = search.next()) {
    tried.push(rate);
    expect(search.next()).toBe(rate);
    search.told(rate, isKept(rate, tried.length));
  }
  // It stays over.
  if (tried.length < 100) expect([search.next(), search.next()]).toEqual([undefined, undefined]);
  return { search, tried };
}

const until = (limit: number) => (rate: number): boolean => rate <= limit;

describe('a search', () => {
  test.each([150, 777, 1000, 1001, 12_345, 48_000, 3_000_000])('from nothing finds a limit of %i to 6 %%', (limit) => {
    const { search: { kept, broken }, tried } = search(until(limit));
    expect(kept).toBeLessThanOrEqual(limit);
    expect(broken).toBeGreaterThan(limit);
    expect((broken as number) / (kept as number)).toBeLessThanOrEqual(1.061);
    expect(tried.length).toBeLessThanOrEqual(20);
  });

  test('doubles, then halves what is between', () => {
    expect(search(until(7000)).tried.slice(0, 6)).toEqual([1000, 2000, 4000, 8000, 5657, 6727]);
  });

  test.each([[20_000, 20_500], [20_000, 19_300], [20_000, 26_000], [20_000, 9000]])('that begins below %i finds %i', (known, limit) => {
    const { search: { kept, broken }, tried } = search(until(limit), { rate: 0.7 * known, factor: 1.2, least: 0.25 * known });
    expect(kept).toBeLessThanOrEqual(limit);
    expect(broken).toBeGreaterThan(limit);
    expect((broken as number) / (kept as number)).toBeLessThanOrEqual(1.061);
    expect(tried.length).toBeLessThanOrEqual(9);
  });

  test('ends where nothing is kept, and where all is', () => {
    const low = search(() => false);
    expect(low.search).toMatchObject({ kept: undefined, broken: lowestRate });
    expect(low.tried).toEqual([1000, 833, 578, lowestRate]);
    expect(search(() => true).search).toMatchObject({ kept: highestRate, broken: undefined });
    expect(search(() => false, { rate: 7000, factor: 1.2, least: 2500 }).tried).toEqual([7000, 5833, 4051, 2500]);
  });

  test('tries the lowest rate that broke the limit once more at the end, and goes on beyond it where that was a pause', () => {
    const { search: { kept, broken }, tried } = search((rate, number) => number !== 4 && rate <= 30_000);
    expect(tried.slice(0, 5)).toEqual([1000, 2000, 4000, 8000, 5657]);
    const again = tried.lastIndexOf(8000);
    expect(again).toBeGreaterThan(4);
    expect(tried[again + 1]).toBe(8480);
    expect(kept).toBeLessThanOrEqual(30_000);
    expect(broken).toBeGreaterThan(30_000);
    expect(tried.filter((rate) => rate === broken)).toHaveLength(2);
  });

  test('asks so twice at most', () => {
    // Kept whenever it is asked a second time.
    const seen = new Set<number>();
    const { tried } = search((rate) => rate < 5000 || (rate < 50_000 && (seen.has(rate) || !seen.add(rate))));
    expect(tried.length).toBeLessThanOrEqual(20);
  });

  test('has an end within its steps, whatever comes', () => {
    for (const every of [2, 3, 5]) expect(search((_, tried) => tried % every === 0).tried.length, `each ${every}th kept`).toBeLessThanOrEqual(mostSteps);
  });

  test('from nothing takes 60 steps at most, three at each rate, wherever the limit is', () => {
    const starts = [707, 1000, 1414];
    const limits = Array.from({ length: 401 }, (_, index) => lowestRate * (highestRate / lowestRate) ** (index / 400));
    const steps = starts.flatMap((rate) => limits.map((limit) => 3 * search(until(limit), { ...fromNothing, rate }).tried.length));
    expect(Math.max(...steps)).toBe(60);
    expect(mostSteps).toBeGreaterThanOrEqual(60);
  });
});

const within: Within = { metric: 'p99', ms: 5 };

/** A step at such a rate, of a second. */
function step(rate: number, p99: number, changes: Partial<Phase> = {}): Phase {
  return phase({ requests: rate, seconds: 1, rps: rate, latencyMs: latency(p99 / 2, p99, 2 * p99, { histogram: [[p99 / 2, 0.8 * rate], [p99, 0.2 * rate]] }), ...changes });
}

describe('a rate', () => {
  const told = (result: Phase, rate: number, limit = within): [RateEnd, string] => [rateEnd(result, 1, rate, limit), whyNotKept(result, rate, limit)];

  test('is kept where one of three steps keeps the limit', () => {
    const [kept, broken] = [step(2000, 5), step(2000, 5.1)];
    expect([1, 2, 3].map((number) => rateEnd(kept, number, 2000, within))).toEqual(['kept', 'kept', 'kept']);
    expect([1, 2, 3].map((number) => rateEnd(broken, number, 2000, within))).toEqual(['open', 'open', 'broken']);
  });

  test('is asked for anew after each that ends', () => {
    const search = new LimitSearch(fromNothing, within);
    const ends = [9, 2, 9, 9, 9, 9].map((p99) => {
      const rate = search.rates.next() as number;
      return [rate, search.told(rate, step(2000, p99, { requests: rate, rps: rate, responses: { '2xx': rate, '3xx': 0, '4xx': 0, '5xx': 0 } }))];
    });
    expect(ends).toEqual([[1000, 'open'], [1000, 'kept'], [2000, 'open'], [2000, 'open'], [2000, 'broken'], [1414, 'open']]);
  });

  test('is broken by one step that leaves no doubt, as long as nothing was kept', () => {
    const search = new LimitSearch(fromNothing, within);
    // Half of the answers took longer than that.
    const ends = [12, 4, 12, 12, 12].map((p99) => search.told(search.rates.next() as number, step(search.rates.next() as number, p99, { latencyMs: step(2000, p99).latencyMs })));
    expect(ends).toEqual(['broken', 'kept', 'open', 'open', 'broken']);
    const half = new LimitSearch(fromNothing, { metric: 'p50', ms: 5 });
    expect(half.told(half.rates.next() as number, step(1000, 12))).toBe('open');
  });

  test('that was not made is broken, however fast the rest was answered; what is little less may be a pause\'s', () => {
    expect(told(step(1700, 1, { unsent: 300 }), 2000)).toEqual(['broken', '1,700 requests/s were made']);
    expect(told(step(1900, 1, { unsent: 100 }), 2000, { metric: 'p50', ms: 5 })).toEqual(['open', '1,900 requests/s were made']);
  });

  test('with failures is one that the server did not keep', () => {
    expect(told(step(2000, 1, { responses: { '2xx': 1900, '3xx': 0, '4xx': 0, '5xx': 100 } }), 2000)).toEqual(['broken', '5.0 % failed']);
  });

  test('needs as many answers as its percentile', () => {
    expect(told(step(900, 1), 900)).toEqual(['broken', 'too few answers for a p99']);
    expect(told(step(900, 1), 900, { metric: 'p50', ms: 5 })).toEqual(['kept', '']);
  });
});

describe('searches of two sides, of which none keeps the limit,', () => {
  /** How many steps they take, and how many seconds of load. */
  function costs(rate: number, p50: number, p99: number): { steps: number; seconds: number } {
    const stepOf = (of: number): Phase => {
      const seconds = Math.max(0.5, 1500 / of);
      return step(of, p99, { requests: of * seconds, seconds, latencyMs: latency(p50, p99, p99, { histogram: [[p50, 1000], [p99, 500]] }), responses: { '2xx': of * seconds, '3xx': 0, '4xx': 0, '5xx': 0 } });
    };
    let [steps, seconds] = [0, 0];
    searchSides([0, 1].map(() => ({ ...fromNothing, rate })), within, (rates) => rates.map(stepOf), ({ results }) => {
      steps++;
      seconds += results.reduce((sum, one) => sum + one.seconds, 0);
    });
    return { steps, seconds };
  }

  test.each([[707, 140], [1000, 125], [1414, 115]])('end after four rates of three steps where pauses break it: from %i after %i s', (rate, seconds) => {
    expect(costs(rate, 1, 19)).toEqual({ steps: 12, seconds: expect.closeTo(seconds, -1) as number });
  });

  test.each([[707, 47], [1000, 42], [1414, 38]])('end after four steps where even half of the answers take longer: from %i after %i s', (rate, seconds) => {
    expect(costs(rate, 6, 19)).toEqual({ steps: 4, seconds: expect.closeTo(seconds, -1) as number });
  });
});

describe('what a round found', () => {
  const planned = { variant: { name: 'a' }, load: { protocol: 'http/1.1', threads: 1 } } as Parameters<typeof foundIn>[0];
  const cores = { serverCpus: [1], generatorCpus: [0] };
  const outcome = (result: Phase, rate: number, tried = true): PhaseOutcome => ({ results: [result], step: { rates: [rate], tried: [tried] } });
  const found = (steps: readonly [rate: number, p99: number, changes?: Partial<Phase>][], known: readonly number[] = []): ReturnType<typeof foundIn> => {
    const phases = steps.map(([rate, p99, changes]) => step(rate, p99, changes));
    return foundIn(planned, null, phases, phases.map((one, index) => outcome(one, steps[index]?.[0] ?? 0)), 0, within, cores, known);
  };

  test('lies between the highest rate that was kept and the lowest that was not', () => {
    expect(found([[1000, 1], [2000, 2], [4000, 19], [4000, 19], [4000, 19], [3800, 2]])).toEqual({ step: 5, rate: Math.sqrt(3800 * 4000), atLeast: false });
  });

  test('is not ended by a step that a pause met', () => {
    expect(found([[1000, 1], [2000, 19], [2000, 19], [2000, 3], [2100, 19], [2100, 19], [2100, 19]])).toEqual({ step: 3, rate: Math.sqrt(2000 * 2100), atLeast: false });
  });

  test('is at least that where the generator was at its limit, and where no rate broke it', () => {
    const busy = { requests: 1700, responses: { '2xx': 1700, '3xx': 0, '4xx': 0, '5xx': 0 }, unsent: 300, serverCpuSeconds: 0.5, generatorCpuSeconds: 0.97 };
    expect(found([[1900, 1], [2000, 9, busy]])).toEqual({ step: 0, rate: Math.sqrt(1900 * 2000), atLeast: true });
    expect(found([[1900, 1], [2000, 9, { ...busy, serverCpuSeconds: 0.97 }]])).toMatchObject({ atLeast: false });
    expect(found([[1000, 1], [highestRate, 2]])).toEqual({ step: 1, rate: highestRate, atLeast: true });
  });

  test('is nothing where the steps did not suffice', () => {
    expect(() => found([[1000, 1], [2000, 2]])).toThrow(new Disturbance('a: the search was not over after 2 steps: p99 within 5.00 ms was kept at 2,000 requests/s, and nothing broke it'));
    expect(() => found([[1000, 1], [2000, 19], [2000, 19], [2000, 19]])).toThrow(/ was kept at 1,000 requests\/s, and 2,000 broke it$/);
  });

  test('is nothing where the lowest rate breaks it: a wider limit, or in later rounds a disturbance', () => {
    const never: [number, number][] = [[200, 19], [200, 19], [200, 19], [100, 18], [100, 18], [100, 18]];
    const sized = (known: readonly number[]) => () => found(never.map(([rate, p99]) => [rate, p99, { requests: 2000, seconds: 2000 / rate, latencyMs: step(2000, p99).latencyMs }]), known);
    expect(sized([])).toThrow(new UserError('a: p99 within 5.00 ms is not kept at 100 requests/s, the lowest rate (p99 18.00 ms): give a wider limit'));
    expect(sized([9000])).toThrow(Disturbance);
  });

  test('leaves steps out that were only there for others', () => {
    const [kept, broken, beside] = [step(1900, 1), step(2000, 19), step(1900, 90)];
    const outcomes = [outcome(kept, 1900), ...Array<PhaseOutcome>(3).fill(outcome(broken, 2000)), outcome(beside, 1900, false)];
    expect(foundIn(planned, null, [kept, broken, broken, broken, beside], outcomes, 0, within, cores, [])).toMatchObject({ step: 0 });
    expect(stepsIn(outcomes[4] as PhaseOutcome, ['a'], within, 1)).toEqual([]);
    expect(stepsIn(outcomes[1] as PhaseOutcome, ['a'], within, 1)).toEqual([
      { round: 1, variant: 'a', rate: 2000, made: 2000, latencyMs: { p50: 9.5, p90: 19, p99: 19 }, kept: false, why: 'p99 19.00 ms' },
    ]);
  });
});

describe('searches begin', () => {
  const known = new Map([['a', [20_000, 20_000]], ['b', [9000, 11_111.11]], ['c', []]]);

  test('elsewhere in each round, and all at the same rate below the lowest that is known', () => {
    const rounds = [1, 2, 3, 4].map((round) => searchStarts(['a', 'b'], { known, seed: `run ${round}` }));
    expect(new Set(rounds.map(([a]) => a?.rate)).size).toBe(4);
    for (const [a, b] of rounds) {
      expect(a).toMatchObject({ rate: b?.rate, factor: 1.2, least: expect.closeTo(5000, 2) as number });
      expect(b?.rate).toBeGreaterThanOrEqual(6000);
      expect(b?.rate).toBeLessThanOrEqual(8500);
      expect(b?.least).toBeCloseTo(2500, 2);
    }
    // Whoever is loaded alone as well.
    expect(searchStarts(['a'], { known, seed: 'run 1' })[0]?.rate).toBe(rounds[0]?.[0]?.rate);
  });

  test('about 1000 requests/s where nothing is known', () => {
    const [a, b] = searchStarts(['a', 'b'], { known: new Map([['a', []], ['b', []]]), seed: 'run' });
    expect(a).toEqual(b);
    expect(a).toMatchObject({ factor: 2, least: lowestRate });
    expect(Math.abs(Math.log((a?.rate ?? 0) / 1000))).toBeLessThanOrEqual(0.35);
  });
});

describe('rates that were found', () => {
  const rate = (one: number, atLeast = false): { rate: number; atLeast: boolean } => ({ rate: one, atLeast });
  const searched = (name: string, rates: readonly number[], atLeast = false): Parameters<typeof one>[0][number] => (
    variant(name, rates.map((each) => step(Math.round(0.98 * each), 4)), { found: rates.map((each) => rate(each, atLeast)), load: { protocol: 'http/1.1', threads: 1, searched: true } })
  );

  test('have the geometric mean over rounds, and an interval from four on', () => {
    expect(foundRates([{ name: 'a', found: [rate(1000), rate(4000)] }, { name: 'b' }])).toEqual([{ variant: 'a', rate: expect.closeTo(2000, 6) as number, ci95: null, atLeast: false }]);
    const [four] = foundRates([{ name: 'a', found: [900, 1000, 1100, 1000].map((each) => rate(each, each === 900)) }]);
    expect(four).toMatchObject({ rate: expect.closeTo(997.5, 0) as number, atLeast: true });
    expect(four?.ci95?.[0]).toBeCloseTo(875.5, 1);
    expect(four?.ci95?.[1]).toBeCloseTo(1136.5, 1);
  });

  test('are compared, and not what was answered', () => {
    const comparison = one([searched('a', [1000, 1010, 990, 1000]), searched('b', [1100, 1111, 1089, 1100])]);
    expect(comparison).toMatchObject({ metric: 'rps', verdict: 'faster', ratio: expect.closeTo(1.1, 6) as number });
  });

  test('that are at least so high are no reason to call one slower', () => {
    expect(one([searched('a', [1000, 1010, 990, 1000]), searched('b', [900, 909, 891, 900], true)])).toMatchObject({ verdict: 'none', why: 'the generator was the limit with b' });
    expect(one([searched('a', [1000, 1010, 990, 1000], true), searched('b', [900, 909, 891, 900])])).toMatchObject({ verdict: 'slower' });
  });
});

describe('a curve', () => {
  const steps = (name: string, rates: readonly number[]): { round: number; variant: string; rate: number; made: number; latencyMs: { p50: number; p90: number; p99: number }; kept: boolean; why: string }[] => (
    rates.map((rate) => ({ round: 1, variant: name, rate, made: rate, latencyMs: { p50: rate / 1e4, p90: rate / 2e3, p99: rate / 1e3 }, kept: rate < 5000, why: '' })));

  test('of a search has its steps by rate, and of many those that are close as one', () => {
    const search = { within, found: [], steps: [...steps('a', [4000, 1000, 8000]), ...steps('b', [2000])] };
    const variants = [variant('a', []), variant('b', [])] as unknown as Parameters<typeof curvesOf>[0]['variants'];
    const curves = curvesOf({ search, variants });
    expect(curves.map(({ name, points }) => [name, points.map(({ rate }) => rate)])).toEqual([['a', [1000, 4000, 8000]], ['b', [2000]]]);
    expect(curveRows(curves).map(({ rate, seen }) => [rate, seen.get('a')?.p99, seen.get('b')?.kept])).toEqual([[1000, 1, undefined], [2000, undefined, true], [4000, 4, undefined], [8000, 8, undefined]]);

    const many = curvesOf({ search: { ...search, steps: Array.from({ length: 100 }, (_, index) => steps('a', [1000 + 90 * index])).flat() }, variants });
    const rows = curveRows(many);
    expect(rows.length).toBeLessThanOrEqual(12);
    expect(rows.map(({ rate }) => rate)).toEqual(rows.map(({ rate }) => rate).toSorted((a, b) => a - b));
    expect(rows.map(({ seen }) => seen.get('a')?.kept)).toContain(false);
    expect(rows[0]?.seen.get('a')?.kept).toBe(true);
  });

  test('is none of a run at one rate', () => {
    expect(curvesOf({ variants: [] })).toEqual([]);
    expect(curveRows([])).toEqual([]);
  });
});
