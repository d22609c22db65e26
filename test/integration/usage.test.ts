// CPU time and memory of servers and backends, from a fake /proc.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { byName } from '../../lib/present.ts';
import { wordsOf } from '../../lib/process.ts';
import { counterNames } from '../../lib/result/result.ts';
import { addressFor } from '../../lib/servers/own/redirect.ts';
import type { UpstreamAddress } from '../../lib/servers/ports.ts';
import { makeScratch } from '../../lib/servers/scratch.ts';
import { countersOf, processTree, watchUpstreams, watchUsage } from '../../lib/servers/usage.ts';
import { newFolder } from '../fixtures/new-folder.ts';

afterEach(() => void vi.restoreAllMocks());

let proc = '';
beforeEach(() => {
  proc = newFolder();
});

const noQuota = { quotaThrottledMs: 0, quotas: '' };

interface Task {
  cpuSeconds: number;
  children?: readonly number[];
}

interface Shown {
  parent?: number;
  cpu?: number;
  sockets?: readonly string[];
  schedstat?: boolean;
  state?: string;
  tracer?: number;
  childrenLists?: boolean;
  /** CPU seconds of ended and awaited children. */
  reaped?: number;
}

/** Writes the /proc files of a process; tasks by thread id. */
function show(
  pid: number,
  tasks: Record<number, Task>,
  {
    parent = 1,
    cpu = 0,
    sockets = [],
    schedstat = true,
    childrenLists = true,
    state = 'S',
    tracer = 0,
    reaped = 0,
  }: Shown = {},
) {
  const faults = `${'0 '.repeat(6)}${reaped > 0 ? 7 : 0} 0 0 `;
  const ofChildren = reaped > 0 ? `${reaped * 100 - 2} 2` : '0 0';
  const stat = (cpuSeconds: number) =>
    `${pid} (a (strange) name) ${state} ${parent} ${faults}${cpuSeconds * 100 - 3} 3 ${ofChildren} ${'0 '.repeat(21)}${cpu} 0 0\n`;
  const folder = path.join(proc, String(pid));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.join(folder, 'fd'), { recursive: true });
  for (const [tid, { cpuSeconds, children = [] }] of Object.entries(tasks)) {
    const task = path.join(folder, 'task', tid);
    mkdirSync(task, { recursive: true });
    writeFileSync(path.join(task, 'stat'), stat(cpuSeconds));
    if (schedstat)
      writeFileSync(path.join(task, 'schedstat'), `${cpuSeconds * 1e9} ${cpuSeconds * 5e8} 9\n`);
    if (childrenLists) writeFileSync(path.join(task, 'children'), `${children.join(' ')} `);
  }
  for (const [index, inode] of sockets.entries())
    symlinkSync(`socket:[${inode}]`, path.join(folder, 'fd', String(index)));
  writeFileSync(path.join(folder, 'stat'), stat(0));
  writeFileSync(
    path.join(folder, 'status'),
    `Name:\tx\nTracerPid:\t${tracer}\nVmRSS:\t    ${pid} kB\nRssAnon:\t 1 kB\n`,
  );
}

const showOne = (
  pid: number,
  cpuSeconds: number,
  { children = [], ...more }: Shown & Pick<Task, 'children'> = {},
) => show(pid, { [pid]: { cpuSeconds, children } }, more);

/** The usage of process 10 and those below it. */
const usageOfTen = (options: Parameters<typeof watchUsage>[1] = {}) =>
  watchUsage(() => processTree(proc, '10'), { proc, ...options });

/** A clock that stands still until it is set. */
const stoppedClock = () => vi.spyOn(performance, 'now').mockReturnValue(0);

