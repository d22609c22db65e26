import { expect, test } from 'vitest';
import { usualLooks } from '../../lib/analysis/looks.ts';
import type { AskedComparisons } from '../../lib/analysis/figures.ts';
import { studentQuantile } from '../../lib/analysis/statistics.ts';
import {
  type MeasuredVariant,
  type RunFacts,
  unsettled,
  verdictOf,
} from '../../lib/analysis/verdict.ts';
import { present } from '../../lib/present.ts';
import { summarise } from '../fixtures/summary.ts';
import { limitLines } from '../../lib/report/sentences.ts';
import type { Comparison, Phase, Verdict } from '../../lib/result/result.ts';
import { a, compare, comparisonOf, rounds, second, variant } from '../fixtures/comparison.ts';
import { answers, pageFigures, quiet } from '../fixtures/phase.ts';
import { facts, renumbered, result } from '../fixtures/result.ts';

const few = (all: MeasuredVariant, count = 3): MeasuredVariant => ({
  ...all,
  rounds: all.rounds.slice(0, count),
});
const failing = second(1000, 0.5, 0.7, { responses: answers({ '2xx': 900, '4xx': 100 }) });
const b = variant('b', rounds([1100, 1120, 1080, 1130]));

const widthOf = ({ ci95: [low, high] }: Comparison) => Math.log(high / low);

/** Four logarithms with this mean, and a standard deviation that makes the interval for `alpha` the mean ± `half`. */
const withInterval = (middle: number, half: number, alpha: number) => {
  const deviation = (half * Math.sqrt(3)) / studentQuantile(1 - alpha / 2, 3);
  return [-1, -1, 1, 1].map((sign) => middle + sign * deviation);
};
const limit = Math.log(1.01);

test.each([
  ['95', 0.1, 0.099, 'faster'],
  ['95', -0.1, 0.099, 'slower'],
  ['95', 0.1, 0.101, 'inconclusive'],
  ['90', 0, 0.999 * limit, 'same'],
  ['90', 0, 1.001 * limit, 'inconclusive'],
  // The limits are symmetric in baseline and variant: 1 / 1.01 rather than 0.99.
  ['90', -0.5 * limit, 0.499 * limit, 'same'],
  ['90', -0.5 * limit, 0.501 * limit, 'inconclusive'],
] as const)(
  'an interval of %s % of the logarithms of %f ± %f is %s',
  (share, middle, half, verdict) => {
    expect(verdictOf(withInterval(middle, half, 1 - Number(share) / 100), 0.05, 0.01)).toBe(
      verdict,
    );
  },
);

test('the interval for "same" is that of two one-sided tests', () => {
  // t(3, 0.95) is 2.353363 and t(3, 0.975) is 3.182446, t(3, 0.9875) 4.176535.
  const rounds = withInterval(0, (3.182446 / 2.353363) * 0.999 * limit, 0.05);
  expect(verdictOf(rounds, 0.05, 0.01)).toBe('same');
  const ofTwo = withInterval(0, (4.176535 / 3.182446) * 0.999 * limit, 0.025);
  expect(verdictOf(ofTwo, 0.025, 0.01)).toBe('same');
  expect(verdictOf(ofTwo, 0.02, 0.01)).toBe('inconclusive');
});

test('the tolerance of "same" is that of the run, also as text', () => {
  const b = variant('b', rounds([1020, 1031, 1009, 1021]));
  expect(comparisonOf([a, b])).toMatchObject({
    verdict: 'faster',
    why: 'the whole interval is above 1',
  });
  expect(comparisonOf([a, b], { sameWithin: 0.025 })).toMatchObject({
    verdict: 'same',
    why: 'the 90 % interval is within 2.5 % of equal',
  });
  // A tolerance below the noise never gives "same".
  expect(
    comparisonOf([a, variant('b', rounds([1000, 1011, 990, 1001]))], { sameWithin: 0.0001 })
      .verdict,
  ).toBe('inconclusive');
});

