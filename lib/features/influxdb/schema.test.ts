import { byName } from '../../present.ts';
import { wireNames } from '../../result/load-result.ts';
import { counterNames } from '../../result/result.ts';
import { serverFields } from '../../result/server-metrics.ts';
import { expect, it } from 'vitest';
import { onlyLook } from '../../analysis/looks.ts';
import { summarise } from '../../../test/fixtures/summary.ts';
import type { MeasuredVariant } from '../../analysis/verdict.ts';
import type { Comparison, Metric, Phase, Result } from '../../result/result.ts';
import { curvesOf, foundIn } from '../../report/found.ts';
import { roundPoint, runPoint, serverSamplePoints, tablePoints } from './points.ts';
import { benchRound } from './round-points.ts';
import { fieldOfEach, measurements } from './schema.ts';
import { networkResult } from '../../../test/fixtures/link.ts';
import { parsed as parsedLine } from '../../../test/fixtures/points.ts';
import { answers, latency, nginxWith, phase as phaseOf } from '../../../test/fixtures/phase.ts';
import { rounds as secondsOf, variant } from '../../../test/fixtures/comparison.ts';
import { compared, openFileCache, result, workers } from '../../../test/fixtures/result.ts';

const bytes = { headers: 60_000, headersDecoded: 240_000, body: 610_000, sent: 40_000 };
const phase = phaseOf({
  requests: 1000,
  seconds: 2,
  responses: { '2xx': 980, '3xx': 10, '4xx': 2, '5xx': 3 },
  errors: { connect: 5, tls: 0, read: 0, write: 0, timeout: 0, protocol: 0, total: 5 },
  errorCauses: { addressNotAvailable: 1, refused: 2, reset: 0, timedOut: 0, short: 0, other: 2 },
  bytes: { received: 850_000, ...bytes },
  latencyMs: latency(1.5, 2.5, 9),
  connectMs: latency(5, 6, 7),
  firstByteMs: latency(8, 9, 10),
  sendDelayMs: latency(0.1, 0.2, 0.3),
  startedAt: '2026-01-02T03:04:05.678Z',
  serverCpuSeconds: 0.01,
  generatorCpuSeconds: 0.02,
  queueGrowth: { perSecond: 0, standardError: 1 },
  noise: {
    serverStealShare: 0.01,
    generatorStealShare: 0.02,
    serverOthersShare: 0.03,
    generatorOthersShare: 0.04,
    loadAverage: 1.5,
    serverMhz: [2000, 2500],
  },
});

const ofServer = { run: 'r', scenario: 's', variant: 'v', round: '1', server: 'nginx' };
const tags = { ...ofServer, phase: '1', protocol: 'h2' };

/** Parses a line; `time` is in nanoseconds since the run's start. */
function parsed(line: string) {
  const { time, ...parts } = parsedLine(line);
  return { ...parts, time: time - 1767323045678000000n };
}

const fieldsOf = (line: string): Record<string, string | number> => parsed(line).fields;

it('writes a phase as one wide point', () => {
  const point = parsed(
    roundPoint(
      {
        tags: { ...tags, run: 'r 1', round: '2' },
        ratio: 1.25,
        soFar: { ratio: 1.2, ci95: [1.1, 1.3], roundRatios: [1.15, 1.25] },
        generatorShare: 0.005,
        ...byName(serverFields, () => 7),
        memoryBytes: 9e6,
        startupMs: 12.5,
        network: networkResult(),
      },
      { ...phase, perRequest: byName([...counterNames, ...wireNames], () => 1.5) },
    ),
  );
  expect(point.tags).toEqual({ ...tags, run: 'r 1', round: '2' });
  expect(point.time).toBe(0n);
  expect(point.fields).toMatchObject({
    label: 'round 2: v',
    memory_bytes: 9e6,
    startup_ms: 12.5,
    user_cpu_us: 1.5,
    ratio_so_far: 1.2,
    ci_high: 1.3,
    errors_address_not_available: 1,
    server_cpu_micros_per_request: (0.01 / 995) * 1e6,
    connect_max_ms: 7,
    first_byte_mean_ms: 8,
    send_delay_p99_ms: 0.2,
    header_savings: 0.75,
    generator_others_share: 0.04,
    server_mhz_end: 2500,
    ...linkFields,
  });
  expect(Object.keys(point.fields)).toEqual(Object.keys(benchRound.fields));
});

