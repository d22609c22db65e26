// A user's own h2o config: the copy that runs beside a running server, and knobs' lines over it.
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { addressIn, UserError, withShortQuotes } from '../../errors.ts';
import { allMayEnter } from '../../files.ts';
import type { Overlay } from '../../scenario/model.ts';
import { isLoopback } from '../ports.ts';
import type { AdoptPlace, AdoptedConfig } from '../server.ts';
import { overlayOrigin, type Facts, type ReadConfig, type Setting, type View } from './changes.ts';
import { readText } from '../config-files.ts';
import {
  beginCopy,
  chooseListen,
  leaving,
  listensByPort,
  localTarget,
  noteUser,
  runLog,
  temporary,
  type ConfigAddress,
  type ConfigCopy,
  type Listen,
  type OwnConfig,
} from './redirect.ts';
import {
  get,
  itemsOf,
  mapInside,
  oneLine,
  listensIn,
  yamlPair,
  pairsIn,
  yamlPairs,
  printYaml,
  readYaml,
  treeOf,
  type MapTree,
  type YamlPair,
  type Tree,
} from './yaml.ts';

export async function adoptH2o(file: string, place: AdoptPlace): Promise<AdoptedConfig> {
  const written = await readYaml({ file, text: await readText(file) });
  const { port, tls, hosts } = chooseListen(file, h2oListens(written), place.listen);
  const config = overlayH2o(written, place.overlays);
  const workers = h2oWorkers(config);
  const addresses = entriesOf(config).map(({ address }) => address);
  const copy = await beginCopy(file, addresses, port, place);
  // h2o's default is a thread per core of the machine, allowed or not.
  const threads = workers === 'server-cores' ? [yamlPair('num-threads', place.cores)] : [];
  if (workers === 'server-cores')
    copy.notes.push(`num-threads (all cores) → ${place.cores}, the number of server cores`);
  const changed = yamlPairs(changeTree(config, '', copy));
  const printed = printYaml({ ...config, pairs: [...threads, ...changed] });
  return {
    ...copy.adopted(printed, workers),
    tls,
    protocol: tls ? 'h2' : 'http/1.1',
    hosts,
    args: (configFile) => ['-c', configFile],
    workingFolder: workingFolderOf(config, copy),
  };
}

/** Keys whose values are names of files and folders. */
const pathKeys =
  /^(?:file\.dir|(?:file\.|mruby\.handler-|certificate-|key-|dh-|client-ca-)?file)$/i;

/**
 * Where relative names begin; undefined if the server's user may not enter that folder. Throws UserError if the config then has a relative
 * name.
 */
function workingFolderOf(
  config: MapTree,
  { folder, place: { user } }: ConfigCopy,
): string | undefined {
  const place = realpathSync(folder);
  if (user === undefined || allMayEnter(place)) return place;
  for (const { key, value } of pairsIn(config)) {
    const name = pathKeys.test(key) ? textOf(value) : undefined;
    if (name !== undefined && !path.isAbsolute(name))
      throw new UserError(
        `${value.origin}: ${key} ${addressIn(name)} begins at ${folder}, where not every user may go, and the server runs as ${user.name}: open the folder and those above it to all (chmod a+x), put a copy elsewhere, or start bakeoff as another user`,
      );
  }
  return undefined;
}

function textOf(tree: Tree | undefined): string | undefined {
  return tree?.kind === 'text' ? tree.text : undefined;
}

function textAt(tree: Tree, key: string): string | undefined {
  return textOf(get(tree, key));
}

function h2oWorkers(config: MapTree): OwnConfig['workers'] {
  const threads = get(config, 'num-threads');
  if (threads === undefined) return 'server-cores';
  // Newer versions also take a list of cores.
  const count = threads.kind === 'list' ? threads.items.length : Number(textOf(threads));
  if (!Number.isSafeInteger(count) || count < 1)
    throw new UserError(`${threads.origin}: num-threads is not a number of threads`);
  return count;
}

interface Entry {
  address: ConfigAddress;
  tls: boolean;
  isQuic: boolean;
  hosts: readonly string[];
}