test('α is divided by the comparisons of the run and the looks', () => {
  const [c, d] = [
    variant('c', rounds([1000, 1000, 1000, 1000])),
    variant('d', rounds([1010, 1000, 1000, 1005]), { against: 'c' }),
  ];
  const byRps = (
    of: MeasuredVariant[],
    run: Partial<RunFacts> = {},
    asked: AskedComparisons = {},
  ) => widthOf(comparisonOf(of, { metric: 'rps', ...run }, asked));
  const t = (...of: Parameters<typeof byRps>) => (3.182446 * byRps(...of)) / byRps([a, b]);
  // At 0.9875, 1 − 0.05 / 6 and 1 − 0.05 / 12.
  expect(t([a, b, c])).toBeCloseTo(4.176535, 4);
  expect(t([a, b, c, d])).toBeCloseTo(4.856656, 4);
  const alsoCompare = [{ variant: 'c', against: 'b' }];
  expect(t([a, b, c], {}, { alsoCompare })).toBeCloseTo(4.856656, 4);
  // The first look of a run has 0.5 % for one comparison: quantile 0.9975. For two comparisons: 0.005 / 0.0538 · 0.025, quantile
  // 0.998838.
  expect(t([a, b], { looks: usualLooks })).toBeCloseTo(7.453319, 4);
  expect(t([a, b, c], { looks: usualLooks })).toBeCloseTo(9.705008, 4);
});

test('if both servers are at their limit, CPU per request is judged too', () => {
  const t = (
    variants: MeasuredVariant[],
    run: Partial<RunFacts> = {},
    asked: AskedComparisons = {},
  ) => {
    const comparison = comparisonOf(variants, run, asked);
    const share =
      widthOf(comparison) / widthOf(comparisonOf(variants, { ...run, metric: 'rps' }, asked));
    return [comparison.cpu?.verdict, (3.182446 * share).toFixed(4)];
  };
  // 1 % less CPU per request in each round; only requests/s are noisy.
  const busy = (name: string, cpuSeconds: number, requests: readonly number[]) =>
    variant(
      name,
      requests.map((count) => second(count, (cpuSeconds * count) / 1000)),
    );
  const [baseline, other] = [
    busy('a', 0.99, [1000, 1005, 970, 1000]),
    busy('b', 0.96, [1000, 980, 1005, 1002]),
  ];
  expect(comparisonOf([baseline, other])).toMatchObject({
    verdict: 'inconclusive',
    cpu: { verdict: 'faster', ratio: expect.closeTo(0.96 / 0.99, 9) },
  });
  // t(3) at 0.9875 and at 0.975.
  expect(t([baseline, other])).toEqual(['faster', '4.1765']);
  const idle = busy('b', 0.89, [1000, 980, 1005, 1002]);
  expect(t([baseline, idle])).toEqual(['none', '3.1824']);
  expect(t([baseline, other], { sharedCores: true })).toEqual(['none', '3.1824']);
  expect(t([baseline, other], {}, { control: true })).toEqual(['none', '3.1824']);
  const rates = [1, 2, 3, 4].map((rate) => ({ rate, atLeast: false }));
  expect(
    t([
      { ...baseline, found: rates },
      { ...other, found: rates },
    ]),
  ).toEqual(['none', 'NaN']);
  expect(comparisonOf([baseline, other], { metric: 'cpu' })).toMatchObject({
    metric: 'cpu',
    verdict: 'faster',
    cpu: { verdict: 'faster' },
  });
});

test('α is not divided by comparisons that cannot have a verdict', () => {
  const [alone] = compare([a, b]);
  const without: MeasuredVariant[] = [
    variant('same', rounds([1, 1, 1, 1]), { setup: 'a' }),
    variant('few-cores', rounds([1, 1, 1, 1]), { needsServerCores: 2 }),
    variant('rate', rounds([1, 1, 1, 1]), { load: { protocol: 'h2', threads: 1, rate: 1 } }),
    variant('published', [], { server: null }),
    variant('failing', [failing, failing, failing, failing]),
    variant('silent', rounds([0, 0, 0, 0])),
  ];
  expect(compare([a, b, ...without])[0]).toEqual(alone);
});

