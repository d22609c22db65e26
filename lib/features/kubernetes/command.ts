// npm run k8s: prints a scenario's manifests for k6-operator, or runs it there.
import { stringify } from 'yaml';
import { onlyLook } from '../../analysis/looks.ts';
import { usageError, UserError } from '../../errors.ts';
import {
  type ClusterRun,
  type Manifest,
  clusterLoad,
  loadManifests,
  publishedImage,
  scriptManifest,
} from './manifests.ts';
import { imageVersions, serverManifests } from './server-manifests.ts';
import type { Placement } from './placement.ts';
import { byName, present, repeated } from '../../present.ts';
import { runName, defaultSameWithin, serversOf } from '../../runner/make-plan.ts';
import type { Additions } from '../../cli/feature.ts';
import { findScenario } from '../../cli/find-scenario.ts';
import { findVariants } from '../../scenario/catalogue.ts';
import { isRunnable } from '../../scenario/variants.ts';
import { typed } from '../../setup/paths.ts';
import { influxToken, parseInfluxUrl, type Influx } from '../../influx/address.ts';
import { coreFlags, readRunOptions, sinkOf, type RunOptions } from '../../cli/run-options.ts';
import { ownFlags } from '../../cli/scenario.ts';
import {
  noInstall,
  ofForm,
  onlyArgument,
  printHelp,
  readArguments,
  seconds,
  wholeNumber,
  type Flag,
  type Arguments,
} from '../../cli/arguments.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { rmdir } from 'node:fs/promises';
import { underSignals } from '../../signals.ts';
import { openCluster, requireIdleCluster } from './cluster.ts';
import type { ClusterFinding } from './findings.ts';
import { findKubectl, type Kubectl } from './kubectl.ts';
import type { ClusterOptions } from './load.ts';
import { sentencesOf } from '../../report/finding-words.ts';
import { readEnvironment } from '../../machine/cores.ts';
import { readProcessors } from '../../machine/processors.ts';
import { headingLines } from '../../report/heading.ts';
import type { Environment } from '../../result/environment.ts';
import { plannedVariant, type Plan, type Sink } from '../../runner/plan.ts';
import {
  checkResultsFolder,
  createRunFolder,
  explainFailure,
  type RunFolder,
} from '../../runner/results-folder.ts';
import { runRounds, settleSink, type RunOutcome } from '../../runner/run.ts';
import type { Variant } from '../../scenario/model.ts';
import {
  createRunProgress,
  headingOf,
  progressEvents,
  reportRun,
  say,
} from '../../cli/run-output.ts';

const applyFlags = {
  'influx-here': {
    value: 'URL',
    help: 'the same InfluxDB as this machine reaches it, http://user:password@… to leave the Secret unread (--influx)',
  },
  rounds: { value: 'N', help: 'rounds, each with every variant once (6)' },
  'max-time': coreFlags['max-time'],
  out: coreFlags.out,
  verbose: coreFlags.verbose,
  json: coreFlags.json,
} as const satisfies Record<string, Flag>;

const k8sFlags = {
  influx: {
    value: 'URL',
    help: 'the InfluxDB where samples go and generators meet, as the cluster reaches it',
  },
  'influx-secret': { value: 'NAME', help: 'the Secret with its username and password (none)' },
  variants: ownFlags.variants,
  duration: {
    value: '10s',
    help: "measured time of each load (the article's, or its count of requests)",
  },
  generators: {
    value: 'N',
    help: 'how many k6 make each load together, each on a node of its own (2)',
  },
  'generator-cores': { value: 'N', help: 'cores of each generator (1)' },
  'generator-memory': { value: '512Mi', help: 'memory of each generator (512Mi)' },
  'server-cores': { value: 'N', help: 'cores of each server (2)' },
  'server-memory': { value: '512Mi', help: 'memory of each server (512Mi)' },
  image: {
    value: 'IMAGE',
    help: "the image of docker/Dockerfile, as the cluster finds it (this release's)",
  },
  'image-pull-secret': { value: 'NAME', help: 'the Secret with which the cluster pulls it (none)' },
  'node-selector': {
    value: 'KEY=VALUE',
    repeated: true,
    help: 'a label of the nodes that servers and generators may run on (any node)',
  },
  toleration: {
    value: 'KEY=VALUE:EFFECT',
    repeated: true,
    help: 'a taint of these nodes that they tolerate; KEY:EFFECT with any value (none)',
  },
  namespace: { value: 'NS', help: "the namespace of all of it (kubectl's)" },
  apply: { help: 'apply it with kubectl, wait, and print the table; removes it in the end' },
  ...applyFlags,
  ...noInstall,
  help: coreFlags.help,
} as const satisfies Record<string, Flag>;

