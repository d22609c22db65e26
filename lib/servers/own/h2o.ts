// A user's own h2o config: made to run here, and with a knob's lines laid over it.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import { isLoopback } from '../ports.ts';
import type { AdoptPlace, AdoptedConfig } from '../server.ts';
import { type Facts, type Setting, laidOrigin } from './changes.ts';
import { ours, placeOf, readText } from './files.ts';
import {
  type Address,
  type Here,
  type Listen,
  type OwnConfig,
  adoptedHere,
  allowCode,
  beginHere,
  chooseListen,
  handOver,
  leaving,
  listensByPort,
  loadedToo,
  localTarget,
  noteMove,
  runLog,
  temporary,
} from './redirect.ts';
import {
  type MapTree,
  type Pair,
  type Text,
  type Tree,
  pairsIn,
  parseYaml,
  printYaml,
  readYaml,
  sameMeaning,
} from './yaml.ts';

/** ServerKind.adopt. */
export async function adoptH2o(file: string, place: AdoptPlace): Promise<AdoptedConfig> {
  const written = await readYaml(file, await readText(file));
  const { port, tls, hosts } = chooseListen({ file, listens: h2oListens(written) }, place.listen);
  const config = layH2o(written, place.laid);
  const workers = h2oWorkers(config);
  const asked = textOf(get(config, 'user'));
  const here = await beginHere(
    file,
    entriesOf(config).map(({ entry }) => entry.address),
    port,
    place,
    asked === undefined ? [] : [asked],
  );
  // h2o's own default is a thread for each core of the machine, allowed or not.
  const threads = workers === 'server-cores' ? [pairOf('num-threads', String(place.cores))] : [];
  if (workers === 'server-cores')
    here.said.push(`num-threads (all cores) → ${place.cores}, the number of server cores`);
  const changed = changeMap(config, '', here);
  if (pairsIn(config).some(isRelativePath))
    here.said.push(`relative paths begin at ${here.folder}, as if h2o were started there`);
  return {
    ...adoptedHere(
      file,
      printYaml({ ...changed, pairs: [...threads, ...changed.pairs] }),
      workers,
      here,
    ),
    tls,
    protocol: tls ? 'h2' : 'http/1.1',
    hosts,
    args: (configFile) => ['-c', configFile],
    workingFolder: here.folder,
  };
}

function get(tree: Tree | undefined, wanted: string): Tree | undefined {
  return tree?.kind === 'map' ? tree.pairs.findLast(({ key }) => key === wanted)?.value : undefined;
}

/** All values of a name, in any case: h2o takes the first. */
function told(tree: Tree, wanted: string): Tree[] {
  return tree.kind === 'map'
    ? tree.pairs.filter(({ key }) => key.toLowerCase() === wanted).map(({ value }) => value)
    : [];
}

function argument(tree: Tree, wanted: string): Tree | undefined {
  return told(tree, wanted)[0];
}

/** '' for a value that is no text. */
function textsAt(tree: Tree, wanted: string): string[] {
  return told(tree, wanted).map((value) => textOf(value) ?? '');
}

function textOf(tree: Tree | undefined): string | undefined {
  return tree?.kind === 'text' ? tree.text : undefined;
}

function pairOf(key: string, text: string): Pair {
  return { key, origin: ours, value: { kind: 'text', text, origin: ours } };
}

/** FILE:LINE, with the command. */
function commandAt(key: string, tree: Tree): string {
  return `${placeOf(tree)}: ${key}`;
}

export function h2oWorkers(config: MapTree): OwnConfig['workers'] {
  const threads = get(config, 'num-threads');
  if (threads === undefined) return 'server-cores';
  // Newer ones take the numbers of cores too.
  const count = threads.kind === 'list' ? threads.items.length : Number(textOf(threads));
  if (!Number.isSafeInteger(count) || count < 1)
    throw new UserError(`${commandAt('num-threads', threads)} is not a number of threads`);
  return count;
}

/** One value of `listen`. */
interface Entry {
  address: Address;
  tls: boolean;
  isQuic: boolean;
}

