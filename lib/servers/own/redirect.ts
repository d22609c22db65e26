// New addresses, files and backends for the copy of a user's config that runs here.
import { once } from 'node:events';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { addressIn, UserError } from '../../errors.ts';
import { isLoopback, loopbackAddress, type UpstreamAddress } from '../ports.ts';
import type { AdoptPlace } from '../server.ts';

export interface Listen {
  port: number;
  tls: boolean;
  http2: boolean;
  /** It does not speak HTTP/1.1. */
  http2Only?: true;
  /** The UDP port of that number speaks it. */
  http3?: true;
  /** Names as in the config. */
  hosts: readonly string[];
}

export interface OwnConfig {
  server: 'nginx' | 'h2o' | 'nghttpd';
  file: string;
  workers: number | 'server-cores';
  /** Each port once, in order. */
  listens: readonly Listen[];
  /** nginx's config in whose http block it runs; absent: it is whole. */
  within?: string;
  logFormats?: readonly string[] | undefined;
}

/** `asked`, or the only one. @throws UserError */
export function chooseListen(
  file: string,
  listens: readonly Listen[],
  asked: number | undefined,
): Listen {
  const ports = listens.map(({ port }) => port).join(', ');
  const chosen = listens.find(({ port }) => port === (asked ?? port));
  if (chosen === undefined)
    throw new UserError(
      `${file} ${ports === '' ? 'listens on no TCP port' : `does not listen on port ${asked}; it does on ${ports}`}`,
    );
  if (asked === undefined && listens.length > 1)
    throw new UserError(`${file} listens on the ports ${ports}: say which one is to be loaded`);
  return chosen;
}

export function listensByPort(entries: readonly Listen[]): Listen[] {
  const byPort = new Map<number, { listen: Listen; hosts: Set<string> }>();
  for (const entry of entries) {
    const { listen: before, hosts } = byPort.get(entry.port) ?? { listen: entry, hosts: new Set() };
    for (const host of entry.hosts) hosts.add(host);
    const [tls, http2] = [before.tls || entry.tls, before.http2 || entry.http2];
    byPort.set(entry.port, { listen: { ...entry, ...before, tls, http2 }, hosts });
  }
  return [...byPort.values()].map(({ listen, hosts }) => ({ ...listen, hosts: [...hosts] }));
}

/** All hosts if there is no `host`; or a Unix socket. */
export type ConfigAddress = { port: number; host?: string | undefined } | { socket: string };

function nameOf(address: ConfigAddress): string {
  return 'socket' in address
    ? `unix:${address.socket}`
    : `${plainHost(address.host)}:${address.port}`;
}

/** '*' for all, 127.0.0.1 for this machine. */
function plainHost(host = '*'): string {
  if (isLoopback(host)) return loopbackAddress;
  return ['0.0.0.0', '::', '[::]'].includes(host) ? '*' : host;
}

/** The host of a port that most other machines' clients reach. */
export function mostPublicHost(addresses: readonly ConfigAddress[], port: number): string {
  const hosts = addresses.flatMap((address) =>
    'port' in address && address.port === port ? plainHost(address.host) : [],
  );
  return hosts.includes('*')
    ? '*'
    : (hosts.find((host) => host !== loopbackAddress) ?? loopbackAddress);
}

export function isAtHost(address: ConfigAddress, host: string): boolean {
  return 'port' in address && plainHost(address.host) === host;
}

/** Code in a config that answers requests, or a program that h2o starts. In a text or a comment such words cost a longer warm-up. */
const codeInConfig =
  /\b(?:mruby\.handler|fastcgi\.spawn|\w+_by_lua|js_(?:content|set|filter|access|(?:header|body)_filter)|perl)/;

/** A config while its copy is made. */
export type ConfigCopy = Awaited<ReturnType<typeof beginCopy>>;

