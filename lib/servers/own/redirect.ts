// Addresses, files and backends of a user's own config: where they are while it runs here, and the lines that say so.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { RunAs } from '../../process.ts';
import { isLoopback, loopbackAddress } from '../ports.ts';
import { serviceUser } from '../rights.ts';
import type { AdoptPlace, AdoptedConfig, UpstreamAddress } from '../server.ts';

/** A port of a config. */
export interface Listen {
  port: number;
  tls: boolean;
  http2: boolean;
  /** HTTP/1.1 is not spoken there. */
  http2Only?: true;
  /** The names of its hosts, as the config has them. */
  hosts: readonly string[];
}

/** A config before anything is started. */
export interface OwnConfig {
  server: 'nginx' | 'h2o' | 'nghttpd';
  /** Absolute. */
  file: string;
  /** 'server-cores': one per core. */
  workers: number | 'server-cores';
  /** One per port, in the order of the config. */
  listens: readonly Listen[];
}

/** The one that is loaded. Throws UserError when there is none, or more than one. @param asked its port; absent: the only one */
export function chooseListen<T extends Listen>(
  { file, listens }: { file: string; listens: readonly T[] },
  asked: number | undefined,
): T {
  const ports = listens.map(({ port }) => port).join(', ');
  const chosen = asked === undefined ? listens[0] : listens.find(({ port }) => port === asked);
  if (chosen === undefined)
    throw new UserError(
      `${file} ${ports === '' ? 'listens on no TCP port' : `does not listen on port ${asked}; it does on ${ports}`}`,
    );
  if (asked === undefined && listens.length > 1)
    throw new UserError(`${file} listens on the ports ${ports}: say which one is to be loaded`);
  return chosen;
}

/** Merges the entries of each port. */
export function listensByPort(entries: readonly Listen[]): Listen[] {
  const found = new Map<number, Listen>();
  for (const entry of entries) {
    const { port, tls, http2, http2Only, hosts } = found.get(entry.port) ?? entry;
    found.set(port, {
      port,
      tls: tls || entry.tls,
      http2: http2 || entry.http2,
      ...((http2Only ?? entry.http2Only) === true ? { http2Only: true } : {}),
      hosts: [...new Set([...hosts, ...entry.hosts])],
    });
  }
  return [...found.values()];
}

/** Ports of a TCP address (several where it is a range) and its host (absent: all), or the path of a socket. */
export type Address = { ports: readonly number[]; host?: string | undefined } | { socket: string };

/** Replaces each port and socket on which the config listens; `loaded` gets the place's port. */
async function moveAddresses(addresses: readonly Address[], loaded: number, place: AdoptPlace) {
  /** Ports of the config → those that have taken their places. */
  const ports = new Map([[loaded, place.port]]);
  /** Ports that were reached at an address of loopback: at 127.0.0.1 of the others somebody else may listen. */
  const loopbackPorts = new Set<number>();
  const sockets = new Map<string, string>();
  for (const address of addresses) {
    if ('socket' in address) {
      sockets.set(
        address.socket,
        sockets.get(address.socket) ?? path.join(place.temp, `${sockets.size + 1}.sock`),
      );
      continue;
    }
    for (const port of address.ports) {
      while (!ports.has(port)) {
        const next = await place.nextPort();
        if (![...ports.values()].includes(next)) ports.set(port, next);
      }
      if (hasLoopback(address.host)) loopbackPorts.add(port);
    }
  }
  /** The host of a new port: the place's address for the loaded one, loopback for the others. */
  const hostOf = (port: number | undefined): string =>
    port === place.port ? place.address : loopbackAddress;
  return { ports, hostOf, loopbackPorts, sockets };
}

/** A config while it is made to run here. */
export interface Here {
  place: AdoptPlace;
  moved: Awaited<ReturnType<typeof moveAddresses>>;
  /** Of the config. */
  folder: string;
  /** Of the server; undefined: the current user. */
  user: RunAs | undefined;
  /** The old addresses by the new one, which has "unix:" before the path of a socket. */
  moves: Map<string, Set<string>>;
  /** Other differences, one line each. */
  said: string[];
  /** Of access logs. */
  logFor: PathFor;
  /** Backends other than the config itself. */
  upstreams: UpstreamAddress[];
}

/**
 * Replaces the config's addresses, and finds the user that it may run as: a service's user, or nobody.
 * @param addresses that the config listens on; `loaded` gets the place's port
 * @param names the user, and the group, that it names
 */
export async function beginHere(
  file: string,
  addresses: readonly Address[],
  loaded: number,
  place: AdoptPlace,
  names: readonly string[],
): Promise<Here> {
  const [name, group] = names;
  const found =
    place.user === undefined || name === undefined ? place.user : await serviceUser(name, group);
  const user = typeof found === 'string' ? place.user : found;
  const said =
    typeof found === 'string' ? [`user ${names.join(' ')} → ${user?.name}, since ${found}`] : [];
  return {
    place,
    moved: await moveAddresses(addresses, loaded, place),
    folder: path.dirname(file),
    user,
    moves: new Map(),
    said,
    logFor: pathsIn(place.temp),
    upstreams: [],
  };
}

/** Notes a new address of the config. */
export function noteMove({ moves }: Here, to: string, was: string): void {
  moves.set(to, (moves.get(to) ?? new Set()).add(was));
}