function entryOf(tree: Tree): Entry {
  const word = textOf(tree) ?? textOf(argument(tree, 'port')) ?? '';
  const type = textOf(argument(tree, 'type'));
  const host = textOf(argument(tree, 'host'));
  const about = { tls: argument(tree, 'ssl') !== undefined, isQuic: type === 'quic' };
  if (type === 'unix') return { address: { socket: word }, ...about };
  const port = /^\d+$/.test(word) ? Number(word) : 0;
  if (port < 1 || port > 65_535)
    throw new UserError(`${commandAt('listen', tree)}: "${word}" is no port`);
  return { address: { ports: [port], host }, ...about };
}

const each = (tree: Tree): Tree[] => (tree.kind === 'list' ? tree.items : [tree]);

/** All `listen` of the config and its hosts. `hosts`: those that each serves. */
function entriesOf(config: MapTree): { entry: Entry; hosts: string[] }[] {
  const hosts = get(config, 'hosts');
  const pairs = hosts?.kind === 'map' ? hosts.pairs : [];
  const of = (tree: Tree, names: string[]): { entry: Entry; hosts: string[] }[] =>
    (tree.kind === 'map' ? tree.pairs : [])
      .filter(({ key }) => key === 'listen')
      .flatMap(({ value }) => each(value).map((one) => ({ entry: entryOf(one), hosts: names })));
  return [
    ...of(
      config,
      pairs.map(({ key }) => key),
    ),
    ...pairs.flatMap(({ key, value }) => of(value, [key])),
  ].filter(({ entry }) => !entry.isQuic);
}

/** One per port. h2o takes HTTP/2 everywhere: with TLS by ALPN, without where the client begins with it. */
export function h2oListens(config: MapTree): Listen[] {
  return listensByPort(
    entriesOf(config).flatMap(({ entry: { address, tls }, hosts }) =>
      'ports' in address ? address.ports.map((port) => ({ port, tls, http2: true, hosts })) : [],
    ),
  );
}

/** Their values are data, not commands. */
const dataCommands = new Set(['setenv', 'file.mime.addtypes', 'file.mime.settypes', 'error-doc']);

function changeMap(map: MapTree, parent: string, here: Here): MapTree {
  const changed = map.pairs.flatMap((pair) => changePair(pair, parent, here));
  // Different addresses may have become one, which h2o takes twice only with different certificates.
  const pairs = changed.filter(
    ({ key, value }, index) =>
      key !== 'listen' ||
      changed.findIndex((one) => one.key === key && sameMeaning(one.value, value)) === index,
  );
  return { ...map, pairs };
}

function changeTree(tree: Tree, parent: string, here: Here): Tree {
  if (tree.kind === 'map') return changeMap(tree, parent, here);
  return tree.kind === 'list'
    ? { ...tree, items: tree.items.map((item) => changeTree(item, parent, here)) }
    : tree;
}

