// Several pages, as nginx's own log counts them: each by its weight.
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { beforeAll, expect, it } from 'vitest';
import { startK6, compileScript } from '../../lib/runner/k6.ts';
import { writeMixFiles, loadPlanFor } from '../../lib/runner/k6-plan.ts';
import { makePlan } from '../../lib/runner/make-plan.ts';
import type { Group } from '../../lib/runner/plan.ts';
import { defineScenario } from '../../lib/scenario/define-scenario.ts';
import { ab, h2load, nginx } from '../../lib/scenario/index.ts';
import type { ConfiguredServer, LoadProfile } from '../../lib/scenario/model.ts';
import { waitUntilReady } from '../../lib/servers/ready.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { useServers, withAccessLog } from '../fixtures/servers.ts';
import path from 'node:path';

const test = useServers();
let k6: string;
beforeAll(async () => {
  ({ k6 } = await ensureTools(['k6']));
}, 300_000);

const weights = { '/': 12, '/a.html': 5, '/a.html?b=c': 2, '/sub/%C3%A4.css': 1 };
const requests = 2012;

it.each<[string, ConfiguredServer, LoadProfile]>([
  ['HTTP/1.1', nginx(['base'], { workers: 1 }), h2load(`--h1 -n ${requests} -c 7`)],
  ['a connection for each request', nginx(['base'], { workers: 1 }), ab(`-n ${requests} -c 7`)],
  [
    'a rate',
    nginx(['base'], { workers: 1 }),
    { ...h2load(`--h1 -n ${requests} -c 7 --rps 1000`), warmupSeconds: 0 },
  ],
  ['HTTP/2', nginx(['h2'], { workers: 1 }), h2load(`-n ${requests} -c 3 -m 10`)],
])('over %s', async (_, server, load) => {
  const folder = await mkdtemp(path.join(test.folder, 'pages-'));
  const docroot = path.join(folder, 'www');
  await mkdir(path.join(docroot, 'sub'), { recursive: true });
  for (const [file, length] of [
    ['index.html', 100],
    ['a.html', 1000],
    ['sub/ä.css', 20_000],
  ] as const)
    await writeFile(path.join(docroot, file), 'x'.repeat(length));
  const bodyBytes = (12 * 100 + 7 * 1000 + 20_000) / 20;
  const requested = Object.entries(weights).map(([target, weight]) => ({ target, weight }));
  const page = { docroot, path: '/', requests: requested, bodyBytes };
  const scenario = defineScenario({
    name: 'pages',
    title: 'several pages',
    knob: 'nothing',
    load,
    page,
    variants: [{ name: 'one', server }],
  });

  const { logged, logFile } = await withAccessLog(server);
  const { origin, ...running } = await test.start(logged, {
    page,
    protocol: load.protocol,
    folder: `${folder}-server`,
  });
  expect(
    (
      await waitUntilReady(
        { origin, page, protocol: load.protocol, allPages: true },
        new AbortController().signal,
      )
    ).bytes,
  ).toBeCloseTo(bodyBytes, 9);
  const plan = {
    ...makePlan(
      scenario,
      scenario.variants,
      { serverCpus: [0], generatorCpus: [0] },
      { quick: false, exact: false },
    ),
    run: 'pages',
  };
  const script = path.join(folder, 'script.js');
  await compileScript(script);
  await writeMixFiles([scenario.page], folder);
  // The requests one at a time after the load are in the server's log too.
  const { aloneSeconds, ...loadPlan } = loadPlanFor(plan, plan.groups[0] as Group, 1, [
    { url: `${origin}/` },
  ]);
  expect(aloneSeconds).toBeGreaterThan(0);
  const [outcome] = await (
    await startK6({ binary: k6, script, folder, cpus: [0], output: null, loadPlan })
  ).results();
  expect(outcome?.results[0]).toMatchObject({
    requests,
    responses: { '2xx': requests },
    errors: { total: 0 },
  });
  await running.stop();

  const counts: Record<string, number> = {};
  for (const line of (await readFile(logFile, 'utf8')).split('\n')) {
    const [, asked] = / "GET (\S+) HTTP/.exec(line) ?? [];
    if (asked !== undefined && !line.includes('bakeoff-ready'))
      counts[asked] = 1 + (counts[asked] ?? 0);
  }
  expect(Object.keys(counts).sort()).toEqual(Object.keys(weights).sort());
  for (const [asked, weight] of Object.entries(weights)) {
    expect(
      Math.abs((counts[asked] as number) - (requests * weight) / 20),
      `${counts[asked]} of ${asked}`,
    ).toBeLessThan(1);
  }
});
