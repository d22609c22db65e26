import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { byName } from '../../lib/present.ts';
import { counterNames } from '../../lib/result/result.ts';
import { countersOf, processTree, watchUsage } from '../../lib/servers/usage.ts';
import { newFolder } from '../fixtures/new-folder.ts';

let proc = '';
beforeEach(() => {
  proc = newFolder();
});

interface Task {
  cpuSeconds: number;
  children?: number[];
}

/** Writes what /proc shows of a process; its tasks by thread id. */
function show(
  pid: number,
  parent: number,
  tasks: Record<number, Task>,
  { schedstat = true, childrenLists = true } = {},
) {
  const stat = (cpuSeconds: number) =>
    `${pid} (a (strange) name) S ${parent} ${'0 '.repeat(9)}${cpuSeconds * 100 - 3} 3 0 0 20 0\n`;
  const folder = path.join(proc, String(pid));
  for (const [tid, { cpuSeconds, children = [] }] of Object.entries(tasks)) {
    const task = path.join(folder, 'task', tid);
    mkdirSync(task, { recursive: true });
    writeFileSync(path.join(task, 'stat'), stat(cpuSeconds));
    if (schedstat) writeFileSync(path.join(task, 'schedstat'), `${cpuSeconds * 1e9} 7 9\n`);
    if (childrenLists) writeFileSync(path.join(task, 'children'), `${children.join(' ')} `);
  }
  writeFileSync(path.join(folder, 'stat'), stat(0));
  writeFileSync(path.join(folder, 'status'), `Name:\tx\nVmRSS:\t    ${pid} kB\nRssAnon:\t 1 kB\n`);
}

describe.each([
  ['with schedstat and lists of children', {}],
  ['without schedstat', { schedstat: false }],
  ['without lists of children', { childrenLists: false }],
])('%s', (_, kernel) => {
  it('sums all tasks of the tree, and nobody else', () => {
    const first = { cpuSeconds: 1, children: [20] };
    show(10, 1, { 10: first, 11: { cpuSeconds: 2, children: [21] } }, kernel);
    show(20, 10, { 20: { cpuSeconds: 4, children: [30] } }, kernel);
    show(21, 10, { 21: { cpuSeconds: 8 } }, kernel);
    show(30, 20, { 30: { cpuSeconds: 16 } }, kernel);
    show(40, 1, { 40: { cpuSeconds: 32 } }, kernel);
    expect(watchUsage(() => processTree(proc, '10'), proc)()).toEqual({
      cpuSeconds: 31,
      rssBytes: 81 * 1024,
    });
  });
});

it('keeps the use of ended processes, finds new ones a second later', () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  show(10, 1, { 10: { cpuSeconds: 1, children: [20] } });
  show(20, 10, { 20: { cpuSeconds: 4 } });
  const usage = watchUsage(() => processTree(proc, '10'), proc);
  expect(usage().cpuSeconds).toBe(5);
  rmSync(path.join(proc, '20'), { recursive: true });
  show(10, 1, { 10: { cpuSeconds: 2, children: [21] } });
  show(21, 10, { 21: { cpuSeconds: 8 } });
  now.mockReturnValue(999);
  expect(usage().cpuSeconds).toBe(6);
  now.mockReturnValue(1000);
  expect(usage()).toEqual({ cpuSeconds: 14, rssBytes: 31 * 1024 });
  show(21, 10, { 21: { cpuSeconds: 3 } });
  expect(usage().cpuSeconds, 'the id went to a newcomer').toBe(17);
  rmSync(path.join(proc, '10'), { recursive: true });
  rmSync(path.join(proc, '21'), { recursive: true });
  expect(usage()).toEqual({ cpuSeconds: 17, rssBytes: 0 });
  now.mockReturnValue(5000);
  expect(usage()).toEqual({ cpuSeconds: 17, rssBytes: 0 });
});

it("counts a process's bytes, faults and CPU time by kind", () => {
  const folder = newFolder();
  const pids = [String(process.pid)];
  const before = countersOf(pids);
  writeFileSync(path.join(folder, 'file'), Buffer.alloc(1e6));
  const after = countersOf(pids);
  const written = after.writtenBytes - before.writtenBytes;
  expect(written).toBeGreaterThanOrEqual(1e6);
  expect(written).toBeLessThan(2e6);
  expect(after.pageFaults).toBeGreaterThan(before.pageFaults);
  expect(after.userCpuUs).toBeGreaterThan(0);
  expect(countersOf(['1000000000'])).toEqual(byName(counterNames, () => 0));
});
