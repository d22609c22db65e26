// The sides of a comparison as a person names them: config files, commands, and addresses. And which of their addresses is
// loaded, over which protocol, under which load.
import { existsSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { check, givenName } from '../form.ts';
import { present } from '../present.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import { nearest, unknownWord } from '../nearest.ts';
import type { ServerName, LoadProfile, Page, ServerSpec } from '../scenario/model.ts';
import {
  readPageList,
  defaultPort,
  urlParts,
  pathOrUrl,
  type UrlParts,
  type PageList,
  type PageWeights,
} from '../scenario/pages.ts';
import { readOwnConfig, type OwnConfig, type Listen } from '../servers/index.ts';
import { find, isExecutableFile, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { asWords, ofForm, wholeNumber, type Flag, type Words } from './words.ts';
import { enumeration } from '../format.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import { isHttp2, protocolNames } from '../scenario/load.ts';
import { readLoadLine, type LoadLine } from '../scenario/load/generators.ts';

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

/** One of those that are compared. */
export interface Side extends Given {
  listen: Listen;
  load: LoadProfile;
  page: Pick<Page, 'path' | 'host' | 'weights' | 'status'>;
}

/** What the person wants to be asked for. */
export interface Asked {
  /** A path, or a URL. */
  url?: string;
  /** Several pages, instead. */
  urls?: PageList;
  /** Of the answer; absent: 200. */
  status?: number;
  /** Load generators' command lines. */
  load: OfSides;
}

/**
 * Decides for all sides. The default load has 100 connections, over HTTP/2 where a side prefers it, with 10 streams if all of them do.
 * @throws UserError (exit code 2) for words that do not fit the sides
 */
export function sidesOf(
  given: readonly Given[],
  asked: Asked,
  cores: Pick<Cores, 'generatorCpus' | 'generatorHosts'>,
): Side[] {
  const paths = new Set(
    given.flatMap(({ source }) =>
      source.kind === 'address' && source.url.path !== '/' ? [source.url.path] : [],
    ),
  );
  // What one address names is meant of all.
  const path = paths.size === 1 ? ([...paths][0] as string) : '/';
  const lineOf = (name: string): LoadLine | undefined => {
    const text = asked.load(name);
    return text === undefined ? undefined : asLoad(() => readLoadLine(text));
  };
  const wishes = given.map((side) => wishFor(side, asked, path, lineOf(side.name)));
  const listens = given.map((side, index): Listening => ({
    ...side,
    listen: listenOf(side, wishes[index] as Wish),
  }));
  const streams = listens.every(prefersHttp2) ? 10 : 1;
  return listens.map((side, index): Side => {
    const { path, host, weights } = wishes[index] as Wish;
    return {
      ...side,
      page: { path, ...present({ host, weights, status: asked.status }) },
      load: loadFor(side, lineOf(side.name) ?? defaultLine(side, streams, generatorCores(cores))),
    };
  });
}

/** What is asked of a side, by the URL that is for all, its own load's, or its own address; otherwise it is the usual path. */
function wishFor(
  { given, source }: Given,
  asked: Asked,
  usualPath: string,
  line: LoadLine | undefined,
): Wish {
  const ofLoad = line === undefined ? undefined : asLoad(() => line.over());
  const wishes: Wish[] = [
    ...(asked.url === undefined ? [] : [{ flag: '--url', ...pathOrUrl(asked.url, '--url') }]),
    ...(asked.urls === undefined
      ? []
      : [{ flag: '--urls', ...asked.urls.url, ...present({ weights: asked.urls.weights }) }]),
    ...(line?.url === undefined ? [] : [{ flag: '--load', ...line.url }]),
  ];
  if (wishes.length > 1)
    throw new UserError(
      `${wishes.map(({ flag }) => (flag === '--load' ? 'the URL in --load' : flag)).join(' and ')}: leave one of them out`,
      2,
    );
  const wish = wishes[0] ?? { flag: '--load', path: usualPath };
  const host = ofLoad?.host ?? wish.host;
  if (source.kind !== 'address') return { ...wish, ...present({ host }) };
  const { url } = source;
  const isAsked = wishes.length > 0;
  if (url.path !== '/' && isAsked)
    throw new UserError(
      `${wish.flag} and the path of ${given}, ${url.path}: leave one of them out`,
      2,
    );
  return {
    ...wish,
    path: isAsked || url.path === '/' ? wish.path : url.path,
    ...present({ host: host ?? url.host }),
  };
}

type Listening = Omit<Side, 'load' | 'page'>;
type Wish = Partial<UrlParts> & { path: string; weights?: PageWeights; flag: string };

const asLoad = <T>(read: () => T): T => asWords(read, '--load: ');

/** What is not known of a command or an address shows when it is tried. */
const unknown = { http2: true, hosts: [] };

/** The address that is loaded: the only one, or the one that the URL's scheme and port name. */
function listenOf({ given, source }: Given, { scheme, port, flag }: Wish): Listen {
  if (source.kind === 'command') return { ...unknown, port: 0, tls: scheme === 'https' };
  if (source.kind === 'address') {
    const { scheme: own, port: there } = source.url;
    if (scheme !== undefined && scheme !== own)
      throw new UserError(
        `${flag} says ${scheme}://, and ${given} is ${source.origin}: write ${own}://`,
        2,
      );
    if (port !== undefined && port !== there)
      throw new UserError(
        `${flag} says port ${port}, and ${given} is ${source.origin}: leave the port out, or write ${there}`,
        2,
      );
    return { ...unknown, port: there, tls: own === 'https' };
  }
  const { listens } = source.config;
  const all = listens.map((listen) => `${listen.port}${listen.tls ? ' (TLS)' : ''}`).join(', ');
  const [first, ...others] = listens;
  if (first === undefined)
    throw new UserError(`${given} listens on no TCP port: there is nothing to load`);
  if (scheme === undefined) {
    if (others.length === 0) return first;
    // Where a site has TLS, what listens without it mostly sends people there.
    const { tls, port: example } = listens.find((listen) => listen.tls) ?? first;
    throw new UserError(
      `${given} listens on the ports ${all}: say which one is to be loaded, such as --url ${tls ? 'https' : 'http'}://localhost:${example}/`,
      2,
    );
  }
  const fitting = listens.filter(({ tls }) => tls === (scheme === 'https'));
  if (fitting.length === 0) {
    const [has, other] = scheme === 'https' ? ['no TLS', 'http'] : ['TLS', 'https'];
    throw new UserError(
      `${flag} says ${scheme}://, and ${given} has ${has} on ${others.length === 0 ? `port ${first.port}` : `all its ports, ${all}`}: write ${other}://`,
      2,
    );
  }
  // Where there is one only, its number is as good as any: the address is another one anyway.
  if (others.length === 0 || (port === undefined && fitting.length === 1))
    return fitting[0] as Listen;
  const wanted = port ?? defaultPort[scheme];
  const found = fitting.find((listen) => listen.port === wanted);
  if (found === undefined)
    throw new UserError(
      `${flag} says port ${wanted} over ${scheme}, and ${given} listens on the ports ${all}: name one of them, such as --url ${scheme}://localhost:${(fitting[0] as Listen).port}/`,
      2,
    );
  return found;
}

/** Whether it is known to be HTTP/2 that browsers would speak with it: without TLS they speak HTTP/1.1 where they can. */
function prefersHttp2({ listen, source }: Listening): boolean {
  return source.kind === 'config' && listen.http2 && (listen.tls || listen.http2Only === true);
}

function defaultLine(side: Listening, streams: number, threads: number): LoadLine {
  return readLoadLine(
    prefersHttp2(side)
      ? `h2load -c 100 -m ${streams} -t ${Math.min(threads, 100)} -D 10`
      : `wrk -c 100 -t ${Math.min(threads, 100)} -d 10`,
  );
}

/** The load of a line, if the config speaks its protocol. */
function loadFor(
  { given, listen: { port, tls, http2, http2Only } }: Listening,
  line: LoadLine,
): LoadProfile {
  const { load } = asLoad(() => line.over(tls ? 'https' : 'http'));
  const refused = (why: string): UserError =>
    new UserError(
      `--load: ${load.command} is ${protocolNames(load.protocol)}, and ${given} ${why}`,
      2,
    );
  if (isHttp2(load.protocol) && !http2)
    throw refused(`does not speak HTTP/2 on port ${port}: take wrk, or h2load --h1`);
  if (!isHttp2(load.protocol) && http2Only)
    throw refused(`speaks HTTP/2 only on port ${port}: take h2load`);
  return load;
}

/** What a reader has to know of sides that are not loaded alike. */
export function differences(sides: readonly Side[]): string[] {
  const over = ({ given, load }: Side): string =>
    `${given} is loaded over ${protocolNames(load.protocol)}`;
  const encrypting = sides.filter(({ listen }) => listen.tls);
  return [
    ...(new Set(sides.map(({ page }) => page.path)).size === 1
      ? []
      : [
          `The pages differ: ${sides.map(({ given, page }) => `${given} ${page.path}`).join(', ')}; part of what is seen is theirs.`,
        ]),
    ...(new Set(sides.map(({ load }) => isHttp2(load.protocol))).size === 1
      ? []
      : [`The protocols differ: ${sides.map(over).join(', ')}; part of what is seen is theirs.`]),
    ...(encrypting.length === 0 || encrypting.length === sides.length
      ? []
      : [
          `Only ${enumeration(encrypting.map(({ given }) => given))} ${encrypting.length === 1 ? 'encrypts' : 'encrypt'} (TLS): part of what is seen is its cost.`,
        ]),
  ];
}

/** How a side is started, beside what it is: a command's own port, another build of a server. */
export interface Launch {
  port?: number;
  binary?: string;
}

/** The launches of all sides, by their names. */
export type LaunchOf = (name: string) => Launch;

/** The server of a side. */
export function serverOf(
  { source, listen }: Pick<Side, 'source' | 'listen'>,
  { port, binary }: Launch,
): ServerSpec {
  if (source.kind === 'address') return { name: 'address', origin: source.origin };
  if (source.kind === 'command') {
    return {
      name: 'command',
      command: source.command,
      folder: fromCallersFolder('.'),
      ...(port === undefined ? {} : { port }),
      ...(listen.tls ? { tls: true } : {}),
    };
  }
  const { server, file, workers, listens } = source.config;
  return {
    name: server,
    config: [file],
    workers,
    asIs: listens.length > 1 ? { port: listen.port } : {},
    ...(binary === undefined ? {} : { binary }),
  };
}
