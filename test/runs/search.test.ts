// The search for the highest rate within a limit of latency, and latency by rate, with real servers and the real influxd.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Result } from '../../lib/runner/result.ts';
import { descendants, stillRunning } from '../fixtures/processes.ts';
import { makeHome, newOut, readResult, runFolder, startScenario, type Home, type ScenarioRun } from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const names = ['workers', 'open-file-cache'];
const testLimitMs = 110_000;

let home: Home;
beforeAll(async () => { home = await makeHome(['k6', 'nginx', 'influxd']); }, 300_000);
afterAll(() => home.remove());

const start = (...args: string[]): ScenarioRun => startScenario([name, ...args], home.env);

describe('a search', () => {
  // The limit is so wide that where it ends is where a server, or the generator, has no time left.
  test('ends between a rate that each variant keeps and one that it does not, and stores what all steps sent', async () => {
    const out = newOut();
    const run = start('--within', 'p99=200ms', '--rounds', '1', '--duration', '0.2s', '--out', out);
    expect(await run.ended, run.stderr()).toBe(0);
    const result = readResult(out);
    const { search } = result;
    expect(search?.within).toEqual({ metric: 'p99', ms: 200 });
    expect(search?.found.map(({ variant }) => variant)).toEqual(names);
    for (const { variant, rate, ci95 } of search?.found ?? []) {
      const steps = search?.steps.filter((step) => step.variant === variant) ?? [];
      const kept = Math.max(...steps.filter((step) => step.kept).map((step) => step.rate));
      const broken = Math.min(...steps.filter((step) => !step.kept && step.rate > kept).map((step) => step.rate));
      expect(broken / kept).toBeLessThanOrEqual(1.03);
      expect(rate).toBeCloseTo(Math.sqrt(kept * broken), 6);
      expect(ci95).toBeNull();
      expect(steps.filter((step) => !step.kept).every(({ why }) => why !== '')).toBe(true);
      // Its figures are those of the step that it kept.
      const own = result.variants.find((one) => one.name === variant);
      const [phase] = own?.rounds[0]?.phases ?? [];
      expect(phase?.responses['2xx']).toBe(phase?.requests);
      expect((phase?.requests ?? 0) / (phase?.seconds ?? 0) / kept).toBeCloseTo(1, 1);
      expect(own?.rps?.median).toBe(rate);
    }
    // What the article published was of another load.
    expect(result.comparisons).toMatchObject([{ metric: 'rps', publishedRatio: null, why: 'needs 4 rounds' }]);
    expect(result.variants.map(({ published }) => published)).toEqual([null, null]);
    expect(result.integrity).toMatchObject({ lost: 0 });
    expect(result.integrity?.requests).toBeGreaterThan(result.variants.reduce((sum, { traffic }) => sum + (traffic?.requests ?? 0), 0));

    const [workers] = search?.found ?? [];
    const rate = `${workers?.atLeast === true ? 'at least ' : ''}${Math.round(workers?.rate ?? 0).toLocaleString('en-US')}`;
    for (const text of [run.stdout(), readFileSync(join(runFolder(out), 'table.md'), 'utf8'), readFileSync(join(runFolder(out), 'report.html'), 'utf8')]) {
      expect(text).toContain(`workers keeps p99 within 200.00 ms up to ${rate} requests/s`);
      expect(text).toContain('Latency by rate');
    }
  }, testLimitMs);

  test('that is ended keeps its finished steps, and leaves nothing running', async () => {
    const out = newOut();
    const run = start('--within', 'p99=200ms', '--store', 'none', '--out', out);
    await vi.waitFor(() => expect(run.stderr()).toMatch(/round 1 of 10 · workers .*\n.*round 1 of 10 · workers /), { timeout: 30_000, interval: 20 });
    const running = descendants(run.pid);
    run.kill('SIGINT');
    expect(await run.ended).toBe(130);
    const { state, search, variants }: Result = readResult(out);
    expect(state).toBe('partial');
    expect(search?.found).toEqual([]);
    expect(search?.steps.length).toBeGreaterThanOrEqual(4);
    expect(variants.map(({ rounds }) => rounds)).toEqual([[], []]);
    expect(run.stdout()).toContain('Latency by rate');
    await vi.waitFor(() => expect(stillRunning(running)).toEqual([]), { timeout: 30_000, interval: 20 });
  }, testLimitMs);

  test('whose limit no rate keeps ends with what to do', async () => {
    const out = newOut();
    const run = start('--within', 'p50=1us', '--duration', '0.1s', '--store', 'none', '--out', out);
    expect(await run.ended).toBe(1);
    expect(run.stderr().trim().split('\n').at(-1)).toMatch(/^(workers|open-file-cache): p50 within 1 µs is not kept at 100 requests\/s, the lowest rate \(p50 [\d.]+ [mµ]s\): give a wider limit$/);
  }, testLimitMs);
});

test('a sweep has each variant at each rate, and a curve', async () => {
  const out = newOut();
  const run = start('--rates', '600,1.2k', '--rounds', '1', '--store', 'none', '--out', out);
  expect(await run.ended, run.stderr()).toBe(0);
  const { variants, comparisons } = readResult(out);
  expect(variants.map(({ name: own, series, load: { rate }, rounds: [round] }) => [own, series, rate, round?.phases[0]?.requests])).toEqual([
    ['workers-at-600', 'workers', 600, 1200], ['open-file-cache-at-600', 'open-file-cache', 600, 1200],
    ['workers-at-1200', 'workers', 1200, 2400], ['open-file-cache-at-1200', 'open-file-cache', 1200, 2400],
  ]);
  expect(comparisons.map(({ variant, baseline, metric }) => [variant, baseline, metric])).toEqual([
    ['open-file-cache-at-600', 'workers-at-600', 'p99'], ['open-file-cache-at-1200', 'workers-at-1200', 'p99'],
  ]);
  expect(run.stdout()).toMatch(/^Latency by rate; bars are p99:\n.*workers.*open-file-cache\nrequests\/s .*\n +600 .*\n +1,200 /m);
}, testLimitMs);
