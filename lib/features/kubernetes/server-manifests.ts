// The manifests of a variant's server.
import path from 'node:path';
import { usageError } from '../../errors.ts';
import { byName, present } from '../../present.ts';
import type { PlannedVariant } from '../../runner/plan.ts';
import type { ConfiguredServer, Page, Scenario } from '../../scenario/model.ts';
import { type RunnableVariant, isConfigured, isOwn, networkOf } from '../../scenario/variants.ts';
import { certificateArgs } from '../../servers/certificate.ts';
import { copyDocroot } from '../../servers/docroot.ts';
import { serverKinds, workersFor } from '../../servers/index.ts';
import { filesNeeded } from '../../servers/rights.ts';
import { servers, serverNames, anyServer, type ServerName } from '../../setup/servers.ts';
import {
  type ClusterRun,
  configMap,
  containerSecurity,
  filesMade,
  labelsOf,
  podSecurity,
  resourcesOf,
  runId,
  variantName,
} from './manifests.ts';
import { ofGenerators, ofOtherRuns, onlyOn, onOneHost, placed, required } from './placement.ts';

/** Versions of the servers that docker/Dockerfile installs. */
export const imageVersions: Readonly<Record<ServerName, string>> = byName(
  serverNames,
  (server) => servers[server].imageVersion,
);

const port = 8080;

/** Folders in the container. */
const places = {
  given: '/bakeoff/given',
  docroot: '/bakeoff/www',
  tls: '/bakeoff/tls',
  temp: '/tmp',
};
const certificate = `${places.tls}/localhost.pem`;

/**
 * Returns the manifests of a variant's server, and its origin by its Service's name or its pod's address.
 * @param node on which it must run; undefined: the cluster chooses
 * @throws UserError for own configs, pages, builds, commands, addresses and networks
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

/**
 * @param given the ConfigMap with the config and the pages
 * @param command that starts the server
 */
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
  // ConfigMaps are mounted as links to links, which a server would follow at each request.
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
  const only = `${name}: in a cluster only shipped configs of ${anyServer} run, and this is`;
  const refusal = (what: string) => usageError(`${only} ${what}: leave it out with --variants`);
  if (!isConfigured(server)) throw refusal(server.name === 'command' ? 'a command' : 'an address');
  if (isOwn(server) || server.config.some((file) => path.isAbsolute(file)))
    throw refusal('a config of your own');
  if (server.binary !== undefined) throw refusal('a build of your own');
  if (networkOf(scenario, variant) !== undefined)
    throw usageError(
      `${name}: has a network of its own, which a cluster cannot make: leave it out with --variants, or take another scenario`,
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
