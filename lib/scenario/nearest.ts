import { closest } from 'fastest-levenshtein';
import { UserError } from '../errors.ts';

/** The error for a word that is not one of `choices` (at least one): names the word and offers the nearest choice. Exit code 2. */
export function unknownWord(kind: string, word: string, choices: readonly string[]): UserError {
  return new UserError(`there is no ${kind} "${word}": did you mean ${closest(word, choices)}?`, 2);
}
