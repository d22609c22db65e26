import { expect, test } from 'vitest';
import { shareOfOtherBodies, sideWithSeveralBodies } from '../../lib/analysis/bodies.ts';
import type { Phase, VariantResult } from '../../lib/result/result.ts';
import { present } from '../../lib/present.ts';
import { otherBodiesOf } from '../../lib/runner/bodies.ts';
import { RoundFailure } from '../../lib/runner/failures.ts';
import { address, nginx } from '../../lib/scenario/index.ts';
import type { Load } from '../../lib/scenario/load.ts';
import type { LoadRequest } from '../../lib/scenario/model.ts';
import type { RunnableVariant } from '../../lib/scenario/variants.ts';
import { pageFigures, phase } from '../fixtures/phase.ts';

type Side = Pick<VariantResult, 'rounds'>;

const withBody = (body: number, changes: Partial<Phase> = {}): Phase => {
  const changed = phase({ requests: 1000, ...changes });
  const bodyBytes = { '2xx': body, '3xx': 0, '4xx': 0, '5xx': 700 };
  return { ...changed, bytes: { ...changed.bytes, body: body + 700 }, bodyBytes };
};
const shipped = { name: 'shipped', server: nginx(['base'], { workers: 1 }) };
const mine = { name: 'mine', server: address('http://127.0.0.1:1') };
const single = { page: { path: '/' }, load: {} as Load };
const differ = (of: Phase, answer: Parameters<typeof otherBodiesOf>[2] = { bytes: 612 }) =>
  otherBodiesOf({ variant: shipped, ...single }, [of], answer);

test('different bodies fail the round of a shipped server, whatever failed responses had', () => {
  const responses = { '2xx': 999, '3xx': 0, '4xx': 0, '5xx': 1 };
  expect(differ(withBody(612_000))).toEqual([]);
  const wrong = () => differ(withBody(611_990));
  expect(wrong).toThrow('611.99 B on average');
  expect(wrong).toThrow(RoundFailure);
  expect(differ(withBody(999 * 612, { responses }))).toEqual([]);
  expect(() => differ(withBody(1000 * 612, { responses }))).toThrow('612.61 B on average');
});

// Five times 30 × √1000 are 4,743.
test.each([
  [614_999, 0],
  [600_000, 60],
])('the mean body length of several pages may deviate: %i, %i', (body, inFlight) => {
  expect(differ(withBody(body, { inFlight }), { bytes: 612.5, sdBytes: 30 })).toEqual([]);
});

const few = { '2xx': 995, '3xx': 0, '4xx': 0, '5xx': 5 };

test.each<[bytes: number, lengths: number[], changes: Partial<Phase>, ratio: number | undefined]>([
  [600, [617], {}, 617 / 600],
  [600, [900, 600, 0], {}, 0.8333],
  [600, [606, 900], {}, 1.255],
  [600, [0.995 * 600], { responses: few }, undefined],
  [600, [600], { responses: few }, undefined],
  [600, [0.995 * 900], { responses: few }, 1.5],
  [600, [6], { responses: few }, 0.01],
  [1, [18], {}, 18],
  [18, [2], {}, 0.1111],
  [2, [0.5], {}, 0.25],
])(
  'different bodies from a user config: instead of %i bytes %j, %j',
  (bytes, lengths, changes, ratio) => {
    const phases = lengths.map((length) => withBody(1000 * length, changes));
    const found = otherBodiesOf({ variant: mine, ...single }, phases, { bytes });
    if (ratio === undefined) expect(found).toEqual([]);
    else expect(found).toEqual([{ bodyRatio: expect.closeTo(ratio, 3) as number }]);
  },
);

/** A page of a mix: responses under load with bytes in all, and how many of them failed with how many of these bytes. */
type Loaded = [
  name: string,
  responses: number,
  bytes: number,
  unexpected?: number,
  unexpectedBytes?: number,
];

/** The check of a mix whose requests had answers of these lengths before. */
function otherPages(
  before: readonly (LoadRequest & { bytes: number })[],
  loaded: readonly Loaded[],
  { variant = mine, method = 'GET' }: { variant?: RunnableVariant; method?: string } = {},
) {
  const pages = loaded.map(([page, responses, bodyBytes, unexpected, unexpectedBodyBytes]) =>
    pageFigures({ page, responses, bodyBytes, ...present({ unexpected, unexpectedBodyBytes }) }),
  );
  const requests = before.map(({ bytes: _, ...request }) => request);
  const of = phase({ requests: 1000, pages, expected: 'each' });
  const load = { method } as Load;
  const each = before.map(({ bytes }) => ({ status: 200, encoding: '', hash: '', bytes }));
  const answer = { bytes: 2000, sdBytes: 20_000, each };
  return otherBodiesOf({ variant, page: { path: '/', requests }, load }, [of], answer);
}

const bigAndSmall = [
  { target: '/big', bytes: 300_000 },
  { target: '/small', bytes: 100, weight: 150 },
];
const big: Loaded = ['/big', 100, 30_000_000];