const linkFields = {
  packets_to_server_per_request: 6,
  packets_to_client_per_request: 5,
  dropped_to_server_share: 0.25,
  dropped_to_client_share: 0,
  lateness_p50_ms: 0.125,
  lateness_p99_ms: 1.5,
  retransmits_per_request: 0.75,
  listen_overflows: 12,
  server_idle_share: 0.9,
  delay: 'held',
};

const silent = { requests: 0, responses: answers({}) };
const oneRound = { ratio: 1.2, ci95: [1.2, 1.2] as [number, number], roundRatios: [1.2] };
it.each<[string, Partial<Parameters<typeof roundPoint>[0]>, Partial<Phase>, RegExp]>([
  ['an interval, after one round', { soFar: oneRound }, {}, /^ci_/],
  ['figures of responses, without responses', {}, silent, /success_ratio|server_cpu_micros/],
  ['noise that the kernel does not report', {}, { noise: null }, /steal|others|load|mhz/],
])('leaves out %s', (_what, row, changes, absent) => {
  const fields = Object.keys(fieldsOf(roundPoint({ tags, ...row }, { ...phase, ...changes })));
  expect(fields.filter((name) => absent.test(name))).toEqual([]);
  expect(fields).toContain('measured_rps');
});

it('replaces the ratio of an earlier round if there is no comparison any more', () => {
  const whole = result([workers, openFileCache]);
  const nothing = { ratio: 0, ci95: [0, 0] as [number, number], roundRatios: [] };
  const point = linesIn('bench_comparison', compared(whole, nothing))[1];
  // CPU time has a separate ratio.
  expect(fieldsOf(point as string)).toMatchObject({
    effect: '–',
    ci_low: 0,
    ci_high: 0,
    cpu_ratio: expect.closeTo(0.742, 2),
  });
});

const facts = {
  serverCores: 1,
  generatorCores: 1,
  sharedCores: false,
  cores: 2,
  loadAverage: 0,
  quick: false,
  looks: onlyLook(2),
  sameWithin: 0.01,
};

function resultOf(...variants: MeasuredVariant[]): Result {
  return {
    run: 'r',
    scenario: 's',
    state: 'complete',
    startedAt: '2026-01-02T03:04:05.678Z',
    ...facts,
    looks: [5, 10, 20],
    ...summarise(facts, variants, {}),
  } as unknown as Result;
}

function linesOf(measurement: string, ...variants: MeasuredVariant[]) {
  return linesIn(measurement, resultOf(...variants));
}

function linesIn(measurement: string, result: Result) {
  return tablePoints(result, curvesOf(result), foundIn(result)).filter((line) =>
    line.startsWith(`${measurement},`),
  );
}

const load = { protocol: 'h2', threads: 1 } as const;
const publishedOnly: MeasuredVariant = {
  name: 'spdy',
  server: null,
  publishedOnly: 'SPDY is gone',
  load,
  published: { rps: 600, errorsPerMillion: 363, packetsPerRequest: 11 },
  against: 'initial',
  rounds: [],
  setup: '',
};
const initial: MeasuredVariant = {
  name: 'initial',
  server: nginxWith('base'),
  load,
  published: { rps: 300 },
  rounds: [1, 2].map((round) => ({ round, phases: [phase] })),
  setup: 'a',
};
const tuned: MeasuredVariant = {
  ...initial,
  name: 'tuned',
  published: { ...publishedOnly.published, rps: 900 },
  note: 'ours',
  against: 'initial',
  setup: 'b',
};

it('writes the growth of a queue, and no latency in that case', () => {
  const grows = { queueGrowth: { perSecond: 300, standardError: 1 }, rps: 1000 };
  const phases = [{ ...phase, requests: 2600, seconds: 2, ...grows }];
  const atRate = { ...initial, load: { ...load, rate: 1300 }, rounds: [{ round: 1, phases }] };
  const [row] = linesOf('bench_comparison', atRate).map(parsed);
  expect(row?.fields).toMatchObject({ queue_growth: 300 });
  for (const field of ['p50_ms', 'p99_ms', 'max_ms']) expect(row?.fields).not.toHaveProperty(field);
});

