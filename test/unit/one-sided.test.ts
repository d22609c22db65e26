// Disturbances of only one side: how they are measured, and their effect on verdicts.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { summarise } from '../fixtures/summary.ts';
import type { Comparison, Metric, Phase } from '../../lib/result/result.ts';
import type { NoiseCores, UsageSample } from '../../lib/runner/samples.ts';
import { stoppedShareOf, waitsOf } from '../../lib/runner/starved.ts';
import { second, variant } from '../fixtures/comparison.ts';
import { phase, quiet } from '../fixtures/phase.ts';
import { facts } from '../fixtures/result.ts';

type Shares = Pick<
  Phase,
  'waitedShare' | 'othersShare' | 'generatorWaitedShare' | 'stoppedShare' | 'alsoLoadedBy'
>;

const none: Shares[] = [{}, {}, {}, {}];
const stops = (...shares: number[]): Shares[] => shares.map((stoppedShare) => ({ stoppedShare }));
/** Other processes used the cores only while the server waited for them. */
const waits = (...shares: number[]): Shares[] =>
  shares.map((share) => ({ waitedShare: share, othersShare: share }));
/** Other processes used the generator's cores, and the server was idle meanwhile. */
const idles = (...shares: number[]): Shares[] =>
  shares.map((generatorWaitedShare) => ({ waitedShare: 0, othersShare: 0, generatorWaitedShare }));
/** Other processes used the cores for half of the time. */
const waitsForHalf = (...shares: number[]): Shares[] =>
  shares.map((waitedShare) => ({ waitedShare, othersShare: 0.5 }));
/** The server's own tasks waited for each other as well. */
const ofManyTasks = (...shares: number[]): Shares[] =>
  shares.map((othersShare) => ({ waitedShare: 5, othersShare }));

const requests = [801, 799, 803, 798];

/** Returns the verdict on b, which makes about 20 % fewer requests/s than a, and the warnings. */
function judged(ofA: readonly Shares[], ofB: readonly Shares[], run: Partial<typeof facts> = {}) {
  const a = ofA.map((shares) => second(1000, 0.99, 0.7, shares));
  const b = ofB.map((shares, round) => second(requests[round] as number, 0.79, 0.7, shares));
  const { comparisons, warnings } = summarise({ ...facts, ...run }, [
    variant('a', a),
    variant('b', b),
  ]);
  return { verdict: comparisons[0]?.verdict, why: comparisons[0]?.why, warnings };
}

test.each<[string, Shares[], Shares[]]>([
  ['nothing is known', none, none],
  ['only one side is known', none, stops(0.3, 0.3, 0.3, 0.3)],
  ['both were stopped alike', stops(0.3, 0.2, 0.4, 0.3), stops(0.31, 0.2, 0.4, 0.3)],
  ['one was stopped once, which makes an outlier', stops(0, 0, 0, 0), stops(0, 0.9, 0, 0)],
  ['both waited alike', waits(0.5, 0.4, 0.6, 0.5), waits(0.5, 0.41, 0.6, 0.49)],
  ['one waited a little more', waits(0, 0, 0, 0), waits(0.008, 0.01, 0.009, 0.01)],
  ['both were idle alike', idles(0.3, 0.4, 0.2, 0.3), idles(0.31, 0.39, 0.21, 0.3)],
  ['one waited more by chance', waits(0.1, 0.02, 0, 0), waits(0, 0.1, 0.2, 0)],
  ['one waited in one round', waits(0, 0, 0, 0), waits(0, 0.6, 0, 0)],
  ['tasks of one waited for each other', waits(0, 0.01, 0, 0), ofManyTasks(0.01, 0.01, 0, 0.01)],
  [
    'others used the cores of both alike, and one left them time',
    waitsForHalf(0.4, 0.4, 0.41, 0.4),
    ofManyTasks(0.5, 0.5, 0.51, 0.5),
  ],
])('there is a verdict if %s', (_, ofA, ofB) => {
  expect(judged(ofA, ofB)).toEqual({
    verdict: 'slower',
    why: 'the whole interval is below 1',
    warnings: [],
  });
});

test.each([
  ['b', 'b had', 'look for code in b that does so'],
  ['', 'another program had', String.raw`end that program \(ss -tnp\)`],
])('there is no verdict if %j had connections to one side', (alsoLoadedBy, who, remedy) => {
  const loaded: Shares[] = [{}, { alsoLoadedBy }, {}, { alsoLoadedBy }];
  expect(judged(loaded, none)).toEqual({
    verdict: 'none',
    why: `${who} connections to a too`,
    warnings: [
      expect.stringMatching(
        new RegExp(`^a: ${who} connections to its server in rounds 2 and 4, so .*: ${remedy}`),
      ),
    ],
  });
});

