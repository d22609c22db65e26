// What came of requests that were not answered as they should be, in words.
import { counts, enumeration, scaledTime, whole } from '../format.ts';
import type { ErrorCause, Phase, StatusClass, VariantResult } from '../result/result.ts';
import { succeeded, summed } from './phases.ts';
import { extent, total } from './statistics.ts';

const causeNames: Readonly<Record<ErrorCause, string>> = {
  addressNotAvailable: 'no free port',
  refused: 'refused',
  reset: 'reset',
  timedOut: 'timed out',
  short: 'cut short',
  other: 'other',
};

/** What failed, errors before answers, a text each; none where nothing did. */
export function failuresIn(phases: readonly Phase[]): string[] {
  return [...errorsTexts(phases), ...answersTexts(phases)];
}

/** "123 errors (100 timed out, 20 reset, 3 no free port)", the most frequent first; nothing of none. The example is for those that have no name of their own. */
function errorsTexts(phases: readonly Phase[]): string[] {
  const errors = total(phases, (phase) => phase.errors.total);
  if (errors === 0) return [];
  const causes = summed(phases.map(({ errorCauses }) => errorCauses));
  const counted = (Object.keys(causeNames) as ErrorCause[])
    .filter((cause) => causes[cause] > 0)
    .toSorted((a, b) => causes[b] - causes[a]);
  const words = counted.map((cause) => `${whole(causes[cause])} ${causeNames[cause]}`);
  const example = phases.find(
    (phase) => phase.errors.total > 0 && phase.errorExample,
  )?.errorExample;
  if (example !== undefined && (counted.length === 0 || causes.other > 0)) words.push(example);
  return [`${counts(errors, 'error')}${words.length === 0 ? '' : ` (${words.join(', ')})`}`];
}

/** More are told together. */
const mostStatuses = 4;

/** "1,200 answers with 503", one text of each status that there is, the most frequent first. */
function answersTexts(phases: readonly Phase[]): string[] {
  const found = Object.entries(wrongAnswers(phases)).toSorted(([, a], [, b]) => b - a);
  const others = total(found.slice(mostStatuses), ([, count]) => count);
  return [
    ...found
      .slice(0, mostStatuses)
      .map(([status, count]) => `${counts(count, 'answer')} with ${status}`),
    ...(others === 0 ? [] : [`${whole(others)} with others`]),
  ];
}

/** Answers that did not succeed, as `succeeded` counts: how many with each status, or class of them where no more is known. */
function wrongAnswers(phases: readonly Phase[]): Record<string, number> {
  const none = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 };
  const expected = phases[0]?.expected;
  const responses = {
    ...summed([none, ...phases.map(({ responses }) => responses)]),
    ...(expected === undefined ? { '2xx': 0, '3xx': 0 } : { [expected]: 0 }),
  };
  const statuses = Object.entries(summed(phases.map(({ statuses = {} }) => statuses)));
  return Object.fromEntries(
    (Object.keys(responses) as StatusClass[])
      .filter((name) => responses[name] > 0)
      .flatMap((name): [string, number][] => {
        const known = statuses.filter(([status]) => status[0] === name[0]);
        return total(known, ([, count]) => count) === responses[name]
          ? known
          : [[name, responses[name]]];
      }),
  );
}

/** Younger ones may be answered yet, and so may those that waited for less than so many times p99.9: as the engine counts those that hung. */
const [youngestHungMs, hangOfLatencies] = [1000, 2];

/** "12 requests were never answered and had waited for more than 1.00 s when the load ended"; '' of none. */
export function hungText(phases: readonly Phase[]): string {
  const hanging = phases.filter(({ hung }) => hung > 0);
  if (hanging.length === 0) return '';
  const hung = total(hanging, (phase) => phase.hung);
  const [sinceMs] = extent(
    hanging.map(({ latencyMs }) => Math.max(hangOfLatencies * latencyMs.p999, youngestHungMs)),
  );
  return `${counts(hung, 'request')} ${hung === 1 ? 'was' : 'were'} never answered and had waited for more than ${scaledTime(sinceMs)} when the load ended`;
}

/** A connection that a server reopens is made sooner. */
const slowMs = 500;

/** The longest connect of the windows in which requests hung, in milliseconds; 0 where none was slow. What hung may have waited for one. */
export function slowConnectMs(phases: readonly Phase[]): number {
  const longest = Math.max(
    0,
    ...phases.filter(({ hung }) => hung > 0).map(({ connectMs }) => connectMs.max),
  );
  return longest < slowMs ? 0 : longest;
}

/** Why none of a variant's requests succeeded, in words; null where one did, and where none was made. */
export function whyNothing({ rounds }: Pick<VariantResult, 'rounds'>): string | null {
  const phases = rounds.flatMap((round) => round.phases);
  if (phases.length === 0 || total(phases, succeeded) > 0) return null;
  const reasons = [...answersTexts(phases), ...errorsTexts(phases), hungText(phases)].filter(
    (text) => text !== '',
  );
  return reasons.length === 0 ? 'no request ended within the load' : enumeration(reasons);
}
