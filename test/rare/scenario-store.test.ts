// Whole runs whose database fails: what was measured stays.
import { expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { influxProxy, refusal, type Fate } from '../fixtures/influx-proxy.ts';
import {
  keptRounds,
  newOut,
  readResult,
  wholeResult,
  startScenario,
  storeOf,
  useHome,
} from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const home = useHome(['k6', 'nginx', 'influxd']);

/** The result of a short run of two rounds, to its end, whose requests to the database meet this fate. */
async function resultOf(fate: Fate, out = newOut()): Promise<Result & { url: string }> {
  const url = await influxProxy((await storeOf(home)).influx, fate);
  const words = `${name} --rounds 2 --duration 300ms --influx ${url} --out ${out}`;
  const run = startScenario(words, home.env);
  return { ...(await wholeResult(run, out)), url };
}

test('a database that hangs costs no round, and is named once', async () => {
  let first: Result | undefined;
  const out = newOut();
  const { url, ...result } = await resultOf((body) => {
    // The round is kept before it is stored.
    if (body.includes('bench_round,')) first ??= readResult(out);
    return first === undefined ? 'pass' : 'hang';
  }, out);
  const oneRound = [{ rounds: [{}] }, { rounds: [{}] }];
  expect(first).toMatchObject({ state: 'partial', variants: oneRound });
  expect(result.state).toBe('complete');
  expect(keptRounds(result)).toHaveLength(2);
  expect(result.warnings.filter((warning) => warning.includes(url))).toEqual([
    `InfluxDB at ${url} does not answer: it hangs`,
  ]);
});

test('a database that refuses the figures of every round is noted once', async () => {
  const { warnings, integrity, url } = await resultOf((body) =>
    body.includes('bench_') ? 400 : 'pass',
  );
  expect(warnings.filter((warning) => warning.includes(refusal))).toEqual([
    `InfluxDB at ${url}: ${refusal} (status 400)`,
  ]);
  expect(integrity).toMatchObject({ lost: 0 });
});