/** The parts that all adopted configs share. @param printed the config, after all changes are in `here` */
export function adoptedHere(
  file: string,
  printed: string,
  workers: OwnConfig['workers'],
  { place, user, upstreams, moves, said }: Here,
): Omit<AdoptedConfig, 'tls' | 'protocol' | 'hosts' | 'args'> {
  const moved = [...moves].map(
    ([to, was]) =>
      `listen ${[...was].join(', ')} → ${to.startsWith('unix:') ? 'a temporary socket' : to}`,
  );
  return {
    text: `# ${file} as it runs here: with what it includes, and with addresses, logs and the like redirected.\n${printed}`,
    workers: workers === 'server-cores' ? place.cores : workers,
    redirections: [...new Set([...moved, ...said])],
    upstreams,
    user,
  };
}

/** Whether a listen line with that host is reached at an address of loopback. */
function hasLoopback(host: string | undefined): boolean {
  return (
    host === undefined || ['', '*', '0.0.0.0', '::', '[::]'].includes(host) || isLoopback(host)
  );
}

/** The path of a file here: `original` as the config names it; `name` gets a number, access.log becomes access-1.log. */
export type PathFor = (original: string, name: string) => string;

/** Gives each log or folder of the config its own path in `temp`: servers refuse different settings for the same file. */
export function pathsIn(temp: string): PathFor {
  const paths = new Map<string, string>();
  return (original, file) => {
    const { name, ext } = path.parse(file);
    const found = paths.get(original) ?? path.join(temp, `${name}-${paths.size + 1}${ext}`);
    paths.set(original, found);
    return found;
  };
}

/** The server's standard error. */
export const runLog = 'error.log of this run';

/** The path at which the server's user can read a key or the like at its start; says in `said` if it is a copy. */
export function handOver(words: string, file: string, { place, folder, user, said }: Here): string {
  const own = path.resolve(folder, file);
  const readable = place.handOver(own, folder);
  if (readable !== own)
    said.push(`${words} → a copy for its start, since it is closed to ${user?.name}`);
  return readable;
}

/** Files that end with the server. */
export const temporary = 'a temporary file';

/**
 * Says in `said` that the config's code runs, which may be a stranger's.
 * @param name of the directive; `where`: FILE:LINE
 * @throws UserError when root would start it without --trust-config
 */
export function allowCode(
  name: string,
  where: string,
  { place: { user, trustConfig }, said }: Here,
): void {
  if (user !== undefined && !trustConfig) {
    throw new UserError(
      `${where}: ${name} runs code of the config's own, and bakeoff was started by root: see what the code does and give --trust-config, or start bakeoff as another user`,
    );
  }
  said.push(
    `${name}: runs as it is, the files that it writes and the addresses that it calls are not redirected`,
  );
}

/** The error about a target elsewhere. */
export const leaving =
  'may leave this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config';

const defaultPorts: Record<string, number> = {
  'http:': 80,
  'https:': 443,
  'grpc:': 80,
  'grpcs:': 443,
};

/**
 * The target as it has to be here: the config's own address becomes its new one. Says which others are loaded.
 * @param target host:port, a URL, or unix:PATH with or without a scheme
 * @param words the directive, as written; `where`: FILE:LINE
 * @param names of upstream blocks, in lower case, which are checked themselves
 * @param asksResolver a DNS resolver is asked for names, as nginx does with a variable anywhere
 * @throws UserError when it is another machine, or depends on a variable
 */
export function localTarget(
  target: string,
  words: string,
  where: string,
  { moved, said, upstreams }: Here,
  names: ReadonlySet<string> = new Set(),
  asksResolver = target.includes('$'),
): string {
  const other = (address: UpstreamAddress): string => {
    said.push(loadedToo(words));
    upstreams.push(address);
    return target;
  };
  const [, before = '', socket, after = ''] =
    /^((?!unix:)\w+:\/\/)?unix:([^:]+)(.*)$/s.exec(target) ?? [];
  if (socket !== undefined) {
    const own = path.posix.normalize(socket);
    const movedTo = moved.sockets.get(own);
    return movedTo === undefined ? other({ socket: own }) : `${before}unix:${movedTo}${after}`;
  }
  const {
    scheme = '',
    authority = '',
    rest = '',
  } = /^(?<scheme>\w+:\/\/)?(?<authority>[^/?$]*)(?<rest>.*)$/s.exec(target)?.groups ?? {};
  const { host, port } =
    /^(?<host>\[[^\]]*\]|[^:]+)(?::(?<port>\d+))?$/.exec(authority)?.groups ?? {};
  const directive = `${where}: ${words}`;
  // $request_uri always begins with / or ?. Any other variable could continue the name of the host.
  if (rest.startsWith('$') && !/^\$(?:request_uri\b|\{request_uri\})/.test(rest)) {
    throw new UserError(
      `${directive} may leave this machine, a variable says to where: name an address of 127.0.0.1`,
    );
  }
  if (host === undefined) throw new UserError(`${directive} ${leaving}`);
  // With a port it is a name for the resolver.
  if (names.has(host.toLowerCase()) && port === undefined) return target;
  if (!isLoopback(host) || (asksResolver && /^localhost$/i.test(host)))
    throw new UserError(`${directive} ${leaving}`);
  const asked = Number(port ?? defaultPorts[scheme.replace('//', '')] ?? 80);
  const movedTo = moved.loopbackPorts.has(asked) ? moved.ports.get(asked) : undefined;
  return movedTo === undefined
    ? other({ port: asked })
    : `${scheme}${moved.hostOf(movedTo)}:${movedTo}${rest}`;
}

/** Says that a backend is loaded. */
export function loadedToo(directive: string): string {
  return `${directive}: what runs there is loaded too`;
}
