// Lays a knob's lines over a user's nginx config, so that they hold for the loaded page.
import path from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { UserError } from '../../errors.ts';
import type { Overlay } from '../../scenario/model.ts';
import {
  asWritten,
  bareWord,
  findDirectives,
  parseConfig,
  readNginxConfig,
  type Directive,
} from '../nginx-config.ts';
import {
  overlayOrigin,
  type Facts,
  type PageAt,
  type ReadConfig,
  type Setting,
  type View,
} from './changes.ts';
import { readText } from '../config-files.ts';
import {
  blocksIn,
  hostOf,
  insideHttp,
  listensOf,
  nginxListens,
  nginxWorkers,
  parseAddress,
} from './nginx-listens.ts';

/**
 * Reads a file. With `within` it is read inside that config's http block: in place of the config's sites, and with names relative to the
 * config's folder.
 */
export async function readInPlace(file: string, within?: string): Promise<Directive[]> {
  const whole = within ?? file;
  const main = await readNginxConfig({ file: whole, text: await readText(whole) });
  if (within === undefined) return main;
  const site = await readNginxConfig({ file, text: await readText(file) }, path.dirname(within));
  const fileOf = ({ origin }: Directive) => origin.replace(/:\d+$/, '');
  return main.map((directive) => {
    if (directive.name !== 'http') return directive;
    const sites = new Set(blocksIn(directive.block ?? [], 'server').map(fileOf));
    sites.delete(within);
    const others = (directive.block ?? []).filter(
      (line) => line.name !== 'server' && !sites.has(fileOf(line)),
    );
    return { ...directive, block: [...others, ...site] };
  });
}

/** Reads a user's config. Throws UserError with file and line. @param within as in readInPlace */
export async function readNginx(file: string, within?: string): Promise<ReadConfig> {
  const config = await readInPlace(file, within);
  const viewOf = (directives: readonly Directive[]): View => ({
    workers: nginxWorkers(directives),
    settings: settingsOf(directives, file),
  });
  const formatOf = ({ args: [, ...quoted] }: Directive) => {
    const texts = quoted.map(bareWord);
    return texts.filter((text) => !text.startsWith('escape=')).join('');
  };
  return {
    ...viewOf(config),
    listens: nginxListens(config, file),
    logFormats: findDirectives(config, 'log_format').map(formatOf),
    facts: (page) => factsOf(config, page),
    overlay: (overlays, page) => viewOf(overlayNginx(config, overlays, page)),
  };
}

/** Returns the config with the lines added, unless it has them already. Throws UserError for an unknown context. */
export function overlayNginx(
  config: readonly Directive[],
  overlays: readonly Overlay[],
  page: PageAt,
): Directive[] {
  let tree = [...config];
  for (const { context, lines: text } of overlays)
    for (const line of parseConfig({ file: overlayOrigin, origin: overlayOrigin, text }))
      tree = overlayLine(tree, context, line, page);
  return tree;
}

function overlayLine(
  tree: readonly Directive[],
  context: string,
  line: Directive,
  page: PageAt,
): Directive[] {
  const inBlocks = (wanted: string, change: (block: Directive[]) => Directive[]) =>
    tree.map((directive) => {
      if (directive.name !== wanted || directive.block === undefined) return directive;
      return { ...directive, block: change(directive.block) };
    });
  switch (context) {
    case 'main':
      return setIn(tree, line, page, true);
    case 'events':
      return inBlocks('events', (block) => setIn(block, line, page, true));
    case 'http':
      return inBlocks('http', (block) => setInHttp(block, line, page));
    case 'server':
      return inBlocks('http', (block) => setListens(block, line.args.slice(1), page));
  }
  throw new UserError(
    `nginx configs have no context "${context}" that lines can be laid over: it is main, events, http or server`,
  );
}

/** Sets a line in this block alone. "..." stands for the arguments that the config has. @param puts adds the line if the block lacks it */
function setIn(
  block: readonly Directive[],
  line: Directive,
  page: PageAt,
  puts: boolean,
): Directive[] {
  const isExtension = line.args[0] === '...';
  const standing = block.filter(
    (directive) => directive.name === line.name && directive.block === undefined,
  );
  const [first, ...others] = standing;
  if (first === undefined) return puts && !isExtension ? [...block, line] : [...block];
  if (isExtension)
    return block.map((directive) => {
      if (!standing.includes(directive) || !canExtend(directive)) return directive;
      return { ...directive, args: joined(withFormat(directive), line.args.slice(1)) };
    });
  if (others.length === 0 && meaning(first, page) === meaning(line, page)) return [...block];
  const changed: Directive[] = [];
  for (const directive of block)
    if (directive === first) changed.push({ ...directive, args: line.args });
    else if (!others.includes(directive)) changed.push(directive);
  return changed;
}

/** Further arguments of an access_log come after the name of its format. */
function withFormat({ name, args }: Directive): readonly string[] {
  return name === 'access_log' && args.length === 1 ? [...args, 'combined'] : args;
}

