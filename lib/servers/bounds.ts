// Limits the memory and the files of a config's server, with everything that code in the config starts and writes. A control group would
// limit memory better, but where bakeoff usually runs (containers, sessions of systemd) it cannot make one.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { total } from '../analysis/statistics.ts';
import { systemError } from '../errors.ts';
import { ifThere, linkOf, namesIn, textOf } from '../files.ts';
import { livingFolder } from '../proc-files.ts';
import { whole } from '../format.ts';
import { run } from '../process.ts';

/** The usual folders where every user may write. */
const usuallyOpen = ['/dev/shm', '/tmp', '/var/tmp', '/run/lock', '/dev/mqueue', os.tmpdir()];
const mostDepth = 5;
/** A user of this machine may make any number of folders. */
const mostFolders = 100;

let open: Promise<string[]> | undefined;

/**
 * Folders where every user may write, without links: the usual ones, and those up to five levels below them. They are searched for once.
 */
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
  // A search in an open folder also searches the open folders directly in it: see filesOfUser.
  const all = new Set([...usual, ...inside]);
  const others = inside.filter((folder) => !all.has(path.dirname(folder)));
  return [...new Set([...usual, ...others])].slice(0, mostFolders);
}

const lookEveryMs = 1000;
/** The share of time that looks may take; the pause between them never exceeds longestPauseMs. Much shared memory makes a look slow. */
const mostOfTime = 0.02;
const longestPauseMs = 10_000;
/**
 * The number of processes whose share of pages (PSS) is read, which takes milliseconds each. More processes than a server has count as if
 * they shared no private pages.
 */
const mostShares = 200;
const countSeconds = 10;
/** With less free space a file system counts as full, whoever wrote there. */
const leastBytes = 20e6;

/**
 * Watches the memory and files of a server's user until `stop`. It may use half of the memory that is free now, and half of the free space
 * of each file system where every user may write.
 * @param folders where the user may write: openFolders, and the server's own
 * @param processes returns the ids of the user's processes
 * @param end ends them; called once, when they use more
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

  /** Bytes in file systems that the user has mounted, which only its own processes see. */
  function mountedBytes(): number {
    if (!processes().some(hasOwnMounts)) return 0;
    return Math.max(0, sharedBytes() - shared - total(inMemory, newBytes));
  }

  async function isMemoryExceeded(): Promise<boolean> {
    const others = shmBytes(uid) + mountedBytes() + total(inMemory, newBytes);
    if (others + total(processes(), residentBytes) <= mostMemory) return false;
    // The first sum counts resident pages that processes share once for each process.
    const held = shmBytes(uid) + mountedBytes() + bytesSharedOnce(processes());
    if (held + total(inMemory, newBytes) <= mostMemory) return false;
    return held + (await bytesOf(uid, inMemory, processes())) > mostMemory;
  }

  /** If all new bytes count, so do those of other programs. */
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
    // A look fails while the machine has no free file descriptor or process.
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
    /** Says that the server used more than a bound; the words follow the server's name. */
    exceeded: () => exceeded,
    stop(): void {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/** Bytes of memory that are free on this machine, or in a container at most its limit. */
function freeMemory(): number {
  const limit = process.constrainedMemory() || Infinity;
  return Math.min(os.freemem(), limit);
}

const kilobytesIn = (file: string, fields: RegExp): number[] =>
  [...textOf(file).matchAll(fields)].map(([, kilobytes]) => Number(kilobytes));

const statusBytes = (pid: string, fields: RegExp): number =>
  1024 * total(kilobytesIn(`${livingFolder(pid)}/status`, fields), Number);

const residentBytes = (pid: string): number => statusBytes(pid, /^(?:VmRSS|VmSwap):\s+(\d+) kB/gm);

/** Memory of processes in bytes. Pages that they share count once. */
function bytesSharedOnce(processes: readonly string[]): number {
  let bytes = 0;
  // Root in a container may not read the proportional set size (PSS) of each process.
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

/** Bytes of the user's System V shared memory, which stays when its processes have ended. */
function shmBytes(uid: number): number {
  const rows = textOf('/proc/sysvipc/shm').trim().split('\n').slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/).map(Number));
  // uid, rss and swap of proc(5).
  return total(fields, (row) => (row[7] === uid ? (row[14] ?? 0) + (row[15] ?? 0) : 0));
}

/** Bytes of this machine's shared memory and of files in memory. */
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
  /** Bytes in use at the server's start. */
  usedBytes: number;
  freeBytes: number;
}

/** The type of tmpfs in statfs(2). */
const tmpfs = 0x0102_1994;

function fileSystemsOf(folders: readonly string[]): FileSystem[] {
  const systems = new Map<number, FileSystem>();
  for (const folder of folders) {
    const dev = ifThere(() => fs.statSync(folder).dev);
    // Another user's folder may be gone by now.
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

/**
 * Bytes added to a file system since the server's start, whoever wrote or removed files. Its cost does not grow with the number of files.
 */
function newBytes({ folders: [folder = ''], usedBytes }: FileSystem): number {
  const now = ifThere(() => fs.statfsSync(folder));
  return now === undefined ? 0 : Math.max(0, (now.blocks - now.bfree) * now.bsize - usedBytes);
}

/**
 * Bytes of the user's files in the file systems' folders, with files without a name that its processes have open. Returns all bytes that
 * are new there if the user has too many files to count, or if this process may not see what the user's processes have open.
 */
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

/** Bytes of files on these file systems that were removed, but that these processes have open or mapped. */
function namelessBytes(systems: readonly FileSystem[], processes: readonly string[]): number {
  const found = new Map<string, number>();
  for (const file of processes.flatMap(heldFiles)) {
    const stats = ifThere(() => fs.statSync(file));
    if (stats?.nlink === 0 && systems.some(({ dev }) => dev === stats.dev))
      found.set(`${stats.dev} ${stats.ino}`, 512 * stats.blocks);
  }
  return total([...found.values()], Number);
}

/**
 * Returns whether this process may not see which files a process has open. That is so for root in a container, if the process is another
 * user's (CAP_SYS_PTRACE).
 */
function hidesFiles(pid: string): boolean {
  try {
    // If the link cwd cannot be read, the links of open files cannot be read either.
    fs.readlinkSync(`${livingFolder(pid)}/cwd`);
    return false;
  } catch (error) {
    return systemError(error).code === 'EACCES';
  }
}

/** Open files of each thread of a process, since threads may open files of their own, and the removed files that the process has mapped. */
function heldFiles(pid: string): string[] {
  const tasks = namesIn(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`);
  const opened = tasks.flatMap((task) => namesIn(`${task}/fd`).map((name) => `${task}/fd/${name}`));
  const living = livingFolder(pid);
  const ranges = [...textOf(`${living}/maps`).matchAll(/^(\S+) .* \(deleted\)$/gm)];
  // The names in map_files have no leading zeros.
  const names = ranges.map(([, range = '']) => range.replaceAll(/(^|-)0+(?=.)/g, '$1'));
  return [...opened, ...names.map((name) => `/proc/${pid}/map_files/${name}`)];
}

/**
 * Arguments of find(1) between the folders and the action. They find the user's files in the folders and in folders directly there where
 * every user may write, such as /tmp/.X11-unix, but not in folders of the user.
 */
export const filesOfUser = (uid: number | string): string[] =>
  `-mindepth 1 -maxdepth ${mostDepth} -type d ! -user ${uid} ! -perm -0002 -prune -o -user ${uid} -prune`.split(
    ' ',
  );

/** Paths of the user's files in the open folders, except those in folders of the user. */
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
