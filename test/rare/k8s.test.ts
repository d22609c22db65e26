// Complete runs in a fake cluster (fixtures/cluster.ts), with real servers, k6 and influxd.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Generator } from '../fixtures/pods.ts';
import { openTestCluster, type Faults, type TestCluster } from '../fixtures/cluster.ts';
import { storeOf } from '../fixtures/local-store.ts';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'influxd']);
let k6: string;
beforeAll(async () => {
  // Readable for the user who takes the place of the image's user.
  k6 = join(home.folder, 'k6');
  await copyFile(home.env['K6_BIN'] as string, k6);
}, 300_000);

async function there(faults: Faults = {}) {
  const store = await storeOf(home);
  const { url, credentials } = store.influx;
  const folder = mkdtempSync(join(home.folder, 'nodes-'));
  chmodSync(folder, 0o755);
  const cluster = await openTestCluster(folder, k6, faults);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const base64 = (text = '') => Buffer.from(text).toString('base64');
  cluster.put({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'influxdb', labels: {} },
    data: { username: base64(credentials?.user), password: base64(credentials?.password) },
  });
  cluster.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'somebodys', labels: { 'bakeoff/run': 'of-another' } },
    data: {},
  });
  const out = newOut();
  const start = (...more: string[]) =>
    startCommand(
      [
        ...`k8s nginx-open-file-cache --apply --influx ${url} --influx-secret influxdb`.split(' '),
        ...`--duration 1s --variants workers,open-file-cache --out ${out}`.split(' '),
        ...more,
      ],
      { ...home.env, ...cluster.env },
    );
  return { cluster, store, out, start };
}

const untouched = ['Node/node-1', 'Secret/influxdb', 'ConfigMap/somebodys'];
const left = ({ cluster }: { cluster: TestCluster }) =>
  cluster.objects().map(({ kind, metadata }) => `${kind}/${metadata.name}`);

test('a run is applied, measured, reported and removed', async () => {
  const all = await there();
  const run = all.start('--rounds', '2');
  expect(await run.ended, run.stderr()).toBe(0);
  const result = readResult(all.out);
  expect(result).toMatchObject({
    state: 'complete',
    looks: [2],
    comparisons: [{ variant: 'open-file-cache', baseline: 'workers', verdict: 'none' }],
    environment: {
      cluster: {
        name: 'test-cluster',
        serverNode: 'node-1',
        serverSystem: '6.1.0-test, Test OS 1, amd64',
        generators: 2,
        generatorCores: 1,
      },
    },
  });
  const [first, second] = result.variants.filter(({ rounds }) => rounds.length > 0);
  for (const variant of [first, second]) {
    expect(variant).toMatchObject({
      server: { name: 'nginx', version: '1.22.1', workers: 2 },
      rounds: [{ phases: [expect.anything()] }, { phases: [expect.anything()] }],
      successRatio: 1,
    });
    // An answer of nginx takes some 20 µs.
    const micros = variant?.serverCpuMicrosPerRequest?.median;
    expect(micros).toBeGreaterThan(2);
    expect(micros).toBeLessThan(1000);
  }
  // All samples are stored, and the table's figures match them.
  const requests = result.variants
    .flatMap(({ rounds }) => rounds)
    .reduce((sum, { phases }) => sum + (phases[0]?.requests ?? 0), 0);
  expect(result.integrity).toEqual({ requests, stored: requests, backfilled: 0, lost: 0 });
  // A busy machine has a round repeated, under a new number.
  const kept = (first?.rounds ?? []).map(({ round }) => round);
  for (const round of kept) {
    const stored = await all.store.query(
      `SELECT sum("value") FROM loadgen_requests WHERE run = '${result.run}' AND round = '${round}' GROUP BY variant, instance_id`,
    );
    expect(stored.length).toBe(4);
  }
  // The user may switch kubectl to another cluster meanwhile.
  for (const call of all.cluster.calls.slice(1))
    expect(call).toEqual(expect.arrayContaining(['--context=test-cluster', '--namespace=lab']));
  // AB, then BA.
  const orders = all.cluster.calls
    .filter(([verb]) => verb === 'delete')
    .map((args) => /variant=([\w-]+)/.exec(args.join(' '))?.[1]);
  if (kept.at(-1) === 2)
    expect(orders).toEqual(['workers', 'open-file-cache', 'open-file-cache', 'workers', undefined]);
  expect(run.stdout()).toMatch(
    /nginx 1\.22\.1 on 2 cores of node-1 \(6\.1\.0-test, Test OS 1, amd64\) in the cluster test-cluster, k6 on 2 other nodes with 1 core each/,
  );
  expect(left(all)).toEqual(untouched);
});

