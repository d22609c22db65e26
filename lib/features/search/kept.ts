// Whether a step of a search keeps the limit. k6 runs isKept, rateEnd and isHopeless.
import { responsesNeeded, valuesIn } from '../../analysis/latency.ts';
import { isBehind } from '../../analysis/limit.ts';
import { roundRps, successRatioOf, tolerableFailures } from '../../analysis/phases.ts';
import { percent, scaledTime, whole } from '../../format.ts';
import type { LoadResult } from '../../result/load-result.ts';
import type { Within } from '../../scenario/model.ts';

/** A server that serves less than this share of the rate is overloaded: no pause of the machine takes so much. */
const overloadedBelow = 0.9;

/** The most steps at one rate. One that keeps the limit is enough, because a pause of the machine may break the others. */
const mostStepsAtRate = 3;

/** The outcome of steps at a rate; 'open': it takes another step. */
export type RateEnd = 'kept' | 'broken' | 'open';

/**
 * Returns whether a step keeps the limit. Unanswered requests count in its latency.
 * @param rate of the step, in requests/s
 */
export function isKept(step: LoadResult, rate: number, within: Within): boolean {
  // Without the words of whyNotKept: k6 cannot format numbers for a language.
  return (
    !isBeyondPauses(step, rate, within) &&
    step.latencyMs[within.metric] <= within.ms &&
    !isBehind([step], rate, roundRps([step]))
  );
}

/**
 * Judges a rate after a step at it.
 * @param number of the step among those at this rate, from 1
 */
export function rateEnd(step: LoadResult, number: number, rate: number, within: Within): RateEnd {
  if (isKept(step, rate, within)) return 'kept';
  return number < mostStepsAtRate && !isBeyondPauses(step, rate, within) ? 'open' : 'broken';
}

function isBeyondPauses(step: LoadResult, rate: number, within: Within): boolean {
  return (
    failedShare(step) > tolerableFailures ||
    roundRps([step]) < overloadedBelow * rate ||
    isTooFew(step, within)
  );
}

/** Returns whether even half of the answers are beyond the limit of a higher percentile: no pause of the machine is so long. */
export function isHopeless({ latencyMs: { p50 } }: LoadResult, { metric, ms }: Within): boolean {
  return metric !== 'p50' && p50 > ms;
}

/** Returns why a step did not keep the limit; '' if it did. */
export function whyNotKept(step: LoadResult, rate: number, within: Within): string {
  if (isKept(step, rate, within)) return '';
  const failed = failedShare(step);
  if (failed > tolerableFailures) return `${percent(failed)} failed`;
  const made = roundRps([step]);
  if (made < overloadedBelow * rate || isBehind([step], rate, made))
    return `${whole(made)} requests/s were made`;
  if (isTooFew(step, within)) return `too few answers for a ${within.metric}`;
  return `${within.metric} ${scaledTime(step.latencyMs[within.metric])}`;
}

function failedShare(step: LoadResult): number {
  return 1 - (successRatioOf([step]) ?? 0);
}

function isTooFew({ latencyMs }: LoadResult, { metric }: Within): boolean {
  return valuesIn(latencyMs) < responsesNeeded[metric];
}