/** Above all cores of a node and spare nodes of a cluster. */
const most = 1000;
const readWhole = wholeNumber(most);
const readMemory = ofForm(
  /^[1-9]\d*(?:Mi|Gi)$/,
  'give a whole number with Mi or Gi, such as 512Mi',
);

const readNamespace = ofForm(
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
  'give the name of a namespace: a-z, 0-9 and -, at most 63 of them',
);
const readSecret = ofForm(
  /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/,
  'give the name of a Secret: a-z, 0-9, - and .',
);
const nameOfLabel = '[A-Za-z\\d](?:[\\w.-]{0,61}[A-Za-z\\d])?';
const keyOfLabel = `(?:[a-z\\d](?:[a-z\\d.-]{0,251}[a-z\\d])?/)?${nameOfLabel}`;
const selectorForm = new RegExp(`^(?<key>${keyOfLabel})=(?<value>(?:${nameOfLabel})?)$`);
const tolerationForm = new RegExp(
  `^(?<key>${keyOfLabel})(?:=(?<value>(?:${nameOfLabel})?))?:(?<effect>NoSchedule|PreferNoSchedule|NoExecute)$`,
);

/**
 * Returns the parts of each value of a repeated flag.
 * @throws UserError for a value of another form; `wanted` describes the form
 */
function readEach({ lists }: Arguments, flag: string, form: RegExp, wanted: string) {
  return (lists.get(flag) ?? []).map((text) => {
    ofForm(form, wanted)(`--${flag}`, text);
    return form.exec(text)?.groups as Record<'key' | 'value' | 'effect', string>;
  });
}

function readPlacement(parsed: Arguments): Placement {
  const labels = readEach(
    parsed,
    'node-selector',
    selectorForm,
    'give a label of a node, KEY=VALUE, such as disktype=ssd',
  );
  const twice = repeated(labels.map(({ key }) => key));
  if (twice !== undefined) throw usageError(`--node-selector ${twice}=… is given twice`);
  const taints = readEach(
    parsed,
    'toleration',
    tolerationForm,
    'give a taint, KEY=VALUE:EFFECT or KEY:EFFECT, such as dedicated=load:NoSchedule; an effect is NoSchedule, PreferNoSchedule or NoExecute',
  );
  return {
    imagePullSecret: parsed.read('image-pull-secret', readSecret),
    nodeSelector: Object.fromEntries(labels.map(({ key, value }) => [key, value])),
    tolerations: taints.map(({ key, value, effect }) =>
      value === undefined
        ? { key, operator: 'Exists', effect }
        : { key, operator: 'Equal', value, effect },
    ),
  };
}

const readImage = ofForm(/^[\w.:/@-]+$/, 'give an image such as registry.example/bakeoff:1');

