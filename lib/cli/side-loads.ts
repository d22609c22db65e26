// Address, page, load and server of each side of a comparison.
import { prefixed, usageError } from '../errors.ts';
import { present } from '../present.ts';
import { shownUrl } from '../secrets.ts';
import type { LoadProfile, Page, ServerSpec } from '../scenario/model.ts';
import { defaultPort, type AskedPages } from '../scenario/pages.ts';
import type { Listen } from '../servers/index.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import type { Cores } from '../machine/cores.ts';
import { hasStreams, isHttp2, protocolName } from '../scenario/load.ts';
import { readLoadLine, type LoadLine } from '../scenario/load/generators.ts';
import type { Given } from './sides.ts';
import type { AskedRun } from './asked.ts';

export interface Side extends Given {
  listen: Listen;
  load: LoadProfile;
  page: Pick<Page, 'path' | 'host' | 'requests' | 'status'>;
  server: ServerSpec;
  /** The source of its requests; absent: no feature. */
  recorded?: AskedRun['recorded'];
}

/** Decides page, address, load and server of each side. Throws UserError (exit code 2) for arguments that do not fit. */
export function sidesWithLoads(
  given: readonly Given[],
  asked: AskedRun,
  { generatorCpus }: Pick<Cores, 'generatorCpus'>,
): Side[] {
  const paths = new Set<string>();
  for (const { source } of given)
    if (source.kind === 'address' && source.url.path !== '/') paths.add(source.url.path);
  // The path of the only address that has a path is meant for all.
  const [usualPath = '/'] = paths.size === 1 ? paths : [];
  const wished = given.map((side) => {
    const text = asked.load(side.name);
    const line = text === undefined ? undefined : asLoad(() => readLoadLine(text));
    const { load, host } = (line && asLoad(() => line.over())) ?? {};
    const wish = wishFor(side, asked, usualPath, line);
    const listen = listenOf(side, wish, asked.h3 === true || load?.protocol === 'h3');
    return { side: { ...side, listen }, line, wish: { ...wish, ...present({ host }) } };
  });
  const hasStreams = (side: Pick<Side, 'listen' | 'source'>) => asked.h3 || prefersHttp2(side);
  const streams = wished.every(({ side }) => hasStreams(side)) ? 10 : 1;
  const threads = Math.min(generatorCpus.length, 100);
  return wished.map(({ side, line, wish: { path, host, requests } }): Side => {
    const usual = hasStreams(side)
      ? `h2load -c 100 -m ${streams} -t ${threads} -D 10`
      : `wrk -c 100 -t ${threads} -d 10`;
    return {
      ...side,
      page: { path, ...present({ host, requests, status: asked.status }) },
      load: asAsked(loadFor(side, line ?? readLoadLine(usual)), asked),
      server: serverOf(side, asked),
      ...present({ recorded: asked.recorded }),
    };
  });
}

/** Adds the request's own flags to a load. Throws UserError (exit code 2) if they do not fit it. */
function asAsked(line: LoadProfile, { request, h3 }: AskedRun): LoadProfile {
  let load: LoadProfile = line;
  if (h3 && line.protocol !== 'h3')
    load = { ...line, protocol: 'h3', command: `${line.command} --h3` };
  const command = request === undefined ? load.command : `${load.command} ${request.shown}`;
  return { ...load, ...request?.of(load), command };
}

/** What is asked for; `flag` says so. */
type Wish = AskedPages & { flag: string };

function wishFor(
  { given, source }: Given,
  { pages }: AskedRun,
  usualPath: string,
  line: LoadLine | undefined,
): Wish {
  if (pages !== undefined && line?.url !== undefined)
    throw usageError(`${pages.flag} and the URL in --load: leave one of them out`);
  const wish = pages ?? { flag: '--load', path: usualPath, ...line?.url };
  if (source.kind !== 'address') return wish;
  const { path, host } = source.url;
  if (path !== '/' && (pages ?? line?.url) !== undefined)
    throw usageError(
      `${wish.flag} and the path of ${given}, ${shownUrl(path)}: leave one of them out`,
    );
  return { ...present({ host }), ...wish, ...(path === '/' ? {} : { path }) };
}

const asLoad = <T>(read: () => T): T => prefixed(read, '--load: ');

