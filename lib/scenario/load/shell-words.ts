// Splits a command into words as a shell does, and refuses all else that a shell could do.
import { UserError } from '../../errors.ts';

export interface ShellWord {
  /** The word as the program gets it. */
  text: string;
  /** The word as written, with quotes. */
  written: string;
}

/** Pipes, redirections, several commands, a comment, a second line. */
const operator = /^(?:\d?>[>&]?\d?|[|&;<>()]+|[#\n])/;

/** A part of a word: in quotes, escaped, or bare. */
const part = /^(?:'([^']*)'|"((?:\\[^]|[^"\\])*)"|\\([^]?)|([^ \t\r\n'"\\|&;<>()]+))/;

/** @throws UserError from `needsShell` for shell syntax, and for an open quote, starting with `tool` */
export function shellWords(
  text: string,
  tool: string,
  needsShell: (what: string) => UserError,
): ShellWord[] {
  const words: ShellWord[] = [];
  // A line that ends with a backslash goes on.
  let rest = text.replace(/\\\r?\n/g, ' ').trim();
  while (rest !== '') {
    const [sign] = operator.exec(rest) ?? [];
    if (sign !== undefined) throw needsShell(sign === '\n' ? 'a second line' : sign);
    const start = rest;
    let word = '';
    for (let next = part.exec(rest); next !== null; next = part.exec(rest)) {
      const [all, single, double, escaped, bare = ''] = next;
      rest = rest.slice(all.length);
      const [expansion] =
        /`|\$(?:\w+|[({'"])/.exec(bare + rest.charAt(0)) ??
        /`|\$(?:\w+|[({])/.exec(double?.replace(/\\[^]/g, '') ?? '') ??
        [];
      if (expansion !== undefined) throw needsShell(expansion);
      word += single ?? double?.replace(/\\([$`"\\])/g, '$1') ?? escaped ?? bare;
    }
    if (/^['"]/.test(rest))
      throw new UserError(`${tool}: a ${rest.charAt(0)} is open to the end of the line: close it`);
    words.push({ text: word, written: start.slice(0, start.length - rest.length) });
    rest = rest.replace(/^[ \t\r]+/, '');
  }
  return words;
}

/**
 * The words of a command that runs without a shell, with `{port}` and `$PORT` replaced.
 * @param home replaces ~ in ~/; undefined: ~ is refused
 * @throws UserError for shell syntax, an open quote and a missing program
 */
export function commandWords(
  text: string,
  port: number,
  home?: string,
): [program: string, ...args: string[]] {
  const line = text.replace(/\{port\}|\$PORT\b|\$\{PORT\}/g, String(port));
  const needsShell = (what: string): UserError =>
    new UserError(`the command: ${what} needs a shell: write sh -c '…'`);
  const words = shellWords(line, 'the command', needsShell).map((word) => {
    if (!word.written.startsWith('~')) return word;
    if (home === undefined || !word.written.startsWith('~/')) throw needsShell('~');
    return { ...word, text: `${home}${word.text.slice(1)}` };
  });
  const [program, ...args] = words;
  if (program === undefined || program.text === '')
    throw new UserError("the command names no program: write its words, such as 'node server.js'");
  const variable = /^[A-Za-z_]\w*=/.exec(program.written)?.[0];
  if (variable !== undefined)
    throw new UserError(
      `the command: ${variable}… before the program needs a shell: write env ${words.map(({ written }) => written).join(' ')}`,
    );
  return [program.text, ...args.map((word) => word.text)];
}

/** A word as a shell takes it. */
export function shellWord(text: string): string {
  return /[^\w.:/=*@-]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : text;
}
