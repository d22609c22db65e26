import { describe, expect, test } from 'vitest';
import { summarise, type MeasuredVariant, type RunFacts } from '../../lib/analysis/summarise.ts';
import { warningText } from '../../lib/analysis/warnings.ts';
import type { Phase } from '../../lib/runner/result.ts';
import { latency, phase } from '../fixtures/phase.ts';

const facts: RunFacts = { serverCores: 1, generatorCores: 1, cores: 2, loadAverage: 0.3, quick: false };

function variant(name: string, phases: readonly Phase[], changes: Partial<MeasuredVariant> = {}): MeasuredVariant {
  return {
    name,
    server: { name: 'nginx', version: '1.22.1', workers: 2, config: ['base', name] },
    load: { threads: 4 },
    published: null,
    rounds: phases.map((one, index) => ({ round: index + 1, phases: [one] })),
    setup: `base ${name}, workers 1`,
    ...changes,
  };
}

const counts = (requests: readonly number[]): Phase[] => requests.map((count) => phase({ requests: count }));
const baseline = variant('workers', counts([600_000, 610_000, 590_000, 600_000]), { published: { rps: 100 } });

function comparisonWith(requests: readonly number[], changes: Partial<MeasuredVariant> = {}, against = baseline, run = facts) {
  return summarise(run, [against, variant('cache', counts(requests), { against: 'workers', ...changes })]).comparisons[0];
}

describe('figures of a variant', () => {
  test('are medians over rounds, the highest latency and shares of the cores', () => {
    const { variants } = summarise({ ...facts, serverCores: 2, generatorCores: 4 }, [variant('workers', [
      phase({ requests: 100_000, latencyMs: latency(1, 5, 10), serverCpuSeconds: 2, generatorCpuSeconds: 20 }),
      phase({ requests: 200_000, latencyMs: latency(3, 7, 90), serverCpuSeconds: 5, generatorCpuSeconds: 30 }),
      phase({ requests: 400_000, latencyMs: latency(2, 6, 20), serverCpuSeconds: 6, generatorCpuSeconds: 10 }),
    ])]);
    expect(variants[0]).toMatchObject({
      rps: { median: 20_000 },
      serverCpuMicrosPerRequest: { median: 20 },
      latencyMs: { p50: 2, p99: 6, max: 90 },
      errorsPerMillion: 0,
      successRatio: 1,
      serverShare: 0.25,
      generatorShare: 0.5,
    });
  });

  test.each([
    // On 8 and 4 cores, the server 5 CPU seconds in 10, the generator 10.
    [{ workers: 1, threads: 1 }, 0.5, 1],
    [{ workers: 2, threads: 2 }, 0.25, 0.5],
    [{ workers: 16, threads: 10 }, 0.0625, 0.25],
  ])('are shares of what workers and threads can use: %j', ({ workers, threads }, serverShare, generatorShare) => {
    const [one] = summarise({ ...facts, serverCores: 8, generatorCores: 4 }, [variant('workers', [
      phase({ requests: 1000, serverCpuSeconds: 5, generatorCpuSeconds: 10 }),
    ], { server: { name: 'nginx', version: '', workers, config: [] }, load: { threads } })]).variants;
    expect(one).toMatchObject({ serverShare, generatorShare });
  });

  test('count errors and answers other than 2xx and 3xx over all rounds', () => {
    const bad = phase({
      requests: 1_000_000,
      responses: { '2xx': 900_000, '3xx': 50_000, '4xx': 20_000, '5xx': 29_990 },
      errors: { connect: 4, tls: 0, read: 6, write: 0, timeout: 0, protocol: 0, total: 10 },
      errorExample: 'connection refused',
    });
    const { variants, warnings } = summarise(facts, [variant('workers', [bad, phase({ requests: 1_000_000 })])]);
    expect(variants[0]?.errorsPerMillion).toBe(5);
    expect(variants[0]?.successRatio).toBe(0.975);
    expect(warnings).toContainEqual({ kind: 'failures', variant: 'workers', requests: 2_000_000, errors: 10, not2xx: 99_990, example: 'connection refused' });
  });

  test('of a variant that nobody measured here are null', () => {
    const { variants, comparisons, warnings } = summarise(facts, [baseline, variant('spdy', [], { published: { rps: 5 }, against: 'workers' })]);
    expect(variants[1]).toMatchObject({ name: 'spdy', rounds: [], rps: null, latencyMs: null, errorsPerMillion: null, successRatio: null, serverShare: null });
    expect(comparisons).toEqual([]);
    expect(warnings).toEqual([]);
  });
});

