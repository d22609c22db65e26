// Reads the command lines of load generators: the flags that the engine can honour, the rest refused by name.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { present } from '../../present.ts';
import { hidden, shownHeader } from './secrets.ts';
import { shellWord, shellWords, type ShellWord } from './shell-words.ts';

/** A line's load, without the line itself. */
export type LoadOfFlags = Omit<LoadProfile, 'command'>;

/** Flags as parseArgs has them: one with a value, and one without. */
export const valued = (short?: string): { type: 'string'; short?: string } => ({
  type: 'string',
  ...present({ short }),
});
export const toggle = (short?: string): { type: 'boolean'; short?: string } => ({
  type: 'boolean',
  ...present({ short }),
});

/** Instead of a generator's own lists of URLs. */
export const severalPages =
  'several pages are --urls FILE of compare, or page.weights of a scenario';

/** A load generator, as its command lines are read. */
export interface Generator {
  /** The program's name, which starts every message. */
  name: string;
  /** The flags that are honoured, and those that change nothing about the load. `multiple`: may be given several times. */
  options: NonNullable<ParseArgsConfig['options']>;
  /** Flags whose values are credentials, beside headers. */
  secretOptions?: readonly string[];
  /** Flags that cannot be honoured, without dashes, and what to use instead. */
  instead?: Readonly<Record<string, string>>;
  /** The program's command, where it has several. */
  subcommand?: string;
  /** Go's notation: long flags have one dash, and a switch may have =true or =false. */
  oneDash?: boolean;
  /** @param scheme of the server, if it is known. @throws UserError that names what cannot be honoured */
  load(flags: Flags, scheme?: 'http' | 'https'): LoadOfFlags;
}

/** The flags of a line by their names in `options`. */
export interface Flags {
  has(name: string): boolean;
  /** '' for a switch without a value. */
  get(name: string): string | undefined;
  all(name: string): readonly string[];
}

/** A generator's words, read. `shown`: the command line without credentials. */
export interface Command {
  flags: Flags;
  others: string[];
  shown: string;
}

/** The words of a line. @throws UserError for what is no single command */
export function wordsOfLine(line: string, tool: string): ShellWord[] {
  return shellWords(
    line,
    tool,
    (what) =>
      new UserError(
        `${tool}: ${what} needs a shell: a load is one command with its flags, such as "wrk -c 100 -d 10", with '…' around what a shell would change`,
      ),
  );
}

/** @param words without the program and its subcommand. @throws UserError that names the flag */
export function readCommand(generator: Generator, words: readonly ShellWord[]): Command {
  const {
    name: tool,
    options,
    secretOptions = [],
    oneDash = false,
    instead = {},
    subcommand,
  } = generator;
  const flags = new Map<string, string[]>();
  const others: string[] = [];
  const shown = words.map(({ written }) => written);
  const args = words.map(({ text }) => (oneDash ? text.replace(/^-(?=[a-z])/, '--') : text));
  for (const token of parseArgs({
    args,
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens) {
    if (token.kind === 'positional') others.push(token.value);
    if (token.kind !== 'option') continue;
    const { type, multiple } = options[token.name] ?? {};
    const name = oneDash ? token.rawName.replace(/^--/, '-') : token.rawName;
    const { value } = token;
    if (
      type === undefined ||
      (type === 'boolean' && value !== undefined && !(oneDash && /^(true|false)$/.test(value)))
    ) {
      const honoured = Object.entries(options).map(([long, { short }]) =>
        oneDash || short !== undefined ? `-${short ?? long}` : `--${long}`,
      );
      const why = Object.hasOwn(instead, token.name)
        ? `: ${instead[token.name]}`
        : `; these can: ${honoured.join(' ')}`;
      throw new UserError(
        `${tool}: ${type === undefined ? name : `${name}=${value}`} cannot be honoured here${why}`,
      );
    }
    const before = flags.get(token.name) ?? [];
    if (before.length > 0 && multiple !== true)
      throw new UserError(`${tool}: ${name} is given twice`);
    if (type === 'string' && value === undefined)
      throw new UserError(`${tool}: ${name} needs a value`);
    flags.set(token.name, [...before, value ?? '']);
    if (value === undefined) continue;
    const open = secretOptions.includes(token.name)
      ? hidden
      : ['header', 'H'].includes(token.name)
        ? shownHeader(value)
        : value;
    const at = token.inlineValue ? token.index : token.index + 1;
    const text = words[at]?.text ?? '';
    if (open !== value) shown[at] = shellWord(text.slice(0, text.length - value.length) + open);
  }
  const all = (name: string): readonly string[] => flags.get(name) ?? [];
  const command = [tool, ...(subcommand === undefined ? [] : [subcommand]), ...shown].join(' ');
  return {
    flags: { has: (name) => flags.has(name), get: (name) => all(name)[0], all },
    others,
    shown: command,
  };
}

/** The load of a line without the program's name, as scenarios have it. @throws UserError that names what cannot be honoured */
export function loadOfFlags(generator: Generator, line: string): LoadProfile {
  const {
    flags,
    others: [other],
    shown,
  } = readCommand(generator, wordsOfLine(line, generator.name));
  if (other !== undefined)
    throw new UserError(
      `${generator.name}: leave "${other}" out: bakeoff starts the server itself and knows its address`,
    );
  return { command: shown, ...generator.load(flags) };
}