function changePair(pair: Pair, parent: string, here: Here): Pair[] {
  const { key, value } = pair;
  const { place, said } = here;
  const word = textOf(value);
  const instead = (value: Tree): Pair[] => [{ ...pair, value }];
  switch (key.toLowerCase()) {
    case 'listen': {
      if (parent !== '' && parent !== 'host') break;
      const items = each(value).flatMap((one) => changeListen(one, here));
      return value.kind === 'list' ? instead({ ...value, items }) : items.flatMap(instead);
    }
    case 'hosts':
      if (parent !== '' || value.kind !== 'map') break;
      return instead({
        ...value,
        pairs: value.pairs.map((host) => ({
          ...host,
          value: changeTree(host.value, 'host', here),
        })),
      });
    case 'user':
      if (parent !== '') break;
      if (place.user === undefined)
        said.push(`user ${word}: left out, since it takes root to become another one`);
      return [];
    case 'pid-file':
      said.push(`pid-file ${word}: left out`);
      return [];
    case 'error-log':
      // Without one it is h2o's standard error.
      said.push(`error-log ${word} → ${runLog}`);
      return [];
    case 'access-log':
      // A path, a mapping with one, or a list of these.
      return instead(changeTexts(value, ['path'], (log) => changeLog(log, here)));
    case 'proxy.reverse.url':
      // Newer ones take mappings.
      return instead(changeTexts(value, ['backends', 'url'], (url) => changeUrl(url, here)));
    case 'fastcgi.connect':
      return instead(changeConnect(value, here));
    case 'fastcgi.spawn':
      allowCode(key, placeOf(value), here);
      // h2o has no right to make it another user than itself.
      return instead(
        value.kind === 'map'
          ? { ...value, pairs: value.pairs.filter((one) => !/^user$/i.test(one.key)) }
          : value,
      );
    case 'mruby.handler':
    case 'mruby.handler-file':
    case 'mruby.handler_path':
    case 'crash-handler':
      allowCode(key, placeOf(value), here);
      break;
    case 'reproxy':
      if (!/^off$/i.test(word ?? ''))
        throw new UserError(
          `${commandAt(key, value)} may leave this machine, an answer's header says to where: take it out of a copy of the config`,
        );
      break;
    case 'redirect':
    case 'error-doc':
      requirePath(key, value);
      break;
    case 'memcached':
      requireLoopbackHost(key, value);
      break;
  }
  if (readAtStart.has(key) && word !== undefined) {
    const file = handOver(`${key} ${word}`, word, here);
    return file === path.resolve(here.folder, word)
      ? [pair]
      : instead({ kind: 'text', text: file, origin: value.origin });
  }
  return dataCommands.has(key) ? [pair] : instead(changeTree(value, key, here));
}

function changeListen(tree: Tree, here: Here): Tree[] {
  const { address, isQuic } = entryOf(tree);
  if (isQuic) {
    here.said.push(
      `listen ${textOf(argument(tree, 'port'))} of type quic: left out, HTTP/3 is not compared`,
    );
    return [];
  }
  const [port = 0] = 'ports' in address ? address.ports : [];
  const was =
    'socket' in address
      ? address.socket
      : [textOf(argument(tree, 'host')), port].filter((part) => part !== undefined).join(':');
  const to =
    'socket' in address
      ? (here.moved.sockets.get(address.socket) as string)
      : String(here.moved.ports.get(port));
  const host = here.moved.hostOf(Number(to));
  noteMove(here, `${'socket' in address ? 'unix' : host}:${to}`, was);
  const pairs = tree.kind === 'map' ? tree.pairs : [];
  if (/^on$/i.test(textOf(argument(tree, 'proxy-protocol')) ?? ''))
    here.said.push('proxy-protocol: left out, load generators do not speak it');
  const kept = pairs
    .filter(({ key }) => !['port', 'host', 'proxy-protocol'].includes(key.toLowerCase()))
    .map((pair) =>
      pair.key.toLowerCase() === 'ssl'
        ? { ...pair, value: changeTree(withoutOcsp(pair.value, here), 'ssl', here) }
        : pair,
    );
  const hosts = 'socket' in address ? [] : [pairOf('host', host)];
  return [{ kind: 'map', origin: tree.origin, pairs: [...hosts, pairOf('port', to), ...kept] }];
}

/** OCSP would ask other machines. */
function withoutOcsp(ssl: Tree, here: Here): Tree {
  if (ssl.kind !== 'map') return ssl;
  if (textOf(argument(ssl, 'ocsp-update-interval')) !== '0')
    here.said.push('ocsp-update-interval → 0, since it would ask another machine');
  return {
    ...ssl,
    pairs: [
      ...ssl.pairs.filter(({ key }) => !/^ocsp-update-(?:interval|cmd)$/i.test(key)),
      pairOf('ocsp-update-interval', '0'),
    ],
  };
}

