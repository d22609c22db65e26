// The cores of server and generator, and the machine's facts in a result.
import os from 'node:os';
import packageJson from '../../package.json' with { type: 'json' };
import { groupedBy } from '../analysis/statistics.ts';
import { UserError, usageError } from '../errors.ts';
import { coreCount, formatCpuList } from '../format.ts';
import { textOf } from '../files.ts';
import type { Environment } from '../result/environment.ts';
import type { Finding } from '../result/finding.ts';
import type { Scenario } from '../scenario/model.ts';
import { cpusOf, type PhysicalCore, type Processors } from './processors.ts';

export interface Cores {
  serverCpus: number[];
  generatorCpus: number[];
  /** The host of the server's cores, as the user named it; absent: this machine. */
  serverHost?: string;
  /** In a cluster: the cores of all generators, instead of `generatorCpus`, and the seconds that a load takes beyond its own time. */
  generators?: { cores: number; overheadSeconds: number };
  /** The hard limit of open files on the server's host; absent: this machine's. */
  serverFiles?: { host: string; most: number };
}

export function generatorCores(cores: Pick<Cores, 'generatorCpus' | 'generators'>): number {
  return cores.generators?.cores ?? cores.generatorCpus.length;
}

/** Returns whether server and generator run on the same cores. They share all cores or none. */
export function sharesCores(
  cores: Pick<Cores, 'serverCpus' | 'generatorCpus'> & { serverHost?: unknown },
): boolean {
  const { serverCpus, generatorCpus, serverHost } = cores;
  return serverHost === undefined && serverCpus.some((cpu) => generatorCpus.includes(cpu));
}

/** Cores of the same type may differ by this share: the best are a little faster. */
const sameType = 0.9;

/**
 * Returns the default cores of each side; undefined if there are fewer than two CPUs, or a CPU quota below two. Each side gets half of the
 * fastest physical cores of one NUMA node and one type. The generator has the lower half, and the odd core, because most interrupts go to
 * CPU 0.
 */
export function defaultCores(processors: Processors): Cores | undefined {
  const most = Math.floor(Math.min(processors.quota, cpusOf(processors.cores).length));
  if (most < 2) return undefined;
  const cores = twoOrMore(processors.cores);
  const half = Math.ceil(cores.length / 2);
  const serverMost = Math.max(1, Math.min(cpusOf(cores.slice(half)).length, Math.floor(most / 2)));
  return {
    serverCpus: upTo(serverMost, cores.slice(half)),
    generatorCpus: upTo(most - serverMost, cores.slice(0, half)),
  };
}

/** The first group of like cores, otherwise all cores; of a single core, its threads. */
function twoOrMore(cores: readonly PhysicalCore[]): readonly PhysicalCore[] {
  const group = likeCores(cores).find(({ length }) => length > 1);
  if (group !== undefined) return group;
  if (cores.length > 1) return cores;
  return cores.flatMap((core) => core.cpus.map((cpu) => ({ ...core, cpus: [cpu] })));
}

/** Groups cores by node and type, sorted by speed of the type, then size of the group, then CPU number. */
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
    const nodes = groupedBy(inOrder, ({ node }) => String(node));
    return [...nodes.values()].sort((a, b) => b.length - a.length);
  });
}

/** Returns at most that many CPUs, ascending: the first one of each core before the second of any. */
function upTo(most: number, cores: readonly PhysicalCore[]): number[] {
  const threads = Math.max(...cores.map(({ cpus }) => cpus.length));
  const inTurn: number[] = [];
  for (let thread = 0; thread < threads; thread++)
    for (const { cpus } of cores) inTurn.push(...cpus.slice(thread, thread + 1));
  return inTurn.slice(0, most).sort((a, b) => a - b);
}

/** Returns as many CPUs as a quota allows, at least one; whole cores come first. */
export function usableCpus({ cores, quota }: Processors): number[] {
  return upTo(Math.max(1, Math.floor(quota)), cores);
}

/** The cores that the flags name. */
export type AskedCores = Partial<Record<'server' | 'generator', readonly number[] | undefined>>;

/**
 * Divides the cores as asked, or as defaultCores does. If one side is asked for, the other gets similar cores of the same node if possible.
 * With `sharedCores`, both sides get all cores unless asked otherwise.
 * @throws UserError if sides overlap (with `sharedCores`: in part), for missing cores, or for fewer than two CPUs
 */
