// How cores are divided between the sides, on simulated machines.
import { formatCpuList } from '../../lib/format.ts';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import {
  defaultCores,
  divideCores,
  coreFindings,
  sharesCores,
  type Cores,
} from '../../lib/machine/cores.ts';
import { parseCpuList, readProcessors, type Processors } from '../../lib/machine/processors.ts';
import { mostProcessesOfGroups, watchThrottling } from '../../lib/machine/usage.ts';
import { sentencesOf } from '../../lib/report/finding-words.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const notesOn = (processors: Processors, cores: Cores) =>
  sentencesOf(coreFindings(processors, cores), 2);

interface MadeUp {
  allowed?: string;
  online?: string;
  /** The sibling lists; a CPU on no list has no topology folder. */
  siblings?: readonly string[];
  nodes?: readonly string[];
  /** Per-CPU files, such as cpu_capacity: values by CPU. */
  values?: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

function newRoot(files: Readonly<Record<string, string>> = {}) {
  const root = newFolder();
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  };
  for (const [path, text] of Object.entries(files)) write(path, text);
  return { root, write };
}

function madeUp(machine: MadeUp, quota = Infinity): Processors {
  const { allowed = '0-7', online, siblings = [], nodes = [], values = {} } = machine;
  const folder = 'sys/devices/system/cpu';
  const status = `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${allowed}`;
  const { root, write } = newRoot({ 'proc/self/status': status });
  const writeFor = (list: string, file: string, text: string) => {
    for (const cpu of parseCpuList(list, '')) write(`${folder}/cpu${cpu}/${file}`, text);
  };
  if (online !== undefined) write(`${folder}/online`, online);
  for (const list of siblings) writeFor(list, 'topology/core_cpus_list', list);
  for (const [node, list] of nodes.entries()) writeFor(list, `node${node}/cpulist`, list);
  for (const [file, byCpus] of Object.entries(values))
    for (const [list, value] of Object.entries(byCpus)) writeFor(list, file, String(value));
  return { ...readProcessors(root), quota };
}

const plain = (cpus: string) => madeUp({ allowed: cpus });

const written = ({ serverCpus, generatorCpus }: Cores) =>
  `${formatCpuList(serverCpus)} / ${formatCpuList(generatorCpus)}`;

function asked(text: string): Record<'server' | 'generator', number[] | undefined> {
  const [server, generator] = text
    .split('/')
    .map((list) => (list.trim() === '' ? undefined : parseCpuList(list, '')));
  return { server, generator };
}

const apart = ['0,4', '1,5', '2,6', '3,7'];
const alone = (count: number) => Array.from({ length: count }, (_, cpu) => String(cpu));
const pairs = ['0-1', '2-3', '4-5', '6-7', '8', '9', '10', '11'];
const littleAndBig = { cpu_capacity: { '0-3': 446, '4-7': 1024 } };
const byClock = {
  cpu_capacity: { '0-11': 1024 },
  'cpufreq/cpuinfo_max_freq': { '0-3': 5_100_000, '4-7': 5_200_000, '8-11': 3_900_000 },
};

test.each([
  ['threads n and n + N/2', { siblings: apart }, '2-3,6-7 / 0-1,4-5'],
  ['one of two nodes', { allowed: '0-7', siblings: alone(8), nodes: ['0-3', '4-7'] }, '2-3 / 0-1'],
  ['big and little cores', { siblings: alone(8), values: littleAndBig }, '6-7 / 4-5'],
  ['two types by their clocks', { allowed: '0-11', siblings: pairs, values: byClock }, '4-7 / 0-3'],
])('whole physical cores for each side: %s', (_, machine, cores) => {
  expect(written(defaultCores(madeUp(machine)) as Cores)).toBe(cores);
});

test.each<[MadeUp, string, string, number?]>([
  [{ siblings: apart }, '/ 0-3', '4-7 / 0-3'],
  [{ siblings: alone(8), nodes: ['0-3', '4-7'] }, '6-7', '6-7 / 4-5'],
  [{ siblings: apart }, '', '2 / 0', 2],
  [{ siblings: apart }, '3,7', '3,7 / 0-1', 4],
])('of cores %j, "%s" selects %s, with a quota of %s', (machine, text, cores, quota) => {
  expect(written(divideCores(madeUp(machine, quota), asked(text)))).toBe(cores);
});

