// The two lines above the table: what is measured, and on what.
import { wholeRounds, withRounds } from '../analysis/phases.ts';
import {
  counts,
  duration,
  enumeration,
  scaledBytesPerSecond,
  scaledTime,
  short,
  tolerance,
  whole,
  formatCpuList,
} from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import { present } from '../present.ts';
import type { Environment } from '../result/environment.ts';
import type { Result, VariantResult } from '../result/result.ts';
import type { LinkDirection, LoadProfile, NetworkSpec } from '../scenario/model.ts';
import { type Load, protocolName } from '../scenario/load.ts';

/** Contents of the heading, before or after a run. */
export interface RunHeading {
  scenario: string;
  load: string;
  /** The length of each variant's page, or the mean of its pages. */
  bodyBytes: readonly number[];
  /** The number of each variant's pages. */
  pages: readonly number[];
  /** "HTTP/2 over TLS", or "HTTP/1.1 and HTTP/2 over TLS". */
  protocol: string;
  network: string;
  rounds: number;
  seconds: number;
  estimated: boolean;
  /** The end of the range if verdicts may need more rounds. */
  atMost?: { rounds: number; seconds: number };
  /** The servers that bakeoff starts, with versions; '' without any. */
  server: string;
  /** The hosts of servers that run already. */
  addresses: readonly string[];
  /** The command before the servers start, without credentials. */
  prepare?: string;
  environment: Environment;
}

export function headingLines(heading: RunHeading): string[] {
  const { scenario, load, protocol, network, environment, prepare } = heading;
  const page = [sizesText(heading), protocol].filter(Boolean).join(' over ');
  const measured = [scenario, load, page];
  if (network !== '') measured.push(network);
  measured.push(lengthText(heading));
  const machine = [placesTexts(heading).join(', ')];
  if (environment.cluster === undefined) machine.push(environment.kernel, environment.cpuModel);
  const lines = [measured.join(' · '), machine.join(' · ')];
  if (prepare !== undefined) lines.push(`before the servers start, in each round: ${prepare}`);
  return lines;
}

/** "10 rounds, about 2 min", "4 to 10 rounds, about 1 min to 2 min". */
function lengthText({ rounds, seconds, atMost, estimated }: RunHeading): string {
  if (rounds === 0) return 'no rounds';
  const time = `${estimated ? 'about ' : ''}${duration(seconds)}`;
  if (atMost === undefined) return `${counts(rounds, 'round')}, ${time}`;
  return `${rounds} to ${atMost.rounds} rounds, ${time} to ${duration(atMost.seconds)}`;
}

function placesTexts({ server, addresses, environment }: RunHeading): string[] {
  const k6 = `k6 ${environment.versions['k6'] ?? ''}`.trim();
  const atAddresses = addresses.map((address) => `${address} where it runs`);
  if (server !== '' && sharesCores(environment))
    return [`${server} and ${k6} on ${coresText(environment.serverCpus)}, shared`, ...atAddresses];
  const places = [`${k6} on ${generatorPlace(environment)}`, ...atAddresses];
  if (server !== '') places.unshift(`${server} on ${serversPlace(environment)}`);
  return places;
}

/** The heading after a run, with the rounds and the time that it took. */
export function resultHeading(result: Result): RunHeading {
  const { environment, variants, startedAt, endedAt } = result;
  const run = variants.filter(({ server }) => server !== null);
  const named = (atAddress: boolean) => {
    const servers = run.filter(({ server }) => (server?.atAddress === true) === atAddress);
    return [...new Set(servers.map(serverText))];
  };
  const measured = withRounds(run);
  return {
    scenario: result.scenario,
    load: listed(run.map(variantLoadText)),
    bodyBytes: run.flatMap(({ load: { bodyBytes } }) =>
      typeof bodyBytes === 'number' ? [bodyBytes] : [],
    ),
    pages: run.map(({ load }) => load.pages ?? 1),
    protocol: listed(run.map(variantProtocol)),
    network: networkText(measured.map(({ network }) => network?.spec)),
    rounds: wholeRounds(variants),
    seconds: (Date.parse(endedAt) - Date.parse(startedAt)) / 1000,
    estimated: false,
    server: named(false).join(', '),
    addresses: named(true),
    ...present({ prepare: result.prepare }),
    environment,
  };
}

/** A link in words: "100 ms to the server, queue of 1,000 packets". */
export function linkText({ toServer, toClient }: NetworkSpec): string {
  if (directionText(toServer, '') === directionText(toClient, ''))
    return directionText(toServer, ' each way') || 'no delay';
  return [directionText(toServer, ' to the server'), directionText(toClient, ' to the client')]
    .filter(Boolean)
    .join('; ');
}

