// Errors for the person at the terminal, and what they offer for a wrong word.
import { distance } from 'fastest-levenshtein';

/** An error for the person at the terminal: one line that says what to do. `exitCode` as in docs/verdicts.md. */
export class UserError extends Error {
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(printable(message));
    this.exitCode = exitCode;
  }
}

/** A UserError for a wrong command line: exit code 2. */
export const usageError = (message: string): UserError => new UserError(message, 2);

/** Removes what a terminal obeys instead of showing it: escapes, and letters that turn the direction of writing. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n\t]/gu, ' ');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const closed = 'you may not use it: open it to this user, or start bakeoff as another';

const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there any more: put it back, and leave it until the run is over',
  ENOTDIR: 'there is a file where a folder has to be: name another path',
  EACCES: closed,
  EPERM: closed,
  EROFS: 'its file system is read-only: name another place (--out, TMPDIR, BAKEOFF_HOME)',
  ELOOP: 'it is a link to itself: remove it, or name another path',
  ENAMETOOLONG: 'its name is too long: take one of at most 255 bytes',
  ENOSPC:
    'its file system has no space or no inodes left: free some (df -h, df -i), or name another place (--out, TMPDIR, BAKEOFF_HOME)',
  EFBIG: 'files may not become that large here: lift the limit (ulimit -f unlimited)',
  EMFILE: 'too many files are open: raise the limit (ulimit -n)',
  EAGAIN: 'no more processes can be started: raise the limit (ulimit -u, or pids of the container)',
  ENOMEM: 'there is no memory left: end other programs',
};

const longestShown = 200;

/** What to do about an unexpected error, in one line; undefined if unknown. */
export function remedyFor(error: unknown): string | undefined {
  if (error instanceof RangeError && /call stack|string length/i.test(error.message))
    return 'a file, or what a program printed, is too long or nested too deep to be read: shorten it (BAKEOFF_DEBUG=1 shows where)';
  const { code = '', path, syscall = 'go on' } = Object(error) as NodeJS.ErrnoException;
  if (!Object.hasOwn(remedies, code)) return undefined;
  const short = (text: string) =>
    text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
  return printable(
    `cannot ${path === undefined ? syscall : `use ${short(path)}`}: ${remedies[code]}`,
  );
}

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
  many = `there are ${choices.length}, such as ${sorted(word, choices).slice(0, 3).join(', ')}`,
): string {
  const near = nearest(word, choices);
  if (near !== undefined) return `did you mean ${near}?`;
  if (choices.length > mostTold) return many;
  return `there ${choices.length === 1 ? 'is' : 'are'} ${choices.join(', ')}`;
}

/** The choice that is most like the word; undefined if it takes more than two edits, or more than one for each three letters. */
export function nearest(word: string, choices: readonly string[]): string | undefined {
  return sorted(word, choices)
    .slice(0, 1)
    .find((choice) => {
      const { length } = lettersOf(word);
      return length > 1 && edits(word, choice) <= Math.min(2, Math.floor(length / 3));
    });
}

/** Without the dashes of a flag. */
const lettersOf = (word: string): string => word.replace(/^--?/, '');

const sorted = (word: string, choices: readonly string[]): string[] =>
  choices.toSorted((a, b) => farness(word, a) - farness(word, b));

/** Edits between the word and the beginning of a choice: people stop typing early. Letters in another order are one edit. */
const edits = (word: string, choice: string): number =>
  [...word].sort().join('') === [...choice].sort().join('')
    ? Math.min(1, distance(word, choice))
    : Math.min(
        ...[word.length, word.length + 1].map((end) => distance(word, choice.slice(0, end))),
      );

/** Letters missing at the end count for little. */
const farness = (word: string, choice: string): number =>
  edits(word, choice) + Math.max(0, choice.length - word.length) / 10;