test('CPU time that this user may not read is unknown, and said to be', async () => {
  const all = await there({ exec: 'forbidden' });
  const run = all.start('--rounds', '1');
  expect(await run.ended, run.stderr()).toBe(0);
  expect(run.stdout()).toContain('CPU time the servers use is not known: to read it from a pod, ');
  const [measured] = readResult(all.out).variants.filter(({ rounds }) => rounds.length > 0);
  expect(measured).toMatchObject({ serverCpuMicrosPerRequest: null, successRatio: 1 });
});

test('a round with a dead generator is repeated', async () => {
  const all = await there({
    released(generators, load) {
      if (load !== 1) return;
      const [, second] = generators as [Generator, Generator];
      void vi
        .waitFor(() => expect(second.output()).toContain('bakeoff-phase-begins'), {
          timeout: 30_000,
          interval: 20,
        })
        .then(() => second.end());
    },
  });
  const run = all.start('--rounds', '1');
  expect(await run.ended, run.stderr()).toBe(0);
  expect(run.stderr()).toContain(
    'round 1 is dropped and repeated: workers: generator 2 ended early: it ended with code 137 (OOMKilled)',
  );
  const { variants, integrity } = readResult(all.out);
  // On a busy machine more rounds may be repeated.
  for (const { rounds } of variants.filter((variant) => variant.rounds.length > 0))
    expect(rounds.map(({ round }) => round > 1)).toEqual([true]);
  expect(integrity).toMatchObject({ lost: 0 });
  expect(left(all)).toEqual(untouched);
});

test('a round with a restarted server is repeated; Ctrl-C removes everything and keeps complete rounds', async () => {
  let loads = 0;
  const all = await there({
    released(_, load) {
      loads = load;
      const server = all.cluster
        .objects()
        .find(
          ({ kind, metadata: { labels } }) =>
            kind === 'Pod' &&
            labels['bakeoff/part'] === 'server' &&
            labels['bakeoff/variant'] === 'workers',
        );
      const terminated = { exitCode: 137, reason: 'OOMKilled' };
      const restarted = { restartCount: 1, image: '', lastState: { terminated } };
      if (load === 1) Object.assign(server?.status ?? {}, { containerStatuses: [restarted] });
    },
  });
  const run = all.start('--rounds', '4');
  await vi.waitFor(
    () => {
      expect(run.stderr()).toContain('round 1 of 4 · workers');
      expect(run.stderr()).toContain('round 1 of 4 · open-file-cache');
    },
    { timeout: 120_000 },
  );
  const whole = loads;
  await vi.waitFor(() => expect(loads).toBeGreaterThan(whole), { timeout: 60_000 });
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  expect(run.stderr()).toContain(
    'round 1 is dropped and repeated: workers: its server ended under load and was started again: OOMKilled (exit code 137)',
  );
  expect(readResult(all.out)).toMatchObject({ state: 'partial' });
  expect(run.stdout()).toContain('Ended early, after 1 of 4 rounds.');
  expect(left(all)).toEqual(untouched);
});

test.each<[string, Faults, string]>([
  [
    'no operator',
    { operator: 'absent' },
    'the cluster has no k6-operator (it knows no TestRun): install it (https://grafana.com/docs/k6/',
  ],
  [
    'a pod that the cluster forbids',
    { starter: 'forbidden' },
    '-starter: violates PodSecurity "restricted:latest"',
  ],
])('%s is a one-line error, and nothing is left', async (_, faults, line) => {
  const all = await there(faults);
  const run = all.start();
  expect(await run.ended, run.stdout()).toBe(1);
  expect(run.stderr()).toContain(line);
  expect(left(all)).toEqual(untouched);
});

test('a missing database and a different load are reported before anything is applied', async () => {
  const all = await there();
  const says = async () => {
    const run = startCommand(
      `k8s nginx-open-file-cache --apply --influx http://127.0.0.1:9 --out ${all.out}`,
      { ...home.env, ...all.cluster.env },
    );
    expect(await run.ended, run.stdout()).toBe(1);
    return run.stderr().trim();
  };
  expect(await says()).toMatch(
    /^InfluxDB at \S+ does not answer \(.*\); --influx-here says where this machine reaches /,
  );
  all.cluster.put({
    apiVersion: 'k6.io/v1alpha1',
    kind: 'TestRun',
    metadata: { name: 'other', labels: {} },
    status: { stage: 'started' },
  });
  expect(await says()).toMatch(/^the TestRun other is there, and loads disturb each other: /);
  expect(all.cluster.calls.every(([verb]) => verb === 'config' || verb === 'get')).toBe(true);
  expect(readdirSync(all.out)).toEqual([]);
});
