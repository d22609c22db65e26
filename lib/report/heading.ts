// The heading of a run: what is measured, and on what.
import { wholeRounds } from '../analysis/phases.ts';
import {
  counts,
  duration,
  enumeration,
  scaledBytesPerSecond,
  scaledTime,
  whole,
} from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import { formatCpuList } from '../machine/processors.ts';
import { present } from '../present.ts';
import { networksText } from './network.ts';
import type { Environment, Result, VariantResult } from '../result/result.ts';
import { type Load, protocolNames } from '../scenario/load.ts';
import type { LoadProfile } from '../scenario/model.ts';

/** Where servers and load generator are, as in Environment. */
type Where = Pick<
  Environment,
  | 'serverCpus'
  | 'serverHost'
  | 'generatorCpus'
  | 'generatorHosts'
  | 'cluster'
  | 'kernel'
  | 'cpuModel'
>;

/** What is known before the first round, for the two lines above the table. */
export interface Heading extends Where {
  scenario: string;
  /** As loadText. */
  load: string;
  /** Of each variant's page, or the mean of its pages. */
  bodyBytes: readonly number[];
  /** How many pages the variants have. */
  pages: readonly number[];
  /** The model's names, in words when there are several: "http/1.1 and h2". */
  protocol: string;
  /** As networksText. */
  network: string;
  rounds: number;
  /** An estimate before the run, what it took after it. */
  seconds: number;
  estimated: boolean;
  /** Before a run that may take more rounds than `rounds`, when its verdicts need them: what it comes to at most. */
  atMost?: { rounds: number; seconds: number };
  /** Those that bakeoff starts; '' of none. */
  server: string;
  /** What runs already, by its host. */
  addresses: readonly string[];
  k6: string;
}

/** Two lines: what is measured, and on what. */
export function headingLines(heading: Heading): string[] {
  const { server, addresses, k6, cluster, rounds, atMost } = heading;
  const time = `${heading.estimated ? 'about ' : ''}${duration(heading.seconds)}${atMost === undefined ? '' : ` to ${duration(atMost.seconds)}`}`;
  const serversAre = `${server} on ${serversPlace(heading)}`;
  const loadIs = `${k6} on ${generatorPlace(heading)}`;
  return [
    [
      heading.scenario,
      heading.load,
      [sizesText(heading), protocolNames(heading.protocol)]
        .filter((text) => text !== '')
        .join(' over '),
      ...(heading.network === '' ? [] : [heading.network]),
      `${rounds}${atMost === undefined ? '' : ` to ${atMost.rounds}`} ${rounds === 1 && atMost === undefined ? 'round' : 'rounds'}, ${time}`,
    ].join(' · '),
    cluster !== undefined
      ? `${serversAre}, ${loadIs}`
      : [
          [
            ...(server === ''
              ? [loadIs]
              : sharesCores(heading)
                ? [`${server} and ${k6} on ${coresText(heading.serverCpus)}, shared`]
                : [serversAre, loadIs]),
            ...addresses.map((address) => `${address} where it runs`),
          ].join(', '),
          heading.kernel,
          heading.cpuModel,
        ].join(' · '),
  ];
}

/** The servers' cores, and of which machine or cluster, and the way to it, unless they are this machine's. */
export function serversPlace({
  serverCpus,
  serverHost,
  cluster,
}: Pick<Where, 'serverCpus' | 'serverHost' | 'cluster'>): string {
  if (cluster !== undefined) {
    const { name, serverNode, serverSystem } = cluster;
    return `${counts(serverCpus.length, 'core')} of ${serverNode === '' ? 'a node' : serverNode}${serverSystem === '' ? '' : ` (${serverSystem})`} in the cluster ${name}`;
  }
  if (serverHost === undefined) return coresText(serverCpus);
  const {
    name,
    cpuModel,
    kernel,
    roundTripMs: { p50, p99 },
    bytesPerSecond,
  } = serverHost;
  return `${coresText(serverCpus)} of ${name} (${cpuModel}, ${kernel}; round trip ${scaledTime(p50)}, p99 ${scaledTime(p99)}; ${scaledBytesPerSecond(bytesPerSecond)})`;
}

