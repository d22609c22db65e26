// Access to the cluster through the user's kubectl, and descriptions of what is wrong with pods.
import { printable, UserError } from '../../errors.ts';
import { check, list, open, text, type Form } from '../../form.ts';
import { run } from '../../process.ts';
import { causeLine } from '../../program-logs.ts';
import { shellWord } from '../../scenario/load/shell-words.ts';
import { find, thisMachine } from '../../setup/machine.ts';
import { typed } from '../../setup/paths.ts';
import type { Manifest } from './manifests.ts';

/** The fields of cluster objects that are read here. */
export interface ClusterObject {
  kind: string;
  metadata: {
    name: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    deletionTimestamp?: string;
  };
  /** Only events have it. */
  involvedObject?: { name: string };
  message?: string;
  spec?: { nodeName?: string };
  data?: Record<string, string>;
  status?: {
    stage?: string;
    phase?: string;
    podIP?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
    nodeInfo?: { kernelVersion: string; osImage: string; architecture: string };
  };
}

export interface ContainerStatus {
  restartCount: number;
  image: string;
  state?: ContainerState;
  lastState?: ContainerState;
}

interface ContainerState {
  waiting?: { reason?: string; message?: string };
  terminated?: { exitCode: number; reason?: string };
}

type Labels = Readonly<Record<string, string>>;

/** The same call may succeed a moment later. */
export class KubectlError extends UserError {}

const kinds = 'testruns.k6.io,deployments.apps,services,configmaps';

const requestSeconds = 30;
/** A pod gets 30 s to end. */
const removeSeconds = 90;

export type Kubectl = Awaited<ReturnType<typeof findKubectl>>;

/** Finds kubectl; all calls use the context and namespace that are current now. Throws UserError if kubectl is missing. */
export async function findKubectl(namespace: string | undefined) {
  const program = await find('kubectl', thisMachine());
  if (program === undefined) {
    throw new UserError(
      `there is no kubectl here: install it (https://kubernetes.io/docs/tasks/tools/), or leave --apply out and apply what ${typed('k8s')} NAME prints from where there is one`,
    );
  }
  const kubectl = outputOf.bind(null, program);
  const view = ['config', 'view', '--minify', '--output=json'];
  const { contexts } = answerOf<Config>(await kubectl(view), configForm, 'config view');
  const [current] = contexts;
  if (current === undefined)
    throw new KubectlError('kubectl has no current context: kubectl config use-context NAME');
  const { name: context, context: settings } = current;
  const inPlace = [
    `--context=${context}`,
    `--namespace=${namespace ?? settings.namespace ?? 'default'}`,
  ];
  const limited = [...inPlace, `--request-timeout=${requestSeconds}s`];
  const get = (...args: string[]) => kubectl(['get', ...args, '--output=json', ...limited]);
  const items = async (...args: string[]) => {
    const answer = await get(...args);
    const { items: all } = answerOf<ObjectList>(answer, listForm, `get ${args[0]}`);
    for (const { kind, metadata, spec } of all)
      for (const name of [metadata.name, spec?.nodeName]) requireName(kind, name);
    return all;
  };
  return {
    context,
    /** Objects of these kinds, such as `testruns.k6.io,pods`, with these labels. */
    list: (what: string, labels?: Labels) =>
      labels === undefined ? items(what) : items(what, `--selector=${selector(labels)}`),
    get: async (kind: string, name: string) =>
      answerOf<ClusterObject>(await get(kind, name), objectForm, `get ${kind}`),
    /** Returns the events of pods that the cluster refused to make; empty if this user may not read events. */
    refusals: () => items('events', '--field-selector=reason=FailedCreate').catch(() => []),
    async apply(manifests: readonly Manifest[]) {
      // Client-side apply stores all in an annotation, too small for large pages.
      await kubectl(
        ['apply', '--server-side', '--field-manager=bakeoff', '--filename=-', ...limited],
        manifests.map((manifest) => JSON.stringify(manifest)).join('\n'),
      );
    },
    /** Returns once they and their dependents are gone. */
    async remove(labels: Labels) {
      const options = `--ignore-not-found --cascade=foreground --timeout=${removeSeconds}s`;
      const which = [kinds, `--selector=${selector(labels)}`];
      await kubectl(['delete', ...which, ...options.split(' '), ...inPlace]);
    },
    /** The command line that removes them. */
    removal: (labels: Labels) =>
      ['kubectl delete', kinds, '-l', selector(labels), ...inPlace.map(shellWord)].join(' '),
    /**
     * Runs a command in the container of a pod's server and returns its output; '' if this user may not run commands there, or if it
     * fails.
     */
    exec: (pod: string, ...command: string[]) =>
      kubectl(['exec', pod, '--container=server', ...limited, '--', ...command]).catch(() => ''),
    /** Returns the end of a pod's log; '' without a log. */
    log: (pod: string) => kubectl(['logs', pod, '--tail=100', ...limited]).catch(() => ''),
  };
}

