// Splits a line as a shell does, as far as a load generator's line in somebody's notes needs it: quotes, pipes, output.
import { UserError } from '../../errors.ts';

export interface ShellWord {
  /** What the program would get. */
  text: string;
  /** As written, with its quotes. */
  written: string;
}

/** Of commands with `|` between them, each one's words; redirections of output and a comment at the end are left out. */
export type Pipeline = ShellWord[][];

const blank = /[ \t\r\n]/;

/** Operators, the longest first; those of output are left out with their file, since they change nothing about the load. */
const operators = /^(?:\d?(?:>>|>&\d|>)|&>>?|\|&|\|\||&&|\||;|&|<<<|<<|<|\(|\))/;

/** `tool` starts the messages. Throws UserError for what only a shell could do: variables, several commands, input, an open quote. */
export function shellPipeline(text: string, tool: string): Pipeline {
  const pipeline: Pipeline = [[]];
  let skipNext = false;
  // A line that ends with a backslash goes on.
  const line = text.replace(/\\\r?\n/g, ' ').trim();
  for (let at = 0; at < line.length;) {
    if (blank.test(line.charAt(at))) {
      if (line.charAt(at) === '\n') throw new UserError(`${tool}: give one command line, not several`);
      at++;
      continue;
    }
    if (line.charAt(at) === '#') break;
    const operator = operators.exec(line.slice(at))?.[0];
    if (operator === undefined) {
      const word = readWord(line, at, tool);
      if (!skipNext) (pipeline.at(-1) as ShellWord[]).push(word);
      skipNext = false;
      at += word.written.length;
      continue;
    }
    if (operator === '|' || operator === '|&') pipeline.push([]);
    else if (operator.includes('>')) skipNext = !/&\d$/.test(operator);
    else throw new UserError(`${tool}: ${operator} is for a shell: give one command line${operator === '&' ? ', with quotes around what has & in it' : ''}`);
    at += operator.length;
  }
  if (pipeline.length > 1 && pipeline.some((words) => words.length === 0)) throw new UserError(`${tool}: a | has nothing on one side of it`);
  return pipeline;
}

/**
 * The words of a command that runs without a shell, `{port}` and `$PORT` in it replaced. Throws UserError, in words that follow what
 * the command is, for what only a shell could do, an open quote, and where no program is named.
 */
export function commandWords(text: string, port: number): string[] {
  const line = text.replace(/\{port\}|\$PORT\b|\$\{PORT\}/g, String(port)).replace(/\\\r?\n/g, ' ').trim();
  const needsShell = (what: string): UserError => new UserError(`the command: ${what} needs a shell: write sh -c '…'`);
  const words: ShellWord[] = [];
  for (let at = 0; at < line.length;) {
    if (blank.test(line.charAt(at))) {
      if (line.charAt(at) === '\n') throw needsShell('a second line');
      at++;
      continue;
    }
    const operator = line.charAt(at) === '#' ? '#' : operators.exec(line.slice(at))?.[0];
    if (operator !== undefined) throw needsShell(operator);
    const word = readWord(line, at, 'the command', needsShell);
    if (word.written.startsWith('~')) throw needsShell('~');
    words.push(word);
    at += word.written.length;
  }
  const [program] = words;
  if (program === undefined || program.text === '') throw new UserError("the command names no program: write its words, such as 'node server.js'");
  const variable = /^[A-Za-z_]\w*=/.exec(program.written)?.[0];
  if (variable !== undefined) throw new UserError(`the command: ${variable}… before the program needs a shell: write env ${line}`);
  return words.map((word) => word.text);
}

/** One word from `start` on. @param forShell the error for what only a shell could put in its place */
function readWord(line: string, start: number, tool: string, forShell = (what: string) => new UserError(`${tool}: ${what} is for a shell: write what stands for it, or put '…' around it`)): ShellWord {
  let text = '';
  let quote = '';
  let at = start;
  for (; at < line.length; at++) {
    const char = line.charAt(at);
    const next = line.charAt(at + 1);
    if (quote !== "'" && (char === '`' || (char === '$' && (quote === '' ? /[\w({'"]/ : /[\w({]/).test(next)))) {
      throw forShell(char === '`' ? char : (/^\$(?:\w+|.)/.exec(line.slice(at)) as RegExpExecArray)[0]);
    }
    if (quote === '') {
      if (blank.test(char) || /[|&;<>()]/.test(char)) break;
      if (char === "'" || char === '"') quote = char;
      else if (char === '\\' && next !== '') text += line.charAt(++at);
      else text += char;
    } else if (char === quote) {
      quote = '';
    } else if (quote === '"' && char === '\\' && /[$`"\\]/.test(next)) {
      text += line.charAt(++at);
    } else {
      text += char;
    }
  }
  if (quote !== '') throw new UserError(`${tool}: a ${quote} is open to the end of the line: close it`);
  return { text, written: line.slice(start, at) };
}
