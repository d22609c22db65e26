// Errors of kubectl; tests with a cluster are in test/rare/real-cluster.test.ts.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findKubectl, KubectlError } from '../../lib/features/kubernetes/kubectl.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const kubectl = await find('kubectl', thisMachine());
if (kubectl === undefined) console.warn('SKIPPED, tests with kubectl: there is none');

function stub(variable: string, value: string) {
  vi.stubEnv(variable, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

test('a missing kubectl is a one-line error', async () => {
  stub('PATH', newFolder());
  await expect(findKubectl(undefined)).rejects.toThrow(
    /^there is no kubectl here: install it \(.*\), or leave --apply out and apply what npm run k8s -- NAME prints from where there is one$/,
  );
});

test.skipIf(kubectl === undefined)('an unreachable cluster is a one-line error', async () => {
  const file = path.join(newFolder(), 'config');
  const context = { cluster: 'here', user: 'me', namespace: 'lab' };
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'nowhere',
      clusters: [{ name: 'here', cluster: { server: 'http://127.0.0.1:9' } }],
      users: [{ name: 'me', user: {} }],
      contexts: [{ name: 'nowhere', context }],
    }),
  );
  stub('KUBECONFIG', file);
  const { list, removal } = await findKubectl(undefined);
  await expect(list('testruns.k6.io')).rejects.toThrow(
    /^kubectl reaches no cluster: .*: kubectl get: The connection to the server 127\.0\.0\.1:9 was refused/,
  );
  expect(removal({ 'bakeoff/run': 'mine' })).toBe(
    'kubectl delete testruns.k6.io,deployments.apps,services,configmaps -l bakeoff/run=mine --context=nowhere --namespace=lab',
  );
  expect((await findKubectl('mine')).removal({})).toMatch(/ --context=nowhere --namespace=mine$/);
});

const config = '{"contexts": [{"name": "here", "context": {}}]}';

test.each([
  ['Please log in.', config, 'config view: answered "Please log in.", which is not JSON'],
  ['null', config, 'config view: answered "null", which is not .*: has to be an object'],
  [
    '{"contexts": null}',
    config,
    'config view: answered .*, which is not .*contexts has to be a list',
  ],
  ['{"contexts": []}', config, 'has no current context: kubectl config use-context NAME'],
  [config, '', 'get pods: answered nothing, which is not JSON'],
  [config, 'null', 'get pods: answered "null", which is not .*: has to be an object'],
  [config, '{"items": [null]}', 'get pods: answered .*, which is not .*items.*object'],
])(
  'an answer of kubectl that is of no use is named in one line: %s, %s',
  async (view, get, said) => {
    const folder = newFolder();
    writeFileSync(path.join(folder, 'view'), view);
    writeFileSync(path.join(folder, 'get'), get);
    const answers = `#!/bin/sh\n[ "$1" = config ] && exec cat ${folder}/view\nexec cat ${folder}/get\n`;
    writeFileSync(path.join(folder, 'kubectl'), answers, { mode: 0o755 });
    stub('PATH', `${folder}:${process.env['PATH']}`);
    const asked = findKubectl(undefined).then((found) => found.list('pods'));
    await expect(asked).rejects.toThrow(new RegExp(`^kubectl ${said}`));
    await expect(asked).rejects.toBeInstanceOf(KubectlError);
  },
);

test.each([
  [{ name: '--server=http://192.0.2.1' }, undefined, '--server=http://192.0.2.1'],
  [{ name: 'pod-1' }, { nodeName: '--kubeconfig=/tmp/x' }, '--kubeconfig=/tmp/x'],
  [{ name: 'pod-1' }, { nodeName: '' }, ''],
])('no name from a cluster can become an argument of kubectl %#', async (metadata, spec, told) => {
  const folder = newFolder();
  const contexts = [{ name: 'here', context: {} }];
  writeFileSync(path.join(folder, 'config.json'), JSON.stringify({ contexts }));
  const items = [
    { kind: 'Pod', metadata: { name: 'web-1.lab' }, spec: { nodeName: '10.0.0.7' } },
    { kind: 'Pod', metadata, spec },
  ];
  writeFileSync(path.join(folder, 'get.json'), JSON.stringify({ items }));
  writeFileSync(path.join(folder, 'kubectl'), `#!/bin/sh\ncat ${folder}/$1.json\n`, {
    mode: 0o755,
  });
  stub('PATH', `${folder}:${process.env['PATH'] ?? ''}`);
  const { list } = await findKubectl('lab');
  expect(await refusalOf(list('pods'))).toBe(
    `the cluster reports a Pod with the name ${JSON.stringify(told)}, which no object of a cluster can have: check which cluster answers (kubectl cluster-info)`,
  );
  writeFileSync(path.join(folder, 'get.json'), JSON.stringify({ items: items.slice(0, 1) }));
  expect(await list('pods')).toHaveLength(1);
});
