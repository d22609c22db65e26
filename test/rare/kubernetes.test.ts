// Manifests for a cluster without one: what they have a node do, done here.
import { copyFile } from 'node:fs/promises';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { leftIn, leftPoint, leftQuery } from '../../lib/k6/left-results.ts';
import { phaseLinePrefix, type LoadPlan, type PhaseOutcome } from '../../lib/k6/load-plan.ts';
import { mergeInstances } from '../../lib/runner/generators.ts';
import type { Manifest } from '../../lib/kubernetes/manifests.ts';
import type { LoadResult } from '../../lib/result/result.ts';
import { waitUntilReady } from '../../lib/servers/index.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { writeLines } from '../../lib/store/client.ts';
import type { Store } from '../../lib/store/store.ts';
import { line, toNanoseconds } from '../../lib/store/line-protocol.ts';
import { useLocalStore } from '../fixtures/local-store.ts';
import { printed, type Deployment, type TestRun } from '../fixtures/manifests.ts';
import { environmentOf, openNode, release, type PodNode } from '../fixtures/pods.ts';
import { useServers } from '../fixtures/servers.ts';
import path from 'node:path';

const servers = useServers();
const local = useLocalStore();
let k6: string;
beforeAll(async () => {
  // Whom the image's user stands for may read it there.
  k6 = path.join(servers.folder, 'k6');
  await copyFile((await ensureTools(['k6'])).k6, k6);
}, 300_000);

/** Ends what it runs with the test. */
function node(): PodNode {
  const opened = openNode(servers.folder, k6);
  onTestFinished(opened.end);
  return opened;
}

const secretOf = ({ influx: { credentials } }: Store): Record<string, string | undefined> => ({
  username: credentials?.user,
  password: credentials?.password,
});