it('writes one row of the table per variant, a nanosecond apart', () => {
  const [, first, second] = linesOf('bench_comparison', initial, publishedOnly, tuned).map(parsed);
  expect(first).toMatchObject({
    tags: { baseline: 'initial', run: 'r', scenario: 's', variant: 'spdy' },
    fields: {
      position: 1,
      published_rps: 600,
      published_ratio: 2,
      why: 'published only',
      looks: '5, 10, 20',
      rounds: 0,
      published_errors_per_million: 363,
      published_packets_per_request: 11,
    },
    time: 1n,
  });
  expect(first?.fields).not.toHaveProperty('p99_ms');
  expect(second).toMatchObject({
    tags: { server: 'nginx', variant: 'tuned', version: '1.22.1' },
    fields: {
      position: 2,
      effect: '±0.0 % [0.0, 0.0]',
      rounds_needed: 0,
      cpu_ci_high: 1,
      errors_per_million: 5000,
      errors_refused: 4,
      server_cpu_micros_per_request: (0.01 / 995) * 1e6,
      header_bytes_per_request: 60_000 / 995,
      // Share of the time that remains after steal time and other processes.
      server_share: 0.005 / (1 - 0.04),
      generator_share: 0.01 / (1 - 0.06),
    },
    time: 2n,
  });
});

it('writes the link, and marks verdicts that are not final or had an inaccurate delay', () => {
  const { variants, comparisons, ...rest } = resultOf(initial, tuned);
  const row = (state: Result['state'], changes: Partial<Comparison>) =>
    fieldsOf(
      linesIn('bench_comparison', {
        ...rest,
        state,
        variants: variants.map((variant) => ({ ...variant, network: networkResult() })),
        comparisons: comparisons.map((comparison) => ({ ...comparison, ...changes })),
      })[1] as string,
    );
  expect(row('complete', { verdict: 'faster' })).toMatchObject(linkFields);
  expect(row('complete', { verdict: 'faster', delayNotHeld: ['tuned'] }).verdict).toBe(
    'faster, delay not held',
  );
  expect(row('partial', { verdict: 'same' }).verdict).toBe('same, not final');
  expect(row('partial', { verdict: 'none' }).verdict).toBe('none');
});

it('replaces a figure that a later round invalidates', () => {
  const row = (...rps: number[]) => {
    const variants = [
      variant('a', secondsOf([1000, 1000, 1000, 1000])),
      variant('b', secondsOf(rps)),
    ];
    return fieldsOf(linesOf('bench_comparison', ...variants)[1] as string);
  };
  const open = row(1000, 1010, 1020, 1030);
  expect(open.verdict).toBe('inconclusive');
  expect(open.rounds_needed).toBeGreaterThan(0);
  const later = { verdict: 'faster', rounds_needed: 0, outliers: '', disagreement: '' };
  expect(row(1100, 1101, 1102, 1103)).toMatchObject(later);
});

it('writes published and measured figures of each phase', () => {
  const tls = { version: 'TLSv1.2', cipher: 'AES', keyExchange: 'P-256' };
  const distribution = { min: 1, max: 2, mean: 11, sd: 3, withinSdPercent: 50 };
  const outcomes = { total: 10, started: 10, done: 10, succeeded: 10, failed: 0, errored: 0 };
  const figures = {
    seconds: 2,
    headerSavingsPercent: 60,
    tls,
    latencyMs: distribution,
    perConnectionRps: distribution,
  };
  const second = {
    rps: 8,
    outcomes: { ...outcomes, succeeded: 7, failed: 3 },
    responses: { '2xx': 7, '4xx': 3 },
  };
  const published = { ...figures, phases: [figures, second] };
  const rounds = [{ round: 1, phases: [{ ...phase, tls }] }];
  const all = linesOf('bench_phase', { ...initial, published, rounds }, publishedOnly).map(parsed);
  expect(all).toMatchObject([
    {
      tags: { phase: '1', protocol: 'h2', variant: 'initial' },
      fields: {
        measured_rps: 995 / 2,
        published_seconds: 2,
        responses_2xx: 980,
        responses_4xx: 2,
        responses_5xx: 3,
        requests_total: 1000,
        requests_succeeded: 990,
        requests_failed: 10,
        requests_errored: 5,
        requests_timeout: 0,
        header_bytes: 60_000,
        header_savings: 0.75,
        published_header_savings: 0.6,
        request_ms_mean: 1.5,
        published_request_ms_mean: 11,
        connect_ms_mean: 5,
        first_byte_ms_max: 10,
        published_client_rps_within_sd: 0.5,
        tls: 'TLSv1.2 AES P-256',
      },
    },
    {
      tags: { phase: '2', variant: 'initial' },
      fields: {
        published_rps: 8,
        published_requests_total: 10,
        published_requests_succeeded: 7,
        published_requests_failed: 3,
        published_responses_2xx: 7,
        // A class without a response is none.
        published_responses_3xx: 0,
        published_responses_4xx: 3,
      },
      time: 1n,
    },
    { tags: { phase: '1', variant: 'spdy' }, time: 2n },
  ]);
});

