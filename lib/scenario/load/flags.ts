// Reads the command lines of load generators: the flags that the engine can honour, the rest refused by name.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { isUtf8 } from 'node:buffer';
import { UserError } from '../../errors.ts';
import type { LoadProfile } from '../model.ts';
import { present } from '../../present.ts';
import { shellWord, shellWords, type ShellWord } from './shell-words.ts';
import { isHttp2 } from '../load.ts';
import { readBytesSync } from '../../files.ts';
import { fromCallersFolder } from '../../setup/paths.ts';

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

// Credentials in a load: they are sent, and neither shown nor kept.

/** What stands in their places. */
export const hidden = '***';

/** Headers that may let somebody in who reads them. */
const secretName =
  /^cookie$|auth|token|secret|passw|credential|session|signature|api-?key|access-?key|-key$/i;

/** The headers of a load as they may be shown: the values of credentials are left out. */
export function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secretName.test(name) ? hidden : value]),
  );
}

/** The same of one as a command line has it, `Name: value`. */
export function shownHeader(line: string): string {
  const [, name = line] = /^([^:]*):/.exec(line) ?? [];
  return secretName.test(name) ? `${name}: ${hidden}` : line;
}

// Request headers: those of a load generator's line, and which the engine can send.

type Headers = Readonly<Record<string, string>>;

/**
 * The headers of a line's flags, each as `Name: value`. Those of one name are joined as in RFC 9110, section 5.3 (cookies: RFC 6265).
 * Throws UserError naming what cannot be sent. @param flag as the person wrote it, e.g. `wrk -H`
 */
export function headersOf(
  flag: string,
  lines: readonly string[],
  protocol: LoadProfile['protocol'],
): { headers?: Headers; keepAlive?: boolean } {
  const headers = new Map<string, string>();
  let keepAlive: boolean | undefined;
  for (const line of lines) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    if (colon < 1)
      throw new UserError(`${flag} "${line}" has to be a header such as 'Accept-Encoding: gzip'`);
    if (
      name.toLowerCase() === 'connection' &&
      !isHttp2(protocol) &&
      /^(close|keep-alive)$/i.test(value)
    ) {
      keepAlive = value.toLowerCase() === 'keep-alive';
      continue;
    }
    const problem = problemOfHeader(name, value, protocol);
    if (problem !== undefined) throw new UserError(`${flag} "${line}": ${problem}`);
    const before = [...headers.keys()].find((one) => one.toLowerCase() === name.toLowerCase());
    if (before !== undefined && name.toLowerCase() === 'host')
      throw new UserError(`${flag} "${line}": Host is given twice`);
    if (before === undefined) headers.set(name, value);
    else
      headers.set(
        before,
        [headers.get(before), value].join(name.toLowerCase() === 'cookie' ? '; ' : ', '),
      );
  }
  return {
    ...(headers.size === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(keepAlive === undefined ? {} : { keepAlive }),
  };
}

/** Why the engine cannot send it, in words; undefined when it can. */
export function problemOfHeader(
  name: string,
  value: string,
  protocol: LoadProfile['protocol'],
): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `"${name}" is not a header name`;
  if (/[\r\n\0]/.test(value)) return `the value of ${name} has a line break or NUL in it`;
  const lower = name.toLowerCase();
  if (['connection', 'content-length', 'transfer-encoding'].includes(lower))
    return `${name} is set by the load generator (from keepAlive and body)`;
  if (isHttp2(protocol) && ['te', 'upgrade', 'keep-alive', 'proxy-connection'].includes(lower))
    return `${name} is not allowed in HTTP/2`;
  return undefined;
}

/** The value of a header whatever its name's case, and the others. */
export function takeHeader(
  headers: Headers | undefined,
  name: string,
): { value?: string; rest: Headers } {
  const entries = Object.entries(headers ?? {});
  const found = entries.find(([one]) => one.toLowerCase() === name.toLowerCase());
  return {
    ...(found === undefined ? {} : { value: found[1] }),
    rest: Object.fromEntries(entries.filter((entry) => entry !== found)),
  };
}

// Values of the load generators' flags, checked. `flag` in a message is as the person wrote it, e.g. `wrk -c`.