/** What the script printed, as k6 logs it. */
function outcomesIn(said: string) {
  return [...said.matchAll(/msg=("(?:[^"\\]|\\.)*")/g)]
    .map(([, quoted]) => JSON.parse(quoted as string) as string)
    .filter((line) => line.startsWith(phaseLinePrefix))
    .map((line) => JSON.parse(line.slice(phaseLinePrefix.length)) as PhaseOutcome);
}

const readyIn = async (store: Store) =>
  (
    await store.query(
      'SELECT count("ready") FROM bench_ready WHERE "ready" = 1 GROUP BY "instance"',
    )
  ).length;

/** The load's plan with another server, that is here, and what else is different. */
function planHere(
  env: Record<string, string>,
  port: number,
  changes: (plan: LoadPlan) => Partial<LoadPlan> = () => ({}),
): LoadPlan {
  const text = (env['BAKEOFF_LOAD'] as string).replaceAll(
    /http:\/\/nginx[\w-]+:8080/g,
    `http://127.0.0.1:${port}`,
  );
  const plan = JSON.parse(text) as LoadPlan;
  return { ...plan, ...changes(plan) };
}

describe('the servers of a cluster', () => {
  test.each([
    ['nginx-open-file-cache', 'open-file-cache', 'http/1.1'],
    ['h2o-vs-nginx', undefined, 'http/1.1'],
    ['http1-vs-h2-small-file', undefined, undefined],
    ['nghttpd-img', undefined, 'h2'],
  ] as const)('%s: serve their page, without root', async (scenario, variants, protocol) => {
    const out = await printed(
      scenario,
      '--influx',
      'http://influxdb:8086',
      '--generators',
      '1',
      ...(variants === undefined ? [] : ['--variants', variants]),
    );
    expect(out.deployments.length).toBeGreaterThan(0);
    for (const deployment of out.deployments) {
      const { name } = deployment.metadata;
      const { port, said } = await node().startPod(deployment, out.configMap);
      const variantOf = ({ metadata: { labels } }: Manifest) => labels['bakeoff/variant'];
      const [testRun] = out.testRuns.filter((one) => variantOf(one) === variantOf(deployment)) as [
        TestRun,
      ];
      const plan = JSON.parse(
        Object.values(out.configMap(testRun.metadata.name))[0] as string,
      ) as LoadPlan;
      const [side] = plan.phases[0]?.sides ?? [];
      const url = new URL(side?.url as string);
      expect(`${url.hostname}:${url.port}`).toBe(`${name}:8080`);
      const page = { path: url.pathname };
      const answer = await waitUntilReady(
        {
          origin: `${url.protocol}//127.0.0.1:${port}`,
          page,
          protocol: side?.protocol ?? protocol ?? 'http/1.1',
          anyLength: true,
        },
        AbortSignal.timeout(5000),
      ).catch((error: Error) => `${error.message}: ${said()}`);
      expect(answer).toMatchObject({ status: 200 });
    }
  });
});

describe('a load of several generators in a cluster', () => {
  // Where other work keeps one of them from its core, they begin too far apart, which is refused: whoever runs it makes it again.
  test(
    'begins in all of them when the last one is ready, and is stored as one',
    { retry: 2 },
    async () => {
      const store = await local.open(local.newFolder());
      const out = await printed(
        'nginx-open-file-cache',
        '--variants',
        'workers',
        '--duration',
        '2s',
        '--influx',
        store.influx.url,
        '--influx-secret',
        'influxdb',
      );
      const [testRun] = out.testRuns as [TestRun];
      const { startPod, scriptFolder, initialize, startGenerator } = node();
      const { port } = await startPod(out.deployments[0] as Deployment, out.configMap);
      const folder = await scriptFolder(testRun, out.configMap);
      const env = environmentOf(testRun, out.configMap, secretOf(store));
      expect(JSON.parse(await initialize(testRun, folder, env))).toMatchObject({ maxVUs: 2 });
      const plan = planHere(env, port);
      const both = { ...env, BAKEOFF_LOAD: JSON.stringify(plan) };
      const [first, second] = await Promise.all([
        startGenerator(testRun, folder, both, 1),
        startGenerator(testRun, folder, both, 2),
      ]);
      await release(first);
      await vi.waitFor(async () => expect(await readyIn(store)).toBe(1), { timeout: 20_000 });
      await release(second);
      expect([await first.code, await second.code], first.said() + second.said()).toEqual([0, 0]);
      const ends = [first, second].map(({ said }) => ({ phases: outcomesIn(said()) }));
      // It throws where they began more than 100 ms apart.
      const together = mergeInstances(ends, plan)[0]?.results[0] as LoadResult;
      expect(together.requests).toBeGreaterThan(1000);
      expect(together.responses['2xx']).toBe(together.requests);
      const [stored] = await store.query(
        `SELECT sum("value") FROM loadgen_requests WHERE run = '${plan.tags['run']}' AND variant = 'workers'`,
      );
      expect(stored?.values[0]?.[1]).toBe(together.requests);
      // What each has left is all that it said.
      const left = leftIn(
        await store.query(
          leftQuery({ run: plan.tags['run'] as string, variant: 'workers', round: '1' }),
        ),
      );
      expect([1, 2].map((instance) => left.get(instance)?.phases)).toEqual(
        ends.map(({ phases }) => phases),
      );
      // Both have this machine's clock, as the database has.
      for (const { aheadMs } of left.values()) expect(Math.abs(aheadMs)).toBeLessThan(1000);
      // The same ones again would be two runs of one name.
      const third = await startGenerator(
        { ...testRun, spec: { ...testRun.spec, parallelism: 1 } },
        folder,
        { ...env, BAKEOFF_LOAD: JSON.stringify({ ...plan, instances: 1 }) },
        1,
      );
      await release(third);
      expect(await third.code, third.said()).not.toBe(0);
      expect(third.said()).toContain(
        `bench_ready has generator 1 of run ${plan.tags['run']}, variant workers already: print the manifests anew for another run`,
      );
    },
  );

  test('leaves results of any size and any characters, phase by phase', async () => {
    const store = await local.open(local.newFolder());
    const name = { run: 'left', variant: 'a "b"', round: '1' };
    const outcome = (bars: number): PhaseOutcome => ({
      results: [
        {
          errorExample: 'é 😀 "\\ \n',
          latencyMs: { histogram: Array.from({ length: bars }, (_, index) => [index / 10, index]) },
        } as unknown as LoadResult,
      ],
    });
    await store.write([
      leftPoint(name, 2, 1, outcome(3), -7.5),
      leftPoint(name, 2, 10, outcome(20_000), -7.5),
      leftPoint(name, 2, 2, outcome(9000), -7.5),
      leftPoint({ ...name, round: '2' }, 1, 1, outcome(1), 0),
    ]);
    // Newer databases take no longer text.
    for (const [, part = ''] of leftPoint(name, 2, 10, outcome(20_000), 0).matchAll(
      /part_\d+="((?:[^"\\]|\\.)*)"/g,
    ))
      expect(part.length).toBeLessThan(64 * 1024);
    // Written again with another time, the last one counts.
    await store.write([leftPoint(name, 2, 1, outcome(0), -7.5)]);
    expect(leftIn(await store.query(leftQuery(name)))).toEqual(
      new Map([[2, { phases: [outcome(0), outcome(9000), outcome(20_000)], aheadMs: -7.5 }]]),
    );
  });

  test('names who is missing, and the database that does not answer', async () => {
    const store = await local.open(local.newFolder());
    const out = await printed(
      'nginx-open-file-cache',
      '--variants',
      'workers',
      '--generators',
      '2',
      '--influx',
      store.influx.url,
      '--influx-secret',
      'influxdb',
    );
    const [testRun] = out.testRuns as [TestRun];
    const { scriptFolder, startGenerator } = node();
    const env = environmentOf(testRun, out.configMap, secretOf(store));
    const folder = await scriptFolder(testRun, out.configMap);
    const meetAt = { url: store.influx.url, database: 'bakeoff', withinSeconds: 1 };
    const saysAlone = async (
      changes: Partial<LoadPlan>,
      password = env['K6_INFLUXDB_PASSWORD'] as string,
    ) => {
      const plan = planHere(env, 9, () => changes);
      const generator = await startGenerator(
        testRun,
        folder,
        { ...env, K6_INFLUXDB_PASSWORD: password, BAKEOFF_LOAD: JSON.stringify(plan) },
        1,
      );
      await release(generator);
      expect(await generator.code, generator.said()).not.toBe(0);
      return generator.said();
    };
    expect(await saysAlone({ meetAt })).toContain(
      'generator 2 of 2 was not ready within 1 s: see why, and print the manifests anew',
    );
    expect(await saysAlone({ meetAt: { ...meetAt, url: 'http://127.0.0.1:9' } })).toContain(
      'InfluxDB at http://127.0.0.1:9, where generators meet, does not answer: ',
    );
    // Who waited for this one has given up by now.
    const load = { run: 'late', variant: 'workers', round: '1' };
    await writeLines(store.influx, [
      line(
        'bench_ready',
        { ...load, instance: '2' },
        { ready: 1 },
        toNanoseconds(Date.now() - 60_000),
      ),
    ]);
    expect(await saysAlone({ tags: load, meetAt: { ...meetAt, withinSeconds: 50 } })).toContain(
      'generator 1 of 2 was not ready within 50 s',
    );
    expect(await saysAlone({ meetAt }, 'wrong')).toContain(
      `InfluxDB at ${store.influx.url}, where generators meet, says 401: `,
    );
  });
});
