// Which cores the server and the generator get.
import { UserError } from '../errors.ts';
import { coreCount } from '../format.ts';
import type { Scenario } from '../scenario/model.ts';
import { formatCpuList } from './cpu-list.ts';
import { cpusOf, type PhysicalCore, type Processors } from './processors.ts';

export interface Cores {
  serverCpus: number[];
  generatorCpus: number[];
  /** Whose cores the server's are, as the person named it; absent: this machine's. */
  serverHost?: string;
  /**
   * Where the load is made: so many CPUs of each of these, as the person named them; absent: on `generatorCpus`. `overheadSeconds`: what
   * each load takes beside itself, where that is otherwise than with hosts.
   */
  generatorHosts?: { names: readonly string[]; coresEach: number; overheadSeconds?: number };
  /** How many files a process may open (the hard limit) where the server is, and where the load is made; absent: as here. */
  serverFiles?: FilesThere;
  generatorFiles?: FilesThere;
}

/** On a host, as the person named it. */
export interface FilesThere { host: string; most: number }

/** How many CPUs the load is made on. */
export function generatorCores({ generatorCpus, generatorHosts }: Pick<Cores, 'generatorCpus' | 'generatorHosts'>): number {
  return generatorHosts === undefined ? generatorCpus.length : generatorHosts.names.length * generatorHosts.coresEach;
}

/** Whether server and generator run on the same cores; if on some of them, then on all. */
export function sharesCores({ serverCpus, generatorCpus, serverHost }: { serverCpus: readonly number[]; generatorCpus: readonly number[]; serverHost?: unknown }): boolean {
  return serverHost === undefined && serverCpus.some((cpu) => generatorCpus.includes(cpu));
}

/** Cores whose capacities are within this share of each other are of one type: the best ones of a type are a little faster. */
const sameType = 0.9;

/**
 * What each side gets unless told; undefined where there are no two CPUs, or not the time of two.
 *
 * Whole physical cores, half and half: hardware threads of one core slow each other down. All of one NUMA node and one type,
 * the fastest of which there are two or more: over loopback every packet goes from one side's core to the other's, and from
 * node to node that takes as long as each start happens to have placed the memory; on a core of another type a worker's figures
 * depend on who got it. The generator has the lower half with the odd one, since most interrupts go to CPU 0, and the runner and
 * InfluxDB run there as well. A quota of CPU time is not exceeded: with less of it than these have, a side gets fewer CPUs.
 */
export function defaultCores(processors: Processors): Cores | undefined {
  const most = Math.floor(Math.min(processors.quota, cpusOf(processors.cores).length));
  if (most < 2) return undefined;
  const cores = twoOrMore(processors.cores);
  const half = Math.ceil(cores.length / 2);
  const serverMost = Math.max(1, Math.min(cpusOf(cores.slice(half)).length, Math.floor(most / 2)));
  return { serverCpus: upTo(serverMost, cores.slice(half)), generatorCpus: upTo(most - serverMost, cores.slice(0, half)) };
}

/** Of the largest group of like cores; without one, of all; and of a single core its threads, each as one. */
function twoOrMore(cores: readonly PhysicalCore[]): readonly PhysicalCore[] {
  const group = likeCores(cores).find(({ length }) => length > 1);
  if (group !== undefined) return group;
  return cores.length > 1 ? cores : cores.flatMap((core) => core.cpus.map((cpu) => ({ ...core, cpus: [cpu] })));
}

/** The cores by node and type: the fastest type first, then the largest group, then the order of CPUs. @param cores in that order */
function likeCores(cores: readonly PhysicalCore[]): PhysicalCore[][] {
  const types: PhysicalCore[][] = [];
  let fastest = Infinity;
  for (const core of cores.toSorted((a, b) => b.capacity - a.capacity)) {
    if (core.capacity < sameType * fastest) {
      types.push([]);
      fastest = core.capacity;
    }
    types.at(-1)?.push(core);
  }
  return types.flatMap((type) => {
    const inOrder = cores.filter((core) => type.includes(core));
    const nodes = [...new Set(inOrder.map(({ node }) => node))];
    return nodes.map((node) => inOrder.filter((core) => core.node === node)).sort((a, b) => b.length - a.length);
  });
}

/** At most so many CPUs of the cores, ascending: one of each core before the second of any. */
function upTo(most: number, cores: readonly PhysicalCore[]): number[] {
  const threads = Math.max(...cores.map(({ cpus }) => cpus.length));
  const inTurn = Array.from({ length: threads }, (_, thread) => cores.flatMap(({ cpus }) => cpus.slice(thread, thread + 1))).flat();
  return inTurn.slice(0, most).sort((a, b) => a - b);
}

/**
 * Divides the cores: as told, or as defaultCores. When one side is told, the other gets like cores of which it has none, on the
 * same node where there are some. A scenario with `sharedCores` gives both all of them unless told, and they may be told the
 * same ones.
 * @throws UserError on an overlap (of a scenario with `sharedCores`: on one in part), on cores that are not there or not
 * allowed, and where not two can run at once
 */
