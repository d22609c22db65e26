// Problems of pods, in the words of a person who runs a comparison.
import { causeLine } from '../process.ts';
import type { ClusterObject, Kubectl } from './kubectl.ts';

/** Reasons that do not pass by themselves. */
const fatal = new Set([
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
]);

/** A generator's name, from 1. */
export function instanceWords(instance: number): string {
  return `generator ${instance}`;
}

/** A pod's name. The operator names its jobs `<TestRun>-2`, `<TestRun>-initializer`, `<TestRun>-starter`. */
export function podWords({ metadata: { name, labels = {} } }: ClusterObject): string {
  if (labels['bakeoff/part'] === 'server')
    return `the server of ${labels['bakeoff/variant'] ?? name}`;
  const part = /-(\d+|initializer|starter)$/.exec(labels['job-name'] ?? '')?.[1];
  return part === undefined
    ? `the pod ${name}`
    : /^\d/.test(part)
      ? instanceWords(Number(part))
      : `the operator's ${part}`;
}

/** Why a pod does not run yet, and whether it never will; undefined where nothing is known to be wrong. */
export function podTrouble({
  status = {},
}: ClusterObject): { text: string; fatal: boolean } | undefined {
  for (const { image, state, lastState } of [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
  ]) {
    const { reason, message = '' } = state?.waiting ?? {};
    if (reason === undefined || !fatal.has(reason)) continue;
    const exit = lastState?.terminated;
    const what = /Image/.test(reason)
      ? `its image ${image} cannot be had (name it with --image)`
      : exit === undefined
        ? 'it does not start'
        : `it ended with code ${exit.exitCode}`;
    return {
      text: `${what}: ${reason}${message === '' ? '' : `: ${message.trim().split('\n')[0]}`}`,
      fatal: true,
    };
  }
  const unplaced = status.conditions?.find(
    ({ type, status: is }) => type === 'PodScheduled' && is === 'False',
  );
  return unplaced === undefined
    ? undefined
    : { text: `no node takes it: ${unplaced.message ?? unplaced.reason ?? ''}`, fatal: false };
}

/** How a pod ended, and k6's reason. */
export async function lastWords(kubectl: Kubectl, pod: ClusterObject): Promise<string> {
  const ended = pod.status?.containerStatuses?.find(({ state }) => state?.terminated !== undefined)
    ?.state?.terminated;
  const lines = (await kubectl.log(pod.metadata.name))
    .split('\n')
    .filter((line) => line.trim() !== '');
  const errors = lines.flatMap(
    (line) => /level=(?:error|fatal) msg=("(?:[^"\\]|\\.)*"|\S+)/.exec(line)?.[1] ?? [],
  );
  const how =
    ended === undefined
      ? 'it did not tell how it ended'
      : ended.exitCode === 0
        ? 'it ended with code 0'
        : `it ended with code ${ended.exitCode}${ended.reason === undefined || ended.reason === 'Error' ? '' : ` (${ended.reason})`}`;
  const said =
    errors[0] === undefined
      ? causeLine(lines)
      : errors[0].startsWith('"')
        ? unquoted(errors[0])
        : errors[0];
  return said === undefined
    ? `${how}, and said nothing`
    : `${how}: ${
        said
          .split('\n')[0]
          ?.replace(/\p{Cc}/gu, ' ')
          .slice(0, 300) ?? ''
      }`;
}

/** The value of a Go string. It is almost JSON; with \a, \v, \x1b or \U0001f600 it stays as written. */
function unquoted(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text.slice(1, -1);
  }
}
