import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';

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
