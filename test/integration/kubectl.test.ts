// The real kubectl, where there is one, with as much of an API server as it asks for: what is printed and what is applied is as it takes it.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { findKubectl } from '../../lib/kubernetes/kubectl.ts';
import { configMap } from '../../lib/kubernetes/manifests.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { openApiServer, type ApiServer } from '../fixtures/api-server.ts';
import { printed } from '../fixtures/manifests.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';

const kubectl = await find('kubectl', thisMachine());
if (kubectl === undefined) console.warn('SKIPPED, tests with kubectl: there is none');

const folder = sharedFolder();

/** Has kubectl ask this one, by a context of that name. */
function use(url: string, name = 'here', namespace?: string) {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [
      { name: 'here', cluster: { server: url } },
      { name: 'nowhere', cluster: { server: 'http://127.0.0.1:9' } },
    ],
    users: [{ name: 'me', user: {} }],
    contexts: ['here', 'nowhere'].map((one) => ({
      name: one,
      context: { cluster: one, user: 'me', namespace },
    })),
  };
  writeFileSync(path.join(folder, 'config'), JSON.stringify(config));
  vi.stubEnv('KUBECONFIG', path.join(folder, 'config'));
  // Its cache.
  vi.stubEnv('HOME', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
}

async function open(): Promise<ApiServer> {
  const server = await openApiServer();
  use(server.url);
  return server;
}

test('no kubectl is said in one line', async () => {
  vi.stubEnv('PATH', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(findKubectl(undefined)).rejects.toThrow(
    /^there is no kubectl here: install it \(.*\), or leave --apply out and apply what npm run k8s -- NAME prints from where there is one$/,
  );
});

describe.skipIf(kubectl === undefined)('kubectl', () => {
  test('takes what is printed', async () => {
    await open();
    const { all, text } = await printed(
      'nginx-open-file-cache',
      '--influx',
      'http://influxdb:8086',
    );
    const file = path.join(folder, 'bakeoff.yaml');
    writeFileSync(file, text);
    const { stdout } = await promisify(execFile)(kubectl as string, [
      'apply',
      '--dry-run=client',
      '--validate=false',
      '-f',
      file,
    ]);
    expect(stdout.trim().split('\n')).toEqual(
      all.map(
        ({ kind, metadata: { name } }) =>
          `${{ Deployment: 'deployment.apps', TestRun: 'testrun.k6.io' }[kind] ?? kind.toLowerCase()}/${name} created (dry run)`,
      ),
    );
  });

  test('applies, lists and removes as it is asked to', async () => {
    const { objects, changes } = await open();
    const { context, apply, list, get, remove, log } = await findKubectl(undefined);
    expect(context).toBe('here');
    expect(await list('testruns.k6.io')).toEqual([]);
    const of = (run: string): Parameters<typeof configMap>[0] => ({
      name: `of-${run}`,
      labels: { 'bakeoff/run': run, 'bakeoff/round': '1' },
    });
    // Larger than an annotation may be.
    const large = configMap(of('mine'), { page: 'x'.repeat(900_000) });
    await apply([large, configMap(of('other'), {})]);
    expect(changes).toEqual(
      ['mine', 'other'].map((run) =>
        expect.stringMatching(
          new RegExp(
            `^PATCH /api/v1/namespaces/default/configmaps/of-${run}\\?.*fieldManager=bakeoff`,
          ),
        ),
      ),
    );
    expect(
      (await list('configmaps,pods', { 'bakeoff/run': 'mine', 'bakeoff/round': '1' })).map(
        ({ kind, metadata }) => [kind, metadata.name],
      ),
    ).toEqual([['ConfigMap', 'of-mine']]);
    expect((await get('configmaps', 'of-mine')).data).toEqual(large.data);
    await expect(get('secrets', 'none')).rejects.toThrow(
      'kubectl get: Error from server (NotFound)',
    );
    expect(await log('none')).toBe('');
    await remove({ 'bakeoff/run': 'mine' });
    expect(changes.slice(2)).toEqual([
      expect.stringMatching(/^DELETE .*\/configmaps\/of-mine\?.*"propagationPolicy":"Foreground"/),
    ]);
    expect([...objects.keys()]).toEqual(['/api/v1/namespaces/default/configmaps/of-other']);
  });

  test('goes on with the cluster and the namespace that it has begun with', async () => {
    const { url, changes } = await open();
    const labels = { 'bakeoff/run': 'mine' };
    const { apply, list, remove, removal } = await findKubectl(undefined);
    const named = await findKubectl('lab');
    use(url, 'nowhere', 'of-others');
    await apply([configMap({ name: 'of-mine', labels }, {})]);
    expect(await list('configmaps', labels)).toHaveLength(1);
    await remove(labels);
    expect(changes.map((change) => change.split('?')[0])).toEqual(
      ['PATCH', 'DELETE'].map(
        (method) => `${method} /api/v1/namespaces/default/configmaps/of-mine`,
      ),
    );
    expect(removal(labels)).toBe(
      'kubectl delete testruns.k6.io,deployments.apps,services,configmaps -l bakeoff/run=mine --context=here --namespace=default',
    );
    expect(named.removal(labels)).toMatch(/ --context=here --namespace=lab$/);
    expect((await findKubectl(undefined)).removal(labels)).toMatch(
      / --context=nowhere --namespace=of-others$/,
    );
  });

  test('says in one line that there is no cluster, or no operator', async () => {
    use('http://127.0.0.1:9');
    await expect((await findKubectl(undefined)).list('testruns.k6.io')).rejects.toThrow(
      /^kubectl reaches no cluster: .*: kubectl get: The connection to the server 127\.0\.0\.1:9 was refused/,
    );
    await open();
    await expect((await findKubectl('lab')).list('pods,wonders.example.org')).rejects.toThrow(
      'kubectl get: the server doesn\'t have a resource type "wonders"',
    );
  });
});
