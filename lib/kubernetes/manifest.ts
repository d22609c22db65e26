// The common parts of the manifests of servers and loads.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { filesBelow, inTemporaryFolder } from '../files.ts';
import type { Scenario } from '../scenario/model.ts';
import type { Influx } from '../store/index.ts';

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
export interface Resources {
  cores: number;
  memory: string;
}

/** The settings of a run for all of its manifests. */
export interface ClusterRun {
  run: string;
  scenario: Scenario;
  image: string;
  namespace: string | undefined;
  /** Of each server. */
  server: Resources;
  /** Of each generator. */
  generator: Resources;
  generators: number;
  /** As the cluster reaches it: for samples, and where generators meet. */
  influx: Influx;
  /** The Secret with its username and password; undefined: it needs none. */
  influxSecret: string | undefined;
  durationSeconds: number | undefined;
  /** The operator deletes what it made, logs too, once the load is over. */
  cleanup: boolean;
}

/** The image's user. */
const user = 1000;

/** No root, and none of its rights, as clusters' rules may demand. */
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

/** Equal requests and limits in whole cores: so a node may give the container cores of its own. */
export function resourcesOf({ cores, memory }: Resources): {
  requests: Record<string, string>;
  limits: Record<string, string>;
} {
  const both = { cpu: String(cores), memory };
  return { requests: both, limits: { ...both } };
}

/**
 * The text as a name of a Service (RFC 1035) or value of a label: without the characters that do not fit, and with a hash in their place.
 * @param most characters; Kubernetes takes 63
 */
export function dnsLabel(text: string, most = 63): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .replace(/^(?![a-z])/, 'n-');
  if (plain === text && plain.length <= most) return plain;
  const digits = shortHash(text);
  return `${plain.slice(0, most - digits.length - 1).replace(/-+$/, '')}-${digits}`;
}

export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Identifies a run in names and labels. */
export function runId(run: string): string {
  return shortHash(run);
}

/** The texts of the files that `make` puts into a temporary folder, by their paths in it, sorted. */
export async function filesMade(
  make: (folder: string) => Promise<unknown>,
): Promise<{ file: string; text: string }[]> {
  return inTemporaryFolder('bakeoff-k8s-', async (folder) => {
    await make(folder);
    return Promise.all(
      (await filesBelow(folder)).map(async (file) => ({
        file,
        text: await readFile(path.join(folder, file), 'utf8'),
      })),
    );
  });
}

const mostBytes = 1024 ** 2;

/** Throws UserError where it is larger than a cluster takes. */
export function configMap(metadata: Manifest['metadata'], data: Record<string, string>): ConfigMap {
  const bytes = Object.entries(data).reduce(
    (sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text),
    0,
  );
  if (bytes > mostBytes)
    throw new UserError(
      `${metadata.name}: its files are ${bytes} bytes, and a ConfigMap holds ${mostBytes}: take fewer or smaller pages`,
    );
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
}
