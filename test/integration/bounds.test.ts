// The bounds on what code in a config uses of the machine, and the removal of what it leaves.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { textOf } from '../../lib/files.ts';
import { boundLog } from '../../lib/program-logs.ts';
import { userOf } from '../../lib/proc-files.ts';
import { watchBounds } from '../../lib/servers/bounds.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { startedBy, useServers } from '../fixtures/servers.ts';

const test = useServers();
afterEach(() => void vi.restoreAllMocks());
const asRoot = it.runIf(process.getuid?.() === 0);
const { statfsSync } = fs;
const soon = { timeout: 20_000, interval: 20 };

/** A config of h2o that runs code in Perl. */
async function withCode(code: string): Promise<string> {
  const folder = await ownFiles({
    'code.pl': `${code}\nsleep 9 while 1;`,
    'www/index.html': 'hello',
  });
  const file = path.join(folder, 'own.yaml');
  await writeFile(
    file,
    `listen: 8080\nhosts:\n  a:\n    paths:\n      /: {file.dir: ${folder}/www}\n      /code: {fastcgi.spawn: "exec perl ${folder}/code.pl"}\n`,
  );
  return file;
}

const openFolders = ['/dev/shm', '/tmp', '/var/tmp', '/run/lock'];

const isOfTest = (name: string) => name.startsWith('left-by-');

/** The user's files where every user may write, and its shared memory. */
function leftBy(uid: number): string[] {
  const files = openFolders.flatMap((folder) =>
    readdirSync(folder).filter((name) => name.startsWith(`left-by-${uid}`)),
  );
  const shared = readFileSync('/proc/sysvipc/shm', 'utf8').split('\n');
  return [...files, ...shared.filter((row) => row.includes(` ${uid} `))];
}

const writing = (folder: string, megabytes: number) =>
  `mkdir "${folder}/left-by-$<"; open F, ">", "${folder}/left-by-$</f"; print F "x" x 1e6 for 1..${megabytes}; close F;`;

// Numbers of exit(2), which ends a thread, and of mmap(2).
const [exits, maps] = process.arch === 'x64' ? [60, 9] : [93, 222];

asRoot.each([
  ['memory of processes', 'fork; our $much = "x" x 80e6;'],
  [
    'memory of a thread whose process has no first one',
    `use threads; threads->create(sub { our $much = "x" x 160e6; sleep 9 while 1 }); syscall(${exits}, 0);`,
  ],
  ['files in /dev/shm', writing('/dev/shm', 150)],
  [
    'shared memory',
    'my $id = shmget(0, 150e6, 0600); my $some = "x" x 1e6; shmwrite($id, $some, 1e6 * $_, 1e6) for 0..149;',
  ],
  [
    'a file system that it mounts',
    'exec q(unshare -Urm sh -c "mount -t tmpfs none /mnt && head -c 150M /dev/zero >/mnt/f; sleep 60");',
  ],
])('ends a server whose code uses more %s than its bound, and says so', async (_, code) => {
  vi.spyOn(os, 'freemem').mockReturnValue(200e6);
  const server = await test.startOwn(await withCode(code));
  const uid = userOf(String(server.pid)) as number;
  expect(await server.died).toBe(
    `h2o (pid ${server.pid}) used more than 100 MB of memory (with its files in memory, such as in /dev/shm), half of what was free at its start, and was ended`,
  );
  expect(server.processes()).toEqual([]);
  expect(leftBy(uid)).toEqual([]);
});

/** As writing, to a file that has no name and stays open. */
const namelessly = (folder: string, megabytes: number) =>
  writing(folder, megabytes)
    .replace('; print F', `; unlink "${folder}/left-by-$</f"; print F`)
    .replace('close F', 'sleep 60');

/** As writing, to a file that has no name and is only mapped, at an address that /proc/PID/maps pads. */
const mapped = (folder: string, megabytes: number) =>
  writing(folder, megabytes)
    .replace('">"', '"+>"')
    .replace(
      'close F',
      `syscall(${maps}, 0x1000000, ${megabytes * 1e6}, 1, 0x11, fileno(F), 0); close F; unlink "${folder}/left-by-$</f"; sleep 60`,
    );

/** A new folder as X11 makes one in /tmp. */
function openSubfolder(): string {
  const folder = mkdtempSync('/var/tmp/open-to-all-');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o1777);
  return folder;
}

asRoot.each<[string, () => string, typeof writing?]>([
  ['a folder that is open to all', () => '/var/tmp'],
  ['such a folder in another', openSubfolder],
  ['a file without a name', () => '/var/tmp', namelessly],
  ['a file that it has mapped', () => '/var/tmp', mapped],
  ["the server's own folder", () => `" . glob("${test.folder}/bakeoff-server-*/temp") . "`],
])(
  'ends a server whose code writes more than its bound to a disk: %s',
  { timeout: 20_000 },
  async (_, folder, how = writing) => {
    const spied = vi.spyOn(fs, 'statfsSync').mockImplementation((place) => {
      const stats = statfsSync(place as string);
      return Object.assign(stats, { bavail: 60e6 / stats.bsize });
    });
    const place = folder();
    const server = await test.startOwn(await withCode(how(place, 150)));
    expect(spied).toHaveBeenCalled();
    const uid = userOf(String(server.pid)) as number;
    expect(await server.died).toMatch(
      / wrote more than 30 MB of files below .*, half of what was free there at its start, and was ended$/,
    );
    expect(leftBy(uid)).toEqual([]);
    if (place.startsWith('/')) expect(readdirSync(place).filter(isOfTest)).toEqual([]);
  },
);

