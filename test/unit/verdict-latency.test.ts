import { expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import type { Comparison, Phase } from '../../lib/result/result.ts';
import { comparisonOf, second, variant } from '../fixtures/comparison.ts';
import { latency } from '../fixtures/phase.ts';

const load: MeasuredVariant['load'] = { protocol: 'h2', threads: 1, rate: 1000 };
const timed = (
  name: string,
  p50: readonly number[],
  p99: readonly number[],
  changes: Partial<MeasuredVariant> = {},
) =>
  variant(
    name,
    p50.map((median, round) =>
      second(1000, 0.1, 0.1, { latencyMs: latency(median, p99[round] as number, 50) }),
    ),
    { load, ...changes },
  );
const [p50, p99] = [
  [1, 1.01, 0.99, 1],
  [5, 5.05, 4.95, 5],
];
const base = timed('a', p50, p99);
const held = (name: string, ms: number, generatorCpu: number, serverCpu: number) =>
  variant(
    name,
    p50.map(() => second(1000, serverCpu, generatorCpu, { latencyMs: latency(ms, 4 * ms, 50) })),
  );
const times = (by: number) => [4, 4.1, 3.9, 4].map((value) => value * by);

test('at a rate, p99 is the main metric, with a second verdict on p50', () => {
  const comparison = comparisonOf([base, timed('b', p50, times(1))]);
  expect(comparison).toMatchObject({
    metric: 'p99',
    verdict: 'faster',
    why: 'the whole interval is below 1',
    publishedRatio: null,
    disagreement: '',
    latency: {
      p50: { verdict: 'same', ratio: 1 },
      p90: { verdict: 'none' },
      p99: { verdict: 'faster', ratio: comparison.ratio, ci95: comparison.ci95 },
    },
  });
  expect(comparison.ratio).toBeCloseTo((0.8 * (4.1 / 5.05) * (3.9 / 4.95) * 0.8) ** 0.25, 9);
  expect(comparisonOf([base, timed('b', p50, times(2))]).verdict).toBe('slower');
  // Both p50 and p99 are judged and share α. t(3): 0.975 is 3.182446, 0.9875 is 4.176535.
  const noisy = timed('b', p50, [4, 4.1, 3.9, 4.4]);
  const width = ({ ci95: [low, high] }: Comparison) => Math.log(high / low);
  expect(
    width(comparisonOf([base, noisy])) / width(comparisonOf([base, noisy], { metric: 'p99' })),
  ).toBeCloseTo(4.176535 / 3.182446, 5);
});

test('if pages are loaded with their files, the median page time is the metric', () => {
  const pages = (streams: number) =>
    ({ load: { protocol: 'h2', threads: 1, streams, together: true } }) as const;
  const both = [timed('a', p50, p99, pages(10)), timed('b', times(1), p99, pages(10))];
  expect(comparisonOf(both)).toMatchObject({ metric: 'p50', verdict: 'slower' });
  expect(comparisonOf([timed('a', p50, p99, pages(5)), ...both.slice(1)])).toMatchObject({
    verdict: 'none',
    why: 'their latencies are of pages with different numbers of files',
  });
});

test('latency is the metric on request, for any load', () => {
  const closed = { load: { protocol: 'h2', threads: 1 } } as const;
  const slower = p50.map((ms) => 1.5 * ms);
  const [baseline, other] = [timed('a', p50, p99, closed), timed('b', slower, p99, closed)];
  expect(comparisonOf([baseline, other])).toMatchObject({
    metric: 'rps',
    verdict: 'same',
    latency: { p50: { verdict: 'none', ratio: expect.closeTo(1.5, 9) } },
  });
  expect(comparisonOf([baseline, other], { metric: 'p50' })).toMatchObject({
    metric: 'p50',
    verdict: 'slower',
    ratio: expect.closeTo(1.5, 9),
  });
  expect(
    comparisonOf([held('a', 1, 0.1, 0.1), held('b', 1, 0.1, 0.05)], { metric: 'cpu' }),
  ).toMatchObject({
    metric: 'cpu',
    verdict: 'faster',
    ratio: expect.closeTo(0.5, 9),
  });
});

test('latency as the metric needs a generator below its limit', () => {
  const free = held('a', 1, 0.6, 0.7);
  const slower = [free, held('b', 2, 0.97, 0.7)];
  expect(comparisonOf(slower, { metric: 'p99' })).toMatchObject({
    verdict: 'none',
    why: 'the generator was the limit with b',
  });
  expect(comparisonOf([free, held('b', 0.5, 0.97, 0.7)], { metric: 'p99' }).verdict).toBe('faster');
  expect(comparisonOf(slower, { metric: 'cpu' }).verdict).toBe('same');
});

test('meaningless latency has no verdict', () => {
  const few = latency(1, 4, 50, {
    histogram: [
      [1, 900],
      [4, 99],
    ],
  });
  const ofB = (requests: number, changes: Partial<Phase>) =>
    comparisonOf([
      base,
      variant(
        'b',
        times(1).map((ms) =>
          second(requests, 0.1, 0.1, { latencyMs: latency(1, ms, 50), ...changes }),
        ),
        { load },
      ),
    ]);
  expect(ofB(999, { latencyMs: few })).toMatchObject({
    verdict: 'none',
    ratio: 0,
    why: expect.stringMatching(/^p99 needs 1,000 responses in each round: /),
    latency: { p99: null, p90: { verdict: 'none' }, p50: { verdict: 'same' } },
    cpu: { ratio: expect.any(Number) },
  });
  const closed = timed('b', p50, p99, { load: { protocol: 'h2', threads: 1 } });
  expect(comparisonOf([base, closed])).toMatchObject({
    verdict: 'none',
    why: expect.stringMatching(/^only one of the loads sets requests\/s: /),
  });
  const why = 'b did not come to its rate';
  expect(ofB(700, { rps: 700, unsent: 300 })).toMatchObject({ verdict: 'none', why });
  const queueGrowth = { perSecond: 300, standardError: 1 };
  expect(ofB(1000, { rps: 700, queueGrowth })).toMatchObject({
    verdict: 'none',
    why,
    ratio: 0,
    latency: { p50: null, p99: null },
  });
});
