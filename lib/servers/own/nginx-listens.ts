// The listen lines of a user's nginx config, and their move to free ports of 127.0.0.1.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { asWord, bareWord, type Directive } from '../nginx-config.ts';
import { isLoopback } from '../ports.ts';
import {
  keepsQuic,
  listensByPort,
  movedTo,
  noteMove,
  type Address,
  type Here,
  type Listen,
} from './redirect.ts';

/** Reads the address of a listen line. Throws UserError if it is none. */
export function parseAddress(listen: Directive): Address {
  const word = bareWord(listen.args[0] ?? '');
  const socket = /^unix:(.+)$/.exec(word)?.[1];
  if (socket !== undefined) return { socket: path.posix.normalize(socket) };
  const [, host, digits = '80'] =
    /^()(\d+)$/.exec(word) ?? /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(word) ?? [];
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535)
    throw new UserError(`${listen.origin}: listen ${word} is not a host and a port`);
  return host === '' ? { port } : { port, host };
}

export function blocksIn(block: readonly Directive[], wanted: string): Directive[] {
  return block.filter(({ name, block: inner }) => name === wanted && inner !== undefined);
}

/** The contents of all http blocks. */
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

/** The words after the address of a listen line. */
function wordsOf(listen: Directive): string[] {
  return listen.args.slice(1).map(bareWord);
}

function isQuic(listen: Directive): boolean {
  return wordsOf(listen).includes('quic');
}

function writtenListens({ block = [] }: Directive): Directive[] {
  return block.filter(({ name }) => name === 'listen');
}

/** The listen lines of a server that are not for HTTP/3, or nginx's default for a server without any. */
export function listensOf(server: Directive): Directive[] {
  const written = writtenListens(server);
  if (written.length > 0) return written.filter((listen) => !isQuic(listen));
  const port = process.getuid?.() === 0 ? '80' : '8000';
  return [{ name: 'listen', args: [port], origin: server.origin }];
}

/** The host of an address: '*' for all of IPv4. */
export function hostOf(address: Address): string {
  const { host = '*' } = 'port' in address ? address : {};
  return host === '0.0.0.0' ? '*' : host;
}

function quicListensOf(server: Directive): Directive[] {
  return writtenListens(server).filter(isQuic);
}

/** A listen line with a TCP or UDP address. */
interface Line {
  port: number;
  host: string;
  server: Directive;
  listen: Directive;
}

function linesOf(servers: readonly Directive[], listens: typeof listensOf): Line[] {
  return servers.flatMap((server) =>
    listens(server).flatMap((listen) => {
      const address = parseAddress(listen);
      return 'port' in address
        ? [{ port: address.port, host: hostOf(address), server, listen }]
        : [];
    }),
  );
}

const defaultWords = new Set(['default_server', 'default']);

function isDefault({ listen }: Line): boolean {
  return wordsOf(listen).some((word) => defaultWords.has(word));
}

/** The higher, the more clients on other machines reach that host. */
function openness(host: string): number {
  if (host === '*') return 3;
  return host === '[::]' ? 2 : isLoopback(host) ? 0 : 1;
}

/** The line of each port that decides: the default server of the most public host. */
function mainLines(lines: readonly Line[]): Map<number, Line> {
  const rank = (line: Line) => 2 * openness(line.host) + Number(isDefault(line));
  const mains = new Map<number, Line>();
  for (const line of lines) {
    const main = mains.get(line.port);
    if (main === undefined || rank(line) > rank(main)) mains.set(line.port, line);
  }
  return mains;
}

/** Each port once, with the protocols of its most public host. */
export function nginxListens(config: readonly Directive[], file: string): Listen[] {
  const shared = insideHttp(config);
  const servers = httpServers(config, file);
  const lines = linesOf(servers, listensOf);
  const mains = mainLines(lines);
  const valueIn = ({ block = [] }: Directive, name: string) =>
    lastWord(block, name) ?? lastWord(shared, name);
  const http3Ports = new Set(
    linesOf(servers, quicListensOf)
      .filter(({ server }) => valueIn(server, 'http3') !== 'off')
      .map(({ port }) => port),
  );
  return listensByPort(
    lines.map(({ port, host, server, listen }) => {
      const { block = [] } = server;
      const hosts = block
        .filter(({ name }) => name === 'server_name')
        .flatMap(({ args }) => args.map(bareWord));
      if (host !== mains.get(port)?.host) return { port, tls: false, http2: false, hosts };
      const isOn = (name: string) => valueIn(server, name) === 'on';
      const words = wordsOf(listen);
      const tls = words.includes('ssl') || isOn('ssl');
      const http2 = words.includes('http2');
      return {
        port,
        tls,
        http2: http2 || isOn('http2'),
        // Without TLS the word ends HTTP/1.1 on this port; the directive `http2 on` does not.
        ...(http2 && !tls ? { http2Only: true } : {}),
        ...(http3Ports.has(port) ? { http3: true } : {}),
        hosts,
      };
    }),
  );
}

/** The first argument of the last directive of that name. */
function lastWord(block: readonly Directive[], wanted: string): string | undefined {
  return block.findLast(({ name }) => name === wanted)?.args.map(bareWord)[0];
}

