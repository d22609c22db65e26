// Reads the flags of load generators that the engine can honour. All others are refused by name.
import { isUtf8 } from 'node:buffer';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { prefixed, usageError, UserError } from '../../errors.ts';
import { readBytes } from '../../files.ts';
import { present } from '../../present.ts';
import { hidden, shownHeader, shownUrl } from '../../secrets.ts';
import { fromCallersFolder } from '../../setup/paths.ts';
import { hasStreams } from '../load.ts';
import type { LoadProfile, Protocol } from '../model.ts';
import { shellWord, shellWords, type ShellWord } from './shell-words.ts';

type Headers = Readonly<Record<string, string>>;

type Option = NonNullable<ParseArgsConfig['options']>[string];
/** A flag with a value, for parseArgs. */
export const valued = (short?: string): Option => ({ type: 'string', ...present({ short }) });
export const repeatable = (short?: string): Option => ({ ...valued(short), multiple: true });
/** A flag without a value. */
export const toggle = (short?: string): Option => ({ type: 'boolean', ...present({ short }) });

/** A load generator's command line. */
export interface LoadCommand {
  /** The program's name, which starts every message. */
  name: string;
  /** The flags that are honoured, and those that do not change the load. */
  options: Readonly<Record<string, Option>>;
  /** Flags whose values are credentials, beside headers. */
  secretOptions?: readonly string[];
  /** Flags that cannot be honoured, without dashes, and their replacements. */
  instead?: Readonly<Record<string, string>>;
  /** Pairs of flags that do not go together: "n t". */
  exclusive?: readonly string[];
  subcommand?: string;
  /** Go's notation: a single dash for long flags, and =true or =false for switches. */
  oneDash?: boolean;
  urlWithoutScheme?: boolean;
  /** @param scheme of the server, if known. @throws UserError that names the wrong flag */
  load(flags: Flags, scheme?: 'http' | 'https'): Omit<LoadProfile, 'command'>;
}

/** Makes a value of a flag's text. @throws UserError that begins with the flag, as in "wrk -c" or --rounds */
export type Reader<T> = (flag: string, text: string) => T;

/** The flags of a line by their names in `options`. */
export interface Flags {
  has(name: string): boolean;
  /** '' for a switch without a value. */
  get(name: string): string | undefined;
  all(name: string): readonly string[];
  /** Reads a flag's value, or without the flag that of `usual`. */
  read<T>(name: string, reader: Reader<T>, usual: string): T;
  read<T>(name: string, reader: Reader<T>): T | undefined;
}

/** Splits a line into words. @throws UserError if it is not a single command */
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

