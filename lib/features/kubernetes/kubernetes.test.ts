import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { additions } from '../../cli/main.ts';
import { k8sCommand } from './command.ts';
import type { LoadPlan } from '../../k6/load-plan.ts';
import type { ConfigMap } from './manifests.ts';
import { imageVersions } from './server-manifests.ts';
import {
  type ClusterObject,
  type ContainerStatus,
  type Kubectl,
  describeEnd,
  podTrouble,
  describePod,
} from './kubectl.ts';
import { loadScenarios } from '../../scenario/catalogue.ts';
import { isConfigured } from '../../scenario/variants.ts';
import { projectRoot } from '../../setup/paths.ts';
import {
  printed,
  type Deployment,
  type Term,
  type TestRun,
} from '../../../test/fixtures/manifests.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { refusalOf } from '../../../test/fixtures/refused.ts';

const k8s = (args: string) => printed(...`${args} --influx http://influxdb:8086`.split(' '));

const nginx = 'nginx-open-file-cache';

const testRunName = /^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$/;
const labelValue = /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/;

const runnable = (await loadScenarios())
  .filter(({ network, variants }) =>
    variants.every(
      ({ network: ownNetwork = network, server }) =>
        ownNetwork === undefined && (typeof server === 'string' || isConfigured(server)),
    ),
  )
  .map(({ name }) => name);

function ownScenario(name: string, variants: string) {
  const file = path.join(newFolder(), 'own.ts');
  writeFileSync(
    file,
    `const load = { command: 'wrk', protocol: 'http/1.1', connections: 10, threads: 1, keepAlive: true, durationSeconds: 1 };
    const base = { name: 'base', server: { name: 'nginx', config: ['base'], workers: 1 } };
    export default {
      name: '${name}', title: 'Mine', knob: 'x', page: { docroot: 'nginx', path: '/', bodyBytes: 612 }, load,
      variants: ${variants},
    };`,
  );
  return file;
}

it.each(runnable)('%s: prints the manifests', async (scenario) => {
  const { all, deployments, services, testRuns, configMap, text } = await k8s(
    `${scenario} --generators 1`,
  );
  const names = all.map(({ kind, metadata: { name } }) => `${kind} ${name}`);
  expect(new Set(names).size).toBe(all.length);
  expect(text).toContain(`-${scenario}. `);
  expect([deployments.length, services.length]).toEqual([testRuns.length, testRuns.length]);
  for (const { metadata, spec } of deployments) {
    for (const { configMap: source } of spec.template.spec.volumes)
      for (const { key } of source?.items ?? [])
        expect(configMap(source?.name as string)[key]).toBeTypeOf('string');
    const service = services.find((service) => service.metadata.name === metadata.name);
    expect(service?.spec.selector).toEqual(spec.template.metadata.labels);
  }
  const hosts = services.map(({ metadata, spec }) => `${metadata.name}:${spec.ports[0]?.port}`);
  for (const { metadata, spec } of testRuns) {
    const { name, file } = spec.script.configMap;
    expect(configMap(name)[file]).toContain('k6/x/loadgen');
    const plan = JSON.parse(configMap(metadata.name)['load.json'] as string) as LoadPlan;
    expect(hosts).toContain(new URL(plan.phases[0]?.sides[0]?.url as string).host);
  }
});

it.each([
  ['--namespace', 'a\nb'],
  ['--influx-secret', 'a\nb'],
  ['--image', 'a b'],
  ['--node-selector', 'disktype'],
  ['--toleration', 'dedicated=load:noschedule'],
])('k8s refuses %s %j', async (flag, value) => {
  const args = ['nginx-open-file-cache', '--influx', 'http://influxdb:8086', flag, value];
  expect(await refusalOf(k8sCommand(args, additions))).toMatch(/^--\S+ \S+.*: give /);
});

it('k8s divides the load and applies the flags', async () => {
  const { all, testRuns, configMap, deployments } = await k8s(
    'nginx-open-file-cache --influx-secret influxdb --generators 4 --namespace lab --duration 3s ' +
      '--variants workers --image host:5000/bakeoff:1 --server-cores 8 --generator-cores 2 --generator-memory 1Gi',
  );
  const [testRun] = testRuns;
  expect(new Set(all.map(({ metadata: { namespace } }) => namespace))).toEqual(new Set(['lab']));
  const resources = { limits: { cpu: '2', memory: '1Gi' } };
  const runner = { image: 'host:5000/bakeoff:1', resources };
  expect(testRun?.spec).toMatchObject({ parallelism: 4, runner });
  expect(testRun?.spec.runner.env).toContainEqual({
    name: 'K6_INFLUXDB_PASSWORD',
    valueFrom: { secretKeyRef: { name: 'influxdb', key: 'password' } },
  });
  const load = configMap(testRun?.metadata.name as string)['load.json'] as string;
  expect(JSON.parse(load)).toMatchObject({
    instances: 4,
    meetAt: { url: 'http://influxdb:8086', database: 'bakeoff' },
    phases: [{ sides: [{ connections: 100, threads: 2, duration: '3000ms' }] }],
  });
  expect(load).not.toContain('spin');
  const [container] = deployments[0]?.spec.template.spec.containers ?? [];
  expect(container).toMatchObject({
    resources: { requests: { cpu: '8' } },
    securityContext: { readOnlyRootFilesystem: true },
  });
  const { 'nginx.conf': config } = configMap(deployments[0]?.metadata.name as string);
  expect(config).toContain('worker_processes 8;');
});

