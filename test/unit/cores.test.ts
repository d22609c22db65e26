// Which cores each side gets, on made-up machines: folders that say what /proc and /sys would.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  coreNotes,
  coresOfTwo,
  defaultCores,
  divideCores,
  generatorCores,
  sharesCores,
} from '../../lib/machine/cores.ts';
import {
  cpusOf,
  formatCpuList,
  parseCpuList,
  type Processors,
  readProcessors,
} from '../../lib/machine/processors.ts';
import { newFolder } from '../fixtures/new-folder.ts';

/** CPUs that are a core each. */
const plain = (cpus: readonly number[], quota = Infinity): Processors => ({
  cores: cpus.map((cpu) => ({ cpus: [cpu], node: 0, capacity: 0 })),
  quota,
});

interface MadeUp {
  allowed: string;
  online?: string;
  /** The lists of siblings; a CPU that is in none has no topology folder. */
  siblings?: readonly string[];
  nodes?: readonly string[];
  /** By file, e.g. cpu_capacity: values by CPUs. */
  values?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Other files, by path. */
  files?: Readonly<Record<string, string>>;
  /** The name of the siblings' file. */
  siblingsFile?: string;
}

function madeUp({
  allowed,
  online,
  siblings = [],
  nodes = [],
  values = {},
  files = {},
  siblingsFile = 'core_cpus_list',
}: MadeUp): Processors {
  const root = newFolder();
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const folder = 'sys/devices/system/cpu';
  write('proc/self/status', `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${allowed}\n`);
  if (online !== undefined) write(`${folder}/online`, `${online}\n`);
  for (const list of siblings)
    for (const cpu of parseCpuList(list, ''))
      write(`${folder}/cpu${cpu}/topology/${siblingsFile}`, `${list}\n`);
  for (const [node, list] of nodes.entries())
    for (const cpu of parseCpuList(list, ''))
      write(`${folder}/cpu${cpu}/node${node}/cpulist`, `${list}\n`);
  for (const [file, byCpus] of Object.entries(values)) {
    for (const [list, value] of Object.entries(byCpus))
      for (const cpu of parseCpuList(list, '')) write(`${folder}/cpu${cpu}/${file}`, `${value}\n`);
  }
  for (const [path, text] of Object.entries(files)) write(path, text);
  return readProcessors(root);
}

const threadsApart = ['0,4', '1,5', '2,6', '3,7'];
const threadsTogether = ['0-1', '2-3', '4-5', '6-7'];
const alone = (count: number): string[] => Array.from({ length: count }, (_, cpu) => String(cpu));