describe('a comparison', () => {
  test('has the ratio within rounds, its interval and the published ratio', () => {
    const comparison = comparisonWith([720_000, 732_000, 708_000, 720_000], { published: { rps: 112 } });
    expect(comparison).toMatchObject({ metric: 'rps', variant: 'cache', baseline: 'workers', verdict: 'faster', publishedRatio: 1.12 });
    expect(comparison?.ratio).toBeCloseTo(1.2, 12);
    expect(comparison?.ci95[0]).toBeCloseTo(1.2, 12);
  });

  test.each([
    ['faster', [700_000, 720_000, 690_000, 705_000]],
    ['slower', [500_000, 520_000, 490_000, 505_000]],
    ['same', [601_000, 610_500, 589_500, 600_500]],
    ['inconclusive', [500_000, 720_000, 590_000, 640_000]],
    // Excludes 1, but nobody would notice.
    ['same', [602_000, 612_100, 591_900, 602_050]],
  ])('is %s', (verdict, requests) => {
    expect(comparisonWith(requests)?.verdict).toBe(verdict);
  });

  test('needs 4 rounds', () => {
    const short = { ...baseline, rounds: baseline.rounds.slice(0, 3) };
    const comparison = comparisonWith([700_000, 720_000, 690_000], {}, short);
    expect(comparison).toMatchObject({ verdict: 'none', why: 'needs 4 rounds' });
    expect(comparison?.ci95[0]).toBeLessThan(comparison?.ratio as number);
  });

  test('needs a difference: with one core the published step of workers is none', () => {
    const same = { setup: baseline.setup };
    expect(comparisonWith([700_000, 720_000, 690_000, 705_000], same)).toMatchObject({ verdict: 'none', why: 'needs 2 server cores' });
    expect(comparisonWith([700_000, 720_000, 690_000, 705_000], same, baseline, { ...facts, serverCores: 2 })?.why)
      .toBe('the same config and workers on this machine');
  });

  test('needs answers: refused connections are not speed', () => {
    const failing = phase({ requests: 9_000_000, responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 }, errors: { connect: 9_000_000, tls: 0, read: 0, write: 0, timeout: 0, protocol: 0, total: 9_000_000 } });
    const { comparisons } = summarise(facts, [baseline, variant('cache', [failing, failing, failing, failing], { against: 'workers' })]);
    expect(comparisons[0]).toMatchObject({ verdict: 'none', why: '100 % of the requests of cache failed' });
  });

  test('with a round in which nothing ended has no ratio', () => {
    const { variants, comparisons } = summarise(facts, [baseline, variant('cache', counts([0, 0, 0, 0]), { against: 'workers' })]);
    expect(comparisons[0]).toMatchObject({ ratio: 0, ci95: [0, 0], verdict: 'none', why: 'nothing was answered in a whole round' });
    expect(variants[1]).toMatchObject({ rps: { median: 0 }, serverCpuMicrosPerRequest: null, errorsPerMillion: null, successRatio: null });
  });

  test('is wider when the same baseline serves several', () => {
    const cache = variant('cache', counts([700_000, 720_000, 690_000, 705_000]), { against: 'workers' });
    const alone = summarise(facts, [baseline, cache]).comparisons[0];
    const together = summarise(facts, [baseline, cache, variant('nopush', counts([1, 1, 1, 1]), { against: 'workers' })]).comparisons[0];
    expect(together?.ratio).toBe(alone?.ratio);
    expect(together?.ci95[0]).toBeLessThan(alone?.ci95[0] as number);
  });
});

describe('warnings', () => {
  const kinds = (run: RunFacts, ...variants: MeasuredVariant[]) => summarise(run, variants).warnings.map(({ kind }) => kind);
  const used = (server: number, generator: number) => variant('workers', Array.from({ length: 4 }, () => (
    phase({ requests: 1000, serverCpuSeconds: server * 10, generatorCpuSeconds: generator * 10 }))));

  test('say when the generator was the limit, not when both were or the server was', () => {
    expect(kinds(facts, used(0.7, 0.9))).toEqual(['generator-limit']);
    expect(kinds(facts, used(0.7, 0.89))).toEqual([]);
    expect(kinds(facts, used(0.95, 0.99))).toEqual([]);
    expect(kinds(facts, used(0.99, 0.7))).toEqual([]);
  });

  test('say that a run was quick, short, or not alone on the machine', () => {
    expect(kinds({ ...facts, quick: true }, used(1, 0.7))).toEqual(['quick']);
    expect(kinds({ ...facts, loadAverage: 1.1 }, used(1, 0.7))).toEqual(['load-average']);
    expect(kinds(facts, { ...used(1, 0.7), rounds: used(1, 0.7).rounds.slice(0, 3) })).toEqual(['few-rounds']);
    expect(kinds(facts, { ...used(1, 0.7), rounds: [] })).toEqual([]);
  });

  test('say that a baseline was left out, but not of a variant that is a baseline itself', () => {
    const unlimited = { ...used(1, 0.7), name: 'unlimited', against: 'workers' };
    expect(kinds(facts, unlimited)).toEqual(['no-baseline']);
    expect(kinds(facts, unlimited, { ...used(1, 0.7), name: 'cache', against: 'unlimited' })).toEqual([]);
  });

  test('are one line each, with what to do', () => {
    expect(warningText({ kind: 'generator-limit', variant: 'workers', generatorShare: 0.99, serverShare: 0.7 })).toBe(
      'workers: the generator was at its limit (99 % of the cores that it can use) and the server was not (70 %): the server can do more than this; give the generator more cores with --generator-cpus',
    );
    expect(warningText({ kind: 'failures', variant: 'workers', requests: 2_000_000, errors: 1, not2xx: 1200, example: 'connection refused' })).toBe(
      'workers: 1 error (connection refused) and 1,200 answers other than 2xx among 2,000,000 requests: requests/s alone do not compare',
    );
  });
});
