// No samples of k6 are lost on the way to a real influxd.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { startChild } from '../../lib/process.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { checkRun as findIn, type StoredRound } from '../../lib/features/influxdb/integrity.ts';
import { storeTemplates } from '../../lib/features/influxdb/findings.ts';
import { sentencesOf } from '../../lib/report/finding-words.ts';
import type { AnyFinding } from '../../lib/result/finding.ts';
import { recordedLines } from '../../lib/features/influxdb/record.ts';
import type { Series } from '../../lib/influx/client.ts';
import { DatabaseSink } from '../../lib/features/influxdb/sink.ts';
import type { PlannedVariant } from '../../lib/runner/plan.ts';
import type { UsageSample } from '../../lib/runner/samples.ts';
import { serverSamplePoints } from '../../lib/features/influxdb/points.ts';
import { type Store, openStore } from '../../lib/features/influxdb/store.ts';
import { accessUrl } from '../fixtures/influx-access.ts';
import { influxdIn } from '../fixtures/local-store.ts';
import { influxProxy, refusal, type Fate } from '../fixtures/influx-proxy.ts';
import { hereAndThere, planOf, scenarioOf } from '../fixtures/plan.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { halt, stopWhole } from '../fixtures/processes.ts';

let tools: { k6: string; influxd: string };
const folder = sharedFolder();
const data = join(folder, 'influxdb');
let store: Store;
beforeAll(async () => {
  tools = await ensureTools(['k6', 'influxd']);
  store = await openStore({ influxdBinary: tools.influxd, folder: data });
}, 240_000);
afterAll(() => store.close());

/** k6 with samples like the engine's: ten requests per tick, four ticks per second. */
const script = `
import { Counter, Gauge } from 'k6/metrics';
import { sleep } from 'k6';
const requests = new Counter('loadgen_requests');
const responses = new Counter('loadgen_responses');
const latency = new Gauge('loadgen_latency_ms');
export const options = { iterations: 1, vus: 1, tags: { run: __ENV.RUN, scenario: 's', variant: 'a variant, or=so', round: '1', empty: '' } };
export default function () {
  for (let tick = 0; tick < Number(__ENV.TICKS); tick++) {
    const tags = { instance: '1', url: 'http://h/?q="x y"', vu: '7' };
    requests.add(10, tags);
    responses.add(9, { class: '2xx', ...tags });
    responses.add(1, { class: '5xx', ...tags });
    latency.add(tick / 3, { stat: 'p50', ...tags });
    sleep(0.25);
  }
}
`;

async function startK6(run: string, ticks: number) {
  const recordFile = join(folder, `${run}.json`);
  writeFileSync(join(folder, 'script.js'), script);
  const { out, env } = store.k6Output();
  const outputs = [`json=${recordFile}`, ...out].flatMap((output) => ['--out', output]);
  const k6 = await startChild({
    command: tools.k6,
    args: ['run', '--quiet', '--address', '', ...outputs, join(folder, 'script.js')],
    env: { ...process.env, ...env, RUN: run, TICKS: String(ticks), K6_NO_USAGE_REPORT: 'true' },
    stdio: 'ignore',
  });
  onTestFinished(() => k6.stop());
  return { k6, recordFile };
}

const variant = 'a variant, or=so';

/** What a check tells, with its problems in sentences. */
async function checkRun(...given: Parameters<typeof findIn>) {
  const { integrity, problems } = await findIn(...given);
  return { integrity, problems: sentencesOf(problems, 1, storeTemplates) };
}

type Round = Omit<StoredRound, 'round' | 'unsent'> & { run: string; unsent?: boolean };
/** What a check tells of a run with this round alone, besides its points. */
async function checked(of: Store, { run, ...round }: Round) {
  const only = { unsent: false, ...round, round: 1 };
  const { integrity, problems } = await checkRun(of, run, [only], []);
  const { points: _, ...requests } = integrity;
  return { ...requests, problems };
}
/** What a check tells of a round of 20 requests. */
const of20 = (stored: number, backfilled: number, ...problems: unknown[]) => ({
  requests: 20,
  stored,
  backfilled,
  lost: 20 - stored,
  problems,
});

/** An influxd of its own, in a folder of this name. */
async function ownStore(name: string) {
  const place = join(folder, name);
  const local = await openStore({ influxdBinary: tools.influxd, folder: place });
  onTestFinished(() => local.close());
  return { place, local };
}

const pointsOf = async (run: string): Promise<unknown> =>
  store.query(`SELECT * FROM /.*/ WHERE run = '${run}' GROUP BY *`);

