import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { limitedGroups, watchThrottling } from '../../lib/machine/usage.ts';
import { newFolder } from '../fixtures/new-folder.ts';

let root = '';
beforeEach(() => {
  root = newFolder();
});

function put(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), `${text}\n`);
}

const statOf = (times: number, micros: number): string =>
  `usage_usec 1\nnr_periods 9\nnr_throttled ${times}\nthrottled_usec ${micros}\nnr_bursts 0`;

test('counts of cgroup v2, of the own group and all above it, where they have a quota', () => {
  put('proc/self/cgroup', '0::/user/run');
  put(
    'proc/self/mountinfo',
    '31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate',
  );
  put('sys/fs/cgroup/user/run/cpu.max', '150000 100000');
  put('sys/fs/cgroup/user/run/cpu.stat', statOf(2, 3000));
  put('sys/fs/cgroup/user/cpu.max', '25000 50000');
  put('sys/fs/cgroup/user/cpu.stat', statOf(1, 500));
  put('sys/fs/cgroup/cpu.stat', 'usage_usec 1');
  const { quotas, read } = watchThrottling(root);
  expect(quotas).toBe(
    `${root}/sys/fs/cgroup/user/run/cpu.max: 1.5 cores, ${root}/sys/fs/cgroup/user/cpu.max: 0.5 cores`,
  );
  expect(read()).toEqual({ times: 3, ms: 3.5 });
  put('sys/fs/cgroup/user/run/cpu.stat', statOf(5, 33_000));
  expect(read()).toEqual({ times: 6, ms: 33.5 });
});

test('counts of cgroup v1, beside a cgroup v2 without the controller', () => {
  put('proc/self/cgroup', '5:memory:/x\n4:cpu,cpuacct:/docker/1\n0::/docker/1');
  put(
    'proc/self/mountinfo',
    [
      '31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw',
      '32 31 0:29 /docker/1 /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct',
      '33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
      '41 31 0:38 /docker/1 /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw',
    ].join('\n'),
  );
  put('sys/fs/cgroup/memory/cpu.cfs_quota_us', '1');
  put('sys/fs/cgroup/cpu/cpu.cfs_quota_us', '100000');
  put('sys/fs/cgroup/cpu/cpu.cfs_period_us', '100000');
  put('sys/fs/cgroup/cpu/cpu.stat', 'nr_periods 7\nnr_throttled 4\nthrottled_time 2500000');
  const { quotas, read } = watchThrottling(root);
  expect(quotas).toBe(`${root}/sys/fs/cgroup/cpu/cpu.cfs_quota_us: 1 core`);
  expect(read()).toEqual({ times: 4, ms: 2.5 });
});

test.each([
  ['max 100000', []],
  ['50000 100000', [0.5]],
  ['', []],
  ['0 100000', []],
  ['nonsense', []],
])('cpu.max "%s"', (text, cores) => {
  put('proc/self/cgroup', '0::/');
  put('proc/self/mountinfo', '31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw');
  put('sys/fs/cgroup/cpu.max', text);
  expect(limitedGroups(root).map((group) => group.cores)).toEqual(cores);
  expect(watchThrottling(root).read()).toEqual({ times: 0, ms: 0 });
});

test('where nothing is told, nothing is counted', () => {
  expect([watchThrottling(root).quotas, watchThrottling(root).read()]).toEqual([
    '',
    { times: 0, ms: 0 },
  ]);
  expect(watchThrottling().read()).toEqual({
    times: expect.any(Number) as number,
    ms: expect.any(Number) as number,
  });
});
