// What full accept queues of servers did to a load.
import { enumeration, whole } from '../format.ts';
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { extent, total } from './statistics.ts';

/** A server's overflows. Without a backlog they may be another server's. */
export interface Overflows {
  name: string;
  count: number;
  backlog: number | undefined;
}

/** The kernel sends nothing again sooner (TCP_RTO_MIN), so a connection without a place costs at least this. */
const leastWaitMs = 200;

/** The overflows of a variant's rounds in which requests failed, or took so long. */
export function overflowsOf({ name, rounds }: Pick<VariantResult, 'name' | 'rounds'>): Overflows {
  const felt = rounds.filter(({ phases }) => phases.some(isFelt));
  const queues = felt.flatMap(({ phases }) => phases[0]?.acceptQueue ?? []);
  return {
    name,
    count: total(felt, overflowsIn),
    backlog: queues.find(({ backlog }) => backlog !== undefined)?.backlog,
  };
}

function overflowsIn({ phases }: Round): number {
  // An emulated network counts within the window of each phase, as in the table; the server's own count is of the whole load.
  const [first] = phases;
  if (first === undefined || first.network === null) return first?.acceptQueue?.overflows ?? 0;
  return total(phases, ({ network }) => network?.listenOverflows ?? 0);
}

function isFelt({ errors, hung, latencyMs, connectMs }: Phase): boolean {
  return errors.total + hung > 0 || Math.max(latencyMs.max, connectMs.max) >= leastWaitMs;
}

/** "its accept queue (for 5) overflowed 1,809 times"; '' if it did not. */
export function overflowClause(one: Overflows): string {
  return one.count === 0 ? '' : `its accept queue${whose(one)} overflowed ${times(one)}`;
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
  const each = overflowed.map((one) => `that of ${one.name}${whose(one)} ${times(one)}`);
  return [
    `full accept queues turned connections away, which then fail, or wait for 0.2 s to some seconds: ${enumeration(each)}: take fewer connections${always}, or give the server a longer backlog (a setting of its own, up to net.core.somaxconn)`,
  ];
}
