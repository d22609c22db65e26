// The manifests of a run: a server for each variant, and a TestRun of k6-operator.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { usageError } from '../../errors.ts';
import { filesBelow, inTemporaryFolder } from '../../files.ts';
import { type LoadPlan, loadPlanVariable } from '../../k6/load-plan.ts';
import { present } from '../../present.ts';
import { dividedPlan } from './generators.ts';
import { loadPlanFor } from '../../runner/k6-plan.ts';
import { writeMixFiles } from '../../runner/mix-files.ts';
import { compileScript, ownVariables } from '../../runner/k6.ts';
import type { PlannedVariant } from '../../runner/plan.ts';
import type { Load } from '../../scenario/load.ts';
import { shownHeaders } from '../../secrets.ts';
import { pathOfPage } from '../../scenario/pages.ts';
import type { ConfiguredServer, Page, Scenario, ServerName } from '../../scenario/model.ts';
import {
  type RunnableVariant,
  fitVariantLoad,
  isConfigured,
  isOwn,
  networkOf,
  pageOf,
} from '../../scenario/variants.ts';
import { certificateArgs } from '../../servers/certificate.ts';
import { copyDocroot } from '../../servers/docroot.ts';
import { serverKinds, workersFor } from '../../servers/index.ts';
import { filesNeeded } from '../../servers/rights.ts';
import { database, type Influx, ownOutput } from '../../influx/address.ts';
import {
  ofGenerators,
  ofOtherRuns,
  ofServers,
  onlyOn,
  onOneHost,
  placed,
  required,
  type Placement,
} from './placement.ts';

/** An object of Kubernetes, as kubectl takes it. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string | undefined;
    labels: Readonly<Record<string, string>>;
  };
  [part: string]: unknown;
}

export interface ConfigMap extends Manifest {
  data: Record<string, string>;
}

/** Cores of a container, and memory in Kubernetes' notation (512Mi). */
interface Resources {
  cores: number;
  memory: string;
}

export interface ClusterRun {
  run: string;
  scenario: Scenario;
  image: string;
  placement: Placement;
  namespace: string | undefined;
  server: Resources;
  generator: Resources;
  generators: number;
  /** As seen from the cluster, for samples and the generators' common start. */
  influx: Influx;
  /** The Secret with its username and password, if it needs them. */
  influxSecret: string | undefined;
  durationSeconds: number | undefined;
}

const user = 1000;

/** No root and no capabilities: clusters may demand that. */
const podSecurity = {
  runAsNonRoot: true,
  runAsUser: user,
  runAsGroup: user,
  fsGroup: user,
  seccompProfile: { type: 'RuntimeDefault' },
};
const containerSecurity = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
};

/** Equal requests and limits may get exclusive cores. */
function resourcesOf({ cores, memory }: Resources) {
  const both = { cpu: String(cores), memory };
  return { requests: both, limits: both };
}

/** For a Service (RFC 1035) or a label; replaced characters add a hash. @param most at most 63 */
function dnsLabel(text: string, most = 63): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .replace(/^(?![a-z])/, 'n-');
  if (plain === text && plain.length <= most) return plain;
  const digits = shortHash(text);
  return `${plain.slice(0, most - digits.length - 1).replace(/-+$/, '')}-${digits}`;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** The workflow of releases (release.yml) pushes the image to GitHub's registry. */
const registry = 'ghcr.io';

/** The image of a release. @param repository its address, with `.git` or without */
export function publishedImage(repository: string, version: string): string {
  const [owner = '', name = ''] = repository
    .replace(/\.git$/, '')
    .split('/')
    .slice(-2);
  return `${registry}/${owner}/${name}:${version}`.toLowerCase();
}

/** Identifies a run in names and labels. */
export function runId(run: string): string {
  return shortHash(run);
}

/** Texts of the files that `make` writes to a temporary folder, by path, sorted. */
function filesMade(make: (folder: string) => Promise<unknown>) {
  return inTemporaryFolder('bakeoff-k8s-', async (folder) => {
    await make(folder);
    const textOf = (file: string) => readFile(path.join(folder, file), 'utf8');
    const files = await filesBelow(folder);
    return Promise.all(files.map(async (file) => ({ file, text: await textOf(file) })));
  });
}

