// A person's own h2o config, made to run here: what would meet a server that runs already, or cannot be used, is redirected.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { AdoptPlace, AdoptedConfig, UpstreamAddress } from '../server.ts';
import { chooseListen, listensByPort, type Listen, type OwnConfig } from './listens.ts';
import { AccessLogs, moveAddresses, temporary, temporarySocket, type Address, type Moved } from './moved.ts';
import { readText } from './read-text.ts';
import { asItIs, isLoopback, leaving, loadedToo, localTarget, upstreamAddress } from './upstream.ts';
import { printYaml, readYaml, type MapTree, type Pair, type Tree } from './yaml-tree.ts';

/** What the config says. Throws UserError with file and line. */
export async function readH2o(file: string, text: string): Promise<Pick<OwnConfig, 'workers' | 'listens'>> {
  const config = await readYaml(file, text);
  return { workers: workersOf(config), listens: listensOf(config) };
}

/** ServerKind.adopt. */
export async function adoptH2o(file: string, place: AdoptPlace): Promise<AdoptedConfig> {
  const config = await readYaml(file, await readText(file));
  const { port, tls, hosts } = chooseListen({ file, listens: listensOf(config) }, place.listen);
  const workers = workersOf(config);
  const moved = await moveAddresses(entriesOf(config).map(({ entry }) => entry.address), port, place);
  const here: Here = { place, moved, user: textOf(get(config, 'user')), moves: new Map(), said: [], accessLogs: new AccessLogs(place), upstreams: [] };
  const changed = changeMap(config, '', here);
  const ours: Pair[] = [
    // It would start a thread for each core of the machine, also for those that it may not use.
    ...(workers === 'server-cores' ? [pairOf('num-threads', String(place.cores))] : []),
    ...(get(config, 'error-log') === undefined ? [pairOf('error-log', place.logFile)] : []),
    // As in the composed configs: with a change of user h2o would lose its parent-death signal, and outlive a bakeoff that is killed.
    ...(place.user === undefined ? [] : [pairOf('user', 'root')]),
    ...(place.accessLogFile !== undefined && here.accessLogs.isEmpty ? [pairOf('access-log', place.accessLogFile)] : []),
  ];
  return {
    text: `# ${file} as it runs here: with what it includes, and with addresses, logs and the like redirected.\n${printYaml({ ...changed, pairs: [...ours, ...changed.pairs] })}`,
    tls,
    protocol: tls ? 'h2' : 'http/1.1',
    hosts,
    upstreams: here.upstreams,
    workers: workers === 'server-cores' ? place.cores : workers,
    redirections: [...new Set([
      ...[...here.moves].map(([to, was]) => `listen ${[...was].join(', ')} → ${to}`),
      ...(workers === 'server-cores' ? [`num-threads (all cores) → ${place.cores}, the number of server cores`] : []),
      ...(place.user === undefined ? [] : [`user ${here.user ?? "(h2o's own)"} → root: as another user h2o would go on when bakeoff is killed`]),
      ...here.said,
      ...(hasRelativePath(config) ? [`relative paths begin at ${path.dirname(file)}, as if h2o were started there`] : []),
    ])],
    args: (configFile) => ['-c', configFile],
    workingFolder: path.dirname(file),
  };
}

interface Here {
  place: AdoptPlace;
  moved: Moved;
  /** As the config has it. */
  user: string | undefined;
  /** By new address: what it was. */
  moves: Map<string, Set<string>>;
  said: string[];
  accessLogs: AccessLogs;
  upstreams: UpstreamAddress[];
}

function get(tree: Tree | undefined, wanted: string): Tree | undefined {
  return tree?.kind === 'map' ? tree.pairs.findLast(({ key }) => key === wanted)?.value : undefined;
}

function textOf(tree: Tree | undefined): string | undefined {
  return tree?.kind === 'text' ? tree.text : undefined;
}

function pairOf(key: string, text: string): Pair {
  return { key, from: '', value: { kind: 'text', text, from: '' } };
}

/** FILE:LINE, with the command. */
function commandAt(key: string, tree: Tree): string {
  return `${tree.from.replace(/^from /, '')}: ${key}`;
}

function workersOf(config: MapTree): OwnConfig['workers'] {
  const threads = get(config, 'num-threads');
  if (threads === undefined) return 'server-cores';
  // Newer ones take the numbers of cores too.
  const count = threads.kind === 'list' ? threads.items.length : Number(textOf(threads));
  if (!Number.isSafeInteger(count) || count < 1) throw new UserError(`${commandAt('num-threads', threads)} is not a number of threads`);
  return count;
}

/** One thing that `listen` says. */
interface Entry { address: Address; tls: boolean; isQuic: boolean }

