// Errors for the user at the terminal, with suggestions for misspelt arguments.
import { distance } from 'fastest-levenshtein';
import { shownUrl } from './secrets.ts';

/** One line that says what to do, or a list. `exitCode` as in docs/ci.md. */
export class UserError extends Error {
  readonly exitCode: 1 | 2;
  constructor(message: string | readonly string[], exitCode: 1 | 2 = 1) {
    super([message].flat().map(inOneLine).map(shortened).join('\n'));
    this.exitCode = exitCode;
  }
}

const longest = 4000;

/** A word of a config or a URL may have megabytes. */
function shortened(message: string): string {
  return message.length > longest ? `${message.slice(0, longest)}…` : message;
}

/** A UserError for a wrong command line: exit code 2. */
export const usageError = (message: string): UserError => new UserError(message, 2);

/** Returns the result of `read`. If it throws a UserError, puts `before` in front of its message and sets its exit code. */
export function prefixed<T>(read: () => T, before: string, exitCode: 1 | 2 = 2): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UserError ? new UserError(before + error.message, exitCode) : error;
  }
}

/** Removes control characters, invisible characters, and characters that change the direction of text. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n\t]|[\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu, ' ');
}

/** Returns the first word of a text that may be no config but a secret, up to the first sign that no name has. */
export function wordIn(text: string): string {
  return /^[^\w\s]{0,3}[\w.-]{0,60}/.exec(text.trim())?.[0] ?? '';
}

/** Returns the first word of an address or a path that a message quotes from a config, with its credentials hidden. */
export function addressIn(text: string): string {
  return shownUrl(/^\S{0,255}/.exec(text)?.[0] ?? '');
}

/** Shortens a quotation of such a text to one word. Paths are kept. */
export function withShortQuotes(message: string): string {
  return message.replace(/"([^"/][^"]*)"/g, (whole, quote: string) =>
    /\s|^.{60}/.test(quote) ? `"${wordIn(quote)}…"` : whole,
  );
}

export function inOneLine(text: string): string {
  return printable(text).replace(/[\n\t]/g, ' ');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An error as one of a system call, which has a code, such as ENOENT, and may have a path; others have neither. */
export function systemError(error: unknown): Partial<NodeJS.ErrnoException> {
  return Object(error);
}

const closed = 'you may not use it: open it to this user, or start bakeoff as another';

const remedies: Readonly<Record<string, string>> = {
  EACCES: closed,
  EPERM: closed,
  EROFS: 'its file system is read-only: name another place (--out, TMPDIR, BAKEOFF_HOME)',
  ENOSPC:
    'its file system has no space or no inodes left: free some (df -h, df -i), or name another place (--out, TMPDIR, BAKEOFF_HOME)',
  EMFILE: 'too many files are open: raise the limit (ulimit -n)',
  EAGAIN: 'no more processes can be started: raise the limit (ulimit -u, or pids of the container)',
  ENOMEM: 'there is no memory left: end other programs',
};

/** What to do about an unexpected error, in one line; undefined if unknown. */
export function remedyFor(error: unknown): string | undefined {
  const { code = '', path, syscall = 'go on' } = systemError(error);
  if (!Object.hasOwn(remedies, code)) return undefined;
  const attempt = path === undefined ? syscall : `use ${path}`;
  return printable(`cannot ${attempt}: ${remedies[code]}`);
}

/**
 * The error (exit code 2) for a word that is not one of `choices`.
 * @param whereAll says what prints them, if they are too many for a line
 */
export function unknownWord(
  kind: string,
  word: string,
  choices: readonly string[],
  whereAll?: string,
): UserError {
  return usageError(`there is no ${kind} "${word}": ${offer(word, choices, whereAll)}`);
}

/** More choices are too long for a line. */
const mostTold = 10;

/** Offers the nearest choice, or all of them, in words that follow a colon. `choices` has at least one. */
export function offer(word: string, choices: readonly string[], whereAll?: string): string {
  const near = nearest(word, choices);
  if (near !== undefined) return `did you mean ${near}?`;
  if (choices.length > mostTold)
    return (
      whereAll ??
      `there are ${choices.length}, such as ${sorted(word, choices).slice(0, 3).join(', ')}`
    );
  return `there ${choices.length === 1 ? 'is' : 'are'} ${choices.join(', ')}`;
}

/** Returns the nearest choice; undefined if it is more than two edits away, or more than one edit for each three letters. */
export function nearest(word: string, choices: readonly string[]): string | undefined {
  const [choice] = sorted(word, choices);
  // The dashes of a flag do not count.
  const { length } = word.replace(/^--?/, '');
  const most = Math.min(2, Math.floor(length / 3));
  return choice !== undefined && length > 1 && edits(word, choice) <= most ? choice : undefined;
}

/** Letters missing at the end count for little. */
function sorted(word: string, choices: readonly string[]): string[] {
  const farness = (choice: string) =>
    edits(word, choice) + Math.max(0, choice.length - word.length) / 10;
  return choices.toSorted((a, b) => farness(a) - farness(b));
}

/**
 * Counts the edits from a word to the beginning of a choice, since people stop typing early. Letters in another order count as one edit.
 */
function edits(word: string, choice: string): number {
  if ([...word].sort().join('') === [...choice].sort().join(''))
    return Math.min(1, distance(word, choice));
  return Math.min(
    ...[word.length, word.length + 1].map((end) => distance(word, choice.slice(0, end))),
  );
}