it('k8s places servers and generators, and gives no pod a token of the cluster', async () => {
  const line = `${nginx} --image-pull-secret pull --toleration dedicated=load:NoSchedule`;
  const { deployments, testRuns, text } = await k8s(
    `${line} --node-selector disktype=ssd --node-selector example.com/pool= --toleration gpu:NoExecute`,
  );
  const nodes = {
    nodeSelector: { disktype: 'ssd', 'example.com/pool': '' },
    tolerations: [
      { key: 'dedicated', operator: 'Equal', value: 'load', effect: 'NoSchedule' },
      { key: 'gpu', operator: 'Exists', effect: 'NoExecute' },
    ],
  };
  const imagePullSecrets = [{ name: 'pull' }];
  for (const { spec } of deployments)
    expect(spec.template.spec).toMatchObject({
      ...nodes,
      imagePullSecrets,
      automountServiceAccountToken: false,
    });
  for (const { spec } of testRuns) {
    const noToken = { automountServiceAccountToken: 'false' };
    expect(spec.runner).toMatchObject({ ...nodes, imagePullSecrets, ...noToken });
    expect(spec.starter).toMatchObject({ ...nodes, ...noToken });
  }
  expect(text).toContain('automountServiceAccountToken: "false"');
  const { text: plain } = await k8s(nginx);
  expect(plain).not.toMatch(/imagePullSecrets|nodeSelector|tolerations/);
});

/** Whether a pod's labels are those of a term of anti-affinity, in any namespace. */
function keepsAway({ labelSelector, namespaceSelector }: Term, labels: Record<string, string>) {
  const { matchLabels = {}, matchExpressions = [] } = labelSelector;
  const isOneOf = (key: string, values: readonly string[]) => values.includes(labels[key] ?? '');
  return (
    namespaceSelector !== undefined &&
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(
      ({ key, operator, values }) => isOneOf(key, values) === (operator === 'In'),
    )
  );
}

it('two runs share no node, in whatever namespaces they are', async () => {
  const first = await k8s(`${nginx} --namespace lab`);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
  const second = await k8s(`${nginx} --namespace lab-2`);
  const serverOf = ({ deployments: [deployment] }: typeof first) => {
    const { metadata, spec } = (deployment as Deployment).spec.template;
    return { labels: metadata.labels, away: spec.affinity };
  };
  const generatorOf = ({ testRuns: [testRun] }: typeof first) => {
    const { metadata, affinity } = (testRun as TestRun).spec.runner;
    return { labels: { ...metadata.labels, app: 'k6', runner: 'true' }, away: affinity };
  };
  const isKeptFrom = (pod: ReturnType<typeof serverOf>, labels: Record<string, string>) =>
    pod.away.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.some((term) =>
      keepsAway(term, labels),
    );
  for (const pod of [serverOf(first), generatorOf(first)])
    for (const { labels } of [serverOf(second), generatorOf(second), generatorOf(first)])
      expect(isKeptFrom(pod, labels)).toBe(true);
  // All servers of a run are on one node.
  expect(isKeptFrom(serverOf(first), serverOf(first).labels)).toBe(false);
});

it('k8s prints unusual variant names', async () => {
  const names = JSON.stringify(['off', '1e3', 'x'.repeat(70)]);
  const file = ownScenario('0-of-mine', `${names}.map((name) => ({ ...base, name }))`);
  const { testRuns } = await k8s(file);
  expect(testRuns[0]?.metadata.labels['bakeoff/variant']).toBe('off');
  for (const { metadata } of testRuns) {
    expect(metadata.name).toMatch(testRunName);
    for (const value of Object.values(metadata.labels)) expect(value).toMatch(labelValue);
  }
});

it('k8s refuses a missing database, and a password', async () => {
  await expect(printed(nginx)).rejects.toThrow(/^--influx is missing: /);
  await expect(printed(nginx, '--influx', 'http://me:secret@influxdb')).rejects.toThrow(
    /^--influx: manifests are read by many, .*--influx-secret$/,
  );
});

it.each([
  ['h2o-vs-nginx-h2-rate', /^2 generators: 1 connections cannot be /],
  ['nginx-tuning-under-delay', /network of its own, which a cluster cannot make/],
  [`${nginx} --node-selector a=1 --node-selector a=2`, /^--node-selector a=… is given twice$/],
  [`${nginx} --rounds 4`, /^--rounds is for --apply: give both, /],
])('k8s refuses %s', async (args, message) => {
  await expect(k8s(args)).rejects.toThrow(message);
});

