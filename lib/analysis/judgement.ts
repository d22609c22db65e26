// A comparison whose reasons are facts; lib/report/reasons.ts has the words.
import { zip } from '../present.ts';
import type { Comparison, Metric, VariantResult } from '../result/result.ts';
import type { OneSided } from './one-sided.ts';
import { mean, meanInterval } from './statistics.ts';

/** Why there is no verdict; `name`: the variant that is the reason. */
export type Obstacle =
  | { kind: 'publishedOnly' | 'oneRate' | 'otherFiles' | 'sameSetup' }
  | { kind: 'noFigures'; metric: Metric }
  /** `by`: another side, or '' for another program. */
  | { kind: 'alsoLoaded'; name: string; by: string }
  | { kind: 'otherCpus'; name: string; cpus: number[] }
  | { kind: 'failing'; name: string; successRatio: number }
  /** `bodyRatio` is that of bodyRatioOf. */
  | { kind: 'otherBodies'; name: string; bodyRatio: number; page?: string }
  /** `share` is that of shareOfOtherBodies. */
  | { kind: 'severalBodies'; name: string; share: number }
  | { kind: 'belowRate' | 'generatorLimit'; name: string }
  /** Share of the requests under way, 0 to 1. */
  | { kind: 'hanging'; name: string; share: number }
  /** Share of its turns, 0 to 1. */
  | { kind: 'stalled'; name: string; share: number }
  | { kind: 'oneSided'; disturbance: OneSided }
  | { kind: 'needsCores' | 'needsRounds'; needed: number };

/** Why requests/s and CPU per request disagree: one variant's server used less of its cores than the other's. */
export interface Disagreement {
  less: string;
  more: string;
  /** How much less CPU time `less` used, as a share (0 to 1) of that of `more`. */
  share: number;
  /** Other programs or the host took the rest. */
  isTaken: boolean;
}

export interface Judgement extends Omit<
  Comparison,
  'why' | 'obstacle' | 'disagreement' | 'obstacles'
> {
  /** null: the verdict is that of the interval. */
  why: Obstacle | null;
  /** Why other metrics have no verdict although the comparison's own metric has one. */
  obstacles?: { metric: Metric; why: Obstacle }[];
  /** null: they agree, or are not known. */
  disagreement: Disagreement | null;
}

/** A smaller difference is noise: at its limit a server uses 90 to 100 % of its cores. */
const leastDisagreement = Math.log(1.05);

/**
 * Returns why requests/s and CPU per request disagree; null if they agree: both say better, or both worse, however much each.
 * @param rps ln(variant / baseline) per round
 * @param cpu the same of CPU per request. The sum of both is CPU use.
 */
export function disagreementOf(
  {
    baseline,
    variant,
  }: Record<'baseline' | 'variant', Pick<VariantResult, 'name' | 'serverShare'>>,
  rps: readonly number[],
  cpu: readonly number[],
  alpha: number,
  sameWithin: number,
): Disagreement | null {
  const [gain, saved] = [mean(rps), -mean(cpu)];
  const isBeyond = Math.min(Math.abs(gain), Math.abs(saved)) > Math.log1p(sameWithin);
  if (isBeyond && gain > 0 === saved > 0) return null;
  const { middle, half } = meanInterval(
    zip(cpu, rps).map(([cost, gain]) => cost + gain),
    alpha,
  );
  if (Math.abs(middle) <= Math.max(half, leastDisagreement)) return null;
  const [less, more] = middle < 0 ? [variant, baseline] : [baseline, variant];
  // A server's share is of the time that others left it. If the shares differ less than the CPU use does, others took the rest.
  const idle = Math.log((more.serverShare ?? 0) / (less.serverShare ?? 0));
  return {
    less: less.name,
    more: more.name,
    share: 1 - Math.exp(-Math.abs(middle)),
    isTaken: idle < Math.abs(middle) / 2,
  };
}