function entryOf(tree: Tree, hosts: readonly string[] = []): Entry {
  const word = textOf(tree) ?? textAt(tree, 'port') ?? '';
  const type = textAt(tree, 'type');
  const about = { tls: get(tree, 'ssl') !== undefined, isQuic: type === 'quic', hosts };
  if (type === 'unix') return { address: { socket: word }, ...about };
  const port = /^\d+$/.test(word) ? Number(word) : 0;
  if (port < 1 || port > 65_535)
    throw new UserError(withShortQuotes(`${tree.origin}: listen: "${word}" is no port`));
  return { address: { port, host: textAt(tree, 'host') }, ...about };
}

function entriesOf(config: MapTree, wantsQuic = false): Entry[] {
  const hosts = yamlPairs(get(config, 'hosts'));
  const entriesIn = (tree: Tree, names: readonly string[]) =>
    listensIn(tree).map((listen) => entryOf(listen, names));
  const names = hosts.map(({ key }) => key);
  const inHosts = hosts.flatMap(({ key, value }) => entriesIn(value, [key]));
  return [...entriesIn(config, names), ...inHosts].filter(({ isQuic }) => isQuic === wantsQuic);
}

/** h2o has HTTP/2 on all ports: by ALPN with TLS, and without for a client that begins with it. */
function h2oListens(config: MapTree): Listen[] {
  const http3 = entriesOf(config, true).map(({ address }) => 'port' in address && address.port);
  return listensByPort(
    entriesOf(config).flatMap(({ address, tls, hosts }) => {
      if (!('port' in address)) return [];
      const { port } = address;
      const about = http3.includes(port) ? { http3: true as const } : {};
      return [{ port, tls, http2: true, hosts, ...about }];
    }),
  );
}

function changeTree(tree: Tree, parent: string, copy: ConfigCopy): Tree {
  if (tree.kind !== 'map') return mapInside(tree, (item) => changeTree(item, parent, copy));
  const changed = tree.pairs.flatMap((pair) => changePair(pair, parent, copy));
  // h2o accepts an address twice only with different certificates.
  const isFirst = ({ key, value }: YamlPair, index: number) =>
    key !== 'listen' ||
    changed.findIndex(
      (earlier) => earlier.key === key && oneLine(earlier.value) === oneLine(value),
    ) === index;
  return { ...tree, pairs: changed.filter(isFirst) };
}

/** The default ports of stores for TLS sessions and their keys. */
const storePorts = new Map([
  ['memcached', 11_211],
  ['redis', 6379],
]);

/** The values of these keys are data, not commands. */
const dataKeys = new Set(['setenv', 'file.mime.addtypes', 'file.mime.settypes']);

function changePair(pair: YamlPair, parent: string, copy: ConfigCopy): YamlPair[] {
  const { key, value } = pair;
  const { notes } = copy;
  const word = textOf(value);
  const instead = (changed: Tree): YamlPair[] => [{ ...pair, value: changed }];
  // A path may be named like a directive.
  if (parent === 'paths') return instead(changeTree(value, 'path', copy));
  const refuse = (detail: string) => {
    throw new UserError(`${value.origin}: ${key}${detail} ${leaving}`);
  };
  switch (key.toLowerCase()) {
    case 'listen': {
      if (parent !== '' && parent !== 'host') break;
      const items = itemsOf(value).flatMap((listen) => changeListen(listen, copy));
      return value.kind === 'list' ? instead({ ...value, items }) : items.flatMap(instead);
    }
    case 'hosts':
      if (parent !== '' || value.kind !== 'map') break;
      return instead(mapInside(value, (host) => changeTree(host, 'host', copy)));
    case 'user':
      if (parent !== '') break;
      noteUser(word, copy);
      return [];
    case 'pid-file':
      notes.push(`pid-file ${word}: left out`);
      return [];
    case 'error-log':
      notes.push(`error-log ${word} → ${runLog}`);
      return [];
    case 'access-log':
      return instead(
        changeTexts(value, ['path'], (log) => {
          if (log === '/dev/null') return log;
          notes.push(`access-log ${log} → ${temporary}`);
          return copy.temporaryFile(log, 'access.log');
        }),
      );
    case 'proxy.reverse.url':
      return instead(
        changeTexts(value, ['backends', 'url'], (url, where) => {
          // A socket is [unix:PATH] in a URL of h2o.
          const target = url.replace(/\[unix:([^\]]+)\]/, 'unix:$1:');
          const text = localTarget(target, `proxy.reverse.url ${addressIn(url)}`, where, copy);
          return text === target ? url : text.replace(/unix:([^:]+):/, '[unix:$1]');
        }),
      );
    case 'fastcgi.connect':
      return instead(changeConnect(value, copy));
    case 'ssl-session-resumption':
      for (const { key: written, value: about } of yamlPairs(value)) {
        const store = written.toLowerCase();
        const usualPort = storePorts.get(store);
        if (usualPort !== undefined) requireLocal(about, store, usualPort, copy);
      }
      return [pair];
    case 'crash-handler':
      notes.push(`crash-handler ${word}: left out, it is a program`);
      return [];
    case 'quic-nodes':
    case 'proxy.connect':
    case 'proxy.connect-udp':
      refuse('');
      break;
    case 'reproxy':
      // The header of a backend's answer names the address.
      if (word?.toLowerCase() !== 'off') refuse('');
      break;
    case 'redirect':
    case 'error-doc':
      for (const target of itemsOf(value)) {
        const url = textAt(target, 'url') ?? '';
        const isFetched = key !== 'redirect' || get(target, 'internal') !== undefined;
        if (isFetched && /^\w+:|^\/\//.test(url)) refuse(` ${addressIn(url)}`);
      }
      return [pair];
  }
  return dataKeys.has(key) ? [pair] : instead(changeTree(value, key, copy));
}

