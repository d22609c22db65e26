// What came of requests that were not answered as they should be, in words.
import { counts, enumeration, scaledTime, whole } from '../format.ts';
import type { ErrorCause, LoadResult, Phase, StatusClass, VariantResult } from '../result/result.ts';
import { hungOf, succeeded, summed } from './phases.ts';
import { extent, total } from './statistics.ts';

const causeNames: Readonly<Record<ErrorCause, string>> = {
  addressNotAvailable: 'no free port', refused: 'refused', reset: 'reset', timedOut: 'timed out', short: 'cut short', other: 'other',
};

/** "123 errors (100 timed out, 20 reset, 3 no free port)", the most frequent first; '' of none. The example is for those that have no name of their own. */
export function errorsText(errors: number, causes: LoadResult['errorCauses'], example: string): string {
  if (errors === 0) return '';
  const counted = (Object.keys(causeNames) as ErrorCause[]).filter((cause) => causes[cause] > 0).toSorted((a, b) => causes[b] - causes[a]);
  const words = counted.map((cause) => `${whole(causes[cause])} ${causeNames[cause]}`);
  if (example !== '' && (counted.length === 0 || causes.other > 0)) words.push(example);
  return `${counts(errors, 'error')}${words.length === 0 ? '' : ` (${words.join(', ')})`}`;
}

/** Answers that did not succeed, as `succeeded` counts: how many with each status, or class of them where no more is known. */
export function wrongAnswers(phases: readonly Phase[]): Record<string, number> {
  const none = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 };
  const expected = phases[0]?.expected;
  const responses = { ...summed([none, ...phases.map(({ responses }) => responses)]), ...(expected === undefined ? { '2xx': 0, '3xx': 0 } : { [expected]: 0 }) };
  const statuses = Object.entries(summed(phases.map(({ statuses = {} }) => statuses)));
  return Object.fromEntries((Object.keys(responses) as StatusClass[]).filter((name) => responses[name] > 0).flatMap((name): [string, number][] => {
    const known = statuses.filter(([status]) => status[0] === name[0]);
    return total(known, ([, count]) => count) === responses[name] ? known : [[name, responses[name]]];
  }));
}

/** More are told together. */
const mostStatuses = 4;

/** "1,200 answers with 503", one text of each status that there is, the most frequent first. @param answers as of wrongAnswers */
export function answersTexts(answers: Readonly<Record<string, number>>): string[] {
  const found = Object.entries(answers).toSorted(([, a], [, b]) => b - a);
  const others = total(found.slice(mostStatuses), ([, count]) => count);
  return [...found.slice(0, mostStatuses).map(([status, count]) => `${counts(count, 'answer')} with ${status}`), ...(others === 0 ? [] : [`${whole(others)} with others`])];
}

/** The text of the first error of some phases; '' where none has one. */
export function errorExample(phases: readonly Phase[]): string {
  return phases.find(({ errors, errorExample: text = '' }) => errors.total > 0 && text !== '')?.errorExample ?? '';
}

/** Younger ones may be answered yet, and so may those that waited for less than so many times p99.9: as the engine counts those that hung. */
const [youngestHungMs, hangOfLatencies] = [1000, 2];

/** For how long requests that hung had waited at least when the window ended, in milliseconds. @param phases at least one */
export function hungSinceMs(phases: readonly Phase[]): number {
  const hanging = phases.filter((phase) => hungOf([phase]) > 0);
  return extent(hanging.map(({ latencyMs }) => Math.max(hangOfLatencies * latencyMs.p999, youngestHungMs)))[0];
}

/** A connection that a server reopens is made sooner. */
const slowMs = 500;

/** The longest connect of the windows in which requests hung, in milliseconds; 0 where none was slow. What hung may have waited for one. */
export function slowConnectMs(phases: readonly Phase[]): number {
  const longest = Math.max(0, ...phases.filter((phase) => hungOf([phase]) > 0).map(({ connectMs }) => connectMs.max));
  return longest < slowMs ? 0 : longest;
}

/** "12 requests were never answered and had waited for more than 1.00 s when the load ended"; '' of none. */
export function hungText(hung: number, sinceMs: number): string {
  return hung === 0 ? '' : `${counts(hung, 'request')} ${hung === 1 ? 'was' : 'were'} never answered and had waited for more than ${scaledTime(sinceMs)} when the load ended`;
}

/** Why none of a variant's requests succeeded, in words; null where one did, and where none was made. */
export function whyNothing({ rounds }: Pick<VariantResult, 'rounds'>): string | null {
  const phases = rounds.flatMap((round) => round.phases);
  if (phases.length === 0 || total(phases, succeeded) > 0) return null;
  const hung = hungOf(phases);
  const errors = errorsText(total(phases, (phase) => phase.errors.total), summed(phases.map((phase) => phase.errorCauses)), errorExample(phases));
  const reasons = [...answersTexts(wrongAnswers(phases)), errors, hung === 0 ? '' : hungText(hung, hungSinceMs(phases))].filter((text) => text !== '');
  return reasons.length === 0 ? 'no request ended within the load' : enumeration(reasons);
}
