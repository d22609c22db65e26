// Runs in a cluster that is there: BAKEOFF_KUBECONFIG=~/.kube/config BAKEOFF_CLUSTER_FLAGS='--image … --influx … --influx-here …'
// BAKEOFF_TEST_NETWORK=machine npx vitest run --project rare-alone test/rare-alone/real-cluster.test.ts
import { execFileSync } from 'node:child_process';
import { expect, test, vi } from 'vitest';
import { newOut, readResult, startCommand } from '../scenario-run.ts';

const { BAKEOFF_KUBECONFIG: kubeconfig = '', BAKEOFF_CLUSTER_FLAGS: flags = '' } = process.env;
const KUBECONFIG = { KUBECONFIG: kubeconfig };

/** A run there, and what it has left. */
function start(scenario: string, rounds: number) {
  const out = newOut();
  const run = startCommand(
    `k8s ${scenario} --apply --generators 2 --server-cores 1 --rounds ${rounds} --out ${out} ${flags}`
      .trim()
      .split(/\s+/),
    KUBECONFIG,
  );
  const left = () =>
    execFileSync(
      'kubectl',
      'get testruns.k6.io,deployments,services,configmaps,pods -l bakeoff/run -o name'.split(' '),
      { env: { ...process.env, ...KUBECONFIG }, encoding: 'utf8' },
    );
  return { out, run, left };
}

const minutes = 60_000;

test.skipIf(kubeconfig === '').each([
  ['nginx-open-file-cache', 4],
  ['h2o-vs-nginx-h2', 4],
])(
  '%s: no round is dropped, all is stored and nothing is left',
  async (scenario, rounds) => {
    const { out, run, left } = start(scenario, rounds);
    expect(await run.ended, run.stderr()).toBe(0);
    expect(run.stderr()).not.toContain('is dropped');
    const { state, integrity, variants } = readResult(out);
    expect(state).toBe('complete');
    expect(integrity).toMatchObject({ lost: 0 });
    for (const { rounds: made, successRatio } of variants.filter((one) => one.rounds.length > 0))
      expect([made.length, successRatio]).toEqual([rounds, 1]);
    expect(left()).toBe('');
  },
  30 * minutes,
);

test.skipIf(kubeconfig === '')(
  'Ctrl-C leaves nothing',
  async () => {
    const { run, left } = start('nginx-open-file-cache', 4);
    await vi.waitFor(() => expect(run.stdout() + run.stderr()).toMatch(/round 1/), {
      timeout: 5 * minutes,
      interval: 500,
    });
    run.kill('SIGINT');
    expect(await run.ended).toBe(130);
    expect(left()).toBe('');
  },
  10 * minutes,
);
