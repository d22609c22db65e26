// Reads the command lines of the articles' load generators: the flags that the engine can honour, the rest refused by name.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { UserError } from '../../errors.ts';

export type FlagOptions = NonNullable<ParseArgsConfig['options']>;

export interface CommandLine {
  /** The program's name, which starts every message. */
  tool: string;
  /** What stands behind the name, e.g. `-c 100 -t 10`. */
  line: string;
  options: FlagOptions;
  /** Words that are no flags and are left out silently. */
  leftOut?: readonly string[];
  /** Go's notation: long flags have one dash. */
  oneDash?: boolean;
}

/** The flags by their names in `options`; switches have the value ''. Throws UserError naming what cannot be honoured. */
export function parseFlags({ tool, line, options, leftOut = [], oneDash = false }: CommandLine): Map<string, string> {
  const words = wordsOf(line);
  const args = oneDash ? words.map((word) => word.replace(/^-(?=[a-z])/, '--')) : words;
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true });
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (leftOut.includes(token.value)) continue;
      throw new UserError(`${tool}: leave "${token.value}" out: bakeoff starts the server itself and knows its address`);
    }
    if (token.kind === 'option-terminator') continue;
    const type = options[token.name]?.type;
    const name = oneDash ? token.rawName.replace(/^--/, '-') : token.rawName;
    if (type === undefined || (type === 'boolean' && token.value !== undefined)) {
      const given = type === undefined ? name : `${name}=${token.value}`;
      throw new UserError(`${tool}: ${given} cannot be honoured here; these can: ${spellings(options, oneDash)}`);
    }
    if (flags.has(token.name)) throw new UserError(`${tool}: ${name} is given twice`);
    if (type === 'string' && token.value === undefined) throw new UserError(`${tool}: ${name} needs a value`);
    flags.set(token.name, token.value ?? '');
  }
  return flags;
}

/** The command as it is shown: the program's name and the line, blanks made even. */
export function commandOf(tool: string, line: string): string {
  return [tool, ...wordsOf(line)].join(' ');
}

/** Throws UserError unless `text` is a whole number above 0. `flag` as the person wrote it, e.g. `wrk -c`. */
export function positiveCount(flag: string, text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(`${flag} ${text} has to be a whole number above 0`);
  }
  return count;
}

/** Throws UserError with fewer requests (-n) than connections (-c). */
export function requireRequestEach(tool: string, requests: number, connections: number): void {
  if (requests >= connections) return;
  throw new UserError(`${tool}: -n ${requests} is less than -c ${connections}: every connection needs a request, give at least -n ${connections}`);
}

/** Throws UserError with fewer connections (-c) than threads (-t). */
export function requireConnectionEach(tool: string, connections: number, threads: number): void {
  if (connections >= threads) return;
  throw new UserError(`${tool}: -c ${connections} is less than -t ${threads}: every thread needs a connection, give at least -c ${threads}`);
}

const secondsPerUnit = { ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Seconds of `10`, `10s`, `2m` or `1h`, and of other whole numbers with one of `units`. Throws UserError for all else, and for 0. */
export function positiveTime(flag: string, text: string, units: readonly (keyof typeof secondsPerUnit)[] = ['s', 'm', 'h']): number {
  const [, digits, unit = 's'] = /^(\d+)([a-z]+)?$/.exec(text) ?? [];
  const known = units.find((one) => one === unit);
  const count = Number(digits);
  if (known === undefined || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(`${flag} ${text} has to be a time such as 10, ${units.map((one) => `10${one}`).join(', ')}`);
  }
  return known === 'ms' ? count / 1000 : count * secondsPerUnit[known];
}

function wordsOf(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== '');
}

function spellings(options: FlagOptions, oneDash: boolean): string {
  return Object.entries(options)
    .map(([name, { short }]) => (oneDash ? `-${name}` : short === undefined ? `--${name}` : `-${short}`))
    .join(' ');
}