/** nginx does not buffer a log with variables in its name, or a remote log. */
function canExtend(line: Directive): boolean {
  const isFixed = line.name === 'access_log' && /\$|^syslog:/.test(bareWord(line.args[0] ?? ''));
  return !isOff(line) && !isFixed;
}

function isOff({ args: [first = ''] }: Directive): boolean {
  return bareWord(first) === 'off' || bareWord(first) === '/dev/null';
}

function meaning({ name, args }: Directive, { cores }: PageAt): string {
  const words = args.map(bareWord);
  const isAuto = name === 'worker_processes' && words[0] === 'auto';
  return JSON.stringify(isAuto ? [String(cores)] : words);
}

/** A word with = replaces the word of the same name. */
function joined(standing: readonly string[], words: readonly string[]): string[] {
  const nameOf = (word: string) => bareWord(word).replace(/=.*/s, '');
  if (words.every((word) => standing.includes(word))) return [...standing];
  const others = standing.filter((old) => !words.some((word) => nameOf(word) === nameOf(old)));
  return [...others, ...words];
}

function setInHttp(http: readonly Directive[], line: Directive, page: PageAt): Directive[] {
  const setInside = (block: readonly Directive[], paths: Paths): Directive[] => {
    const deeper = block.map((directive) => {
      if (!mayServe(directive, paths, page)) return directive;
      return { ...directive, block: setInside(directive.block ?? [], paths) };
    });
    return setIn(deeper, line, page, false);
  };
  const shared = fileLinesOf(http);
  const servers = new Set(http.filter((server) => servesPage(server, page)));
  const isCovered =
    servers.size > 0 &&
    [...servers].every(({ block = [] }) => block.some(({ name }) => name === line.name));
  const inside = http.map((server) => {
    if (!servers.has(server)) return server;
    return { ...server, block: setInside(server.block ?? [], pathsOf(server, shared, page)) };
  });
  return setIn(inside, line, page, !isCovered);
}

function servesPage(server: Directive, { port }: PageAt): boolean {
  const isServer = server.name === 'server' && server.block !== undefined;
  return isServer && listensOf(server).some((listen) => hasPort(listen, port));
}

function hasPort(listen: Directive, port: number): boolean {
  const address = parseAddress(listen);
  return 'port' in address && address.port === port;
}

/** The lines of a block that name the files of a path. They are found once, since a config may have thousands of servers. */
function fileLinesOf(http: readonly Directive[]): Directive[] {
  return http.filter(({ name }) => name === 'index' || name === 'try_files');
}

/** The paths by which requests for the page reach locations. undefined: any path, since the config rewrites them. */
type Paths = readonly string[] | undefined;

/** @param shared the result of fileLinesOf for the server's http block */
function pathsOf(
  { block = [] }: Directive,
  shared: readonly Directive[],
  { paths }: PageAt,
): Paths {
  if (findDirectives(block, 'rewrite').length > 0) return undefined;
  const wordsOf = (name: string) => {
    const lines = [...shared.filter((line) => line.name === name), ...findDirectives(block, name)];
    return lines.flatMap(({ args }) => args.map(bareWord));
  };
  const withoutQuery = (url: string) => url.replace(/\?.*/s, '');
  const asked = paths.map(withoutQuery);
  const reached = [...asked];
  for (const path of asked)
    if (path.endsWith('/'))
      for (const name of ['index.html', ...wordsOf('index')]) reached.push(path + name);
  for (const word of wordsOf('try_files'))
    if (word.startsWith('/')) reached.push(withoutQuery(word));
  return reached;
}

function mayServe({ name, args, block }: Directive, paths: Paths, page: PageAt): boolean {
  if (block === undefined || !['location', 'if', 'limit_except'].includes(name)) return false;
  if (name !== 'location' || paths === undefined) return true;
  const [first = '', second = ''] = args.map(bareWord);
  if (first.startsWith('@')) return true;
  if (first === '=') return paths.includes(second);
  if (first !== '~' && first !== '~*')
    return paths.some((path) => path.startsWith(first === '^~' ? second : first));
  const matches = matchers.get(page) ?? newMatcher();
  matchers.set(page, matches);
  return matches(second, first === '~*' ? 'i' : '', paths);
}

/** Whether one of the paths matches an expression, or may match it. */
type Matcher = (source: string, flags: string, paths: readonly string[]) => boolean;

const matchers = new WeakMap<PageAt, Matcher>();

/** The limit for all expressions of a config together. The run answers no signal meanwhile. */
const mostMatchingMs = 500;

/** Matches all paths at once: each start of a script with a timeout takes longer than a thousand paths. */
const matchEach =
  '((expression) => paths.map((path) => expression.test(path)))(new RegExp(source, flags))';