function entryOf(tree: Tree): Entry {
  const word = textOf(tree) ?? textOf(get(tree, 'port')) ?? '';
  const type = textOf(get(tree, 'type'));
  const host = textOf(get(tree, 'host'));
  const about = { tls: get(tree, 'ssl') !== undefined, isQuic: type === 'quic' };
  if (type === 'unix') return { address: { socket: word }, ...about };
  const port = /^\d+$/.test(word) ? Number(word) : 0;
  if (port < 1 || port > 65_535) throw new UserError(`${commandAt('listen', tree)}: "${word}" is no port`);
  return { address: { ports: [port], host }, ...about };
}

const each = (tree: Tree): Tree[] => tree.kind === 'list' ? tree.items : [tree];

/** All `listen` of the config and its hosts. `hosts`: those that it serves. */
function entriesOf(config: MapTree): { entry: Entry; hosts: string[] }[] {
  const hosts = get(config, 'hosts');
  const pairs = hosts?.kind === 'map' ? hosts.pairs : [];
  const of = (tree: Tree, names: string[]): { entry: Entry; hosts: string[] }[] =>
    (tree.kind === 'map' ? tree.pairs : []).filter(({ key }) => key === 'listen').flatMap(({ value }) => each(value).map((one) => ({ entry: entryOf(one), hosts: names })));
  return [...of(config, pairs.map(({ key }) => key)), ...pairs.flatMap(({ key, value }) => of(value, [key]))].filter(({ entry }) => !entry.isQuic);
}

/** One per port. It takes HTTP/2 everywhere: with TLS where ALPN says so, without where the client begins with it. */
function listensOf(config: MapTree): Listen[] {
  return listensByPort(entriesOf(config).flatMap(({ entry: { address, tls }, hosts }) =>
    'ports' in address ? address.ports.map((port) => ({ port, tls, http2: true, hosts })) : []));
}

/** What is passed on as it is: the words in it are not commands. */
const dataCommands = new Set(['setenv', 'file.mime.addtypes', 'file.mime.settypes', 'error-doc']);

function changeMap(map: MapTree, parent: string, here: Here): MapTree {
  const listens = new Set<string>();
  const pairs = map.pairs.flatMap((pair) => changePair(pair, parent, here)).filter(({ key, value }) => {
    if (key !== 'listen') return true;
    // Addresses that were different may have become one: h2o takes it twice only where they had different certificates.
    const words = JSON.stringify(value, (name, part: unknown) => name === 'from' ? undefined : part);
    const isFirst = !listens.has(words);
    listens.add(words);
    return isFirst;
  });
  return { ...map, pairs };
}

function changeTree(tree: Tree, parent: string, here: Here): Tree {
  if (tree.kind === 'map') return changeMap(tree, parent, here);
  return tree.kind === 'list' ? { ...tree, items: tree.items.map((item) => changeTree(item, parent, here)) } : tree;
}

function changePair(pair: Pair, parent: string, here: Here): Pair[] {
  const { key, value } = pair;
  const { place, said } = here;
  const word = textOf(value);
  const instead = (value: Tree): Pair[] => [{ ...pair, value }];
  switch (key) {
    case 'listen': {
      if (parent !== '' && parent !== 'host') break;
      const items = each(value).flatMap((one) => changeListen(one, here));
      return value.kind === 'list' ? instead({ ...value, items }) : items.flatMap(instead);
    }
    case 'hosts':
      if (parent !== '' || value.kind !== 'map') break;
      return instead({ ...value, pairs: value.pairs.map((host) => ({ ...host, value: changeTree(host.value, 'host', here) })) });
    case 'user':
      if (parent !== '') break;
      if (place.user === undefined) said.push(`user ${word}: left out, since it takes root to become another one`);
      return [];
    case 'pid-file':
      said.push(`pid-file ${word}: left out`);
      return [];
    case 'error-log':
      said.push(`error-log ${word} → ${path.basename(place.logFile)} of this run`);
      return instead({ kind: 'text', text: place.logFile, from: value.from });
    case 'access-log':
      return instead(changeLog(value, here));
    case 'proxy.reverse.url':
      return instead(changeUrls(value, here));
    case 'fastcgi.connect':
      return instead(changeConnect(value, here));
    case 'fastcgi.spawn':
      return instead(spawnAs(value, here));
    case 'mruby.handler': case 'mruby.handler-file': case 'mruby.handler_path': case 'reproxy':
      if (word !== 'OFF') said.push(asItIs(key));
      break;
    case 'memcached': {
      const host = textOf(get(value, 'host'));
      if (host !== undefined && !isLoopback(host)) throw new UserError(`${commandAt(`memcached ${host}`, value)} ${leaving}`);
      break;
    }
  }
  return dataCommands.has(key) ? [pair] : instead(changeTree(value, key, here));
}

