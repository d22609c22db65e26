// Reads the sides of a comparison from the command line: config files, commands and addresses.
import path from 'node:path';
import { existsSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { prefixed, usageError, UserError, nearest } from '../errors.ts';
import { check, givenName } from '../form.ts';
import { repeated, zip } from '../present.ts';
import { shownCommand } from '../secrets.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import { defaultPort, urlParts, type UrlParts } from '../scenario/pages.ts';
import { readOwnConfig, type OwnConfig } from '../servers/index.ts';
import { asOneSide } from './arguments.ts';
import { find, isExecutableFile, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder, typed } from '../setup/paths.ts';

export type Source =
  | { kind: 'config'; config: OwnConfig }
  /** The folder in which it runs; absent: the caller's. */
  | { kind: 'command'; command: string; program: string; folder?: string }
  | { kind: 'address'; origin: string; url: UrlParts & { port: number } };

/** `name` stands in tables, `given` in sentences. */
export interface Given {
  name: string;
  given: string;
  source: Source;
}

/** A table of more sides is hard to read, and each has too small a part of the time. */
const mostSides = 16;

/** NAME=SIDE. A variable in front of a command is in upper case. */
const named = /^([a-z0-9][a-z0-9-]{0,62})=(.*)$/s;

/** Throws UserError (exit code 2). */
export async function readSides(words: readonly string[], within?: string): Promise<Given[]> {
  requireNumber(words, 'A.conf B.conf');
  const sides: Awaited<ReturnType<typeof readSide>>[] = [];
  for (const word of words) sides.push(await readSide(word, within, sides.at(-1)?.source));
  const names = namesOf(sides);
  requireDifferent(names);
  return zip(sides, names).map(([side, name]): Given => {
    // A command or an address is too long for a sentence.
    const isFile = side.name === undefined && side.source.kind === 'config';
    return { name, source: side.source, given: isFile ? side.word : name };
  });
}

/** Throws UserError (exit code 2). @param example two sides */
export function requireNumber(words: readonly string[], example: string): void {
  if (words.length < 2)
    throw usageError(
      `compare wants two sides or more${words[0] === undefined ? '' : `, and ${words[0]} is one`}: ${typed('compare')} ${example}`,
    );
  if (words.length > mostSides)
    throw usageError(`compare takes at most ${mostSides} sides, and these are ${words.length}`);
}

/** Throws UserError (exit code 2). */
export function requireDifferent(names: readonly string[]): void {
  const twice = repeated(names);
  if (twice !== undefined)
    throw usageError(`two sides are named ${twice}: give another name, such as ${twice}-2=…`);
}

/** Splits a side into its name, if it begins with NAME=, and the rest. Throws UserError (exit code 2). */
export function readName(text: string): { name?: string; word: string } {
  const [, name, word = text] = named.exec(text) ?? [];
  if (name === undefined) return { word };
  refuseWrongName(name);
  return { name, word };
}

async function readSide(text: string, within: string | undefined, before: Source | undefined) {
  const { name, word } = existsSync(fromCallersFolder(text))
    ? { name: undefined, word: text }
    : readName(text);
  if (word.trim() === '')
    throw usageError(
      `${name === undefined ? 'a side' : `the side ${name}`} is empty: give a config, a command in quotes or an address`,
    );
  return { name, word, source: await readSource(word, within, before) };
}

function refuseWrongName(name: string): void {
  const outcome = check(givenName, name);
  if ('problem' in outcome) throw usageError(`the name of a side: ${outcome.problem}`);
}

/**
 * Reads a config, a command or an address. Throws UserError as readSides does.
 * @param within the config that --in names
 * @param before the side before it; a word that is none may be an argument of its command
 */
export async function readSource(word: string, within?: string, before?: Source): Promise<Source> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return readAddress(word);
  const file = fromCallersFolder(word);
  if (existsSync(file))
    return (await isProgram(file))
      ? readCommand(word)
      : { kind: 'config', config: await readConfig(file, within && fromCallersFolder(within)) };
  if (/^[\w.-]*:\d+(\/|$)/.test(word))
    throw usageError(
      `there is no file ${file}: for an address write http://${word.startsWith(':') ? '127.0.0.1' : ''}${word}${word.includes('/') ? '' : '/'}`,
    );
  const program = word.trim();
  if (
    /\s/.test(program) ||
    (!word.includes('/') && (await find(program, thisMachine())) !== undefined)
  )
    return readCommand(word);
  // A name of a side has no other letters; `named` did not match.
  const [, name] = /^([^/=]+)=/.exec(word) ?? [];
  if (name !== undefined) refuseWrongName(name);
  const names = await readdir(path.dirname(file)).catch((): string[] => []);
  const near = nearest(path.basename(file), names);
  if (near === undefined && before?.kind === 'command' && before.command === before.program)
    throw usageError(`there is no file ${file}: ${asOneSide(`${before.command} ${word}`)}`);
  throw usageError(
    `there is no file ${file}, and no program ${word}${near === undefined ? '' : `: did you mean ${path.join(path.dirname(word), near)}?`}`,
  );
}

/** Nothing has run yet, so an error in a config is one of the command line (exit code 2). */
async function readConfig(file: string, within: string | undefined): Promise<OwnConfig> {
  try {
    return await readOwnConfig(file, within);
  } catch (error) {
    throw error instanceof UserError ? usageError(error.message) : error;
  }
}

