// Reads the command lines of load generators: the flags that the engine can honour, the rest refused by name.
import path from 'node:path';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { nearest } from '../../nearest.ts';
import { present } from '../../present.ts';
import { hidden, shownHeader } from './secrets.ts';
import { shellPipeline, shellWord, type Pipeline, type ShellWord } from './shell-words.ts';

/** What a line asks for, without the line itself. */
export type LoadOfFlags = Omit<LoadProfile, 'command'>;

/** What of a command line is not a flag: the scheme of its URL, and what it asks for there (vegeta's method). */
export interface Target { scheme?: 'http' | 'https' | undefined; method?: string | undefined }

/** Flags as parseArgs has them: one with a value, and one without. */
export const valued = (short?: string): { type: 'string'; short?: string } => ({ type: 'string', ...present({ short }) });
export const toggle = (short?: string): { type: 'boolean'; short?: string } => ({ type: 'boolean', ...present({ short }) });

type FlagOptions = NonNullable<ParseArgsConfig['options']>;
interface Tokens { options: FlagOptions; strict: false; allowPositionals: true; tokens: true }

/** A load generator, as its command lines are read. */
export interface Generator {
  /** The program's name, which starts every message. */
  name: string;
  /** Those that are honoured, and those that change nothing about the load. `multiple`: may be given several times. */
  options: FlagOptions;
  /** Those whose values are credentials, beside headers. */
  secretOptions?: readonly string[];
  /** The one that names a file of several pages. */
  listOption?: string;
  /** Why some others cannot be honoured, and what to take instead. By their names without dashes. */
  instead?: Readonly<Record<string, string>>;
  /** The program's command, where it has several. */
  subcommand?: string;
  /** Go's notation: long flags have one dash. */
  oneDash?: boolean;
  /** It takes addresses without http:// too. */
  bareAddresses?: boolean;
  /** Throws UserError naming what cannot be honoured. Where there is no target, what it asks for is the scenario's to say. */
  load(flags: Flags, target: Target): LoadOfFlags;
}

/** The flags of a line by their names in `options`. */
export interface Flags {
  has(name: string): boolean;
  /** '' for a switch that is given; in Go's notation it may be 'true' or 'false' too. */
  get(name: string): string | undefined;
  all(name: string): readonly string[];
}

/** What a generator's words are, as parseArgs has it. */
function tokensOf({ options, oneDash = false }: Generator, words: readonly string[]): ReturnType<typeof parseArgs<Tokens>>['tokens'] {
  const args = words.map((word) => (oneDash ? word.replace(/^-(?=[a-z])/, '--') : word));
  return parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

/** The flags, and the words that are none. Throws UserError naming what cannot be honoured. */
export function parseFlags(generator: Generator, words: readonly string[]): { flags: Flags; others: string[] } {
  const { name: tool, options, oneDash = false, instead = {} } = generator;
  const flags = new Map<string, string[]>();
  const others: string[] = [];
  for (const token of tokensOf(generator, words)) {
    if (token.kind === 'positional') others.push(token.value);
    if (token.kind !== 'option') continue;
    const { type, multiple } = options[token.name] ?? {};
    const name = oneDash ? token.rawName.replace(/^--/, '-') : token.rawName;
    if (type === undefined || (type === 'boolean' && token.value !== undefined && !(oneDash && /^(true|false)$/.test(token.value)))) {
      const honoured = Object.keys(options).map((one) => flagOf(generator, one));
      const given = type === undefined ? name : `${name}=${token.value}`;
      const why = Object.hasOwn(instead, token.name) ? `: ${instead[token.name]}` : `${type === undefined ? didYouMean(name, options, oneDash) : ''}; these can: ${honoured.join(' ')}`;
      throw new UserError(`${tool}: ${given} cannot be honoured here${why}`);
    }
    const before = flags.get(token.name) ?? [];
    if (before.length > 0 && multiple !== true) throw new UserError(`${tool}: ${name} is given twice`);
    if (type === 'string' && token.value === undefined) throw new UserError(`${tool}: ${name} needs a value`);
    flags.set(token.name, [...before, token.value ?? '']);
  }
  const all = (name: string): readonly string[] => flags.get(name) ?? [];
  return { flags: { has: (name) => flags.has(name), get: (name) => all(name)[0], all }, others };
}

/** A generator's words behind its name as they may be shown: without credentials. */
function shownWords(generator: Generator, words: readonly ShellWord[]): string[] {
  const shown = words.map(({ written }) => written);
  for (const token of tokensOf(generator, words.map(({ text }) => text))) {
    if (token.kind !== 'option' || token.value === undefined) continue;
    const isSecret = generator.secretOptions?.includes(token.name) === true;
    const instead = isSecret ? hidden : ['header', 'H'].includes(token.name) ? shownHeader(token.value) : token.value;
    if (instead === token.value) continue;
    const at = token.inlineValue ? token.index : token.index + 1;
    const text = words[at]?.text ?? '';
    shown[at] = shellWord(text.slice(0, text.length - token.value.length) + instead);
  }
  return shown;
}

/** The articles' URLs: accepted and left out, since the address of the server that is started takes their place. */
const articleUrls = ['http://127.0.0.1/', 'http://127.0.0.1'];

/** The load of a line without the program's name, as scenarios have it. Throws UserError naming what cannot be honoured. */
export function loadOfFlags(generator: Generator, line: string): LoadProfile {
  const { name, subcommand, listOption } = generator;
  const [words = [], second] = shellPipeline(line, name);
  const own = words[0]?.text === subcommand ? words.slice(1) : words;
  const { flags, others } = parseFlags(generator, own.map(({ text }) => text));
  const wrong = second === undefined ? others.find((word) => !articleUrls.includes(word)) : '|';
  if (wrong !== undefined) throw new UserError(`${name}: leave "${wrong}" out: bakeoff starts the server itself and knows its address`);
  if (listOption !== undefined && flags.has(listOption)) throw new UserError(`${name}: a scenario names its pages itself, in page.weights: leave ${flagOf(generator, listOption)} out`);
  return { command: [name, ...(subcommand === undefined ? [] : [subcommand]), ...shownWords(generator, own)].join(' '), ...generator.load(flags, {}) };
}

/** The line as it is shown: blanks made even, without credentials. */
export function commandOf(generator: Generator, pipeline: Pipeline): string {
  return pipeline.map((words) => {
    const name = words.findIndex(({ text }) => path.basename(text) === generator.name);
    const own = name < 0 ? [] : words.slice(name + 1);
    return [...words.slice(0, words.length - own.length).map(({ written }) => written), ...shownWords(generator, own)].join(' ');
  }).join(' | ');
}

/** As it is written, the short form where it has one. */
export function flagOf({ options, oneDash = false }: Pick<Generator, 'options' | 'oneDash'>, name: string): string {
  const { short } = options[name] ?? {};
  return oneDash ? `-${name}` : short === undefined ? `--${name}` : `-${short}`;
}

/** Of a letter any other one is as near. */
function didYouMean(flag: string, options: FlagOptions, oneDash: boolean): string {
  const long = Object.keys(options).filter((name) => name.length > 1).map((name) => (oneDash ? `-${name}` : `--${name}`));
  const near = /^-+[^-]$/.test(flag) ? undefined : nearest(flag, long);
  return near === undefined ? '' : ` (did you mean ${near}?)`;
}
