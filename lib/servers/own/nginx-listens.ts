// A user's nginx listen lines, and their move to free ports of 127.0.0.1.
import path from 'node:path';
import { addressIn, UserError, wordIn } from '../../errors.ts';
import { asWord, bareWord, type Directive } from '../nginx-config.ts';
import {
  isAtHost,
  listensByPort,
  mostPublicHost,
  type ConfigAddress,
  type ConfigCopy,
  type Listen,
} from './redirect.ts';

/** Reads the address of a listen line. Throws UserError if it is no address. */
export function parseAddress(listen: Directive): ConfigAddress {
  const word = bareWord(listen.args[0] ?? '');
  const socket = /^unix:(.+)$/.exec(word)?.[1];
  if (socket !== undefined) return { socket: path.posix.normalize(socket) };
  const [, host, digits = '80'] =
    /^()(\d+)$/.exec(word) ?? /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(word) ?? [];
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535)
    throw new UserError(`${listen.origin}: listen ${addressIn(word)} is not a host and a port`);
  return host === '' ? { port } : { port, host };
}

export function blocksIn(block: readonly Directive[], wanted: string): Directive[] {
  return block.filter(({ name, block: inner }) => name === wanted && inner !== undefined);
}

export function insideHttp(config: readonly Directive[]): Directive[] {
  return blocksIn(config, 'http').flatMap(({ block: inner = [] }) => inner);
}

/** The server blocks of http. Throws UserError if there are none. */
export function httpServers(config: readonly Directive[], file: string): Directive[] {
  const servers = blocksIn(insideHttp(config), 'server');
  if (servers.length === 0)
    throw new UserError(`${file} has no server { } in http { }: there is nothing to load`);
  return servers;
}

function wordsOf(listen: Directive): string[] {
  return listen.args.slice(1).map(bareWord);
}

function isQuic(listen: Directive): boolean {
  return wordsOf(listen).includes('quic');
}

function writtenListens({ block = [] }: Directive): Directive[] {
  return block.filter(({ name }) => name === 'listen');
}

/** The listen directives except those for HTTP/3; nginx's default if the server has none. */
export function listensOf(server: Directive): Directive[] {
  const written = writtenListens(server);
  if (written.length > 0) return written.filter((listen) => !isQuic(listen));
  const port = process.getuid?.() === 0 ? '80' : '8000';
  return [{ name: 'listen', args: [port], origin: server.origin }];
}

/** The host of an address: '*' for all of IPv4. */
export function hostOf(address: ConfigAddress): string {
  const { host = '*' } = 'port' in address ? address : {};
  return host === '0.0.0.0' ? '*' : host;
}

function quicListensOf(server: Directive): Directive[] {
  return writtenListens(server).filter(isQuic);
}

/** Lists each port once, with the protocols and names of its most public host. Names of servers that only turn requests away come last. */
export function nginxListens(config: readonly Directive[], file: string): Listen[] {
  // There may be thousands of servers: each part is looked through once.
  const shared = insideHttp(config).filter(({ block }) => block === undefined);
  const servers = httpServers(config, file);
  const valueIn = ({ block = [] }: Directive, name: string) =>
    lastWord(block, name) ?? lastWord(shared, name);
  const withQuic = servers.filter((server) => valueIn(server, 'http3') !== 'off');
  const quic = withQuic.flatMap(quicListensOf).map(parseAddress);
  const quicPorts = new Set(quic.map((address) => 'port' in address && address.port));
  const publicHosts = publicHostsOf(servers);
  const listens: Listen[] = [];
  const turnedAway: Listen[] = [];
  for (const server of servers) {
    const isOn = (name: string) => valueIn(server, name) === 'on';
    const [hasTls, hasHttp2] = [isOn('ssl'), isOn('http2')];
    const hosts = namesOf(server);
    const isAway = turnsAway(server);
    for (const line of listensOf(server)) {
      const address = parseAddress(line);
      if ('socket' in address || !isAtHost(address, publicHosts.get(address.port) ?? '')) continue;
      const { port } = address;
      const words = wordsOf(line);
      const tls = words.includes('ssl') || hasTls;
      const http2 = words.includes('http2');
      const listen: Listen = { port, tls, http2: http2 || hasHttp2, hosts };
      // Without TLS the word `http2` ends HTTP/1.1 on this port; the directive `http2 on` does not.
      if (http2 && !tls) listen.http2Only = true;
      if (quicPorts.has(port)) listen.http3 = true;
      if (isAway) turnedAway.push(listen);
      listens.push(isAway ? { ...listen, hosts: [] } : listen);
    }
  }
  return listensByPort([...listens, ...turnedAway]);
}

