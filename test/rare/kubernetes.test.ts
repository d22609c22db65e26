// Manifests without a cluster: the test does the work of the node.
import { copyFile } from 'node:fs/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { leftIn, leftPoint, leftQuery } from '../../lib/k6/left-results.ts';
import type { LoadPlan, PhaseOutcome } from '../../lib/k6/load-plan.ts';
import type { LoadResult } from '../../lib/result/load-result.ts';
import { waitUntilReady } from '../../lib/servers/index.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { writeLines } from '../../lib/influx/client.ts';
import { line, toNanoseconds } from '../../lib/influx/line-protocol.ts';
import { useLocalStore } from '../fixtures/local-store.ts';
import { printed, type TestRun } from '../fixtures/manifests.ts';
import { environmentOf, openNode, release, type PodNode } from '../fixtures/pods.ts';
import { useServers } from '../fixtures/servers.ts';
import path from 'node:path';

const servers = useServers();
const local = useLocalStore();
let k6: string;
beforeAll(async () => {
  // Readable for the user who takes the place of the image's user.
  k6 = path.join(servers.folder, 'k6');
  await copyFile((await ensureTools(['k6'])).k6, k6);
}, 300_000);

function node(): PodNode {
  const opened = openNode(servers.folder, k6);
  onTestFinished(opened.end);
  return opened;
}

test.each([
  ['h2o-vs-nginx', 'http/1.1'],
  ['http1-vs-h2-small-file', undefined],
  ['nghttpd-img', 'h2'],
] as const)(
  '%s: the servers of a cluster serve their page, without root',
  async (name, protocol) => {
    const out = await printed(name, '--influx', 'http://influxdb:8086', '--generators', '1');
    for (const deployment of out.deployments) {
      const { port, output } = await node().startPod(deployment, out.configMap);
      const { 'bakeoff/variant': variant } = deployment.metadata.labels;
      const { metadata } = out.testRuns.find(
        ({ metadata: { labels } }) => labels['bakeoff/variant'] === variant,
      ) as TestRun;
      const plan = JSON.parse(out.configMap(metadata.name)['load.json'] as string) as LoadPlan;
      const side = plan.phases[0]?.sides[0];
      const url = new URL(side?.url as string);
      expect(url.host).toBe(`${deployment.metadata.name}:8080`);
      const answer = await waitUntilReady(
        {
          origin: `${url.protocol}//127.0.0.1:${port}`,
          page: { path: url.pathname },
          load: { protocol: side?.protocol ?? protocol ?? 'http/1.1' },
          anyLength: true,
        },
        AbortSignal.timeout(5000),
      ).catch((error: Error) => `${error.message}: ${output()}`);
      expect(answer).toMatchObject({ status: 200 });
    }
  },
);

test('generators report results of any size and any characters, by phase', async () => {
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
  // Newer databases accept no longer text.
  for (const [, part = ''] of leftPoint(name, 2, 10, outcome(20_000), 0).matchAll(
    /part_\d+="((?:[^"\\]|\\.)*)"/g,
  ))
    expect(part.length).toBeLessThan(64 * 1024);
  // After a second write with another time, the last one counts.
  await store.write([leftPoint(name, 2, 1, outcome(0), -7.5)]);
  expect(leftIn(await store.query(leftQuery(name)))).toEqual(
    new Map([[2, { phases: [outcome(0), outcome(9000), outcome(20_000)], aheadMs: -7.5 }]]),
  );
});

test('a generator names missing generators, and a database that does not respond', async () => {
  const store = await local.open(local.newFolder());
  const { url, credentials } = store.influx;
  const out = await printed(
    ...`nginx-open-file-cache --variants workers --influx ${url} --influx-secret influxdb`.split(
      ' ',
    ),
  );
  const [testRun] = out.testRuns as [TestRun];
  const { scriptFolder, startGenerator } = node();
  const env = environmentOf(testRun, out.configMap, {
    username: credentials?.user,
    password: credentials?.password,
  });
  const folder = await scriptFolder(testRun, out.configMap);
  const meetAt = { url, database: 'bakeoff', withinSeconds: 1 };
  const saysAlone = async (changes: Partial<LoadPlan>) => {
    const plan = { ...(JSON.parse(env['BAKEOFF_LOAD'] as string) as LoadPlan), ...changes };
    const generator = await startGenerator(
      testRun,
      folder,
      { ...env, BAKEOFF_LOAD: JSON.stringify(plan) },
      1,
    );
    await release(generator);
    expect(await generator.code, generator.output()).not.toBe(0);
    return generator.output();
  };
  expect(await saysAlone({ meetAt })).toContain(
    'generator 2 of 2 was not ready within 1 s: find out why, ',
  );
  expect(await saysAlone({ meetAt: { ...meetAt, url: 'http://127.0.0.1:9' } })).toContain(
    'InfluxDB at http://127.0.0.1:9, where generators meet, does not answer: ',
  );
  // Generators that waited for this one have given up by now.
  const load = { run: 'late', variant: 'workers', round: '1' };
  const again = { ...load, run: 'again' };
  await writeLines(store.influx, [
    line(
      'bench_ready',
      { ...load, instance: '2' },
      { ready: 1 },
      toNanoseconds(Date.now() - 60_000),
    ),
    line('bench_ready', { ...again, instance: '1' }, { ready: 1 }),
  ]);
  expect(await saysAlone({ tags: load, meetAt: { ...meetAt, withinSeconds: 50 } })).toContain(
    'generator 1 of 2 was not ready within 50 s',
  );
  expect(await saysAlone({ tags: again, meetAt })).toContain(
    'bench_ready has generator 1 of run again, variant workers already: ',
  );
});
