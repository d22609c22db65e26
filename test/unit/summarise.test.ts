import { expect, test } from 'vitest';
import { summarise } from '../fixtures/summary.ts';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import type { Phase } from '../../lib/result/result.ts';
import { measured as variant } from '../fixtures/comparison.ts';
import {
  answers,
  latency,
  nginxWith,
  noCauses,
  noLatency,
  phase,
  continuousEnd,
  readErrors,
} from '../fixtures/phase.ts';
import { facts } from '../fixtures/result.ts';
import { present } from '../../lib/present.ts';

const counts = (requests: readonly number[]): Phase[] =>
  requests.map((count) => phase({ requests: count }));
const baseline = variant('workers', counts([600_000, 610_000, 590_000, 600_000]), {
  published: { rps: 100 },
});

const four = (changes: Partial<Phase> & { requests: number }): Phase[] =>
  Array.from({ length: 4 }, () => phase(changes));

const of = (...phases: Phase[]) => summarise(facts, [variant('workers', phases)]).variants[0];

test('figures are medians over rounds; latencies cover all rounds', () => {
  const figures = of(
    phase({ requests: 100_000, latencyMs: latency(1, 5, 10), serverCpuSeconds: 2 }),
    phase({ requests: 200_000, latencyMs: latency(3, 7, 90), serverCpuSeconds: 5 }),
    phase({ requests: 400_000, latencyMs: latency(2, 6, 20), serverCpuSeconds: 6 }),
  );
  expect(figures).toMatchObject({
    rps: { median: 20_000 },
    serverCpuMicrosPerRequest: { median: 20 },
    // 2400 of 3000 values are at most 3 ms; value 2970 is 7 ms.
    latencyMs: { p50: 2, p99: 7, max: 90 },
    errorsPerMillion: 0,
    successRatio: 1,
  });
});

test('a variant without responses has no latency', () => {
  const silent = phase({ requests: 100, responses: answers({}), latencyMs: noLatency });
  expect(of(silent, silent)).toMatchObject({ latencyMs: null, rps: { median: 0 } });
  const answered = phase({ requests: 100, latencyMs: latency(1, 2, 3) });
  expect(of(silent, answered)?.latencyMs).toEqual({ p50: 1, p99: 2, max: 3 });
});

test('CPU shares are of the cores that workers and threads can use', () => {
  const server = { ...nginxWith(), workers: 16 };
  const load = { protocol: 'http/1.1', threads: 10 } as const;
  const phases = [phase({ requests: 1000, serverCpuSeconds: 5, generatorCpuSeconds: 10 })];
  const many = variant('workers', phases, { server, load });
  expect(summarise({ ...facts, serverCores: 8, generatorCores: 4 }, [many]).variants).toMatchObject(
    [{ serverShare: 0.0625, generatorShare: 0.25 }],
  );
  const there = variant('workers', phases, { server: { ...server, atAddress: true }, load });
  expect(summarise(facts, [there]).variants).toMatchObject([
    { serverShare: null, serverCpuMicrosPerRequest: { median: 5000 } },
  ]);
});

test('only the expected status class counts as success', () => {
  const lost = phase({
    requests: 1000,
    responses: answers({ '2xx': 100, '4xx': 900 }),
    expected: '4xx',
  });
  const { variants, warnings } = summarise(facts, [variant('workers', [lost])]);
  expect(variants[0]).toMatchObject({
    successRatio: 0.9,
    phases: [{ successRatio: 0.9, expected: '4xx' }],
  });
  expect(warnings.join()).toContain('workers: 100 answers with 2xx among 1,000 requests: ');
});

test('errors and responses other than 2xx and 3xx count over all rounds', () => {
  const bad = phase({
    requests: 1_000_000,
    responses: { '2xx': 900_000, '3xx': 50_000, '4xx': 20_000, '5xx': 29_990 },
    errors: { connect: 4, tls: 0, read: 6, write: 0, timeout: 0, protocol: 0, total: 10 },
    errorCauses: { ...noCauses, refused: 4, reset: 6 },
  });
  const { variants, warnings } = summarise(facts, [
    variant('workers', [bad, phase({ requests: 1_000_000 })]),
  ]);
  expect(variants[0]?.errorsPerMillion).toBe(5);
  expect(variants[0]?.successRatio).toBe(0.975);
  expect(warnings.join()).toContain(
    'workers: 10 errors (6 reset, 4 refused), 20,000 answers with 4xx and 29,990 answers with 5xx among 2,000,000 requests: ',
  );
});