function newMatcher(): Matcher {
  // Nothing else ends an expression that backtracks.
  const context = createContext();
  const known = new Map<string, Map<string, boolean>>();
  let leftMs = mostMatchingMs;
  const ask = (source: string, flags: string, paths: readonly string[]): boolean[] => {
    const beganAtMs = performance.now();
    try {
      Object.assign(context, { source, flags, paths });
      return runInContext(matchEach, context, { timeout: Math.ceil(leftMs) });
    } catch {
      return []; // PCRE has a larger grammar, and a limit for expressions that take for ever.
    } finally {
      leftMs -= performance.now() - beganAtMs;
    }
  };
  return (source, flags, paths) => {
    const key = JSON.stringify([source, flags]);
    const answers = known.get(key) ?? new Map<string, boolean>();
    known.set(key, answers);
    const open = paths.filter((path) => !answers.has(path));
    const asked = open.length > 0 && leftMs > 0 ? ask(source, flags, open) : [];
    for (const [place, path] of open.entries()) answers.set(path, asked[place] ?? true);
    return paths.some((path) => answers.get(path));
  };
}

/** Words of a listen line that nginx accepts only once for each address. */
const socketWord = /^(?:backlog|reuseport|deferred|fastopen|rcvbuf|sndbuf|so_keepalive|bind)\b/;

/** Adds words to one listen line of each address: to the one with such words, or else the first. */
function setListens(
  http: readonly Directive[],
  words: readonly string[],
  page: PageAt,
): Directive[] {
  const countOf = ({ args }: Directive) =>
    args.filter((word) => socketWord.test(bareWord(word))).length;
  const chosen = new Map<string, Directive>();
  for (const server of http) {
    if (!servesPage(server, page)) continue;
    for (const listen of listensOf(server)) {
      if (!hasPort(listen, page.port)) continue;
      const host = hostOf(parseAddress(listen));
      const before = chosen.get(host);
      if (before === undefined || countOf(listen) > countOf(before)) chosen.set(host, listen);
    }
  }
  const lines = new Set(chosen.values());
  return http.map((server) => {
    const { name, block } = server;
    if (block === undefined || name !== 'server') return server;
    const add = (listen: Directive) => ({ ...listen, args: joined(listen.args, words) });
    const [byItself] = block.some((line) => line.name === 'listen') ? [] : listensOf(server);
    if (byItself !== undefined && hasPort(byItself, page.port))
      return { ...server, block: [...block, { ...add(byItself), origin: overlayOrigin }] };
    return { ...server, block: block.map((line) => (lines.has(line) ? add(line) : line)) };
  });
}

/** The lines in the blocks that may serve the page. */
export function servingLines(config: readonly Directive[], page: PageAt): Directive[] {
  const http = insideHttp(config);
  const shared = fileLinesOf(http);
  const servers = http.filter((server) => servesPage(server, page));
  return servers.flatMap((server) =>
    inside(server.block ?? [], pathsOf(server, shared, page), page),
  );
}

/**
 * Returns the lines of a limit, such as limit_req, that apply where the page may be served. A block of nginx inherits such lines only if it
 * has none of its own.
 */
export function turnAwayLines(
  config: readonly Directive[],
  name: string,
  page: PageAt,
): ReadonlySet<Directive> {
  const holding = new Set<Directive>();
  const look = (block: readonly Directive[], paths: Paths, outer: readonly Directive[]) => {
    const ownLines = block.filter((line) => line.name === name);
    const lines = ownLines.length > 0 ? ownLines : outer;
    const locations = blocksIn(block, 'location').filter((location) =>
      mayServe(location, paths, page),
    );
    const byPath = locations.filter(({ args: [first = ''] }) => !bareWord(first).startsWith('@'));
    const isDeeper = (path: string) => byPath.some((location) => mayServe(location, [path], page));
    if (paths === undefined || !paths.every(isDeeper)) lines.forEach((line) => holding.add(line));
    for (const { block: inner = [] } of locations) look(inner, paths, lines);
  };
  const http = insideHttp(config);
  const shared = fileLinesOf(http);
  const outer = http.filter((line) => line.name === name);
  for (const server of http)
    if (servesPage(server, page)) look(server.block ?? [], pathsOf(server, shared, page), outer);
  return holding;
}

function factsOf(config: readonly Directive[], page: PageAt): Facts {
  const http = insideHttp(config);
  const serving = servingLines(config, page);
  const logs = [...http, ...serving].filter(
    ({ name, block }) => name === 'access_log' && block === undefined,
  );
  return {
    proxied: serving.some(({ name }) => name.endsWith('_pass')),
    logs: logs.length === 0 || !logs.every(isOff),
    logLine: logs.some(canExtend),
  };
}

function inside(block: readonly Directive[], paths: Paths, page: PageAt): Directive[] {
  return block.flatMap((directive) =>
    mayServe(directive, paths, page) ? inside(directive.block ?? [], paths, page) : [directive],
  );
}

/** @param block the heading for lines outside the config's blocks */
function settingsOf(config: readonly Directive[], block: string): Setting[] {
  return config.flatMap((directive) => {
    const { name, origin: place } = directive;
    if (directive.block !== undefined)
      return settingsOf(directive.block, `${asWritten(directive)} { } at ${place}`);
    return { block, name, text: `${asWritten(directive)};`, place };
  });
}
