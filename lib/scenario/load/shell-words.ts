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
  const forShell = (what: string): UserError => new UserError(`${tool}: ${what} is for a shell: write what stands for it, or put '…' around it`);
  for (const part of partsOf(text, tool, forShell)) {
    if (typeof part !== 'string') {
      if (!skipNext) (pipeline.at(-1) as ShellWord[]).push(part);
      skipNext = false;
    } else if (part === '|' || part === '|&') pipeline.push([]);
    else if (part.includes('>')) skipNext = !/&\d$/.test(part);
    else if (part === '\n') throw new UserError(`${tool}: give one command line, not several`);
    else if (part === '#') break;
    else throw new UserError(`${tool}: ${part} is for a shell: give one command line${part === '&' ? ', with quotes around what has & in it' : ''}`);
  }
  if (pipeline.length > 1 && pipeline.some((words) => words.length === 0)) throw new UserError(`${tool}: a | has nothing on one side of it`);
  return pipeline;
}

/**
 * The words of a command that runs without a shell, `{port}` and `$PORT` in it replaced. Throws UserError, in words that follow what
 * the command is, for what only a shell could do, an open quote, and where no program is named.
 * @param home what ~/ stands for; undefined: that is a shell's to say
 */
export function commandWords(text: string, port: number, home?: string): string[] {
  const line = text.replace(/\{port\}|\$PORT\b|\$\{PORT\}/g, String(port));
  const needsShell = (what: string): UserError => new UserError(`the command: ${what} needs a shell: write sh -c '…'`);
  const words: ShellWord[] = [];
  for (const part of partsOf(line, 'the command', needsShell)) {
    if (typeof part === 'string') throw needsShell(part === '\n' ? 'a second line' : part);
    const isAtHome = home !== undefined && part.written.startsWith('~/');
    if (part.written.startsWith('~') && !isAtHome) throw needsShell('~');
    words.push(isAtHome ? { ...part, text: `${home}${part.text.slice(1)}` } : part);
  }
  const [program] = words;
  if (program === undefined || program.text === '') throw new UserError("the command names no program: write its words, such as 'node server.js'");
  const variable = /^[A-Za-z_]\w*=/.exec(program.written)?.[0];
  if (variable !== undefined) throw new UserError(`the command: ${variable}… before the program needs a shell: write env ${words.map(({ written }) => written).join(' ')}`);
  return words.map((word) => word.text);
}

/** A word as a shell takes it. */
export function shellWord(text: string): string {
  return /[^\w.:/=*@-]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : text;
}

/** The words of a line, and what stands between them: operators, the begin of a comment (#), and where another line begins (\n). */
function* partsOf(text: string, tool: string, forShell: (what: string) => UserError): Generator<ShellWord | string> {
  // A line that ends with a backslash goes on.
  const line = text.replace(/\\\r?\n/g, ' ').trim();
  for (let at = 0; at < line.length;) {
    const char = line.charAt(at);
    const between = /[\n#]/.test(char) ? char : operators.exec(line.slice(at))?.[0];
    if (between === undefined && blank.test(char)) {
      at++;
      continue;
    }
    const part = between ?? readWord(line, at, tool, forShell);
    yield part;
    at += typeof part === 'string' ? part.length : part.written.length;
  }
}

/** One word from `start` on. @param forShell the error for what only a shell could put in its place */
function readWord(line: string, start: number, tool: string, forShell: (what: string) => UserError): ShellWord {
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