test('failed attempts are excluded from requests/s and CPU per request', () => {
  const half = phase({
    requests: 100_000,
    rps: 10_000,
    responses: answers({ '2xx': 30_000, '4xx': 6000, '5xx': 4000 }),
    errors: readErrors(60_000),
    serverCpuSeconds: 2,
  });
  expect(of(half)).toMatchObject({
    rps: { median: 4000 },
    phases: [{ rps: { median: 4000 } }],
    serverCpuMicrosPerRequest: { median: 50 },
    errorsPerMillion: 600_000,
    successRatio: 0.3,
  });
  const { comparisons } = summarise(facts, [
    variant('a', four({ requests: 40_000, serverCpuSeconds: 2 })),
    variant('b', four(half), { against: 'a' }),
  ]);
  expect(comparisons[0]).toMatchObject({ ratio: 1, cpu: { ratio: 1 } });
});

test('a missing baseline gives a warning, unless the variant is one', () => {
  const unlimited = variant('unlimited', four({ requests: 1000 }), { against: 'workers' });
  const warned = (...others: MeasuredVariant[]) =>
    summarise(facts, [unlimited, ...others]).warnings;
  expect(warned()).toEqual([
    'unlimited is compared with workers, which was not run: name both with --variants for a ratio',
  ]);
  expect(warned({ ...unlimited, name: 'cache', against: 'unlimited' })).toEqual([]);
  const h2o = variant('h2o', four({ requests: 1000 }));
  const alsoCompare = [{ variant: 'unlimited', against: 'h2o' }];
  expect(summarise(facts, [unlimited, h2o], { alsoCompare }).warnings).toEqual([]);
});

const buckets = (...counts: [number, number, number]): Phase['buckets'] => [
  { fromMs: 0, toMs: 0.15, count: counts[0] },
  { fromMs: 0.15, toMs: 0.25, count: counts[1] },
  { fromMs: 0.25, toMs: null, count: counts[2] },
];

const warnings = (changes: Partial<Phase>) =>
  summarise(facts, [
    variant('workers', four({ requests: 10_000, ...changes }), {
      load: { protocol: 'h2', threads: 1, rate: 1000, streams: 250 },
    }),
  ]).warnings;

test('an open model warns about late sends', () => {
  expect(warnings({ sendDelayMs: latency(0.2, 0.74, 3) })).toEqual([]);
  expect(warnings({ sendDelayMs: latency(0.2, 0.76, 3) })).toEqual([
    expect.stringMatching(/^workers: .* left 760 µs late or more, .*\(p99 3\.00 ms\)/),
  ]);
  expect(
    [0.09, 0.11].map((p99) =>
      warnings({ buckets: buckets(1, 1, 1), sendDelayMs: latency(0.01, p99, 3, { min: 0 }) }),
    ),
  ).toEqual([[], [expect.stringContaining('left 110 µs late')]]);
  expect(warnings({})).toEqual([]);
  // A rate that was not reached has a separate sentence.
  expect(warnings({ sendDelayMs: latency(500, 900, 1000), requests: 9000, seconds: 11 })).toEqual(
    [],
  );
});

test('a p99 of which the generator is half is said to be its own', () => {
  const lateBy = (p99: number, count: number) =>
    warnings({ readDelayMs: latency(0.01, p99, 3, { histogram: [[p99, count]] }) });
  expect(lateBy(1.4, 1000)).toEqual([]);
  expect(lateBy(1.6, 1000)).toEqual([
    expect.stringMatching(
      /^workers: half or more of its p99 \(3\.00 ms\) is the generator's: .* 1\.60 ms/,
    ),
  ]);
  expect(lateBy(1.6, 10)).toEqual([]);
});

test.each([
  [undefined, /ms after it was there, or later: give the .* threads, and end what else runs/],
  [
    0,
    /ms after it was there, or later: give the generator more cores \(.*\) or the load more threads$/,
  ],
  [
    0.4,
    /or later, as it waited for its cores in 40 % of the time: end what else runs on its cores$/,
  ],
])('with waits of %s of the time, late reads have the remedy of their cause', (waited, text) => {
  const late = { readDelayMs: latency(0.01, 1.6, 3, { histogram: [[1.6, 1000]] }) };
  const shares = waited === undefined ? {} : { generatorWaitedShare: waited };
  expect(warnings({ ...late, ...shares })).toContainEqual(expect.stringMatching(text));
});

