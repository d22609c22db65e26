// The sides of a comparison as a person names them: config files, commands, and addresses of what runs already. And what is wanted of
// them, by flags that hold for all, or for one: `--port 3000`, `--port new=3000`.
import { existsSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { check, givenName } from '../form.ts';
import { present } from '../present.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import { nearest, unknownWord } from '../nearest.ts';
import type { ServerName } from '../scenario/model.ts';
import { readPageList, defaultPort, urlParts, type UrlParts } from '../scenario/pages.ts';
import { readOwnConfig, type OwnConfig } from '../servers/index.ts';
import { find, isExecutableFile, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import type { LaunchOf } from './compare-scenario.ts';
import type { Asked } from './compare-sides.ts';
import { asWords, ofForm, wholeNumber, type Flag, type Words } from './words.ts';

export type Source =
  | { kind: 'config'; config: OwnConfig }
  | { kind: 'command'; command: string; program: string }
  | { kind: 'address'; origin: string; url: UrlParts & { port: number } };

/** A side, and what it is called: `name` in tables, `given` in sentences. */
export interface Given {
  name: string;
  given: string;
  source: Source;
}

/** Those whose configs are known. */
export const serverNames: readonly ServerName[] = ['nginx', 'h2o', 'nghttpd'];

/** Beside more of them a table is no longer read, and each has too small a part of the time. */
const mostSides = 16;

/** NAME=SIDE. In lower case: what stands before a command in upper case is a variable of its environment. */
const named = /^([a-z0-9][a-z0-9-]{0,62})=(.*)$/s;

/** Throws UserError (exit code 2) for what is none of the three, or is named twice; in one line for a config that cannot be read. */
export async function readSides(words: readonly string[], typed: string): Promise<Given[]> {
  if (words.length < 2)
    throw new UserError(
      `compare wants two sides or more${words[0] === undefined ? '' : `, and ${words[0]} is one`}: ${typed} A.conf B.conf`,
      2,
    );
  if (words.length > mostSides)
    throw new UserError(
      `compare takes at most ${mostSides} sides, and these are ${words.length}`,
      2,
    );
  const sides: (Omit<Given, 'name'> & { name: string | undefined })[] = [];
  for (const word of words) sides.push(await readSide(word));
  const names = namesOf(sides);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new UserError(`two sides are named ${twice}: give another name, such as ${twice}-2=…`, 2);
  // A command or an address would be as long in each sentence as it is here.
  return sides.map(({ given, source, name: own }, index): Given => {
    const name = names[index] as string;
    return { name, source, given: own !== undefined || source.kind !== 'config' ? name : given };
  });
}

async function readSide(word: string): Promise<Omit<Given, 'name'> & { name: string | undefined }> {
  const [, name, rest = word] =
    (existsSync(fromCallersFolder(word)) ? undefined : named.exec(word)) ?? [];
  const outcome = name === undefined ? {} : check(givenName, name);
  if ('problem' in outcome) throw new UserError(`the name of a side: ${outcome.problem}`, 2);
  if (rest.trim() === '')
    throw new UserError(
      `${name === undefined ? 'a side' : `the side ${name}`} is empty: give a config, a command in quotes or an address`,
      2,
    );
  return { name, given: rest, source: await readSource(rest) };
}

/** What a word names. Throws UserError as readSides does. */
export async function readSource(word: string): Promise<Source> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return readAddress(word);
  const file = fromCallersFolder(word);
  if (existsSync(file))
    return (await isProgram(file))
      ? readCommand(word)
      : { kind: 'config', config: await readOwnConfig(file) };
  if (/^[\w.-]*:\d+(\/|$)/.test(word))
    throw new UserError(
      `there is no file ${file}: of an address write http://${word.startsWith(':') ? `127.0.0.1${word}` : word}${word.includes('/') ? '' : '/'}`,
      2,
    );
  if (
    /\s/.test(word.trim()) ||
    (!word.includes('/') && (await find(word.trim(), thisMachine())) !== undefined)
  )
    return readCommand(word);
  const names = await readdir(path.dirname(file)).catch((): string[] => []);
  const near = nearest(path.basename(file), names);
  throw new UserError(
    `there is no file ${file}, and no program ${word}${near === undefined ? '' : `: did you mean ${path.join(path.dirname(word), near)}?`}`,
    2,
  );
}

function readAddress(word: string): Source {
  const [scheme = ''] = word.split('://', 1);
  if (!/^https?$/i.test(scheme))
    throw new UserError(`${word}: ${scheme}:// cannot be loaded, only http:// and https://`, 2);
  const url = urlParts(word, 'compare');
  return {
    kind: 'address',
    origin: new URL(word).origin,
    url: { ...url, port: url.port ?? defaultPort[url.scheme] },
  };
}

function readCommand(command: string): Source {
  const [program] = asWords(() => commandWords(command, 0), `'${command}': `) as [string];
  return { kind: 'command', command, program };
}

/** Whether a file is run, rather than read: a config may have a mode that lets it be run, too. */
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

/**
 * The given names; for the others what a file is called before the last dot, a command's program, an address's host, with more of it
 * where that tells them apart, and -a, -b … where nothing does. Only a-z, 0-9 and -, and never digits alone.
 */
export function namesOf(sides: readonly { name?: string | undefined; source: Source }[]): string[] {
  const open = sides.filter(({ name }) => name === undefined);
  const taken = new Set(sides.flatMap(({ name }) => name ?? []));
  const tell = (names: readonly string[]): boolean =>
    new Set(names).size === names.length && !names.some((name) => taken.has(name));
  const short = open.map(({ source }) => shortName(source));
  const long = open.map(({ source }) => longName(source));
  const lettered = short.map((name, index) =>
    short.indexOf(name) === index && short.lastIndexOf(name) === index && !taken.has(name)
      ? name
      : `${name}-${String.fromCharCode(97 + index)}`,
  );
  const found = [...([short, long].find(tell) ?? lettered)];
  return sides.map(({ name }) => name ?? (found.shift() as string));
}

function shortName(source: Source): string {
  if (source.kind === 'config') return nameFrom(source, path.parse(source.config.file).name);
  return nameFrom(
    source,
    source.kind === 'command' ? path.parse(source.program).name : new URL(source.origin).hostname,
  );
}

function longName(source: Source): string {
  if (source.kind === 'config')
    return [asName(path.basename(path.dirname(source.config.file))), shortName(source)]
      .filter((part) => part !== '')
      .join('-');
  return nameFrom(
    source,
    asName(source.kind === 'command' ? source.command : new URL(source.origin).host).slice(0, 40),
  );
}

function nameFrom({ kind }: Source, text: string): string {
  const name = asName(text);
  return /\D/.test(name) ? name : [kind, name].filter((part) => part !== '').join('-');
}

/** That of a file may be much longer than a table's column. */
const longestName = 63;

function asName(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, longestName)
    .replace(/^-|-$/g, '');
}