describe('whole physical cores for each side', () => {
  test.each<[string, MadeUp, number[], number[]]>([
    [
      'threads n and n + N/2',
      { allowed: '0-7', siblings: threadsApart },
      [2, 3, 6, 7],
      [0, 1, 4, 5],
    ],
    [
      'threads 2n and 2n + 1',
      { allowed: '0-7', siblings: threadsTogether },
      [4, 5, 6, 7],
      [0, 1, 2, 3],
    ],
    [
      'the file of older kernels',
      { allowed: '0-7', siblings: threadsApart, siblingsFile: 'thread_siblings_list' },
      [2, 3, 6, 7],
      [0, 1, 4, 5],
    ],
    [
      'an odd number of cores',
      { allowed: '0-5', siblings: ['0,3', '1,4', '2,5'] },
      [2, 5],
      [0, 1, 3, 4],
    ],
    ['SMT off', { allowed: '0-3', online: '0-3', siblings: alone(4) }, [2, 3], [0, 1]],
    [
      'threads that are offline',
      { allowed: '0-7', online: '0-3', siblings: alone(4) },
      [2, 3],
      [0, 1],
    ],
    [
      'CPUs that could be plugged in',
      { allowed: '0-127', online: '0-1', siblings: alone(2) },
      [1],
      [0],
    ],
    [
      'a cpuset with one thread of some cores',
      { allowed: '0-2,4', siblings: threadsApart },
      [2],
      [0, 1, 4],
    ],
    [
      'a cpuset with one thread of each core',
      { allowed: '4-7', siblings: threadsApart },
      [6, 7],
      [4, 5],
    ],
    ['no topology folder', { allowed: '0-3' }, [2, 3], [0, 1]],
    ['one physical core', { allowed: '0-1', siblings: ['0-1'] }, [1], [0]],
    [
      'two nodes: one of them',
      { allowed: '0-15', siblings: alone(16), nodes: ['0-7', '8-15'] },
      [4, 5, 6, 7],
      [0, 1, 2, 3],
    ],
    [
      'two nodes with threads',
      { allowed: '0-7', siblings: threadsApart, nodes: ['0,2,4,6', '1,3,5,7'] },
      [2, 6],
      [0, 4],
    ],
    [
      'a cpuset with more of the second node',
      { allowed: '3,4-7', siblings: alone(8), nodes: ['0-3', '4-7'] },
      [6, 7],
      [4, 5],
    ],
    [
      'a node for each core',
      { allowed: '0-3', siblings: alone(4), nodes: alone(4) },
      [2, 3],
      [0, 1],
    ],
    [
      'big and little cores',
      { allowed: '0-7', siblings: alone(8), values: { cpu_capacity: { '0-3': 446, '4-7': 1024 } } },
      [6, 7],
      [4, 5],
    ],
    [
      'one that is bigger than the big ones',
      {
        allowed: '0-7',
        siblings: alone(8),
        values: { cpu_capacity: { '0-3': 325, '4-6': 870, '7': 1024 } },
      },
      [6],
      [4, 5],
    ],
    [
      'two types by their clocks',
      {
        allowed: '0-11',
        siblings: ['0-1', '2-3', '4-5', '6-7', '8', '9', '10', '11'],
        values: {
          cpu_capacity: { '0-11': 1024 },
          'cpufreq/cpuinfo_max_freq': { '0-3': 5_100_000, '4-7': 5_200_000, '8-11': 3_900_000 },
        },
      },
      [4, 5, 6, 7],
      [0, 1, 2, 3],
    ],
  ])('%s', (_, machine, serverCpus, generatorCpus) => {
    expect(defaultCores(madeUp(machine))).toEqual({ serverCpus, generatorCpus });
  });

  test('on this machine', () => {
    const processors = readProcessors();
    expect(cpusOf(processors.cores)).toHaveLength(availableParallelism());
  });

  test.each([
    [threadsApart, { server: [3, 7] }, { serverCpus: [3, 7], generatorCpus: [0, 1, 2, 4, 5, 6] }],
    [threadsApart, { server: [3] }, { serverCpus: [3], generatorCpus: [0, 1, 2, 4, 5, 6] }],
    [
      threadsApart,
      { generator: [0, 1, 2, 3] },
      { serverCpus: [4, 5, 6, 7], generatorCpus: [0, 1, 2, 3] },
    ],
  ])(
    'threads %j, and with %j the other side has whole ones where there are any',
    (siblings, asked, cores) => {
      expect(divideCores(madeUp({ allowed: '0-7', siblings }), asked)).toEqual(cores);
    },
  );

  test("the side that is not told stays on the other one's node", () => {
    const machine = madeUp({ allowed: '0-7', siblings: alone(8), nodes: ['0-3', '4-7'] });
    expect(divideCores(machine, { server: [6, 7] })).toEqual({
      serverCpus: [6, 7],
      generatorCpus: [4, 5],
    });
    expect(divideCores(machine, { server: [4, 5, 6, 7] })).toEqual({
      serverCpus: [4, 5, 6, 7],
      generatorCpus: [0, 1, 2, 3],
    });
  });
});

