// What a cluster does not tell.
import type { Templates } from '../../report/finding-words.ts';

export interface ClusterFinding {
  code: 'cpu-unread';
}

export const clusterTemplates: Templates<ClusterFinding> = {
  'cpu-unread': () =>
    'how much CPU time the servers use is not known: to read it from a pod, kubectl needs the right to create pods/exec, and the node cgroup v2',
};