function publicHostsOf(servers: readonly Directive[]): ReadonlyMap<number, string> {
  const byPort = new Map<number, ConfigAddress[]>();
  for (const listen of servers.flatMap(listensOf)) {
    const address = parseAddress(listen);
    if ('socket' in address) continue;
    const known = byPort.get(address.port) ?? [];
    byPort.set(address.port, known);
    known.push(address);
  }
  const hosts = new Map<number, string>();
  for (const [port, addresses] of byPort) hosts.set(port, mostPublicHost(addresses, port));
  return hosts;
}

/** Returns whether the server, or its `location /`, only answers with a redirect or a refusal. */
function turnsAway({ block = [] }: Directive): boolean {
  const root = blocksIn(block, 'location').find(({ args }) => args.map(bareWord).join(' ') === '/');
  return [...block, ...(root?.block ?? [])].some(
    ({ name, args }) => name === 'return' && !/^2\d\d$/.test(bareWord(args[0] ?? '')),
  );
}

function namesOf({ block = [] }: Directive): string[] {
  const lines = block.filter(({ name }) => name === 'server_name');
  return lines.flatMap(({ args }) => args.map(bareWord));
}

function lastWord(block: readonly Directive[], wanted: string): string | undefined {
  return block.findLast(({ name }) => name === wanted)?.args.map(bareWord)[0];
}

/** Returns worker_processes, by default 1. Throws UserError if it is neither a number nor auto. */
export function nginxWorkers(config: readonly Directive[]): number | 'server-cores' {
  const workers = config.find(({ name }) => name === 'worker_processes');
  if (lastWord(config, 'master_process') === 'off' || workers === undefined) return 1;
  const word = bareWord(workers.args[0] ?? '');
  if (word === 'auto') return 'server-cores';
  if (!/^[1-9]\d*$/.test(word))
    throw new UserError(
      `${workers.origin}: worker_processes ${wordIn(word)} is not a number of processes`,
    );
  return Number(word);
}

/** Words of a listen line that are left out: the new address is IPv4, and load generators do not speak the PROXY protocol. */
const leftOut = /^(?:ipv6only=.*|proxy_protocol)$/;

/** Returns the new listen lines of each server, or none if all are left out. Lines of the same address become one. */
export function moveListens(
  servers: readonly Directive[],
  copy: ConfigCopy,
): ReadonlyMap<Directive, Directive[]> {
  return new Map(servers.map((server) => [server, moveServer(server)]));

  function moveServer(server: Directive): Directive[] {
    const written = new Set(writtenListens(server));
    const moved = new Map<string, Directive>();
    for (const listen of [...listensOf(server), ...quicListensOf(server)]) {
      const quic = isQuic(listen) ? ' quic' : '';
      const note = written.has(listen)
        ? quic
        : ` (nginx's own, no listen line at ${server.origin})`;
      const to = copy.move(parseAddress(listen), `${listen.args[0]}${note}`, quic !== '');
      if (to === undefined) continue;
      const words = wordsOf(listen);
      if (words.includes('proxy_protocol'))
        copy.notes.push(
          `proxy_protocol at ${server.origin}: left out, load generators do not speak it`,
        );
      const before = moved.get(to + quic)?.args ?? [to];
      const more = words.filter((word) => !leftOut.test(word)).map(asWord);
      moved.set(to + quic, { ...listen, args: [...new Set([...before, ...more])] });
    }
    return [...moved.values()];
  }
}