/** The most public address of the port `loaded` becomes the place's, all others a free port or socket. */
export async function beginCopy(
  file: string,
  addresses: readonly ConfigAddress[],
  loaded: number,
  place: AdoptPlace,
) {
  const loadedAt = `${place.address}:${place.port}`;
  /** New addresses by the config's own. */
  const fresh = new Map([[`${mostPublicHost(addresses, loaded)}:${loaded}`, loadedAt]]);
  for (const address of addresses) {
    const name = nameOf(address);
    if (fresh.has(name)) continue;
    const socket = path.join(place.temp, `${fresh.size}.sock`);
    const to =
      'socket' in address ? `unix:${socket}` : `${loopbackAddress}:${await place.nextPort()}`;
    fresh.set(name, to);
  }
  /** Old addresses by new. */
  const moves = new Map<string, Set<string>>();
  const notes: string[] = [];
  const upstreams: UpstreamAddress[] = [];
  const temporaryFiles = new Map<string, string>();

  const copy = {
    place,
    /** Relative names begin here. */
    folder: path.dirname(place.within ?? file),
    /** Other changes, a line each. */
    notes,

    /** HOST:PORT or unix:PATH; undefined if it does not listen there. */
    movedTo: (address: ConfigAddress): string | undefined =>
      fresh.get(nameOf(address)) ??
      ('port' in address ? fresh.get(`*:${address.port}`) : undefined),

    /** Notes a listen line's new address; undefined for HTTP/3 that is not loaded. */
    move(address: ConfigAddress, written: string, isQuic: boolean): string | undefined {
      if (isQuic && !(place.http3 && 'port' in address && address.port === loaded)) {
        const what = place.http3 ? 'another port' : 'HTTP/3';
        notes.push(`listen ${written}: left out, ${what} is not loaded`);
        return undefined;
      }
      const to = isQuic ? loadedAt : (copy.movedTo(address) as string);
      moves.set(to, (moves.get(to) ?? new Set()).add(written));
      return to;
    },

    noteBackend(line: string, address: UpstreamAddress): void {
      notes.push(`${line}: what runs there is loaded too`);
      upstreams.push(address);
    },

    /** Each `original`, a log or folder, has one. @param name gets a number: access-1.log */
    temporaryFile(original: string, name: string): string {
      const { name: stem, ext } = path.parse(name);
      const next = path.join(place.temp, `${stem}-${temporaryFiles.size + 1}${ext}`);
      const to = temporaryFiles.get(original) ?? next;
      temporaryFiles.set(original, to);
      return to;
    },

    /** Common to all. @param printed the changed config */
    adopted(printed: string, workers: OwnConfig['workers']) {
      const moved = [...moves].map(([to, was]) => {
        const place = to.startsWith('unix:') ? 'a temporary socket' : to;
        return `listen ${[...was].join(', ')} → ${place}`;
      });
      return {
        text: `# ${file} as it runs here: with its includes, and with addresses, logs and the like redirected.\n${printed}`,
        workers: workers === 'server-cores' ? place.cores : workers,
        redirections: [...new Set([...moved, ...notes])],
        upstreams,
        runsCode: codeInConfig.test(printed),
      };
    },
  };
  return copy;
}

export function noteUser(user: string | undefined, { notes, place }: ConfigCopy): void {
  if (user !== place.user?.name)
    notes.push(`user ${user} → ${place.user?.name ?? 'the user who starts bakeoff'}`);
}

/** Ends with the server. */
export const runLog = 'error.log of this run';
export const temporary = 'a temporary file';

export const leaving =
  'may leave this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config';

/** The stub answers plain HTTP alone. */
const mayBeStub = (line: string): boolean =>
  !/^(?:fastcgi|uwsgi|scgi|grpc|memcached)[._]|https:\/\//i.test(line);

/**
 * The target, with the config's own address moved; other backends are noted. @param target host:port, a URL, or unix:PATH
 * @param line the directive as written, `where` FILE:LINE @param blocks upstream blocks in lower case, whose servers are checked themselves
 * @param asksResolver names need DNS, as with a variable @throws UserError for another machine, or an address that depends on a variable
 */
