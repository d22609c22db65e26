// What a run in a cluster cannot know.
import type { Templates } from '../../report/finding-words.ts';

/** The CPU time of the servers. */
export interface ClusterFinding {
  code: 'cpu-unread';
}

export const clusterTemplates: Templates<ClusterFinding> = {
  'cpu-unread': () =>
    'how much CPU time the servers use is not known: to read it from a pod, kubectl needs the right to create pods/exec, and the node cgroup v2',
};
