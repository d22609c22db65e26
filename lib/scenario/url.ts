// What a URL of a person's says of a page here: the address itself is the server's that bakeoff starts.
import { isIP } from 'node:net';
import { UserError } from '../errors.ts';

export interface UrlParts {
  scheme: 'http' | 'https';
  /** As the request's Host says it, with a port that is not the scheme's; absent for an address and localhost. */
  host?: string;
  /** As it is written; absent where none is. */
  port?: number;
  /** Begins with /; with the query. */
  path: string;
}

export const defaultPort = { http: 80, https: 443 } as const;

/** `where` starts the message. Throws UserError (exit code 2) for what is no URL of http or https, and with a user name in it. */
export function urlParts(text: string, where: string): UrlParts {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\/[^/]/i.test(text))
    throw new UserError(`${where}: "${text}" is no URL such as http://localhost/index.html`, 2);
  if (url.username !== '' || url.password !== '')
    throw new UserError(
      `${where}: a user name in a URL cannot be honoured here: give a header, Authorization: Basic …`,
      2,
    );
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  // URL leaves out the one that is the scheme's.
  const [, port] = /^[^:]+:\/\/[^/\\?#]*:(\d+)(?:[/\\?#]|$)/.exec(text) ?? [];
  if (Number(port) === 0)
    throw new UserError(
      `${where}: ${text} has port 0, where nothing can listen: give the server's own`,
      2,
    );
  const named =
    isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0 && !/(^|\.)localhost$/.test(url.hostname);
  return {
    scheme,
    ...(named ? { host: url.host } : {}),
    ...(port === undefined ? {} : { port: Number(port) }),
    path: url.pathname + url.search,
  };
}

/** Of a URL, or of a path, which begins with /. `where` starts the message. Throws UserError (exit code 2) for what is neither. */
export function pathOrUrl(
  text: string,
  where: string,
): UrlParts | { path: string; scheme?: never } {
  if (!text.startsWith('/') && !text.includes('://'))
    throw new UserError(
      `${where}: "${text}" is no URL such as http://localhost/index.html, and no path such as /index.html`,
      2,
    );
  return text.startsWith('/')
    ? { path: urlParts(`http://localhost${text}`, where).path }
    : urlParts(text, where);
}

/** The name that TLS asks for (SNI) where a request says this Host; undefined for an address, which is no name. */
export function serverNameOf(host: string | undefined): string | undefined {
  const name = host?.replace(/:\d+$/, '') ?? '';
  return name === '' || name.startsWith('[') || isIP(name) !== 0 ? undefined : name;
}
