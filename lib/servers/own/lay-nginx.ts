// Lays a knob's lines over a person's nginx config, so that they hold for the loaded page.
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import {
  asWritten,
  bareWord,
  findDirectives,
  parseConfig,
  readNginxConfig,
  type Directive,
} from '../nginx-config.ts';
import {
  changesBetween,
  laidOrigin,
  type Facts,
  type PageAt,
  type ReadConfig,
  type Setting,
} from './changes.ts';
import { placeOf, readText } from './files.ts';
import {
  hostOf,
  insideOf,
  isQuic,
  listensOf,
  nginxListens,
  nginxWorkers,
  parseAddress,
} from './nginx-listens.ts';

/** Reads a user's config. Throws UserError with file and line. */
export async function readNginx(file: string): Promise<ReadConfig> {
  const config = await readNginxConfig(file, await readText(file));
  return {
    workers: nginxWorkers(config),
    listens: nginxListens(config, file),
    facts: (page) => factsOf(config, page),
    lay: (laid, page) => {
      const after = layNginx(config, laid, page);
      const changes = changesBetween(settingsOf(config, file), settingsOf(after, file));
      return { changes, workers: nginxWorkers(after) };
    },
  };
}

/** Returns the config with the lines, unless it has them already. Throws UserError for an unknown context. */
export function layNginx(
  config: readonly Directive[],
  laid: readonly LaidLines[],
  page: PageAt,
): Directive[] {
  return laid.reduce<Directive[]>(
    (tree, { context, lines }) =>
      parseConfig({ origin: laidOrigin, text: lines }).reduce(
        (one, line) => layLine(one, context, line, page),
        tree,
      ),
    [...config],
  );
}

function layLine(
  tree: readonly Directive[],
  context: string,
  line: Directive,
  page: PageAt,
): Directive[] {
  switch (context) {
    case 'main':
      return setIn(tree, line, page, true);
    case 'events':
      return inBlocks(tree, 'events', (block) => setIn(block, line, page, true));
    case 'http':
      return inBlocks(tree, 'http', (block) => setInHttp(block, line, page));
    case 'server':
      return inBlocks(tree, 'http', (block) => setListens(block, line.args.slice(1), page));
    default:
      throw new UserError(
        `nginx configs have no context "${context}" that lines can be laid over: it is main, events, http or server`,
      );
  }
}

function inBlocks(
  tree: readonly Directive[],
  name: string,
  change: (block: Directive[]) => Directive[],
): Directive[] {
  return tree.map((one) =>
    one.name === name && one.block !== undefined ? { ...one, block: change(one.block) } : one,
  );
}

/** "..." stands for the words that are there. */
function keepsWords(line: Directive): boolean {
  return line.args[0] === '...';
}

/** Sets a line in this block alone. `puts`: adds the line if the block has none of its name. */
function setIn(
  block: readonly Directive[],
  line: Directive,
  page: PageAt,
  puts: boolean,
): Directive[] {
  const standing = block.filter((one) => one.name === line.name && one.block === undefined);
  const [first] = standing;
  if (first === undefined) return puts && !keepsWords(line) ? [...block, line] : [...block];
  if (keepsWords(line))
    return block.map((one) =>
      standing.includes(one) && takesWords(one)
        ? { ...one, args: joined(withFormat(one), line.args.slice(1)) }
        : one,
    );
  if (standing.length === 1 && meaning(first, page) === meaning(line, page)) return [...block];
  return block.flatMap((one) =>
    !standing.includes(one) ? [one] : one === first ? [{ ...one, args: line.args }] : [],
  );
}

/** Further words of an access_log come after the name of its format. */
function withFormat({ name, args }: Directive): readonly string[] {
  return name === 'access_log' && args.length === 1 ? [...args, 'combined'] : args;
}

/** nginx does not buffer a log with variables in its name, or one that is sent away. */
function takesWords(line: Directive): boolean {
  return (
    !isOff(line) &&
    !(line.name === 'access_log' && /\$|^syslog:/.test(bareWord(line.args[0] ?? '')))
  );
}

function isOff({ args: [first = ''] }: Directive): boolean {
  return bareWord(first) === 'off' || bareWord(first) === '/dev/null';
}

function meaning({ name, args }: Directive, { cores }: PageAt): string {
  return JSON.stringify(
    args.map((arg) =>
      name === 'worker_processes' && bareWord(arg) === 'auto' ? String(cores) : bareWord(arg),
    ),
  );
}

/** A word with = replaces the one of the same name. */
function joined(standing: readonly string[], words: readonly string[]): string[] {
  const nameOf = (word: string): string => bareWord(word).split('=')[0] as string;
  const others = standing.filter((word) => !words.some((one) => nameOf(one) === nameOf(word)));
  const areThere =
    others.length + words.length === standing.length &&
    words.every((word) => standing.includes(word));
  return areThere ? [...standing] : [...others, ...words];
}

/** Sets a line in http, and in each block that may serve the page and says otherwise. */
function setInHttp(http: readonly Directive[], line: Directive, page: PageAt): Directive[] {
  const servers = http.filter((one) => servesPage(one, page));
  const isCovered =
    servers.length > 0 &&
    servers.every(({ block = [] }) => block.some(({ name }) => name === line.name));
  const inside = http.map((one) =>
    servers.includes(one)
      ? { ...one, block: setInside(one.block ?? [], line, page, pathsOf(one, http, page)) }
      : one,
  );
  return setIn(inside, line, page, !isCovered);
}

