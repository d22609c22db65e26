import { distance } from 'fastest-levenshtein';
import { usageError, UserError } from './errors.ts';

/** The error (exit code 2) for a word that is not one of `choices`. @param many advice if none of many choices is near */
export function unknownWord(
  kind: string,
  word: string,
  choices: readonly string[],
  many?: string,
): UserError {
  return usageError(`there is no ${kind} "${word}": ${offer(word, choices, many)}`);
}

/** More choices are too long for a line. */
const mostTold = 10;

/** Offers the nearest choice, or all of them, in words that follow a colon. @param choices at least one */
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

/** The choice that is most like the word; undefined if it takes more than two edits, or more than half of the letters. */
export function nearest(word: string, choices: readonly string[]): string | undefined {
  return sorted(word, choices)
    .slice(0, 1)
    .find((choice) => edits(word, choice) <= Math.min(2, Math.ceil(word.length / 2)));
}

const sorted = (word: string, choices: readonly string[]): string[] =>
  choices.toSorted((a, b) => farness(word, a) - farness(word, b));

/** Edits between the word and the beginning of a choice: people stop typing early. */
const edits = (word: string, choice: string): number =>
  distance(word, choice.slice(0, word.length));

/** Letters missing at the end count for little. */
const farness = (word: string, choice: string): number =>
  edits(word, choice) + Math.max(0, choice.length - word.length) / 10;