/** What was given for a side, by its name, or else for all. */
export type OfSides = (name: string) => string | undefined;

/**
 * What a flag that was given so often says of sides of these names.
 * @param only those that the flag can be for, and what they are
 * @throws UserError (exit code 2) for a side that there is not or that it cannot be for, and for two values that are for the same
 */
export function ofSides(
  flag: string,
  values: readonly string[],
  names: readonly string[],
  only = { what: 'a side', names },
): OfSides {
  const given = new Map<string | undefined, string>();
  for (const value of values) {
    const [, name, rest = value] = /^([a-z0-9][a-z0-9-]*)=(.*)$/s.exec(value) ?? [];
    if (name !== undefined && !names.includes(name)) throw unknownWord('side', name, names);
    if (only.names.length === 0)
      throw new UserError(`${flag} is for ${only.what}, and no side is one`, 2);
    if (name !== undefined && !only.names.includes(name))
      throw new UserError(`${flag} is for ${only.what}, and ${name} is none`, 2);
    if (given.has(name))
      throw new UserError(`${flag} is given twice for ${name ?? 'all sides'}`, 2);
    if (rest === '') throw new UserError(`${flag} ${value}: there is nothing behind ${name}=`, 2);
    given.set(name, rest);
  }
  return (name) => given.get(name) ?? given.get(undefined);
}

/** The flags that compare and knobs have in common. */
export const askedFlags = {
  url: { value: 'URL', help: 'a path, or a URL whose port says which of several addresses (/)' },
  urls: { value: 'FILE', help: 'several pages: one path or URL a line, and its weight (1)' },
  load: {
    value: '"wrk -c 100 -d 10"',
    repeated: true,
    help: 'a command line of wrk, h2load, ab, weighttp or vegeta (100 connections)',
  },
  status: { value: '404', help: 'the status that is right, where it is not 200' },
  bin: { value: 'nginx=PATH', repeated: true, help: 'another build of a server' },
} as const satisfies Record<string, Flag>;

/** What is asked of the sides. Throws UserError (exit code 2). */
export function readAsked({ flags, lists, read }: Words, given: readonly Given[]): Asked {
  const status = read('status', (flag, text) =>
    Number(ofForm(flag, text, /^[2-5]\d\d$/, 'give a status from 200 to 599, such as 404')),
  );
  return {
    ...present({ url: flags.get('url'), urls: read('urls', readPageList), status }),
    load: ofSides(
      '--load',
      lists.get('load') ?? [],
      given.map(({ name }) => name),
    ),
  };
}

/** How each side is started. Throws UserError (exit code 2). */
export function readLaunch({ lists }: Words, given: readonly Given[]): LaunchOf {
  const names = given.map(({ name }) => name);
  const having = (is: (source: Source) => boolean): string[] =>
    given.flatMap(({ name, source }) => (is(source) ? [name] : []));
  const ports = ofSides('--port', lists.get('port') ?? [], names, {
    what: 'a command',
    names: having(({ kind }) => kind === 'command'),
  });
  const binaries = new Map(
    serverNames.map((server) => [
      server,
      ofSides(`--bin ${server}=…`, binariesOf(server, lists.get('bin') ?? []), names, {
        what: `a config of ${server}`,
        names: having((source) => source.kind === 'config' && source.config.server === server),
      }),
    ]),
  );
  return (name) => {
    const { source } = given.find((side) => side.name === name) as Given;
    const port = source.kind === 'command' ? ports(name) : undefined;
    const binary =
      source.kind === 'config' ? binaries.get(source.config.server)?.(name) : undefined;
    return present({
      port: port === undefined ? undefined : wholeNumber('--port', port, 65_535),
      binary: binary === undefined ? undefined : fromCallersFolder(binary),
    });
  };
}

/** What `--bin` says of one server, as ofSides reads it: `nginx=/a` is `/a`, and `new:nginx=/a` is `new=/a`. */
function binariesOf(server: string, values: readonly string[]): string[] {
  return values.flatMap((value) => {
    const [, name, called = '', file = ''] =
      /^(?:([a-z0-9-]+):)?([a-z0-9]+)=(.+)$/s.exec(value) ?? [];
    if (!serverNames.some((one) => one === called))
      throw new UserError(
        `--bin ${value}: write ${serverNames.join('=PATH, ')}=PATH, or NAME:nginx=PATH for one side`,
        2,
      );
    return called === server ? [name === undefined ? file : `${name}=${file}`] : [];
  });
}