/** @param words without program and subcommand @returns `shown`: the line without credentials @throws UserError that names the flag */
export function readCommand(generator: LoadCommand, words: readonly ShellWord[]) {
  const { name: tool, options, instead = {}, subcommand } = generator;
  const { oneDash = false, exclusive = [] } = generator;
  const flags = new Map<string, string[]>();
  const others: string[] = [];
  const shown = words.map(({ written }) => written);
  const written = (name: string) => {
    const short = options[name]?.short;
    return oneDash || short !== undefined ? `-${short ?? name}` : `--${name}`;
  };
  const args = words.map(({ text }) => (oneDash ? text.replace(/^-(?=[a-z])/, '--') : text));
  const { tokens } = parseArgs({
    args,
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') others.push(token.value);
    if (token.kind !== 'option') continue;
    const { type, multiple } = options[token.name] ?? {};
    const name = oneDash ? token.rawName.replace(/^--/, '-') : token.rawName;
    const { value } = token;
    const hasWrongValue =
      type === 'boolean' && value !== undefined && !(oneDash && /^(true|false)$/.test(value));
    if (type === undefined || hasWrongValue) {
      const refused = hasWrongValue ? `${name}=${value}` : name;
      const why = Object.hasOwn(instead, token.name)
        ? `: ${instead[token.name]}`
        : `; these can: ${Object.keys(options).map(written).join(' ')}`;
      throw new UserError(`${tool}: ${refused} cannot be honoured here${why}`);
    }
    const before = flags.get(token.name) ?? [];
    if (before.length > 0 && multiple !== true)
      throw new UserError(`${tool}: ${name} is given twice`);
    if (type === 'string' && value === undefined)
      throw new UserError(`${tool}: ${name} needs a value`);
    flags.set(token.name, [...before, value ?? '']);
    if (value === undefined) continue;
    const open = shownValue(generator, token.name, value);
    const at = token.inlineValue ? token.index : token.index + 1;
    const text = words[at]?.text ?? '';
    if (open !== value) shown[at] = shellWord(text.slice(0, text.length - value.length) + open);
  }
  const pairs = exclusive.map((pair) => pair.split(' '));
  const both = pairs.find((pair) => pair.every((flag) => flags.has(flag)));
  if (both !== undefined)
    throw new UserError(
      `${tool}: ${both.map(written).join(' and ')} do not go together: leave one out`,
    );
  const all = (name: string): readonly string[] => flags.get(name) ?? [];
  const read = <T>(name: string, reader: Reader<T>, usual?: string) => {
    const [text = usual] = all(name);
    return text === undefined ? undefined : reader(`${tool} ${written(name)}`, text);
  };
  const program = subcommand === undefined ? tool : `${tool} ${subcommand}`;
  return {
    flags: { has: (name) => flags.has(name), get: (name) => all(name)[0], all, read } as Flags,
    others,
    shown: shownUrl([program, ...shown].join(' ')),
  };
}

/** A flag's value without credentials. */
function shownValue({ secretOptions = [] }: LoadCommand, name: string, value: string): string {
  if (secretOptions.includes(name)) return hidden;
  return name === 'header' || name === 'H' ? shownHeader(value) : value;
}

const mostHeaderBytes = 64 * 1024;

/** A pipe such as <(…) can be read once. */
const headerFiles = new Map<string, string[]>();

/** The lines of the file for `@FILE`, else the line itself. Credentials in a file do not show in the list of processes. */
function headerLines(flag: string, line: string): readonly string[] {
  if (!line.startsWith('@')) return [line];
  const file = line.slice(1);
  const known = headerFiles.get(file);
  if (known !== undefined) return known;
  const all = textOfFile(flag, file, mostHeaderBytes).split(/\r?\n/);
  const lines = all.filter((text) => text.trim() !== '');
  headerFiles.set(file, lines);
  return lines;
}

/**
 * Reads headers, each `Name: value`, or @ and a file with one a line. Headers of the same name are joined as in RFC 9110, section 5.3
 * (cookies: RFC 6265).
 * @param flag as the user wrote it, such as `wrk -H`
 * @throws UserError that names the header that cannot be sent
 */
export function headersOf(
  flag: string,
  lines: readonly string[],
  protocol: Protocol,
): { headers?: Headers; keepAlive?: boolean } {
  const headers = new Map<string, { name: string; value: string }>();
  let keepAlive: boolean | undefined;
  for (const line of lines.flatMap((argument) => headerLines(flag, argument))) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    const key = name.toLowerCase();
    const shown = colon < 1 && !lines.includes(line) ? hidden : shownHeader(line);
    if (colon < 1)
      throw new UserError(`${flag} "${shown}" has to be a header such as 'Accept-Encoding: gzip'`);
    if (key === 'connection' && !hasStreams(protocol) && /^(close|keep-alive)$/i.test(value)) {
      keepAlive = value.toLowerCase() === 'keep-alive';
      continue;
    }
    const problem = problemOfHeader(name, value, protocol);
    if (problem !== undefined) throw new UserError(`${flag} "${shown}": ${problem}`);
    const before = headers.get(key);
    if (before === undefined) headers.set(key, { name, value });
    else if (key === 'host') throw new UserError(`${flag} "${shown}": Host is given twice`);
    else before.value += (key === 'cookie' ? '; ' : ', ') + value;
  }
  if (headers.size === 0) return present({ keepAlive });
  const named = [...headers.values()].map(({ name, value }) => [name, value] as const);
  return { headers: Object.fromEntries(named), ...present({ keepAlive }) };
}

/** Returns whether the engine makes requests with this method. */
export function isMethod(word: string): boolean {
  return /^[A-Z]+$/.test(word) && word !== 'CONNECT';
}