asRoot.each([
  [
    'memory, without the right to see shares of pages',
    'import os from "node:os"; os.freemem = () => 200e6;',
    'fork; our $much = "x" x 80e6;',
    / used more than 100 MB of memory /,
  ],
  [
    'files, without the right to see those without a name',
    'import fs from "node:fs"; const { statfsSync } = fs; fs.statfsSync = (of) => { const stats = statfsSync(of); return Object.assign(stats, { bavail: 60e6 / stats.bsize }) };',
    namelessly('/var/tmp', 150),
    / wrote more than 30 MB of files, those of other programs included, below /,
  ],
])('keeps the bound of %s', async (_, small, code, message) => {
  const { runner } = await startedBy(
    { name: 'h2o', config: [await withCode(code)], workers: 1, asIs: {} },
    { binaries: test.binaries, folder: path.join(newFolder(), 'run'), page: { path: '/' } },
    {
      before: [
        'setpriv',
        '--bounding-set=-sys_ptrace,-perfmon,-sys_admin',
        '--inh-caps=-all',
        '--',
      ],
      env: { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(small)}"` },
    },
  );
  const [died] = (await once(runner.stdout as Readable, 'data')) as [Buffer];
  expect(String(died)).toMatch(message);
});

it('memory that processes share counts once', async () => {
  vi.spyOn(os, 'freemem').mockReturnValue(200e6);
  const script =
    'open Z, "/dev/zero"; read Z, our $much, 70e6; $| = 1; print "x"; fork; sleep 9 while 1';
  const child = spawn('perl', ['-e', script], { detached: true });
  onTestFinished(() => void process.kill(-(child.pid as number), 'SIGKILL'));
  await once(child.stdout, 'data');
  const children = () => textOf(`/proc/${child.pid}/task/${child.pid}/children`).match(/\d+/g);
  const pids = () => [String(child.pid), ...(children() ?? [])];
  await vi.waitFor(() => expect(pids()).toHaveLength(2), soon);
  const end = vi.fn();
  const look = vi.fn(pids);
  const { stop, exceeded } = watchBounds(0x7000_0000, [newFolder()], look, end);
  onTestFinished(stop);
  // Once for resident memory, once for the share of each process.
  await vi.waitFor(() => expect(look).toHaveBeenCalledTimes(4), soon);
  expect(exceeded()).toBeUndefined();
  expect(end).not.toHaveBeenCalled();
});

asRoot.each(['SIGTERM', 'SIGKILL'] as const)(
  'removes what code left where every user may write, and no more: %s',
  async (signal) => {
    const precious = await ownFiles({ 'a/b': 'x' });
    await chmod(precious, 0o777);
    const results = newFolder();
    await chmod(results, 0o777);
    // In a closed folder, which is in an open one that is in a closed one.
    const closed = await ownFiles({ 'a/b/open/of-others': 'x' });
    const open = path.join(closed, 'a/b/open');
    for (const folder of [open, path.join(closed, 'a')]) await chmod(folder, 0o777);
    const code = `
      for my $folder (qw(${[...openFolders, open].join(' ')})) {
        my $name = "$folder/left-by-$<";
        mkdir $name; mkdir "$name/closed"; open F, ">", "$name/closed/file"; print F "x" x 2e6; close F;
        symlink "${precious}", "$name/link"; symlink "${precious}", "$name-link";
        chmod 0, "$name/closed";
      }
      shmget(0, 1e6, 0600);`;
    const { printed, runner } = await startedBy(
      { name: 'h2o', config: [await withCode(code)], workers: 1, asIs: {} },
      { binaries: test.binaries, folder: path.join(results, 'run'), page: { path: '/' } },
    );
    const uid = userOf(printed.trim()) as number;
    await vi.waitFor(() => expect(leftBy(uid)).toHaveLength(9), soon);
    const exited = once(runner, 'exit');
    runner.kill(signal);
    await exited;
    await vi.waitFor(() => expect(leftBy(uid)).toEqual([]), soon);
    await vi.waitFor(() => expect(readdirSync(open)).toEqual(['of-others']), soon);
    expect(readdirSync(path.join(precious, 'a'))).toEqual(['b']);
  },
);

asRoot('names the bound of processes and threads', async () => {
  const folder = await ownFiles({
    'own.conf':
      'thread_pool default threads=6000;\nevents {}\nhttp { aio threads; server { listen 80; } }',
  });
  expect(
    await test.refusal(test.startOwn(path.join(folder, 'own.conf'), { readyLimitMs: 3000 })),
  ).toMatch(
    /pthread_create\(\) failed \(11: Resource temporarily unavailable\): its user may have at most 4096 processes and threads here$/,
  );
});

it('keeps a log from taking more space than its length, whatever its program reserves behind it', async () => {
  const file = path.join(newFolder(), 'error.log');
  await writeFile(file, 'said\n');
  const reserve = (bytes: number) =>
    execFileSync('fallocate', ['--keep-size', '--length', String(bytes), file]);
  const spaceOf = () => 512 * fs.statSync(file).blocks;
  const end = boundLog(file, 1e6);
  reserve(8e6);
  await vi.waitFor(() => expect(spaceOf()).toBeLessThan(1e6), { timeout: 5000, interval: 20 });
  reserve(500_000);
  await end({ shortens: false });
  expect(spaceOf()).toBeLessThan(100_000);
});
