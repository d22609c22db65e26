// The addresses that a config listens on.
import { UserError } from '../../errors.ts';

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