it.each([
  ['server: { ...base.server, config: ["./own.ts"] }', /and this is a config of your own: /],
  [
    'server: { name: "command", command: "a" }, page: { path: "/", bodyBytes: 612 }',
    /and this is a command: leave it out with --variants$/,
  ],
  ['page: { docroot: ".", path: "/own.ts", bodyBytes: 612 }', /only shipped pages are served: /],
  ['load: { ...load, headers: { Cookie: "me" } }', /read by many, .* has the header Cookie: /],
])('k8s refuses %s', async (changes, message) => {
  const file = ownScenario('mine', `[{ ...base, name: 'own', ${changes} }, base]`);
  await expect(k8s(file)).rejects.toThrow(message);
});

it('manifests fit docker/Dockerfile', async () => {
  const dockerfile = readFileSync(path.join(projectRoot, 'docker/Dockerfile'), 'utf8');
  for (const [server, version] of Object.entries(imageVersions)) {
    const name = server === 'nghttpd' ? 'nghttp2-server' : server;
    expect(dockerfile).toMatch(new RegExp(`^ +${name}=${version}[-+]`, 'm'));
  }
  const { deployments } = await k8s(nginx);
  const image = deployments[0]?.spec.template.spec.containers[0].image as string;
  const [registry = '', ...name] = image.split('/');
  expect(dockerfile).toContain(`-t ${name.join('/')} `);
  const release = readFileSync(path.join(projectRoot, '.github/workflows/release.yml'), 'utf8');
  expect(release).toContain(`image=${registry}/\${GITHUB_REPOSITORY,,}:\${GITHUB_REF_NAME#v}\n`);
  expect(release).toContain(`docker login ${registry} `);
});

it('the InfluxDB of the docs is the one that its commands name', async () => {
  const [service, deployment] = parseAllDocuments(
    readFileSync(path.join(projectRoot, 'docker/influxdb-kubernetes.yaml'), 'utf8'),
  ).map((document) => document.toJS() as ConfigMap & Deployment);
  const docs = readFileSync(path.join(projectRoot, 'docs/kubernetes.md'), 'utf8');
  expect(docs).toContain('--influx http://influxdb:8086 ');
  expect(docs).toContain('create secret generic influxdb --from-literal=username=');
  expect(service).toMatchObject({
    metadata: { name: 'influxdb' },
    spec: { selector: deployment?.spec.template.metadata.labels, ports: [{ port: 8086 }] },
  });
  const { testRuns } = await k8s(`${nginx} --influx-secret influxdb`);
  const secretsOf = (env: TestRun['spec']['runner']['env'] = []) =>
    env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []);
  const secrets = secretsOf(testRuns[0]?.spec.runner.env);
  expect(secretsOf(deployment?.spec.template.spec.containers[0].env)).toEqual(secrets);
  expect(secrets).toHaveLength(2);
});

const pod = (
  labels: Record<string, string>,
  status: ClusterObject['status'] = {},
): ClusterObject => ({ kind: 'Pod', metadata: { name: 'pod-x', labels }, status });
const container = (status: Partial<ContainerStatus>): ClusterObject['status'] => ({
  containerStatuses: [{ restartCount: 0, image: 'bakeoff:1', ...status }],
});

it.each([
  ['the server of workers', { 'bakeoff/part': 'server', 'bakeoff/variant': 'workers' }],
  ['generator 12', { 'job-name': 'nginx-2-12' }],
  ["the operator's starter", { 'job-name': 'nginx-starter' }],
  ['the pod pod-x', {}],
])('pods are described as %s', (text, labels) => expect(describePod(pod(labels))).toBe(text));

const unschedulable = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'Unschedulable',
  message: '0/2 nodes are available: 2 Insufficient cpu. preemption: none helps.',
};
it.each([
  [
    { conditions: [unschedulable] },
    false,
    'no node takes it (all servers share a node, each generator needs another, and no two runs share one): 0/2 nodes are available: 2 Insufficient cpu. Add nodes',
  ],
  [
    container({ state: { waiting: { reason: 'InvalidImageName' } } }),
    true,
    'its image bakeoff:1 cannot be had (name it with --image): InvalidImageName',
  ],
  [
    container({
      state: {
        waiting: {
          reason: 'CreateContainerConfigError',
          message: 'failed to sync configmap cache: timed out waiting for the condition',
        },
      },
    }),
    false,
    'it does not start: CreateContainerConfigError: failed to sync configmap cache: timed out',
  ],
])('a waiting pod has a reason: %j', (status, fatal, text) => {
  const error = { text: expect.stringContaining(text), fatal };
  expect(podTrouble(pod({}, status))).toEqual(error);
});

it.each([
  [
    "k6's error",
    'level=info msg="one"\ntime="x" level=error msg="1 was \\"not\\" ready" hint="y"\nlevel=warning msg=z',
    '1 was "not" ready',
  ],
  ['the last line', 'one\ntwo\n', 'two'],
])('an ended pod has its last output: %s', async (_, log, text) => {
  const kubectl = { log: () => Promise.resolve(log) } as unknown as Kubectl;
  const ended = pod({}, container({ state: { terminated: { exitCode: 108 } } }));
  expect(await describeEnd(kubectl, ended)).toBe(`it ended with code 108: ${text}`);
});