/** Returns why the engine cannot send a header; undefined if it can. */
export function problemOfHeader(
  name: string,
  value: string,
  protocol: Protocol,
): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `"${name}" is not a header name`;
  if (/[^\P{Cc}\t]/u.test(value))
    return `the value of ${name} has a line break or another control character in it`;
  if (/[^\0-\xFF]/.test(value))
    return `the value of ${name} has a letter beyond Latin-1 in it, which no header can have`;
  const key = name.toLowerCase();
  if (['connection', 'content-length', 'transfer-encoding'].includes(key))
    return `${name} is set by the load generator (from keepAlive and body)`;
  if (hasStreams(protocol) && ['te', 'upgrade', 'keep-alive', 'proxy-connection'].includes(key))
    return `${name} is not allowed in HTTP/2 and 3`;
  return undefined;
}

const metric = { '': 1, k: 1e3, m: 1e6, g: 1e9 };

/** A whole number, also as 1k, 1M or 1G. @throws UserError for all else */
export function readCount(flag: string, text: string): number {
  const [, digits, unit = ''] = /^(\d+)([kmg]?)$/.exec(text.toLowerCase()) ?? [];
  if (digits !== undefined) return Number(digits) * metric[unit as keyof typeof metric];
  throw new UserError(`${flag} ${text} has to be a whole number, such as 100 or 1k`);
}

const msPerUnit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Seconds of digits and a unit: ms, s, m or h. */
export function secondsOf(digits: string | undefined, unit: string): number {
  return (Number(digits) * msPerUnit[unit as keyof typeof msPerUnit]) / 1000;
}

/** Seconds, of a whole number with or without its unit. @throws UserError for all else */
export function time(flag: string, text: string): number {
  const [, digits, unit = 's'] = /^(\d+)(ms|s|m|h)?$/.exec(text.toLowerCase()) ?? [];
  if (digits !== undefined) return secondsOf(digits, unit);
  throw new UserError(`${flag} ${text} has to be a time such as 10, 10s, 500ms, 1m or 1h`);
}

/** The receive windows of h2load's -w N and -W N. @throws UserError */
export function receiveWindowIn(flags: Flags): Pick<LoadProfile, 'window'> {
  const stream = flags.read('window-bits', bytesOfBits);
  const connection = flags.read('connection-window-bits', bytesOfBits);
  if (stream === undefined && connection === undefined) return {};
  return { window: present({ stream, connection }) };
}

/** 2^N − 1 bytes. h2load takes 0, too, with which no body can be sent. @throws UserError */
function bytesOfBits(flag: string, text: string): number {
  if (/^([1-9]|[12]\d|30)$/.test(text)) return 2 ** Number(text) - 1;
  throw new UserError(`${flag} ${text} has to be 1 to 30, for a window of 2^N − 1 bytes`);
}

/** Reads words of `known` with colons between them. The reader throws UserError for others. */
export const wordsOfFlag =
  <Word extends string>(known: readonly Word[]): Reader<Word[]> =>
  (flag, text) => {
    const words = text.split(':') as Word[];
    const strange = words.find((word) => !known.includes(word));
    if (strange === undefined) return words;
    throw new UserError(
      `${flag} ${strange} cannot be honoured here; these can: ${known.join(' ')}`,
    );
  };

export function atRate(rate: number, seconds: number) {
  // Whole nanoseconds: 100/s for .29s are 29, but 100 * .29 is less.
  return { rate, requests: Math.floor((rate * Math.round(seconds * 1e9)) / 1e9) };
}

/** k6 gets the body in an environment variable of 128 KiB at most (MAX_ARG_STRLEN); JSON writes some bytes as six. */
const mostBodyBytes = 16 * 1024;

/** The text of a file, which every request sends. @throws as textOfFile */
export function bodyOfFile(flag: string, path: string): string {
  return textOfFile(flag, path, mostBodyBytes);
}

/** The text of a file relative to the user's working directory. @throws UserError if it is not text, or too long */
export function textOfFile(flag: string, path: string, mostBytes: number): string {
  const bytes = prefixed(() => readBytes(fromCallersFolder(path), mostBytes), `${flag} ${path}: `);
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw usageError(`${flag} ${path} is not text in UTF-8: only text can be sent here`);
}
