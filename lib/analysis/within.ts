// Whether loads at a rate kept a limit of their latency. k6's script asks isKept, rateEnd and isHopeless; whyNotKept writes numbers in a
// way that its JavaScript does not know.
import { percent, scaledTime, whole } from '../format.ts';
import type { LoadResult } from '../result/result.ts';
import type { Within } from '../scenario/model.ts';
import { valuesIn, responsesNeeded } from './latency.ts';
import { roundRps, successRatioOf, tolerableFailures } from './phases.ts';
import { isBehind } from './limit.ts';

/** Where less of a rate is made, it is not a pause of the machine that is missing. */
const overloadedBelow = 0.9;

/** On the way to the limit a rate is kept where one of so many steps at it keeps the limit, so that no pause of the machine ends that way. */
const mostStepsAtRate = 3;

/** e.g. "p99 within 5 ms". */
export function limitText({ metric, ms }: Within): string {
  return `${metric} within ${scaledTime(ms)}`;
}

/** What steps at a rate came to; 'open': one more is to be made. */
export type RateEnd = 'kept' | 'broken' | 'open';

/**
 * Whether a step by itself keeps the limit. What was due and not answered has waited until the end, and is in the latency.
 * @param rate that was asked for, in requests/s
 */
export function isKept(step: LoadResult, rate: number, within: Within): boolean {
  return (
    !isBeyondPauses(step, rate, within) &&
    step.latencyMs[within.metric] <= within.ms &&
    !isBehind([step], rate, roundRps([step]))
  );
}

/** Whether a rate keeps the limit: one of several steps is enough. @param number of the step at that rate (requests/s), from 1 */
export function rateEnd(step: LoadResult, number: number, rate: number, within: Within): RateEnd {
  if (isKept(step, rate, within)) return 'kept';
  return number < mostStepsAtRate && !isBeyondPauses(step, rate, within) ? 'open' : 'broken';
}

/** No pause of the machine makes so much fail, or leaves so much undone. */
function isBeyondPauses(step: LoadResult, rate: number, within: Within): boolean {
  return (
    failedShare(step) > tolerableFailures ||
    roundRps([step]) < overloadedBelow * rate ||
    isTooFew(step, within)
  );
}

/** Whether a step by itself breaks the limit of a higher percentile: half of the answers took longer, and no pause is so long. */
export function isHopeless({ latencyMs: { p50 } }: LoadResult, { metric, ms }: Within): boolean {
  return metric !== 'p50' && p50 > ms;
}

/** Why a step by itself did not keep the limit, in a clause; '' where it did. */
export function whyNotKept(step: LoadResult, rate: number, within: Within): string {
  if (isKept(step, rate, within)) return '';
  const failed = failedShare(step);
  if (failed > tolerableFailures) return `${percent(failed)} failed`;
  const made = roundRps([step]);
  if (made < overloadedBelow * rate || isBehind([step], rate, made))
    return `${whole(made)} requests/s were made`;
  return isTooFew(step, within)
    ? `too few answers for a ${within.metric}`
    : `${within.metric} ${scaledTime(step.latencyMs[within.metric])}`;
}

function failedShare(step: LoadResult): number {
  return 1 - (successRatioOf([step]) ?? 0);
}

function isTooFew({ latencyMs }: LoadResult, { metric }: Within): boolean {
  return valuesIn(latencyMs) < responsesNeeded[metric];
}