test('waits cost no verdict on a far larger difference', () => {
  const a = waits(0.02, 0.03, 0.02, 0.03).map((shares) => second(1000, 0.99, 0.7, shares));
  const b = waits(0, 0.01, 0, 0).map((shares, round) =>
    second(((requests[round] as number) * 0.9) / 10, 0.79, 0.7, shares),
  );
  const { comparisons } = summarise(facts, [variant('a', a), variant('b', b)]);
  expect(comparisons[0]?.verdict).toBe('slower');
  expect(judged(waits(0.06, 0.07, 0.06, 0.07), waits(0, 0.01, 0, 0))).toMatchObject({
    verdict: 'slower',
    warnings: [
      expect.stringMatching(
        /, so part of the difference of b and a may come from that, but not all/,
      ),
    ],
  });
});

test('a verdict on memory says nothing of requests/s, which the waits of one side move', () => {
  const run = { metric: 'memory' as const };
  const a = waits(0, 0.01, 0, 0).map((shares) => second(1000, 0.99, 0.7, shares));
  const b = waits(0.5, 0.5, 0.5, 0.5).map((shares) => second(800, 0.79, 0.7, shares));
  const withMemory = (name: string, phases: Phase[], bytes: number) => {
    const made = variant(name, phases);
    return { ...made, rounds: made.rounds.map((round) => ({ ...round, memoryBytes: bytes })) };
  };
  const { comparisons, warnings } = summarise({ ...facts, ...run }, [
    withMemory('a', a, 10e6),
    withMemory('b', b, 20e6),
  ]);
  expect(comparisons[0]?.verdict).toBe('slower');
  expect(warnings.join()).toMatch(
    /^b waited .*, so requests\/s, latency and CPU per request of b and a do not compare: /,
  );
});

test('what others took of the cores of a server at its limit widens the interval, if the other server had time left', () => {
  const few = [989, 990, 988, 991];
  const comparisonAt = (share: number, shareOfA: number) => {
    const shares = waits(share, share, share, share);
    const a = shares.map((each) => second(1000, shareOfA, 0.7, each));
    const b = shares.map((each, round) => second(few[round] as number, 0.99, 0.7, each));
    return summarise({ ...facts, metric: 'rps', sameWithin: 0.001 }, [
      variant('a', a),
      variant('b', b),
    ]).comparisons[0] as Comparison;
  };
  const quietly = comparisonAt(0, 0.1);
  expect(quietly.verdict).toBe('slower');
  const taken = comparisonAt(0.015, 0.1);
  expect(taken).toMatchObject({ verdict: 'inconclusive', ratio: quietly.ratio });
  expect(taken.roundsNeeded).toBeNull();
  expect(taken.ci95[0]).toBe(quietly.ci95[0]);
  expect(taken.ci95[1]).toBeCloseTo(quietly.ci95[1] / 0.985, 9);
  // Both lose alike.
  expect(comparisonAt(0.015, 0.99)).toMatchObject({ verdict: 'slower', ci95: quietly.ci95 });
});

type Sides = (share: number) => MeasuredVariant[];
const moreUnderWay: Sides = (share) => {
  const shares = waits(share, share, share, share);
  const a = shares.map((each) => second(1000, 0.99, 0.7, each));
  const b = shares.map((each, round) => second(requests[round] as number, 0.79, 0.7, each));
  const load = { protocol: 'http/1.1', threads: 1, streams: 100 } as const;
  return [variant('a', a), variant('b', b, { load })];
};
const dearer: Sides = (share) => {
  const shares = waits(share, share, share, share);
  const cheap = shares.map((each) => second(1000, 0.1, 0.7, each));
  const dear = shares.map((each, round) =>
    second(1.2 * (requests[round] as number) * (1 - share), 1 - share, 0.7, each),
  );
  return [variant('a', cheap), variant('b', dear)];
};

test.each<[string, Sides, number, RegExp]>([
  [
    'has more requests under way',
    moreUnderWay,
    0.4,
    /^a waited 40 % .*, b 40 %, and b loses less by that, since it has more requests under way$/,
  ],
  [
    'takes far more CPU time',
    dearer,
    0.85,
    /^b waited 85 % .*, a 85 %, and a loses less by that, since its requests take less CPU time$/,
  ],
])('equal waits cost the verdict if one side %s', (_, sides, share, why) => {
  const judgedAt = (waited: number) => summarise(facts, sides(waited)).comparisons[0];
  expect(judgedAt(0.02)?.verdict).toBe('slower');
  expect(judgedAt(share)).toMatchObject({
    verdict: 'none',
    obstacle: 'oneSided',
    why: expect.stringMatching(why),
  });
  expect(judgedAt(0.02)?.obstacle).toBeUndefined();
});

const waitedFor = (name: string, percent: number, other: string) =>
  `${name} waited ${percent} % of its turns for cores that other programs used, ${other}`;