test.each([
  ['0-2', '', '0-2 / 0-2', true],
  ['0-2', '/ 2', '0-1 / 2', false],
])('%s as "%s" for a scenario with shared cores', (allowed, text, cores, isShared) => {
  const divided = divideCores(plain(allowed), asked(text), { sharedCores: true });
  expect([written(divided), sharesCores(divided)]).toEqual([cores, isShared]);
});

test.each([
  ['0-2', '1-2 / 0-1', false, / share core 1: give each its own$/],
  ['0-2', '0-1 / 1-2', true, / share core 1: give both the same ones, or each its own$/],
  ['0-1', '/ 0-1', false, /^--generator-cpus leaves no core for the server/],
  ['0-1', '0-1', false, /^--server-cpus leaves no core for the generator/],
  ['3', '', false, /needs 2 cores, .* only core 3 is allowed here$/],
])('%s as "%s" is refused, with shared cores %s', (allowed, text, sharedCores, message) => {
  const options = sharedCores ? { sharedCores } : {};
  expect(() => divideCores(plain(allowed), asked(text), options)).toThrow(message);
});

test.each([
  [{ siblings: apart }, '', []],
  [{ siblings: apart }, '4-5 / 0-1', ['(0,4 and 1,5) and slow each other down: give each side wh']],
  [{ allowed: '0-1', siblings: ['0-1'] }, '', ['(0-1) and slow each other down: there is no oth']],
])('a shared physical core is noted: %j as "%s"', (machine, text, notes) => {
  const processors = madeUp(machine);
  expect(notesOn(processors, divideCores(processors, asked(text)))).toEqual(
    notes.map((note) => expect.stringContaining(note)),
  );
  const shared = divideCores(processors, {}, { sharedCores: true });
  expect(notesOn(processors, shared)).toEqual([]);
});

const group = 'sys/fs/cgroup';
const v2 = (ownGroup: string, mounted = '/'): Record<string, string> => ({
  'proc/self/cgroup': `5:memory:/x\n0::${ownGroup}`,
  'proc/self/mountinfo': `29 23 0:26 ${mounted} /${group} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate`,
});
const v1 = (ownGroup: string, mounted = '/'): Record<string, string> => ({
  'proc/self/cgroup': `9:name=systemd:/x\n4:cpu,cpuacct:${ownGroup}\n0::${ownGroup}`,
  'proc/self/mountinfo': [
    `32 31 0:29 ${mounted} /${group}/cpu rw - cgroup cgroup rw,cpu,cpuacct`,
    `33 31 0:30 / /${group}/memory rw - cgroup cgroup rw,memory`,
    `41 31 0:38 ${mounted} /${group}/unified rw - cgroup2 cgroup2 rw`,
  ].join('\n'),
});
const cfs = (path: string, quota: number): Record<string, string> => ({
  [`${group}/cpu${path}/cpu.cfs_quota_us`]: String(quota),
  [`${group}/cpu${path}/cpu.cfs_period_us`]: '100000',
});
const max = (path: string, text: string) => ({ [`${group}${path}/cpu.max`]: text });
test.each([
  ['of none', {}, Infinity],
  ['of the groups above', { ...v2('/a/b'), ...max('/a/b', 'max 1'), ...max('/a', '30 5') }, 6],
  ['of a container', { ...v2('/docker/c', '/docker/c'), ...max('', '150000 100000') }, 1.5],
  ['of version 1', { ...v1('/a'), ...cfs('/a', 300_000) }, 3],
])('a quota: %s is read', (_, files, quota) => {
  const { root } = newRoot({ 'proc/self/status': 'Cpus_allowed_list:\t0-7', ...files });
  expect(readProcessors(root).quota).toBeCloseTo(quota, 9);
});