it('rewrites exactly the points that k6 wrote', async () => {
  const { k6, recordFile } = await startK6('same', 2);
  expect((await k6.exited).code).toBe(0);
  const fromK6 = await pointsOf('same');
  expect(JSON.stringify(fromK6)).toMatch(/"loadgen_requests".*"vu"/);
  const lines: string[] = [];
  for await (const recorded of recordedLines(recordFile)) lines.push(recorded);
  await store.write(lines);
  expect(await pointsOf('same')).toEqual(fromK6);
  // The points above may still contain fields written by k6; these are all rewritten.
  await store.write(lines.map((line) => line.replace(',run=same,', ',run=copy,')));
  const copy = JSON.stringify(await pointsOf('copy')).replaceAll('"run":"copy"', '"run":"same"');
  expect(JSON.parse(copy)).toEqual(fromK6);
  expect(await checked(store, { run: 'same', variant, recordFile, requests: 20 })).toEqual(
    of20(20, 0),
  );
});

it('loses nothing when influxd is killed in the middle of a round', async () => {
  const { k6, recordFile } = await startK6('killed', 12);
  const storedRequests = async () => {
    const [series] = await store.query(
      "SELECT SUM(value) FROM loadgen_requests WHERE run = 'killed'",
    );
    return Number(series?.values[0]?.[1] ?? 0);
  };
  await vi.waitFor(async () => expect(await storedRequests()).toBeGreaterThan(0), {
    timeout: 15_000,
    interval: 50,
  });
  // Stop k6 before influxd ends, until the test has counted how much of a push in flight was stored. The count restarts influxd,
  // so it is killed once more.
  halt(k6.pid);
  process.kill(influxdIn(data), 'SIGKILL');
  const early = await storedRequests();
  process.kill(influxdIn(data), 'SIGKILL');
  k6.process.kill('SIGCONT');
  await k6.exited;
  const round = { run: 'killed', variant, recordFile, requests: 120 };
  expect(await checked(store, round)).toEqual({
    requests: 120,
    stored: 120,
    backfilled: 120 - early,
    lost: 0,
    problems: [],
  });
  expect(await checked(store, round)).toMatchObject({ stored: 120, backfilled: 0, lost: 0 });
}, 40_000);

/** Writes a record like k6's: 10 requests per second; `cut` cuts the last line in half. */
function writeRecord(run: string, seconds: number, cut = false) {
  const recordFile = join(folder, `${run}.json`);
  const tags = { run, variant: 'v', round: '1', scenario: 's', instance: '1' };
  const samples = Array.from({ length: seconds }, (_, second) =>
    JSON.stringify({
      metric: 'loadgen_requests',
      type: 'Point',
      data: { time: new Date(1.8e12 + second * 1000).toISOString(), value: 10, tags },
    }),
  );
  const text = `${samples.join('\n')}\n`;
  writeFileSync(recordFile, cut ? text.slice(0, -30) : text);
  return recordFile;
}

it('writes a record that k6 has not sent, which does not count as a repair', async () => {
  const round = {
    run: 'unsent',
    variant: 'v',
    recordFile: writeRecord('unsent', 3),
    requests: 30,
    unsent: true,
  };
  const whole = { requests: 30, stored: 30, backfilled: 0, lost: 0, problems: [] };
  const { integrity } = await checkRun(store, 'unsent', [{ ...round, round: 1 }], []);
  expect(integrity.points).toEqual({ written: 3, stored: 3, backfilled: 0, lost: 0 });
  expect(await checked(store, round)).toEqual(whole);
});

it.each([
  [
    'repairs from a record with a cut last line',
    30,
    20,
    'InfluxDB lacks 10 of 30 requests of v, round 1',
  ],
  [
    'reports more stored requests than were made',
    20,
    30,
    'InfluxDB holds 30 requests of v, round 1, more than the 20 that were made',
  ],
])('%s', async (_what, requests, stored, problem) => {
  const run = `record-${requests}`;
  const recordFile = writeRecord(run, 3, stored < requests);
  const { problems, ...counts } = await checked(store, { run, variant: 'v', recordFile, requests });
  expect(counts).toEqual({
    requests,
    stored,
    backfilled: 20,
    lost: Math.max(0, requests - stored),
  });
  expect(problems).toEqual([expect.stringContaining(problem)]);
});

it('counts missing samples as lost if the database hangs, and waits only once', async () => {
  const place = join(folder, 'hung');
  const local = await openStore({ influxdBinary: tools.influxd, folder: place });
  const influxd = influxdIn(place);
  const other = await openStore({ url: accessUrl(local.influx), folder });
  onTestFinished(async () => {
    process.kill(influxd, 'SIGCONT');
    await local.close();
  });
  await stopWhole(influxd);
  const check = { run: 'hung', variant: 'v', recordFile: writeRecord('hung', 2), requests: 20 };
  const hangs = `InfluxDB at ${other.influx.url} does not answer: it hangs`;
  expect(await checked(other, check)).toEqual(of20(0, 0, hangs));
  // The database is known to hang, so there are no further requests.
  const asked = vi.spyOn(globalThis, 'fetch');
  onTestFinished(() => asked.mockRestore());
  expect(await other.revive()).toBe(false);
  await expect(other.write(['m value=1 1'])).rejects.toThrow(hangs);
  expect(asked).not.toHaveBeenCalled();
  process.kill(influxd, 'SIGCONT');
});