describe('a physical core that both sides have threads of is told in one line', () => {
  const remedies: [MadeUp, { server?: number[]; generator?: number[] }, string[]][] = [
    [{ allowed: '0-7', siblings: threadsApart }, {}, []],
    [{ allowed: '0-7', siblings: threadsApart }, { server: [2], generator: [0] }, []],
    [
      { allowed: '0-7', siblings: threadsApart },
      { server: [4, 5], generator: [0, 1] },
      [
        '(0,4 and 1,5) and slow each other down: give each side whole ones (--server-cpus, --generator-cpus)',
      ],
    ],
    [
      { allowed: '0-1', siblings: ['0-1'] },
      {},
      ['(0-1) and slow each other down: there is no other core here'],
    ],
  ];
  test.each(remedies)('%j with %j', (machine, asked, ends) => {
    const processors = madeUp(machine);
    expect(coreNotes(processors, divideCores(processors, asked))).toEqual(
      ends.map((end) => `server and generator are on threads of the same physical core ${end}`),
    );
  });

  test('but not where a scenario shares all of them', () => {
    const processors = madeUp({ allowed: '0-7', siblings: threadsApart });
    expect(coreNotes(processors, divideCores(processors, {}, { sharedCores: true }))).toEqual([]);
  });
});

const help = 'give it more (docker: --cpus, Kubernetes: limits.cpu, systemd: CPUQuota)';

describe('a quota of CPU time', () => {
  const v2 = (own: string, mounted: string, files: Readonly<Record<string, string>>): MadeUp => ({
    allowed: '0-7',
    siblings: threadsApart,
    files: {
      'proc/self/cgroup': `0::${own}\n`,
      'proc/self/mountinfo': `29 23 0:26 ${mounted} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`,
      ...files,
    },
  });
  const v1 = (own: string, mounted: string, files: Readonly<Record<string, string>>): MadeUp => ({
    allowed: '0-7',
    siblings: threadsApart,
    files: {
      'proc/self/cgroup': `9:name=systemd:/x\n4:cpu,cpuacct:${own}\n0::/\n`,
      'proc/self/mountinfo': `31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 ${mounted} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n`,
      ...files,
    },
  });
  test.each<[string, MadeUp, number]>([
    ['none at all', { allowed: '0-7' }, Infinity],
    ['none set', v2('/', '/', { 'sys/fs/cgroup/cpu.max': 'max 100000\n' }), Infinity],
    ['the own one', v2('/a/b', '/', { 'sys/fs/cgroup/a/b/cpu.max': '250000 100000\n' }), 2.5],
    [
      'the least of those above',
      v2('/a/b', '/', {
        'sys/fs/cgroup/a/b/cpu.max': 'max 100000\n',
        'sys/fs/cgroup/a/cpu.max': '300000 50000\n',
        'sys/fs/cgroup/cpu.max': '700000 100000\n',
      }),
      6,
    ],
    [
      'in a container with a view of its own',
      v2('/', '/', { 'sys/fs/cgroup/cpu.max': '150000 100000\n' }),
      1.5,
    ],
    [
      'in a container without',
      v2('/docker/c', '/docker/c', { 'sys/fs/cgroup/cpu.max': '150000 100000\n' }),
      1.5,
    ],
    [
      'outside of what is mounted',
      v2('/../other', '/', { 'sys/fs/cgroup/cpu.max': '400000 100000\n' }),
      4,
    ],
    [
      'version 1',
      v1('/a', '/', {
        'sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us': '300000\n',
        'sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us': '100000\n',
      }),
      3,
    ],
    [
      'version 1, in a container',
      v1('/docker/c', '/docker/c', {
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '200000\n',
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
      }),
      2,
    ],
    [
      'version 1, none',
      v1('/', '/', {
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '-1\n',
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
      }),
      Infinity,
    ],
  ])('%s', (_, machine, quota) => {
    expect(madeUp(machine).quota).toBeCloseTo(quota, 9);
  });

  const eight = (quota: number): Processors => ({
    ...madeUp({ allowed: '0-7', siblings: threadsApart }),
    quota,
  });
  test.each([
    [2, [2], [0]],
    [3.5, [2], [0, 1]],
    [4, [2, 3], [0, 1]],
    [6, [2, 3, 6], [0, 1, 4]],
    [8, [2, 3, 6, 7], [0, 1, 4, 5]],
    [100, [2, 3, 6, 7], [0, 1, 4, 5]],
  ])('of %d cores: the sides have no more CPUs than that', (quota, serverCpus, generatorCpus) => {
    expect(divideCores(eight(quota), {})).toEqual({ serverCpus, generatorCpus });
  });

  test('beside what one side is told, and for sides that share', () => {
    expect(divideCores(eight(4), { server: [3, 7] })).toEqual({
      serverCpus: [3, 7],
      generatorCpus: [0, 1],
    });
    expect(divideCores(eight(3), {}, { sharedCores: true })).toEqual({
      serverCpus: [0, 1, 2],
      generatorCpus: [0, 1, 2],
    });
  });

  test('too small for both is refused', () => {
    expect(() => divideCores(eight(1.5), {})).toThrow(
      `a comparison needs the CPU time of 2 cores, and a quota allows that of 1.5 cores: ${help}`,
    );
    expect(() => divideCores(eight(0.5), {}, { sharedCores: true })).toThrow(
      `a comparison needs the CPU time of 1 core, and a quota allows that of 0.5 cores: ${help}`,
    );
    expect(defaultCores(eight(1.5))).toBeUndefined();
  });

  test('is told in one line, and what to do', () => {
    const notes = (
      quota: number,
      asked: { server?: number[]; generator?: number[] } = {},
    ): string[] => coreNotes(eight(quota), divideCores(eight(quota), asked));
    expect(notes(8)).toEqual([]);
    expect(notes(2.5)).toEqual([
      `a quota allows the CPU time of 2.5 cores of the 8 that are here, so server and generator are on 2; to use more, ${help}`,
    ]);
    expect(notes(2.5, { server: [2, 6], generator: [0, 4] })).toEqual([
      `a quota allows the CPU time of 2.5 cores, and server and generator are on 4: they are stopped whenever it is used up; name fewer (--server-cpus, --generator-cpus), or ${help}`,
    ]);
  });
});

