// The sides of a comparison: config files, commands and addresses, with address, protocol and load of each.
import { readHar, readTargets } from '../traffic/lists.ts';
import { readLog, type Traffic } from '../traffic/log.ts';
import type { Pace } from '../traffic/piece.ts';
import { total } from '../analysis/statistics.ts';
import { existsSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { UserError, usageError, nearest, unknownWord } from '../errors.ts';
import { check, givenName } from '../form.ts';
import { present, repeated } from '../present.ts';
import { bodyOfFile, headersOf, shownHeader, shownUrl } from '../scenario/load/flags.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import type { LoadRequest, ServerName, LoadProfile, Page, ServerSpec } from '../scenario/model.ts';
import {
  readPageList,
  defaultPort,
  urlParts,
  pathOrUrl,
  type UrlParts,
  type PageList,
} from '../scenario/pages.ts';
import {
  isLoopback,
  readOwnConfig,
  readStub,
  type OwnConfig,
  type Listen,
} from '../servers/index.ts';
import { find, isExecutableFile, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { asWords, ofForm, seconds, wholeNumber, type Flag, type Words } from './words.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import { isHttp2, protocolNames } from '../scenario/load.ts';
import { readLoadLine, type LoadLine } from '../scenario/load/generators.ts';

export type Source =
  | { kind: 'config'; config: OwnConfig }
  | { kind: 'command'; command: string; program: string }
  | { kind: 'address'; origin: string; url: UrlParts & { port: number } };

/** `name` stands in tables, `given` in sentences. */
export interface Given {
  name: string;
  given: string;
  source: Source;
}

export interface Side extends Given {
  listen: Listen;
  load: LoadProfile;
  page: Pick<Page, 'path' | 'host' | 'requests' | 'status'>;
  /** Any share of the requests may have another status than the log says. */
  acceptsDifferences?: true;
}

/** The servers whose configs bakeoff reads. */
export const serverNames: readonly ServerName[] = ['nginx', 'h2o', 'nghttpd'];

/** A table of more sides is hard to read, and each has too small a part of the time. */
const mostSides = 16;

/** NAME=SIDE. A variable in front of a command is in upper case. */
const named = /^([a-z0-9][a-z0-9-]{0,62})=(.*)$/s;

/** Throws UserError; exit code 2 for wrong words. */
export async function readSides(
  words: readonly string[],
  typed: string,
  within?: string,
): Promise<Given[]> {
  if (words.length < 2)
    throw usageError(
      `compare wants two sides or more${words[0] === undefined ? '' : `, and ${words[0]} is one`}: ${typed} A.conf B.conf`,
    );
  if (words.length > mostSides)
    throw usageError(`compare takes at most ${mostSides} sides, and these are ${words.length}`);
  const sides: Awaited<ReturnType<typeof readSide>>[] = [];
  for (const word of words) sides.push(await readSide(word, within));
  const names = namesOf(sides);
  const twice = repeated(names);
  if (twice !== undefined)
    throw usageError(`two sides are named ${twice}: give another name, such as ${twice}-2=…`);
  return sides.map((side, index): Given => {
    const name = names[index] as string;
    // A command or an address is too long for a sentence.
    const isFile = side.name === undefined && side.source.kind === 'config';
    return { name, source: side.source, given: isFile ? side.word : name };
  });
}

async function readSide(text: string, within: string | undefined) {
  const [, name, word = text] =
    (existsSync(fromCallersFolder(text)) ? undefined : named.exec(text)) ?? [];
  const outcome = name === undefined ? {} : check(givenName, name);
  if ('problem' in outcome) throw usageError(`the name of a side: ${outcome.problem}`);
  if (word.trim() === '')
    throw usageError(
      `${name === undefined ? 'a side' : `the side ${name}`} is empty: give a config, a command in quotes or an address`,
    );
  return { name, word, source: await readSource(word, within) };
}

/** Reads a config, a command or an address. Throws UserError as readSides does. @param within as --in gives it */
export async function readSource(word: string, within?: string): Promise<Source> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return readAddress(word);
  const file = fromCallersFolder(word);
  if (existsSync(file))
    return (await isProgram(file))
      ? readCommand(word)
      : {
          kind: 'config',
          config: await readOwnConfig(file, within && fromCallersFolder(within)),
        };
  if (/^[\w.-]*:\d+(\/|$)/.test(word))
    throw usageError(
      `there is no file ${file}: of an address write http://${word.startsWith(':') ? '127.0.0.1' : ''}${word}${word.includes('/') ? '' : '/'}`,
    );
  const program = word.trim();
  if (
    /\s/.test(program) ||
    (!word.includes('/') && (await find(program, thisMachine())) !== undefined)
  )
    return readCommand(word);
  const name = path.basename(file);
  const names = await readdir(path.dirname(file)).catch((): string[] => []);
  // A link that leads nowhere is there.
  const near = names.includes(name) ? undefined : nearest(name, names);
  throw usageError(
    `there is no file ${file}, and no program ${word}${near === undefined ? '' : `: did you mean ${path.join(path.dirname(word), near)}?`}`,
  );
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

function readCommand(command: string): Source {
  const [program] = asWords(() => commandWords(command, 0), `'${command}': `) as [string];
  return { kind: 'command', command, program };
}

/** Whether an executable file is a program. A config may have such a mode, too. */
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

/** Names sides by file, program or host; if these are alike with folder, arguments or port, and else with -a, -b … */
export function namesOf(sides: readonly { name?: string | undefined; source: Source }[]): string[] {
  const taken = new Set(sides.flatMap(({ name }) => name ?? []));
  const open = sides.filter(({ name }) => name === undefined);
  const short = open.map(({ source }) => shortName(source));
  const long = open.map(({ source }) => longName(source));
  const isFree = (name: string, index: number, names: readonly string[]): boolean =>
    names.indexOf(name) === index && names.lastIndexOf(name) === index && !taken.has(name);
  const names =
    [short, long].find((some) => some.every(isFree)) ??
    short.map((name, index) =>
      isFree(name, index, short) ? name : `${name}-${String.fromCharCode(97 + index)}`,
    );
  const rest = [...names];
  return sides.map(({ name }) => name ?? (rest.shift() as string));
}

function shortName(source: Source): string {
  if (source.kind === 'address') return nameFrom(source, new URL(source.origin).hostname);
  const file = source.kind === 'config' ? source.config.file : source.program;
  return nameFrom(source, path.parse(file).name);
}

function longName(source: Source): string {
  if (source.kind === 'config') {
    const folder = path.basename(path.dirname(source.config.file));
    return [asName(folder), shortName(source)].filter((part) => part !== '').join('-');
  }
  const text = source.kind === 'command' ? source.command : new URL(source.origin).host;
  return nameFrom(source, asName(text).slice(0, 40));
}

function nameFrom({ kind }: Source, text: string): string {
  const name = asName(text);
  return /\D/.test(name) ? name : asName(`${kind}-${name}`);
}

/** A table's column is narrow. */
const longestName = 63;

function asName(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, longestName)
    .replace(/^-|-$/g, '');
}

/** Returns the value for a side's name, or else the value for all sides. */
type OfSides = (name: string) => string | undefined;

/** Reads a repeated flag, for one side (NAME=VALUE) or for all. Throws UserError (exit code 2). @param only the sides that it can be for */
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
      throw usageError(`${flag} is for ${only.what}, and no side is one`);
    if (name !== undefined && !only.names.includes(name))
      throw usageError(`${flag} is for ${only.what}, and ${name} is none`);
    if (given.has(name)) throw usageError(`${flag} is given twice for ${name ?? 'all sides'}`);
    if (rest === '') throw usageError(`${flag} ${value}: there is nothing behind ${name}=`);
    given.set(name, rest);
  }
  return (name) => given.get(name) ?? given.get(undefined);
}

