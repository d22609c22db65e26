// The user that a server runs as, and its limit of open files.
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import { lastLine, run, type RunAs } from '../process.ts';

/** Returns nobody, as which a server runs if root starts it; undefined if bakeoff does not run as root. */
export function unprivilegedUser(): RunAs | undefined {
  // Linux has this number for all users that it does not know.
  const number = 65_534;
  return process.geteuid?.() === 0 ? { name: 'nobody', uid: number, gid: number } : undefined;
}

const runnable = new Set<string>();

/** Throws UserError if root cannot become this user, or the user cannot run the binary. */
export async function requireRunnable(binary: string, user: RunAs | undefined): Promise<void> {
  if (user === undefined) return;
  const asked = `${user.uid}:${user.gid} ${binary}`;
  if (runnable.has(asked)) return;
  const { code, stderr } = await run({ command: 'test', args: ['-x', binary], user });
  if (code !== 0)
    throw new UserError(
      /^setpriv: /m.test(stderr)
        ? `${binary} runs as the user ${user.name}, and root cannot become that user here (${lastLine(stderr)}): give the container the capabilities CHOWN, SETGID and SETUID, or start bakeoff as another user`
        : `${binary} is closed to ${user.name}, as which servers run if root starts them: open it and the folders above it to all (chmod a+rx), or start bakeoff without root`,
    );
  runnable.add(asked);
}

/** Listening socket, epoll, logs, channels, pages. */
const otherFiles = 256;

/** The hard limit of open files, which child processes inherit. */
export function hardFilesLimit(): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(
    readFileSync('/proc/self/limits', 'utf8'),
  )?.[1];
  // If the limit is "unlimited", the kernel's own applies.
  return Math.min(Number(limit) || Infinity, Number(readFileSync('/proc/sys/fs/nr_open', 'utf8')));
}

export function filesNeeded(asked: number | undefined, connections: number): number {
  return asked ?? connections + otherFiles;
}

/**
 * Returns the limit of open files for a server. Throws UserError if the hard limit is too low.
 * @param asked ServerSpec.fileLimit, maybe too low for the load on purpose; absent: the hard limit
 * @param connections of the load, which may all go to one worker
 * @param host as in requireFiles
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
  throw new UserError(
    host === undefined
      ? `${why}, but the hard limit here is ${hardLimit}: raise it as root with "prlimit --nofile=${needed}:${needed} --pid $$" in this shell`
      : `${why}, but the hard limit on ${host} is ${hardLimit}: raise it there for who comes by ssh (nofile in /etc/security/limits.conf)`,
  );
}