/** Prints the manifests, or runs them. Returns 0; throws UserError and Interrupted. */
export async function k8sCommand(args: readonly string[], additions: Additions): Promise<number> {
  const parsed = readArguments(args, k8sFlags);
  const { positionals, flags, read } = parsed;
  const [name] = positionals;
  if (name === undefined || flags.has('help')) {
    printHelp([`${typed('k8s')} NAME|FILE.ts --influx URL [flags]`], k8sFlags);
    return name === undefined && !flags.has('help') ? 2 : 0;
  }
  onlyArgument(positionals, 'scenario');
  const whole = (flag: string, or: number) => read(flag, readWhole) ?? or;
  const memory = (flag: string) => read(flag, readMemory) ?? '512Mi';
  const influx = readInflux(flags.get('influx'));
  const scenario = await findScenario(name);
  const shown = findVariants(scenario, flags.get('variants')?.split(','));
  const image =
    read('image', readImage) ?? publishedImage(packageJson.repository.url, packageJson.version);
  const startedAt = new Date();
  const clusterRun: ClusterRun = {
    run: runName(scenario.name, startedAt),
    scenario,
    image,
    placement: readPlacement(parsed),
    namespace: read('namespace', readNamespace),
    server: { cores: whole('server-cores', 2), memory: memory('server-memory') },
    generator: { cores: whole('generator-cores', 1), memory: memory('generator-memory') },
    generators: whole('generators', 2),
    influx,
    influxSecret: read('influx-secret', readSecret),
    durationSeconds: read('duration', seconds(0.1)),
  };
  const variants = shown
    .filter(isRunnable)
    .map((variant) => plannedVariant(scenario, variant, clusterLoad(clusterRun, variant)));
  const loads: Manifest[] = [];
  const servers: Manifest[] = [];
  for (const planned of variants) {
    const { manifests, originAt } = await serverManifests(clusterRun, planned, 1);
    servers.push(...manifests);
    loads.push(...loadManifests(clusterRun, planned, originAt(), 1).manifests);
  }
  if (flags.has('apply'))
    return applied(
      { clusterRun, shown, variants, localInflux: flags.get('influx-here'), startedAt },
      readRunOptions(parsed, additions),
      additions.runParts,
    );
  const forApply = Object.keys(applyFlags).find((flag) => flags.has(flag));
  if (forApply !== undefined)
    throw usageError(`--${forApply} is for --apply: give both, or leave it out`);
  // kubectl reads YAML 1.1, in which an unquoted no or off is not a text. Servers come first; the loads are applied one after the other,
  // by their labels.
  const all = [...servers, await scriptManifest(clusterRun), ...loads];
  console.log(
    `# The run ${clusterRun.run}. How to apply it: docs/kubernetes.md.\n${all.map((manifest) => stringify(manifest, { version: '1.1', aliasDuplicateObjects: false, lineWidth: 0 })).join('---\n')}`,
  );
  return 0;
}

function readInflux(text: string | undefined): ReturnType<typeof parseInfluxUrl> {
  if (text === undefined)
    throw usageError(
      '--influx is missing: the samples of all generators go to one InfluxDB, such as --influx http://influxdb:8086',
    );
  const influx = parseInfluxUrl(text);
  if (influx.credentials !== null)
    throw usageError(
      '--influx: manifests are read by many, and have no passwords in them: put username and password into a Secret, and name it in --influx-secret',
    );
  return influx;
}

interface Applied extends Pick<ClusterOptions, 'clusterRun' | 'variants'> {
  shown: readonly Variant[];
  localInflux: string | undefined;
  startedAt: Date;
}

/** Even: two variants are first equally often. A verdict takes 4. */
const defaultRounds = 6;

/** Added to each load in estimates: the operator polls every 5 and 15 s, and the generators wait 3 s for each other. */
const overheadSeconds = 25;

const spaceBytes = 10e6;

async function applied(
  what: Applied,
  options: RunOptions,
  runParts: Additions['runParts'],
): Promise<number> {
  await checkResultsFolder(options.out, spaceBytes);
  return underSignals(
    'removing what was applied; again to end at once, which leaves it there',
    async (signal) => {
      const kubectl = await findKubectl(what.clusterRun.namespace);
      await requireIdleCluster(kubectl);
      const url = await localUrl(kubectl, what);
      const influx = parseInfluxUrl(url, influxToken(process.env));
      const sink = await openSink(url, what, runParts, signal);
      const folder = await createRunFolder(options.out, what.clusterRun.run);
      try {
        return await measured(what, options, { kubectl, influx, sink, signal, folder });
      } catch (error) {
        throw await explainFailure(folder, error);
      } finally {
        // Fails, and leaves the folder, if it has results.
        await rmdir(folder.name).catch(() => undefined);
        await sink?.close();
      }
    },
  );
}