function setInside(
  block: readonly Directive[],
  line: Directive,
  page: PageAt,
  paths: readonly string[] | undefined,
): Directive[] {
  const deeper = block.map((one) =>
    mayServe(one, paths) ? { ...one, block: setInside(one.block ?? [], line, page, paths) } : one,
  );
  return setIn(deeper, line, page, false);
}

function servesPage({ name, block, ...rest }: Directive, { port }: Pick<PageAt, 'port'>): boolean {
  return (
    name === 'server' &&
    block !== undefined &&
    listensOf({ name, block, ...rest }).some((listen) => hasPort(listen, port))
  );
}

function hasPort(listen: Directive, port: number): boolean {
  const address = parseAddress(listen);
  return !isQuic(listen) && 'port' in address && address.port === port;
}

/** The paths of requests for the page that locations get; undefined: any, since the config rewrites them. */
function pathsOf(
  server: Directive,
  http: readonly Directive[],
  { paths }: PageAt,
): readonly string[] | undefined {
  if (findDirectives(server.block ?? [], 'rewrite').length > 0) return undefined;
  const asked = paths.map((path) => path.split('?')[0] as string);
  const words = (name: string): string[] =>
    [
      ...http.filter((one) => one.name === name),
      ...findDirectives(server.block ?? [], name),
    ].flatMap(({ args }) => args.map(bareWord));
  const names = ['index.html', ...words('index')];
  const index = asked
    .filter((path) => path.endsWith('/'))
    .flatMap((folder) => names.map((name) => folder + name));
  return [
    ...asked,
    ...index,
    ...words('try_files')
      .filter((word) => word.startsWith('/'))
      .map((word) => word.split('?')[0] as string),
  ];
}

function mayServe({ name, args, block }: Directive, paths: readonly string[] | undefined): boolean {
  if (block === undefined || (name !== 'location' && name !== 'if' && name !== 'limit_except'))
    return false;
  if (name !== 'location' || paths === undefined) return true;
  const [first = '', second = ''] = args.map(bareWord);
  if (first.startsWith('@')) return true;
  if (first === '=') return paths.includes(second);
  if (first !== '~' && first !== '~*')
    return paths.some((path) => path.startsWith(first === '^~' ? second : first));
  try {
    const pattern = new RegExp(second, first === '~*' ? 'i' : '');
    return paths.some((path) => pattern.test(path));
  } catch {
    return true; // PCRE's grammar has more than this one.
  }
}

/** Sets words of a listen line once for each address: on the line with most words of its own. */
function setListens(
  http: readonly Directive[],
  words: readonly string[],
  { port }: PageAt,
): Directive[] {
  const lines = http
    .filter((one) => servesPage(one, { port }))
    .flatMap((server) => listensOf(server).filter((listen) => hasPort(listen, port)));
  const options = (listen: Directive): number =>
    listen.args.filter((word) =>
      /^(?:backlog|reuseport|deferred|fastopen|rcvbuf|sndbuf|so_keepalive|bind)\b/.test(
        bareWord(word),
      ),
    ).length;
  const addresses = new Set(lines.map(socketOf));
  const chosen = new Set(
    [...addresses].map(
      (address) =>
        lines
          .filter((listen) => socketOf(listen) === address)
          .sort((a, b) => options(b) - options(a))[0],
    ),
  );
  return http.map((server) => {
    if (server.block === undefined || server.name !== 'server') return server;
    const written = server.block.some(({ name }) => name === 'listen');
    const [byItself] = written ? [] : listensOf(server);
    if (byItself !== undefined && hasPort(byItself, port))
      return {
        ...server,
        block: [
          ...server.block,
          { ...byItself, origin: laidOrigin, args: joined(byItself.args, words) },
        ],
      };
    return {
      ...server,
      block: server.block.map((one) =>
        chosen.has(one) ? { ...one, args: joined(one.args, words) } : one,
      ),
    };
  });
}

/** Equal for different forms of one address: 80, *:80 and 0.0.0.0:80. */
function socketOf(listen: Directive): string {
  const address = parseAddress(listen);
  return JSON.stringify('port' in address ? [hostOf(address), address.port] : address);
}

function factsOf(config: readonly Directive[], page: PageAt): Facts {
  const http = insideOf(config, 'http');
  const serving = http
    .filter((one) => servesPage(one, page))
    .flatMap((server) => inside(server.block ?? [], pathsOf(server, http, page)));
  const logs = [...http, ...serving].filter(
    ({ name, block }) => name === 'access_log' && block === undefined,
  );
  return {
    proxied: serving.some(({ name }) => name.endsWith('_pass')),
    logs: logs.length === 0 || !logs.every(isOff),
    logLine: logs.some(takesWords),
  };
}

function inside(block: readonly Directive[], paths: readonly string[] | undefined): Directive[] {
  return block.flatMap((one) => (mayServe(one, paths) ? inside(one.block ?? [], paths) : [one]));
}

/** The lines of a config. @param block the heading for those that are in no block of it */
function settingsOf(config: readonly Directive[], block: string): Setting[] {
  return config.flatMap((one) =>
    one.block === undefined
      ? [{ block, name: one.name, text: `${asWritten(one)};`, place: placeOf(one) }]
      : settingsOf(one.block, `${asWritten(one)} { } at ${placeOf(one)}`),
  );
}
