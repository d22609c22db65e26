// Backends of a config: they have to be on this machine, since they are loaded too.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { isLoopback } from '../ports.ts';
import type { UpstreamAddress } from '../server.ts';
import type { Here } from './moved.ts';

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
