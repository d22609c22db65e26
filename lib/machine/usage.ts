// The machine under load: clocks, use of cores, throttling by CPU quotas, cores that stay awake, and whether the kernel's buffers suffice
// for HTTP/3.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import os from 'node:os';
import { join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { mean, total } from '../analysis/statistics.ts';
import { ifThere, readIfThere, textOf } from '../files.ts';
import { coreCount } from '../format.ts';
import type { LoadProfile } from '../scenario/model.ts';

/** Sums over some cores since the machine started, in seconds. */
export interface CoreSeconds {
  processes: number;
  /** Interrupts and their follow-up work, such as received packets. */
  interrupts: number;
  /** Taken by the hypervisor for other guests. */
  steal: number;
  idle: number;
}

/** The machine at an instant; null if unknown. */
export interface MachineReading {
  server: CoreSeconds | null;
  generator: CoreSeconds | null;
  loadAverage: number;
  /** The mean clock of the server's cores; undefined if not read this time. */
  serverMhz?: number | null | undefined;
}

/** Reading /proc/cpuinfo takes long on a machine with many cores. */
const clockEveryMs = 500;

/** Returns a function that reads the machine now and never throws. @param root the folder with /proc and /sys */
export function watchMachine(
  serverCpus: readonly number[],
  generatorCpus: readonly number[],
  root = '/',
): () => MachineReading {
  let clockAtMs = -Infinity;
  return () => {
    const stat = readIfThere(join(root, 'proc/stat'));
    const nowMs = performance.now();
    const clockIsDue = nowMs - clockAtMs >= clockEveryMs;
    if (clockIsDue) clockAtMs = nowMs;
    const [loadAverage = 0] = os.loadavg();
    return {
      server: coreSeconds(stat, serverCpus),
      generator: coreSeconds(stat, generatorCpus),
      loadAverage,
      serverMhz: clockIsDue ? meanMhz(serverCpus, root) : undefined,
    };
  };
}

/** The kernel counts CPU time in USER_HZ, which is 100 on every Linux that Node runs on. */
export const ticksPerSecond = 100;

/**
 * Returns whether a process's CPU time excludes interrupts (CONFIG_IRQ_TIME_ACCOUNTING); undefined if the kernel's config is unreadable.
 */
export function interruptsApart(root = '/'): boolean | undefined {
  const config =
    ifThere(() => gunzipSync(readFileSync(join(root, 'proc/config.gz'))).toString('latin1')) ??
    readIfThere(join(root, `boot/config-${os.release()}`));
  return config === undefined ? undefined : /^CONFIG_IRQ_TIME_ACCOUNTING=y$/m.test(config);
}

function coreSeconds(stat: string | undefined, cpus: readonly number[]): CoreSeconds | null {
  // The fields of proc(5) are user, nice, system, idle, iowait, irq, softirq, steal. The time of guests is part of user and nice.
  const ticks = cpus.map((cpu) =>
    (new RegExp(`^cpu${cpu} +(.*)$`, 'm').exec(stat ?? '')?.[1] ?? '').split(' ').map(Number),
  );
  const seconds = (...columns: number[]) =>
    total(ticks, (row) => total(columns, (column) => row[column] ?? NaN)) / ticksPerSecond;
  const sum = {
    processes: seconds(0, 1, 2),
    interrupts: seconds(5, 6),
    steal: seconds(7),
    idle: seconds(3, 4),
  };
  return Object.values(sum).some(Number.isNaN) ? null : sum;
}

/** Returns the mean frequency from cpufreq, or from /proc/cpuinfo as on virtual machines. */
function meanMhz(cpus: readonly number[], root: string): number | null {
  const kilohertz = cpus.map((cpu) =>
    Number(
      readIfThere(join(root, `sys/devices/system/cpu/cpu${cpu}/cpufreq/scaling_cur_freq`)) ?? NaN,
    ),
  );
  if (kilohertz.every((frequency) => frequency > 0)) return mean(kilohertz) / 1000;
  const blocks = textOf(join(root, 'proc/cpuinfo')).split('\n\n');
  const megahertz = cpus.map((cpu) => {
    const core = blocks.find((block) => new RegExp(`^processor\\s*: ${cpu}$`, 'm').test(block));
    return Number(/^cpu MHz\s*: ([\d.]+)$/m.exec(core ?? '')?.[1]);
  });
  return megahertz.every((frequency) => frequency > 0) ? mean(megahertz) : null;
}

export type ThrottlingWatch = ReturnType<typeof watchThrottling>;

/** Watches the CPU quotas of some processes' control groups from now on. @param pids "self" is this process */
export function watchThrottling(root = '/', pids: readonly string[] = ['self']) {
  const groups = limitedGroups(root, pids);
  return {
    /** Such as "/sys/fs/cgroup/cpu.max: 1.5 cores", joined by commas; '' without a quota. */
    quotas: groups.map(({ file, cores }) => `${file}: ${coreCount(cores)}`).join(', '),
    /** Milliseconds for which quotas held the groups back. */
    read: () =>
      total(groups, ({ folder }) => {
        const stat = textOf(join(folder, 'cpu.stat'));
        const count = (name: string) =>
          Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0);
        // Version 2 counts microseconds, version 1 nanoseconds.
        return count('throttled_usec') / 1e3 + count('throttled_time') / 1e6;
      }),
  };
}

