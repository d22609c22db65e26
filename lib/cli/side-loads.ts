// Address, page and load of each side of a comparison.
import { total } from '../analysis/statistics.ts';
import { asWords, UserError, usageError } from '../errors.ts';
import { present } from '../present.ts';
import { shownUrl } from '../scenario/load/flags.ts';
import type { LoadRequest, LoadProfile, Page, ServerSpec } from '../scenario/model.ts';
import { defaultPort, pathOrUrl, type UrlParts, type PageList } from '../scenario/pages.ts';
import type { Listen } from '../servers/index.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import { isHttp2, protocolNames } from '../scenario/load.ts';
import { readLoadLine, type LoadLine } from '../scenario/load/generators.ts';
import type { Given } from './sides.ts';
import type { Asked, Launch } from './asked.ts';

export interface Side extends Given {
  listen: Listen;
  load: LoadProfile;
  page: Pick<Page, 'path' | 'host' | 'requests' | 'status'>;
  /** Any share of the requests may have another status than the log says. */
  acceptsDifferences?: true;
}

/** Decides page, address and load of each side. Throws UserError (exit code 2) for words that do not fit. */
export function sidesOf(
  given: readonly Given[],
  asked: Asked,
  cores: Pick<Cores, 'generatorCpus' | 'generatorHosts'>,
): Side[] {
  const paths = given.flatMap(({ source }) =>
    source.kind === 'address' && source.url.path !== '/' ? [source.url.path] : [],
  );
  // The path of the only address that has a path is meant for all.
  const usualPath = new Set(paths).size === 1 ? (paths[0] as string) : '/';
  const wished = given.map((side) => {
    const text = asked.load(side.name);
    const line = text === undefined ? undefined : asLoad(() => readLoadLine(text));
    const wish = wishFor(side, asked, usualPath, line);
    const isH3 = asked.h3 === true || line?.over().load.protocol === 'h3';
    const listen = listenOf(side, wish, isH3);
    return { side: { ...side, listen }, line, wish };
  });
  const streams = wished.every(({ side }) => prefersHttp2(side)) ? 10 : 1;
  const threads = Math.min(generatorCores(cores), 100);
  return wished.map(({ side, line, wish: { path, host, requests } }): Side => {
    const usual = prefersHttp2(side)
      ? `h2load -c 100 -m ${streams} -t ${threads} -D 10`
      : `wrk -c 100 -t ${threads} -d 10`;
    return {
      ...side,
      page: { path, ...present({ host, requests, status: asked.status }) },
      load: asAsked(loadFor(side, line ?? readLoadLine(usual)), asked),
      ...present({ acceptsDifferences: asked.acceptsDifferences }),
    };
  });
}

/** The load with the request's own flags, and with the times of a log. Throws UserError (exit code 2) if they do not fit. */
function asAsked(line: LoadProfile, { request, traffic, h3 }: Asked): LoadProfile {
  const load: LoadProfile =
    h3 && line.protocol !== 'h3'
      ? { ...line, protocol: 'h3', command: `${line.command} --h3` }
      : line;
  const command = request === undefined ? load.command : `${load.command} ${request.shown}`;
  const made = { ...load, ...request?.of(load), command };
  const { replaySeconds } = traffic ?? {};
  if (traffic === undefined || replaySeconds === undefined) return made;
  if (load.rate !== undefined)
    throw usageError(`--pace and ${load.command}: each says when requests are made: leave one out`);
  const { durationSeconds: _, ...rest } = made;
  const requests = total(traffic.requests, ({ weight = 1 }) => weight);
  return { ...rest, arrivals: 'logged', requests, rate: requests / replaySeconds };
}

type Wish = Partial<UrlParts> & Pick<PageList, 'requests'> & { path: string; flag: string };

function wishFor(
  { given, source }: Given,
  { url, urls, traffic }: Asked,
  usualPath: string,
  line: LoadLine | undefined,
): Wish {
  const wishes: Wish[] = [
    ...(url === undefined ? [] : [{ flag: '--url', ...pathOrUrl(url, '--url') }]),
    ...(urls === undefined
      ? []
      : [{ flag: '--urls', ...urls.url, ...present({ requests: urls.requests }) }]),
    ...(traffic === undefined
      ? []
      : [
          {
            flag: traffic.flag,
            path: (traffic.requests[0] as LoadRequest).target,
            requests: traffic.requests,
            ...present({ host: traffic.host }),
          },
        ]),
    ...(line?.url === undefined ? [] : [{ flag: '--load', ...line.url }]),
  ];
  if (wishes.length > 1)
    throw usageError(
      `${wishes.map(({ flag }) => (flag === '--load' ? 'the URL in --load' : flag)).join(' and ')}: leave one of them out`,
    );
  const wish = wishes[0] ?? { flag: '--load', path: usualPath };
  const host = (line && asLoad(() => line.over()))?.host ?? wish.host;
  if (source.kind !== 'address') return { ...wish, ...present({ host }) };
  const own = source.url;
  if (own.path !== '/' && wishes.length > 0)
    throw usageError(
      `${wish.flag} and the path of ${given}, ${shownUrl(own.path)}: leave one of them out`,
    );
  return {
    ...wish,
    path: own.path === '/' ? wish.path : own.path,
    ...present({ host: host ?? own.host }),
  };
}

