// What a URL of a person's says of a page here: the address itself is the server's that bakeoff starts.
import { isIP } from 'node:net';
import { UserError } from '../errors.ts';
import { textOfFile } from './load/flags.ts';
import type { Page } from './model.ts';

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

// Several pages of one server, each with its share of the requests: as a file lists them, and as k6 is told of them.

/** By path, in the order of the list. */
export type PageWeights = NonNullable<Page['weights']>;

/** Of all pages. */
export function pagePaths({ path, weights }: Pick<Page, 'path' | 'weights'>): string[] {
  return weights === undefined ? [path] : Object.keys(weights);
}

export interface PageList {
  /** Its first page, and the address where a line names one. */
  url: Partial<UrlParts> & { path: string };
  /** Absent where there is one page only. */
  weights?: PageWeights;
}

export const mostPages = 100_000;
export const mostWeight = 1_000_000_000;
const mostListBytes = 16 * 1024 ** 2;

/**
 * Reads a list of pages: on each line a path or a URL, and a whole number, its weight, which is 1 when left out.
 * @param flag as the person wrote it, e.g. `--urls`
 * @throws UserError (exit code 2) that names the line
 */
export function readPageList(flag: string, file: string): PageList {
  const list = `${flag} ${file}`;
  const weights = new Map<string, number>();
  let first: { line: number; target: string; parts: UrlParts } | undefined;
  let port: number | undefined;
  for (const [index, line] of textOfFile(flag, file, mostListBytes)
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const [target, weight = '1', more] = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (target === undefined || target === '') continue;
    const where = `${list}, line ${index + 1}`;
    if (more !== undefined)
      throw new UserError(`${where}: "${more}" is too much: give a path or URL, and its weight`, 2);
    if (/^\d+$/.test(target) && /^(\/|https?:)/.test(weight))
      throw new UserError(`${where}: the weight comes second: ${weight} ${target}`, 2);
    const number = Number(weight);
    if (!/^\d+$/.test(weight) || number < 1 || number > mostWeight)
      throw new UserError(
        `${where}: the weight "${weight}" has to be a whole number from 1 to ${mostWeight}`,
        2,
      );
    const parts = pathOrUrl(target, where);
    if (parts.scheme !== undefined) {
      first ??= { line: index + 1, target, parts };
      port ??= parts.port;
      if (addressOf(parts) !== addressOf(first.parts)) {
        throw new UserError(
          `${where}: ${target} has another scheme, host or port than ${first.target} (line ${first.line}): all pages have to be one server's`,
          2,
        );
      }
    }
    const sum = number + (weights.get(parts.path) ?? 0);
    if (sum > mostWeight)
      throw new UserError(
        `${where}: ${parts.path} has a weight of more than ${mostWeight} in all: give smaller ones`,
        2,
      );
    weights.set(parts.path, sum);
    if (weights.size > mostPages)
      throw new UserError(`${where}: more than ${mostPages} pages are too many: leave some out`, 2);
  }
  const [path] = weights.keys();
  if (path === undefined)
    throw new UserError(
      `${list} has no page: write one a line, such as /index.html, or /index.html 3 with its weight`,
      2,
    );
  return {
    url: { ...first?.parts, ...(port === undefined ? {} : { port }), path },
    ...(weights.size === 1 ? {} : { weights: Object.fromEntries(weights) }),
  };
}

function addressOf({ scheme, host, port }: UrlParts): string {
  return JSON.stringify([scheme, host, port ?? defaultPort[scheme]]);
}
