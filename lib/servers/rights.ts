// The user that a server runs as, and its limit of open files.
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import type { RunAs } from '../process.ts';
import { run } from '../setup/run.ts';

/** nobody, as whom a server runs that root starts; undefined for others than root. Throws UserError when root cannot become that user. */
export async function unprivilegedUser(server: string): Promise<RunAs | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const found = await lookUp('passwd', 'nobody');
  if (found === undefined)
    throw new UserError(
      `${server} runs as the user nobody, which is not there: create it, or start bakeoff without root`,
    );
  const user: RunAs = { name: 'nobody', uid: Number(found[2]), gid: Number(found[3]) };
  if (!isHere('uid', user.uid) || !isHere('gid', user.gid)) {
    throw new UserError(
      `${server} runs as the user nobody, which this user namespace does not have: start bakeoff outside of it, where you are not root`,
    );
  }
  if (!mayBecomeAnother()) {
    throw new UserError(
      `${server} runs as the user nobody, whom root may not become here: give the container the capabilities CHOWN, SETGID and SETUID, or start bakeoff as another user`,
    );
  }
  return user;
}

/** capabilities(7): CHOWN, SETGID, SETUID. */
const needed = [0n, 6n, 7n];

function mayBecomeAnother(): boolean {
  const effective = BigInt(
    `0x${/^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 'ff'}`,
  );
  return needed.every((bit) => ((effective >> bit) & 1n) === 1n);
}

/** Whether there can be such a user or group here: a user namespace may have root alone. */
function isHere(kind: 'uid' | 'gid', id: number): boolean {
  return readFileSync(`/proc/self/${kind}_map`, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([first = 0, , count = 0]) => id >= first && id < first + count);
}

/** Kept for a run, whose servers start anew in each round. */
const runnable = new Set<string>();
const entries = new Map<string, string[]>();

/** Throws UserError when this user cannot run the server's binary, e.g. one that root has built in a folder of its own. */
export async function requireRunnable(binary: string, user: RunAs | undefined): Promise<void> {
  if (user === undefined) return;
  const asked = `${user.uid}:${user.gid} ${binary}`;
  if (runnable.has(asked)) return;
  const { code } = await run({ command: 'test', args: ['-x', binary], user });
  if (code !== 0)
    throw new UserError(
      `${binary} is closed to ${user.name}, whom servers run as where root starts them: open it and the folders above it to all (chmod a+rx), or start bakeoff without root`,
    );
  runnable.add(asked);
}

/** Users of web servers, by their makers and distributions. */
const webUsers = ['nobody', 'www-data', 'nginx', 'http', 'apache', 'h2o', 'www'];

/**
 * The user that a config names for its server, or why it may not be that one. It has to be a web server's user: with another one a
 * stranger's config could read that user's files.
 * @param group that the config names too; absent: the user's own
 */
export async function serviceUser(name: string, group?: string): Promise<RunAs | string> {
  const user = await lookUp('passwd', name);
  if (user === undefined) return `${name} is not there`;
  const [uid, ownGid] = [Number(user[2]), Number(user[3])];
  if (uid === 0) return 'no server needs to be root here';
  if (!webUsers.includes(name)) return `${name} is none that web servers run as`;
  if (group === undefined)
    return ownGid === 0 ? `${name} is in the group root` : { name, uid, gid: ownGid };
  const found = await lookUp('group', group);
  if (found === undefined) return `the group ${group} is not there`;
  const [gid, members = ''] = [Number(found[2]), found[3]];
  if (gid === 0 || (gid !== ownGid && !members.split(',').includes(name)))
    return `${name} is not in the group ${group}`;
  return { name, uid, gid };
}

/** The fields of an entry of passwd(5) or group(5); undefined when there is no such name. */
async function lookUp(database: 'passwd' | 'group', name: string): Promise<string[] | undefined> {
  // getent would take a flag for one, and an empty name for all.
  if (!/^\w[\w.-]*\$?$/.test(name)) return undefined;
  const asked = `${database} ${name}`;
  const known = entries.get(asked);
  if (known !== undefined) return known;
  const { code, stdout } = await run({
    command: 'getent',
    args: [database, name],
    limit: {
      seconds: 30,
      words: `getent ${database} ${name} does not end: what this machine has its users from does not answer`,
    },
  });
  if (code !== 0) return undefined;
  const entry = stdout.trim().split(':');
  entries.set(asked, entry);
  return entry;
}

/** Descriptors of a server beside its connections: listening socket, epoll, logs, channels, open pages. */
const otherFiles = 256;

/** The hard limit of open files, which child processes inherit. */
export function hardFilesLimit(): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(
    readFileSync('/proc/self/limits', 'utf8'),
  )?.[1];
  // Where the limit is "unlimited", the kernel's own holds.
  return Math.min(Number(limit) || Infinity, Number(readFileSync('/proc/sys/fs/nr_open', 'utf8')));
}

/** The open files that a server needs. Parameters as of fileLimitFor. */
export function filesNeeded(asked: number | undefined, connections: number): number {
  return asked ?? connections + otherFiles;
}

/**
 * The limit of open files for a server: `asked`, or else the hard limit.
 * @param asked ServerSpec.fileLimit, which may be too low for the connections on purpose
 * @param connections of the load; they may all end up at one worker
 * @param host of the limit, as the person named it; absent: this machine
 * @throws UserError when the hard limit is too low
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

/** Throws UserError when more files are needed than may be open. `why` begins its line: "h2o needs 5256 open files for 5000 connections". */
export function requireFiles(needed: number, hardLimit: number, why: string, host?: string): void {
  if (needed <= hardLimit) return;
  if (host !== undefined)
    throw new UserError(
      `${why}, but the hard limit on ${host} is ${hardLimit}: raise it there for who comes by ssh (nofile in /etc/security/limits.conf)`,
    );
  throw new UserError(
    `${why}, but the hard limit here is ${hardLimit}: raise it as root with "prlimit --nofile=${needed}:${needed} --pid $$" in this shell`,
  );
}
