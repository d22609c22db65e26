// Addresses and files of a person's own config, which are others here, and the lines that say so.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { RunAs } from '../../process.ts';
import { isLoopback, loopbackAddress } from '../ports.ts';
import { serviceUser } from '../rights.ts';
import type { AdoptedConfig, AdoptPlace, UpstreamAddress } from '../server.ts';
import type { OwnConfig } from './listens.ts';

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