describe.each([
  ['with schedstat and lists of children', {}],
  ['without schedstat', { schedstat: false }],
  ['without lists of children', { childrenLists: false }],
])('%s', (_, kernel) => {
  it('sums all tasks of the process tree, and no others', () => {
    const first = { cpuSeconds: 1, children: [20] };
    show(10, { 10: first, 11: { cpuSeconds: 2, children: [21] } }, kernel);
    showOne(20, 4, { parent: 10, children: [30], ...kernel });
    showOne(21, 8, { parent: 10, ...kernel });
    showOne(30, 16, { parent: 20, ...kernel });
    showOne(40, 32, kernel);
    expect(usageOfTen()()).toEqual({
      cpuSeconds: 31,
      waitedSeconds: 'schedstat' in kernel ? 0 : 15.5,
      rssBytes: 81 * 1024,
      ...noQuota,
      stopped: false,
    });
  });
});

it('keeps the usage of ended processes, and finds new ones a second later', () => {
  const now = stoppedClock();
  showOne(10, 1, { children: [20] });
  showOne(20, 4, { parent: 10 });
  const usage = usageOfTen();
  expect(usage().cpuSeconds).toBe(5);
  rmSync(path.join(proc, '20'), { recursive: true });
  showOne(10, 2, { children: [21] });
  showOne(21, 8, { parent: 10 });
  now.mockReturnValue(999);
  expect(usage().cpuSeconds).toBe(6);
  now.mockReturnValue(1000);
  const used = {
    cpuSeconds: 14,
    waitedSeconds: 7,
    rssBytes: 31 * 1024,
    ...noQuota,
    stopped: false,
  };
  expect(usage()).toEqual(used);
  showOne(21, 3, { parent: 10 });
  expect(usage().cpuSeconds, 'the id went to a newcomer').toBe(17);
  for (const pid of ['10', '21']) rmSync(path.join(proc, pid), { recursive: true });
  expect(usage()).toEqual({ ...used, cpuSeconds: 17, waitedSeconds: 8.5, rssBytes: 0 });
  now.mockReturnValue(5000);
  expect(usage()).toEqual({ ...used, cpuSeconds: 17, waitedSeconds: 8.5, rssBytes: 0 });
});

