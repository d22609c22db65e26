// A server's user, and its limit of open files.
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import { textOf } from '../files.ts';
import { mostProcessesOfGroups } from '../machine/usage.ts';
import { processIds, userOf } from '../proc-files.ts';
import { lastLine, run, type Before, type RunAs } from '../process.ts';

/** Unused by others (systemd, Users, Groups, UIDs and GIDs), and a container's. */
const freeIds = [
  { first: 0x7000_0000, count: 0x0800_0000 },
  { first: 61_184, count: 4336 },
];

/** A user for one server, if root starts it: nothing else is this user's. */
export function unprivilegedUser(): RunAs | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const range = freeIds.find(isMapped) ?? (freeIds[0] as (typeof freeIds)[number]);
  const taken = idsInUse();
  for (;;) {
    // The next one ends its processes (scope.ts).
    const id = range.first + 2 * randomInt(range.count / 2);
    if (!taken.has(id) && !taken.has(id + 1))
      return { name: 'an unprivileged user', uid: id, gid: id };
  }
}

/** Looks at this process's user namespace. */
function isMapped({ first, count }: (typeof freeIds)[number]): boolean {
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

/** @throws UserError if root cannot become this user, or that cannot run the binary */
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

/** That child processes inherit. */
export function hardFilesLimit(): number {
  // The kernel's limit holds where there is none.
  return Math.min(hardLimit('open files'), Number(readFileSync('/proc/sys/fs/nr_open', 'utf8')));
}

/** More than a server has, too few to exhaust the machine. */
const mostProcesses = 4096;

/** Several servers may be at their limit, and what ends them needs processes too. */
const partOfGroups = 1 / 8;

export function processesLimit(): number {
  const ofGroups = Math.floor(mostProcessesOfGroups() * partOfGroups);
  return Math.min(hardLimit('processes'), mostProcesses, ofGroups);
}

/** Out of memory, the kernel kills this process and its children first, which they cannot change. */
const firstToGo: Before = [
  'sh',
  '-c',
  '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"',
  'sh',
];

/** Before a server's command. Root's limits may be higher than its children may set. @param user if root starts it */
export function limiting(fileLimit: number, user: RunAs | undefined): Before[] {
  const files = `--nofile=${fileLimit}:${fileLimit}`;
  if (user === undefined) return [['prlimit', files, '--']];
  const processes = `--nproc=${processesLimit()}:${processesLimit()}`;
  return [firstToGo, ['prlimit', files, processes, '--']];
}

/** Or Infinity. @param what as /proc names it */
function hardLimit(what: string): number {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const limit = new RegExp(`^Max ${what}\\s+\\S+\\s+(\\S+)`, 'm').exec(limits)?.[1];
  return Number(limit) || Infinity;
}

export function filesNeeded(asked: number | undefined, connections: number): number {
  return asked ?? connections + otherFiles;
}

/**
 * @param asked ServerSpec.fileLimit, maybe too low on purpose; absent: the hard limit @param connections may all go to one worker @param
 * host as in requireFiles @throws UserError
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
 * @param why begins the message: "h2o needs 5256 open files for 5000 connections" @param host of the limit; absent: this machine @throws
 * UserError
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