test('of the limits of processes of the groups above, the lowest holds', () => {
  const pids = (path: string, text: string) => ({ [`${group}${path}/pids.max`]: text });
  const limits = { ...pids('/a/b/c', 'max\n'), ...pids('/a/b', '500\n'), ...pids('/a', '1000\n') };
  const { root } = newRoot({ ...v2('/a/b/c'), ...limits });
  expect(mostProcessesOfGroups(root)).toBe(500);
  expect(mostProcessesOfGroups(newRoot(v2('/a')).root)).toBe(Infinity);
});

test('reads how often and how long a cgroup v2 quota has throttled the run', () => {
  const files = { ...v2('/u/r'), ...max('/u/r', '150000 100000'), ...max('/u', '25000 50000') };
  const { root, write } = newRoot(files);
  const throttled = (path: string, micros: number) =>
    write(`${group}/${path}/cpu.stat`, `nr_throttled 2\nthrottled_usec ${micros}\nnr_bursts 0`);
  throttled('u/r', 3000);
  throttled('u', 500);
  throttled('', 50_000);
  const { quotas, read } = watchThrottling(root);
  const folder = `${root}/${group}`;
  expect(quotas).toBe(`${folder}/u/r/cpu.max: 1.5 cores, ${folder}/u/cpu.max: 0.5 cores`);
  expect(read()).toBe(3.5);
  throttled('u/r', 33_000);
  expect(read()).toBe(33.5);
});

test('quotas of other process groups are reported separately, each once', () => {
  const { root } = newRoot({
    ...v2('/bakeoff'),
    'proc/10/cgroup': '0::/s/server',
    'proc/11/cgroup': '0::/s/server/worker',
    ...max('/bakeoff', '100000 100000'),
    ...max('/s/server', '50000 100000'),
    [`${group}/s/server/cpu.stat`]: 'usage_usec 9\nnr_throttled 2\nthrottled_usec 7000',
  });
  const { quotas, read } = watchThrottling(root, ['10', '11', '12']);
  expect(quotas).toBe(`${root}/${group}/s/server/cpu.max: 0.5 cores`);
  expect(read()).toBe(7);
});

test('reads throttling of cgroup v1; without a quota there is none', () => {
  expect(watchThrottling(newFolder()).read()).toBe(0);
  const { root } = newRoot({
    ...v1('/docker/1', '/docker/1'),
    ...cfs('', 100_000),
    [`${group}/cpu/cpu.stat`]: 'nr_periods 7\nnr_throttled 4\nthrottled_time 2500000',
  });
  const { quotas, read } = watchThrottling(root);
  expect(quotas).toBe(`${root}/${group}/cpu/cpu.cfs_quota_us: 1 core`);
  expect(read()).toBe(2.5);
});

test('a quota that is too small is refused', () => {
  const small = madeUp({ siblings: apart }, 1.5);
  expect(() => divideCores(small, {})).toThrow('of 2 cores, and a quota allows 1.5 cores');
  expect(defaultCores(small)).toBeUndefined();
  const shared = { sharedCores: true } as const;
  expect(() => divideCores(madeUp({}, 0.5), {}, shared)).toThrow('the CPU time of 1 core, and');
});

test.each([
  [8, '', undefined],
  [2.5, '', /^a quota allows the CPU time of 2\.5 cores of the 8 that are here, and .* on 2; /],
  [2.5, '2,6 / 0,4', / the CPU time of 2\.5 cores .* are on 4: .* name fewer/],
])('a quota of %d cores is noted, as "%s"', (quota, text, note) => {
  const machine = madeUp({ siblings: apart }, quota);
  expect(notesOn(machine, divideCores(machine, asked(text)))).toEqual(
    note === undefined ? [] : [expect.stringMatching(note)],
  );
});

test('lists of cores are parsed and formatted', () => {
  expect(parseCpuList('5,0-2,2-3', '')).toEqual([0, 1, 2, 3, 5]);
  expect(formatCpuList([0, 1, 2, 3, 5])).toBe('0-3,5');
});

test.each(['', '3-1', '1-2-3', '99999'])('refuses "%s" as a list of cores', (text) => {
  expect(() => parseCpuList(text, '--a')).toThrow(`--a ${text}: write cores as 1 or 0-3,5`);
});