test('the warning about late sends names the cause', () => {
  const late = { latencyMs: latency(50, 106, 120), sendDelayMs: latency(1, 77, 90) };
  const warningsFor = (changes: Partial<Phase>) =>
    warnings({ ...late, serverCpuSeconds: 3, ...changes });
  expect(warningsFor({})).toEqual([
    expect.stringMatching(/left 77\.00 ms late or more, .*: neither side was at its limit \(run/),
  ]);
  expect(warningsFor({ generatorCpuSeconds: 9.7 }).join()).toContain(
    ': the generator was at its limit',
  );
});

const answered = (requests: number, seconds: number, failed: number): Phase =>
  phase({
    requests,
    seconds,
    rps: requests / seconds,
    responses: answers({ '2xx': requests - failed, '4xx': failed }),
    bytes: {
      received: requests * 1000,
      headers: requests * 10,
      headersDecoded: requests * 100,
      body: requests * 900,
      sent: requests,
    },
  });
const img = variant('nghttpd', [], {
  rounds: [
    { round: 1, phases: [answered(100, 10, 0), answered(100, 2, 80)] },
    { round: 2, phases: [answered(100, 20, 0), answered(100, 1, 40)] },
    { round: 4, phases: [answered(100, 12, 0), answered(100, 4, 60)] },
  ],
});
const [result] = summarise(facts, [img]).variants;

test('phases have figures in addition to those of the round', () => {
  expect(result?.phases).toMatchObject([
    { phase: 1, rps: { median: 100 / 12 }, seconds: 12, receivedBytesPerSecond: 100_000 / 12 },
    { phase: 2, successRatio: 0.4, responses: answers({ '2xx': 120, '4xx': 180 }) },
  ]);
  expect(result).toMatchObject({ rps: { median: 200 / 16 }, successRatio: 0.7 });
  expect(result?.traffic).toMatchObject({
    requests: 200,
    seconds: 16,
    receivedBytesPerSecond: 200_000 / 16,
    headerSavingsPercent: 90,
    bytes: { received: 200_000, headers: 2000, headersDecoded: 20_000, body: 180_000, sent: 200 },
  });
});

const negotiated = (name: string, keyExchange: string, changes: Partial<Phase> = {}) =>
  variant(
    name,
    four({
      requests: 1000,
      tls: { version: 'TLSv1.2', cipher: 'ECDHE-RSA-AES128-GCM-SHA256', keyExchange },
      ...changes,
    }),
  );

test('different TLS parameters give one warning; plain HTTP is ignored', () => {
  const { warnings } = summarise(facts, [
    negotiated('nginx', 'P-384'),
    negotiated('h2o', 'P-256'),
    negotiated('nginx-p256', 'P-256'),
    baseline,
  ]);
  expect(warnings).toEqual(['TLS key exchange differs: P-384 (nginx), P-256 (h2o, nginx-p256)']);
  expect(
    summarise(facts, [negotiated('nginx', 'P-256'), negotiated('h2o', 'P-256'), baseline]).warnings,
  ).toEqual([]);
});

test("streams beyond the server's limit give a warning with both numbers", () => {
  const limited = (...limits: (number | null)[]) =>
    summarise(
      facts,
      limits.map((maxConcurrentStreams, index) => ({
        ...negotiated(`server-${index}`, 'P-256', { maxConcurrentStreams }),
        load: { protocol: 'h2', threads: 1, streams: 1020 },
      })),
    ).warnings;
  expect(limited(128, 100, 1020)).toEqual([
    'server-0: the server allows 128 concurrent streams per connection, the load asks for 1,020: 128 were used',
    expect.stringMatching(/^server-1: the server allows 100 /),
  ]);
  expect(limited(1024, null)).toEqual([]);
});

test('a load that is to resume TLS sessions and resumes none says why', () => {
  const made = (connections: number, resumed?: number, resume = 0.9, handshakes = connections) => {
    const perRequest = { connections, handshakes, ...present({ resumed }) };
    const variant = negotiated('nginx', 'P-256', { perRequest, requests: 1000, warmupRequests: 0 });
    const load = { protocol: 'http/1.1', threads: 1, connections: 10, tls: { resume } } as const;
    return warningsWith('no TLS session was resumed', { ...variant, load });
  };
  expect(made(1, 0)).toEqual([
    expect.stringMatching(/^nginx: no TLS .*: the server gave no session tickets, /),
  ]);
  expect(made(0.01, 0)).toEqual([expect.stringMatching(/: its connections were kept, /)]);
  expect(made(1, 0, 0.9, 0)).toEqual([
    'nginx: no TLS session was resumed (tls.resume): the page is not https',
  ]);
  expect([made(1, 0.001), made(1, 0, 0), made(1)]).toEqual([[], [], []]);
});

const warningsWith = (included: string, ...variants: MeasuredVariant[]) =>
  summarise(facts, variants).warnings.filter((text) => text.includes(included));

test('equal notes of several variants are merged', () => {
  const of = (name: string, gain: number) => {
    const continuous = { ...continuousEnd, warmupSeconds: gain, gain };
    return variant(name, [phase({ requests: 1000, continuous })]);
  };
  const all = [of('a', 2), of('b', 1), of('c', 1.5)];
  expect(warningsWith('still got faster', ...all)).toEqual([
    expect.stringMatching(
      /^a and c still .*: warm-ups took up to 2\.0 s, in which requests\/s rose to up to 2\.0 times \(.* measures them cold\)$/,
    ),
  ]);
});

test('an equal note of every variant names none', () => {
  const still = (name: string) => variant(name, [phase({ requests: 1000, longestGapMs: 3200 })]);
  expect(warningsWith('stalled', ...['a', 'b', 'c'].map(still))).toEqual([
    expect.stringMatching(/^every variant stalled for up to 3\.20 s /),
  ]);
  expect(warningsWith('stalled', ...['a', 'b'].map(still))).toEqual([
    expect.stringMatching(/^a and b stalled /),
  ]);
});

test('a server that stalled is named with the rounds', () => {
  const still = (...gapsMs: number[]) => {
    const phases = gapsMs.map((longestGapMs) => phase({ requests: 1000, longestGapMs }));
    return warningsWith('stalled', variant('workers', phases));
  };
  expect(still(1250, 1250)).toEqual([]);
  expect(still(1300, 5, 3200, 5)).toEqual([
    expect.stringMatching(
      /^workers stalled for up to 3\.20 s in rounds 1 and 3, and nothing else /,
    ),
  ]);
});

test('a warm-up that took long or had a large effect is reported', () => {
  const warmed = (...ends: [warmupSeconds: number, gain: number][]) => {
    const phases = ends.map(([warmupSeconds, gain]) => {
      return phase({ requests: 1000, continuous: { ...continuousEnd, warmupSeconds, gain } });
    });
    return warningsWith('still got faster', variant('workers', phases));
  };
  // A single part; a short warm-up; fewer than half of the rounds.
  for (const none of [warmed([9, 1]), warmed([2.9, 1.1]), warmed([9, 2], [1, 1], [1, 1])])
    expect(none).toEqual([]);
  const lines = [warmed([6.4, 2.3], [6.4, 2.5], [1, 1]), warmed([3, 1.1])].flat();
  expect(lines.map((line) => line.replace('workers still got faster under load: ', ''))).toEqual([
    'a warm-up took 6.4 s, in which requests/s rose to 2.4 times (--warmup 0 measures it cold)',
    'a warm-up took 3.0 s (--warmup 0 measures it cold)',
  ]);
});

test('sides with responses too slow for turns are named', () => {
  const inTurns = (name: string, count: number, waits: boolean) =>
    variant(name, [
      phase({ requests: 10, turns: { count, responses: 0, sliceMs: 4000, rampMs: 500, waits } }),
    ]);
  const named = (...variants: MeasuredVariant[]) =>
    warningsWith('one after the other', ...variants);
  expect(named(inTurns('a', 1, false), inTurns('b', 1, true))).toEqual([
    expect.stringMatching(/^b: some answers took so long that the sides were loaded one after/),
  ]);
  // A short load also has a single turn.
  expect(named(inTurns('a', 1, false), inTurns('b', 1, false))).toEqual([]);
  expect(named(inTurns('a', 8, false), inTurns('b', 8, true))).toEqual([]);
  expect(named(variant('a', [phase({ requests: 10, turns: null })]))).toEqual([]);
});
