// The manifests of a run's loads, and what they have in common with those of its servers.
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
import type { Scenario } from '../../scenario/model.ts';
import { type RunnableVariant, fitVariantLoad, pageOf } from '../../scenario/variants.ts';
import { database, type Influx, ownOutput } from '../../influx/address.ts';
import { ofGenerators, ofServers, placed, required, type Placement } from './placement.ts';

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
  /** The database as seen from the cluster, for samples and for the generators' common start. */
  influx: Influx;
  /** The Secret with its username and password, if it needs them. */
  influxSecret: string | undefined;
  durationSeconds: number | undefined;
}

const user = 1000;

/** No root and no capabilities: clusters may demand that. */
export const podSecurity = {
  runAsNonRoot: true,
  runAsUser: user,
  runAsGroup: user,
  fsGroup: user,
  seccompProfile: { type: 'RuntimeDefault' },
};
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
};

/** Equal requests and limits may get exclusive cores. */
export function resourcesOf({ cores, memory }: Resources) {
  const both = { cpu: String(cores), memory };
  return { requests: both, limits: both };
}

/**
 * Returns a name for a Service (RFC 1035) or the value of a label. If characters had to be replaced, a hash is added.
 * @param most characters, at most 63
 */
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

/** Where the workflow of releases (release.yml) pushes the image: GitHub's container registry. */
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
export function filesMade(make: (folder: string) => Promise<unknown>) {
  return inTemporaryFolder('bakeoff-k8s-', async (folder) => {
    await make(folder);
    const textOf = (file: string) => readFile(path.join(folder, file), 'utf8');
    const files = await filesBelow(folder);
    return Promise.all(files.map(async (file) => ({ file, text: await textOf(file) })));
  });
}

export function configMap(metadata: Manifest['metadata'], data: Record<string, string>): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
}

/** @param id distinguishes runs, or rounds */
export function variantName(scenario: Scenario, { name }: RunnableVariant, id: string): string {
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

/** Time for the operator to start all generators. */
const withinSeconds = 50;

const scriptFile = 'script.js';

/** Returns the load of a variant for the cores of all generators. Throws UserError for a search, or for a load with credentials. */
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

/**
 * Returns a variant's load, divided among all generators (TestRun k6.io/v1alpha1 of k6-operator v1.6.0). Throws UserError if it cannot
 * be divided.
 */
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