test('a side whose clients never got an answer has no verdict, however few requests those are', () => {
  const judged = (hung: number) => {
    const phases = [120_000, 121_000, 119_000, 120_000].map((requests) =>
      second(requests, 0.99, 0.7, { hung }),
    );
    const load = { protocol: 'h2', threads: 1, connections: 100, streams: 10 } as const;
    return comparisonOf([a, variant('b', phases, { load })]);
  };
  expect(judged(10).verdict).toBe('faster');
  expect(judged(900)).toMatchObject({
    verdict: 'none',
    why: '90 % of the requests that b had under way were never answered',
  });
});

const c = variant('c', rounds([2000, 2020, 1980, 2000]), {
  needsServerCores: 2,
  published: { rps: 300 },
});

const asked = (variants: MeasuredVariant[], ...pairs: [string, string][]): Comparison[] =>
  compare(variants, {}, { alsoCompare: pairs.map(([variant, against]) => ({ variant, against })) });

test('additional comparisons come after those of the rows', () => {
  const comparisons = asked([a, b, c], ['c', 'b'], ['a', 'c']);
  // The requirement of a row's step does not apply to a comparison with another variant.
  expect(
    comparisons.map(({ variant: name, baseline, verdict }) => `${name} ${baseline} ${verdict}`),
  ).toEqual(['b a faster', 'c a none', 'c b faster', 'a c slower']);
  expect(comparisons[1]?.why).toBe('needs 2 server cores');
  expect(compare([a, c], { serverCores: 2 })).toMatchObject([{ verdict: 'faster' }]);
});

test('additional comparisons of what did not run, or of a row, are dropped', () => {
  expect(asked([a, b, variant('c', [])], ['c', 'b'])).toHaveLength(1);
  expect(asked([a, b], ['b', 'a'])).toEqual(compare([a, b]));
});

const again = variant('again', rounds([1001, 1009, 990, 1002]), { setup: 'a' });

test('a control is judged too, and states the noise floor', () => {
  // By hand: ln ratios 0.0009995, −0.0009906, 0, 0.0019980; s = 0.0012865.
  const ratio = Math.exp((2.262157 * 0.001_286_5) / Math.sqrt(10));
  expect(summarise(facts, [a, again], { control: true })).toMatchObject({
    noiseFloor: { rounds: 10, ratio: expect.closeTo(ratio, 6) },
    comparisons: [{ verdict: 'same' }],
  });
  expect(summarise(facts, [a, again])).toMatchObject({
    noiseFloor: null,
    comparisons: [{ verdict: 'none', why: 'the same config and load here' }],
  });
});

test('a control has no noise floor with too few rounds, or no responses', () => {
  expect(summarise(facts, [few(a), few(again)], { control: true })).toMatchObject({
    noiseFloor: null,
    comparisons: [{ why: 'needs 4 rounds', ratio: expect.closeTo(1, 2) }],
  });
  expect(
    summarise(facts, [a, variant('again', rounds([0, 0, 0, 0]))], { control: true }).noiseFloor,
  ).toBeNull();
});

test('a comparison lists the ratios of all rounds, and the outliers', () => {
  const b = variant('b', rounds([1400, 1520, 1420, 3000]));
  const comparison = comparisonOf([a, b].map((each) => renumbered(each, (round) => round + 3)));
  expect(comparison.roundRatios.map((ratio) => ratio.toFixed(4)).join(' ')).toBe(
    '1.4000 1.5050 1.4343 3.0000',
  );
  expect(comparison.outliers).toEqual([7]);
  expect(comparison.ratio).toBeCloseTo((((((1.4 * 1520) / 1010) * 1420) / 990) * 3) ** 0.25, 9);
});

test('if requests/s are 0 in a round, there are no ratios', () => {
  const broken = rounds([1000, 0, 1000, 1000]);
  expect(comparisonOf([a, variant('b', broken)])).toMatchObject({
    ratio: 0,
    ci95: [0, 0],
    verdict: 'none',
    cpu: null,
    roundRatios: [],
  });
  expect(comparisonOf([variant('a', broken), b])).toMatchObject({ ratio: 0, verdict: 'none' });
});

