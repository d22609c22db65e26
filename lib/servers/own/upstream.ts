// Where a config passes requests on to: that has to be this machine, since what is loaded loads it too.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { isLoopback } from '../ports.ts';
import type { UpstreamAddress } from '../server.ts';
import type { Here } from './moved.ts';

/** What is wrong with a target elsewhere. */
export const leaving = 'may leave this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config';

const defaultPorts: Record<string, number> = { 'http:': 80, 'https:': 443, 'grpc:': 80, 'grpcs:': 443 };

/**
 * The target as it has to be here: one that is the config itself follows it to its new address. Says whom else is loaded.
 * @param target host:port, a URL, or unix:PATH with or without a scheme
 * @param words what names it, as it is written; `where`: FILE:LINE
 * @param names of upstream blocks, in lower case: they are judged where they stand
 * @param asksResolver a name is not the machine's own to resolve; with a variable anywhere, nginx asks its resolver
 * @throws UserError when it is another machine, or only a variable says
 */
export function localTarget(
  target: string, words: string, where: string, { moved, said, upstreams }: Here, names: ReadonlySet<string> = new Set(), asksResolver = target.includes('$'),
): string {
  const other = (address: UpstreamAddress): string => {
    said.push(loadedToo(words));
    upstreams.push(address);
    return target;
  };
  const [, before = '', socket, after = ''] = /^((?!unix:)\w+:\/\/)?unix:([^:]+)(.*)$/s.exec(target) ?? [];
  if (socket !== undefined) {
    const own = path.posix.normalize(socket);
    const movedTo = moved.sockets.get(own);
    return movedTo === undefined ? other({ socket: own }) : `${before}unix:${movedTo}${after}`;
  }
  const { scheme = '', authority = '', rest = '' } = /^(?<scheme>\w+:\/\/)?(?<authority>[^/?$]*)(?<rest>.*)$/s.exec(target)?.groups ?? {};
  const { host, port } = /^(?<host>\[[^\]]*\]|[^:]+)(?::(?<port>\d+))?$/.exec(authority)?.groups ?? {};
  const directive = `${where}: ${words}`;
  // Directly behind the address only $request_uri may stand: it begins with / or ?, whatever the client asks for and the config
  // says. Any other could go on with the name of a host: also $uri, by a rewrite, and $is_args, which may be empty.
  if (rest.startsWith('$') && !/^\$(?:request_uri\b|\{request_uri\})/.test(rest)) {
    throw new UserError(`${directive} may leave this machine, a variable says to where: name an address of 127.0.0.1`);
  }
  if (host === undefined) throw new UserError(`${directive} ${leaving}`);
  // With a port, or one that only the request makes known, it is a name for the resolver.
  if (names.has(host.toLowerCase()) && port === undefined) return target;
  if (!isLoopback(host) || (asksResolver && /^localhost$/i.test(host))) throw new UserError(`${directive} ${leaving}`);
  const asked = Number(port ?? defaultPorts[scheme.replace('//', '')] ?? 80);
  const movedTo = moved.loopbackPorts.has(asked) ? moved.ports.get(asked) : undefined;
  return movedTo === undefined ? other({ port: asked }) : `${scheme}${moved.hostOf(movedTo)}:${movedTo}${rest}`;
}

/** What is said of a target that is somebody else's. */
export function loadedToo(directive: string): string {
  return `${directive}: what runs there is loaded too`;
}
