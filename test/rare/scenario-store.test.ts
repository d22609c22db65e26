// Complete runs with a failing database: measurements are kept.
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { influxProxy, refusal, type Fate } from '../fixtures/influx-proxy.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { storeOf } from '../fixtures/local-store.ts';
import {
  keptRounds,
  newOut,
  readResult,
  wholeResult,
  startScenario,
  useHome,
} from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const home = useHome(['k6', 'nginx', 'influxd']);
const soon = { timeout: 60_000, interval: 50 };

/** Runs a short scenario of two rounds to the end, with this fate for requests to the database. @param code expected exit code */
async function resultOf(
  fate: Fate,
  code: number,
  out = newOut(),
): Promise<Result & { url: string }> {
  const url = await influxProxy((await storeOf(home)).influx, fate);
  const args = `${name} --rounds 2 --warmup 100ms --duration 300ms --influx ${url} --out ${out}`;
  const run = startScenario(args, home.env);
  expect(await run.ended, run.stderr()).toBe(code);
  return { ...readResult(out), url };
}

test('a database that hangs costs no round, and is reported once', async () => {
  let first: Result | undefined;
  const out = newOut();
  const { url, ...result } = await resultOf(
    (body) => {
      // The round is written to result.json before it is stored.
      if (body.includes('bench_round,')) first ??= readResult(out);
      return first === undefined ? 'pass' : 'hang';
    },
    1,
    out,
  );
  const oneRound = [{ rounds: [{}] }, { rounds: [{}] }];
  expect(first).toMatchObject({ state: 'partial', variants: oneRound });
  expect(result.state).toBe('complete');
  expect(keptRounds(result)).toHaveLength(2);
  expect(result.warnings.filter((warning) => warning.includes(url))).toEqual([
    `InfluxDB at ${url} does not answer: it hangs`,
  ]);
});

test('a database that hangs while k6 writes costs no round', async () => {
  const { variants, dropped, state } = await resultOf(
    (body) => (body.includes('loadgen_') ? 'hang' : 'pass'),
    1,
  );
  expect({ state, dropped: dropped ?? [] }).toEqual({ state: 'complete', dropped: [] });
  expect(variants.map(({ rounds }) => rounds.length)).toEqual([2, 2]);
});

test('a database that refuses the figures of every round is reported once', async () => {
  const { warnings, integrity, url } = await resultOf(
    (body, path) => (path.startsWith('/write') && body.includes('bench_') ? 400 : 'pass'),
    1,
  );
  expect(warnings.filter((warning) => warning.includes(refusal))).toEqual([
    `InfluxDB at ${url}: ${refusal} (status 400)`,
  ]);
  const reason = `InfluxDB at ${url}: ${refusal} (status 400)`;
  expect(integrity).toMatchObject({ lost: 0, points: { backfilled: 0, reason } });
  expect(integrity?.points?.lost).toBeGreaterThan(0);
});

const line = `${name} --rounds 3 --warmup 100ms --duration 300ms`;

test('the contents of a deleted database are rewritten at the end', async () => {
  const out = newOut();
  const { folder, env } = home;
  const run = startScenario(`${line} --out ${out}`, env);
  await vi.waitFor(() => expect(keptRounds(readResult(out))).toHaveLength(1), soon);
  // influxd still writes into the folder, so removing it file by file would race with new files.
  renameSync(join(folder, 'influxdb'), join(folder, 'gone'));
  const { integrity, run: named } = await wholeResult(run, out);
  expect(integrity).toMatchObject({ stored: integrity?.requests, lost: 0 });
  expect(integrity?.backfilled).toBeGreaterThan(0);
  const store = await storeOf(home);
  const numberIn = async (figure: string) => {
    const [series] = await store.query(`SELECT ${figure} WHERE "run" = '${named}'`);
    return series?.values[0]?.[1];
  };
  expect(await numberIn('SUM("value") FROM "loadgen_requests"')).toBe(integrity?.requests);
  expect(await numberIn('COUNT("measured_rps") FROM "bench_round"')).toBe(2 * 3);
});

test('points that the database refuses are lost, and the last line has the reason', async () => {
  const store = await storeOf(home);
  const forget = async () => {
    await store.query('DROP MEASUREMENT "loadgen_latency_ms"');
  };
  await forget();
  // As another program of the same database may have written it.
  await store.write(['loadgen_latency_ms value="a text"']);
  onTestFinished(forget);
  const out = newOut();
  const run = startScenario(`${line} --out ${out}`, home.env);
  expect(await run.ended, run.stderr()).toBe(1);
  const { integrity } = readResult(out);
  expect(integrity).toMatchObject({ lost: 0, points: { lacking: ['loadgen_latency_ms'] } });
  expect(run.stdout()).not.toContain(', 0 lost');
  expect(run.stdout().replaceAll(/\s+/g, ' ')).toMatch(
    /points in InfluxDB \(k6 failed to write \d+ times\), [\d,]+ points lost \(loadgen_latency_ms\): InfluxDB at \S+: partial write: field type conflict: /,
  );
  expect(run.stderr()).toMatch(/the figures above are right, but InfluxDB lacks [\d,]+ points$/m);
});

test('a run continues without a database that does not start, and exits with 1', async () => {
  const out = newOut();
  const influxd = join(newFolder(), 'influxd');
  writeFileSync(influxd, '#!/bin/sh\necho no luck\nexit 1\n', { mode: 0o755 });
  const run = startScenario(`${line} --out ${out}`, { ...home.env, INFLUXD_BIN: influxd });
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toMatch(
    /^the run goes on without InfluxDB, and writes its points at the end if it starts then: influxd does not start: no luck/m,
  );
  const { state, integrity, variants } = readResult(out);
  expect(state).toBe('complete');
  expect(keptRounds({ variants } as Result)).toHaveLength(3);
  expect(integrity).toMatchObject({ stored: 0, lost: integrity?.requests });
  expect(run.stderr()).toMatch(
    /the figures above are right, but InfluxDB lacks [\d,]+ requests and [\d,]+ points$/m,
  );
});