test('an inconclusive verdict estimates the rounds for a decision', () => {
  const noisy = variant('b', rounds([1040, 1000, 1030, 1050]));
  expect(comparisonOf([a, noisy], { metric: 'rps' })).toMatchObject({
    verdict: 'inconclusive',
    roundsNeeded: 16,
    why: 'the interval includes 1: about 16 rounds would probably decide',
  });
  expect(comparisonOf([a, b]).roundsNeeded).toBeNull();
  expect(comparisonOf([a, variant('b', rounds([2000, 500, 2000, 502]))])).toMatchObject({
    roundsNeeded: null,
    why: expect.stringContaining('even 1,000 rounds would probably not decide'),
  });
});

const using = (server: number, generator: number) => (name: string, requests: readonly number[]) =>
  variant(
    name,
    requests.map((count) => second(count, server, generator)),
  );
/** The generator used its whole core, the server only part of its core. */
const held = using(0.7, 0.97);
const free = using(0.99, 0.7);
const [usual, more] = [
  [1000, 1001, 999, 1000],
  [1100, 1101, 1099, 1100],
];
const none = (name: string): object => ({
  verdict: 'none',
  why: `the generator was the limit with ${name}`,
});

test('with a generator at its limit, requests/s are a lower bound', () => {
  expect(comparisonOf([free('a', usual), held('b', more)]).verdict).toBe('faster');
  expect(comparisonOf([held('a', usual), free('b', more)])).toMatchObject(none('a'));
  expect(comparisonOf([held('a', more), free('b', usual)]).verdict).toBe('slower');
  expect(comparisonOf([free('a', more), held('b', usual)])).toMatchObject(none('b'));
});

test('a generator at its limit changes nothing beside a server at its limit, undecided, or in a control', () => {
  const both = using(0.97, 0.97);
  expect(comparisonOf([both('a', usual), both('b', more)]).verdict).toBe('faster');
  expect(comparisonOf([held('a', usual), held('b', [1100, 950, 1040, 1000])]).verdict).toBe(
    'inconclusive',
  );
  const again = { ...held('again', usual), setup: 'a' };
  expect(comparisonOf([held('a', usual), again], {}, { control: true }).verdict).toBe('same');
});

const times = (n: number, of: Phase): Phase[] => Array.from({ length: n }, () => of);
const measured = (
  name: string,
  serverCpu: number,
  generatorCpu: number,
  changes: Partial<MeasuredVariant> = {},
) => variant(name, times(4, second(1000, serverCpu, generatorCpu)), changes);
const disagreementOf = (first: MeasuredVariant, next: MeasuredVariant) =>
  comparisonOf([first, next]).disagreement;

test('requests/s and CPU do not disagree at nearly the same utilisation', () => {
  expect(disagreementOf(measured('a', 0.99, 0.7), measured('b', 0.99, 0.4))).toBe('');
  expect(disagreementOf(measured('a', 0.99, 0.7), measured('b', 0.945, 0.7))).toBe('');
  expect(disagreementOf(measured('a', 0.99, 0.7), measured('b', 0.93, 0.95))).not.toBe('');
});

test('requests/s and CPU do not disagree if both are better, or worse', () => {
  const using = (name: string, requests: number, cpuSeconds: number) =>
    variant(name, times(4, second(requests, cpuSeconds)));
  // From a real run: +14 % requests/s and −27 % CPU per request, and the reverse.
  const better = using('b', 1140, 0.99 * 1.14 * 0.73);
  expect(disagreementOf(using('a', 1000, 0.99), better)).toBe('');
  expect(disagreementOf(using('a', 1140, 0.99 * 1.14 * 0.73), using('b', 1000, 0.99))).toBe('');
  // More requests/s with more CPU time each; and equal requests/s with less CPU time.
  expect(disagreementOf(using('a', 1000, 0.7), using('b', 1140, 0.95))).toMatch(
    /^with a .* 26 % less busy /,
  );
  expect(disagreementOf(using('a', 1000, 0.99), using('b', 1005, 0.72))).toBe(
    "with b the server's cores were 27 % less busy than with a",
  );
});

test('at the limit, a disagreement is explained by the available CPU time', () => {
  const left = (name: string, serverOthersShare: number) => {
    const noise = { ...quiet, serverOthersShare };
    return variant(name, times(4, second(1000, 0.99 - serverOthersShare, 0.7, { noise })));
  };
  const sides = [left('a', 0), left('b', 0.2)] as const;
  expect(disagreementOf(...sides)).toBe(
    "other programs or the host left b 20 % less of the server's CPU time than a",
  );
  expect(limitLines(result(sides))).toEqual([
    'nginx was the limit: nginx at 99 %, the generator at 70 % of its available CPU.',
  ]);
});