const spoilt = async (fate: Fate) =>
  openStore({ url: await influxProxy(store.influx, fate), folder, retryForMs: 500 });

it('keeps lines while an external database is unavailable, but not refused lines', async () => {
  let fate: ReturnType<Fate> = 503;
  const other = await spoilt((_body, path) => (path.startsWith('/write') ? fate : 'pass'));
  // In parallel, like the writes of several sides.
  const write = async (...values: number[]): Promise<string[]> =>
    (
      await Promise.allSettled(
        values.map((value) => other.writeOrKeep([`kept value=${value} ${value}`])),
      )
    ).map(({ status }) => status);
  const written = async (): Promise<unknown[]> =>
    (await store.query('SELECT value FROM kept')).flatMap(({ values }) =>
      values.map(([, value]) => value),
    );
  expect([await write(1, 2), await write(3), await written()]).toEqual([
    ['rejected', 'rejected'],
    ['rejected'],
    [],
  ]);
  fate = 'pass';
  expect([await write(4), await written()]).toEqual([['fulfilled'], [1, 2, 3, 4]]);
  fate = 400;
  expect(await write(5)).toEqual(['rejected']);
  fate = 'pass';
  expect([await write(6), await written()]).toEqual([['fulfilled'], [1, 2, 3, 4, 6]]);
});

it.each([
  ['refuses', '/write', 500, 'InfluxDB lacks 40 of 40 requests of v, round 1: '],
  ['can no longer count', '/', 502, ''],
])(
  'counts samples as lost that the database %s, with the reason',
  async (_, paths, status, begin) => {
    let opened = false;
    const other = await spoilt((_body, path) =>
      opened && path.startsWith(paths) ? status : 'pass',
    );
    opened = true;
    const run = `lost-${status}`;
    const { problems, ...counts } = await checked(other, {
      run,
      variant: 'v',
      recordFile: writeRecord(run, 4),
      requests: 40,
    });
    expect(counts).toEqual({ requests: 40, stored: 0, backfilled: 0, lost: 40 });
    expect(problems).toEqual([
      `${begin}InfluxDB at ${other.influx.url}: ${refusal} (status ${status})`,
    ]);
  },
);

it('a note on points that came late is void once the database holds all', async () => {
  let fate: ReturnType<Fate> = 'pass';
  const other = await spoilt((_body, path) => (path.startsWith('/write') ? fate : 'pass'));
  const sink = new DatabaseSink(other);
  const plan = { ...planOf(scenarioOf(hereAndThere)), run: 'late-notes' };
  const [planned] = plan.variants as [PlannedVariant];
  const use = { wallAheadMs: 0, cpuSeconds: 1, rssBytes: 1 };
  const samples = [0, 100].map((ms) => ({ ...use, atMs: 1.8e12 + ms }) as UsageSample);
  fate = 503;
  const finding = await sink.afterLoad(plan, { planned, round: 1, samples });
  expect(finding).toEqual({ code: 'not-stored', reason: expect.stringContaining(refusal) });
  fate = 'pass';
  const { signal } = new AbortController();
  const run = { plan, folder, sink, signal, ...noAdditions };
  const findings = [finding as AnyFinding];
  const noted = { ...result([workers, openFileCache]), run: plan.run, findings };
  const { integrity, warnings } = await sink.settle(run, noted, []);
  expect(integrity).toMatchObject({ lost: 0, points: { lost: 0 } });
  expect(warnings).toEqual([]);
  const kinds = await store.query(
    `SELECT text FROM bench_sentence WHERE run = '${plan.run}' AND kind = 'note'`,
  );
  expect(JSON.stringify(kinds)).not.toContain(refusal);
});

/** Stores a round of 20 requests, and two samples of its server. */
async function storedRound(of: Store, run: string) {
  const asked = { variant: 'v', recordFile: writeRecord(run, 2), requests: 20, unsent: true };
  await checked(of, { ...asked, run });
  const own = ownPoints(run);
  await of.write(own);
  return { round: { ...asked, round: 1, unsent: false }, own };
}

