// The CPU quotas of this process's control groups, and how often they held this run back.
import path from 'node:path';
import { coreCount } from '../format.ts';
import { readIfThere, textOf } from '../read-if-there.ts';

/** Since the groups were made, over those with a quota. */
export interface Throttling {
  times: number;
  ms: number;
}

/** `quotas`: each with its file, "/sys/fs/cgroup/cpu.max: 1.5 cores", joined by commas; '' where there is none. */
export interface ThrottlingWatch {
  quotas: string;
  read(): Throttling;
}

/** Watches the quotas that hold now; never throws. @param root as in limitedGroups */
export function watchThrottling(root = '/'): ThrottlingWatch {
  const groups = limitedGroups(root);
  return {
    quotas: groups.map(({ file, cores }) => `${file}: ${coreCount(cores)}`).join(', '),
    read: () =>
      groups
        .map(({ folder }) => throttlingOf(folder))
        .reduce((sum, { times, ms }) => ({ times: sum.times + times, ms: sum.ms + ms }), {
          times: 0,
          ms: 0,
        }),
  };
}

/**
 * The control groups whose quotas hold for this process and all that it starts: its own and those above it, of cgroup v2 (cpu.max) and
 * v1 (cpu.cfs_quota_us). `file` has the quota, `cores` is CPU seconds per second. @param root where /proc and /sys are
 */
export function limitedGroups(root = '/'): { folder: string; file: string; cores: number }[] {
  return groupsOf(root).flatMap((folder) => {
    const [ofVersion2, ofVersion1, ofVersion1Period] = [
      'cpu.max',
      'cpu.cfs_quota_us',
      'cpu.cfs_period_us',
    ].map((name) => readIfThere(path.join(folder, name)));
    const [quota, period] = (ofVersion2 ?? `${ofVersion1} ${ofVersion1Period}`)
      .trim()
      .split(/\s+/)
      .map(Number);
    // No quota is "max" in version 2, and -1 in version 1.
    if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return [];
    return [
      {
        folder,
        file: path.join(folder, ofVersion2 === undefined ? 'cpu.cfs_quota_us' : 'cpu.max'),
        cores: quota / period,
      },
    ];
  });
}

/** Version 2 counts microseconds, version 1 nanoseconds. */
function throttlingOf(folder: string): Throttling {
  const stat = textOf(path.join(folder, 'cpu.stat'));
  const count = (name: string): number =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0);
  return {
    times: count('nr_throttled'),
    ms: count('throttled_usec') / 1e3 + count('throttled_time') / 1e6,
  };
}

/** The folders of this process's own group and of those above it, of each hierarchy that may limit the CPU. */
function groupsOf(root: string): string[] {
  const own = textOf(path.join(root, 'proc/self/cgroup'))
    .split('\n')
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  return textOf(path.join(root, 'proc/self/mountinfo'))
    .split('\n')
    .flatMap((line) => {
      // proc(5): id, parent, device, root, mount point, options, optional fields, a dash, type, source, options.
      const [, mounted = '', mount = '', type = '', options = ''] =
        /^\d+ \d+ \S+ (\S+) (\S+) \S+ .*- (cgroup2?) \S+ (\S+)$/.exec(line) ?? [];
      const controllers = options.split(',');
      if (type === '' || (type === 'cgroup' && !controllers.includes('cpu'))) return [];
      const group = own.find((found) =>
        type === 'cgroup2' ? found?.[1] === '' : found?.[1]?.split(',').includes('cpu'),
      )?.[2];
      if (group === undefined) return [];
      // A container sees its own group as the mount's root.
      const below = path.relative(mounted, group);
      const parts = below.startsWith('..') ? [] : below.split('/').filter((part) => part !== '');
      return Array.from({ length: parts.length + 1 }, (_, above) =>
        path.join(root, mount, ...parts.slice(0, parts.length - above)),
      );
    });
}
