// The user that a server runs as, and its limit of open files.
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import type { RunAs } from '../process.ts';
import { lastLine, run } from '../setup/run.ts';

/** Returns nobody, as which a server runs if root starts it; undefined if bakeoff does not run as root. Throws UserError without that user. */
export async function unprivilegedUser(server: string): Promise<RunAs | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const found = await lookUp('passwd', 'nobody');
  if (found === undefined)
    throw new UserError(
      `${server} runs as the user nobody, which is not there: create it, or start bakeoff without root`,
    );
  return { name: 'nobody', uid: Number(found[2]), gid: Number(found[3]) };
}

/** A run starts its servers anew in each round. */
const runnable = new Set<string>();

/** Throws UserError if root cannot become this user, or the user cannot run the binary, such as one in a folder of root's. */
export async function requireRunnable(binary: string, user: RunAs | undefined): Promise<void> {
  if (user === undefined) return;
  const asked = `${user.uid}:${user.gid} ${binary}`;
  if (runnable.has(asked)) return;
  const { code, stderr } = await run({ command: 'test', args: ['-x', binary], user });
  if (stderr !== '')
    throw new UserError(
      `${binary} runs as the user ${user.name}, and root cannot become that user here (${lastLine(stderr)}): give the container the capabilities CHOWN, SETGID and SETUID, or start bakeoff as another user`,
    );
  if (code !== 0)
    throw new UserError(
      `${binary} is closed to ${user.name}, whom servers run as where root starts them: open it and the folders above it to all (chmod a+rx), or start bakeoff without root`,
    );
  runnable.add(asked);
}

/** The users of web servers, as their makers and distributions name them. */
const webUsers = ['nobody', 'www-data', 'nginx', 'http', 'apache', 'h2o', 'www'];

/**
 * Returns the user that a config names for its server, or why the server cannot run as that user. Only the users of web servers are
 * accepted: as another user, an untrusted config could read that user's files.
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

const entries = new Map<string, string[]>();

/** Returns the fields of an entry of passwd(5) or group(5); undefined if there is no such name. */
async function lookUp(database: 'passwd' | 'group', name: string): Promise<string[] | undefined> {
  // getent would take a flag as its own, and an empty name for all entries.
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

/** Open files of a server beside its connections: listening socket, epoll, logs, channels, pages. */
const otherFiles = 256;

/** The hard limit of open files, which child processes inherit. */
export function hardFilesLimit(): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(
    readFileSync('/proc/self/limits', 'utf8'),
  )?.[1];
  // If the limit is "unlimited", the kernel's own applies.
  return Math.min(Number(limit) || Infinity, Number(readFileSync('/proc/sys/fs/nr_open', 'utf8')));
}

/** The open files that a server needs; parameters as in fileLimitFor. */
export function filesNeeded(asked: number | undefined, connections: number): number {
  return asked ?? connections + otherFiles;
}

/**
 * Returns the limit of open files for a server: `asked`, or the hard limit. Throws UserError if the hard limit is too low.
 * @param asked ServerSpec.fileLimit, which may be too low for the load on purpose
 * @param connections of the load, which may all go to one worker
 * @param host of the limit, as the user named it; absent: this machine
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

/** Throws UserError if more files are needed than the limit. `why` begins the message: "h2o needs 5256 open files for 5000 connections". */
export function requireFiles(needed: number, hardLimit: number, why: string, host?: string): void {
  if (needed <= hardLimit) return;
  throw new UserError(
    host === undefined
      ? `${why}, but the hard limit here is ${hardLimit}: raise it as root with "prlimit --nofile=${needed}:${needed} --pid $$" in this shell`
      : `${why}, but the hard limit on ${host} is ${hardLimit}: raise it there for who comes by ssh (nofile in /etc/security/limits.conf)`,
  );
}
