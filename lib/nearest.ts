import { distance } from 'fastest-levenshtein';
import { UserError } from './errors.ts';

/** The error for a word that is not one of `choices` (at least one), exit code 2. @param many what is said where none of many is near */
export function unknownWord(
  kind: string,
  word: string,
  choices: readonly string[],
  many?: string,
): UserError {
  return new UserError(`there is no ${kind} "${word}": ${offer(word, choices, many)}`, 2);
}

/** So many are told in one line. */
const mostTold = 10;

/** What follows the colon, for a word that is not one of `choices` (at least one). */
export function offer(
  word: string,
  choices: readonly string[],
  many = `the nearest is ${sorted(word, choices)[0]}`,
): string {
  const near = nearest(word, choices);
  if (near !== undefined) return `did you mean ${near}?`;
  if (choices.length > mostTold) return many;
  return `there ${choices.length === 1 ? 'is' : 'are'} ${choices.join(', ')}`;
}

/** Of `choices`, the one that is most like the word; undefined where that takes more than two edits, or than half of its letters, rounded up. */
export function nearest(word: string, choices: readonly string[]): string | undefined {
  return sorted(word, choices)
    .slice(0, 1)
    .find((choice) => edits(word, choice) <= Math.min(2, Math.ceil(word.length / 2)));
}

const sorted = (word: string, choices: readonly string[]): string[] =>
  choices.toSorted((a, b) => farness(word, a) - farness(word, b));

/** Between the word and the beginning of a choice: people stop typing early. */
const edits = (word: string, choice: string): number =>
  distance(word, choice.slice(0, word.length));

/** What is missing at the end counts for little. */
const farness = (word: string, choice: string): number =>
  edits(word, choice) + Math.max(0, choice.length - word.length) / 10;