export function localTarget(
  target: string,
  line: string,
  where: string,
  copy: ConfigCopy,
  blocks: ReadonlySet<string> = new Set(),
  asksResolver = target.includes('$'),
): string {
  const [, before = '', socket, after = ''] =
    /^((?!unix:)\w+:\/\/)?unix:([^:]+)(.*)$/s.exec(target) ?? [];
  if (socket !== undefined) {
    const address = { socket: path.posix.normalize(socket) };
    const moved = copy.movedTo(address);
    if (moved !== undefined) return before + moved + after;
    copy.noteBackend(line, address);
    return target;
  }
  const [, scheme, authority = '', rest = ''] =
    /^(?:(\w+):\/\/)?([^/?$]*)(.*)$/s.exec(target) ?? [];
  const [, host, port] = /^(\[[^\]]*\]|[^:]+)(?::(\d+))?$/.exec(authority) ?? [];
  // A host with a port is none.
  const isBlock = host !== undefined && blocks.has(host.toLowerCase()) && port === undefined;
  const { upstreams, ...place } = copy.place;
  const bare = target.replace(/^\w+:\/\//, '');
  const stand = upstreams?.find(
    ({ name }) =>
      bare.toLowerCase().startsWith(name) && /^(?::\d+)?(?:[/?$]|$)/.test(bare.slice(name.length)),
  );
  if (stand !== undefined && !isBlock) {
    const { name, to, address } = stand;
    // A variable may have the scheme.
    const usual = line.startsWith('proxy_pass ') ? 'http://' : '';
    const after = bare.slice(name.length).replace(/^:\d+/, '');
    const next = `${target.slice(0, -bare.length) || usual}${address}${after}`;
    const redirected = `${line} at ${to}`;
    // The config's port is somebody else's here.
    const unmoved = { ...copy, place, movedTo: () => undefined };
    if (to === address) return localTarget(next, redirected, where, unmoved);
    if (!mayBeStub(line))
      throw new UserError(
        `${where}: ${line}: the stub answers plain HTTP alone, so start a backend and name it: --upstream ${name}=127.0.0.1:9000`,
      );
    // The stub's thread is bakeoff's own.
    copy.notes.push(`${redirected}, which answers in place of a backend`);
    return localTarget(next, redirected, where, { ...unmoved, noteBackend: () => undefined });
  }
  const authorityShown = addressIn(/^[^/?]*/.exec(bare)?.[0] ?? '');
  const stub = mayBeStub(line) ? ' (=stub:5ms:2KB for a stub)' : '';
  const standing = `, or say what stands for it: --upstream '${authorityShown}=127.0.0.1:9000'${stub}`;
  // Any other variable could continue the host's name.
  if (rest.startsWith('$') && !/^\$(?:request_uri\b|\{request_uri\})/.test(rest))
    throw new UserError(
      `${where}: ${line} may leave this machine, a variable says to where: name an address of 127.0.0.1${standing}`,
    );
  if (isBlock) return target;
  if (
    host === undefined ||
    !isLoopback(host) ||
    (asksResolver && host.toLowerCase() === 'localhost')
  )
    throw new UserError(`${where}: ${line} ${leaving}${standing}`);
  const asked = Number(port ?? (scheme === 'https' || scheme === 'grpcs' ? 443 : 80));
  const newAddress = copy.movedTo({ host, port: asked });
  if (newAddress !== undefined)
    return `${scheme === undefined ? '' : `${scheme}://`}${newAddress}${rest}`;
  copy.noteBackend(line, { port: asked });
  return target;
}

/**
 * Answers each request after a set time, in a thread. As text: other hosts have no files of bakeoff. The server may be about to use an idle
 * connection.
 */
const stubSource = `
const { parentPort, workerData: { ms, bytes } } = require('node:worker_threads');
const body = Buffer.alloc(bytes, 'x');
const server = require('node:http').createServer((request, response) => {
  request.resume();
  setTimeout(() => response.end(body), ms);
});
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

const factors: Record<string, number> = { ms: 1, s: 1000, b: 1, kb: 1e3, mb: 1e6 };

/** stub:50ms or stub:50ms:2KB, up to 100 MB. */
export function readStub(text: string) {
  const [, time, unit = '', size = 1000, kind = 'b'] =
    /^stub:(\d{1,5})(ms|s)(?::(\d{1,6})(b|kb|mb))?$/.exec(text.toLowerCase()) ?? [];
  const [ms, bytes] = [
    Number(time) * (factors[unit] ?? NaN),
    Number(size) * (factors[kind] ?? NaN),
  ];
  return ms >= 0 && bytes <= 100e6 ? { ms, bytes } : undefined;
}

const stubs = new Map<string, Promise<string>>();

/** A stub's HOST:PORT, which ends with this process; other text as it is. */
export function addressFor(text: string): Promise<string> {
  const stub = readStub(text);
  const address = stubs.get(text) ?? (stub === undefined ? Promise.resolve(text) : startStub(stub));
  stubs.set(text, address);
  return address;
}

async function startStub(workerData: { ms: number; bytes: number }): Promise<string> {
  const worker = new Worker(stubSource, { eval: true, workerData });
  const [port] = (await once(worker, 'message')) as [number];
  worker.unref();
  return `127.0.0.1:${port}`;
}
