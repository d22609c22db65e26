import { expect, it } from 'vitest';
import type { Result, VariantResult } from '../../lib/runner/result.ts';
import {
  benchComparison, benchRound, comparisonPoints, loadgenMeasurements, measurements, roundPoint, runPoint, serverSamplePoints,
} from '../../lib/store/schema.ts';
import { latency, phase as phaseOf } from '../fixtures/phase.ts';

const phase = phaseOf({
  requests: 1000, seconds: 2, rps: 500,
  responses: { '2xx': 980, '3xx': 10, '4xx': 2, '5xx': 3 },
  errors: { connect: 5, tls: 0, read: 0, write: 0, timeout: 0, protocol: 0, total: 5 },
  bytes: { received: 850_000, headers: 240_000, headersDecoded: 240_000, body: 610_000, sent: 40_000 },
  latencyMs: latency(1.5, 2.5, 9), startedAt: '2026-01-02T03:04:05.678Z', endedAt: '2026-01-02T03:04:07.678Z',
  serverCpuSeconds: 0.01, serverRssBytes: 4096, generatorCpuSeconds: 0.02,
});

/** Field names of a line; no text of these tests holds a comma or an equals sign. */
function fieldsOf(line: string): string[] {
  const fields = /^(?:\\ |\S)+ (.*) \d+$/.exec(line)?.[1] ?? '';
  return fields.split(',').map((field) => field.slice(0, field.indexOf('=')));
}

it('names every measurement once', () => {
  const names = measurements.map(({ measurement }) => measurement);
  expect(names).toEqual([...new Set(names)]);
  expect(loadgenMeasurements.find(({ measurement }) => measurement === 'loadgen_errors')?.tags).toContain('kind');
});

it('writes a phase as one wide point', () => {
  const point = roundPoint({
    tags: { run: 'r 1', scenario: 's', variant: 'v', round: '2', phase: '1', server: 'nginx', protocol: 'http/1.1' },
    position: 1, publishedRps: 700, ratio: 1.25,
  }, phase);
  expect(point).toBe('bench_round,phase=1,protocol=http/1.1,round=2,run=r\\ 1,scenario=s,server=nginx,variant=v '
    + 'position=1,published_rps=700,measured_rps=500,ratio=1.25,requests=1000,seconds=2,errors=5,errors_per_million=5000,success_ratio=0.99,'
    + 'server_cpu_micros_per_request=10,generator_cpu_micros_per_request=20,p50_ms=1.5,p99_ms=2.5,max_ms=9,'
    + 'header_bytes=240000,total_bytes=850000,server_rss_bytes=4096 1767323045678000000');
  expect(fieldsOf(point)).toEqual(Object.keys(benchRound.fields));
});

it('leaves out what a phase without requests has no figure for', () => {
  const tags = { run: 'r', scenario: 's', variant: 'v', round: '2', phase: '1', server: 'nginx', protocol: 'h2' };
  const fields = fieldsOf(roundPoint({ tags, position: 0 }, { ...phase, requests: 0 }));
  expect(fields).toContain('measured_rps');
  expect(fields).not.toContain('success_ratio');
  expect(fields).not.toContain('server_cpu_micros_per_request');
});

it('writes one row per variant, a nanosecond apart, with what is there', () => {
  const server = { name: 'nginx', version: '1.22.1', workers: 1, config: ['base'] };
  const measured: VariantResult = {
    name: 'tuned', server, load: { threads: 1 }, published: { rps: 700 }, note: 'ours', rounds: [{ round: 1, phases: [phase] }, { round: 2, phases: [phase] }],
    rps: { median: 500 }, serverCpuMicrosPerRequest: { median: 10 }, latencyMs: { p50: 1, p99: 2, max: 3 },
    errorsPerMillion: 4, successRatio: 0.5, serverShare: 0.9, generatorShare: 0.7,
  };
  const publishedOnly: VariantResult = {
    name: 'initial', server, load: { threads: 1 }, published: { rps: 600 }, rounds: [], rps: null, serverCpuMicrosPerRequest: null,
    latencyMs: null, errorsPerMillion: null, successRatio: null, serverShare: null, generatorShare: null,
  };
  const result = {
    run: 'r', scenario: 's', startedAt: '2026-01-02T03:04:05.678Z', variants: [publishedOnly, measured],
    comparisons: [{ metric: 'rps', variant: 'tuned', baseline: 'initial', ratio: 1.2, ci95: [1.1, 1.3], verdict: 'faster', why: 'all above 1', publishedRatio: 1.16 }],
  } as unknown as Result;
  const [first, second] = comparisonPoints(result) as [string, string];
  expect(first).toBe('bench_comparison,run=r,scenario=s,server=nginx,variant=initial '
    + 'position=0,published_rps=600,rounds=0,requests=0,server_version="1.22.1" 1767323045678000000');
  expect(second).toBe('bench_comparison,baseline=initial,run=r,scenario=s,server=nginx,variant=tuned '
    + 'position=1,published_rps=700,published_ratio=1.16,measured_rps=500,ratio=1.2,ci_low=1.1,ci_high=1.3,verdict="faster",why="all above 1",note="ours",'
    + 'rounds=2,requests=2000,errors_per_million=4,success_ratio=0.5,server_cpu_micros_per_request=10,p50_ms=1,p99_ms=2,max_ms=3,'
    + 'header_bytes_per_request=240,total_bytes_per_request=850,server_share=0.9,generator_share=0.7,server_version="1.22.1" 1767323045678000001');
  expect(fieldsOf(second)).toEqual(Object.keys(benchComparison.fields));
});

it('gives a server\'s memory at every sample and its cores between samples', () => {
  const tags = { run: 'r', scenario: 's', variant: 'v', round: '1', server: 'nginx' };
  expect(serverSamplePoints(tags, [])).toEqual([]);
  expect(serverSamplePoints(tags, [
    { atMs: 1000, cpuSeconds: 1, rssBytes: 10 },
    { atMs: 1500, cpuSeconds: 1.25, rssBytes: 20 },
    { atMs: 1500, cpuSeconds: 1.25, rssBytes: 20 },
  ])).toEqual([
    'server_rss,round=1,run=r,scenario=s,server=nginx,variant=v value=10 1000000000',
    'server_rss,round=1,run=r,scenario=s,server=nginx,variant=v value=20 1500000000',
    'server_cpu,round=1,run=r,scenario=s,server=nginx,variant=v value=0.5 1500000000',
    'server_rss,round=1,run=r,scenario=s,server=nginx,variant=v value=20 1500000000',
  ]);
});

it('keeps a run at the same point from start to end', () => {
  const run = { run: 'r', scenario: 's', title: 'Is it faster?', startedAt: '1970-01-01T00:00:01.000Z' };
  expect(runPoint({ ...run, state: 'running' })).toBe('bench_run,run=r,scenario=s title="Is it faster?",state="running",started=1000 1000000000');
  expect(runPoint({ ...run, state: 'complete', endedAt: '1970-01-01T00:00:02.000Z', rounds: 6, integrity: { requests: 5, stored: 4, backfilled: 3, lost: 1 } }))
    .toBe('bench_run,run=r,scenario=s title="Is it faster?",state="complete",started=1000,ended=2000,rounds=6,requests=5,stored=4,backfilled=3,lost=1 1000000000');
});
