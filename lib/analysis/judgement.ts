// A comparison whose reasons are facts; lib/report/reasons.ts has the words.
import type { Comparison, Metric } from '../result/result.ts';
import type { OneSided } from './one-sided.ts';

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
