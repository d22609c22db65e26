// The requests of a variant that failed or hung: how many, and how.
import { overflowsOf } from '../../analysis/limit.ts';
import { answersByStatus, phasesIn, succeeded, summed } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { counts, enumeration, whole } from '../../format.ts';
import type { ErrorCause } from '../../result/load-result.ts';
import type { Phase, VariantResult } from '../../result/result.ts';
import { failureCause, overflowClause } from './turned-away.ts';

const causeNames: Readonly<Record<ErrorCause, string>> = {
  addressNotAvailable: 'no free port',
  refused: 'refused',
  reset: 'reset',
  timedOut: 'timed out',
  short: 'cut short',
  other: 'other',
};

/** Returns "123 errors (100 timed out, 20 reset)", with an example if some have no known cause. */
export function errorsTexts(phases: readonly Phase[]): string[] {
  const errors = total(phases, (phase) => phase.errors.total);
  if (errors === 0) return [];
  const causes = summed(phases.map(({ errorCauses }) => errorCauses));
  const counted = (Object.keys(causeNames) as ErrorCause[]).filter((cause) => causes[cause] > 0);
  counted.sort((a, b) => causes[b] - causes[a]);
  const parts = counted.map((cause) => `${whole(causes[cause])} ${causeNames[cause]}`);
  const failed = phases.find(({ errors, errorExample }) => errors.total > 0 && errorExample);
  if (failed?.errorExample !== undefined && (counted.length === 0 || causes.other > 0))
    parts.push(failed.errorExample);
  const text = counts(errors, 'error');
  return [parts.length === 0 ? text : `${text} (${parts.join(', ')})`];
}

const mostStatuses = 4;

/** Returns "1,200 answers with 503" for each wrong status. Only the most frequent are named, in the order of their numbers. */
export function answersTexts(phases: readonly Phase[]): string[] {
  const expected = phases[0]?.expected ?? '2xx 3xx';
  // If each request has a status of its own to expect, it is only known whether some answers were unexpected, not which statuses.
  if (expected === 'each' && total(phases, ({ unexpected }) => unexpected) === 0) return [];
  const wrong = answersByStatus(phases).filter(([status]) => !expected.includes(`${status[0]}xx`));
  wrong.sort(([, a], [, b]) => b - a);
  const frequent = wrong.slice(0, mostStatuses).sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = frequent.map(([status, count]) => `${counts(count, 'answer')} with ${status}`);
  const others = total(wrong.slice(mostStatuses), ([, count]) => count);
  if (others > 0) texts.push(`${whole(others)} with others`);
  return texts;
}

/** '' if no request hung; the limits are the engine's. */
export function hungText(phases: readonly Phase[]): string {
  const hung = total(phases, (phase) => phase.hung);
  if (hung === 0) return '';
  return `${counts(hung, 'request')} ${hung === 1 ? 'was' : 'were'} never answered and had waited for more than 1 s, and twice p99.9, when the load ended`;
}

/** Says why none of a variant's requests succeeded; null if any did, or if no request was made. */
export function whyNothing(variant: VariantResult): string | null {
  const phases = phasesIn(variant.rounds);
  if (phases.length === 0 || total(phases, succeeded) > 0) return null;
  const texts = [
    ...answersTexts(phases),
    ...errorsTexts(phases),
    hungText(phases),
    overflowClause(overflowsOf(variant)),
  ];
  const reasons = texts.filter((text) => text !== '');
  if (reasons.length === 0) return 'no request ended within the load';
  const cause = failureCause(variant);
  return cause === '' ? enumeration(reasons) : `${enumeration(reasons)}: ${cause}`;
}