function configMap(metadata: Manifest['metadata'], data: Record<string, string>): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
}

/** Versions of the servers that docker/Dockerfile installs. */
export const imageVersions: Readonly<Record<ServerName, string>> = {
  nginx: '1.22.1',
  h2o: '2.2.5',
  nghttpd: '1.52.0',
};

const port = 8080;

/** Folders in the container. */
const places = {
  given: '/bakeoff/given',
  docroot: '/bakeoff/www',
  tls: '/bakeoff/tls',
  temp: '/tmp',
};
const certificate = `${places.tls}/localhost.pem`;

/** @param id distinguishes runs, or rounds */
function variantName(scenario: Scenario, { name }: RunnableVariant, id: string): string {
  return `${dnsLabel(`${scenario.name}-${name}`, 40)}-${id}`;
}

/** Labels of a variant's objects in a run. */
export function labelsOf(
  { run, scenario }: ClusterRun,
  variant: RunnableVariant,
  part: 'server' | 'load',
): Record<string, string> {
  return {
    'bakeoff/part': part,
    'bakeoff/run': runId(run),
    'bakeoff/scenario': dnsLabel(scenario.name),
    'bakeoff/variant': dnsLabel(variant.name),
  };
}

/**
 * The manifests, and the origin by Service or pod address. @param node undefined: the cluster chooses @throws UserError for own configs,
 * pages, builds, commands, addresses and networks
 */
export async function serverManifests(
  clusterRun: ClusterRun,
  { variant, load, page }: PlannedVariant,
  round: number,
  node?: string,
) {
  const { run, scenario, namespace, server: resources } = clusterRun;
  const spec = shippedServer(scenario, variant);
  const name = variantName(scenario, variant, runId(run));
  const labels = labelsOf(clusterRun, variant, 'server');
  const metadata = { name, namespace, labels };
  // The node's limit is unknown here.
  const limit = filesNeeded(spec.fileLimit, load.connections);
  const config = await serverKinds[spec.name].compose(
    spec.config,
    {
      address: '0.0.0.0',
      port,
      workers: workersFor(spec, resources.cores, false),
      fileLimit: limit,
      docroot: places.docroot,
      temp: places.temp,
      certificateFile: () => Promise.resolve(certificate),
    },
    { version: imageVersions[spec.name], answer: '' },
  );
  const pages = await pagesOf(page, variant.name);
  const configFile = `${spec.name}.conf`;
  const files = [
    { key: configFile, path: configFile, text: config.text },
    ...pages.map(({ file, text }, index) => ({ key: `page-${index + 1}`, path: file, text })),
  ];
  const start = ['prlimit', `--nofile=${limit}:${limit}`, '--', spec.name];
  const command = [...start, ...config.args(`${places.given}/${configFile}`)];
  const items = files.map(({ key, path: file }) => ({ key, path: file }));
  const pod = serverPod(clusterRun, { name, items }, command, config.tls, node);
  const deployment = {
    replicas: 1,
    strategy: { type: 'Recreate' },
    selector: { matchLabels: labels },
    // A change of the annotation starts the server anew.
    template: {
      metadata: { labels, annotations: { 'bakeoff/round': String(round) } },
      spec: pod,
    },
  };
  // Without a cluster IP the load goes to the pod, not through a proxy.
  const service = { clusterIP: 'None', selector: labels, ports: [{ port }] };
  return {
    name,
    manifests: [
      configMap(metadata, Object.fromEntries(files.map(({ key, text }) => [key, text]))),
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deployment },
      { apiVersion: 'v1', kind: 'Service', metadata, spec: service },
    ],
    originAt: (host = name) => {
      const urlHost = host.includes(':') ? `[${host}]` : host;
      return `${config.tls ? 'https' : 'http'}://${urlHost}:${port}`;
    },
  };
}

