import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';

/** Descriptors of a worker beside its connections: listening socket, epoll, logs, channels, files of a cache. */
const otherFiles = 256;

/** The hard limit of open files, which child processes inherit. */
export function hardFilesLimit(): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return limit === undefined || limit === 'unlimited' ? Infinity : Number(limit);
}

/**
 * The limit of open files to set for each worker: enough for all connections that the config allows, or else what the
 * hard limit allows. Throws UserError when that is too little for the load's own connections, which may all end up at one worker.
 */
export function workerFilesLimit(name: string, allowedConnections: number, loadConnections: number, hardLimit: number): number {
  const needed = Math.min(loadConnections, allowedConnections) + otherFiles;
  if (needed > hardLimit) {
    throw new UserError(
      `${name} needs ${needed} open files for ${loadConnections} connections, but the hard limit here is ${hardLimit}: ` +
        `raise it as root with "prlimit --nofile=${needed}:${needed} --pid $$" in this shell`,
    );
  }
  return Math.min(allowedConnections + otherFiles, hardLimit);
}