function changeListen(tree: Tree, copy: ConfigCopy): Tree[] {
  const { address, isQuic } = entryOf(tree);
  const was =
    'socket' in address
      ? address.socket
      : [address.host, address.port].filter((part) => part !== undefined).join(':');
  const to = copy.move(address, `${was}${isQuic ? ' quic' : ''}`, isQuic);
  if (to === undefined) return [];
  const [host = '', port = ''] = to.split(':');
  const pairs = [yamlPair('port', port), ...('socket' in address ? [] : [yamlPair('host', host)])];
  for (const pair of yamlPairs(tree)) {
    const key = pair.key.toLowerCase();
    if (key === 'proxy-protocol')
      copy.notes.push('proxy-protocol: left out, load generators do not speak it');
    else if (key === 'ssl') pairs.push({ ...pair, value: withoutOcsp(pair.value, copy) });
    else if (key !== 'port' && key !== 'host') pairs.push(pair);
  }
  return [{ kind: 'map', origin: tree.origin, pairs }];
}

/** OCSP would ask other machines. */
function withoutOcsp(ssl: Tree, { notes }: ConfigCopy): Tree {
  if (ssl.kind !== 'map') return ssl;
  if (textAt(ssl, 'ocsp-update-interval') !== '0')
    notes.push('ocsp-update-interval → 0, since it would ask another machine');
  const others = ssl.pairs.filter(({ key }) => !/^ocsp-update-(?:interval|cmd)$/i.test(key));
  return { ...ssl, pairs: [...others, yamlPair('ocsp-update-interval', '0')] };
}

/** Changes the texts in lists, and the values of these keys, which may be in upper or lower case. */
function changeTexts(
  tree: Tree,
  keys: readonly string[],
  change: (text: string, where: string) => string,
): Tree {
  if (tree.kind === 'text') return { ...tree, text: change(tree.text, tree.origin) };
  return mapInside(tree, (value, key) =>
    tree.kind === 'list' || keys.includes(key.toLowerCase())
      ? changeTexts(value, keys, change)
      : value,
  );
}

function changeConnect(tree: Tree, copy: ConfigCopy): Tree {
  const port = textOf(tree) ?? textAt(tree, 'port') ?? '';
  const line = `fastcgi.connect ${port}`;
  if (textAt(tree, 'type') === 'unix') {
    const to = copy.movedTo({ socket: port })?.replace('unix:', '');
    if (to !== undefined) return changeTexts(tree, ['port'], () => to);
    copy.noteBackend(line, { socket: port });
    return tree;
  }
  requireLocal(tree, 'fastcgi.connect', Number(port), copy);
  return tree;
}