export function divideCores(
  processors: Processors, asked: { server?: readonly number[] | undefined; generator?: readonly number[] | undefined },
  { sharedCores }: Pick<Scenario, 'sharedCores'> = {},
): Cores {
  const allowed = cpusOf(processors.cores);
  requireCpus(allowed, asked.server, '--server-cpus');
  requireCpus(allowed, asked.generator, '--generator-cpus');
  const shared = asked.server?.filter((cpu) => asked.generator?.includes(cpu)) ?? [];
  const bothSame = asked.server?.join() === asked.generator?.join();
  if (sharedCores && bothSame) {
    if (processors.quota < 1) throw tooLittle(processors, 1);
    const cpus = asked.server ?? upTo(Math.floor(processors.quota), processors.cores);
    return { serverCpus: [...cpus], generatorCpus: [...cpus] };
  }
  if (shared.length > 0) {
    const inPart = sharedCores ? 'both the same ones, or each its own' : 'each its own';
    throw new UserError(`--server-cpus and --generator-cpus share core ${formatCpuList(shared)}: give ${inPart}`, 2);
  }
  const usual = defaultCores(processors);
  if (usual === undefined) throw tooLittle(processors, 2);
  const serverCpus = asked.server ?? (asked.generator === undefined ? usual.serverCpus : besides(processors, asked.generator));
  const generatorCpus = asked.generator ?? (asked.server === undefined ? usual.generatorCpus : besides(processors, asked.server));
  if (serverCpus.length === 0) throw new UserError('--generator-cpus leaves no core for the server: name fewer', 2);
  if (generatorCpus.length === 0) throw new UserError('--server-cpus leaves no core for the generator: name fewer', 2);
  return { serverCpus: [...serverCpus], generatorCpus: [...generatorCpus] };
}

/**
 * The cores of a run whose servers are on another host: as told, or all that may be used.
 * @throws UserError for cores that are not there or not allowed
 */
export function coresOfTwo(
  here: Processors, there: { name: string; processors: Processors; files: number }, asked: { server?: readonly number[] | undefined; generator?: readonly number[] | undefined },
): Cores {
  for (const [{ cores }, cpus, flag] of [[there.processors, asked.server, `--server-cpus on ${there.name}`], [here, asked.generator, '--generator-cpus']] as const) requireCpus(cpusOf(cores), cpus, flag);
  const most = ({ cores, quota }: Processors): number[] => upTo(Math.max(1, Math.floor(Math.min(quota, cpusOf(cores).length))), cores);
  return { serverCpus: [...asked.server ?? most(there.processors)], generatorCpus: [...asked.generator ?? most(here)], serverHost: there.name, serverFiles: { host: there.name, most: there.files } };
}

function requireCpus(allowed: readonly number[], cpus: readonly number[] | undefined, flag: string): void {
  const missing = cpus?.filter((cpu) => !allowed.includes(cpu)) ?? [];
  if (missing.length > 0) throw new UserError(`${flag}: core ${formatCpuList(missing)} is not there or not allowed; there are ${formatCpuList(allowed)}`, 2);
}

/** What is left for one side when the other has `taken`: threads of the other's cores only where nothing else is left. */
function besides({ cores, quota }: Processors, taken: readonly number[]): number[] {
  const has = ({ cpus }: PhysicalCore): boolean => cpus.some((cpu) => taken.includes(cpu));
  const near = new Set(cores.filter(has).map(({ node }) => node));
  const groups = likeCores(cores.filter((core) => !has(core)));
  const group = groups.find(([core]) => near.has((core as PhysicalCore).node)) ?? groups[0];
  const most = Math.max(1, Math.floor(quota - taken.length));
  return group === undefined ? cpusOf(cores).filter((cpu) => !taken.includes(cpu)).slice(0, most) : upTo(most, group);
}

const quotaHelp = 'give it more (docker: --cpus, Kubernetes: limits.cpu, systemd: CPUQuota)';

function tooLittle({ cores, quota }: Processors, needed: number): UserError {
  if (quota < needed) {
    return new UserError(`a comparison needs the CPU time of ${coreCount(needed)}, and a quota allows that of ${coreCount(quota)}: ${quotaHelp}`);
  }
  return new UserError(`a comparison needs 2 cores, one for the server and one for the generator; only core ${formatCpuList(cpusOf(cores))} is allowed here`);
}

/** What a person has to know of these cores, a line each: what makes figures depend on more than what is compared. */
export function coreNotes({ cores, quota }: Processors, { serverCpus: given, generatorCpus, serverHost }: Cores): string[] {
  const notes: string[] = [];
  const serverCpus = serverHost === undefined ? given : [];
  const sideOf = (cpu: number): number => 2 * Number(serverCpus.includes(cpu)) + Number(generatorCpus.includes(cpu));
  const split = cores.filter(({ cpus }) => new Set(cpus.map(sideOf).filter((side) => side > 0)).size > 1).map(({ cpus }) => formatCpuList(cpus));
  if (split.length > 0) {
    const remedy = cores.length === 1 ? 'there is no other core here' : 'give each side whole ones (--server-cpus, --generator-cpus)';
    notes.push(`server and generator are on threads of the same physical core (${split.join(' and ')}) and slow each other down: ${remedy}`);
  }
  const used = new Set([...serverCpus, ...generatorCpus]).size;
  const allowed = cpusOf(cores).length;
  if (quota < used) {
    notes.push(`a quota allows the CPU time of ${coreCount(quota)}, and server and generator are on ${used}: they are stopped whenever it is used up; name fewer (--server-cpus, --generator-cpus), or ${quotaHelp}`);
  } else if (quota < allowed) {
    notes.push(`a quota allows the CPU time of ${coreCount(quota)} of the ${allowed} that are here, so server and generator are on ${used}; to use more, ${quotaHelp}`);
  }
  return notes;
}