test.each<[string, Loaded[], [string, number][]]>([
  ['as before', [['/small', 15_000, 1_500_000], big], []],
  ['all small ones are empty', [['/small', 15_000, 0], big], [['/small', 0]]],
  ['some are', [['/small', 15_000, 1_050_000], big], [['/small', 0.7]]],
  ['a few bytes more', [['/small', 15_000, 1_650_000], big], []],
  [
    'a rare one, most bytes',
    [
      ['/small', 15_000, 1_500_000],
      ['/big', 100, 0],
    ],
    [['/big', 0]],
  ],
  ['failed ones have other bodies', [['/small', 15_000, 1_510_000, 100, 20_000], big], []],
  [
    'empty ones hide behind long failed ones',
    [['/small', 15_000, 1_500_000, 100, 1_500_000], big],
    [['/small', 0]],
  ],
  [
    'four answers, by chance',
    [
      ['/small', 4, 0],
      ['/big', 1, 300_000],
    ],
    [],
  ],
  ['no answer', [['/small', 0, 0], big], []],
])('the pages of a mix: %s', (_, loaded, expected) => {
  const others = expected.map(([page, ratio]) => ({
    page,
    bodyRatio: expect.closeTo(ratio, 4) as number,
  }));
  expect(otherPages(bigAndSmall, loaded)).toEqual(others);
});

test('other bodies do not matter below 1 % of the load together', () => {
  const rare = ['/a', '/b', '/c'].map((target) => ({ target, bytes: 1000, weight: 4 }));
  const before = [...rare, { target: '/often', bytes: 1000, weight: 988 }];
  const often: Loaded = ['/often', 9880, 9_880_000];
  const sound = (page: string): Loaded => [page, 40, 40_000];
  const empty = (page: string): Loaded => [page, 40, 0];
  expect(otherPages(before, [often, empty('/a'), empty('/b'), sound('/c')])).toEqual([]);
  const three = otherPages(before, [often, empty('/a'), empty('/b'), empty('/c')]);
  expect(three).toEqual([{ page: '/c', bodyRatio: 0 }]);
  // A rare page that is far off does not stand for a frequent one that is nearly right.
  const nearly: Loaded = ['/often', 9880, 10_100_000];
  const found = otherPages(before, [nearly, empty('/a'), sound('/b'), sound('/c')]);
  expect(found).toEqual([{ page: '/often', bodyRatio: expect.closeTo(1.022, 3) as number }]);
  const grown = otherPages(before, [often, ['/a', 40, 400_000], sound('/b'), sound('/c')]);
  expect(grown).toEqual([{ page: '/a', bodyRatio: 10 }]);
});

test('pages without figures of their own have the mean of their bodies by weight', () => {
  const before = [
    { target: '/s?a', bytes: 900, weight: 3 },
    { target: '/s?b', bytes: 500 },
    { target: '/s', method: 'GET', bytes: 700 },
    { target: '/x', bytes: 50 },
    { target: '/y', bytes: 70 },
  ];
  const loaded = (search: number, get: number, others: number): Loaded[] => [
    ['POST /s', 40_000, 40_000 * search],
    ['/s', 10_000, 10_000 * get],
    ['others', 20_000, 20_000 * others],
  ];
  const post = { method: 'POST' };
  expect(otherPages(before, loaded(801, 700, 60), post)).toEqual([]);
  expect(otherPages(before, loaded(700, 350, 0), post)).toEqual([
    { page: 'others', bodyRatio: 0 },
    { page: '/s', bodyRatio: 0.5 },
    { page: 'POST /s', bodyRatio: 0.875 },
  ]);
});

test('a page of a shipped server that changes fails the round', () => {
  const small: Loaded = ['/small', 15_000, 1_499_999];
  expect(() => otherPages(bigAndSmall, [small, big], { variant: shipped })).toThrow(
    'shipped: bodies of /small had 100.00 B on average, and the page has 100 B: it changed',
  );
});

test('a side whose bodies are of several lengths has no verdict, unless the other has as many', () => {
  const sideOf = (otherBodies: number) => ({
    rounds: [1, 2].map((round) => ({ round, phases: [phase({ requests: 1000, otherBodies })] })),
  });
  const [none, few, many] = [0, 10, 21].map(sideOf);
  expect(sideWithSeveralBodies([none, few] as Side[])).toBeUndefined();
  expect(sideWithSeveralBodies([few, many] as Side[])).toBe(many);
  expect(sideWithSeveralBodies([many, none] as Side[])).toBe(many);
  expect(sideWithSeveralBodies([many, many] as Side[])).toBeUndefined();
  expect(shareOfOtherBodies(many as Side)).toBe(0.021);
  // Each round has pages of one length, and all together the right mean.
  const byRound = [0, 2].map((bodyRatio, round) => ({
    round,
    phases: [phase({ requests: 1000, bodyRatio })],
  }));
  expect(shareOfOtherBodies({ rounds: byRound })).toBe(1);
});
