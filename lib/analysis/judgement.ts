// A comparison whose reasons are facts. The result has them in words (lib/report/reasons.ts).
import type { Comparison, Metric } from '../result/result.ts';
import type { OneSided } from './one-sided.ts';

/** Why there is no verdict, with the variant `name` that is the reason. */
export type Obstacle =
  | { kind: 'publishedOnly' | 'oneRate' | 'otherFiles' | 'sameSetup' }
  | { kind: 'noFigures'; metric: Metric }
  /** `by`: another side, or '' for another program. */
  | { kind: 'alsoLoaded'; name: string; by: string }
  | { kind: 'otherCpus'; name: string; cpus: number[] }
  | { kind: 'failing'; name: string; successRatio: number }
  /** As bodyRatioOf. */
  | { kind: 'otherBodies'; name: string; bodyRatio: number; page?: string }
  /** As shareOfOtherBodies. */
  | { kind: 'severalBodies'; name: string; share: number }
  | { kind: 'belowRate' | 'generatorLimit'; name: string }
  /** Share of its turns, 0 to 1. */
  | { kind: 'stalled'; name: string; share: number }
  | { kind: 'oneSided'; disturbance: OneSided }
  | { kind: 'needsCores' | 'needsRounds'; needed: number };

/** Why requests/s and CPU per request disagree: with one variant the server used less of its cores than with another. */
export interface Disagreement {
  less: string;
  more: string;
  /** Of the CPU time with `more`, 0 to 1. */
  share: number;
  /** Other programs or the host took the rest. */
  isTaken: boolean;
}

export interface Judgement extends Omit<Comparison, 'why' | 'disagreement'> {
  /** null: the verdict is that of the interval. */
  why: Obstacle | null;
  /** null: they agree, or are not known. */
  disagreement: Disagreement | null;
}