/** Notes a backend. Without a host it is 127.0.0.1. Throws UserError if it is on another machine. */
function requireLocal(tree: Tree, key: string, usualPort: number, copy: ConfigCopy): void {
  // If a config has several hosts, h2o 2.2 uses the last one for memcached, and otherwise the first.
  const hosts = yamlPairs(tree).filter(({ key: word }) => word.toLowerCase() === 'host');
  const away = hosts.map(({ value }) => oneLine(value)).find((host) => !isLoopback(host));
  if (away !== undefined)
    throw new UserError(`${tree.origin}: ${key} ${addressIn(away)} ${leaving}`);
  const port = Number(textAt(tree, 'port') ?? usualPort);
  copy.noteBackend(`${key} ${port}`, { port });
}

/** Reads a user's config. Throws UserError with file and line. */
export async function readH2o(file: string): Promise<ReadConfig> {
  const config = await readYaml({ file, text: await readText(file) });
  const viewOf = (tree: MapTree): View => ({
    workers: h2oWorkers(tree),
    settings: settingsOf(tree, file),
  });
  return {
    ...viewOf(config),
    listens: h2oListens(config),
    facts: () => factsOf(config),
    overlay: (overlays) => viewOf(overlayH2o(config, overlays)),
  };
}

function overlayH2o(config: MapTree, overlays: readonly Overlay[]): MapTree {
  let tree = config;
  for (const { context, lines } of overlays)
    for (const pair of yamlPairs(treeOf(parse(lines, { schema: 'failsafe' }))))
      tree = overlayPair(tree, context, pair);
  return tree;
}

function overlayPair(config: MapTree, context: string, pair: YamlPair): MapTree {
  const inSsl = (map: MapTree, key: string) => (key === 'ssl' ? setPair(map, pair, true) : map);
  if (context === 'ssl') return eachMap(config, inSsl) as MapTree;
  if (context !== 'top')
    throw new UserError(
      `h2o configs have no context "${context}" that keys can be laid over: it is top or ssl`,
    );
  const pairs = config.pairs.map((old) =>
    old.key === 'hosts' && old.value.kind === 'map'
      ? { ...old, value: eachMap(old.value, (map) => setPair(map, pair, false)) }
      : old,
  );
  return setPair({ ...config, pairs }, pair, true);
}

/** Sets a key, or removes it for the value "~". @param puts adds the key if it is not there */
function setPair(map: MapTree, pair: YamlPair, puts: boolean): MapTree {
  const removes = textOf(pair.value) === '~';
  const last = map.pairs.findLast(({ key }) => key === pair.key);
  if (last === undefined)
    return puts && !removes
      ? { ...map, pairs: [...map.pairs, { ...pair, origin: overlayOrigin }] }
      : map;
  const isSame = oneLine(last.value).toLowerCase() === oneLine(pair.value).toLowerCase();
  const value = isSame ? last.value : { ...pair.value, origin: last.value.origin };
  const pairs = map.pairs.flatMap((old) => {
    if (old.key !== pair.key) return [old];
    return old === last && !removes ? [{ ...old, value }] : [];
  });
  return { ...map, pairs };
}

/** Changes each mapping, innermost first. `key`: of the mapping, '' in lists. */
function eachMap(tree: Tree, change: (map: MapTree, key: string) => MapTree, key = ''): Tree {
  const changed = mapInside(tree, (value, innerKey) => eachMap(value, change, innerKey));
  return changed.kind === 'map' ? change(changed, key) : changed;
}

function factsOf(config: MapTree): Facts {
  const keys = new Set(pairsIn(config).map(({ key }) => key));
  const logs = keys.has('access-log');
  const passes = /^(?:proxy\.reverse\.url|fastcgi\.(?:connect|spawn)|mruby\.handler(?:-file)?)$/;
  return { proxied: [...keys].some((key) => passes.test(key)), logs, logLine: logs };
}

/** Mappings in which knobs set keys, beside each host and path. */
const holders = ['hosts', 'paths', 'listen', 'ssl'];

/**
 * @param block the heading for this tree's keys
 * @param holder the key of this tree
 */
function settingsOf(tree: Tree, block: string, holder = ''): Setting[] {
  if (tree.kind === 'text') return [];
  if (tree.kind === 'list') return tree.items.flatMap((item) => settingsOf(item, block));
  return tree.pairs.flatMap(({ key, value, origin: place }) => {
    const holds = holders.includes(key) || holder === 'hosts' || holder === 'paths';
    if (value.kind !== 'text' && holds) return settingsOf(value, `${key}: at ${place}`, key);
    return [{ block, name: key, text: `${key}: ${oneLine(value)}`, place }];
  });
}