describe('processes that start and end between two look-ups', () => {
  const gone = (pid: number) => rmSync(path.join(proc, String(pid)), { recursive: true });

  it('count as soon as the parent has waited for them', () => {
    const now = stoppedClock();
    showOne(10, 1, { reaped: 2 });
    const usage = usageOfTen();
    expect(usage().cpuSeconds).toBe(3);
    now.mockReturnValue(1);
    showOne(10, 1, { reaped: 5 });
    expect(usage().cpuSeconds).toBe(6);
    showOne(10, 2, { reaped: 5 });
    expect(usage().cpuSeconds).toBe(7);
  });

  it('count even if the parent had no child at first', () => {
    const now = stoppedClock();
    showOne(10, 1);
    const usage = usageOfTen();
    expect(usage().cpuSeconds).toBe(1);
    showOne(10, 1, { reaped: 4 });
    now.mockReturnValue(1000);
    expect(usage().cpuSeconds).toBe(5);
  });

  it('count once if seen before, including later usage', () => {
    stoppedClock();
    showOne(10, 1, { children: [20], reaped: 1 });
    showOne(20, 4, { parent: 10, children: [30], reaped: 2 });
    showOne(30, 8, { parent: 20 });
    const usage = usageOfTen();
    expect(usage().cpuSeconds).toBe(16);
    gone(30);
    showOne(20, 4, { parent: 10, reaped: 2 + 8.5 });
    expect(usage().cpuSeconds).toBe(16.5);
    gone(20);
    showOne(10, 1, { reaped: 1 + 4 + 2 + 8.5 + 0.25 });
    expect(usage().cpuSeconds).toBe(16.75);
    showOne(10, 1, { reaped: 16.75 });
    expect(usage().cpuSeconds).toBe(17.75);
  });

  it('count once if they end together with the parent', () => {
    stoppedClock();
    showOne(10, 1, { children: [20], reaped: 1 });
    showOne(20, 4, { parent: 10, children: [30] });
    showOne(30, 8, { parent: 20 });
    const usage = usageOfTen();
    expect(usage().cpuSeconds).toBe(14);
    for (const pid of [20, 30]) gone(pid);
    showOne(10, 1, { reaped: 1 + 4 + 8 });
    expect(usage().cpuSeconds).toBe(14);
  });

  // The two methods are independent.
  it('count the same with and without a control group', async () => {
    const scratch = await makeScratch();
    onTestFinished(scratch.end);
    const burn = 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done';
    const program = `while read count; do while [ $count -gt 0 ]; do sh -c '${burn}'; count=$((count-1)); done; echo; done`;
    const [first = '', ...args] = [...wordsOf(scratch.enter), 'sh', '-c', program];
    const server = spawn(first, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const after = async (count: number) => {
      server.stdin.write(`${count}\n`);
      await once(server.stdout, 'data');
      return [usage().cpuSeconds, scratch.cpuSeconds() ?? NaN] as const;
    };
    const usage = watchUsage(() => processTree('/proc', String(server.pid)));
    const [before, beforeInGroup] = await after(1);
    const [now, nowInGroup] = await after(100);
    const [used, inGroup] = [now - before, nowInGroup - beforeInGroup];
    expect(used).toBeGreaterThan(0.1);
    // Clock ticks of user and system time.
    if (!Number.isNaN(inGroup))
      expect(Math.abs(used - inGroup)).toBeLessThan(0.02 + 0.03 * inGroup);
  });
});

test('the figure of a control group takes precedence', () => {
  showOne(10, 1, { reaped: 4 });
  let ofGroup: number | undefined = 6;
  const cpuSecondsOfGroup = () => ofGroup;
  const usage = usageOfTen({ cpuSecondsOfGroup });
  expect(usage().cpuSeconds).toBe(6);
  ofGroup = undefined;
  rmSync(path.join(proc, '10'), { recursive: true });
  expect(usage().cpuSeconds, 'the group was removed').toBe(6);
});

test.each<[string, Shown, boolean]>([
  ['by a signal', { state: 'T' }, true],
  ['by a debugger', { state: 't', tracer: 99 }, true],
  ['not by the strace that it was started with', { state: 't', tracer: 10 }, false],
  ['not while it waits', { state: 'D' }, false],
])('a worker is stopped: %s', (_, worker, expected) => {
  showOne(10, 1, { children: [20] });
  showOne(20, 4, { parent: 10, ...worker });
  expect(usageOfTen()().stopped).toBe(expected);
});

it('counts bytes, faults and CPU time of a process by kind', () => {
  const pids = [String(process.pid)];
  const before = countersOf(pids);
  writeFileSync(path.join(proc, 'file'), Buffer.alloc(1e6));
  const after = countersOf(pids);
  const written = after.writtenBytes - before.writtenBytes;
  expect(written).toBeGreaterThanOrEqual(1e6);
  expect(written).toBeLessThan(2e6);
  expect(after.pageFaults).toBeGreaterThan(0);
  expect(after.userCpuUs).toBeGreaterThan(0);
  expect(countersOf(['1000000000'])).toEqual(byName(counterNames, () => 0));
});

describe('a backend', () => {
  /** Writes a socket table: ports with inode, and optionally a state other than listening. */
  function listen(file: string, ...sockets: [port: number, inode: string, state?: string][]) {
    const rows = sockets.map(
      ([port, inode, state = '0A']) =>
        `   0: 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100 0 0 10 0\n`,
    );
    mkdirSync(path.join(proc, 'net'), { recursive: true });
    writeFileSync(
      path.join(proc, 'net', file),
      `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n${rows.join('')}`,
    );
  }
  const watch = (addresses: readonly UpstreamAddress[], cpu: number) =>
    watchUpstreams(addresses, [cpu], proc);

  test('includes all workers of the listening process group, on the given cores', () => {
    listen('tcp', [3000, '77'], [3000, '78', '01'], [4000, '79']);
    const other = { cpu: 1, sockets: ['78', '79'] };
    const worker = { cpu: 1, sockets: ['77'] };
    showOne(10, 100, { ...worker, children: [11] });
    showOne(11, 50, { ...worker, children: [12] });
    showOne(12, 30, { cpu: 1 });
    showOne(20, 5, other);
    const now = stoppedClock();
    const used = watch([{ port: 3000 }], 1);
    expect(used()).toBe(0);
    showOne(10, 101, { ...worker, children: [11] });
    showOne(11, 52, { ...worker, children: [12, 13] });
    showOne(12, 34, { cpu: 0 });
    showOne(20, 9, other);
    expect(used(), 'the one on core 0 is not counted').toBe(3);
    showOne(13, 8, { cpu: 1 });
    expect(used()).toBe(3);
    now.mockReturnValue(1000);
    expect(used(), 'one that began later').toBe(11);
    rmSync(path.join(proc, '11'), { recursive: true });
    expect(used()).toBe(11);
  });

  test('does not include other services of systemd', () => {
    listen('tcp', [3000, '77']);
    showOne(1, 1, { sockets: ['77'], children: [10, process.pid] });
    showOne(10, 1, { sockets: ['77'], children: [11] });
    showOne(11, 1);
    showOne(process.pid, 1, { children: [20] });
    showOne(20, 1);
    const used = watch([{ port: 3000 }], 0);
    used();
    showOne(11, 3);
    showOne(20, 9);
    expect(used()).toBe(2);
  });

  test('may listen on IPv6 or a Unix socket', () => {
    listen('tcp6', [3000, '77']);
    const socket = path.join(newFolder(), 'app');
    writeFileSync(socket, '');
    writeFileSync(
      path.join(proc, 'net', 'unix'),
      'Num       RefCount Protocol Flags    Type St Inode Path\n' +
        `0000000000000000: 00000003 00000000 00000000 0001 03 91 ${socket}\n0000000000000000: 00000002 00000000 00010000 0001 01  92 ${socket}\n`,
    );
    const use = (...seconds: number[]) =>
      seconds.forEach((second, index) => {
        showOne(10 + index, second, { sockets: [['77', '92', '91'][index] as string] });
      });
    use(1, 1, 1);
    const used = watch([{ port: 3000 }, { socket }], 0);
    used();
    use(2, 3, 9);
    expect(used()).toBe(3);
  });

  test('at a socket without a file is none', () => {
    listen('tcp', [3000, '77']);
    showOne(10, 1, { sockets: ['77'] });
    const socket = path.join(newFolder(), 'none');
    expect(watch([{ socket }], 0)()).toBe(0);
    const used = watch([{ port: 3000 }, { socket }], 0);
    used();
    showOne(10, 3, { sockets: ['77'] });
    expect(used()).toBe(2);
  });

  test.each([
    [[], 0],
    [[3000], 0],
    [[4000], null],
    [[5000], null],
    [[3000, 4000], null],
  ])('at %j is unknown without a listener, or if another user listens: %s', (ports, used) => {
    listen('tcp', [3000, '77'], [4000, '78']);
    showOne(10, 1, { sockets: ['77'] });
    const addresses = ports.map((port) => ({ port }));
    expect(watch(addresses, 0)()).toBe(used);
  });

  test('as a stub responds with the given delay and length', async () => {
    const address = await addressFor('stub:40ms:2KB');
    const beginMs = performance.now();
    const answers = await Promise.all(
      ['/a', '/b'].map(async (path) => (await fetch(`http://${address}${path}`)).text()),
    );
    expect(performance.now() - beginMs).toBeGreaterThanOrEqual(39);
    expect(answers.map(({ length }) => length)).toEqual([2000, 2000]);
    expect(await addressFor('stub:40ms:2KB')).toBe(address);
    expect(await addressFor('127.0.0.1:7')).toBe('127.0.0.1:7');
  });
});