/** @param given ConfigMap with config and pages @param command that starts the server */
function serverPod(
  { run, image, server, placement }: ClusterRun,
  given: { name: string; items: readonly { key: string; path: string }[] },
  command: string[],
  hasTls: boolean,
  node: string | undefined,
) {
  const container = (part: string, containerCommand: string[], ...volumeMounts: object[]) => ({
    image,
    securityContext: { ...containerSecurity, readOnlyRootFilesystem: true },
    resources: resourcesOf(server),
    name: part,
    command: containerCommand,
    volumeMounts,
  });
  // Mounted ConfigMaps are links to links, which a server would follow at each request.
  const copy = ['cp', '-rL', `${places.given}/www/.`, places.docroot];
  const initContainers = [container('pages', copy, mount('given', true), mount('docroot'))];
  if (hasTls) {
    const makeCertificate = ['openssl', ...certificateArgs(certificate)];
    initContainers.push(container('certificate', makeCertificate, mount('tls'), mount('temp')));
  }
  const servers = { 'bakeoff/part': 'server', 'bakeoff/run': runId(run) };
  return {
    ...placed(placement),
    automountServiceAccountToken: false,
    securityContext: podSecurity,
    affinity: {
      ...present({ nodeAffinity: node === undefined ? undefined : required(onlyOn(node)) }),
      // All servers on the same node, without generators and other runs.
      podAffinity: required([onOneHost({ matchLabels: servers })]),
      podAntiAffinity: required([ofGenerators, ofOtherRuns(runId(run))]),
    },
    initContainers,
    containers: [
      {
        ...container(
          'server',
          command,
          mount('given', true),
          mount('docroot', true),
          mount('tls', true),
          mount('temp'),
        ),
        ports: [{ containerPort: port }],
        // No probes once it is up.
        startupProbe: { tcpSocket: { port }, periodSeconds: 1, failureThreshold: 60 },
      },
    ],
    // A container's first process may ignore the signal.
    terminationGracePeriodSeconds: 5,
    volumes: [
      { name: 'given', configMap: given },
      ...['docroot', 'tls', 'temp'].map((volume) => ({ name: volume, emptyDir: {} })),
    ],
  };
}

function mount(name: keyof typeof places, readOnly = false): object {
  return { name, mountPath: places[name], ...present({ readOnly: readOnly || undefined }) };
}

function shippedServer(scenario: Scenario, variant: RunnableVariant): ConfiguredServer {
  const { name, server } = variant;
  const only = `${name}: in a cluster only shipped configs of nginx, h2o and nghttpd run, and this is`;
  const refusal = (what: string) => usageError(`${only} ${what}: leave it out with --variants`);
  if (!isConfigured(server)) throw refusal(server.name === 'command' ? 'a command' : 'an address');
  if (isOwn(server) || server.config.some((file) => path.isAbsolute(file)))
    throw refusal('a config of your own');
  if (server.binary !== undefined) throw refusal('a build of your own');
  if (networkOf(scenario, variant) !== undefined)
    throw usageError(
      `${name}: has a network of its own, and a cluster has its one: leave it out with --variants, or take another scenario`,
    );
  return server;
}

async function pagesOf({ docroot }: Page, variant: string) {
  if (docroot === undefined || path.isAbsolute(docroot))
    throw usageError(
      `${variant}: in a cluster only shipped pages are served: leave it out with --variants`,
    );
  return filesMade((folder) => copyDocroot(docroot, path.join(folder, 'www')));
}

/** Time for the operator to start all generators. */
const withinSeconds = 50;

const scriptFile = 'script.js';

/** Fits a load to all generators' cores. Throws UserError for a search, or a load with credentials. */
export function clusterLoad(
  { scenario, generators, generator, durationSeconds }: ClusterRun,
  variant: RunnableVariant,
): Load {
  if (scenario.within !== undefined)
    throw usageError(
      `${scenario.name} searches for a rate, and in a cluster each load is one of a known rate or none: take another scenario`,
    );
  const load = fitVariantLoad(scenario, variant, {
    generatorCores: generators * generator.cores,
    exact: false,
    quick: false,
    ...present({ durationSeconds }),
  });
  const { headers = {} } = load;
  const shown = shownHeaders(headers);
  const secret = Object.keys(shown).find((header) => shown[header] !== headers[header]);
  if (secret !== undefined)
    throw usageError(
      `${variant.name}: manifests are read by many, and its load has the header ${secret}: leave it out with --variants`,
    );
  return load;
}