const names = (all: readonly Comparison[], precision?: number) =>
  unsettled(all, precision).map(({ variant: name }) => name);
const of = (...requests: number[]): Comparison[] =>
  compare([variant('a', rounds(requests.map(() => 1000))), variant('b', rounds(requests))]);

/** A comparison with this interval and verdict, from independent rounds. */
const known = (ratio: number, halfWidth: number, verdict: Verdict): Comparison[] => [
  {
    ...(of(2110, 2140, 2100, 2129, 2121, 2150)[0] as Comparison),
    ratio,
    ci95: [ratio / (1 + halfWidth), ratio * (1 + halfWidth)],
    verdict,
  },
];

test.each<[Comparison[], string[], number?]>([
  [known(1.03, 0.0099, 'faster'), []],
  [known(1.03, 0.0101, 'faster'), ['b']],
  // A tenth of the effect: ln 1.5 / 10 is 0.0405, and e^0.0405 1.0414.
  [known(1.5, 0.0413, 'faster'), []],
  [known(1.5, 0.0415, 'faster'), ['b']],
  [known(1.001, 0.008, 'same'), []],
  // Narrow enough, but the direction is unknown.
  [known(1.005, 0.008, 'inconclusive'), ['b']],
  // A variant without a comparison.
  [known(1.5, 0.5, 'none'), []],
  // With a precision that was asked for.
  [known(1.03, 0.0059, 'faster'), [], 0.006],
  [known(1.03, 0.0061, 'faster'), ['b'], 0.006],
  [known(1.005, 0.0059, 'inconclusive'), [], 0.006],
  [known(1.5, 0.0413, 'faster'), [], 0.006],
])(
  'more rounds are needed if undecided, or wider than 1 %% and a tenth of the effect: %#',
  (all, open, precision) => {
    expect(names(all, precision)).toEqual(open);
  },
);

test('more rounds are needed if a verdict depends on one round or on dependent ones', () => {
  expect(names(of(2100, 2110, 2121, 2129, 2140, 2150))).toEqual(['b']);
  const mixed = of(2110, 2140, 2100, 2129, 2121, 2150);
  expect(names(mixed)).toEqual([]);
  const swayedBy = { round: 3, without: 'inconclusive' as const };
  expect(names(mixed.map((each) => ({ ...each, swayedBy })))).toEqual(['b']);
});

const base = variant('a', rounds([1000, 1000, 1000, 1000, 1000]));
const hidden = variant('b', rounds([5890, 530, 530, 480, 770]));

test('a round that alone hides a difference is reported', () => {
  const { comparisons, warnings } = summarise(facts, [base, hidden]);
  expect(comparisons[0]).toMatchObject({
    verdict: 'inconclusive',
    outliers: [1],
    swayedBy: { round: 1, without: 'slower' },
  });
  expect(warnings.join()).toContain('round 1 is an outlier and alone prevents a verdict: ');
});

test('a round is not reported if it changes nothing, is one of two, or of few', () => {
  for (const requests of [
    [1200, 1210, 1205, 1190, 1800],
    [5890, 530, 530, 480, 9000],
    [5890, 530, 530, 480],
  ]) {
    const unchanged = variant('a', rounds(requests.map(() => 1000)));
    expect(
      comparisonOf([unchanged, variant('b', rounds(requests))], { metric: 'rps' }).swayedBy,
      `${requests}`,
    ).toBeNull();
  }
  expect(comparisonOf([base, { ...hidden, setup: 'a' }]).swayedBy).toBeNull();
});

const all = (ratio: number) => [ratio, ratio, ratio, ratio];
/** Rounds of a side with these Phase.bodyRatio; its bodies have `bytes` on average. */
const serving = (name: string, requests: number, ratios: readonly number[], bytes = 600) =>
  variant(
    name,
    ratios.map((bodyRatio) => {
      const round = second(requests, 0.5, 0.7, bodyRatio === 1 ? {} : { bodyRatio });
      return { ...round, bytes: { ...round.bytes, body: bytes * requests } };
    }),
  );

