// Overflows of servers' accept queues that made requests fail or wait.
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { total } from './statistics.ts';

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