/** The ConfigMap with the script and the lists of pages of all variants. */
export async function scriptManifest({ run, scenario, namespace }: ClusterRun): Promise<Manifest> {
  const files = await filesMade(async (folder) => {
    await compileScript(path.join(folder, scriptFile));
    await writeMixFiles(
      scenario.variants.map((variant) => pageOf(scenario, variant)),
      folder,
    );
  });
  const metadata = {
    name: scriptName(run),
    namespace,
    labels: { 'bakeoff/part': 'script', 'bakeoff/run': runId(run) },
  };
  return configMap(metadata, Object.fromEntries(files.map(({ file, text }) => [file, text])));
}

function scriptName(run: string): string {
  return `bakeoff-script-${runId(run)}`;
}

/** A load divided among generators (TestRun k6.io/v1alpha1 of k6-operator v1.6.0). Throws UserError if it cannot be divided. */
export function loadManifests(
  clusterRun: ClusterRun,
  planned: PlannedVariant,
  origin: string,
  round: number,
) {
  const { run, scenario, generators, namespace, influx } = clusterRun;
  const { variant } = planned;
  // A spinning thread would exceed the container's CPU limit.
  const cpus = Array.from({ length: clusterRun.generator.cores }, (_, cpu) => cpu);
  const undivided = loadPlanFor(
    { run, scenario, cores: { serverCpus: cpus, generatorCpus: cpus } },
    { sides: [planned] },
    round,
    [{ url: origin + pathOfPage(planned.page) }],
  );
  const plan = dividedPlan(undivided, generators, { url: influx.url, database, withinSeconds });
  const name = variantName(scenario, variant, shortHash(`${run} ${round}`));
  const labels = { ...labelsOf(clusterRun, variant, 'load'), 'bakeoff/round': String(round) };
  const metadata = { name, namespace, labels };
  const planFile = 'load.json';
  const { imagePullSecrets, ...nodes } = placed(clusterRun.placement);
  const starter = {
    ...nodes,
    // A text there. None of them asks the cluster for anything.
    automountServiceAccountToken: 'false',
    metadata: { labels },
    securityContext: podSecurity,
    containerSecurityContext: containerSecurity,
  };
  const testRun = {
    parallelism: generators,
    script: { configMap: { name: scriptName(run), file: scriptFile } },
    arguments: `--out ${ownOutput(influx).out.join()}`,
    // The initializer has its labels, too.
    runner: {
      ...starter,
      ...present({ imagePullSecrets }),
      // Each on a node of its own. The operator's `separate` sees its own namespace only.
      affinity: { podAntiAffinity: required([ofGenerators, ofServers]) },
      image: clusterRun.image,
      resources: resourcesOf(clusterRun.generator),
      env: environment(plan, { name, key: planFile }, clusterRun),
    },
    starter,
  };
  const manifests = [
    configMap(metadata, { [planFile]: JSON.stringify(plan) }),
    { apiVersion: 'k6.io/v1alpha1', kind: 'TestRun', metadata, spec: testRun },
  ];
  return { plan, name, labels, manifests };
}

function environment(
  plan: LoadPlan,
  planAt: { name: string; key: string },
  { influx, influxSecret }: ClusterRun,
) {
  const secret = (key: string) => ({ secretKeyRef: { name: influxSecret, key } });
  const from: Record<string, object> = { [loadPlanVariable]: { configMapKeyRef: planAt } };
  if (influxSecret !== undefined) {
    from['K6_INFLUXDB_USERNAME'] = secret('username');
    from['K6_INFLUXDB_PASSWORD'] = secret('password');
  }
  return Object.entries({ ...ownVariables(plan), ...ownOutput(influx).env }).map(
    ([name, value]) => {
      const valueFrom = from[name];
      return valueFrom === undefined ? { name, value } : { name, valueFrom };
    },
  );
}