/** worker_processes, by default 1. Throws UserError if it is neither a number nor auto. */
export function nginxWorkers(config: readonly Directive[]): number | 'server-cores' {
  const workers = config.find(({ name }) => name === 'worker_processes');
  if (lastWord(config, 'master_process') === 'off' || workers === undefined) return 1;
  const word = bareWord(workers.args[0] ?? '');
  if (word === 'auto') return 'server-cores';
  if (!/^[1-9]\d*$/.test(word))
    throw new UserError(`${workers.origin}: worker_processes ${word} is not a number of processes`);
  return Number(word);
}

/** Words that each server of an address may have. nginx takes all others once for each address. */
const perServer = new Set(['ssl', 'http2', 'quic', 'spdy', ...defaultWords]);
/** Words left out: the new address is IPv4, and load generators do not speak the PROXY protocol. */
const leftOut = /^(?:ipv6only=.*|proxy_protocol)$/;

/** The new listen lines of each server, none if all are left out. Several addresses may become one. */
export function moveListens(
  servers: readonly Directive[],
  here: Here,
): ReadonlyMap<Directive, Directive[]> {
  const kept = new Set(
    servers
      .flatMap(quicListensOf)
      .filter((one) => keepsQuic(parseAddress(one), `listen ${one.args.join(' ')}`, here)),
  );
  const ofTcp = movedLines(servers, here, listensOf);
  const ofUdp = movedLines(servers, here, (server) =>
    quicListensOf(server).filter((one) => kept.has(one)),
  );
  return new Map(servers.map((server) => [server, [...ofTcp(server), ...ofUdp(server)]]));
}

/** Returns the new lines of a server for its `listens`, asked once for each. TCP and UDP ports have words of their own. */
function movedLines(
  servers: readonly Directive[],
  here: Here,
  listens: typeof listensOf,
): typeof listensOf {
  const { said } = here;
  const lines = linesOf(servers, listens);
  const mains = mainLines(lines);
  /** Words of the main host, and the first server, of each port. */
  const mainWords = new Map<number, string[]>();
  const firstServers = new Map<number, Directive>();
  const joined = new Set<string>();
  for (const { port, host, server, listen } of lines) {
    const main = mains.get(port) as Line;
    if (!firstServers.has(port)) firstServers.set(port, server);
    if (host === main.host)
      mainWords.set(port, [...(mainWords.get(port) ?? []), ...wordsOf(listen)]);
    else if (server !== main.server && !joined.has(`${host} ${port}`)) {
      joined.add(`${host} ${port}`);
      said.push(
        `listen ${listen.args[0]} at ${listen.origin}: one with listen ${main.listen.args[0]} at ${main.listen.origin}, whose server answers requests for other names`,
      );
    }
  }
  /** Words that are allowed once, by new address. */
  const socketWords = new Map<string, string>();
  return moveServer;

  function moveServer(server: Directive): Directive[] {
    const moved = new Map<string, { listen: Directive; words: Set<string> }>();
    for (const listen of listens(server)) {
      const address = parseAddress(listen);
      const was = listen.args[0] as string;
      let to: string;
      let words = wordsOf(listen).filter((word) => !leftOut.test(word));
      if (wordsOf(listen).includes('proxy_protocol'))
        said.push(`proxy_protocol at ${server.origin}: left out, load generators do not speak it`);
      if ('socket' in address) to = `unix:${here.sockets.get(address.socket)}`;
      else {
        const { host, port } = movedTo(address.port, here);
        to = `${host}:${port}`;
        words = wordsAt(address.port, hostOf(address), words, listen, server);
      }
      const note = writtenListens(server).includes(listen)
        ? words.filter((word) => word === 'quic').join()
        : `(nginx's own, no listen line at ${server.origin})`;
      noteMove(here, to, `${was} ${note}`.trim());
      const line = moved.get(to) ?? { listen, words: new Set() };
      moved.set(to, line);
      for (const word of words) line.words.add(word);
    }
    return [...moved].map(([to, { listen, words }]) => ({
      ...listen,
      args: [to, ...wordsOnce(to, [...words], listen.origin).map(asWord)],
    }));
  }

  /** The words of a line that the main host of its port has too. The main server becomes the default one. */
  function wordsAt(
    port: number,
    host: string,
    words: readonly string[],
    listen: Directive,
    server: Directive,
  ) {
    const main = mains.get(port) as Line;
    const foreign = words.filter(
      (word) =>
        perServer.has(word) && !defaultWords.has(word) && !mainWords.get(port)?.includes(word),
    );
    if (foreign.length > 0)
      said.push(
        `${foreign.join(' ')} at ${listen.origin}: left out, listen ${main.listen.args[0]} is without`,
      );
    const kept = words.filter(
      (word) => !foreign.includes(word) && (host === main.host || !defaultWords.has(word)),
    );
    return server === main.server && server !== firstServers.get(port) && !isDefault(main)
      ? ['default_server', ...kept]
      : kept;
  }

  /** Words that are allowed once stay on the first line of their address. */
  function wordsOnce(to: string, words: readonly string[], from: string) {
    const once = words.filter((word) => !perServer.has(word)).join(' ');
    const before = socketWords.get(to);
    if (once === '') return [...words];
    if (before === undefined) {
      socketWords.set(to, once);
      return [...words];
    }
    if (once !== before) said.push(`${once} at ${from}: left out, ${to} has ${before}`);
    return words.filter((word) => perServer.has(word));
  }
}
