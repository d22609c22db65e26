// Bounds on memory and files of a config's server and all that code in the config starts and writes. A control group would bound memory
// better, but in containers and sessions of systemd none can be made that does.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { total } from '../analysis/statistics.ts';
import { ifThere, linkOf, namesIn, textOf } from '../files.ts';
import { livingFolder } from '../proc-files.ts';
import { whole } from '../format.ts';
import { run } from '../process.ts';

/** Where every user may write. */
const usuallyOpen = ['/dev/shm', '/tmp', '/var/tmp', '/run/lock', '/dev/mqueue', os.tmpdir()];
const mostDepth = 5;
/** A user may make any number. */
const mostFolders = 100;

let open: Promise<string[]> | undefined;

/** Where every user may write, without links: the usual ones, and below them, five deep. */
export function openFolders(): Promise<string[]> {
  return (open ??= findOpenFolders());
}

async function findOpenFolders(): Promise<string[]> {
  const usual = realFolders(usuallyOpen);
  const below = `-mindepth 1 -maxdepth ${mostDepth} -type d -perm -0002 -print0`.split(' ');
  const found = await run({
    command: 'find',
    args: [...usual, ...below],
    limit: { seconds: countSeconds, message: 'too many files' },
  }).catch(() => undefined);
  const inside = (found?.stdout ?? '').split('\0').filter((folder) => folder !== '');
  // filesOfUser goes on in open folders directly in these.
  const all = new Set([...usual, ...inside]);
  const others = inside.filter((folder) => !all.has(path.dirname(folder)));
  return [...new Set([...usual, ...others])].slice(0, mostFolders);
}

const lookEveryMs = 1000;
/** Looks take no more, unless the pause between them were too long. */
const mostOfTime = 0.02;
const longestPauseMs = 10_000;
/** Processes of which the share of pages is read, which takes milliseconds each; more count as if they shared no private ones. */
const mostShares = 200;
const countSeconds = 10;
/** With less free a file system is full, whoever wrote there. */
const leastBytes = 20e6;

/**
 * Watches what a server's user uses, until `stop`: half of the memory that is free now, and of the free space of each file system where every
 * user may write. @param folders where it may write: openFolders, and the server's own @param processes its ids @param end called once, on more
 */
