// The user that a server runs as, and its limit of open files.
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import { textOf } from '../files.ts';
import { mostProcessesOfGroups } from '../machine/usage.ts';
import { processIds, userOf } from '../proc-files.ts';
import { lastLine, run, type Before, type RunAs } from '../process.ts';

/**
 * User ids that nothing else uses (see "Users, Groups, UIDs and GIDs" of systemd). The second range is for containers, which may have no
 * higher ids.
 */
const systemIds = { first: 0x7000_0000, count: 0x0800_0000 };
const freeIds = [systemIds, { first: 61_184, count: 4336 }];

/** Returns a user for one server: no file and no other process belongs to this user. Returns undefined if bakeoff does not run as root. */
export function unprivilegedUser(): RunAs | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const range = freeIds.find(isMapped) ?? systemIds;
  const taken = idsInUse();
  for (;;) {
    // The next id belongs to the process that ends the server's processes (scope.ts).
    const id = range.first + 2 * randomInt(range.count / 2);
    if (!taken.has(id) && !taken.has(id + 1))
      return { name: 'an unprivileged user', uid: id, gid: id };
  }
}

/** Returns whether this process's user namespace has these ids. */
function isMapped({ first, count }: typeof systemIds): boolean {
  const holds = (line: string) => {
    const [begin = NaN, , size = 0] = line.trim().split(/\s+/).map(Number);
    return begin <= first && first + count <= begin + size;
  };
  return ['uid_map', 'gid_map'].every((map) => textOf(`/proc/self/${map}`).split('\n').some(holds));
}

function idsInUse(): Set<number> {
  const users = processIds('/proc').map((pid) => userOf(pid) ?? 0);
  return new Set(users);
}

const runnable = new Set<string>();

/** Throws UserError if root cannot become this user, or the user cannot run the binary. */
export async function requireRunnable(binary: string, user: RunAs | undefined): Promise<void> {
  // All users that own nothing may do the same.
  if (user === undefined || runnable.has(binary)) return;
  const { code, stderr } = await run({ command: 'test', args: ['-x', binary], user });
  if (code !== 0)
    throw new UserError(
      /^setpriv: /m.test(stderr)
        ? `${binary} runs as ${user.name}, and root cannot become one here (${lastLine(stderr)}): give the container the capabilities CHOWN, SETGID and SETUID, or start bakeoff as another user`
        : `${binary} is closed to other users, and servers run as ${user.name} if root starts them: open it and the folders above it to all (chmod a+rx), or start bakeoff without root`,
    );
  runnable.add(binary);
}

/** Listening socket, epoll, logs, channels, pages. */
const otherFiles = 256;

/** The hard limit of open files, which child processes inherit. */
export function hardFilesLimit(): number {
  // If there is no hard limit, the kernel's own limit applies.
  return Math.min(hardLimit('open files'), Number(readFileSync('/proc/sys/fs/nr_open', 'utf8')));
}

/** Limit of processes and threads for a server's user: far more than a server has, and too few to exhaust the machine. */
const mostProcesses = 4096;

/**
 * The share of the control groups' processes that one server may have: several servers may be at their limit, and the processes that end
 * them need some too.
 */
const partOfGroups = 1 / 8;

/** The limit of processes for a server's user. */
export function processesLimit(): number {
  const ofGroups = Math.floor(mostProcessesOfGroups() * partOfGroups);
  return Math.min(hardLimit('processes'), mostProcesses, ofGroups);
}

/** If memory runs out before bakeoff reacts, the kernel kills this process and its children first. They cannot change that. */
const firstToGo: Before = [
  'sh',
  '-c',
  '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"',
  'sh',
];

/**
 * Command prefix that sets a server's limits. Root's limits may be higher than its children may set them. @param user the server's user, if
 * root starts it
 */
export function limiting(fileLimit: number, user: RunAs | undefined): Before[] {
  const files = `--nofile=${fileLimit}:${fileLimit}`;
  if (user === undefined) return [['prlimit', files, '--']];
  const processes = `--nproc=${processesLimit()}:${processesLimit()}`;
  return [firstToGo, ['prlimit', files, processes, '--']];
}

/** Returns a hard limit of this process, or Infinity if it is unlimited. @param what its name in /proc/self/limits */
function hardLimit(what: string): number {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const limit = new RegExp(`^Max ${what}\\s+\\S+\\s+(\\S+)`, 'm').exec(limits)?.[1];
  return Number(limit) || Infinity;
}

export function filesNeeded(asked: number | undefined, connections: number): number {
  return asked ?? connections + otherFiles;
}

/**
 * Returns the limit of open files for a server.
 * @param asked ServerSpec.fileLimit, which may be too low for the load on purpose; absent: the hard limit
 * @param connections of the load, which may all go to one worker
 * @param host as in requireFiles
 * @throws UserError if the hard limit is too low
 */
export function fileLimitFor(
  name: string,
  asked: number | undefined,
  connections: number,
  hardLimit: number,
  host?: string,
): number {
  const needed = filesNeeded(asked, connections);
  requireFiles(
    needed,
    hardLimit,
    `${name} needs ${needed} open files for ${asked === undefined ? `${connections} connections` : 'its variant'}`,
    host,
  );
  return asked ?? hardLimit;
}

/**
 * Throws UserError if more files are needed than the limit.
 * @param why begins the message: "h2o needs 5256 open files for 5000 connections"
 * @param host of the limit, as the user named it; absent: this machine
 */
export function requireFiles(needed: number, hardLimit: number, why: string, host?: string): void {
  if (needed <= hardLimit) return;
  if (host === undefined)
    throw new UserError(
      `${why}, but the hard limit here is ${hardLimit}: raise it as root with "prlimit --nofile=${needed}:${needed} --pid $$" in this shell`,
    );
  throw new UserError(
    `${why}, but the hard limit on ${host} is ${hardLimit}: raise it there for who comes by ssh (nofile in /etc/security/limits.conf)`,
  );
}