function changeListen(tree: Tree, here: Here): Tree[] {
  const { address, isQuic } = entryOf(tree);
  if (isQuic) {
    here.said.push(`listen ${textOf(get(tree, 'port'))} of type quic: left out, HTTP/3 is not compared`);
    return [];
  }
  const [port = 0] = 'ports' in address ? address.ports : [];
  const was = 'socket' in address ? address.socket : [textOf(get(tree, 'host')), port].filter((part) => part !== undefined).join(':');
  const to = 'socket' in address ? here.moved.sockets.get(address.socket) as string : String(here.moved.ports.get(port));
  const shown = 'socket' in address ? temporarySocket : `127.0.0.1:${to}`;
  const same = here.moves.get(shown);
  here.moves.set(shown, new Set([...same ?? [], was]));
  const pairs = tree.kind === 'map' ? tree.pairs : [];
  if (/^on$/i.test(textOf(get(tree, 'proxy-protocol')) ?? '')) here.said.push('proxy-protocol: left out, load generators do not speak it');
  const kept = pairs.filter(({ key }) => !['port', 'host', 'proxy-protocol'].includes(key)).map((pair) => pair.key === 'ssl' ? { ...pair, value: withoutOcsp(pair.value, here) } : pair);
  const host = 'socket' in address ? [] : [pairOf('host', '127.0.0.1')];
  return [{ kind: 'map', from: tree.from, pairs: [...host, pairOf('port', to), ...kept] }];
}

/** Whether a certificate has been revoked other machines know, and they are not asked. */
function withoutOcsp(ssl: Tree, here: Here): Tree {
  if (ssl.kind !== 'map') return ssl;
  if (textOf(get(ssl, 'ocsp-update-interval')) !== '0') here.said.push('ocsp-update-interval → 0, since it would ask another machine');
  return { ...ssl, pairs: [...ssl.pairs.filter(({ key }) => key !== 'ocsp-update-interval'), pairOf('ocsp-update-interval', '0')] };
}

/** A log is a path, a mapping with one, or a list of these. */
function changeLog(tree: Tree, here: Here): Tree {
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => changeLog(item, here)) };
  if (tree.kind === 'map') return { ...tree, pairs: tree.pairs.map((pair) => pair.key === 'path' ? { ...pair, value: changeLog(pair.value, here) } : pair) };
  if (tree.text === '/dev/null') return tree;
  here.said.push(`access-log ${tree.text} → ${temporary}`);
  return { ...tree, text: here.accessLogs.fileFor(tree.text) };
}

/** A text, a list of them, or a mapping of newer ones, with `backends` or `url`. */
function changeUrls(tree: Tree, here: Here): Tree {
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => changeUrls(item, here)) };
  if (tree.kind === 'map') return { ...tree, pairs: tree.pairs.map((pair) => ['backends', 'url'].includes(pair.key) ? { ...pair, value: changeUrls(pair.value, here) } : pair) };
  const words = `proxy.reverse.url ${tree.text}`;
  // Sockets are [unix:PATH] here.
  const { text, is } = localTarget(tree.text.replace(/\[unix:([^\]]+)\]/, 'unix:$1:'), new Set(), here.moved, commandAt(words, tree));
  if (is === 'other') {
    here.said.push(loadedToo(words));
    here.upstreams.push(upstreamAddress(text));
    return tree;
  }
  return { ...tree, text: text.replace(/unix:([^:]+):/, '[unix:$1]') };
}

function changeConnect(tree: Tree, { moved, said, upstreams }: Here): Tree {
  const host = textOf(get(tree, 'host'));
  const port = textOf(tree) ?? textOf(get(tree, 'port')) ?? '';
  const isSocket = textOf(get(tree, 'type')) === 'unix';
  if (!isSocket && host !== undefined && !isLoopback(host)) throw new UserError(`${commandAt(`fastcgi.connect ${host}`, tree)} ${leaving}`);
  const movedTo = isSocket ? moved.sockets.get(port) : undefined;
  if (movedTo === undefined) {
    said.push(loadedToo(`fastcgi.connect ${port}`));
    upstreams.push(isSocket ? { socket: port } : { port: Number(port) });
  }
  if (tree.kind !== 'map' || movedTo === undefined) return tree;
  return { ...tree, pairs: tree.pairs.map((pair) => pair.key === 'port' ? { ...pair, value: { kind: 'text', text: movedTo, from: pair.value.from } } : pair) };
}

/** What it spawns ran as its user, and does so here. */
function spawnAs(tree: Tree, { place, user }: Here): Tree {
  if (place.user === undefined || get(tree, 'user') !== undefined) return tree;
  const pairs = tree.kind === 'map' ? tree.pairs : [{ key: 'command', from: tree.from, value: tree }];
  return { kind: 'map', from: tree.from, pairs: [...pairs, pairOf('user', user ?? place.user.name)] };
}

const pathCommands = new Set(['file.dir', 'file.file', 'certificate-file', 'key-file', 'dh-file', 'mruby.handler-file', 'mruby.handler_path', 'proxy.ssl.cafile']);

function hasRelativePath(tree: Tree): boolean {
  if (tree.kind === 'list') return tree.items.some(hasRelativePath);
  return tree.kind === 'map' && tree.pairs.some(({ key, value }) =>
    value.kind === 'text' ? pathCommands.has(key) && !value.text.startsWith('/') : hasRelativePath(value));
}
