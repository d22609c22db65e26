// What of each side is compared: which of its addresses, over which protocol, under which load.
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { enumeration } from '../format.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import { isHttp2, protocolNames } from '../scenario/load.ts';
import { readLoadLine, type LoadLine } from '../scenario/load/generators.ts';
import type { LoadProfile, Page } from '../scenario/model.ts';
import {
  type PageList,
  type PageWeights,
  defaultPort,
  pathOrUrl,
  type UrlParts,
} from '../scenario/pages.ts';
import type { Listen } from '../servers/index.ts';
import type { Given, OfSides } from './compare-given.ts';
import { asWords } from './words.ts';

/** One of those that are compared. */
export interface Side extends Given {
  listen: Listen;
  load: LoadProfile;
  page: Pick<Page, 'path' | 'host' | 'weights' | 'status'>;
}

/** What the person wants to be asked for. */
export interface Asked {
  /** A path, or a URL. */
  url?: string;
  /** Several pages, instead. */
  urls?: PageList;
  /** Of the answer; absent: 200. */
  status?: number;
  /** Load generators' command lines. */
  load: OfSides;
}

/**
 * Decides for all sides. The default load has 100 connections, over HTTP/2 where a side prefers it, with 10 streams if all of them do.
 * @throws UserError (exit code 2) for words that do not fit the sides
 */
export function sidesOf(
  given: readonly Given[],
  asked: Asked,
  cores: Pick<Cores, 'generatorCpus' | 'generatorHosts'>,
): Side[] {
  const paths = new Set(
    given.flatMap(({ source }) =>
      source.kind === 'address' && source.url.path !== '/' ? [source.url.path] : [],
    ),
  );
  // What one address names is meant of all.
  const path = paths.size === 1 ? ([...paths][0] as string) : '/';
  const lineOf = (name: string): LoadLine | undefined => {
    const text = asked.load(name);
    return text === undefined ? undefined : asLoad(() => readLoadLine(text));
  };
  const wishes = given.map((side) => wishFor(side, asked, path, lineOf(side.name)));
  const listens = given.map((side, index): Listening => ({
    ...side,
    listen: listenOf(side, wishes[index] as Wish),
  }));
  const streams = listens.every(prefersHttp2) ? 10 : 1;
  return listens.map((side, index): Side => {
    const { path, host, weights } = wishes[index] as Wish;
    return {
      ...side,
      page: { path, ...present({ host, weights, status: asked.status }) },
      load: loadFor(side, lineOf(side.name) ?? defaultLine(side, streams, generatorCores(cores))),
    };
  });
}

/** What is asked of a side, by the URL that is for all, its own load's, or its own address; otherwise it is the usual path. */
function wishFor(
  { given, source }: Given,
  asked: Asked,
  usualPath: string,
  line: LoadLine | undefined,
): Wish {
  const ofLoad = line === undefined ? undefined : asLoad(() => line.over());
  const wishes: Wish[] = [
    ...(asked.url === undefined ? [] : [{ flag: '--url', ...pathOrUrl(asked.url, '--url') }]),
    ...(asked.urls === undefined
      ? []
      : [{ flag: '--urls', ...asked.urls.url, ...present({ weights: asked.urls.weights }) }]),
    ...(line?.url === undefined ? [] : [{ flag: '--load', ...line.url }]),
  ];
  if (wishes.length > 1)
    throw new UserError(
      `${wishes.map(({ flag }) => (flag === '--load' ? 'the URL in --load' : flag)).join(' and ')}: leave one of them out`,
      2,
    );
  const wish = wishes[0] ?? { flag: '--load', path: usualPath };
  const host = ofLoad?.host ?? wish.host;
  if (source.kind !== 'address') return { ...wish, ...present({ host }) };
  const { url } = source;
  const isAsked = wishes.length > 0;
  if (url.path !== '/' && isAsked)
    throw new UserError(
      `${wish.flag} and the path of ${given}, ${url.path}: leave one of them out`,
      2,
    );
  return {
    ...wish,
    path: isAsked || url.path === '/' ? wish.path : url.path,
    ...present({ host: host ?? url.host }),
  };
}

type Listening = Omit<Side, 'load' | 'page'>;
type Wish = Partial<UrlParts> & { path: string; weights?: PageWeights; flag: string };

const asLoad = <T>(read: () => T): T => asWords(read, '--load: ');

/** What is not known of a command or an address shows when it is tried. */
const unknown = { http2: true, hosts: [] };

