// CPU time of the backends of a user's own config, which bakeoff does not start.
import { listeningAt, processIds, socketsOf } from '../process.ts';
import { listeningSockets } from './ports.ts';
import type { UpstreamAddress } from './server.ts';
import { processTree, statFields, watchTasks } from './usage.ts';

/**
 * Returns a function that returns the CPU seconds of the processes at these addresses, and of their descendants, on `cpus` since its
 * first call; null if none listens in this network, or it is another user's. A task's time counts for the core that it was last on,
 * which is exact for pinned tasks.
 * @param proc where the proc file system is mounted
 */
export function watchUpstreams(
  addresses: readonly UpstreamAddress[],
  cpus: readonly number[],
  proc = '/proc',
): () => number | null {
  if (addresses.length === 0) return () => 0;
  const listeners = listenersOn(addresses, proc);
  if (listeners === undefined) return () => null;
  const tasks = watchTasks(
    () => [...new Set(listeners.flatMap((pid) => startedBy(proc, pid)))],
    proc,
  );
  let isFirst = true;
  let sum = 0;
  return () => {
    for (const [task, seconds] of tasks()) {
      // Field 39 of stat in proc(5), without the first two.
      if (!isFirst && seconds > 0 && cpus.includes(Number(statFields(task)?.[36] ?? NaN)))
        sum += seconds;
    }
    isFirst = false;
    return sum;
  };
}

/** A process and its descendants; alone if this process is among them: systemd keeps the sockets of its services. */
function startedBy(proc: string, pid: string): string[] {
  const [tree, self] = [processTree(proc, pid), String(process.pid)];
  return pid !== self && tree.includes(self) ? [pid] : tree;
}

/** The processes that have a listening socket of the addresses open, workers included; undefined if an address has none. */
function listenersOn(addresses: readonly UpstreamAddress[], proc: string): string[] | undefined {
  const inodes = addresses.map((address) =>
    'socket' in address
      ? listeningAt(address.socket, proc)
      : listeningSockets(proc)
          .filter(({ port }) => port === address.port)
          .map(({ inode }) => inode),
  );
  const wanted = new Set(inodes.flat());
  const holders = processIds(proc)
    .map((pid) => ({ pid, held: socketsOf(`${proc}/${pid}`).filter((inode) => wanted.has(inode)) }))
    .filter(({ held }) => held.length > 0);
  const isHeld = new Set(holders.flatMap(({ held }) => held));
  return inodes.every((some) => some.length > 0 && some.every((inode) => isHeld.has(inode)))
    ? holders.map(({ pid }) => pid)
    : undefined;
}
