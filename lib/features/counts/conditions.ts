// --fail-if with counts: which conditions hold for what was counted.
import { metricNames } from '../../analysis/metrics.ts';
import { usageError, UserError, unknownWord } from '../../errors.ts';
import { differenceText } from '../../format.ts';
import { countNames, type Counted, type CountName } from '../../result/counts.ts';
import type { Reader } from '../../scenario/load/flags.ts';
import { meanOf } from './difference.ts';

/** Holds if the whole interval of the difference is above a limit: per request, or as a share of the baseline. */
export interface Condition {
  /** The condition as it was given. */
  text: string;
  count: CountName;
  limit: number;
  isShare: boolean;
}

/** Words of conditions on times. */
const ofTimes: readonly string[] = [
  'slower',
  'faster',
  'different',
  'inconclusive',
  'success',
  ...metricNames,
];

const form = /^([a-z]+)>(\d+(?:\.\d+)?)(%?)$/;
const example = 'write (in quotes) syscalls>0, or segments>5%';

const conditionsIn = (text: string): string[] => text.split(',').map((part) => part.trim());

/** Throws UserError (exit code 2). */
export const readConditions: Reader<Condition[]> = (flag, text) =>
  conditionsIn(text).map((condition) => {
    const [, name = '', number, sign = ''] = form.exec(condition) ?? [];
    const word = /^[a-z0-9]*/.exec(condition)?.[0] ?? '';
    if (ofTimes.includes(word))
      throw usageError(`${flag} ${condition}: with --counts no time is judged: ${example}`);
    const count = countNames.find((known) => known === word);
    if (count === undefined) throw unknownWord('count', word, countNames);
    if (name !== count) throw usageError(`${flag} ${condition}: ${example}`);
    const isShare = sign === '%';
    return { text: condition, count, isShare, limit: Number(number) / (isShare ? 100 : 1) };
  });

/** Refuses conditions on counts in a run that does not count. Throws UserError (exit code 2). */
export const countsGivenWithout: Reader<void> = (flag, text) => {
  for (const condition of conditionsIn(text))
    if (countNames.some((name) => new RegExp(`^${name}\\b`).test(condition)))
      throw usageError(`${flag} ${condition}: that is counted by compare with --counts only`);
};

export const uncertain = 'not certain, since its interval allows both';
type State = 'true' | 'false' | typeof uncertain;

/** Returns whether a condition holds for a difference. @param baseline the count there, per request */
export function stateOf(
  { limit, isShare }: Pick<Condition, 'limit' | 'isShare'>,
  { low, high }: { low: number; high: number },
  baseline: number,
): State {
  const most = isShare ? limit * baseline : limit;
  if (low > most) return 'true';
  return high > most ? uncertain : 'false';
}

/**
 * Decides the conditions for each side.
 * @param say prints a line for each condition and side
 * @returns 3 if one holds, else 0
 * @throws UserError if none holds, and a count is not known
 */
export function judge(
  counted: Counted,
  conditions: readonly Condition[],
  say: (line: string) => void,
): 0 | 3 {
  const [first, ...others] = counted.sides;
  let [holds, isUnknown] = [false, false];
  for (const condition of conditions)
    for (const { variant } of others) {
      const difference = counted.differences.find(
        (some) => some.variant === variant && some.count === condition.count,
      );
      const before = `--fail-if ${condition.text}: ${variant} against ${first?.variant}`;
      if (first === undefined || difference === undefined) {
        isUnknown = true;
        say(`${before}: cannot be told: ${condition.count} were not counted`);
        continue;
      }
      const state = stateOf(condition, difference, meanOf(first, condition.count));
      if (state === 'true') holds = true;
      say(`${before}: ${condition.count} ${differenceText(difference)}: ${state}`);
    }
  if (holds) return 3;
  if (isUnknown)
    throw new UserError('--fail-if: no condition is true, and not all could be decided');
  return 0;
}
