// The machine while it is measured: its clocks, the use of its cores, throttling by CPU quotas, and cores that stay awake.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import os from 'node:os';
import { join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { ifThere, readIfThere, textOf } from '../files.ts';
import { coreCount } from '../format.ts';

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
  serverMhz: number | null | undefined;
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
    return {
      server: coreSeconds(stat, serverCpus),
      generator: coreSeconds(stat, generatorCpus),
      loadAverage: os.loadavg()[0] as number,
      serverMhz: clockIsDue ? meanMhz(serverCpus, root) : undefined,
    };
  };
}

/** USER_HZ is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/**
 * Whether the CPU time of a process excludes the interrupts during it (CONFIG_IRQ_TIME_ACCOUNTING); undefined if the kernel's
 * config cannot be read.
 */
export function interruptsApart(root = '/'): boolean | undefined {
  const config =
    ifThere(() => gunzipSync(readFileSync(join(root, 'proc/config.gz'))).toString('latin1')) ??
    readIfThere(join(root, `boot/config-${os.release()}`));
  return config === undefined ? undefined : /^CONFIG_IRQ_TIME_ACCOUNTING=y$/m.test(config);
}

function coreSeconds(stat: string | undefined, cpus: readonly number[]): CoreSeconds | null {
  const sum: CoreSeconds = { processes: 0, interrupts: 0, steal: 0, idle: 0 };
  for (const cpu of cpus) {
    const line = new RegExp(`^cpu${cpu} (.*)$`, 'm').exec(stat ?? '')?.[1]?.trim() ?? '';
    // proc(5): user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is part of user and nice.
    const ticks = line.split(/\s+/).map(Number);
    const seconds = (...columns: number[]) =>
      columns.reduce((all, column) => all + (ticks[column] ?? NaN), 0) / ticksPerSecond;
    sum.processes += seconds(0, 1, 2);
    sum.interrupts += seconds(5, 6);
    sum.steal += seconds(7);
    sum.idle += seconds(3, 4);
  }
  return Number.isNaN(sum.processes + sum.interrupts + sum.steal + sum.idle) ? null : sum;
}

function meanMhz(cpus: readonly number[], root: string): number | null {
  const folder = join(root, 'sys/devices/system/cpu');
  const mean = (clocks: readonly number[]) =>
    clocks.every((mhz) => mhz > 0)
      ? clocks.reduce((sum, mhz) => sum + mhz, 0) / clocks.length
      : null;
  const kilohertz = mean(
    cpus.map((cpu) =>
      Number(readIfThere(join(folder, `cpu${cpu}/cpufreq/scaling_cur_freq`)) ?? NaN),
    ),
  );
  if (kilohertz !== null) return kilohertz / 1000;
  const clocks = textOf(join(root, 'proc/cpuinfo'))
    .split('\n\n')
    .map((block) =>
      [/^processor\s*:\s*(\d+)$/m, /^cpu MHz\s*:\s*([\d.]+)$/m].map((field) =>
        Number(field.exec(block)?.[1]),
      ),
    );
  const byCpu = new Map(clocks as [number, number][]);
  return mean(cpus.map((cpu) => byCpu.get(cpu) ?? NaN));
}

/** Sums over the control groups with a quota, since the groups were made. */
export interface Throttling {
  times: number;
  ms: number;
}

/** `quotas`: such as "/sys/fs/cgroup/cpu.max: 1.5 cores", joined by commas; '' without a quota. */
export interface ThrottlingWatch {
  quotas: string;
  read(): Throttling;
}

export function watchThrottling(root = '/'): ThrottlingWatch {
  const groups = limitedGroups(root);
  return {
    quotas: groups.map(({ file, cores }) => `${file}: ${coreCount(cores)}`).join(', '),
    read() {
      const sum = { times: 0, ms: 0 };
      for (const { folder } of groups) {
        const stat = textOf(join(folder, 'cpu.stat'));
        const count = (name: string) =>
          Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0);
        sum.times += count('nr_throttled');
        // Version 2 counts microseconds, version 1 nanoseconds.
        sum.ms += count('throttled_usec') / 1e3 + count('throttled_time') / 1e6;
      }
      return sum;
    },
  };
}

/**
 * Returns the control groups that limit this process and its children: its own and those above it, of cgroup v2 (cpu.max) and v1
 * (cpu.cfs_quota_us). `file` has the quota, `cores` is CPU seconds per second. @param root the folder with /proc and /sys
 */
export function limitedGroups(root = '/'): { folder: string; file: string; cores: number }[] {
  return groupsOf(root).flatMap((folder) => {
    const text = (name: string) => textOf(join(folder, name));
    const file = text('cpu.max') === '' ? 'cpu.cfs_quota_us' : 'cpu.max';
    const [quota = NaN, period = NaN] = `${text(file)} ${text('cpu.cfs_period_us')}`
      .trim()
      .split(/\s+/)
      .map(Number);
    // Without a quota, version 2 has "max" and version 1 has -1.
    return quota > 0 && period > 0
      ? [{ folder, file: join(folder, file), cores: quota / period }]
      : [];
  });
}

/** The folders of this process's group and those above it, in each hierarchy that may limit the CPU. */
function groupsOf(root: string): string[] {
  const own = textOf(join(root, 'proc/self/cgroup'))
    .split('\n')
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  return textOf(join(root, 'proc/self/mountinfo'))
    .split('\n')
    .flatMap((line) => {
      // proc(5): id, parent, device, root, mount point, options, optional fields, -, type, source, options.
      const [, mounted = '', mount = '', type = '', options = ''] =
        /^\d+ \d+ \S+ (\S+) (\S+) \S+ .*- (cgroup2?) \S+ (\S+)$/.exec(line) ?? [];
      const controllers = options.split(',');
      if (type === '' || (type === 'cgroup' && !controllers.includes('cpu'))) return [];
      const group = own.find((found) =>
        type === 'cgroup2' ? found?.[1] === '' : found?.[1]?.split(',').includes('cpu'),
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

interface Clock {
  /** CLOCK_MONOTONIC, as `monotonicMs` of the engine. It ignores steps of the wall clock, and stops while the machine is suspended. */
  monotonicMs(): number;
  /** Since 1970: the time of samples in the database. */
  wallMs(): number;
}

export const machineClock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};

/**
 * Keeps idle cores awake until the returned function is called, since waking a core takes microseconds, on a virtual machine
 * milliseconds. The latency limit of 0 µs (cpu_latency_qos) applies while the device is open. Does nothing without root.
 */
export function keepCoresAwake(device = '/dev/cpu_dma_latency'): () => void {
  const file = ifThere(() => openSync(device, 'r+'));
  if (file === undefined) return () => undefined;
  // The limit in microseconds, as a 32-bit number.
  ifThere(() => writeSync(file, Buffer.alloc(4)));
  return () => closeSync(file);
}