/** Changes a text, all texts of a list, and those of mappings at these keys, in any case. */
function changeTexts(tree: Tree, keys: readonly string[], change: (word: Text) => Text): Tree {
  if (tree.kind === 'text') return change(tree);
  if (tree.kind === 'list')
    return { ...tree, items: tree.items.map((item) => changeTexts(item, keys, change)) };
  return {
    ...tree,
    pairs: tree.pairs.map((pair) =>
      keys.includes(pair.key.toLowerCase())
        ? { ...pair, value: changeTexts(pair.value, keys, change) }
        : pair,
    ),
  };
}

function changeLog(log: Text, here: Here): Text {
  if (log.text === '/dev/null') return log;
  here.said.push(`access-log ${log.text} → ${temporary}`);
  return { ...log, text: here.logFor(log.text, 'access.log') };
}

function changeUrl(url: Text, here: Here): Text {
  // Sockets are [unix:PATH] here.
  const target = url.text.replace(/\[unix:([^\]]+)\]/, 'unix:$1:');
  const text = localTarget(target, `proxy.reverse.url ${url.text}`, placeOf(url), here);
  return text === target ? url : { ...url, text: text.replace(/unix:([^:]+):/, '[unix:$1]') };
}

function changeConnect(tree: Tree, { moved, said, upstreams }: Here): Tree {
  const port = textOf(tree) ?? textOf(argument(tree, 'port')) ?? '';
  const isSocket = textOf(argument(tree, 'type')) === 'unix';
  if (!isSocket) requireLoopbackHost('fastcgi.connect', tree);
  const movedTo = isSocket ? moved.sockets.get(port) : undefined;
  if (movedTo === undefined) {
    said.push(loadedToo(`fastcgi.connect ${port}`));
    upstreams.push(isSocket ? { socket: port } : { port: Number(port) });
  }
  return movedTo === undefined
    ? tree
    : changeTexts(tree, ['port'], (word) => ({ ...word, text: movedTo }));
}

/** Throws UserError when a backend, whose host h2o takes to be 127.0.0.1 where it has none, is not on this machine. */
function requireLoopbackHost(command: string, tree: Tree): void {
  const other = textsAt(tree, 'host').find((host) => !isLoopback(host));
  if (other !== undefined)
    throw new UserError(`${commandAt(`${command} ${other}`, tree)} ${leaving}`);
}