describe('lists of cores', () => {
  test.each([
    ['0', [0]],
    ['0-3,5', [0, 1, 2, 3, 5]],
    ['3,1,2-3', [1, 2, 3]],
    [' 1 , 7-7', [1, 7]],
  ])('"%s"', (text, cpus) => {
    expect(parseCpuList(text, '--server-cpus')).toEqual(cpus);
  });

  test.each(['', 'a', '1,', '-1', '3-1', '1-2-3', '99999', '1.5'])(
    '"%s" is refused with the flag named',
    (text) => {
      expect(() => parseCpuList(text, '--server-cpus')).toThrow(
        /^--server-cpus .*: write cores as 1 or 0-3,5$/,
      );
    },
  );

  test('are written as ranges', () => {
    expect(formatCpuList([0, 1, 2, 5, 7, 8])).toBe('0-2,5,7-8');
    expect(formatCpuList([3])).toBe('3');
  });
});

describe('divideCores', () => {
  test.each([
    [[0, 1], {}, [1], [0]],
    [[0, 1, 2, 3], {}, [2, 3], [0, 1]],
    [[4, 5, 6], {}, [6], [4, 5]],
    [[0, 1, 2, 3], { server: [0] }, [0], [1, 2, 3]],
    [[0, 1, 2, 3], { generator: [0, 3] }, [1, 2], [0, 3]],
    [[0, 1, 2, 3], { server: [3], generator: [1] }, [3], [1]],
  ])('%j with %j', (allowed, asked, serverCpus, generatorCpus) => {
    expect(divideCores(plain(allowed), asked)).toEqual({ serverCpus, generatorCpus });
  });

  test.each([
    [[0, 1, 2], {}, [0, 1, 2], [0, 1, 2]],
    [[3], {}, [3], [3]],
    [[0, 1], { server: [1], generator: [1] }, [1], [1]],
    [[0, 1, 2], { server: [0], generator: [1, 2] }, [0], [1, 2]],
    [[0, 1, 2], { server: [2] }, [2], [0, 1]],
    [[0, 1, 2], { generator: [2] }, [0, 1], [2]],
  ])('%j with %j where the scenario shares cores', (allowed, asked, serverCpus, generatorCpus) => {
    const cores = divideCores(plain(allowed), asked, { sharedCores: true });
    expect(cores).toEqual({ serverCpus, generatorCpus });
    expect(sharesCores(cores)).toBe(serverCpus.some((cpu) => generatorCpus.includes(cpu)));
  });

  test('refuses cores that are not there, or shared in part, where the scenario shares them', () => {
    expect(() =>
      divideCores(plain([0, 1]), { server: [2], generator: [2] }, { sharedCores: true }),
    ).toThrow(/^--server-cpus: core 2 is not there/);
    expect(() =>
      divideCores(plain([0, 1, 2]), { server: [0, 1], generator: [1, 2] }, { sharedCores: true }),
    ).toThrow(
      '--server-cpus and --generator-cpus share core 1: give both the same ones, or each its own',
    );
  });

  test.each([
    [[0, 1, 2], { server: [1, 2], generator: [0, 1] }, /share core 1:/],
    [[0, 1], { server: [2] }, /--server-cpus: core 2 is not there or not allowed; there are 0-1$/],
    [[0, 1], { generator: [0, 1] }, /--generator-cpus leaves no core for the server/],
    [[0, 1], { server: [0, 1] }, /--server-cpus leaves no core for the generator/],
    [[3], {}, /needs 2 cores, .* only core 3 is allowed here$/],
  ])('%j with %j is refused', (allowed, asked, message) => {
    expect(() => divideCores(plain(allowed), asked)).toThrow(message);
  });
});

