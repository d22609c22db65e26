// Whole runs whose database fails, with the real nginx, influxd and k6: what was measured stays, and what the database lacks is told.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { accessUrl } from '../fixtures/influx-access.ts';
import { influxProxy, refusal, type Fate } from '../fixtures/influx-proxy.ts';
import { halt } from '../fixtures/processes.ts';
import {
  firstSample,
  inEachTry,
  keptRounds,
  loadBegins,
  makeHome,
  newOut,
  readResult,
  wholeResult,
  startScenario,
  storeOf,
  underLoad,
  useHome,
  type ScenarioRun,
} from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const home = useHome(['k6', 'nginx', 'influxd']);

/** A run with these words, and its results folder. */
function start(words: string, env = home.env): { run: ScenarioRun; out: string } {
  const out = newOut();
  return { out, run: startScenario(`${name} ${words} --out ${out}`, env) };
}

/** The result of a short run of two rounds, to its end, whose requests to the database meet this fate. */
async function resultOf(fate: Fate): Promise<Result & { url: string }> {
  const url = await influxProxy((await storeOf(home)).influx, fate);
  const { run, out } = start(`--rounds 2 --duration 500ms --influx ${url}`);
  expect(await run.ended, run.stderr()).toBe(0);
  return { ...readResult(out), url };
}

/** The id of the influxd that the runs share. */
function influxdOfRuns() {
  return Number(readFileSync(join(home.folder, 'influxdb', 'influxd.lock'), 'utf8'));
}

function requestsOf({ variants }: Result) {
  return variants
    .flatMap(({ rounds }) => rounds.flatMap(({ phases }) => phases))
    .reduce((sum, { requests }) => sum + requests, 0);
}

test('a database that hangs when a round is over does not cost that round', async () => {
  let hung = false;
  const url = await influxProxy((await storeOf(home)).influx, (body) => {
    hung ||= body.includes('bench_round,');
    return hung ? 'hang' : 'pass';
  });
  const { run, out } = start(`--rounds 2 --duration 500ms --influx ${url}`);
  await vi.waitFor(() => expect(hung).toBe(true), { timeout: 30_000, interval: 20 });
  run.kill('SIGKILL');
  await run.ended;
  expect(readResult(out)).toMatchObject({
    state: 'partial',
    variants: [{ rounds: [{}] }, { rounds: [{}] }],
  });
});

test('a database that hangs in queries costs the run none of its figures, and is named once', async () => {
  let hangs = false;
  const result = await resultOf((_, path) => {
    hangs ||= path.startsWith('/write');
    return hangs && path.startsWith('/query') ? 'hang' : 'pass';
  });
  const { url } = result;
  expect(result.state).toBe('complete');
  expect(keptRounds(result)).toHaveLength(2);
  expect(result.warnings.filter((warning) => warning.includes(url))).toEqual([
    `InfluxDB at ${url} does not answer: it hangs`,
  ]);
});

test('a database that is away when a round is over has that round in the end', async () => {
  const store = await storeOf(home);
  const { run: called, variants } = await resultOf((body) =>
    /^(bench_round|server_rss),.*round=1/m.test(body) && !body.includes('round=2') ? 503 : 'pass',
  );
  const rounds = variants[0]?.rounds.map(({ round }) => String(round));
  for (const measurement of ['bench_round', 'server_cpu', 'server_rss']) {
    const series = await store.query(
      `SELECT COUNT(/.*/) FROM "${measurement}" WHERE "run" = '${called}' GROUP BY "variant", "round"`,
    );
    for (const { name: variant } of variants) {
      expect(
        series.flatMap(({ tags }) => (tags?.['variant'] === variant ? [tags['round']] : [])),
        `${measurement} of ${variant}`,
      ).toEqual(rounds);
    }
  }
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

test('an influxd that is killed in the middle loses nothing', async () => {
  const { run, out } = start('--rounds 1 --duration 4s');
  await inEachTry(run, out, firstSample, () => process.kill(influxdOfRuns(), 'SIGKILL'));
  const result = await wholeResult(run, out);
  const requests = requestsOf(result);
  expect(result.integrity).toMatchObject({ requests, stored: requests, lost: 0 });
  expect(result.integrity?.backfilled).toBeGreaterThan(0);
  expect(run.stdout()).toMatch(/of them written again, 0 lost/);
});

test('an influxd that hangs for good costs neither the load nor a sample, and is named', async () => {
  const { run, out } = start('--rounds 1 --duration 3s');
  await inEachTry(run, out, loadBegins, () => halt(influxdOfRuns()));
  const result = await wholeResult(run, out);
  const { integrity, variants, warnings } = result;
  expect(variants.map(({ rounds }) => rounds.length)).toEqual([1, 1]);
  const requests = requestsOf(result);
  // It is continued to be ended, and takes what waits in its sockets then: what is left to write again may be nothing.
  expect(integrity).toMatchObject({ requests, stored: requests, lost: 0 });
  expect(warnings).toContainEqual(
    expect.stringMatching(
      /^InfluxDB at http:\S+ hung in round \d, and k6 was ended without it once the load was over: [\d,]+ requests of workers were written again from k6's record$/,
    ),
  );
});

test("somebody's InfluxDB that hangs for good is named, and what it lacks is lost; the figures are there", async () => {
  const another = await makeHome(['influxd']);
  onTestFinished(() => another.remove());
  const theirs = await storeOf(another);
  const pid = theirs.pid() ?? NaN;
  const { run, out } = start(`--rounds 2 --duration 3s --influx ${accessUrl(theirs.influx)}`);
  await underLoad(run, out, 1, loadBegins);
  halt(pid);
  const code = await run.ended;
  process.kill(pid, 'SIGCONT');
  expect(code, run.stderr()).toBe(0);
  const { state, integrity, variants, warnings } = readResult(out);
  expect([state, variants.map(({ rounds }) => rounds.length)]).toEqual(['complete', [2, 2]]);
  expect(integrity?.lost).toBeGreaterThan(0);
  expect(
    warnings.filter((warning) => /^InfluxDB at http:\S+ does not answer: it hangs$/.test(warning)),
  ).toHaveLength(1);
  // In the first round, of both variants. Where that was disturbed and repeated, the database is not asked again, and k6 not held up.
  if (!warnings.some((warning) => warning.includes('was dropped and repeated')))
    expect(warnings.filter((warning) => warning.includes('k6 was ended without it'))).toHaveLength(
      2,
    );
});

test.each([
  ['folder is', ''],
  ['newest files are', 'wal'],
])('a database whose %s deleted in the middle holds all of the run in the end', async (_, part) => {
  const own = await makeHome(['k6', 'nginx', 'influxd']);
  onTestFinished(() => own.remove());
  const { run, out } = start('--rounds 2 --duration 2s', own.env);
  await underLoad(run, out, 2, firstSample);
  rmSync(join(own.folder, 'influxdb', part), { recursive: true });
  const { integrity, warnings } = await wholeResult(run, out);
  expect(integrity).toMatchObject({ stored: integrity?.requests, lost: 0 });
  expect(warnings).toContainEqual(
    expect.stringMatching(
      /^InfluxDB lacked [\d,]+ of the run's requests when it was over: [\d,]+ were written again from k6's record$/,
    ),
  );
  const [series] = await (await storeOf(own)).query('SELECT SUM("value") FROM "loadgen_requests"');
  expect(series?.values[0]?.[1]).toBe(integrity?.requests);
});