/** A URL that h2o itself fetches has to be a path of its own. Other redirects are the client's to follow. */
function requirePath(command: string, tree: Tree): void {
  for (const one of each(tree)) {
    const isFetched =
      command === 'error-doc' || textsAt(one, 'internal').some((word) => !/^no$/i.test(word));
    const other = isFetched
      ? textsAt(one, 'url').find((url) => /^\w+:|^\/\//.test(url))
      : undefined;
    if (other !== undefined)
      throw new UserError(
        `${commandAt(`${command} ${other}`, one)} may leave this machine: give a path of the same server, or take it out of a copy of the config`,
      );
  }
}

/** Read at h2o's start only: these files may be closed to others. */
const readAtStart = new Set([
  'certificate-file',
  'key-file',
  'dh-file',
  'client-ca-file',
  'proxy.ssl.cafile',
]);

const pathCommands = new Set([
  'file.dir',
  'file.file',
  'certificate-file',
  'key-file',
  'dh-file',
  'mruby.handler-file',
  'mruby.handler_path',
  'proxy.ssl.cafile',
]);

function isRelativePath({ key, value }: Pair): boolean {
  return pathCommands.has(key) && value.kind === 'text' && !value.text.startsWith('/');
}

/** Returns the config with the keys. Throws UserError for an unknown context. */
export function layH2o(config: MapTree, laid: readonly LaidLines[]): MapTree {
  return laid.reduce(
    (tree, { context, lines }) =>
      pairsOf(lines).reduce((one, pair) => layPair(one, context, pair), tree),
    config,
  );
}

/** The keys of a knob's lines. A value is a text, or a mapping of them. */
function pairsOf(lines: string): Pair[] {
  const tree = plainTree(parseYaml('knob', lines, 'failsafe').toJS());
  return tree.kind === 'map' ? tree.pairs : [];
}

function plainTree(value: unknown): Tree {
  if (typeof value !== 'object' || value === null)
    return { kind: 'text', text: String(value), origin: ours };
  return {
    kind: 'map',
    origin: ours,
    pairs: Object.entries(value).map(([key, inner]) => ({
      key,
      origin: ours,
      value: plainTree(inner),
    })),
  };
}

function layPair(config: MapTree, context: string, pair: Pair): MapTree {
  // A value that is there already stays where it is.
  const instead = (map: MapTree, puts: boolean): MapTree => {
    const last = map.pairs.findLast(({ key }) => key === pair.key);
    if (last === undefined)
      return puts && !takesOut(pair)
        ? { ...map, pairs: [...map.pairs, { ...pair, origin: laidOrigin }] }
        : map;
    const others = map.pairs.filter((one) => one === last || one.key !== pair.key);
    if (takesOut(pair)) return { ...map, pairs: others.filter((one) => one !== last) };
    return {
      ...map,
      pairs: others.map((one) =>
        one !== last || sameValue(one.value, pair.value)
          ? one
          : { ...one, value: { ...pair.value, origin: one.value.origin } },
      ),
    };
  };
  switch (context) {
    case 'top':
      return instead(
        {
          ...config,
          pairs: config.pairs.map((one) =>
            one.key === 'hosts'
              ? { ...one, value: throughout(one.value, (map) => instead(map, false)) }
              : one,
          ),
        },
        true,
      );
    case 'ssl':
      return throughout(config, (map) => ({
        ...map,
        pairs: map.pairs.map((one) =>
          one.key === 'ssl' && one.value.kind === 'map'
            ? { ...one, value: instead(one.value, true) }
            : one,
        ),
      })) as MapTree;
    default:
      throw new UserError(
        `h2o configs have no context "${context}" that keys can be laid over: it is top or ssl`,
      );
  }
}

/** "~" */
function takesOut({ value }: Pair): boolean {
  return value.kind === 'text' && value.text === '~';
}

function sameValue(a: Tree, b: Tree): boolean {
  return words(a).toLowerCase() === words(b).toLowerCase();
}

/** A value on one line. */
function words(tree: Tree): string {
  if (tree.kind === 'text') return tree.text;
  if (tree.kind === 'list') return `[${tree.items.map(words).join(', ')}]`;
  return `{${tree.pairs.map(({ key, value }) => `${key}: ${words(value)}`).join(', ')}}`;
}

function throughout(tree: Tree, change: (map: MapTree) => MapTree): Tree {
  if (tree.kind === 'text') return tree;
  if (tree.kind === 'list')
    return { ...tree, items: tree.items.map((item) => throughout(item, change)) };
  return change({
    ...tree,
    pairs: tree.pairs.map((pair) => ({ ...pair, value: throughout(pair.value, change) })),
  });
}

/** The facts of a config. */
export function h2oFacts(config: MapTree): Facts {
  const keys = new Set(pairsIn(config).map(({ key }) => key));
  const logs = keys.has('access-log');
  return {
    proxied: [
      'proxy.reverse.url',
      'fastcgi.connect',
      'fastcgi.spawn',
      'mruby.handler',
      'mruby.handler-file',
    ].some((key) => keys.has(key)),
    logs,
    logLine: logs,
  };
}

/** Mappings in which knobs set keys, beside each host and path. */
const holders = ['hosts', 'paths', 'listen', 'ssl'];

/** The keys of a config with their values. @param block the heading for keys of this tree's own; `holder`: the key of the tree */
export function h2oSettings(tree: Tree, block: string, holder = ''): Setting[] {
  if (tree.kind === 'text') return [];
  if (tree.kind === 'list') return tree.items.flatMap((item) => h2oSettings(item, block));
  return tree.pairs.flatMap((pair): Setting[] => {
    const { key, value } = pair;
    if (
      value.kind !== 'text' &&
      (holders.includes(key) || holder === 'hosts' || holder === 'paths')
    )
      return h2oSettings(value, `${key}: at ${placeOf(pair)}`, key);
    return [{ block, name: key, text: `${key}: ${words(value)}`, place: placeOf(pair) }];
  });
}