/**
 * Returns the control groups that limit the CPU time of some processes: of cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us).
 * `cores`: the limit in CPU seconds per second.
 */
export function limitedGroups(root: string, pids: readonly string[] = ['self']) {
  const folders = new Set(pids.flatMap((pid) => groupsOf(root, pid, 'cpu')));
  const limited: { folder: string; file: string; cores: number }[] = [];
  for (const folder of folders) {
    const text = (name: string) => textOf(join(folder, name));
    const file = text('cpu.max') === '' ? 'cpu.cfs_quota_us' : 'cpu.max';
    // Version 2 has both numbers in one file.
    const numbers = `${text(file)} ${text('cpu.cfs_period_us')}`.trim().split(/\s+/);
    const [quota = NaN, period = NaN] = numbers.map(Number);
    // Without a quota, version 2 has "max" and version 1 has -1.
    if (quota > 0 && period > 0)
      limited.push({ folder, file: join(folder, file), cores: quota / period });
  }
  return limited;
}

/** Returns how many processes and threads this process's control groups may have; Infinity without a limit. */
export function mostProcessesOfGroups(root = '/'): number {
  const limits = groupsOf(root, 'self', 'pids').map((folder) => textOf(join(folder, 'pids.max')));
  // Without a limit the file has "max".
  return Math.min(...limits.map((limit) => Number.parseInt(limit, 10) || Infinity));
}

/** Returns a process's own group and those above it, in each hierarchy that may have this controller. */
function groupsOf(root: string, pid: string, controller: 'cpu' | 'pids'): string[] {
  const hierarchies = textOf(join(root, 'proc', pid, 'cgroup'))
    .split('\n')
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  return textOf(join(root, 'proc/self/mountinfo'))
    .split('\n')
    .flatMap((line) => {
      // proc(5): id, parent, device, root, mount point, options, optional fields, -, type, source, options.
      const [, mounted = '', mount = '', type = '', options = ''] =
        /^\d+ \d+ \S+ (\S+) (\S+) \S+ .*- (cgroup2?) \S+ (\S+)$/.exec(line) ?? [];
      const controllers = options.split(',');
      if (type === '' || (type === 'cgroup' && !controllers.includes(controller))) return [];
      const group = hierarchies.find((hierarchy) =>
        type === 'cgroup2'
          ? hierarchy?.[1] === ''
          : hierarchy?.[1]?.split(',').includes(controller),
      )?.[2];
      if (group === undefined) return [];
      // A container sees its own group as the mount's root.
      const below = relative(mounted, group);
      const parts = below.startsWith('..') ? [] : below.split('/').filter((part) => part !== '');
      return Array.from({ length: parts.length + 1 }, (_, above) =>
        join(root, mount, ...parts.slice(0, parts.length - above)),
      );
    });
}

/** `monotonicMs` is CLOCK_MONOTONIC, as in the engine. `wallMs`, since 1970, is the time of samples in the database. */
export const machineClock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};

/**
 * Keeps idle cores awake until the returned function is called: waking takes microseconds, on a virtual machine milliseconds. The device
 * (cpu_latency_qos) needs root.
 */
export function keepCoresAwake(device = '/dev/cpu_dma_latency'): () => void {
  const file = ifThere(() => openSync(device, 'r+'));
  if (file === undefined) return () => undefined;
  // The limit in microseconds, as a 32-bit number.
  ifThere(() => writeSync(file, Buffer.alloc(4)));
  return () => closeSync(file);
}

/** What quic-go asks for. The kernel doubles it. */
const wantedUdpBytes = 7 * 1024 * 1024;
/**
 * Returns a line if a load uses HTTP/3 and a limit of UDP buffers is below what quic-go asks for. Older kernels hide the limits in
 * containers.
 */
export function udpNotes(
  loads: readonly Pick<LoadProfile, 'protocol'>[],
  isRoot = process.getuid?.() === 0,
  root = '/',
): string[] {
  const small = ['rmem_max', 'wmem_max'].filter(
    (name) => Number(textOf(join(root, 'proc/sys/net/core', name)) || NaN) < wantedUdpBytes / 2,
  );
  if (isRoot || small.length === 0 || !loads.some(({ protocol }) => protocol === 'h3')) return [];
  const settings = small.map((name) => `net.core.${name}=${wantedUdpBytes}`).join(' ');
  return [`the buffers of UDP are small, so HTTP/3 may lose datagrams: sudo sysctl ${settings}`];
}