it('writes what an article prints of a row beside what was seen here', () => {
  const refused = 'recv() failed (104: Connection reset by peer)';
  const slow = 'client timed out';
  const published = {
    effect: 'yes' as const,
    successRatio: 0.5,
    requests: 10,
    headerBytes: 45,
    serverIdleShare: 0.84,
    clientErrors: [refused],
  };
  const rounds = [1, 2].map((round) => ({
    round,
    phases: [{ ...phase, clientErrors: { [slow]: 1000, [refused]: 3 } }],
  }));
  const [row] = linesOf('bench_comparison', { ...initial, published, rounds }).map(parsed);
  expect(row?.fields).toMatchObject({
    published_effect: 'yes',
    published_success_ratio: 0.5,
    published_header_bytes_per_request: 4.5,
    published_server_idle_share: 0.84,
    published_client_errors: refused,
    client_errors: `${slow}: 2,000; ${refused}: 6`,
  });
  const [without] = linesOf('bench_comparison', initial).map(parsed);
  expect(
    Object.keys(without?.fields ?? {}).filter((name) =>
      /client_errors|effect|idle|published_header/.test(name),
    ),
  ).toEqual([]);
});

it('writes memory at every sample and core usage between samples', () => {
  expect(serverSamplePoints(ofServer, [])).toEqual([]);
  const same = { atMs: 1500, cpuSeconds: 1.25, rssBytes: 20 };
  const points = serverSamplePoints(ofServer, [
    { atMs: 1000, cpuSeconds: 1, rssBytes: 10 },
    same,
    same,
  ]);
  const tagged = ',round=1,run=r,scenario=s,server=nginx,variant=v value=';
  expect(points.map((point) => point.replace(tagged, ' '))).toEqual([
    'server_rss 10 1000000000',
    'server_rss 20 1500000000',
    'server_cpu 0.5 1500000000',
    'server_rss 20 1500000000',
  ]);
});

const newRun = {
  run: 'r',
  scenario: 's',
  title: 'Is it faster?',
  startedAt: '2026-01-02T03:04:05.678Z',
  endedAt: '2026-01-02T03:04:07.678Z',
  state: 'complete' as const,
  variants: [{ published: {}, rounds: [] }],
  integrity: null,
  noiseFloor: null,
  comparisons: [],
};

it('keeps a run in the same point from start to end', () => {
  const started = Date.parse(newRun.startedAt);
  const begun = { tags: { run: 'r', scenario: 's' }, time: 0n };
  const title = 'Is it faster?';
  expect(parsed(runPoint(newRun, false))).toEqual({
    ...begun,
    fields: { title, state: 'running', started, shown_to: 'now', rounds: 0 },
  });
  const rounds = Array.from({ length: 6 }, (_, index) => ({ round: index + 1, phases: [] }));
  const run = {
    ...newRun,
    variants: [{ published: null, rounds }],
    integrity: { requests: 5, stored: 4, backfilled: 3, lost: 1 },
    noiseFloor: { rounds: 6, ratio: 1.25 },
  };
  expect(parsed(runPoint(run, true))).toEqual({
    ...begun,
    fields: {
      title,
      state: 'complete',
      started,
      ended: started + 2000,
      shown_to: String(started + 2000),
      rounds: 6,
      ...run.integrity,
      noise_floor: 0.25,
      noise_floor_rounds: 6,
      noise_low: 0.8,
      noise_high: 1.25,
      // Articles have no such figures.
      unpublished: 'published',
    },
  });
});

it('has a noise floor for requests/s only', () => {
  const noiseFloor = { rounds: 6, ratio: 1.25 };
  const [comparison] = result([workers, openFileCache]).comparisons as [Comparison];
  const by = (metric: Metric) =>
    runPoint({ ...newRun, noiseFloor, comparisons: [{ ...comparison, metric }] }, true);
  const search = { within: { metric: 'p99' as const, ms: 5 }, found: [], steps: [] };
  expect(by('rps')).toContain('noise_low=0.8');
  expect(by('p99')).not.toContain('noise_');
  expect(runPoint({ ...newRun, noiseFloor, search }, true)).not.toContain('noise_');
});

it.each(measurements)('counts the points of $measurement by a field that it has', (known) => {
  expect(Object.keys(known.fields)).toContain(fieldOfEach(known.measurement));
});
