// The processors of this machine: physical cores, lists of CPUs, and CPU quotas.
import { join } from 'node:path';
import { UserError, usageError } from '../errors.ts';
import { namesIn, textOf } from '../files.ts';
import { limitedGroups } from './usage.ts';

/**
 * `cpus`: the hardware threads that this process may use, ascending. `node`: NUMA node. `capacity`: relative speed in any unit; 0 if
 * unknown.
 */
export interface PhysicalCore {
  cpus: readonly number[];
  node: number;
  capacity: number;
}

export interface Processors {
  cores: readonly PhysicalCore[];
  /** CPU seconds per second; Infinity without a limit. */
  quota: number;
}

/**
 * Reads the processors that this process may use. Without /sys, as in some containers, each CPU counts as a core.
 * @param root the folder with /proc and /sys
 */
export function readProcessors(root = '/'): Processors {
  const cpuFolder = join(root, 'sys/devices/system/cpu');
  const allowed = allowedCpus(root, cpuFolder);
  const capacityOf = capacities(allowed, cpuFolder);
  const cores = new Map<string, PhysicalCore>();
  for (const cpu of allowed) {
    const folder = join(cpuFolder, `cpu${cpu}`);
    const key = read(join(folder, 'topology/core_cpus_list')) ?? String(cpu);
    const cpus = [...(cores.get(key)?.cpus ?? []), cpu];
    const node = namesIn(folder).flatMap((name) => /^node(\d+)$/.exec(name)?.[1] ?? [])[0];
    cores.set(key, { cpus, node: Number(node ?? 0), capacity: capacityOf(cpu) });
  }
  return {
    cores: [...cores.values()],
    quota: Math.min(Infinity, ...limitedGroups(root).map((group) => group.cores)),
  };
}

export function cpusOf(cores: readonly PhysicalCore[]): number[] {
  return cores.flatMap(({ cpus }) => cpus).sort((a, b) => a - b);
}

/** The kernel's list of allowed CPUs includes some that are offline or not plugged in. */
function allowedCpus(root: string, cpuFolder: string): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(
    read(join(root, 'proc/self/status')) ?? '',
  )?.[1];
  if (list === undefined)
    throw new UserError(
      'cannot read the allowed cores from /proc/self/status: bakeoff needs Linux',
    );
  const online = read(join(cpuFolder, 'online'));
  const there = online === undefined ? undefined : new Set(parseCpuList(online, 'online'));
  return parseCpuList(list, 'Cpus_allowed_list').filter((cpu) => there?.has(cpu) ?? true);
}

/** Returns each CPU's speed: cpu_capacity if it differs between CPUs, otherwise the maximum clock rate. */
function capacities(cpus: readonly number[], cpuFolder: string): (cpu: number) => number {
  for (const file of ['cpu_capacity', 'cpufreq/cpuinfo_max_freq']) {
    const values = new Map(
      cpus.map((cpu) => [cpu, Number(read(join(cpuFolder, `cpu${cpu}`, file)) ?? NaN)]),
    );
    const distinct = new Set(values.values());
    if (distinct.size > 1 && !distinct.has(NaN)) return (cpu) => values.get(cpu) ?? 0;
  }
  return () => 0;
}

function read(file: string): string | undefined {
  return textOf(file).trim() || undefined;
}

/** Parses "0-3,5". Returns each CPU once, ascending. Throws UserError (exit code 2) that names the flag. */
export function parseCpuList(text: string, flag: string): number[] {
  const cpus = new Set<number>();
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,4})(?:-(\d{1,4}))?\s*$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (match === null || last < first)
      throw usageError(`${flag} ${text}: write cores as 1 or 0-3,5`);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}
