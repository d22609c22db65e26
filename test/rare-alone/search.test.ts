// The search for the highest rate within a limit, and latency by rate, with real servers.
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { stepsAround } from '../../lib/features/search/rate-search.ts';
import { ifThere, linkOf, namesIn } from '../../lib/files.ts';
import { descendants, stillRunning } from '../fixtures/processes.ts';
import { storeOf } from '../fixtures/local-store.ts';
import {
  loadBegins,
  newOut,
  readResult,
  wholeResult,
  startScenario,
  underLoad,
  useHome,
  writeScenario,
  type ScenarioRun,
} from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const soon = { timeout: 30_000, interval: 20 };

const home = useHome(['k6', 'nginx', 'influxd']);

const start = (out: string, args: string): ScenarioRun =>
  startScenario(`${args} --out ${out}`, home.env);

/** nginx's limit_req in requests/s, and the burst on top. Requests beyond that get a 503. */
const limits = { low: 2000, high: 3000 };
const burst = 100;

function limited(out: string) {
  const folder = join(out, '..');
  for (const [limit, rate] of Object.entries(limits)) {
    writeFileSync(
      join(folder, `${limit}.conf`),
      `http {\n    limit_req_zone $remote_addr zone=all:1m rate=${rate}r/s;\n    limit_req zone=all burst=${burst} nodelay;\n}\n`,
    );
  }
  return writeScenario(
    out,
    'limited',
    `load: wrk('-c 20 -t 1 -d 10'), within: { metric: 'p99', ms: 500 },
    variants: ['low', 'high'].map((name) => ({ name, server: nginx(['base', '${folder}/' + name + '.conf'], { workers: 1 }) })),`,
  );
}

test('a search ends between rates that each variant keeps and rates that it breaks', async () => {
  const out = newOut();
  const run = start(out, `${limited(out)} --rounds 1 --duration 500ms`);
  const result = await wholeResult(run, out);
  const { search } = result;
  expect(search?.within).toEqual({ metric: 'p99', ms: 500 });
  expect(search?.found).toMatchObject([
    { variant: 'low', ci95: null },
    { variant: 'high', ci95: null },
  ]);
  for (const { variant, rate } of search?.found ?? []) {
    const steps = search?.steps.filter((step) => step.variant === variant) ?? [];
    const around = steps.slice(-stepsAround);
    expect(new Set(around.map((step) => step.kept))).toEqual(new Set([true, false]));
    expect(rate).toBeGreaterThan(Math.min(...around.map((step) => step.rate)));
    expect(rate).toBeLessThan(Math.max(...around.map((step) => step.rate)));
    const kept = steps
      .filter((step) => step.kept)
      .map((step) => step.rate)
      .reduce((best, tested) =>
        Math.abs(Math.log(tested / rate)) < Math.abs(Math.log(best / rate)) ? tested : best,
      );
    // 1 % of the requests may fail, and nginx's burst refills during each turn of the other side, which may be this short.
    const most = 1.02 * limits[variant as keyof typeof limits] + burst / 0.18;
    expect(kept).toBeLessThan(most);
    expect(kept, JSON.stringify(steps)).toBeGreaterThan(limits.low / 2);
    expect(steps.map(({ why }) => why)).toContainEqual(expect.stringMatching(/ failed$/));
    // The figures are those of the last kept step.
    const limitedVariant = result.variants.find((candidate) => candidate.name === variant);
    const [phase] = limitedVariant?.rounds[0]?.phases ?? [];
    expect((phase?.requests ?? 0) / (phase?.seconds ?? 0) / kept).toBeCloseTo(1, 1);
    expect(limitedVariant?.rps?.median).toBe(rate);
  }
  expect(result.comparisons).toMatchObject([{ metric: 'rps', why: 'needs 4 rounds' }]);
  expect(result.integrity).toMatchObject({ lost: 0 });
  expect(result.integrity?.requests).toBeGreaterThan(
    result.variants.reduce((sum, { traffic }) => sum + (traffic?.requests ?? 0), 0),
  );

  const rate = Math.round(search?.found[0]?.rate ?? 0).toLocaleString('en-US');
  expect(run.stdout()).toContain(
    `low keeps p99 within 500.00 ms up to ${rate} requests/s in half of its loads`,
  );
  expect(run.stdout()).toContain('Latency by rate');
});