test('equal waits cost the verdict on CPU per request that jobs of the servers may make', () => {
  const runAt = (share: number, cpuSeconds: number, metric: Metric) => {
    const shares = waits(share, share, share, share);
    const a = shares.map((each) => second(1000, 0.5, 0.7, each));
    const b = shares.map((each, round) => second(1000 + round, cpuSeconds, 0.7, each));
    return summarise({ ...facts, metric }, [variant('a', a), variant('b', b)]);
  };
  const comparisonAt = (...of: Parameters<typeof runAt>) =>
    runAt(...of).comparisons[0] as Comparison;
  const judgedAt = (share: number, cpuSeconds: number) => {
    const { verdict, why } = comparisonAt(share, cpuSeconds, 'cpu');
    return [verdict, why];
  };
  const why =
    'a waited 50 % of its turns for cores that other programs used, b 50 %, and their background jobs then fall on fewer requests';
  // A fifth of a core costs 0.5 · 0.8 / 0.3 = 1.33 times as much for each request if half of the time is left.
  expect(judgedAt(0.5, 0.6)).toEqual(['none', why]);
  expect(runAt(0.5, 0.6, 'cpu').warnings).toContain(
    `${why}, so CPU per request of b and a does not compare: end what else runs on this machine, and run again`,
  );
  expect(runAt(0.5, 0.6, 'rps').warnings.join()).not.toContain('does not compare');
  // A condition of --fail-if on it asks for that.
  expect(comparisonAt(0.5, 0.6, 'rps').obstacles).toEqual([
    { metric: 'cpu', why, obstacle: 'oneSided' },
  ]);
  expect(comparisonAt(0.02, 0.6, 'rps').obstacles).toBeUndefined();
  expect(judgedAt(0.5, 0.7)[0]).toBe('slower');
  expect(judgedAt(0.02, 0.6)[0]).toBe('slower');
});

