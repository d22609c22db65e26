// A comparison whose reasons are facts; lib/report/reasons.ts has the words.
import type { Comparison, Metric, VariantResult } from '../result/result.ts';
import type { OneSided } from './one-sided.ts';
import { mean, meanInterval } from './statistics.ts';

/** Why there is no verdict; `name`: the variant that is the reason. */
export type Obstacle =
  | { kind: 'publishedOnly' | 'oneRate' | 'otherFiles' | 'sameSetup' }
  | { kind: 'noFigures'; metric: Metric }
  /** `by`: a side, or '' for another program. */
  | { kind: 'alsoLoaded'; name: string; by: string }
  | { kind: 'otherCpus'; name: string; cpus: number[] }
  | { kind: 'failing'; name: string; successRatio: number }
  | { kind: 'otherBodies'; name: string; bodyRatio: number; page?: string }
  | { kind: 'severalBodies'; name: string; share: number }
  | { kind: 'belowRate' | 'generatorLimit'; name: string }
  | { kind: 'stalled'; name: string; share: number }
  | { kind: 'oneSided'; disturbance: OneSided }
  | { kind: 'needsCores' | 'needsRounds'; needed: number };

/** Requests/s and CPU per request disagree: the server used less of its cores with one variant. */
export interface Disagreement {
  less: string;
  more: string;
  /** Part of the CPU time with `more`. */
  share: number;
  /** Others or the host took the rest. */
  isTaken: boolean;
}

export interface Judgement extends Omit<Comparison, 'why' | 'disagreement'> {
  /** null: the interval's verdict. */
  why: Obstacle | null;
  disagreement: Disagreement | null;
}

/** Less is noise: a server at its limit uses 90 to 100 %. */
const leastDisagreement = Math.log(1.05);

/**
 * null if both say better, or both worse. @param rps ln(variant / baseline) per round @param cpu the same of CPU per request; their sum is
 * CPU use
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
    cpu.map((log, round) => log + (rps[round] as number)),
    alpha,
  );
  if (Math.abs(middle) <= Math.max(half, leastDisagreement)) return null;
  const [less, more] = middle < 0 ? [variant, baseline] : [baseline, variant];
  // Shares are of the time left: if they differ less, the rest was taken.
  const idle = Math.log((more.serverShare as number) / (less.serverShare as number));
  return {
    less: less.name,
    more: more.name,
    share: 1 - Math.exp(-Math.abs(middle)),
    isTaken: idle < Math.abs(middle) / 2,
  };
}