const asLoad = <T>(read: () => T): T => asWords(read, '--load: ');

/** Chooses the only address, or the one that the URL's scheme and port name. */
function listenOf({ given, source }: Given, { scheme, port, flag }: Wish, h3: boolean): Listen {
  // Commands and addresses show when they are started.
  const unknown = { http2: true, hosts: [] };
  if (source.kind === 'command') return { ...unknown, port: 0, tls: h3 || scheme === 'https' };
  const says = `${flag} says ${port === undefined ? '' : `port ${port} over `}${scheme}`;
  if (source.kind === 'address') {
    const { scheme: own, port: there } = source.url;
    if ((scheme ?? own) !== own || (port ?? there) !== there)
      throw usageError(`${says}, and ${given} is ${source.origin}: write that, or a path alone`);
    return { ...unknown, port: there, tls: own === 'https' };
  }
  // HTTP/3 has streams, whether or not the config has HTTP/2.
  const listens = source.config.listens.flatMap((one) =>
    !h3 ? [one] : one.http3 && one.tls ? [{ ...one, http2: true }] : [],
  );
  const [first] = listens;
  if (first === undefined && h3)
    throw usageError(
      `${given} has no port with both TLS and HTTP/3: give it one (nginx 1.25 and newer: listen 443 ssl; listen 443 quic;), or load it over another protocol`,
    );
  if (first === undefined)
    throw new UserError(`${given} listens on no TCP port: there is nothing to load`);
  const fitting = listens.filter(({ tls }) => tls === (scheme === 'https') || scheme === undefined);
  const wanted = port ?? (scheme && defaultPort[scheme]);
  // The server is started at another address anyway, so the number of an only port does not matter.
  const found =
    listens.length === 1 || (port === undefined && scheme !== undefined && fitting.length === 1)
      ? fitting[0]
      : fitting.find((listen) => listen.port === wanted);
  if (found !== undefined) return found;
  const all = listens.map(({ port, tls }) => `${port}${tls ? ' (TLS)' : ''}`).join(', ');
  // A port without TLS mostly redirects to the other.
  const example = fitting.find(({ tls }) => tls) ?? fitting[0] ?? first;
  throw usageError(
    `${scheme === undefined ? '' : `${says}, and `}${given} listens on the ${listens.length === 1 ? 'port' : 'ports'} ${all}: say which to load, such as --url ${example.tls ? 'https' : 'http'}://localhost:${example.port}/`,
  );
}

/** Whether browsers would speak HTTP/2 with it: without TLS they prefer HTTP/1.1. */
function prefersHttp2({ listen, source }: Pick<Side, 'listen' | 'source'>): boolean {
  return source.kind === 'config' && listen.http2 && (listen.tls || listen.http2Only === true);
}

/** The load of a command line. Throws UserError if the config does not speak its protocol. */
function loadFor(
  { given, listen: { port, tls, http2, http2Only } }: Pick<Side, 'given' | 'listen'>,
  line: LoadLine,
): LoadProfile {
  const { load } = asLoad(() => line.over(tls ? 'https' : 'http'));
  const why = !isHttp2(load.protocol)
    ? http2Only && `speaks HTTP/2 only on port ${port}: take h2load`
    : !http2 && `does not speak HTTP/2 on port ${port}: take wrk, or h2load --h1`;
  if (why)
    throw usageError(
      `--load: ${load.command} is ${protocolNames(load.protocol)}, and ${given} ${why}`,
    );
  return load;
}

export function serverOf(
  { source, listen }: Pick<Side, 'source' | 'listen'>,
  { port, binary, upstreams }: Launch,
): ServerSpec {
  if (source.kind === 'address') return { name: 'address', origin: source.origin };
  if (source.kind === 'command') {
    return {
      name: 'command',
      command: source.command,
      folder: fromCallersFolder('.'),
      ...present({ port, tls: listen.tls || undefined }),
    };
  }
  const { server, file, workers, listens, within } = source.config;
  return {
    name: server,
    config: [file],
    workers,
    asIs: present({ port: listens.length > 1 ? listen.port : undefined, within, upstreams }),
    ...present({ binary }),
  };
}