test.each<[string, Shares[], Shares[], string, RegExp]>([
  [
    'one side was stopped',
    stops(0, 0, 0, 0),
    stops(0.3, 0.2, 0.4, 0.3),
    'b was stopped in 30 % of its time',
    /^b was stopped in 30 % of its time, so .* of b and a do not compare: find what stops it \(SIG/,
  ],
  [
    'the baseline was stopped more',
    stops(0.3, 0.2, 0.4, 0.3),
    stops(0, 0.1, 0, 0.02),
    'a was stopped in 30 % of its time, b in 3.0 %',
    /^a was stopped /,
  ],
  [
    'others had the cores of one side',
    waits(0.01, 0.01, 0.02, 0),
    waits(0.12, 0.11, 0.13, 0.12),
    waitedFor('b', 12, 'a 1.0 %'),
    /^b waited 12 % .*, so requests.s, .* of b and a do not compare: end what else runs .* again$/,
  ],
  [
    'one side waited while others used the cores of both alike',
    waitsForHalf(0.1, 0.12, 0.1, 0.08),
    waitsForHalf(0.2, 0.25, 0.2, 0.15),
    waitedFor('b', 20, 'a 10 %'),
    /^b waited 20 % /,
  ],
  [
    'the side that makes more waited more',
    waits(0.3, 0.3, 0.32, 0.3),
    waits(0.01, 0.01, 0.02, 0),
    waitedFor('a', 31, 'b 1.0 %'),
    /^a waited 31 % /,
  ],
  [
    'others had the cores of the generator, and one side was idle meanwhile',
    idles(0.1, 0.12, 0.1, 0.08),
    idles(0.4, 0.42, 0.38, 0.4),
    waitedFor('b', 40, 'a 10 %'),
    /^b waited 40 % /,
  ],
  [
    'both had little time left, and one half as much',
    waits(0.92, 0.91, 0.92, 0.92),
    waits(0.96, 0.955, 0.96, 0.96),
    waitedFor('b', 96, 'a 92 %'),
    /^b waited 96 % /,
  ],
  [
    'others had the cores of a side with many tasks',
    waits(0.01, 0.01, 0.02, 0),
    ofManyTasks(0.12, 0.11, 0.13, 0.12),
    waitedFor('b', 12, 'a 1.0 %'),
    /^b waited 12 % /,
  ],
])('there is no verdict if %s', (_, ofA, ofB, why, note) => {
  const warnings = [expect.stringMatching(note)];
  expect(judged(ofA, ofB)).toEqual({ verdict: 'none', why, warnings });
  // A stop does not change the CPU time of a response.
  const isStarved = why.includes('waited');
  expect(judged(ofA, ofB, { metric: 'cpu' }).verdict === 'none').toBe(isStarved);
});

describe('waitsOf', () => {
  const window = { fromMs: 1000, toMs: 3000 };
  const noise = { ...quiet, serverOthersShare: 0.2 };
  const oneCore: NoiseCores = {
    server: 1,
    generator: 1,
    shared: false,
    interruptsApart: true,
    hasUpstreams: false,
  };
  const turns = { count: 50, responses: 1000, sliceMs: 20, rampMs: 0, waits: false };
  /** The server's tasks wait 50 ms per second. */
  const samples = [0, 4000].map(
    (atMs) => ({ atMs, waitedSeconds: atMs / 20_000 }) as unknown as UsageSample,
  );
  type Expected = [waited?: number, others?: number, generatorWaited?: number];
  const names = ['waitedShare', 'othersShare', 'generatorWaitedShare'];
  const near = (shares: Expected) =>
    Object.fromEntries(shares.map((share = NaN, at) => [names[at], expect.closeTo(share, 9)]));

  interface Seen {
    /** CPU seconds of all processes on the server's cores during its turns; 0.6 of them are the servers'. */
    processes: number;
    interrupts?: number;
    /** Length of the server's turns. */
    seconds?: number;
    cores?: Partial<NoiseCores>;
    upstreamShare?: number | null;
    workers?: number;
    backendsAreKnown?: boolean;
    stolen?: number;
    waits?: { server: number; generator: number };
    generatorOthersShare?: number;
  }

  function waited({ processes, interrupts = 0, seconds = 1, ...more }: Seen) {
    const { upstreamShare, cores, workers = 1, backendsAreKnown = true } = more;
    const { stolen = 0, waits = null, generatorOthersShare = 0 } = more;
    const used = { seconds, processes, interrupts, servers: 0.6, stolen, waits };
    const seen = { ...noise, generatorOthersShare };
    const serverCpu = { seconds: 0.5, idleShare: 0, cores: used };
    return waitsOf(
      { ...phase({ requests: 1000, turns }), serverCpu },
      samples,
      window,
      upstreamShare === undefined ? seen : { ...seen, upstreamShare },
      { ...oneCore, ...cores },
      { workers, backendsAreKnown },
    );
  }

  test.each<[string, Seen, Expected]>([
    ['known in turns', { processes: 0.7 }, [0.1, 0.1]],
    ['only its own wait', { processes: 0.6 }, [0.1, 0]],
    ['not less than nothing, where ticks miss its own time', { processes: 0.59 }, [0.1, 0]],
    ['of no more cores than there are', { processes: 1, workers: 4 }, [0.1, 0.4]],
    ['of all its cores', { processes: 1, workers: 4, cores: { server: 2 } }, [0.05, 0.2]],
    ['of no more cores than workers', { processes: 1, cores: { server: 2 } }, [0.1, 0.4]],
    [
      "right with interrupts in the server's time",
      { processes: 0.5, interrupts: 0.2, cores: { interruptsApart: false } },
      [0.1, 0.1],
    ],
    ['known with a backend elsewhere', { processes: 1, upstreamShare: 0 }, [0.1, 0.4]],
    [
      "of the engine, and the generator's as far as the server had time",
      { processes: 0.9, waits: { server: 0.2, generator: 0.4 }, generatorOthersShare: 0.5 },
      [0.2, 0.3, 0.3],
    ],
    [
      "of no more of the generator's cores than others used",
      { processes: 0.9, waits: { server: 0.2, generator: 0.4 }, generatorOthersShare: 0.02 },
      [0.2, 0.3, 0.02],
    ],
    ['of what the host took too', { processes: 0.7, stolen: 0.2 }, [0.3, 0.3]],
    ['unknown on shared cores', { processes: 1, cores: { shared: true } }, []],
    ['unknown if the engine does not know it', { processes: 0, seconds: 0 }, []],
    ['of its cores alone beside a backend', { processes: 1, upstreamShare: 0.1 }, [0.1]],
    ['of its cores alone beside a hidden backend', { processes: 1, upstreamShare: null }, [0.1]],
    ['of its cores alone for a command', { processes: 1, backendsAreKnown: false }, [0.1]],
  ])('is %s', (_, seen, expected) => {
    expect(waited(seen)).toEqual(near(expected));
  });

  test('uses the noise of the window for a side that was loaded alone', () => {
    const result = phase({ requests: 1000, seconds: 2, turns: null });
    const known = { workers: 1, backendsAreKnown: true };
    expect(waitsOf(result, samples, window, noise, oneCore, known)).toEqual(near([0.05, 0.2]));
  });
});

test('stoppedShareOf is the share of the samples in the window', () => {
  const samples = [true, false, true, true, false, true].map((stopped, index) => ({
    atMs: 1000 * index,
    stopped,
  }));
  expect(stoppedShareOf(samples, { fromMs: 1000, toMs: 4000 })).toBe(0.5);
  expect(stoppedShareOf(samples, { fromMs: 1100, toMs: 1900 })).toBeUndefined();
});
