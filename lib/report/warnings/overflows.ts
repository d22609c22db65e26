// Full accept queues of servers, in words.
import type { Overflows } from '../../analysis/accept-queues.ts';
import { extent } from '../../analysis/statistics.ts';
import { enumeration, whole } from '../../format.ts';

/** "its accept queue (for 5) overflowed 1,809 times"; '' if it did not. */
export function overflowClause(queue: Overflows): string {
  return queue.count === 0 ? '' : `its accept queue${whose(queue)} overflowed ${times(queue)}`;
}

const times = ({ count }: Overflows): string => (count === 1 ? 'once' : `${whole(count)} times`);
const whose = ({ backlog }: Overflows): string =>
  backlog === undefined ? ", or another side's," : ` (for ${whole(backlog)})`;

/** A sentence on the accept queues that overflowed, with the next step; none if none did. */
export function overflowTexts(all: readonly Overflows[]): string[] {
  const overflowed = all.filter(({ count }) => count > 0);
  if (overflowed.length === 0) return [];
  // A full queue has one more than its backlog.
  const [room] = extent(overflowed.map(({ backlog = Infinity }) => backlog + 1));
  const always = Number.isFinite(room) ? ` (${whole(room)} always find room)` : '';
  const each = overflowed.map((queue) => `that of ${queue.name}${whose(queue)} ${times(queue)}`);
  return [
    `full accept queues turned connections away, which then fail, or wait for 0.2 s to some seconds: ${enumeration(each)}: take fewer connections${always}, or give the server a longer backlog (a setting of its own, up to net.core.somaxconn)`,
  ];
}
