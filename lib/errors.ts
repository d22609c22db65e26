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
  const short = (text: string): string =>
    text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
  return printable(
    `cannot ${path === undefined ? syscall : `use ${short(path)}`}: ${remedies[code]}`,
  );
}
