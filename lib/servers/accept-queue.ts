// Connections that a full accept queue refused.
import { total } from '../analysis/statistics.ts';
import { textOf } from '../files.ts';
import { livingFolder } from '../proc-files.ts';
import { run } from '../process.ts';
import type { Phase } from '../result/result.ts';
import { isStarted, type RunningServer, type ServerSide } from './server.ts';

type AcceptQueue = NonNullable<Phase['acceptQueue']>;

/**
 * Counts from now on how often a server's accept queue on this machine overflows. The returned function returns the count, or undefined if
 * it is unknown. The kernel counts by network namespace, which sides may share; `ss` tells whose queue overflowed.
 * @param enter as in ServerSide
 */
export function watchAcceptQueue(
  server: RunningServer,
  enter?: ServerSide['enter'],
): () => Promise<AcceptQueue | undefined> {
  const pid = isStarted(server) ? server.pid : undefined;
  const before = pid === undefined ? undefined : overflowsIn(pid);
  return async () => {
    const now = pid === undefined ? undefined : overflowsIn(pid);
    if (before === undefined || now === undefined) return undefined;
    if (now <= before) return { overflows: 0 };
    const listeners = await listenersAt(Number(new URL(server.origin).port), enter);
    if (listeners.length === 0) return { overflows: now - before };
    // A socket's drops are counted since it was opened.
    const drops = total(listeners, (socket) => socket.drops);
    return {
      overflows: Math.min(drops, now - before),
      backlog: Math.min(...listeners.map(({ backlog }) => backlog)),
    };
  };
}

/**
 * ListenOverflows of a process's network namespace; undefined if the process has ended. The file has a line of names as in RFC 2012, then a
 * line of values.
 */
function overflowsIn(pid: number): number | undefined {
  const lines = textOf(`${livingFolder(String(pid))}/net/netstat`).split('\n');
  const ofTcp = lines.filter((line) => line.startsWith('TcpExt:'));
  const [names = [], values = []] = ofTcp.map((line) => line.split(' '));
  const at = names.indexOf('ListenOverflows');
  return at === -1 || values[at] === undefined ? undefined : Number(values[at]);
}

/** The TCP sockets that listen on a port; none without ss. */
async function listenersAt(port: number, before: ServerSide['enter'] | undefined) {
  const { stdout } = await run({
    before,
    command: 'ss',
    args: ['--no-header', '--listening', '--tcp', '--numeric', '--memory', `sport = :${port}`],
  }).catch(() => ({ stdout: '' }));
  return listenersIn(stdout);
}

/** Reads how ss prints listening sockets: state, connections in the queue, backlog, addresses; then skmem:(…,d<dropped>). */
export function listenersIn(text: string): { backlog: number; drops: number }[] {
  return [...text.matchAll(/^LISTEN +\d+ +(\d+) .*?\bskmem:\([^)]*,d(\d+)\)/gms)].map(
    ([, backlog, drops]) => ({ backlog: Number(backlog), drops: Number(drops) }),
  );
}