/** The flags that compare and knobs have in common. */
export const askedFlags = {
  url: { value: 'URL', help: 'a path, or a URL whose port says which of several addresses (/)' },
  urls: { value: 'FILE', help: 'several pages: one path or URL a line, and its weight (1)' },
  log: {
    value: 'access.log',
    repeated: true,
    help: 'the requests of an access log, by their shares; - is stdin',
  },
  har: { value: 'FILE', help: "the requests that a browser's developer tools have saved" },
  targets: { value: 'FILE', help: 'the targets of vegeta, as text or JSON' },
  methods: {
    value: 'all',
    help: 'of a log or HAR not only GET and HEAD: the others may change data',
  },
  site: {
    value: 'HOST',
    help: 'the host whose requests are taken from a log or HAR (the most frequent)',
  },
  pace: {
    value: 'as-logged|10x',
    help: "the log's busiest --duration (10s) at its own times, or 10 times as fast (by shares, as fast as it goes)",
  },
  'accept-differences': {
    help: 'more than 5 % of the requests may have another status than the log',
  },
  method: { value: 'POST', help: 'the method of the requests (GET; with --data POST)' },
  header: { value: "'NAME: VALUE'", repeated: true, help: 'a header of the requests' },
  data: { value: 'TEXT|@FILE', help: 'the body of the requests' },
  load: {
    value: '"wrk -c 100 -d 10"',
    repeated: true,
    help: 'a command line of wrk, h2load, ab, weighttp or vegeta (100 connections)',
  },
  status: { value: '404', help: 'the expected status, if not 200' },
  bin: { value: 'nginx=PATH', repeated: true, help: 'another build of a server' },
  upstream: {
    value: 'app:9000=127.0.0.1:9000',
    repeated: true,
    help: 'what stands for a backend of a config; =stub:50ms:2KB answers HTTP/1.1 after that time',
  },
  in: { value: 'nginx.conf', help: 'the config into whose http { } a file without one is put' },
} as const satisfies Record<string, Flag>;

