// One load of several k6: together it is that of one. Of a cluster's: test/rare/k8s.test.ts.
import { mkdtemp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { total } from '../../lib/analysis/statistics.ts';
import type { LoadOptions, LoadPlan } from '../../lib/k6/load-plan.ts';
import { dividedPlan, instanceArguments, mergeInstances } from '../../lib/runner/generators.ts';
import { Disturbance } from '../../lib/runner/plan.ts';
import { startK6, compileScript } from '../../lib/runner/k6.ts';
import { nginx } from '../../lib/scenario/index.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { useServers } from '../fixtures/servers.ts';

const servers = useServers();
let k6: string;
let script: string;
beforeAll(async () => {
  ({ k6 } = await ensureTools(['k6']));
  script = path.join(servers.folder, 'script.js');
  await compileScript(script);
}, 300_000);

const planOf = (load: LoadOptions): LoadPlan => ({
  scenario: 'segments',
  tags: { run: 'one', round: '1' },
  maxDurationSeconds: 30,
  phases: [{ sides: [load], seed: 3 }],
});

async function start(instance: number, instances: number, loadPlan: LoadPlan) {
  const folder = await mkdtemp(path.join(servers.folder, 'k6-'));
  const binary = path.join(folder, 'k6');
  const words = instanceArguments(instance, instances).join(' ');
  await writeFile(binary, `#!/bin/sh\nexec '${k6}' "$@" ${words}\n`, { mode: 0o755 });
  const running = await startK6({ binary, script, folder, cpus: [1], loadPlan, output: null });
  onTestFinished(() => running.stop(0));
  return running.results();
}

/** The results of three k6, and the merged one. Repeats the load if this machine was too busy for them to begin together. */
async function made(load: LoadOptions, tries = 5) {
  // All of them have to be up by then.
  const plan = dividedPlan(planOf(load), 3, Date.now() + 8000);
  const ends = await Promise.all(
    [1, 2, 3].map(async (instance) => ({ phases: await start(instance, 3, plan) })),
  );
  try {
    const together = mergeInstances(ends, plan);
    return [together, ...ends.map(({ phases }) => phases)].map(
      ([phase]) => phase?.results[0] ?? expect.fail(),
    );
  } catch (error) {
    if (!(error instanceof Disturbance) || tries === 1) throw error;
    return made(load, tries - 1);
  }
}

test('three k6 make a count together, each its part', async () => {
  const { origin } = await servers.start(nginx(['base'], { workers: 1 }));
  // None of them has more than the 100 requests after which nginx closes a connection.
  const all = await made({ url: `${origin}/`, connections: 31, requests: 2003 });
  expect(all.map(({ requests }) => requests)).toEqual([2003, 668, 668, 667]);
  expect(all.map(({ connectMs: { histogram } }) => total(histogram, ([, count]) => count))).toEqual(
    [31, 11, 10, 10],
  );
  expect(all[0]).toMatchObject({
    responses: { '2xx': 2003 },
    errors: { total: 0 },
    bytes: { body: 2003 * 612 },
  });
});

test('none begins where one counts on another number', async () => {
  const load = { url: 'http://127.0.0.1:9/', connections: 3, requests: 3 };
  await expect(start(1, 2, { ...planOf(load), instances: 3 })).rejects.toThrow(
    'the load is divided among 3 k6, and the execution segments of this one among 2: give --execution-segment and --execution-segment-sequence for 3',
  );
});
