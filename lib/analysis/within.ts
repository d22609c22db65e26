// Whether a load at a rate kept a limit of its latency. k6's script asks stepEnd, and cannot write numbers as the others do.
import { percent, scaledTime, whole } from '../format.ts';
import type { StepEnd } from '../k6/rate-search.ts';
import type { LoadResult } from '../runner/result.ts';
import type { Within } from '../scenario/model.ts';
import { valuesIn } from './merged.ts';
import { responsesNeeded } from './metric.ts';
import { responsesOf, successRatioOf } from './phases.ts';
import { isBehind } from './rate.ts';

/** More failed requests than this break a limit, as they keep a comparison from its verdict. */
const tolerableFailures = 0.01;

/** Where less of a rate is made, it is not a pause of the machine that is missing. */
const overloadedBelow = 0.9;

/** e.g. "p99 within 5 ms". */
export function limitText({ metric, ms }: Within): string {
  return `${metric} within ${scaledTime(ms)}`;
}

interface Step { result: LoadResult; rate: number; within: Within }

/**
 * Whether the limit was kept. What was due and not answered has waited until the end, and is in the latency.
 * @param rate that was asked for, in requests/s
 */
export function stepEnd(step: Step): StepEnd {
  const { result, rate, within: { metric, ms } } = step;
  if (failedShare(result) > tolerableFailures || madeIn(result) < overloadedBelow * rate || isTooFew(step)) return 'missed';
  return result.latencyMs[metric] <= ms && !isBehind([result], rate, madeIn(result)) ? 'kept' : 'broken';
}

/** Why it was not kept, in a clause; '' where it was. */
export function whyNotKept(step: Step): string {
  const { result, rate, within: { metric } } = step;
  if (stepEnd(step) === 'kept') return '';
  const failed = failedShare(result);
  if (failed > tolerableFailures) return `${percent(failed)} failed`;
  if (isBehind([result], rate, madeIn(result))) return `${whole(madeIn(result))} requests/s were made`;
  return isTooFew(step) ? `too few answers for a ${metric}` : `${metric} ${scaledTime(result.latencyMs[metric])}`;
}

/** requests/s. */
export function madeIn(result: LoadResult): number {
  return responsesOf(result) / result.seconds;
}

function failedShare(result: LoadResult): number {
  return 1 - (successRatioOf([result]) ?? 0);
}

function isTooFew({ result: { latencyMs }, within: { metric } }: Step): boolean {
  return valuesIn(latencyMs) < responsesNeeded(metric);
}