interface Asked {
  url?: string;
  urls?: PageList;
  /** Of --log, --har or --targets. */
  traffic?: Traffic & { flag: string };
  acceptsDifferences?: true;
  /** Of --method, --header and --data, with the flags as they are shown. */
  request?: { shown: string; of: (load: LoadProfile) => Partial<LoadProfile> };
  status?: number;
  load: OfSides;
}

async function readTraffic(
  { flags, lists, read }: Words,
  given: readonly Given[],
): Promise<Asked['traffic']> {
  const sources = (['log', 'har', 'targets'] as const).filter((flag) => flags.has(flag));
  const [source, other] = sources;
  if (other !== undefined) throw usageError(`--${source} and --${other}: leave one of them out`);
  const all = read('methods', (flag, text) => ofForm(flag, text, /^all$/, 'give all'));
  const ofBoth = (['methods', 'site'] as const).find((flag) => flags.has(flag));
  if (ofBoth !== undefined && source !== 'log' && source !== 'har')
    throw usageError(`--${ofBoth} is for --log or --har: give one, or leave it out`);
  const host = flags.get('site')?.toLowerCase();
  const methods = all === undefined ? 'safe' : 'all';
  if (flags.has('pace') && source !== 'log')
    throw usageError('--pace is for --log: give one, or leave it out');
  if (source === undefined) return undefined;
  const file = flags.get(source) as string;
  const traffic =
    source === 'log'
      ? await readLog(lists.get('log') ?? [], {
          methods,
          host,
          formats: given.flatMap(({ source: one }) =>
            one.kind === 'config' ? (one.config.logFormats ?? []) : [],
          ),
          pace: readPace({ flags, read }),
        })
      : source === 'har'
        ? readHar(file, methods, host)
        : readTargets(file);
  return { ...traffic, flag: `--${source}` };
}

const usualPaceSeconds = { full: 10, quick: 2 };
const fastestPace = 1000;

function readPace({ flags, read }: Pick<Words, 'flags' | 'read'>): Pace | undefined {
  return read('pace', (flag, text) => {
    const factor = text === 'as-logged' ? 1 : Number(/^(\d+(?:\.\d+)?)x$/.exec(text)?.[1]);
    if (!(factor > 0 && factor <= fastestPace))
      throw usageError(`${flag} ${text}: give as-logged, or how many times as fast, such as 10x`);
    const other = ['rates', 'within'].find((one) => flags.has(one));
    if (other !== undefined)
      throw usageError(`${flag} and --${other}: each says when requests are made: leave one out`);
    return {
      factor,
      seconds:
        read('duration', (name, given) => seconds(name, given, 0.1)) ??
        usualPaceSeconds[flags.has('quick') ? 'quick' : 'full'],
      arrivals: flags.get('arrivals') === 'poisson' ? 'poisson' : 'constant',
    };
  });
}

