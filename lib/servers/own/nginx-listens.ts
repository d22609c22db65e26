// The listen lines of a person's nginx config, and their move to free ports of 127.0.0.1.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { asWord, bareWord, type Directive } from '../nginx-config.ts';
import { isLoopback } from '../ports.ts';
import { listensByPort, type Listen } from './redirect.ts';
import { placeOf } from './files.ts';
import { noteMove, type Address, type Here } from './redirect.ts';

/** Ports in one range; each becomes a port of its own here. */
const mostPorts = 100;

/** Throws UserError for what is no address. */
export function parseAddress(listen: Directive): Address {
  const word = bareWord(listen.args[0] ?? '');
  const socket = /^unix:(.+)$/.exec(word)?.[1];
  if (socket !== undefined) return { socket: path.posix.normalize(socket) };
  const { host, ports } = (
    /^(?<ports>\d+(?:-\d+)?)$/.exec(word) ??
    /^(?<host>\[[^\]]+\]|[^:]+)(?::(?<ports>\d+(?:-\d+)?))?$/.exec(word)
  )?.groups ?? { ports: 'none' };
  const [first = NaN, last = first] = (ports ?? '80').split('-').map(Number);
  const count = last - first + 1;
  if (!(first >= 1 && last <= 65_535 && count >= 1))
    throw new UserError(`${placeOf(listen)}: listen ${word} is no address`);
  if (count > mostPorts)
    throw new UserError(
      `${placeOf(listen)}: listen ${word} has ${count} ports, more than the ${mostPorts} that can be given others here`,
    );
  return { ports: Array.from({ length: count }, (_, index) => first + index), host };
}

export function blocksIn(block: readonly Directive[], wanted: string): Directive[] {
  return block.filter(({ name, block: inner }) => name === wanted && inner !== undefined);
}

/** The content of all blocks of that name. */
export function insideOf(block: readonly Directive[], wanted: string): Directive[] {
  return blocksIn(block, wanted).flatMap(({ block: inner = [] }) => inner);
}

/** The blocks that serve HTTP. Throws UserError when there are none. */
export function httpServers(config: readonly Directive[], file: string): Directive[] {
  const servers = blocksIn(insideOf(config, 'http'), 'server');
  if (servers.length === 0)
    throw new UserError(`${file} has no server { } in http { }: there is nothing to load`);
  return servers;
}

/** nginx's own choice for a server without a listen line. */
function defaultListen(server: Directive): Directive {
  return {
    name: 'listen',
    args: [process.getuid?.() === 0 ? '80' : '8000'],
    comments: [],
    origin: server.origin,
    line: server.line,
  };
}

/** The words behind the address of a listen line. */
function wordsOf(listen: Directive): string[] {
  return listen.args.slice(1).map(bareWord);
}

export function isQuic(listen: Directive): boolean {
  return wordsOf(listen).includes('quic');
}

/** The listen lines of one server that are not for HTTP/3, or the one that nginx would take. */
export function listensOf(server: Directive): Directive[] {
  const written = (server.block ?? []).filter(({ name }) => name === 'listen');
  return written.length === 0
    ? [defaultListen(server)]
    : written.filter((listen) => !isQuic(listen));
}

/** The host of an address: '*' for all that mean every one of IPv4. */
export function hostOf(address: Address): string {
  const { host = '*' } = 'ports' in address ? address : {};
  return host === '0.0.0.0' ? '*' : host;
}

/** A listen line for one of its ports. */
interface AtPort {
  port: number;
  host: string;
  server: Directive;
  listen: Directive;
}

function linesOf(servers: readonly Directive[]): AtPort[] {
  return servers.flatMap((server) =>
    listensOf(server).flatMap((listen) => {
      const address = parseAddress(listen);
      return 'ports' in address
        ? address.ports.map((port) => ({ port, host: hostOf(address), server, listen }))
        : [];
    }),
  );
}

