import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import type { UpstreamAddress } from '../../lib/servers/ports.ts';
import { addressFor } from '../../lib/servers/own/stub.ts';
import { watchUpstreams } from '../../lib/servers/usage.ts';
import { newFolder } from '../fixtures/new-folder.ts';

let proc = '';
beforeEach(() => {
  proc = newFolder();
  mkdirSync(path.join(proc, 'net'));
});

/** What /proc shows of a process of one task, last on a core, with sockets open. */
function show(
  pid: number,
  cpuSeconds: number,
  cpu: number,
  sockets: readonly string[] = [],
  children: readonly number[] = [],
) {
  const task = path.join(proc, String(pid), 'task', String(pid));
  const fd = path.join(proc, String(pid), 'fd');
  rmSync(path.join(proc, String(pid)), { recursive: true, force: true });
  for (const folder of [task, fd]) mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(task, 'schedstat'), `${cpuSeconds * 1e9} 7 9\n`);
  writeFileSync(path.join(task, 'stat'), `${pid} (a) b) S 1 ${'0 '.repeat(34)}${cpu} 0 0\n`);
  writeFileSync(path.join(task, 'children'), children.map((child) => `${child} `).join(''));
  for (const [index, inode] of sockets.entries())
    symlinkSync(`socket:[${inode}]`, path.join(fd, String(index)));
}

const head =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const tcp = (port: number, inode: string, state = '0A') =>
  `   0: 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100 0 0 10 0\n`;
const watch = (addresses: readonly UpstreamAddress[], cpus: readonly number[]) =>
  watchUpstreams(addresses, cpus, proc);

test('a backend is all workers of the listening group, on the cores asked about', () => {
  writeFileSync(
    path.join(proc, 'net', 'tcp'),
    head + tcp(3000, '77') + tcp(3000, '78', '01') + tcp(4000, '79'),
  );
  show(10, 100, 1, ['5', '77'], [11]);
  show(11, 50, 1, ['77'], [12]);
  show(12, 30, 1);
  show(20, 5, 1, ['78', '79']);
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  const used = watch([{ port: 3000 }], [1]);
  expect(used()).toBe(0);
  show(10, 101, 1, ['5', '77'], [11]);
  show(11, 52, 1, ['77'], [12, 13]);
  show(12, 34, 0);
  show(20, 9, 1, ['78', '79']);
  expect(used(), 'the one on core 0 is not counted').toBe(3);
  show(13, 8, 1);
  expect(used()).toBe(3);
  now.mockReturnValue(1000);
  expect(used(), 'one that began later').toBe(11);
  rmSync(path.join(proc, '11'), { recursive: true });
  expect(used()).toBe(11);
});

test('a backend is not all that systemd has started', () => {
  writeFileSync(path.join(proc, 'net', 'tcp'), head + tcp(3000, '77'));
  show(1, 1, 0, ['77'], [10, process.pid]);
  show(10, 1, 0, ['77'], [11]);
  show(11, 1, 0);
  show(process.pid, 1, 0, [], [20]);
  show(20, 1, 0);
  const used = watch([{ port: 3000 }], [0]);
  used();
  show(11, 3, 0);
  show(20, 9, 0);
  expect(used()).toBe(2);
});

test('a backend may listen on IPv6, and at a socket', () => {
  writeFileSync(path.join(proc, 'net', 'tcp6'), head + tcp(3000, '77'));
  writeFileSync(
    path.join(proc, 'net', 'unix'),
    'Num       RefCount Protocol Flags    Type St Inode Path\n' +
      '0000000000000000: 00000003 00000000 00000000 0001 03 91 /run/app\n0000000000000000: 00000002 00000000 00010000 0001 01  92 /run/app\n',
  );
  show(10, 1, 0, ['77']);
  show(11, 1, 0, ['92']);
  show(12, 1, 0, ['91']);
  const used = watch([{ port: 3000 }, { socket: '/run/app' }], [0]);
  used();
  show(10, 2, 0, ['77']);
  show(11, 3, 0, ['92']);
  show(12, 9, 0, ['91']);
  expect(used()).toBe(3);
});

test.each([
  [[], 0],
  [[3000], 0],
  [[4000], null],
  [[5000], null],
  [[3000, 4000], null],
])('at %j is unknown if nobody listens, or another user: %s', (ports, used) => {
  writeFileSync(path.join(proc, 'net', 'tcp'), head + tcp(3000, '77') + tcp(4000, '78'));
  show(10, 1, 0, ['77']);
  const addresses = ports.map((port) => ({ port }));
  expect(watch(addresses, [0])()).toBe(used);
});

test('a stub answers after its time with its bytes, and what is none stands for itself', async () => {
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