/** '' for a direction without delay or limits. */
function directionText(direction: LinkDirection, where: string): string {
  const { delayMs, queuePackets, bytesPerSecond, lossShare, lossBurstPackets } = direction;
  const limits: string[] = [];
  if (queuePackets !== undefined) limits.push(`queue of ${whole(queuePackets)} packets`);
  else if (delayMs > 0) limits.push('no queue limit');
  if (bytesPerSecond) limits.push(`${Number(((8 * bytesPerSecond) / 1e6).toPrecision(3))} Mbit/s`);
  if (lossShare) limits.push(`${tolerance(lossShare)} lost`);
  if (lossShare && lossBurstPackets !== undefined)
    limits.push(`${short(lossBurstPackets)} in a row`);
  if (delayMs === 0 && limits.length === 0) return '';
  const delay = delayMs === 0 ? 'no delay' : `${delayMs} ms`;
  return [delay + where, ...limits].join(', ');
}

/** The networks of a run's variants, undefined for loopback; '' if all are loopback. */
export function networkText(specs: readonly (NetworkSpec | undefined)[]): string {
  const texts = new Set(specs.map((spec) => (spec === undefined ? '' : linkText(spec))));
  return texts.size > 1 ? `${texts.size} different networks` : ([...texts][0] ?? '');
}

/** A command's version is unknown, and several may be of one program. */
function serverText({ name, series, server }: VariantResult): string {
  if (server?.version || server?.atAddress === true)
    return `${server.name} ${server.version}`.trim();
  return series ?? name;
}

function coresText(cpus: readonly number[]): string {
  return `${cpus.length === 1 ? 'core' : 'cores'} ${formatCpuList(cpus)}`;
}

/** The servers' cores, with the host and the link to it, or the cluster. */
export function serversPlace({ serverCpus, serverHost, cluster }: Environment): string {
  if (cluster !== undefined) {
    const { name, serverNode, serverSystem } = cluster;
    const system = serverSystem === '' ? '' : ` (${serverSystem})`;
    return `${counts(serverCpus.length, 'core')} of ${serverNode || 'a node'}${system} in the cluster ${name}`;
  }
  if (serverHost === undefined) return coresText(serverCpus);
  const { name, cpuModel, kernel, roundTripMs, bytesPerSecond } = serverHost;
  return `${coresText(serverCpus)} of ${name} (${cpuModel}, ${kernel}; round trip ${scaledTime(roundTripMs.p50)}, p99 ${scaledTime(roundTripMs.p99)}; ${scaledBytesPerSecond(bytesPerSecond)})`;
}

/** The generator's cores, hosts or nodes. */
export function generatorPlace(environment: Environment): string {
  const { generatorCpus, generatorHosts, cluster } = environment;
  if (cluster !== undefined) {
    const cores = counts(cluster.generatorCores, 'core');
    if (cluster.generators === 1) return `${cores} of another node`;
    return `${cluster.generators} other nodes with ${cores} each`;
  }
  if (generatorHosts === undefined) return coresText(generatorCpus);
  return enumeration(generatorHosts.map(({ name, cores }) => `${name} (${counts(cores, 'core')})`));
}

/** "612 B", "2 pages of 612 B on average". */
export function sizesText({ bodyBytes, pages }: RunHeading): string {
  const sizes = enumeration([...new Set(bodyBytes)].map((bytes) => `${whole(bytes)} B`));
  if (sizes === '' || Math.max(...pages) === 1) return sizes;
  return `${enumeration([...new Set(pages)].map(whole))} pages of ${sizes} on average`;
}

/** The article's command line, and what differs here. */
export function loadText(
  profile: Pick<LoadProfile, 'threads' | 'durationSeconds' | 'requests'>,
  load: Pick<Load, 'command' | 'threads' | 'durationSeconds' | 'requests' | 'arrivals'> &
    Pick<Load, 'searched' | 'together'> & { streams?: number },
): string {
  const { command, threads, durationSeconds, requests = 0, arrivals, streams, together } = load;
  const differences = [
    threads !== profile.threads && counts(threads, 'thread'),
    load.searched && `steps of ${durationSeconds} s at rates that are searched for`,
    !load.searched && durationSeconds !== profile.durationSeconds && `${durationSeconds} s`,
    requests > 0 && requests !== profile.requests && `${whole(requests)} requests`,
    together && `pages of ${streams} files`,
    arrivals === 'poisson' && 'Poisson arrivals',
  ].filter(Boolean);
  return differences.length === 0 ? command : `${command} (here ${differences.join(', ')})`;
}

export function variantLoadText({ load }: VariantResult): string {
  return loadText(load.asWritten ?? load, { command: '', ...load });
}

/** As it was spoken, or else as it was planned. */
export function variantProtocol({ load, phases }: VariantResult): string {
  const [first] = phases;
  return protocolName({ ...load, tls: first === undefined ? load['tls'] : first.tls });
}

/** Each text once; of more than two, the first and the number of the others. */
export function listed(texts: readonly string[]): string {
  const [first, second, ...more] = new Set(texts);
  if (second === undefined) return first ?? '';
  return more.length === 0 ? `${first} and ${second}` : `${first} and ${more.length + 1} others`;
}