/** Opens the database that keeps the figures of all runs, also those of this run; null if no feature can write to it. */
async function openSink(
  url: string,
  { clusterRun }: Applied,
  runParts: Additions['runParts'],
  signal: AbortSignal,
): Promise<Sink | null> {
  const planned = sinkOf(runParts, new Map([['influx', url]]));
  if (planned === undefined) return null;
  return planned.open({ tools: {}, cpus: [], signal }).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    throw new UserError(
      `${error.message}; --influx-here says where this machine reaches the InfluxDB of --influx ${clusterRun.influx.url}`,
      error.exitCode,
    );
  });
}

/** The address with the user of the flag or of the Secret. */
async function localUrl(
  kubectl: Kubectl,
  { localInflux, clusterRun: { influx, influxSecret } }: Applied,
): Promise<string> {
  const given = localInflux ?? influx.url;
  if (
    parseInfluxUrl(given, influxToken(process.env)).credentials !== null ||
    influxSecret === undefined
  )
    return given;
  const url = new URL(given);
  const { data = {} } = await kubectl.get('secrets', influxSecret);
  const value = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  url.username = encodeURIComponent(value('username'));
  url.password = encodeURIComponent(value('password'));
  return url.href;
}

async function measured(
  { clusterRun, shown, variants, startedAt }: Applied,
  options: RunOptions,
  place: {
    kubectl: Kubectl;
    influx: Influx;
    sink: Sink | null;
    signal: AbortSignal;
    folder: RunFolder;
  },
): Promise<number> {
  const { sink, signal, folder } = place;
  const { run, scenario, image, server, generator, generators } = clusterRun;
  const progress = createRunProgress(process.stderr);
  const cores = {
    serverCpus: Array.from({ length: server.cores }, (_, cpu) => cpu),
    generatorCpus: [],
    serverHost: 'the cluster',
    generators: { cores: generators * generator.cores, overheadSeconds },
  };
  const { rounds = defaultRounds, maxTimeSeconds } = options;
  const plan: Plan = {
    run,
    scenario,
    shown,
    variants,
    groups: variants.map((planned) => ({ sides: [planned] })),
    cores,
    rounds,
    looks: onlyLook(rounds),
    sameWithin: defaultSameWithin,
    quick: false,
    exact: false,
    ...present({ maxTimeSeconds }),
  };
  const { say: tell } = progress;
  const cluster = await openCluster({ ...place, clusterRun, variants, say: tell });
  let outcome: RunOutcome;
  try {
    const names = serversOf(variants.map(({ variant }) => variant.server));
    const servers = byName(names, (name) => imageVersions[name]);
    const { contributionsTo, templates } = options;
    const coreFindings: ClusterFinding[] = cluster.cpuIsKnown ? [] : [{ code: 'cpu-unread' }];
    // Facts of this machine and of the cluster.
    const environment: Environment = {
      ...readEnvironment(readProcessors(), cores, { image, ...sink?.versions, ...servers }),
      cluster: cluster.facts,
    };
    say(options, [
      ...headingLines(headingOf(plan, environment)),
      ...sentencesOf(coreFindings, 0, templates),
    ]);
    const context = {
      plan,
      folder: folder.path,
      sink,
      signal,
      contributionsTo,
      templates,
      coreFindings,
    };
    outcome = await runRounds({
      context,
      runGroup: cluster.runGroup,
      environment,
      events: progressEvents(plan, progress),
      startedAt,
    });
    outcome.result = await settleSink(context, outcome);
  } finally {
    progress.clear();
    await cluster.close();
  }
  return reportRun({ ...outcome, folder }, options);
}
