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

/** One word from `start` on. */
function readWord(line: string, start: number, tool: string): ShellWord {
  let text = '';
  let quote = '';
  let at = start;
  for (; at < line.length; at++) {
    const char = line.charAt(at);
    const next = line.charAt(at + 1);
    if (quote !== "'" && (char === '`' || (char === '$' && (quote === '' ? /[\w({'"]/ : /[\w({]/).test(next)))) {
      throw new UserError(`${tool}: ${char === '`' ? char : char + next} is for a shell: write what stands for it, or put '…' around it`);
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