/** The address that is loaded: the only one, or the one that the URL's scheme and port name. */
function listenOf({ given, source }: Given, { scheme, port, flag }: Wish): Listen {
  if (source.kind === 'command') return { ...unknown, port: 0, tls: scheme === 'https' };
  if (source.kind === 'address') {
    const { scheme: own, port: there } = source.url;
    if (scheme !== undefined && scheme !== own)
      throw new UserError(
        `${flag} says ${scheme}://, and ${given} is ${source.origin}: write ${own}://`,
        2,
      );
    if (port !== undefined && port !== there)
      throw new UserError(
        `${flag} says port ${port}, and ${given} is ${source.origin}: leave the port out, or write ${there}`,
        2,
      );
    return { ...unknown, port: there, tls: own === 'https' };
  }
  const { listens } = source.config;
  const all = listens.map((listen) => `${listen.port}${listen.tls ? ' (TLS)' : ''}`).join(', ');
  const [first, ...others] = listens;
  if (first === undefined)
    throw new UserError(`${given} listens on no TCP port: there is nothing to load`);
  if (scheme === undefined) {
    if (others.length === 0) return first;
    // Where a site has TLS, what listens without it mostly sends people there.
    const { tls, port: example } = listens.find((listen) => listen.tls) ?? first;
    throw new UserError(
      `${given} listens on the ports ${all}: say which one is to be loaded, such as --url ${tls ? 'https' : 'http'}://localhost:${example}/`,
      2,
    );
  }
  const fitting = listens.filter(({ tls }) => tls === (scheme === 'https'));
  if (fitting.length === 0) {
    const [has, other] = scheme === 'https' ? ['no TLS', 'http'] : ['TLS', 'https'];
    throw new UserError(
      `${flag} says ${scheme}://, and ${given} has ${has} on ${others.length === 0 ? `port ${first.port}` : `all its ports, ${all}`}: write ${other}://`,
      2,
    );
  }
  // Where there is one only, its number is as good as any: the address is another one anyway.
  if (others.length === 0 || (port === undefined && fitting.length === 1))
    return fitting[0] as Listen;
  const wanted = port ?? defaultPort[scheme];
  const found = fitting.find((listen) => listen.port === wanted);
  if (found === undefined)
    throw new UserError(
      `${flag} says port ${wanted} over ${scheme}, and ${given} listens on the ports ${all}: name one of them, such as --url ${scheme}://localhost:${(fitting[0] as Listen).port}/`,
      2,
    );
  return found;
}

/** Whether it is known to be HTTP/2 that browsers would speak with it: without TLS they speak HTTP/1.1 where they can. */
function prefersHttp2({ listen, source }: Listening): boolean {
  return source.kind === 'config' && listen.http2 && (listen.tls || listen.http2Only === true);
}

function defaultLine(side: Listening, streams: number, threads: number): LoadLine {
  return readLoadLine(
    prefersHttp2(side)
      ? `h2load -c 100 -m ${streams} -t ${Math.min(threads, 100)} -D 10`
      : `wrk -c 100 -t ${Math.min(threads, 100)} -d 10`,
  );
}

/** The load of a line, if the config speaks its protocol. */
function loadFor(
  { given, listen: { port, tls, http2, http2Only } }: Listening,
  line: LoadLine,
): LoadProfile {
  const { load } = asLoad(() => line.over(tls ? 'https' : 'http'));
  const refused = (why: string): UserError =>
    new UserError(
      `--load: ${load.command} is ${protocolNames(load.protocol)}, and ${given} ${why}`,
      2,
    );
  if (isHttp2(load.protocol) && !http2)
    throw refused(`does not speak HTTP/2 on port ${port}: take wrk, or h2load --h1`);
  if (!isHttp2(load.protocol) && http2Only)
    throw refused(`speaks HTTP/2 only on port ${port}: take h2load`);
  return load;
}

/** What a reader has to know of sides that are not loaded alike. */
export function differences(sides: readonly Side[]): string[] {
  const over = ({ given, load }: Side): string =>
    `${given} is loaded over ${protocolNames(load.protocol)}`;
  const encrypting = sides.filter(({ listen }) => listen.tls);
  return [
    ...(new Set(sides.map(({ page }) => page.path)).size === 1
      ? []
      : [
          `The pages differ: ${sides.map(({ given, page }) => `${given} ${page.path}`).join(', ')}; part of what is seen is theirs.`,
        ]),
    ...(new Set(sides.map(({ load }) => isHttp2(load.protocol))).size === 1
      ? []
      : [`The protocols differ: ${sides.map(over).join(', ')}; part of what is seen is theirs.`]),
    ...(encrypting.length === 0 || encrypting.length === sides.length
      ? []
      : [
          `Only ${enumeration(encrypting.map(({ given }) => given))} ${encrypting.length === 1 ? 'encrypts' : 'encrypt'} (TLS): part of what is seen is its cost.`,
        ]),
  ];
}
