// What the kernel says of this machine's processors: physical cores, and how much of their time this process may use.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { UserError } from '../errors.ts';
import { parseCpuList } from './cpu-list.ts';

/** A physical core. One with hardware threads (SMT) has several CPUs, which slow each other down. */
export interface PhysicalCore {
  /** Those that this process may run on, ascending, at least one. */
  cpus: readonly number[];
  /** Its NUMA node. */
  node: number;
  /** How fast it is beside the others, in any unit; 0 where the kernel does not tell. */
  capacity: number;
}

export interface Processors {
  /** In the order of their first CPUs. */
  cores: readonly PhysicalCore[];
  /** CPU seconds per second that this process's control groups allow it and all that it starts; Infinity without a limit. */
  quota: number;
}

/**
 * The processors that this process may use: online, and allowed by taskset and cpusets, a container's too. Where there is no
 * /sys, as in some containers, each CPU counts as a core of its own. `root`: where /proc and /sys are.
 */
export function readProcessors(root = '/'): Processors {
  const cpuFolder = join(root, 'sys/devices/system/cpu');
  const allowed = allowedCpus(root, cpuFolder);
  const capacityOf = capacities(allowed, cpuFolder);
  const cores = new Map<string, PhysicalCore>();
  for (const cpu of allowed) {
    const folder = join(cpuFolder, `cpu${cpu}`);
    // The second is the first one's name before Linux 5.3.
    const told = read(join(folder, 'topology/core_cpus_list')) ?? read(join(folder, 'topology/thread_siblings_list'));
    const siblings = told === undefined ? [cpu] : parseCpuList(told, 'core_cpus_list');
    const key = siblings.join();
    const cpus = [...cores.get(key)?.cpus ?? [], cpu];
    cores.set(key, { cpus, node: nodeOf(folder), capacity: capacityOf(cpu) });
  }
  return { cores: [...cores.values()], quota: readQuota(root) };
}

/** In all, ascending. */
export function cpusOf(cores: readonly PhysicalCore[]): number[] {
  return cores.flatMap(({ cpus }) => cpus).sort((a, b) => a - b);
}

/** The kernel's list of allowed ones names some that are offline, or that could be plugged in. */
function allowedCpus(root: string, cpuFolder: string): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read(join(root, 'proc/self/status')) ?? '')?.[1];
  if (list === undefined) throw new UserError('cannot read the allowed cores from /proc/self/status: bakeoff needs Linux');
  const online = read(join(cpuFolder, 'online'));
  const there = online === undefined ? undefined : new Set(parseCpuList(online, 'online'));
  return parseCpuList(list, 'Cpus_allowed_list').filter((cpu) => there?.has(cpu) ?? true);
}

function nodeOf(cpuFolder: string): number {
  const name = existsSync(cpuFolder) ? readdirSync(cpuFolder).find((one) => /^node\d+$/.test(one)) : undefined;
  return name === undefined ? 0 : Number(name.slice('node'.length));
}

/** By cpu_capacity where CPUs differ in it; else by their highest clock, in which Intel's two types differ with SMT on. */
function capacities(cpus: readonly number[], cpuFolder: string): (cpu: number) => number {
  for (const file of ['cpu_capacity', 'cpufreq/cpuinfo_max_freq']) {
    const values = new Map(cpus.map((cpu) => [cpu, Number(read(join(cpuFolder, `cpu${cpu}`, file)) ?? NaN)]));
    const distinct = new Set(values.values());
    if (distinct.size > 1 && !distinct.has(NaN)) return (cpu) => values.get(cpu) as number;
  }
  return () => 0;
}

/** The least quota of the own control group and those above it, as far as they can be seen: of cgroup v2, and of v1's cpu controller. */
function readQuota(root: string): number {
  const groups = (read(join(root, 'proc/self/cgroup')) ?? '').split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  const quotas = (read(join(root, 'proc/self/mountinfo')) ?? '').split('\n').flatMap((line) => {
    // mountinfo: id, parent, device, root, mount point, options, …, "-", type, source, options of the file system.
    const mount = /^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line);
    if (mount === null) return [];
    const [, mounted = '', point = '', type, options = ''] = mount;
    const isV2 = type === 'cgroup2';
    if (!isV2 && !options.split(',').includes('cpu')) return [];
    const own = groups.find((group) => (isV2 ? group?.[1] === '' : group?.[1]?.split(',').includes('cpu')))?.[2];
    return own === undefined ? [] : foldersUpTo(point, mounted, own).map((folder) => quotaOf(join(root, folder), isV2));
  });
  return Math.min(Infinity, ...quotas);
}

/** The folder of a group, of those above it, and the mount point: all that there is where the group lies outside of what is mounted. */
function foldersUpTo(point: string, mounted: string, own: string): string[] {
  const parts = relative(mounted, own).split('/').filter((part) => part !== '');
  const within = parts.includes('..') ? [] : parts;
  return Array.from({ length: within.length + 1 }, (_, count) => join(point, ...within.slice(0, count)));
}

function quotaOf(folder: string, isV2: boolean): number {
  const [quota, period] = isV2 ? (read(join(folder, 'cpu.max')) ?? '').split(' ')
    : [read(join(folder, 'cpu.cfs_quota_us')), read(join(folder, 'cpu.cfs_period_us'))];
  const share = Number(quota) / Number(period);
  // "max" and -1: none.
  return share > 0 ? share : Infinity;
}

/** A file's text without the line's end; undefined where it cannot be read, or says nothing. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
