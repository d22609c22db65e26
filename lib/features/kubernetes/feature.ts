import type { Feature } from '../../cli/feature.ts';
import { clusterTemplates } from './findings.ts';

/** A scenario as manifests for k6-operator, and its run by kubectl: docs/kubernetes.md. */
export const kubernetes: Feature = {
  commands: {
    k8s: {
      help: 'run a scenario on Kubernetes, or print its manifests',
      run: async (args, additions) => (await import('./command.ts')).k8sCommand(args, additions),
    },
  },
  templates: clusterTemplates,
};