/** By port of the config, whose hosts become one address here: `main` is the line of the host that most clients elsewhere reach. */
function joinedByPort(lines: readonly AtPort[]) {
  const ports = new Map<number, AtPort[]>();
  for (const line of lines) {
    const here = ports.get(line.port) ?? [];
    here.push(line);
    ports.set(line.port, here);
  }
  return new Map(
    [...ports].map(([port, here]) => {
      const hosts = new Map<string, AtPort>();
      for (const line of here) {
        const found = hosts.get(line.host);
        if (found === undefined || (isDefault(line) && !isDefault(found)))
          hosts.set(line.host, line);
      }
      const [main, ...others] = [...hosts.values()].sort(
        (a, b) => openness(b.host) - openness(a.host),
      ) as [AtPort, ...AtPort[]];
      const words = new Set(
        here.filter(({ host }) => host === main.host).flatMap(({ listen }) => wordsOf(listen)),
      );
      return [port, { main, others, words, first: here[0]?.server }];
    }),
  );
}

const defaultWords = new Set(['default_server', 'default']);

function isDefault({ listen }: AtPort): boolean {
  return wordsOf(listen).some((word) => defaultWords.has(word));
}

/** The higher, the more clients elsewhere reach that host. */
function openness(host: string): number {
  if (host === '*') return 3;
  return host === '[::]' ? 2 : isLoopback(host) ? 0 : 1;
}

/** One per port, with the protocols of its main host. */
export function nginxListens(config: readonly Directive[], file: string): Listen[] {
  const shared = insideOf(config, 'http');
  const lines = linesOf(httpServers(config, file));
  const joined = joinedByPort(lines);
  return listensByPort(
    lines.map(({ port, host, server, listen }) => {
      const hosts = (server.block ?? [])
        .filter(({ name }) => name === 'server_name')
        .flatMap(({ args }) => args.map(bareWord));
      if (host !== joined.get(port)?.main.host) return { port, tls: false, http2: false, hosts };
      const isOn = (name: string): boolean =>
        (findLast(server.block ?? [], name) ?? findLast(shared, name)) === 'on';
      const words = wordsOf(listen);
      const tls = words.includes('ssl') || isOn('ssl');
      const word = words.includes('http2');
      // Without TLS, the directive `http2 on` leaves HTTP/1.1 beside it; the word in a listen line does not.
      return {
        port,
        tls,
        http2: word || isOn('http2'),
        ...(word && !tls ? { http2Only: true } : {}),
        hosts,
      };
    }),
  );
}

function findLast(block: readonly Directive[], wanted: string): string | undefined {
  return block.findLast(({ name }) => name === wanted)?.args.map(bareWord)[0];
}

/** worker_processes, 1 where the config does not say. Throws UserError when it is neither a number nor auto. */
export function nginxWorkers(config: readonly Directive[]): number | 'server-cores' {
  const workers = config.find(({ name }) => name === 'worker_processes');
  if (findLast(config, 'master_process') === 'off' || workers === undefined) return 1;
  const [word = ''] = workers.args.map(bareWord);
  if (word === 'auto') return 'server-cores';
  if (!/^[1-9]\d{0,3}$/.test(word))
    throw new UserError(
      `${placeOf(workers)}: worker_processes ${word} is not a number of processes`,
    );
  if (Number(word) > 1024)
    throw new UserError(
      `${placeOf(workers)}: worker_processes ${word}: nginx spawns no more than 1024`,
    );
  return Number(word);
}

/** Words of a listen line that each server of an address may have; others are the socket's, and allowed once. */
const perServer = new Set(['ssl', 'http2', 'spdy']);
/** Words that go: the new address is of IPv4, and load generators do not speak the PROXY protocol. */
const leftOut = /^(?:ipv6only=.*|proxy_protocol)$/;