/** Reads what one request is made of. Throws UserError (exit code 2). */
function readRequest({ flags, lists }: Words): Asked['request'] {
  const [method, data, headers] = [flags.get('method'), flags.get('data'), lists.get('header')];
  if (method === undefined && data === undefined && headers === undefined) return undefined;
  if (method !== undefined && (!/^[A-Z]+$/.test(method) || method === 'CONNECT'))
    throw usageError(`--method ${method}: give a method such as POST`);
  const body = data?.startsWith('@') ? bodyOfFile('--data', data.slice(1)) : data;
  return {
    shown: [
      ...(method === undefined ? [] : [`--method ${method}`]),
      ...(headers ?? []).map((line) => `--header '${shownHeader(line)}'`),
      ...(data === undefined ? [] : ['--data …']),
    ].join(' '),
    of: (load) => {
      const { headers: own = {} } = asWords(
        () => headersOf('--header', headers ?? [], load.protocol),
        '',
      );
      const isOwn = (name: string): boolean =>
        Object.keys(own).some((one) => one.toLowerCase() === name.toLowerCase());
      const others = Object.entries(load.headers ?? {}).filter(([name]) => !isOwn(name));
      return present({
        method: method ?? (body === undefined ? undefined : 'POST'),
        body,
        headers: headers && { ...Object.fromEntries(others), ...own },
      });
    },
  };
}

/** Throws UserError (exit code 2). */
export async function readAsked(words: Words, given: readonly Given[]): Promise<Asked> {
  const { flags, lists, read } = words;
  const status = read('status', (flag, text) =>
    Number(ofForm(flag, text, /^[2-5]\d\d$/, 'give a status from 200 to 599, such as 404')),
  );
  const names = given.map(({ name }) => name);
  if (
    flags.has('in') &&
    !given.some(({ source }) => source.kind === 'config' && source.config.within)
  )
    throw usageError('--in is for a file of nginx without http { }, and no side is one');
  return {
    ...present({
      url: flags.get('url'),
      urls: read('urls', readPageList),
      traffic: await readTraffic(words, given),
      acceptsDifferences: flags.has('accept-differences') || undefined,
      request: readRequest(words),
      status,
    }),
    load: ofSides('--load', lists.get('load') ?? [], names),
  };
}

export interface Launch {
  port?: number;
  binary?: string;
  upstreams?: Readonly<Record<string, string>>;
}

export type LaunchOf = (name: string) => Launch;

/** Throws UserError (exit code 2). */
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
  const upstreams = readUpstreams(lists.get('upstream') ?? []);
  if (upstreams && having(({ kind }) => kind === 'config').length === 0)
    throw usageError('--upstream is for a config, and no side is one');
  return (name) => {
    const source = given.find((side) => side.name === name)?.source;
    const port = source?.kind === 'command' ? ports(name) : undefined;
    const binary =
      source?.kind === 'config' ? binaries.get(source.config.server)?.(name) : undefined;
    return present({
      port: port === undefined ? undefined : wholeNumber('--port', port, 65_535),
      binary: binary === undefined ? undefined : fromCallersFolder(binary),
      upstreams: source?.kind === 'config' ? upstreams : undefined,
    });
  };
}

