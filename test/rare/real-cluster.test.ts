// Runs in an existing cluster: BAKEOFF_KUBECONFIG=~/.kube/config BAKEOFF_CLUSTER_FLAGS='--image … --influx … --influx-here …'
// BAKEOFF_TEST_NETWORK=machine npx vitest run --project rare test/rare/real-cluster.test.ts
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import { printed } from '../fixtures/manifests.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, readResult, startCommand } from '../scenario-run.ts';

const { BAKEOFF_KUBECONFIG: kubeconfig = '', BAKEOFF_CLUSTER_FLAGS: flags = '' } = process.env;
const minutes = 60_000;

function kubectl(args: string, input = '') {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const options = { env, input, encoding: 'utf8', maxBuffer: 1e8 } as const;
  const { stdout, stderr } = spawnSync('kubectl', args.split(' '), options);
  return stdout + stderr;
}

/** Runs a scenario in the cluster. @param more flags, which override BAKEOFF_CLUSTER_FLAGS */
function start(scenario: string, more: string, config = kubeconfig) {
  const out = newOut();
  const given = Object.entries({
    generators: '2',
    'server-cores': '1',
    ...flagsIn(flags),
    ...flagsIn(more),
  }).flatMap(([flag, value]) => [`--${flag}`, value]);
  const run = startCommand(['k8s', scenario, '--apply', '--out', out, ...given], {
    KUBECONFIG: config,
  });
  return { out, run };
}

const flagsIn = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/--(\S+) (\S+)/g)].map(([, flag = '', value = '']) => [flag, value]),
  );

const left = () =>
  ['bakeoff/run', 'app=k6']
    .map((label) =>
      kubectl(`get testruns.k6.io,deployments,jobs,services,configmaps,pods -l ${label} -o name`),
    )
    .join('');

const inCluster = test.skipIf(kubeconfig === '');

inCluster(
  'what is printed is accepted, without warnings',
  async () => {
    for (const { name } of await loadScenarios()) {
      const out = await printed(
        name,
        ...'--influx http://influxdb:8086 --influx-secret influxdb --generators 1'.split(' '),
      ).catch((error: Error) => error.message);
      if (typeof out === 'string') {
        // Emulated networks, commands, searches.
        expect(out).toMatch(/leave it out with --variants|take another scenario/);
        continue;
      }
      expect(kubectl('apply --server-side --dry-run=server -f -', out.text).trim()).toMatch(
        new RegExp(`^(\\S+ serverside-applied \\(server dry run\\)\\n?){${out.all.length}}$`),
      );
    }
  },
  10 * minutes,
);

inCluster.each([
  ['nginx-open-file-cache', 4, 'workers,open-file-cache'],
  ['h2o-vs-nginx-h2', 4, 'nginx,h2o'],
])(
  '%s: no round is dropped, everything is stored and nothing is left',
  async (scenario, rounds, sides) => {
    const { out, run } = start(scenario, `--rounds ${rounds} --variants ${sides}`);
    expect(await run.ended, run.stderr()).toBe(0);
    expect(run.stderr()).not.toContain('is dropped');
    const { state, integrity, variants } = readResult(out);
    expect(state).toBe('complete');
    expect(integrity).toMatchObject({ lost: 0 });
    for (const { rounds: made, successRatio } of variants.filter(
      (variant) => variant.rounds.length > 0,
    ))
      expect([made.length, successRatio]).toEqual([rounds, 1]);
    expect(left()).toBe('');
  },
  30 * minutes,
);

inCluster(
  'a user without rights is told so in one line',
  async () => {
    const config = JSON.parse(kubectl('config view --raw --minify --flatten -o json')) as {
      users: [{ user: { as?: string } }];
    };
    config.users[0].user.as = 'nobody';
    const file = path.join(newFolder(), 'config');
    writeFileSync(file, JSON.stringify(config));
    const { run } = start('nginx-open-file-cache', '--rounds 1', file);
    expect(await run.ended, run.stdout()).toBe(1);
    expect(run.stderr().trim()).toMatch(
      /^your user of the cluster lacks a right .*User "nobody" cannot list resource "(testruns|deployments)".*$/,
    );
  },
  5 * minutes,
);
