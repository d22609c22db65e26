// Whether an open model's load came to the rate that was asked for, and what kept it from that.
import type { LoadResult, VariantResult } from '../result/result.ts';
import { limitOf, type Limit, type Shares } from './limit.ts';
import { extent, median, total } from './statistics.ts';

/** From this part of the latency on, how late requests left is worth a warning. */
const lateMatters = 0.25;

/** What may be missing of a rate, and still every figure is within 1 %. */
const tolerableShortfall = 0.01;

/** The rate of a variant, and its own figure, in requests/s; null without a rate, and when it was not run. `reached`: not isBehind. */
export function rateOf({
  load: { rate: asked },
  rps,
  rounds,
}: Pick<VariantResult, 'load' | 'rps' | 'rounds'>): {
  asked: number;
  made: number;
  reached: boolean;
} | null {
  const phases = rounds.flatMap((round) => round.phases);
  if (asked === undefined || rps === null || phases.length === 0) return null;
  return { asked, made: rps.median, reached: !isBehind(phases, asked, rps.median) };
}

/**
 * Whether requests/s are more than 1 % fewer than asked for because requests did not leave: 1 % of those that were due, or one in
 * a hundred left later than 1 % of the load's time. @param phases at least one
 */
export function isBehind(phases: readonly LoadResult[], asked: number, made: number): boolean {
  const unsent = total(phases, (phase) => phase.unsent);
  const due = unsent + total(phases, (phase) => phase.requests + phase.inFlight);
  const late = median(phases.map(({ sendDelayMs, seconds }) => sendDelayMs.p99 / (1000 * seconds)));
  return (
    (unsent > tolerableShortfall * due || late > tolerableShortfall) &&
    made < (1 - tolerableShortfall) * asked
  );
}

const causes: Readonly<Record<Limit, string>> = {
  both: 'both sides were at their limit',
  server: 'the server was at its limit',
  generator: 'the generator was at its limit',
  neither:
    'neither side was at its limit (run again on a quieter machine, or with more connections)',
};

/** Why requests left late, or not at all, in a clause. */
export function rateCause(variant: Shares): string {
  const limit = limitOf(variant);
  return limit === null
    ? 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)'
    : causes[limit];
}

/** p99 of how late requests left and of the latency, in milliseconds, where the first distorts the second; null elsewhere. */
export function lateSends(variant: VariantResult): { p99Ms: number; latencyMs: number } | null {
  if (rateOf(variant)?.reached !== true) return null;
  const late = variant.phases.find(({ sendDelayMs, latencyMs, buckets }) => {
    const [narrowest] = extent(buckets.map(({ fromMs, toMs }) => (toMs ?? Infinity) - fromMs));
    return (
      sendDelayMs.p99 > 0 && sendDelayMs.p99 >= Math.min(lateMatters * latencyMs.p99, narrowest)
    );
  });
  return late === undefined ? null : { p99Ms: late.sendDelayMs.p99, latencyMs: late.latencyMs.p99 };
}

/** With more, latency at a rate gets no verdict: what is left out is no longer a matter of some pauses. */
export const mostStoodStill = 0.2;

/** Of the turns of all rounds: the share, 0 to 1, in which the generator stood still. */
export function stoodStill({ rounds }: Pick<VariantResult, 'rounds'>): number {
  const shares = rounds.flatMap(({ phases }) =>
    phases.flatMap(({ turns }) => turns?.stoodStill ?? []),
  );
  return shares.length === 0 ? 0 : total(shares, (share) => share) / shares.length;
}