/** The new listen lines of each server, none where it listens to HTTP/3 only. Different addresses may become one. */
export function moveListens(
  servers: readonly Directive[],
  here: Here,
): ReadonlyMap<Directive, Directive[]> {
  const { moved, said } = here;
  const ports = joinedByPort(linesOf(servers));
  /** By new address: the words that are allowed once. */
  const socketWords = new Map<string, string>();

  for (const { main, others } of ports.values()) {
    for (const { listen } of others.filter(({ server }) => server !== main.server)) {
      said.push(
        `listen ${listen.args[0]} at ${placeOf(listen)}: one with listen ${main.listen.args[0]} at ${placeOf(main.listen)}, whose server answers what no server_name is for`,
      );
    }
  }
  return new Map(servers.map((server) => [server, linesOfOne(server)]));

  function linesOfOne(server: Directive): Directive[] {
    const all = (server.block ?? []).filter(({ name }) => name === 'listen');
    for (const quic of all.filter(isQuic))
      said.push(`listen ${quic.args.join(' ')}: left out, HTTP/3 is not compared`);
    const listens = listensOf(server);
    if (listens.some((listen) => wordsOf(listen).includes('proxy_protocol')))
      said.push(`proxy_protocol at ${placeOf(server)}: left out, load generators do not speak it`);
    const lines = new Map<string, { listen: Directive; words: Set<string> }>();
    for (const listen of listens) {
      for (const [address, before, port] of targets(listen)) {
        noteMove(
          here,
          address,
          all.length === 0
            ? `${before} (nginx's own, no listen line at ${placeOf(server)})`
            : before,
        );
        const line = lines.get(address) ?? { listen, words: new Set() };
        lines.set(address, line);
        for (const word of wordsFor(port, listen, server)) line.words.add(word);
      }
    }
    return [...lines].map(([address, { listen, words }]) => ({
      ...listen,
      args: [address, ...allowed(address, [...words], placeOf(listen)).map(asWord)],
    }));
  }

  function targets(listen: Directive): [address: string, before: string, port?: number][] {
    const address = parseAddress(listen);
    if ('socket' in address)
      return [[`unix:${moved.sockets.get(address.socket)}`, listen.args[0] as string]];
    return address.ports.map((port) => [
      `${moved.hostOf(moved.ports.get(port))}:${moved.ports.get(port)}`,
      address.ports.length > 1 ? String(port) : (listen.args[0] as string),
      port,
    ]);
  }

  /** Its words for that port, without those that the main host does not have. */
  function wordsFor(port: number | undefined, listen: Directive, server: Directive): string[] {
    const words = wordsOf(listen).filter((word) => !leftOut.test(word));
    const joined = port === undefined ? undefined : ports.get(port);
    if (joined === undefined) return words;
    const { main, first } = joined;
    const foreign = words.filter((word) => perServer.has(word) && !joined.words.has(word));
    if (foreign.length > 0)
      said.push(
        `${foreign.join(' ')} at ${placeOf(listen)}: left out, listen ${main.listen.args[0]} is without`,
      );
    const isMain = hostOf(parseAddress(listen)) === main.host;
    const kept = words.filter(
      (word) => !foreign.includes(word) && (isMain || !defaultWords.has(word)),
    );
    return server === main.server && server !== first && !isDefault(main)
      ? ['default_server', ...kept]
      : kept;
  }

  /** Words that are allowed once for an address stay on its first line. */
  function allowed(address: string, words: readonly string[], from: string): string[] {
    const isSocketWord = (word: string): boolean => !perServer.has(word) && !defaultWords.has(word);
    const asked = words.filter(isSocketWord).join(' ');
    const before = socketWords.get(address);
    if (asked !== '') socketWords.set(address, before ?? asked);
    if (asked !== '' && asked !== (before ?? asked))
      said.push(`${asked} at ${from}: left out, ${address} has ${before}`);
    return words.filter((word) => before === undefined || !isSocketWord(word));
  }
}