test.each<[number[], number[], number, string]>([
  [all(1), all(1), 300, 'faster'],
  [all(1), all(0.96), 600, 'faster'],
  [all(1), all(0.01), 6, 'none'],
  [all(1.2), all(1), 300, 'none'],
  // One odd round.
  [all(1), [1, 1, 1, 0.85], 590, 'faster'],
  // A page that grows, of both sides.
  [[1.7, 1.8, 1.7, 1.8], [1.6, 1.6, 1.7, 1.7], 590, 'faster'],
  // A page of random length, checked at different lengths.
  [[0.8, 1.2, 1.3, 1.1], [0.7, 0.9, 0.8, 1], 610, 'faster'],
  // Both refuse their load alike.
  [all(0.01), all(0.01), 600, 'none'],
])('bodies under load, by those checked: %j and %j, with 600 and %i B, are %s', (...row) => {
  const [before, after, bytes, verdict] = row;
  const [comparison] = compare([serving('a', 1000, before), serving('b', 2000, after, bytes)]);
  expect(comparison).toMatchObject({ verdict });
  if (verdict === 'none') expect(comparison?.why).toMatch(/^under load the bodies of [ab] had /);
});

/** A page of a mix in each round: the mean length of its bodies in bytes, and PageFigures.bodyRatio. */
type Served = Record<string, [bytes: number, ratio?: number]>;

const servingMix = (name: string, requests: number, served: readonly Served[]) =>
  variant(
    name,
    [0, 1, 2, 3].map((round) => {
      const pages = Object.entries(served[round % served.length] ?? {}).map(
        ([page, [bytes, bodyRatio]]) => {
          const figures = pageFigures({ page, responses: 100, bodyBytes: 100 * bytes });
          return { ...figures, ...present({ bodyRatio }) };
        },
      );
      return { ...second(requests, 0.5, 0.7), pages };
    }),
  );

const big: Served = { '/big': [300_000] };

test.each<[string, Served[], Served[], string]>([
  ['as before', [{ ...big, '/s': [100] }], [{ ...big, '/s': [104, 1.04] }], ''],
  ['empty small ones', [{ ...big, '/s': [100] }], [{ ...big, '/s': [0, 0] }], 'b for /s had 0.0 %'],
  [
    'half empty ones of one side, which the mean does not show',
    [{ ...big, '/s': [60, 0.6] }],
    [{ ...big, '/s': [100] }],
    'a for /s had 60 %',
  ],
  ['one that grows, of both', [{ ...big, '/s': [170, 1.7] }], [{ ...big, '/s': [165, 1.6] }], ''],
  [
    'pages that go off on different pages',
    [{ '/t': [100], '/s': [170, 1.7] }],
    [{ '/t': [170, 1.7], '/s': [100] }],
    'a for /s had 170 %',
  ],
  [
    'different pages in different rounds, one longer and one shorter',
    [{ '/t': [100], '/s': [100] }],
    [
      { '/t': [100], '/s': [0, 0] },
      { '/t': [200, 2], '/s': [100] },
    ],
    'b for /s had 50 %',
  ],
])('bodies of the pages of a mix: %s', (_, before, after, why) => {
  const sides = [servingMix('a', 1000, before), servingMix('b', 2000, after)];
  const [comparison] = compare(sides);
  expect(comparison?.verdict).toBe(why === '' ? 'faster' : 'none');
  if (why !== '')
    expect(comparison?.why).toContain(`under load the bodies of ${why} of the length`);
});

test('runs of an article share the chance of a false verdict', () => {
  const [alone, shared] = [undefined, 5].map((together) => {
    const run = { ...facts, metric: 'rps' as const, ...present({ together }) };
    return summarise(run, [a, { ...b, against: 'a' }]).comparisons[0] as Comparison;
  });
  const expected = studentQuantile(1 - 0.05 / 5 / 2, 3) / studentQuantile(1 - 0.05 / 2, 3);
  expect(widthOf(shared as Comparison) / widthOf(alone as Comparison)).toBeCloseTo(expected, 6);
});