/** Time-out for h2load and weighttp, which have none. Article 002's longest request took 447 s, on a network that was full. */
export const endlessTimeoutSeconds = 600;

/** Throws UserError unless `text` is a whole number above 0. */
export function positiveCount(flag: string, text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(`${flag} ${text} has to be a whole number above 0`);
  }
  return count;
}

const metric = { k: 1e3, m: 1e6, g: 1e9 };

/** A whole number above 0, also as wrk takes it: 1k, 1M, 1G. Throws UserError for all else. */
export function metricCount(flag: string, text: string): number {
  const [, digits, unit] = /^(\d+)([kmg])$/i.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return positiveCount(flag, text);
  return positiveCount(
    flag,
    String(Number(digits) * metric[unit.toLowerCase() as keyof typeof metric]),
  );
}

/** So many requests/s for so long. Throws UserError where they are none, or more than can be counted. */
export function atRate(
  flag: string,
  rate: number,
  seconds: number,
): { rate: number; requests: number } {
  // Whole nanoseconds: 100/s for .29s are 29, which 100 * .29 is not.
  const requests = Math.floor((rate * Math.round(seconds * 1e9)) / 1e9);
  if (requests >= 1 && Number.isSafeInteger(requests)) return { rate, requests };
  throw new UserError(
    `${flag} ${rate}: for ${seconds} s that is ${requests < 1 ? 'no request at all' : 'more requests than can be counted'}`,
  );
}

/** Throws UserError with fewer requests (-n) than connections (-c), or fewer connections than threads (-t). */
export function requireOneEach(
  tool: string,
  {
    requests = Infinity,
    connections,
    threads = 1,
  }: { requests?: number; connections: number; threads?: number },
): void {
  if (requests < connections)
    throw new UserError(
      `${tool}: -n ${requests} is less than -c ${connections}: every connection needs a request, give at least -n ${connections}`,
    );
  if (connections < threads)
    throw new UserError(
      `${tool}: -c ${connections} is less than -t ${threads}: every thread needs a connection, give at least -c ${threads}`,
    );
}

const secondsPerUnit = { ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Seconds of `10`, `10s`, `2m` or `1h`, and of other whole numbers with one of `units`. Throws UserError for all else, and for 0. */
export function positiveTime(
  flag: string,
  text: string,
  units: readonly (keyof typeof secondsPerUnit)[] = ['s', 'm', 'h'],
): number {
  const [, digits, unit = 's'] = /^(\d+)([a-z]+)?$/.exec(text.toLowerCase()) ?? [];
  const known = units.find((one) => one === unit);
  const count = Number(digits);
  if (known === undefined || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(
      `${flag} ${text} has to be a time such as 10, ${units.map((one) => `10${one}`).join(', ')}`,
    );
  }
  return known === 'ms' ? count / 1000 : count * secondsPerUnit[known];
}

/** Throws UserError unless it is a method that asks for a resource (RFC 9110, section 9.1). */
export function requestMethod(flag: string, text: string): string {
  if (/^[A-Z]+$/.test(text) && text !== 'CONNECT') return text;
  throw new UserError(`${flag} ${text} has to be a method such as GET or POST`);
}

/** k6 gets it in an environment variable, which may have 128 KiB (MAX_ARG_STRLEN); JSON writes some bytes as six. */
const mostBodyBytes = 16 * 1024;

/** The text of a file that is sent with every request. As textOfFile. */
export function bodyOfFile(flag: string, path: string): string {
  return textOfFile(flag, path, mostBodyBytes);
}

/** The text of a file, its path relative to the folder the person stands in. Throws UserError when it is none, or too long. */
export function textOfFile(flag: string, path: string, mostBytes: number): string {
  let text: Buffer;
  try {
    text = readBytesSync(fromCallersFolder(path), mostBytes);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UserError(
      `${flag} ${path}: ${code === 'ENOENT' ? 'there is no such file' : message.replace(/^\w+: /, '')}`,
      2,
    );
  }
  if (!isUtf8(text))
    throw new UserError(`${flag} ${path} is not text in UTF-8: only text can be sent here`, 2);
  return text.toString('utf8');
}