/** The record has two points, and these are three more. */
function ownPoints(run: string) {
  const tags = { run, scenario: 's', variant: 'v', round: '1', server: 'nginx' };
  return serverSamplePoints(tags, [
    { atMs: 1.8e12, cpuSeconds: 1, rssBytes: 1 },
    { atMs: 1.8e12 + 100, cpuSeconds: 2, rssBytes: 1 },
  ]);
}

const allStored = { written: 5, stored: 5, backfilled: 0, lost: 0 };
const allBackfilled = { ...allStored, backfilled: 5 };
/** What a check tells of a run with a round of 20 requests. */
const runOf20 = (
  stored: number,
  backfilled: number,
  points: object | undefined,
  ...problems: unknown[]
) => ({
  integrity: { requests: 20, stored, backfilled, lost: 20 - stored, ...(points && { points }) },
  problems,
});

it('counts the points of each measurement once at the end of a run', async () => {
  const { k6, recordFile } = await startK6('counted', 2);
  expect((await k6.exited).code).toBe(0);
  const own = ownPoints('counted');
  await store.write(own);
  const round = { variant, round: 1, recordFile, requests: 20, unsent: false };
  const check = () => checkRun(store, 'counted', [round], own);
  const { integrity, problems } = await check();
  expect(problems).toEqual([]);
  const series = (await pointsOf('counted')) as Series[];
  const written = series.reduce((sum, { values }) => sum + values.length, 0);
  const { points, ...requests } = integrity;
  expect(requests).toEqual({ requests: 20, stored: 20, backfilled: 0, lost: 0 });
  expect(points).toEqual({ written, stored: written, backfilled: 0, lost: 0 });

  await store.query(`DELETE FROM "loadgen_latency_ms" WHERE run = 'counted'`);
  await store.query(`DELETE FROM "loadgen_responses" WHERE run = 'counted'`);
  await store.query(`DELETE FROM "server_cpu" WHERE run = 'counted'`);
  const missing =
    written - ((await pointsOf('counted')) as Series[]).flatMap((s) => s.values).length;
  expect(missing).toBe(2 + 4 + 1);
  expect((await check()).integrity.points).toEqual({
    written,
    stored: written,
    backfilled: missing,
    lost: 0,
  });
  expect((await pointsOf('counted')) as Series[]).toEqual(series);
}, 60_000);

it('rewrites the samples after the folder of the database was deleted', async () => {
  const { place, local } = await ownStore('removed');
  const { round, own } = await storedRound(local, 'removed');
  const check = () => checkRun(local, 'removed', [round], own);
  expect(await check()).toEqual(runOf20(20, 0, allStored));
  rmSync(place, { recursive: true, maxRetries: 20 });
  expect(await check()).toEqual(runOf20(20, 20, allBackfilled));
}, 60_000);

it('counts samples as lost if a different database lacks them and there is no record', async () => {
  const { round, own } = await storedRound(store, 'replaced');
  const bare = { ...round, recordFile: undefined };
  const { local } = await ownStore('other');
  expect(await checkRun(local, 'replaced', [bare], own)).toEqual(
    runOf20(0, 0, undefined, 'InfluxDB lacks 20 of 20 requests of v, round 1'),
  );
}, 60_000);

it('says that a record cannot be read, and does not say how many points are stored', async () => {
  const { round, own } = await storedRound(store, 'unread');
  rmSync(round.recordFile);
  const problem: unknown = expect.stringMatching(/^the record of k6 cannot be read: ENOENT/);
  expect(await checkRun(store, 'unread', [round], own)).toEqual(runOf20(20, 0, undefined, problem));
});

it('a database that does not start is skipped, and gets all samples at the end if it starts then', async () => {
  const place = join(folder, 'late');
  const binary = join(folder, 'late-influxd');
  writeFileSync(binary, '#!/bin/sh\necho no luck\nexit 1\n', { mode: 0o755 });
  const late = await openStore({ influxdBinary: binary, folder: place });
  onTestFinished(() => late.close());
  expect(late.failure()).toMatch(/^influxd does not start: no luck /);
  const recordFile = writeRecord('late', 2);
  const round = { variant: 'v', round: 1, recordFile, requests: 20, unsent: false };
  const own = ownPoints('late');
  const down = {
    written: 5,
    stored: 0,
    backfilled: 0,
    lost: 5,
    lacking: ['loadgen_requests', 'server_rss', 'server_cpu'],
    reason: expect.stringContaining('no luck') as string,
  };
  expect(await checkRun(late, 'late', [round], own)).toEqual(
    runOf20(0, 0, down, expect.stringContaining('no luck')),
  );
  writeFileSync(binary, `#!/bin/sh\nexec ${tools.influxd} "$@"\n`);
  expect(await checkRun(late, 'late', [round], own)).toEqual(runOf20(20, 20, allBackfilled));
}, 60_000);
