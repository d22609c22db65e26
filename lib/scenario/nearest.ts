import { distance } from 'fastest-levenshtein';
import { UserError } from '../errors.ts';

/** The error for a word that is not one of `choices` (at least one): names the word and offers the nearest choice. Exit code 2. */
export function unknownWord(kind: string, word: string, choices: readonly string[]): UserError {
  return new UserError(`there is no ${kind} "${word}": did you mean ${nearest(word, choices)}?`, 2);
}

/** Of `choices` (at least one), the one that is most like the word. */
export function nearest(word: string, choices: readonly string[]): string {
  return choices.toSorted((a, b) => farness(word, a) - farness(word, b))[0] as string;
}

/** Edits between the two; people stop typing early, so what is missing at the end counts for little. */
function farness(word: string, choice: string): number {
  const beginning = choice.slice(0, word.length);
  return distance(word, beginning) + (choice.length - beginning.length) / 10;
}
