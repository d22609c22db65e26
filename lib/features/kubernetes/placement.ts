// On which nodes the pods of a run may be: as the user says, and never on a node with another run.
import { present } from '../../present.ts';

/** On which nodes pods may run, and whose Secret they pull their image with. */
export interface Placement {
  imagePullSecret?: string | undefined;
  /** Labels that a node must have. */
  nodeSelector: Readonly<Record<string, string>>;
  tolerations: readonly Toleration[];
}

/** A pod's toleration of a node's taint. */
interface Toleration {
  key: string;
  operator: 'Equal' | 'Exists';
  value?: string;
  effect: string;
}

/** The parts of a pod, or of a TestRun's, that say where it runs. */
export function placed({ imagePullSecret, nodeSelector, tolerations }: Placement) {
  const secrets = imagePullSecret === undefined ? undefined : [{ name: imagePullSecret }];
  return present({
    imagePullSecrets: secrets,
    nodeSelector: Object.keys(nodeSelector).length === 0 ? undefined : nodeSelector,
    tolerations: tolerations.length === 0 ? undefined : tolerations,
  });
}

/** k6-operator's labels of generators. */
const generators = { app: 'k6', runner: 'true' };

export const required = (terms: object) => ({
  requiredDuringSchedulingIgnoredDuringExecution: terms,
});

export const onlyOn = (node: string) => ({
  nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
});

export function onOneHost(labelSelector: object): object {
  return { labelSelector, topologyKey: 'kubernetes.io/hostname' };
}

const everyNamespace = { namespaceSelector: {} };

/** Generators, also of other runs. */
export const ofGenerators = { ...onOneHost({ matchLabels: generators }), ...everyNamespace };

/** Servers, also of other runs. */
export const ofServers = {
  ...onOneHost({ matchLabels: { 'bakeoff/part': 'server' } }),
  ...everyNamespace,
};

/** Servers of runs with another id than this one. */
export function ofOtherRuns(id: string): object {
  const matchExpressions = [
    { key: 'bakeoff/part', operator: 'In', values: ['server'] },
    { key: 'bakeoff/run', operator: 'NotIn', values: [id] },
  ];
  return { ...onOneHost({ matchExpressions }), ...everyNamespace };
}
