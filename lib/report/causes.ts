// The words for requests that failed, were turned away or left late: how many, why, and what to do.
import { failureCauseOf, failuresOf } from '../analysis/failures.ts';
import { overflowsOf } from '../analysis/limit.ts';
import { phasesIn, succeeded } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { counts, enumeration, whole } from '../format.ts';
import { keysOf } from '../present.ts';
import type { FailureCause, Failures, Overflows, RateCause } from '../result/finding.ts';
import type { ErrorCause } from '../result/load-result.ts';
import type { VariantResult } from '../result/result.ts';

const causeNames: Readonly<Record<ErrorCause, string>> = {
  addressNotAvailable: 'no free port',
  refused: 'refused',
  reset: 'reset',
  timedOut: 'timed out',
  short: 'cut short',
  other: 'other',
};

/** Returns "123 errors (100 timed out, 20 reset)", with an example if some have no known cause. */
export function errorsTexts({ errors, errorCauses, errorExample }: Failures): string[] {
  if (errors === 0) return [];
  const counted = keysOf(causeNames).filter((cause) => errorCauses[cause] > 0);
  counted.sort((a, b) => errorCauses[b] - errorCauses[a]);
  const parts = counted.map((cause) => `${whole(errorCauses[cause])} ${causeNames[cause]}`);
  if (errorExample !== undefined && (counted.length === 0 || errorCauses.other > 0))
    parts.push(errorExample);
  const text = counts(errors, 'error');
  return [parts.length === 0 ? text : `${text} (${parts.join(', ')})`];
}

/** Returns "1,200 answers with 503" for each wrong status. */
export function answersTexts({ answers, otherAnswers }: Failures): string[] {
  const texts = answers.map(({ status, count }) => `${counts(count, 'answer')} with ${status}`);
  if (otherAnswers > 0) texts.push(`${whole(otherAnswers)} with others`);
  return texts;
}

/** '' if no request hung; the limits are the engine's. */
export function hungText(hung: number): string {
  if (hung === 0) return '';
  return `${counts(hung, 'request')} ${hung === 1 ? 'was' : 'were'} never answered and had waited for more than 1 s, and twice p99.9, when the load ended`;
}

/** Says why none of a variant's requests succeeded; null if any did, or if no request was made. */
export function whyNothing(variant: VariantResult): string | null {
  const phases = phasesIn(variant.rounds);
  if (phases.length === 0 || total(phases, succeeded) > 0) return null;
  const failures = failuresOf(phases);
  const texts = [
    ...answersTexts(failures),
    ...errorsTexts(failures),
    hungText(total(phases, (phase) => phase.hung)),
    overflowClause(overflowsOf(variant)),
  ];
  const reasons = texts.filter((text) => text !== '');
  if (reasons.length === 0) return 'no request ended within the load';
  const cause = failureCause(failureCauseOf(variant));
  return cause === '' ? enumeration(reasons) : `${enumeration(reasons)}: ${cause}`;
}

/** Says why most failed requests failed, and what to do. The text follows a count of failures; '' if the cause is unknown. */
export function failureCause(cause: FailureCause | undefined): string {
  if (cause === undefined) return '';
  if (cause.kind === 'apacheThreads')
    return 'Apache closes connections that wait for a request when its threads are used up: give it a thread for each connection (ThreadsPerChild and MaxRequestWorkers), or load fewer connections, such as "wrk -c 20"';
  const { lines, isOfRequests, rps } = cause;
  let less = 'with fewer connections, such as "wrk -c 10"';
  if (isOfRequests && rps !== undefined)
    less = `at ${counts(rps, 'request')}/s or less, such as "vegeta attack -rate ${rps}"`;
  if (lines.length === 0) return `a limit of the server turned them away: lift it, or load ${less}`;
  const them = lines.length === 1 ? 'it' : 'them';
  return `${lines.join(' and ')} turned them away: take ${them} out of a copy of the config, or load ${less}`;
}

/** "its accept queue (of 5 places) overflowed 1,809 times"; '' if it did not. */
function overflowClause(queue: Overflows): string {
  return queue.count === 0 ? '' : `its accept queue${overflowText(queue)}`;
}

/** Follows the queue's owner. @param did what it did so often */
export function overflowText({ backlog, count }: Overflows, did = ' overflowed'): string {
  const whose = backlog === undefined ? ", or another side's," : ` (of ${whole(backlog)} places)`;
  return `${whose}${did} ${count === 1 ? 'once' : `${whole(count)} times`}`;
}

/** Says why requests left late, or not at all. */
export function rateCause(cause: RateCause): string {
  switch (cause.kind) {
    case 'queueGrows':
      return `its queue grows by ${whole(cause.growthPerSecond)} each second, so it cannot serve more`;
    case 'fewConnections':
      return 'they waited for a free connection (more connections move that queue into the server)';
    case 'unknown':
      return 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)';
    case 'both':
      return 'both sides were at their limit';
    case 'server':
    case 'generator':
      return `the ${cause.kind} was at its limit`;
    case 'neither':
      return 'neither side was at its limit (run again on a quieter machine, or with more connections)';
  }
}