interface Config {
  contexts: { name: string; context: { namespace?: string } }[];
}

interface ObjectList {
  items: ClusterObject[];
}

const configForm = open({ contexts: list(open({ name: text, context: open({}) })) });
const objectForm = open({ metadata: open({ name: text }) });
const listForm = open({ items: list(objectForm) });

/** How much of an answer an error quotes. */
const mostQuoted = 80;

/**
 * Parses what kubectl answered to a call.
 * @param form has the fields without which the answer is of no use; T may have others
 * @throws KubectlError with the begin of another answer
 */
function answerOf<T>(answer: string, form: Form<unknown>, call: string): T {
  let problem = 'is not JSON';
  try {
    const value: unknown = JSON.parse(answer);
    const checked = check(form, value);
    if ('value' in checked) return value as T;
    problem = `is not what it answers for a cluster: ${checked.problem}`;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const begin = answer.trim().slice(0, mostQuoted);
  const quoted = begin === '' ? 'nothing' : JSON.stringify(begin);
  throw new KubectlError(`kubectl ${call}: answered ${quoted}, which ${problem}`);
}

/** A DNS-1123 name, as the API server requires for these objects. */
const objectName = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;

/** Throws UserError for an invalid name, because kubectl would read --server=… as a flag. */
function requireName(kind: string, name: string | undefined): void {
  if (name === undefined || objectName.test(name)) return;
  throw new UserError(
    `the cluster reports a ${kind} with the name ${JSON.stringify(name)}, which no object of a cluster can have: check which cluster answers (kubectl cluster-info)`,
  );
}

function selector(labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return pairs.join(',');
}

/** Remedies by kubectl's output; the first match counts. */
const reasons: readonly [RegExp, string][] = [
  [
    / is forbidden: User /,
    'your user of the cluster lacks a right (docs/kubernetes.md names all that are needed)',
  ],
  [
    /current-context (is not set|must exist)|The connection to the server .* was refused|Unable to connect to the server|no configuration has been provided|context .* does not exist/,
    'kubectl reaches no cluster: set KUBECONFIG, or kubectl config use-context NAME',
  ],
  [
    /doesn't have a resource type "testruns|no matches for kind "TestRun"/,
    'the cluster has no k6-operator (it knows no TestRun): install it (https://grafana.com/docs/k6/latest/set-up/set-up-distributed-k6/install-k6-operator/)',
  ],
];

/** kubectl's output. A signal does not end it. Throws KubectlError. */
async function outputOf(program: string, args: readonly string[], input = ''): Promise<string> {
  const seconds = requestSeconds + removeSeconds;
  const limit = { seconds, message: `kubectl ${args[0]}: did not end within ${seconds} s` };
  const { code, stdout, stderr } = await run({
    command: program,
    args,
    // KUBECONFIG may be relative.
    cwd: process.cwd(),
    input,
    limit,
  }).catch((error: Error) => {
    throw new KubectlError(error.message);
  });
  if (code === 0) return stdout;
  const lines = stderr.trim().split('\n');
  const reason = reasons.find(([pattern]) => lines.some((line) => pattern.test(line)))?.[1];
  // kubectl's own log lines begin with a letter and a date.
  const line =
    lines.findLast((text) => !/^[EWI]\d{4} /.test(text) && text !== '') ??
    `ended with ${code ?? 'a signal'}, and said nothing`;
  const began = reason === undefined ? '' : `${reason}: `;
  throw new KubectlError(`${began}kubectl ${args[0]}: ${line.replace(/^error: /, '')}`);
}

const stuck = new Set([
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
]);

/** A generator's name, from 1. */
export function describeInstance(instance: number): string {
  return `generator ${instance}`;
}

/** Names a pod in words. The operator's jobs are called `<TestRun>-2`, `<TestRun>-initializer` and `<TestRun>-starter`. */
export function describePod({ metadata: { name, labels = {} } }: ClusterObject): string {
  if (labels['bakeoff/part'] === 'server')
    return `the server of ${labels['bakeoff/variant'] ?? name}`;
  const [, instance, part] =
    /-(?:(\d+)|(initializer|starter))$/.exec(labels['job-name'] ?? '') ?? [];
  if (instance !== undefined) return describeInstance(Number(instance));
  return part === undefined ? `the pod ${name}` : `the operator's ${part}`;
}

/** Returns why a pod does not run yet, and whether it never will; undefined without a known problem. */
export function podTrouble({
  status: { initContainerStatuses = [], containerStatuses = [], conditions = [] } = {},
}: ClusterObject) {
  for (const { image, state, lastState } of [...initContainerStatuses, ...containerStatuses]) {
    const { reason, message } = state?.waiting ?? {};
    if (reason === undefined || !stuck.has(reason)) continue;
    const exit = lastState?.terminated;
    const ended = exit === undefined ? 'it does not start' : `it ended with code ${exit.exitCode}`;
    const what = /Image/.test(reason)
      ? `its image ${image} cannot be had (name it with --image)`
      : ended;
    const why = message ? `: ${message.trim().split('\n')[0]}` : '';
    // A busy node retries requests that time out, for example for a ConfigMap.
    const fatal = !message?.includes('timed out waiting for the condition');
    return { text: `${what}: ${reason}${why}`, fatal };
  }
  const unplaced = conditions.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  if (unplaced === undefined) return undefined;
  const text = `no node takes it (all servers share a node, each generator needs another, and no two runs share one): ${unplaced.message?.split(' preemption:')[0]} Add nodes, or ask for less with --variants, --generators and --server-cores`;
  return { text, fatal: false };
}

export async function describeEnd(kubectl: Kubectl, pod: ClusterObject): Promise<string> {
  const ended = pod.status?.containerStatuses?.flatMap(({ state }) => state?.terminated ?? [])[0];
  const log = await kubectl.log(pod.metadata.name);
  const lines = log.split('\n').filter((line) => line.trim() !== '');
  const errors = lines.flatMap(
    (line) => /level=(?:error|fatal) msg=("(?:[^"\\]|\\.)*"|\S+)/.exec(line)?.[1] ?? [],
  );
  let how = 'it did not tell how it ended';
  if (ended !== undefined) {
    const { exitCode, reason = 'Error' } = ended;
    how = `it ended with code ${exitCode}`;
    if (exitCode !== 0 && reason !== 'Error') how += ` (${reason})`;
  }
  const message = errors[0]?.replaceAll(/^"|"$|\\(?=["\\])|\\n[^]*/g, '') ?? causeLine(lines);
  if (message === undefined) return `${how}, and said nothing`;
  return `${how}: ${printable(message).slice(0, 300)}`;
}