function readUpstreams(values: readonly string[]): Record<string, string> | undefined {
  const pairs = values.map((value) => {
    const [, name = '', to = ''] = /^(.+?)=(.+)$/.exec(value) ?? [];
    if (!isLoopback(/^(.+):\d+$/.exec(to)?.[1] ?? '') && readStub(to) === undefined)
      throw usageError(
        `--upstream ${value}: write app:9000=127.0.0.1:9000, or app:9000=stub:50ms:2KB for a stub`,
      );
    return [name.toLowerCase(), to] as const;
  });
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

/** The values of --bin for a server: `nginx=/a` gives `/a`, and `new:nginx=/a` gives `new=/a`. */
function binariesOf(server: string, values: readonly string[]): string[] {
  return values.flatMap((value) => {
    const [, name, called = '', file = ''] =
      /^(?:([a-z0-9-]+):)?([a-z0-9]+)=(.+)$/s.exec(value) ?? [];
    if (!serverNames.some((one) => one === called))
      throw usageError(
        `--bin ${value}: write ${serverNames.join('=PATH, ')}=PATH, or NAME:nginx=PATH for one side`,
      );
    return called === server ? [name === undefined ? file : `${name}=${file}`] : [];
  });
}

/** Decides page, address and load of each side. Throws UserError (exit code 2) for words that do not fit. */
export function sidesOf(
  given: readonly Given[],
  asked: Asked,
  cores: Pick<Cores, 'generatorCpus' | 'generatorHosts'>,
): Side[] {
  const paths = given.flatMap(({ source }) =>
    source.kind === 'address' && source.url.path !== '/' ? [source.url.path] : [],
  );
  // The path of the only address that has a path is meant for all.
  const usualPath = new Set(paths).size === 1 ? (paths[0] as string) : '/';
  const wished = given.map((side) => {
    const text = asked.load(side.name);
    const line = text === undefined ? undefined : asLoad(() => readLoadLine(text));
    const wish = wishFor(side, asked, usualPath, line);
    return { side: { ...side, listen: listenOf(side, wish) }, line, wish };
  });
  const streams = wished.every(({ side }) => prefersHttp2(side)) ? 10 : 1;
  const threads = Math.min(generatorCores(cores), 100);
  return wished.map(({ side, line, wish: { path, host, requests } }): Side => {
    const usual = prefersHttp2(side)
      ? `h2load -c 100 -m ${streams} -t ${threads} -D 10`
      : `wrk -c 100 -t ${threads} -d 10`;
    return {
      ...side,
      page: { path, ...present({ host, requests, status: asked.status }) },
      load: asAsked(loadFor(side, line ?? readLoadLine(usual)), asked),
      ...present({ acceptsDifferences: asked.acceptsDifferences }),
    };
  });
}

/** The load with the request's own flags, and with the times of a log. Throws UserError (exit code 2) if they do not fit. */
function asAsked(load: LoadProfile, { request, traffic }: Asked): LoadProfile {
  const command = request === undefined ? load.command : `${load.command} ${request.shown}`;
  const made = { ...load, ...request?.of(load), command };
  const { replaySeconds } = traffic ?? {};
  if (traffic === undefined || replaySeconds === undefined) return made;
  if (load.rate !== undefined)
    throw usageError(`--pace and ${load.command}: each says when requests are made: leave one out`);
  const { durationSeconds: _, ...rest } = made;
  const requests = total(traffic.requests, ({ weight = 1 }) => weight);
  return { ...rest, arrivals: 'logged', requests, rate: requests / replaySeconds };
}

type Wish = Partial<UrlParts> & Pick<PageList, 'requests'> & { path: string; flag: string };

function wishFor(
  { given, source }: Given,
  { url, urls, traffic }: Asked,
  usualPath: string,
  line: LoadLine | undefined,
): Wish {
  const wishes: Wish[] = [
    ...(url === undefined ? [] : [{ flag: '--url', ...pathOrUrl(url, '--url') }]),
    ...(urls === undefined
      ? []
      : [{ flag: '--urls', ...urls.url, ...present({ requests: urls.requests }) }]),
    ...(traffic === undefined
      ? []
      : [
          {
            flag: traffic.flag,
            path: (traffic.requests[0] as LoadRequest).target,
            requests: traffic.requests,
            ...present({ host: traffic.host }),
          },
        ]),
    ...(line?.url === undefined ? [] : [{ flag: '--load', ...line.url }]),
  ];
  if (wishes.length > 1)
    throw usageError(
      `${wishes.map(({ flag }) => (flag === '--load' ? 'the URL in --load' : flag)).join(' and ')}: leave one of them out`,
    );
  const wish = wishes[0] ?? { flag: '--load', path: usualPath };
  const host = (line && asLoad(() => line.over()))?.host ?? wish.host;
  if (source.kind !== 'address') return { ...wish, ...present({ host }) };
  const own = source.url;
  if (own.path !== '/' && wishes.length > 0)
    throw usageError(
      `${wish.flag} and the path of ${given}, ${shownUrl(own.path)}: leave one of them out`,
    );
  return {
    ...wish,
    path: own.path === '/' ? wish.path : own.path,
    ...present({ host: host ?? own.host }),
  };
}

const asLoad = <T>(read: () => T): T => asWords(read, '--load: ');

/** Chooses the only address, or the one that the URL's scheme and port name. */
function listenOf({ given, source }: Given, { scheme, port, flag }: Wish): Listen {
  // Commands and addresses show when they are started.
  const unknown = { http2: true, hosts: [] };
  if (source.kind === 'command') return { ...unknown, port: 0, tls: scheme === 'https' };
  const says = `${flag} says ${port === undefined ? '' : `port ${port} over `}${scheme}`;
  if (source.kind === 'address') {
    const { scheme: own, port: there } = source.url;
    if ((scheme ?? own) !== own || (port ?? there) !== there)
      throw usageError(`${says}, and ${given} is ${source.origin}: write that, or a path alone`);
    return { ...unknown, port: there, tls: own === 'https' };
  }
  const { listens } = source.config;
  const [first] = listens;
  if (first === undefined)
    throw new UserError(`${given} listens on no TCP port: there is nothing to load`);
  const fitting = listens.filter(({ tls }) => tls === (scheme === 'https') || scheme === undefined);
  const wanted = port ?? (scheme && defaultPort[scheme]);
  // The server is started at another address anyway, so the number of an only port does not matter.
  const found =
    listens.length === 1 || (port === undefined && scheme !== undefined && fitting.length === 1)
      ? fitting[0]
      : fitting.find((listen) => listen.port === wanted);
  if (found !== undefined) return found;
  const all = listens.map(({ port, tls }) => `${port}${tls ? ' (TLS)' : ''}`).join(', ');
  // A port without TLS mostly redirects to the other.
  const example = fitting.find(({ tls }) => tls) ?? fitting[0] ?? first;
  throw usageError(
    `${scheme === undefined ? '' : `${says}, and `}${given} listens on the ${listens.length === 1 ? 'port' : 'ports'} ${all}: say which to load, such as --url ${example.tls ? 'https' : 'http'}://localhost:${example.port}/`,
  );
}

/** Whether browsers would speak HTTP/2 with it: without TLS they prefer HTTP/1.1. */
function prefersHttp2({ listen, source }: Pick<Side, 'listen' | 'source'>): boolean {
  return source.kind === 'config' && listen.http2 && (listen.tls || listen.http2Only === true);
}

/** The load of a command line. Throws UserError if the config does not speak its protocol. */
function loadFor(
  { given, listen: { port, tls, http2, http2Only } }: Pick<Side, 'given' | 'listen'>,
  line: LoadLine,
): LoadProfile {
  const { load } = asLoad(() => line.over(tls ? 'https' : 'http'));
  const why = !isHttp2(load.protocol)
    ? http2Only && `speaks HTTP/2 only on port ${port}: take h2load`
    : !http2 && `does not speak HTTP/2 on port ${port}: take wrk, or h2load --h1`;
  if (why)
    throw usageError(
      `--load: ${load.command} is ${protocolNames(load.protocol)}, and ${given} ${why}`,
    );
  return load;
}

export function serverOf(
  { source, listen }: Pick<Side, 'source' | 'listen'>,
  { port, binary, upstreams }: Launch,
): ServerSpec {
  if (source.kind === 'address') return { name: 'address', origin: source.origin };
  if (source.kind === 'command') {
    return {
      name: 'command',
      command: source.command,
      folder: fromCallersFolder('.'),
      ...present({ port, tls: listen.tls || undefined }),
    };
  }
  const { server, file, workers, listens, within } = source.config;
  return {
    name: server,
    config: [file],
    workers,
    asIs: present({ port: listens.length > 1 ? listen.port : undefined, within, upstreams }),
    ...present({ binary }),
  };
}
