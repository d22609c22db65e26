// Where a config passes requests on to: that has to be this machine, since what is loaded loads it too.
import { UserError } from '../../errors.ts';
import type { Moved } from './moved.ts';

/** Whether an address, as a URL or a config has it, is of this machine only. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[(?:::1|(?:0+:){7}0*1)\])$/i.test(host);
}

/** What is wrong with a target elsewhere. */
export const leaving = 'leaves this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config';

const defaultPorts: Record<string, number> = { 'http:': 80, 'https:': 443, 'grpc:': 80, 'grpcs:': 443 };

/**
 * The target as it has to be here: one that is the config itself follows it to its new address.
 * @param target host:port, a URL, or unix:PATH with or without a scheme
 * @param names of upstream blocks, which are judged where they stand
 * @param directive with FILE:LINE, for the message
 * @throws UserError when it is another machine, or only a variable says
 */
export function localTarget(target: string, names: ReadonlySet<string>, moved: Moved, directive: string): string {
  const { scheme = '', authority = '', rest = '' } = /^(?<scheme>\w+:\/\/)?(?<authority>unix:[^:]+|[^/?$]*)(?<rest>.*)$/s.exec(target)?.groups ?? {};
  const socket = /^unix:(.+)$/.exec(authority)?.[1];
  if (socket !== undefined) return `${scheme}unix:${moved.sockets.get(socket) ?? socket}${rest}`;
  const { host = '', port } = /^(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>\d+))?$/.exec(authority)?.groups ?? {};
  if (host === '' || (rest.startsWith('$') && !/^\$(?:request_uri|uri|document_uri|is_args|args)\b/.test(rest))) {
    throw new UserError(`${directive} may leave this machine, a variable says to where: name an address of 127.0.0.1`);
  }
  if (names.has(host)) return target;
  if (!isLoopback(host)) throw new UserError(`${directive} ${leaving}`);
  const movedTo = moved.ports.get(Number(port ?? defaultPorts[scheme.replace('//', '')] ?? 80));
  return movedTo === undefined ? target : `${scheme}127.0.0.1:${movedTo}${rest}`;
}