/** Chooses the only address, or the one that the URL's scheme and port name. */
function listenOf({ given, source }: Given, { scheme, port, flag }: Wish, h3: boolean): Listen {
  // Commands and addresses show when they are started.
  const unknown = { http2: true, hosts: [] };
  if (source.kind === 'command') return { ...unknown, port: 0, tls: h3 || scheme === 'https' };
  const says = `${flag} says ${port === undefined ? '' : `port ${port} over `}${scheme}`;
  if (source.kind === 'address') {
    const { scheme: addressScheme, port: addressPort } = source.url;
    if ((scheme ?? addressScheme) !== addressScheme || (port ?? addressPort) !== addressPort)
      throw usageError(`${says}, and ${given} is ${source.origin}: write that, or a path alone`);
    return { ...unknown, port: addressPort, tls: addressScheme === 'https' };
  }
  let { listens } = source.config;
  // HTTP/3 has streams, whether or not the config has HTTP/2.
  if (h3)
    listens = listens
      .filter(({ http3, tls }) => http3 && tls)
      .map((listen) => ({ ...listen, http2: true }));
  const [first] = listens;
  if (first === undefined && h3)
    throw usageError(
      `${given} has no port with both TLS and HTTP/3: give it one (nginx 1.25 and newer: listen 443 ssl; listen 443 quic;), or load it over another protocol`,
    );
  if (first === undefined)
    throw usageError(`${given} listens on no TCP port: there is nothing to load`);
  const fitting = listens.filter(({ tls }) => tls === (scheme === 'https') || scheme === undefined);
  const wanted = port ?? (scheme && defaultPort[scheme]);
  // The server is started at another address anyway, so if the config listens on one port only, its number does not matter.
  const chosen =
    listens.length === 1 || (port === undefined && scheme !== undefined && fitting.length === 1)
      ? fitting[0]
      : fitting.find((listen) => listen.port === wanted);
  if (chosen !== undefined) return chosen;
  const all = listens.map(({ port, tls }) => `${port}${tls ? ' (TLS)' : ''}`).join(', ');
  // A port without TLS mostly redirects to the other.
  const example = fitting.find(({ tls }) => tls) ?? fitting[0] ?? first;
  const host = example.hosts.find((name) => /^[\w-]+(\.[\w-]+)+$/.test(name)) ?? 'localhost';
  const secure = example.tls ? 'https' : 'http';
  const { origin } = new URL(`${secure}://${host}:${example.port}`);
  throw usageError(
    `${scheme === undefined ? '' : `${says}, and `}${given} listens on the ${listens.length === 1 ? 'port' : 'ports'} ${all}: say which to load, such as --url ${origin}/`,
  );
}

/** Returns whether browsers would speak HTTP/2 with it: without TLS they prefer HTTP/1.1. */
function prefersHttp2({ listen, source }: Pick<Side, 'listen' | 'source'>): boolean {
  return source.kind === 'config' && listen.http2 && (listen.tls || listen.http2Only === true);
}

function loadFor(
  { given, listen: { port, tls, http2, http2Only } }: Pick<Side, 'given' | 'listen'>,
  line: LoadLine,
): LoadProfile {
  const { load } = asLoad(() => line.over(tls ? 'https' : 'http'));
  let why: string | undefined;
  if (!isHttp2(load.protocol) && http2Only) why = `speaks HTTP/2 only on port ${port}: take h2load`;
  if (isHttp2(load.protocol) && !http2)
    why = `does not speak HTTP/2 on port ${port}: take wrk, or h2load --h1`;
  if (why !== undefined)
    throw usageError(`--load: ${load.command} is ${protocolName(load)}, and ${given} ${why}`);
  // A load of HTTP/1.1 does not say by itself that it is over TLS.
  return tls && !hasStreams(load.protocol) ? { tls: {}, ...load } : load;
}

function serverOf(
  { name, source, listen }: Pick<Side, 'name' | 'source' | 'listen'>,
  { launch }: AskedRun,
): ServerSpec {
  const { cgroup, port, binary, upstreams } = launch(name);
  if (source.kind === 'address')
    return { name: 'address', origin: source.origin, ...present({ cgroup }) };
  if (source.kind === 'command') {
    return {
      name: 'command',
      command: source.command,
      folder: source.folder ?? fromCallersFolder('.'),
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