export function watchBounds(
  uid: number,
  folders: readonly string[],
  processes: () => string[],
  end: () => void,
) {
  const mostMemory = freeMemory() / 2;
  const shared = sharedBytes();
  const systems = fileSystemsOf(folders);
  const inMemory = systems.filter((system) => system.isMemory);
  const onDisk = systems.filter((system) => !system.isMemory);
  let exceeded: string | undefined;
  let isOver = false;
  let timer: NodeJS.Timeout;

  /** The user's own file systems, which only its processes see. */
  function mountedBytes(): number {
    if (!processes().some(hasOwnMounts)) return 0;
    return Math.max(0, sharedBytes() - shared - total(inMemory, newBytes));
  }

  async function isMemoryExceeded(): Promise<boolean> {
    const others = shmBytes(uid) + mountedBytes() + total(inMemory, newBytes);
    if (others + total(processes(), residentBytes) <= mostMemory) return false;
    // Shared resident pages count for each.
    const held = shmBytes(uid) + mountedBytes() + bytesSharedOnce(processes());
    if (held + total(inMemory, newBytes) <= mostMemory) return false;
    return held + (await bytesOf(uid, inMemory, processes())) > mostMemory;
  }

  /** Where all new bytes count, so do others'. */
  const sharedText = () =>
    processes().some(hidesFiles) ? ', those of other programs included,' : '';

  async function findExceeded(): Promise<string | undefined> {
    if (await isMemoryExceeded())
      return `used more than ${whole(mostMemory / 1e6)} MB of memory (with its files in memory, such as in /dev/shm), half of what was free at its start, and was ended`;
    for (const system of onDisk) {
      const mostBytes = system.freeBytes / 2;
      if (mostBytes < leastBytes || newBytes(system) <= mostBytes) continue;
      if ((await bytesOf(uid, [system], processes())) > mostBytes)
        return `wrote more than ${whole(mostBytes / 1e6)} MB of files${sharedText()} below ${system.folders.join(', ')}, half of what was free there at its start, and was ended`;
    }
    return undefined;
  }

  async function look(): Promise<void> {
    const beganAtMs = performance.now();
    // Without a file descriptor or process to spare, a look fails.
    const found = await findExceeded().catch(() => undefined);
    if (isOver) return;
    const tookMs = performance.now() - beganAtMs;
    const pauseMs = Math.min(longestPauseMs, tookMs / mostOfTime);
    if (found === undefined) return later(Math.max(lookEveryMs, pauseMs));
    exceeded = found;
    end();
  }

  function later(afterMs: number): void {
    timer = setTimeout(() => void look(), afterMs).unref();
  }

  later(lookEveryMs);
  return {
    /** Follows the server's name. */
    exceeded: () => exceeded,
    stop(): void {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/** A container has at most its limit. */
function freeMemory(): number {
  const limit = process.constrainedMemory() || Infinity;
  return Math.min(os.freemem(), limit);
}

const kilobytesIn = (file: string, fields: RegExp): number[] =>
  [...textOf(file).matchAll(fields)].map(([, kilobytes]) => Number(kilobytes));

const statusBytes = (pid: string, fields: RegExp): number =>
  1024 * total(kilobytesIn(`${livingFolder(pid)}/status`, fields), Number);

const residentBytes = (pid: string): number => statusBytes(pid, /^(?:VmRSS|VmSwap):\s+(\d+) kB/gm);

/** Shared pages count once. */
function bytesSharedOnce(processes: readonly string[]): number {
  let bytes = 0;
  // Root in a container may not see PSS.
  let mostShared = 0;
  for (const [index, pid] of processes.entries()) {
    const shares = index < mostShares ? `${livingFolder(pid)}/smaps_rollup` : '';
    const kilobytes = kilobytesIn(shares, /^(?:Pss|SwapPss):\s+(\d+) kB/gm);
    if (kilobytes.length > 0) bytes += 1024 * total(kilobytes, Number);
    else {
      bytes += statusBytes(pid, /^(?:RssAnon|VmSwap):\s+(\d+) kB/gm);
      mostShared = Math.max(mostShared, statusBytes(pid, /^RssShmem:\s+(\d+) kB/gm));
    }
  }
  return bytes + mostShared;
}

/** System V's stays without a process. */
function shmBytes(uid: number): number {
  const rows = textOf('/proc/sysvipc/shm').trim().split('\n').slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/).map(Number));
  // uid, rss and swap of proc(5).
  return total(fields, (row) => (row[7] === uid ? (row[14] ?? 0) + (row[15] ?? 0) : 0));
}

/** This machine's files in memory and shared memory. */
const sharedBytes = (): number =>
  1024 * total(kilobytesIn('/proc/meminfo', /^Shmem:\s+(\d+) kB/gm), Number);

function hasOwnMounts(pid: string): boolean {
  const mounts = linkOf(`${livingFolder(pid)}/ns/mnt`);
  return mounts !== '' && mounts !== linkOf('/proc/self/ns/mnt');
}

interface FileSystem {
  dev: number;
  folders: string[];
  isMemory: boolean;
  usedBytes: number;
  freeBytes: number;
}

/** Of statfs(2). */
const tmpfs = 0x0102_1994;

function fileSystemsOf(folders: readonly string[]): FileSystem[] {
  const systems = new Map<number, FileSystem>();
  for (const folder of folders) {
    const dev = ifThere(() => fs.statSync(folder).dev);
    // It may be gone.
    if (dev === undefined) continue;
    const known = systems.get(dev);
    const { type, blocks, bfree, bavail, bsize } = fs.statfsSync(folder);
    if (known !== undefined) known.folders.push(folder);
    // /dev/mqueue has no blocks.
    else if (blocks > 0)
      systems.set(dev, {
        dev,
        folders: [folder],
        isMemory: type === tmpfs,
        usedBytes: (blocks - bfree) * bsize,
        freeBytes: bavail * bsize,
      });
  }
  return [...systems.values()];
}

/** Since the server's start, whoever wrote or removed. Takes no time for each file. */
function newBytes({ folders: [folder = ''], usedBytes }: FileSystem): number {
  const now = ifThere(() => fs.statfsSync(folder));
  return now === undefined ? 0 : Math.max(0, (now.blocks - now.bfree) * now.bsize - usedBytes);
}

/** The user's files there, and those without a name that its processes have open; all new ones if too many to count, or not to be seen. */
async function bytesOf(
  uid: number,
  systems: readonly FileSystem[],
  processes: readonly string[],
): Promise<number> {
  const folders = systems.flatMap((system) => system.folders);
  if (folders.length === 0) return 0;
  if (processes.some(hidesFiles)) return total(systems, newBytes);
  const limit = { seconds: countSeconds, message: 'too many files' };
  const args = [...folders, ...filesOfUser(uid), '-exec', 'du', '-skx', '{}', '+'];
  const counted = await run({ command: 'find', args, limit }).catch(() => undefined);
  if (counted === undefined) return total(systems, newBytes);
  const sizes = [...counted.stdout.matchAll(/^(\d+)\t/gm)];
  return (
    1024 * total(sizes, ([, kilobytes]) => Number(kilobytes)) + namelessBytes(systems, processes)
  );
}

/** Removed files that these processes have open or mapped. */
function namelessBytes(systems: readonly FileSystem[], processes: readonly string[]): number {
  const found = new Map<string, number>();
  for (const file of processes.flatMap(heldFiles)) {
    const stats = ifThere(() => fs.statSync(file));
    if (stats?.nlink === 0 && systems.some(({ dev }) => dev === stats.dev))
      found.set(`${stats.dev} ${stats.ino}`, 512 * stats.blocks);
  }
  return total([...found.values()], Number);
}

/** Root in a container may not see another user's open files (CAP_SYS_PTRACE). */
function hidesFiles(pid: string): boolean {
  try {
    // It is as closed as the links of open files.
    fs.readlinkSync(`${livingFolder(pid)}/cwd`);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}

/** Looks at each thread, as they may open files of their own, and at removed files that are mapped. */
function heldFiles(pid: string): string[] {
  const tasks = namesIn(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`);
  const opened = tasks.flatMap((task) => namesIn(`${task}/fd`).map((name) => `${task}/fd/${name}`));
  const living = livingFolder(pid);
  const ranges = [...textOf(`${living}/maps`).matchAll(/^(\S+) .* \(deleted\)$/gm)];
  // Only maps pads its addresses.
  const names = ranges.map(([, range = '']) => range.replaceAll(/(^|-)0+(?=.)/g, '$1'));
  return [...opened, ...names.map((name) => `/proc/${pid}/map_files/${name}`)];
}

/**
 * Arguments of find(1) between folders and actions: the user's files there, and in open folders in them such as /tmp/.X11-unix, but not in
 * the user's own.
 */
export const filesOfUser = (uid: number | string): string[] =>
  `-mindepth 1 -maxdepth ${mostDepth} -type d ! -user ${uid} ! -perm -0002 -prune -o -user ${uid} -prune`.split(
    ' ',
  );

/** Leaves out those in folders of the user. */
export async function filesLeftBy(uid: number): Promise<string[]> {
  const limit = { seconds: countSeconds, message: 'too many files' };
  const found = await run({
    command: 'find',
    args: [...(await openFolders()), ...filesOfUser(uid), '-print'],
    limit,
  });
  return found.stdout.split('\n').filter((file) => file !== '');
}

function realFolders(folders: readonly string[]): string[] {
  const real = folders.flatMap((folder) => ifThere(() => fs.realpathSync(folder)) ?? []);
  return [...new Set(real)];
}