function readAddress(word: string): Source {
  const [scheme = ''] = word.split('://', 1);
  if (!/^https?$/i.test(scheme))
    throw usageError(`${word}: ${scheme}:// cannot be loaded, only http:// and https://`);
  const url = urlParts(word, 'compare');
  return {
    kind: 'address',
    origin: new URL(word).origin,
    url: { ...url, port: url.port ?? defaultPort[url.scheme] },
  };
}

/** Throws UserError (exit code 2) if its quotes do not end. */
export function readCommand(command: string): Source & { kind: 'command' } {
  const [program] = prefixed(() => commandWords(command, 0), `'${shownCommand(command)}': `);
  return { kind: 'command', command, program };
}

/** Returns whether an executable file is a program. A config may have such a mode, too. */
async function isProgram(file: string): Promise<boolean> {
  if (!(await isExecutableFile(file))) return false;
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    const start = buffer.toString('latin1', 0, bytesRead);
    return start.startsWith('#!') || start === '\x7fELF';
  } finally {
    await handle.close();
  }
}

/** A longer name makes a column of a table too wide. */
const columnWidth = 24;

/**
 * Names sides by file, program or host. If names are equal, adds the folder, the arguments or the port. If names are still equal, or too
 * long for a column, uses what the sides differ in. If even those are equal, appends -a, -b …
 */
export function namesOf(sides: readonly { name?: string | undefined; source: Source }[]): string[] {
  const taken = new Set(sides.flatMap(({ name }) => name ?? []));
  const open = sides.flatMap(({ name, source }) => (name === undefined ? [source] : []));
  const both = open.map(namesFrom);
  const short = both.map((names) => names[0]);
  const long = both.map((names) => names[1]);
  // givenName refuses digits alone.
  const isFree = (name: string, index: number, names: readonly string[]) =>
    /\D/.test(name) &&
    names.indexOf(name) === index &&
    names.lastIndexOf(name) === index &&
    !taken.has(name);
  const isFit = (name: string, index: number, names: readonly string[]) =>
    name.length <= columnWidth && isFree(name, index, names);
  const unfit = short.flatMap((name, index) => (isFit(name, index, short) ? [] : [index]));
  const sources = zip(open, short).map(([source, name]) => ({ source, short: name }));
  const apart = differingNames(unfit.flatMap((index) => sources[index] ?? []));
  const byDifference = short.map((name, index) => apart[unfit.indexOf(index)] ?? name);
  const names =
    [short, long, byDifference].find((some) => some.every(isFit)) ??
    [byDifference, short, long].find((some) => some.every(isFree)) ??
    short.map((name, index) =>
      isFree(name, index, short) ? name : `${name}-${String.fromCharCode(97 + index)}`,
    );
  return sides.map(({ name }) => name ?? names.shift() ?? '');
}

/**
 * Names sides by the words and folders in which they differ, after the short name if there is room. A name that is too long for a
 * column, or digits alone, is made of the differing parts of words instead, each with the part before it.
 */
function differingNames(sides: readonly { source: Source; short: string }[]): string[] {
  const texts = sides.map(({ source }) => textOf(source));
  const words = differing(
    texts.map((text) => text.split(/[\s/]+/)),
    0,
  );
  const parts = differing(
    texts.map((text) => text.split(/[^a-zA-Z0-9]+/)),
    1,
  );
  return sides.map(({ short }, index) => {
    const candidates = [words, parts].map((of) => asName(of[index]?.join(' ') ?? ''));
    const named = candidates.map((name) => (name === '' ? '' : withShort(short, name)));
    return (
      named.find((name) => /\D/.test(name) && name.length <= columnWidth) ??
      cut(candidates[1] ?? '')
    );
  });
}

/** Cuts a name to the width of a column. It keeps the beginning, where the difference is. */
const cut = (name: string) => name.slice(0, columnWidth).replace(/-$/, '');

/** Puts the short name before a name if both fit into a column. */
function withShort(short: string, name: string): string {
  return short.length + name.length < columnWidth && name !== short ? `${short}-${name}` : name;
}

/**
 * Returns each list without the beginning and the end that all lists share.
 * @param context how many items of the shared beginning to keep
 */
function differing(lists: readonly (readonly string[])[], context: number): string[][] {
  const [first = []] = lists;
  if (lists.length < 2) return lists.map(() => []);
  const isShared = (at: number) => lists.every((list) => list.at(at) === first.at(at));
  const shortest = Math.min(...lists.map(({ length }) => length));
  let begin = 0;
  while (begin < shortest && isShared(begin)) begin++;
  let end = 0;
  while (end < shortest - begin && isShared(-1 - end)) end++;
  return lists.map((list) => list.slice(Math.max(0, begin - context), list.length - end));
}

/** The whole text that a side is given as: its address, command or file. */
function textOf(source: Source): string {
  if (source.kind === 'address') return source.origin;
  return source.kind === 'command' ? shownCommand(source.command) : source.config.file;
}

function namesFrom(source: Source): [short: string, long: string] {
  const named = (text: string) =>
    /\D/.test(asName(text)) ? asName(text) : asName(`${source.kind}-${text}`);
  if (source.kind === 'address') {
    const { hostname, host } = new URL(source.origin);
    return [named(hostname), named(host)];
  }
  if (source.kind === 'command')
    return [named(path.parse(source.program).name), named(textOf(source))];
  const { dir, name } = path.parse(source.config.file);
  return [named(name), asName(`${path.basename(dir)}-${named(name)}`)];
}

/** The longest name that is made for a side. A longer text is cut. */
const longestName = 63;

export function asName(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, longestName)
    .replace(/^-|-$/g, '');
}