describe('servers on another host', () => {
  const there = { name: 'web1', processors: plain([0, 1, 2, 3]), files: 5000 };

  test('have all of its cores, and the load all of these', () => {
    const cores = coresOfTwo(plain([0, 1]), there, {});
    expect(cores).toEqual({
      serverCpus: [0, 1, 2, 3],
      generatorCpus: [0, 1],
      serverHost: 'web1',
      serverFiles: { host: 'web1', most: 5000 },
    });
    // They have the same numbers, and are others.
    expect([sharesCores(cores), coreNotes(plain([0, 1]), cores)]).toEqual([false, []]);
    expect(
      coresOfTwo(plain([0, 1], 1.5), { ...there, processors: plain([0, 1, 2, 3], 2) }, {}),
    ).toMatchObject({ serverCpus: [0, 1], generatorCpus: [0] });
  });

  test('have those that are named, of the right machine', () => {
    expect(coresOfTwo(plain([0, 1]), there, { server: [2, 3], generator: [1] })).toMatchObject({
      serverCpus: [2, 3],
      generatorCpus: [1],
    });
    expect(() => coresOfTwo(plain([0, 1]), there, { server: [4] })).toThrow(
      '--server-cpus on web1: core 4 is not there or not allowed; there are 0-3',
    );
    expect(() => coresOfTwo(plain([0, 1]), there, { generator: [2] })).toThrow(
      '--generator-cpus: core 2 is not there or not allowed; there are 0-1',
    );
  });

  test('load comes from the cores of all hosts that make it', () => {
    expect(
      generatorCores({
        generatorCpus: [0],
        generatorHosts: { names: ['a', 'b', 'c'], coresEach: 4 },
      }),
    ).toBe(12);
    expect(generatorCores({ generatorCpus: [0, 1] })).toBe(2);
  });
});
