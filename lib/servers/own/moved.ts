// What of a person's own config has another place here, and what is said of it.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { RunAs } from '../../process.ts';
import { isLoopback, loopbackAddress } from '../ports.ts';
import { serviceUser } from '../rights.ts';
import type { AdoptedConfig, AdoptPlace, UpstreamAddress } from '../server.ts';
import type { OwnConfig } from './listens.ts';

/** Ports of a TCP address (several where it is a range) and its host (absent: all), or the path of a socket. */
export type Address = { ports: readonly number[]; host?: string | undefined } | { socket: string };

/** Gives each port and socket that the config listens on another one; `loaded` gets the place's port. */
async function moveAddresses(addresses: readonly Address[], loaded: number, place: AdoptPlace) {
  /** Ports of the config → those that have taken their places. */
  const ports = new Map([[loaded, place.port]]);
  /** Those of them that were reached at an address of loopback: at others' 127.0.0.1 somebody else may listen. */
  const loopbackPorts = new Set<number>();
  const sockets = new Map<string, string>();
  for (const address of addresses) {
    if ('socket' in address) {
      sockets.set(address.socket, sockets.get(address.socket) ?? path.join(place.temp, `${sockets.size + 1}.sock`));
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
  /** Where one of these is: the loaded one at the place's address, the others on loopback. */
  const hostOf = (port: number | undefined): string => (port === place.port ? place.address : loopbackAddress);
  return { ports, hostOf, loopbackPorts, sockets };
}

/** A config while it is made to run here. */
export interface Here {
  place: AdoptPlace;
  moved: Awaited<ReturnType<typeof moveAddresses>>;
  /** Of the config. */
  folder: string;
  /** Whom it runs as; undefined: who starts it. */
  user: RunAs | undefined;
  /** By new address, "unix:" before the path of a socket: what it was. */
  moves: Map<string, Set<string>>;
  /** What else is different, one line each. */
  said: string[];
  /** Of access logs. */
  logFor: PathFor;
  /** What it passes requests on to that is not the config itself. */
  upstreams: UpstreamAddress[];
}

/**
 * Gives its addresses others, and finds whom it may run as.
 * @param addresses that the config listens on; `loaded` gets the place's port
 * @param names the user, and the group, that it names. A stranger's may name who it likes: it gets a service's user, or nobody
 */
export async function beginHere(file: string, addresses: readonly Address[], loaded: number, place: AdoptPlace, names: readonly string[]): Promise<Here> {
  const [name, group] = names;
  const found = place.user === undefined || name === undefined ? place.user : await serviceUser(name, group);
  const user = typeof found === 'string' ? place.user : found;
  const said = typeof found === 'string' ? [`user ${names.join(' ')} → ${user?.name}, since ${found}`] : [];
  return { place, moved: await moveAddresses(addresses, loaded, place), folder: path.dirname(file), user, moves: new Map(), said, logFor: pathsIn(place.temp), upstreams: [] };
}

/** Keeps that an address of the config is another one here. */
export function noteMove({ moves }: Here, to: string, was: string): void {
  moves.set(to, (moves.get(to) ?? new Set()).add(was));
}

/**
 * What is alike in all configs that run here.
 * @param printed the config, once `here` knows all that is different
 * @param workers that it asks for
 */
export function adoptedHere(file: string, printed: string, workers: OwnConfig['workers'], { place, user, upstreams, moves, said }: Here): Omit<AdoptedConfig, 'tls' | 'protocol' | 'hosts' | 'args'> {
  const moved = [...moves].map(([to, was]) => `listen ${[...was].join(', ')} → ${to.startsWith('unix:') ? 'a temporary socket' : to}`);
  return {
    text: `# ${file} as it runs here: with what it includes, and with addresses, logs and the like redirected.\n${printed}`,
    workers: workers === 'server-cores' ? place.cores : workers,
    redirections: [...new Set([...moved, ...said])],
    upstreams,
    user,
  };
}

/** Whether who listens at that host of a listen line is reached at an address of loopback. */
function hasLoopback(host: string | undefined): boolean {
  return host === undefined || ['', '*', '0.0.0.0', '::', '[::]'].includes(host) || isLoopback(host);
}

/** The path that something has here: `original` as the config names it; `name` gets a number of its own, access.log becomes access-1.log. */
export type PathFor = (original: string, name: string) => string;

/** Gives each log or folder of the config a path of its own in `temp`: servers refuse different settings for the same file. */
export function pathsIn(temp: string): PathFor {
  const paths = new Map<string, string>();
  return (original, file) => {
    const { name, ext } = path.parse(file);
    const found = paths.get(original) ?? path.join(temp, `${name}-${paths.size + 1}${ext}`);
    paths.set(original, found);
    return found;
  };
}

/** Where logs of errors go: to the server's standard error. */
export const runLog = 'error.log of this run';

/** The path of a key or the like as the server's user can read it at its start; says in `said` where that is another one. */
export function handOver(words: string, file: string, { place, folder, user, said }: Here): string {
  const own = path.resolve(folder, file);
  const readable = place.handOver(own, folder);
  if (readable !== own) said.push(`${words} → a copy for its start, since it is closed to ${user?.name}`);
  return readable;
}

/** How files are called that end with the server. */
export const temporary = 'a temporary file';

/**
 * Says in `said` that the config's code runs. It may be a stranger's, and root may not be told to run it by a look at two web servers.
 * @param name of what has the code run
 * @param where FILE:LINE
 * @throws UserError when it is root that would start it, and the person has not said that they know what it does
 */
export function allowCode(name: string, where: string, { place: { user, trustConfig }, said }: Here): void {
  if (user !== undefined && !trustConfig) {
    throw new UserError(`${where}: ${name} runs code of the config's own, and bakeoff was started by root: see what the code does and give --trust-config, or start bakeoff as another user`);
  }
  said.push(`${name}: runs as it is, the files that it writes and the addresses that it calls are not redirected`);
}
