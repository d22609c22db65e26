// Whether loads at a rate kept a limit of their latency. k6's script asks rateEnd, and cannot write numbers as the others do.
import { percent, scaledTime, whole } from '../format.ts';
import type { LoadResult } from '../runner/result.ts';
import type { Within } from '../scenario/model.ts';
import { mergedLatency, valuesIn } from './merged.ts';
import { responsesNeeded } from './metric.ts';
import { roundRps, successRatioOf, tolerableFailures } from './phases.ts';
import { isBehind } from './rate.ts';

/** Where less of a rate is made, it is not a pause of the machine that is missing. */
const overloadedBelow = 0.9;

/**
 * A pause of the machine breaks the limit of one step and not that of three, and luck keeps it: what is not clear is measured again,
 * and counts together. So far from the limit it is clear; `most` steps decide in any case.
 */
const clear = { kept: 0.5, broken: 2, most: 3 };

/** e.g. "p99 within 5 ms". */
export function limitText({ metric, ms }: Within): string {
  return `${metric} within ${scaledTime(ms)}`;
}

/** What steps at a rate came to; 'open': not clear yet. */
export type RateEnd = 'kept' | 'broken' | 'open';

/**
 * Whether a rate keeps the limit. What was due and not answered has waited until the end, and is in the latency.
 * @param steps at that rate, at least one
 * @param rate that was asked for, in requests/s
 */
export function rateEnd(steps: readonly LoadResult[], rate: number, within: Within): RateEnd {
  const { metric, ms } = within;
  const last = steps.at(-1) as LoadResult;
  if (failedShare(last) > tolerableFailures || roundRps([last]) < overloadedBelow * rate || isTooFew(last, within)) return 'broken';
  const together = mergedLatency(steps.map(({ latencyMs }) => latencyMs))[metric];
  const behind = steps.filter((step) => isBehind([step], rate, roundRps([step]))).length > steps.length / 2;
  if (steps.length >= clear.most) return together <= ms && !behind ? 'kept' : 'broken';
  if (together <= clear.kept * ms && !behind) return 'kept';
  return steps.length > 1 && steps.every(({ latencyMs }) => latencyMs[metric] > clear.broken * ms) ? 'broken' : 'open';
}

/** Why a step by itself did not keep the limit, in a clause; '' where it did. */
export function whyNotKept(step: LoadResult, rate: number, within: Within): string {
  const { metric, ms } = within;
  const failed = failedShare(step);
  if (failed > tolerableFailures) return `${percent(failed)} failed`;
  if (isBehind([step], rate, roundRps([step]))) return `${whole(roundRps([step]))} requests/s were made`;
  if (isTooFew(step, within)) return `too few answers for a ${metric}`;
  return step.latencyMs[metric] <= ms ? '' : `${metric} ${scaledTime(step.latencyMs[metric])}`;
}

function failedShare(step: LoadResult): number {
  return 1 - (successRatioOf([step]) ?? 0);
}

function isTooFew({ latencyMs }: LoadResult, { metric }: Within): boolean {
  return valuesIn(latencyMs) < responsesNeeded(metric);
}