test('an interrupted search keeps finished steps and leaves nothing running', async () => {
  const out = newOut();
  const run = start(out, `${name} --within p99=200ms`);
  await vi.waitFor(
    () =>
      expect(run.stderr()).toMatch(
        /round 1 of 4 to 6 · workers .*\n.*round 1 of 4 to 6 · workers /,
      ),
    { timeout: 120_000, interval: 20 },
  );
  const running = descendants(run.pid);
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  const { run: id, state, search, variants }: Result = readResult(out);
  expect(state).toBe('partial');
  expect(search?.found).toEqual([]);
  expect(search?.steps.length).toBeGreaterThanOrEqual(4);
  expect(variants.map(({ rounds }) => rounds)).toEqual([[], []]);
  expect(run.stdout()).toContain('Latency by rate');
  const store = await storeOf(home);
  const [stored] = await store.query(`SELECT "p99_ms" FROM "bench_curve" WHERE "run" = '${id}'`);
  expect(stored?.values.map(([, p99]) => p99).toSorted()).toEqual(
    search?.steps.map(({ latencyMs: { p99 } }) => p99).toSorted(),
  );
  await vi.waitFor(() => expect(stillRunning(running)).toEqual([]), soon);
});

/** Needs CAP_SYS_NICE, and a kernel with autogroup scheduling. */
const mayGoFirst =
  existsSync('/proc/self/autogroup') &&
  ((BigInt(`0x${/^CapEff:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`) >>
    23n) &
    1n) ===
    1n;

const awakeDevice = '/dev/cpu_dma_latency';
const mayKeepAwake =
  ifThere(() => {
    closeSync(openSync(awakeDevice, 'r+'));
    return true;
  }) ?? false;

const oneRound = '--variants workers --rounds 1 --duration 3s --store none';

test.skipIf(!mayKeepAwake && !mayGoFirst).each([
  ['at a rate', `${name} ${oneRound} --rates 100`, true],
  ['in a search', `${name} ${oneRound} --within p99=1s`, true],
  ['without a rate', `${name} ${oneRound}`, false],
])('k6 and servers go first, and idle cores stay awake at a rate: %s', async (_, args, isHeld) => {
  const out = newOut();
  const run = startScenario(`${args} --out ${out}`, { ...home.env, BAKEOFF_PRIORITY: 'yes' });
  await underLoad(run, out, 1, loadBegins);
  const children = descendants(run.pid);
  const holders = [run.pid, ...children.map(({ pid }) => pid)].filter((pid) =>
    namesIn(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === awakeDevice),
  );
  if (mayKeepAwake) expect(holders).toHaveLength(isHeld ? 1 : 0);
  const first = children.filter(({ command }) => ['k6', 'nginx'].includes(command));
  expect(first.length).toBeGreaterThan(2);
  for (const { pid } of mayGoFirst ? first : []) {
    expect(getPriority(pid)).toBeLessThanOrEqual(-10);
    expect(readFileSync(`/proc/${pid}/autogroup`, 'utf8')).toMatch(/ nice -10\n$/);
  }
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
});

test('a sweep measures each variant at each rate, and shows a curve', async () => {
  const out = newOut();
  const run = start(out, `${name} --rates 1k,2k --rounds 1 --duration 1s --store none`);
  const { variants } = await wholeResult(run, out);
  expect(variants.map(({ name, rounds: [round] }) => [name, round?.phases[0]?.requests])).toEqual([
    ['workers-at-1000', 1000],
    ['open-file-cache-at-1000', 1000],
    ['workers-at-2000', 2000],
    ['open-file-cache-at-2000', 2000],
  ]);
  expect(run.stdout()).toMatch(
    /^Latency by rate; bars are p99:\n.*workers.*open-file-cache\nrequests\/s .*\n +1,000 .*\n +2,000 /m,
  );
});
