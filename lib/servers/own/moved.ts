// What of a person's own config has another place here.
import path from 'node:path';
import type { AdoptPlace } from '../server.ts';

/** Ports of a TCP address (several where it is a range), or the path of a socket. */
export type Address = { ports: readonly number[] } | { socket: string };

/** What of a config's own addresses has moved. */
export interface Moved {
  /** Ports of the config → those of 127.0.0.1 that have taken their places. */
  ports: ReadonlyMap<number, number>;
  sockets: ReadonlyMap<string, string>;
}

/** Gives each port and socket that the config listens on another one; `loaded` gets the place's port. */
export async function moveAddresses(addresses: readonly Address[], loaded: number, place: AdoptPlace): Promise<Moved> {
  const ports = new Map([[loaded, place.port]]);
  const sockets = new Map<string, string>();
  for (const address of addresses) {
    if ('socket' in address) sockets.set(address.socket, sockets.get(address.socket) ?? path.join(place.temp, `${sockets.size + 1}.sock`));
    else for (const port of address.ports) if (!ports.has(port)) ports.set(port, await place.nextPort());
  }
  return { ports, sockets };
}

/** Each log of the config has one of its own here: servers refuse different settings for the same file. */
export class AccessLogs {
  readonly #place: AdoptPlace;
  readonly #files = new Map<string, string>();

  constructor(place: AdoptPlace) {
    this.#place = place;
  }

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  /** @param log as the config names it */
  fileFor(log: string): string {
    const { temp, accessLogFile } = this.#place;
    const ours = this.isEmpty ? accessLogFile : undefined;
    const file = this.#files.get(log) ?? ours ?? path.join(temp, `access-${this.#files.size + 1}.log`);
    this.#files.set(log, file);
    return file;
  }
}

/** How a file is called that ends with the run. */
export const temporary = 'a temporary file';
