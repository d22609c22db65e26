// A variant's load in a cluster, as k6-operator's TestRun.
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { loadPlanVariable, type LoadPlan } from '../k6/load-plan.ts';
import { dividedPlan } from '../runner/generators.ts';
import { ownVariables, compileScript } from '../runner/k6.ts';
import { writePageFiles, loadPlanFor } from '../runner/k6-plan.ts';
import type { PlannedVariant } from '../runner/plan.ts';
import { fitVariantLoad, pageOf, type RunnableVariant } from '../scenario/variants.ts';
import { shownHeaders } from '../scenario/load/flags.ts';
import type { Load } from '../scenario/load.ts';
import { ownOutput } from '../store/k6-output.ts';
import {
  configMap,
  containerSecurity,
  filesMade,
  podSecurity,
  resourcesOf,
  runId,
  shortHash,
  type ClusterRun,
  type Manifest,
} from './manifest.ts';
import { labelsOf, variantName } from './server.ts';

/** The operator starts all generators one after the other; dividedPlan adds that to the longest time. */
const withinSeconds = 50;

const scriptFile = 'script.js';

/** The load of a variant, fitted to the cores of all generators together. Throws UserError for a search, or a load with credentials. */
export function loadHere(
  { scenario, generators, generator, durationSeconds }: ClusterRun,
  variant: RunnableVariant,
): Load {
  if (scenario.within !== undefined)
    throw new UserError(
      `${scenario.name} searches for a rate, and in a cluster each load is one of a known rate or none: take another scenario`,
      2,
    );
  const load = fitVariantLoad(scenario, variant, {
    generatorCores: generators * generator.cores,
    exact: false,
    quick: false,
    ...present({ durationSeconds }),
  });
  const secret = Object.entries(shownHeaders(load.headers ?? {})).find(
    ([header, value]) => value !== load.headers?.[header],
  )?.[0];
  if (secret !== undefined)
    throw new UserError(
      `${variant.name}: manifests are read by many, and its load has the header ${secret}: leave it out with --variants`,
      2,
    );
  return load;
}

/** The ConfigMap with the script and its lists of pages, of all variants. Throws UserError when it is too large. */
export async function scriptManifest({ run, scenario, namespace }: ClusterRun): Promise<Manifest> {
  const files = await filesMade(async (folder) => {
    await compileScript(join(folder, scriptFile));
    await writePageFiles(scenario, folder);
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
 * A variant's load, divided among all generators: its plan in a ConfigMap, and its TestRun (k6.io/v1alpha1, as of k6-operator v1.6.0),
 * with a name and labels of their own.
 * @param origin of the server
 * @throws UserError for a load that cannot be divided among so many
 */
export function loadManifests(
  clusterRun: ClusterRun,
  { variant, load }: PlannedVariant,
  origin: string,
  round: number,
): { plan: LoadPlan; name: string; labels: Record<string, string>; manifests: Manifest[] } {
  const { run, scenario, generators, namespace, influx } = clusterRun;
  // Shared cores, so that no thread spins: its container would soon be out of CPU time.
  const cpus = Array.from({ length: clusterRun.generator.cores }, (_, cpu) => cpu);
  const one = loadPlanFor(
    { run, scenario, cores: { serverCpus: cpus, generatorCpus: cpus } },
    { sides: [{ variant, load }] },
    round,
    [{ url: origin + pageOf(scenario, variant).path }],
  );
  const plan = dividedPlan(one, generators, {
    url: influx.url,
    database: influx.database,
    withinSeconds,
  });
  const name = variantName(scenario, variant, shortHash(`${run} ${round}`));
  const labels = { ...labelsOf(clusterRun, variant, 'load'), 'bakeoff/round': String(round) };
  const metadata = { name, namespace, labels };
  const planFile = 'load.json';
  const manifests = [
    configMap(metadata, { [planFile]: JSON.stringify(plan) }),
    {
      apiVersion: 'k6.io/v1alpha1',
      kind: 'TestRun',
      metadata,
      spec: {
        parallelism: generators,
        // Each on a node of its own.
        separate: true,
        script: { configMap: { name: scriptName(run), file: scriptFile } },
        arguments: ownOutput(influx)
          .out.map((out) => `--out ${out}`)
          .join(' '),
        ...(clusterRun.cleanup ? { cleanup: 'post' } : {}),
        runner: {
          image: clusterRun.image,
          // The initializer has it, too.
          metadata: { labels },
          resources: resourcesOf(clusterRun.generator),
          securityContext: podSecurity,
          containerSecurityContext: containerSecurity,
          env: environment(plan, { name, key: planFile }, clusterRun),
        },
        starter: { metadata: { labels } },
      },
    },
  ];
  return { plan, name, labels, manifests };
}

type Variable = { name: string; value: string } | { name: string; valueFrom: object };

function environment(
  plan: LoadPlan,
  planAt: { name: string; key: string },
  { influx, influxSecret }: ClusterRun,
): Variable[] {
  const { K6_INFLUXDB_USERNAME: _, K6_INFLUXDB_PASSWORD: __, ...settings } = ownOutput(influx).env;
  const secret = (variable: string, key: string): Variable[] =>
    influxSecret === undefined
      ? []
      : [{ name: variable, valueFrom: { secretKeyRef: { name: influxSecret, key } } }];
  return [
    ...Object.entries({ ...ownVariables(plan), ...settings }).map(([name, value]): Variable =>
      name === loadPlanVariable
        ? { name, valueFrom: { configMapKeyRef: planAt } }
        : { name, value },
    ),
    ...secret('K6_INFLUXDB_USERNAME', 'username'),
    ...secret('K6_INFLUXDB_PASSWORD', 'password'),
  ];
}
