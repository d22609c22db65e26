// A variant's server in a cluster: its config and pages, the Deployment that runs it, and its Service.
import path from 'node:path';
import { UserError } from '../errors.ts';
import type { PlannedVariant } from '../runner/plan.ts';
import {
  isConfigured,
  isOwn,
  networkOf,
  pageOf,
  type RunnableVariant,
} from '../scenario/variants.ts';
import type { ConfiguredServer, Page, Scenario, ServerName } from '../scenario/model.ts';
import { certificateArgs } from '../servers/certificate.ts';
import { copyDocroot } from '../servers/docroot.ts';
import { filesNeeded } from '../servers/rights.ts';
import { composeFor, workersFor, type Build } from '../servers/index.ts';
import {
  configMap,
  containerSecurity,
  dnsLabel,
  filesMade,
  podSecurity,
  resourcesOf,
  runId,
  type ClusterRun,
  type Manifest,
} from './manifest.ts';

/** The servers of the project's image, which docker/Dockerfile installs. */
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

/** k6-operator's labels of its generators, which must not be on a server's node. */
const generators = { app: 'k6', runner: 'true' };

/** A name for an object of one variant. @param id distinguishes runs, or rounds */
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

/**
 * The manifests of a variant's server, and its origin in the cluster. Throws UserError for own configs, pages, builds, commands,
 * addresses and networks.
 */
export async function serverManifests(
  clusterRun: ClusterRun,
  { variant, load }: PlannedVariant,
  round: number,
): Promise<{ manifests: Manifest[]; origin: string }> {
  const { run, scenario, image, namespace, server: resources } = clusterRun;
  const spec = shippedServer(scenario, variant);
  const page = pageOf(scenario, variant);
  const name = variantName(scenario, variant, runId(run));
  const labels = labelsOf(clusterRun, variant, 'server');
  const metadata = { name, namespace, labels };
  // No more: a node's limit is not known here.
  const limit = filesNeeded(spec.fileLimit, load.connections);
  const build: Build = { version: imageVersions[spec.name], answer: '' };
  const config = await composeFor(
    spec,
    {
      address: '0.0.0.0',
      port,
      workers: workersFor(spec, resources.cores, false),
      fileLimit: limit,
      docroot: places.docroot,
      temp: places.temp,
      certificateFile: () => Promise.resolve(certificate),
    },
    build,
  );
  const pages = await pagesOf(page, variant.name);
  const files = [
    { key: config.fileName, path: config.fileName, text: config.text },
    ...pages.map(({ file, text }, index) => ({ key: `page-${index + 1}`, path: file, text })),
  ];
  const container = {
    image,
    securityContext: { ...containerSecurity, readOnlyRootFilesystem: true },
    resources: resourcesOf(resources),
  };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      replicas: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: labels },
      template: {
        // A change starts the server anew.
        metadata: { labels, annotations: { 'bakeoff/round': String(round) } },
        spec: {
          automountServiceAccountToken: false,
          securityContext: podSecurity,
          affinity: {
            // All servers on one node, without generators.
            podAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                onOneHost({ 'bakeoff/part': 'server', 'bakeoff/run': runId(run) }),
              ],
            },
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [onOneHost(generators)],
            },
          },
          initContainers: [
            // A ConfigMap mounts links to links, which a server would follow at each request.
            {
              ...container,
              name: 'pages',
              command: ['cp', '-rL', `${places.given}/www/.`, places.docroot],
              volumeMounts: [mount('given', true), mount('docroot')],
            },
            ...(config.tls
              ? [
                  {
                    ...container,
                    name: 'certificate',
                    command: ['openssl', ...certificateArgs(certificate)],
                    volumeMounts: [mount('tls'), mount('temp')],
                  },
                ]
              : []),
          ],
          containers: [
            {
              ...container,
              name: 'server',
              command: [
                'prlimit',
                `--nofile=${limit}:${limit}`,
                '--',
                spec.name,
                ...config.args(`${places.given}/${config.fileName}`),
              ],
              ports: [{ containerPort: port }],
              // No probes once it is up.
              startupProbe: { tcpSocket: { port }, periodSeconds: 1, failureThreshold: 60 },
              volumeMounts: [
                mount('given', true),
                mount('docroot', true),
                ...(config.tls ? [mount('tls', true)] : []),
                mount('temp'),
              ],
            },
          ],
          // A container's first process may ignore the signal.
          terminationGracePeriodSeconds: 5,
          volumes: [
            {
              name: 'given',
              configMap: { name, items: files.map(({ key, path: file }) => ({ key, path: file })) },
            },
            ...(config.tls ? ['docroot', 'tls', 'temp'] : ['docroot', 'temp']).map((volume) => ({
              name: volume,
              emptyDir: {},
            })),
          ],
        },
      },
    },
  };
  // Without a cluster IP the load goes to the pod, not through a proxy.
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { clusterIP: 'None', selector: labels, ports: [{ port }] },
  };
  const given = configMap(metadata, Object.fromEntries(files.map(({ key, text }) => [key, text])));
  return {
    manifests: [given, deployment, service],
    origin: `${config.tls ? 'https' : 'http'}://${name}:${port}`,
  };
}

function onOneHost(matchLabels: Record<string, string>): object {
  return { labelSelector: { matchLabels }, topologyKey: 'kubernetes.io/hostname' };
}

function mount(name: keyof typeof places, readOnly = false): object {
  return { name, mountPath: places[name], ...(readOnly ? { readOnly } : {}) };
}

function shippedServer(scenario: Scenario, variant: RunnableVariant): ConfiguredServer {
  const { name, server } = variant;
  const only = `${name}: in a cluster only shipped configs of nginx, h2o and nghttpd run`;
  if (!isConfigured(server))
    throw new UserError(
      `${only}, and this is ${server.name === 'command' ? 'a command' : 'an address'}: leave it out with --variants`,
      2,
    );
  const own =
    isOwn(server) || server.config.some((file) => path.isAbsolute(file))
      ? 'config'
      : server.binary !== undefined
        ? 'build'
        : undefined;
  if (own !== undefined)
    throw new UserError(
      `${only}, and this is a ${own} of your own: leave it out with --variants`,
      2,
    );
  if (networkOf(scenario, variant) !== undefined)
    throw new UserError(
      `${name}: has a network of its own, and a cluster has its one: leave it out with --variants, or take another scenario`,
      2,
    );
  return server;
}

/** The files of the page's docroot, in www/. Throws UserError for a person's own docroot. */
async function pagesOf(
  { docroot }: Page,
  variant: string,
): Promise<{ file: string; text: string }[]> {
  if (docroot === undefined || path.isAbsolute(docroot))
    throw new UserError(
      `${variant}: in a cluster only shipped pages are served: leave it out with --variants`,
      2,
    );
  return filesMade((folder) => copyDocroot(docroot, path.join(folder, 'www')));
}
