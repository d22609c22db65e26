// URLs of users, and lists of a server's pages.
import { isIP } from 'node:net';
import { usageError } from '../errors.ts';
import { present } from '../present.ts';
import { textOfFile } from './load/flags.ts';
import { shownUrl } from '../secrets.ts';
import { mostPages, mostWeight, type LoadRequest, type Page } from './model.ts';

export interface UrlParts {
  scheme: 'http' | 'https';
  /** The Host to send, with a port unless it is the scheme's; absent for an IP address and localhost. */
  host?: string;
  /** The port in the URL; absent if there is none. */
  port?: number;
  /** Begins with /, with the query. */
  path: string;
}

export const defaultPort = { http: 80, https: 443 } as const;

/** @param where starts messages. @throws UserError (exit code 2) for all but http and https URLs without a user name */
export function urlParts(text: string, where: string): UrlParts {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\/[^/]/i.test(text))
    throw usageError(`${where}: "${text}" is no URL such as http://localhost/index.html`);
  if (url.username !== '' || url.password !== '')
    throw usageError(
      `${where}: a user name in a URL cannot be honoured here: give a header, Authorization: Basic …`,
    );
  // URL leaves out the scheme's port.
  const [, port] = /^[^:]+:\/\/[^/\\?#]*:(\d+)(?:[/\\?#]|$)/.exec(text) ?? [];
  const isName =
    isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0 && !/(^|\.)localhost$/.test(url.hostname);
  return {
    scheme: url.protocol === 'https:' ? 'https' : 'http',
    ...present({
      host: isName ? url.host : undefined,
      port: port === undefined ? undefined : Number(port),
    }),
    path: url.pathname + url.search,
  };
}

/** The pages to ask for, and where, as far as the user names them. */
export interface AskedPages extends Partial<UrlParts> {
  path: string;
  /** Absent for a single page. */
  requests?: readonly LoadRequest[];
}

/** Requests that a feature's flag asks for, instead of a URL or a list. */
export interface AskedRequests {
  /** The requests, at least one. The first one is used if there is room for only one page. */
  requests: readonly LoadRequest[];
  host?: string;
  /** Lines for the user, on what is in the load and what is left out. */
  notes: readonly string[];
  /** Name of their source in messages, such as HAR. */
  record?: string;
  /** Any share of the requests may have another status than the record says. */
  acceptsDifferences?: true;
}

/** Reads a URL, or a path, which begins with /. @param where starts messages @throws UserError (exit code 2) for all else */
export function pathOrUrl(where: string, text: string): AskedPages {
  if (text.startsWith('/')) return { path: urlParts(`http://localhost${text}`, where).path };
  if (text.includes('://')) return urlParts(text, where);
  throw usageError(
    `${where}: "${text}" is no URL such as http://localhost/index.html, and no path such as /index.html`,
  );
}

/** The TLS server name (SNI) for requests to this Host; undefined for an IP address. */
export function serverNameOf(host: string | undefined): string | undefined {
  const name = host?.replace(/:\d+$/, '') ?? '';
  return name === '' || name.startsWith('[') || isIP(name) !== 0 ? undefined : name;
}

/** Pages of one server, or one page with requests of a log: the load mixes them. */
type Mix = Required<Pick<Page, 'requests'>>;

/** Returns whether the load mixes requests, instead of repeating one. */
export function isMix<Some extends Pick<Page, 'requests'>>(page: Some): page is Some & Mix {
  return page.requests !== undefined;
}

/** The page's requests; the only one if it has no list. */
export function requestsOf(page: Pick<Page, 'path' | 'requests'>): readonly LoadRequest[] {
  return isMix(page) ? page.requests : [{ target: page.path }];
}

/** The paths of a page's requests, with their queries. */
export function pathsOf(page: Pick<Page, 'path' | 'requests'>): string[] {
  return requestsOf(page).map(({ target }) => target);
}

/** The path that stands for a page's requests; of a mix without a query, which may be secret in a log. */
export function pathOfPage(page: Pick<Page, 'path' | 'requests'>): string {
  return isMix(page) ? page.path.replace(/\?.*$/s, '') : page.path;
}

/** The page with these requests instead of its own; undefined: the page as it is. */
export function withRequests<Some extends Page>(page: Some, requests: Page['requests']): Some {
  return requests === undefined || requests === page.requests ? page : { ...page, requests };
}

/** The name of pages without figures of their own, as the engine has it (`OtherPages`). */
export const restOfPages = 'others';

/**
 * The name of the page that a request's figures are counted for, as the engine makes it (`pageName`).
 * @param ofLoad the load's method
 */
export function pageNameOf(
  { method, target }: Pick<LoadRequest, 'method' | 'target'>,
  ofLoad = 'GET',
): string {
  const path = target.replace(/\?.*$/s, '');
  const made = method ?? ofLoad;
  return made === 'GET' ? path : `${made} ${path}`;
}

/** "/a", "POST /a". A request of a log has a status of its own: its name leaves out the values of the query, because they may be secret. */
export function requestName({ method = 'GET', target, status }: LoadRequest): string {
  const shown = status === undefined ? target : target.replace(/=[^&]*/g, '=…');
  return `${method === 'GET' ? '' : `${method} `}${shownUrl(shown)}`;
}

const mostListBytes = 16e6;

/**
 * Reads a list of pages: on each line a path or URL, and its weight, a whole number (default 1).
 * @param flag as the user wrote it, such as `--urls`
 * @throws UserError (exit code 2) that names the line
 */
export function readPageList(flag: string, file: string): AskedPages {
  const list = `${flag} ${file}`;
  const weights = new Map<string, number>();
  let first: { target: string; parts: AskedPages } | undefined;
  let port: number | undefined;
  const text = textOfFile(flag, file, mostListBytes).replace(/^\uFEFF/, '');
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const entry = line.replace(/(^|\s)#.*$/, '').trim();
    if (entry === '') continue;
    const where = `${list}, line ${index + 1}`;
    const [, target = '', weight = '1'] = /^(\S+)(?:\s+(\d+))?$/.exec(entry) ?? [];
    const number = Number(weight);
    if (target === '' || number < 1 || number > mostWeight)
      throw usageError(
        `${where}: write a path or URL, and its weight, a whole number from 1 to ${mostWeight}`,
      );
    const parts = pathOrUrl(where, target);
    if (parts.scheme !== undefined) {
      first ??= { target, parts };
      port ??= parts.port;
      if (addressOf(parts) !== addressOf(first.parts))
        throw usageError(
          `${where}: ${target} has another scheme, host or port than ${first.target}: all pages have to be one server's`,
        );
    }
    weights.set(parts.path, number + (weights.get(parts.path) ?? 0));
    if (weights.size > mostPages)
      throw usageError(`${where}: more than ${mostPages} pages are too many: leave some out`);
  }
  const [path] = weights.keys();
  if (path === undefined)
    throw usageError(`${list} has no page: write one a line, such as /index.html`);
  const pages: AskedPages = { ...first?.parts, ...present({ port }), path };
  if (weights.size > 1)
    pages.requests = [...weights].map(([target, weight]) => ({ target, weight }));
  return pages;
}

function addressOf({ scheme = 'http', host, port = defaultPort[scheme] }: AskedPages): string {
  return JSON.stringify([scheme, host, port]);
}