/** The cores that make the load, or the machines or nodes that do. */
export function generatorPlace({
  generatorCpus,
  generatorHosts,
  cluster,
}: Pick<Where, 'generatorCpus' | 'generatorHosts' | 'cluster'>): string {
  if (cluster !== undefined) {
    const cores = counts(cluster.generatorCores, 'core');
    return cluster.generators === 1
      ? `${cores} of another node`
      : `${cluster.generators} other nodes with ${cores} each`;
  }
  return generatorHosts === undefined
    ? coresText(generatorCpus)
    : enumeration(generatorHosts.map(({ name, cores }) => `${name} (${counts(cores, 'core')})`));
}

/** Sizes are those of a page, or means of several. */
export function sizesText({ bodyBytes, pages }: Pick<Heading, 'bodyBytes' | 'pages'>): string {
  const sizes = enumeration([...new Set(bodyBytes)].map((bytes) => `${whole(bytes)} B`));
  const numbers = [...new Set(pages)];
  return numbers.some((count) => count > 1) && sizes !== ''
    ? `${enumeration(numbers.map(whole))} pages of ${sizes} on average`
    : sizes;
}

/** The article's command line, and what of it is different here. */
export function loadText(
  profile: Pick<LoadProfile, 'threads' | 'durationSeconds' | 'requests'>,
  load: Pick<
    Load,
    'command' | 'threads' | 'durationSeconds' | 'requests' | 'arrivals' | 'searched'
  >,
): string {
  const here = [
    ...(load.threads === profile.threads ? [] : [counts(load.threads, 'thread')]),
    ...(load.searched === true
      ? [`steps of ${load.durationSeconds} s at rates that are searched for`]
      : load.durationSeconds === profile.durationSeconds
        ? []
        : [`${load.durationSeconds} s`]),
    ...(load.requests === undefined || load.requests === profile.requests
      ? []
      : [`${whole(load.requests)} requests`]),
    ...(load.arrivals === 'poisson' ? ['Poisson arrivals'] : []),
  ];
  return here.length === 0 ? load.command : `${load.command} (here ${here.join(', ')})`;
}

/** The same of a variant of a result. */
export function variantLoadText({ load }: Pick<VariantResult, 'load'>): string {
  return loadText(load.asWritten ?? load, { command: '', ...load });
}

/** What stands above the table, with the rounds and the time that it came to. */
export function resultHeading(result: Result): Heading {
  const { environment, variants, startedAt, endedAt } = result;
  const run = variants.filter(({ server }) => server !== null);
  const named = (atAddress: boolean): string[] => [
    ...new Set(
      run
        .filter(({ server }) => (server?.atAddress === true) === atAddress)
        .map(({ server }) => `${server?.name ?? ''} ${server?.version ?? ''}`.trim()),
    ),
  ];
  return {
    scenario: result.scenario,
    load: listed(run.map(variantLoadText)),
    bodyBytes: run.flatMap(({ load: { bodyBytes } }) =>
      typeof bodyBytes === 'number' ? [bodyBytes] : [],
    ),
    pages: run.map(({ load }) => load.pages ?? 1),
    protocol: listed(run.map(({ load }) => load.protocol)),
    network: networksText(
      run.filter(({ rounds }) => rounds.length > 0).map(({ network }) => network?.spec),
    ),
    rounds: wholeRounds(variants),
    seconds: (Date.parse(endedAt) - Date.parse(startedAt)) / 1000,
    estimated: false,
    server: named(false).join(', '),
    addresses: named(true),
    ...whereRun(environment),
  };
}

/** What the load is made by, and where both sides are. */
export function whereRun(environment: Environment): Where & { k6: string } {
  const {
    versions,
    serverCpus,
    serverHost,
    generatorHosts,
    cluster,
    generatorCpus,
    kernel,
    cpuModel,
  } = environment;
  return {
    k6: `k6 ${versions['k6'] ?? ''}`.trim(),
    serverCpus,
    generatorCpus,
    kernel,
    cpuModel,
    ...present({ serverHost, generatorHosts, cluster }),
  };
}

/** Each text once; more than two are too many for a heading. */
export function listed(texts: readonly string[]): string {
  const [first, second, ...more] = new Set(texts);
  if (second === undefined) return first ?? '';
  return more.length === 0 ? `${first} and ${second}` : `${first} and ${more.length + 1} others`;
}

/** "core 1", "cores 4-7". */
export function coresText(cpus: readonly number[]): string {
  return `${cpus.length === 1 ? 'core' : 'cores'} ${formatCpuList(cpus)}`;
}