export function divideCores(
  processors: Processors,
  asked: AskedCores,
  { sharedCores }: Pick<Scenario, 'sharedCores'> = {},
): Cores {
  const { server, generator } = asked;
  const allowed = cpusOf(processors.cores);
  requireCpus(allowed, server, '--server-cpus');
  requireCpus(allowed, generator, '--generator-cpus');
  if (sharedCores && server?.join() === generator?.join()) {
    if (processors.quota < 1) throw tooLittle(processors, 1);
    const cpus = server ?? usableCpus(processors);
    return { serverCpus: [...cpus], generatorCpus: [...cpus] };
  }
  const shared = server?.filter((cpu) => generator?.includes(cpu)) ?? [];
  if (shared.length > 0)
    throw usageError(
      `--server-cpus and --generator-cpus share core ${formatCpuList(shared)}: give ${sharedCores ? 'both the same ones, or ' : ''}each its own`,
    );
  const usual = defaultCores(processors);
  if (usual === undefined) throw tooLittle(processors, 2);
  const serverCpus = server ?? (generator ? besides(processors, generator) : usual.serverCpus);
  const generatorCpus = generator ?? (server ? besides(processors, server) : usual.generatorCpus);
  if (serverCpus.length === 0 || generatorCpus.length === 0)
    throw usageError(
      `${generator ? '--generator-cpus leaves no core for the server' : '--server-cpus leaves no core for the generator'}: name fewer`,
    );
  return { serverCpus: [...serverCpus], generatorCpus: [...generatorCpus] };
}

/** Throws UserError (exit code 2) for cores that this process may not use. @param flag that names the cores */
export function requireCpus(
  allowed: readonly number[],
  cpus: readonly number[] | undefined,
  flag: string,
): void {
  const missing = cpus?.filter((cpu) => !allowed.includes(cpu)) ?? [];
  if (missing.length > 0)
    throw usageError(
      `${flag}: core ${formatCpuList(missing)} is not there or not allowed; there are ${formatCpuList(allowed)}`,
    );
}

/** Returns the CPUs for one side, with threads of the other side's cores only if nothing else is left. */
function besides({ cores, quota }: Processors, taken: readonly number[]): number[] {
  const has = ({ cpus }: PhysicalCore) => cpus.some((cpu) => taken.includes(cpu));
  const near = new Set(cores.filter(has).map(({ node }) => node));
  const groups = likeCores(cores.filter((core) => !has(core)));
  const group = groups.find(([core]) => core !== undefined && near.has(core.node)) ?? groups[0];
  const most = Math.max(1, Math.floor(quota - taken.length));
  if (group !== undefined) return upTo(most, group);
  const left = cpusOf(cores).filter((cpu) => !taken.includes(cpu));
  return left.slice(0, most);
}

export const quotaHelp = 'give it more (docker: --cpus, Kubernetes: limits.cpu, systemd: CPUQuota)';

function tooLittle({ cores, quota }: Processors, needed: number): UserError {
  if (quota < needed)
    return new UserError(
      `a comparison needs the CPU time of ${coreCount(needed)}, and a quota allows ${coreCount(quota)}: ${quotaHelp}`,
    );
  return new UserError(
    `a comparison needs 2 cores, one for the server and one for the generator; only core ${formatCpuList(cpusOf(cores))} is allowed here`,
  );
}

/** What is not good about the cores of a run. */
export function coreFindings({ cores, quota }: Processors, used: Cores): Finding[] {
  const findings: Finding[] = [];
  const { generatorCpus } = used;
  const serverCpus = used.serverHost === undefined ? used.serverCpus : [];
  const split = cores.filter(({ cpus }) =>
    [serverCpus, generatorCpus].every((side) => cpus.some((cpu) => side.includes(cpu))),
  );
  if (split.length > 0 && !sharesCores(used)) {
    const cpus = split.map((core) => core.cpus);
    findings.push({ code: 'shared-cores', cpus, isOnly: cores.length === 1 });
  }
  const usedCores = new Set([...serverCpus, ...generatorCpus]).size;
  const allowedCores = cpusOf(cores).length;
  if (quota < allowedCores)
    findings.push({ code: 'cpu-quota', quotaCores: quota, allowedCores, usedCores });
  return findings;
}

/** Returns the facts about this machine now. `versions`: of the tools, by name. */
export function readEnvironment(
  processors: Processors,
  cores: Cores,
  versions: Record<string, string>,
): Environment {
  const cpus = os.cpus();
  const [lastMinute = 0, last5 = 0, last15 = 0] = os.loadavg();
  const bootedAtSeconds = Number(/^btime (\d+)$/m.exec(textOf('/proc/stat'))?.[1]);
  return {
    bakeoff: packageJson.version,
    cpuModel: cpus[0]?.model.trim() || os.machine(),
    cores: cpus.length,
    memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`,
    os: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(textOf('/etc/os-release'))?.[1] ?? os.platform(),
    governor: textOf('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor').trim() || null,
    bootedAt: new Date(1000 * bootedAtSeconds).toISOString(),
    bootId: textOf('/proc/sys/kernel/random/boot_id').trim(),
    loadAverage: [lastMinute, last5, last15],
    serverCpus: cores.serverCpus,
    generatorCpus: cores.generatorCpus,
    ...(processors.quota === Infinity ? {} : { cpuQuota: processors.quota }),
    versions: { node: process.versions.node, ...versions },
  };
}
