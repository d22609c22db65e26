// What of two configs is compared: which of their addresses, over which protocol, under which load.
import { UserError } from '../errors.ts';
import { isHttp2 } from '../analysis/loads.ts';
import { protocolNames } from '../format.ts';
import { loadOfLine } from '../scenario/load.ts';
import type { LoadProfile, Page } from '../scenario/model.ts';
import { urlParts, type UrlParts } from '../scenario/url.ts';
import type { Listen, OwnConfig } from '../servers/index.ts';

/** A config as the person named it, and what it says. */
export interface Given { given: string; config: OwnConfig }

/** One of the two. */
export interface Side extends Given {
  listen: Listen;
  load: LoadProfile;
  page: Pick<Page, 'path' | 'host'>;
}

/** What the person wants to be asked for. */
export interface Asked {
  /** A path, or a URL. */
  url?: string;
  /** A load generator's command line. */
  load?: string;
}

/**
 * Decides for both configs. Without a load of the person's it is 100 connections: HTTP/2 with 10 streams each where both
 * speak it, one request at a time where only one of them does, and HTTP/1.1 where none does.
 * @param threads of the load generator
 * @throws UserError (exit code 2) for words that do not fit the configs
 */
export function sidesOf(configs: readonly [Given, Given], asked: Asked, threads: number): [Side, Side] {
  const line = asked.load === undefined ? undefined : ofLoad(() => loadOfLine(asked.load as string));
  if (asked.url !== undefined && line?.url !== undefined) throw new UserError('--url and the URL in --load: leave one of them out', 2);
  const wish = asked.url === undefined ? { flag: '--load', path: '/', ...line?.url } : { flag: '--url', ...wishOf(asked.url) };
  const listens = configs.map((config) => ({ ...config, listen: listenOf(config, wish) })) as [Listening, Listening];
  const http2 = listens.filter(prefersHttp2).length;
  const host = line?.host ?? wish.host;
  const page = { path: wish.path, ...(host === undefined ? {} : { host }) };
  return listens.map((side): Side => ({
    ...side, page,
    load: asked.load === undefined ? defaultLoad(side, http2 === 2 ? 10 : 1, threads) : loadFor(side, asked.load),
  })) as [Side, Side];
}

type Listening = Pick<Side, 'given' | 'config' | 'listen'>;
type Wish = Partial<UrlParts> & { path: string; flag: string };

function ofLoad<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UserError ? new UserError(`--load: ${error.message}`, 2) : error;
  }
}

function wishOf(url: string): Partial<UrlParts> & { path: string } {
  try {
    return url.startsWith('/') ? { path: urlParts(`http://localhost${url}`, '--url').path } : urlParts(url, '--url');
  } catch (error) {
    throw error instanceof UserError ? new UserError(`${error.message}, and no path such as /index.html`, 2) : error;
  }
}

/** The address that is loaded: the only one, or the one that the URL's scheme and port name. */
function listenOf({ given, config: { listens } }: Given, { scheme, port, flag }: Wish): Listen {
  const all = listens.map((listen) => `${listen.port}${listen.tls ? ' (TLS)' : ''}`).join(', ');
  const [first, ...others] = listens;
  if (first === undefined) throw new UserError(`${given} listens on no TCP port: there is nothing to load`);
  if (scheme === undefined) {
    if (others.length === 0) return first;
    throw new UserError(`${given} listens on the ports ${all}: say which one is to be loaded, such as --url ${first.tls ? 'https' : 'http'}://localhost:${first.port}/`, 2);
  }
  const fitting = listens.filter(({ tls }) => tls === (scheme === 'https'));
  if (fitting.length === 0) {
    const [has, other] = scheme === 'https' ? ['no TLS', 'http'] : ['TLS', 'https'];
    throw new UserError(`${flag} says ${scheme}://, and ${given} has ${has} on ${others.length === 0 ? `port ${first.port}` : `all its ports, ${all}`}: write ${other}://`, 2);
  }
  // Where there is one only, its number is as good as any: the address is another one anyway.
  if (others.length === 0 || (port === undefined && fitting.length === 1)) return fitting[0] as Listen;
  const wanted = port ?? { http: 80, https: 443 }[scheme];
  const found = fitting.find((listen) => listen.port === wanted);
  if (found === undefined) throw new UserError(`${flag} says port ${wanted} over ${scheme}, and ${given} listens on the ports ${all}: name one of them, such as --url ${scheme}://localhost:${(fitting[0] as Listen).port}/`, 2);
  return found;
}

/** Whether it is HTTP/2 that browsers would speak with it: without TLS they speak HTTP/1.1 where they can. */
function prefersHttp2({ listen }: Listening): boolean {
  return listen.http2 && (listen.tls || listen.http2Only === true);
}

function defaultLoad(side: Listening, streams: number, threads: number): LoadProfile {
  const line = prefersHttp2(side)
    ? `h2load -c 100 -m ${streams} -t ${Math.min(threads, 100)} -D 10`
    : `wrk -c 100 -t ${Math.min(threads, 100)} -d 10`;
  return loadFor(side, line);
}

/** The load of a line, if the config speaks its protocol. */
function loadFor({ given, listen }: Listening, line: string): LoadProfile {
  const { load } = ofLoad(() => loadOfLine(line, listen.tls ? 'https' : 'http'));
  const problem = problemOfProtocol(load.protocol, listen);
  if (problem !== undefined) throw new UserError(`--load: ${load.command} is ${protocolNames(load.protocol)}, and ${given} ${problem}`, 2);
  return load;
}

function problemOfProtocol(protocol: LoadProfile['protocol'], { port, http2, http2Only }: Listen): string | undefined {
  if (protocol === 'http/1.0' || protocol === 'http/1.1') return http2Only ? `speaks HTTP/2 only on port ${port}: take h2load` : undefined;
  if (http2) return undefined;
  return `does not speak HTTP/2 on port ${port}: take wrk, or h2load --h1`;
}

/** What a reader has to know of two sides that are not loaded alike. */
export function differences([a, b]: readonly [Side, Side]): string[] {
  const over = ({ given, load }: Side): string => `${given} is loaded over ${protocolNames(load.protocol)}`;
  return [
    ...(isHttp2(a) === isHttp2(b) ? [] : [`The protocols differ: ${over(a)}, ${over(b)}; part of what is seen is theirs.`]),
    ...(a.listen.tls === b.listen.tls ? [] : [`Only ${(a.listen.tls ? a : b).given} encrypts (TLS): part of what is seen is its cost.`]),
  ];
}
