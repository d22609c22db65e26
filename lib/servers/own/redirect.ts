// Replaces addresses, files and backends in the copy of a user's config that runs on this machine.
import { once } from 'node:events';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { addressIn, UserError } from '../../errors.ts';
import { loadedToo, stubbed } from '../../result/redirections.ts';
import { isLoopback, loopbackAddress, type UpstreamAddress } from '../ports.ts';
import type { AdoptPlace } from '../server.ts';
import type { ServerName } from '../../setup/servers.ts';

/** A port that a config listens on. */
export interface Listen {
  port: number;
  tls: boolean;
  http2: boolean;
  /** It does not speak HTTP/1.1. */
  http2Only?: true;
  /** The UDP port of that number speaks HTTP/3. */
  http3?: true;
  /** Host names, as the config has them. */
  hosts: readonly string[];
}

/** A user's config, as read before anything is started. */
export interface OwnConfig {
  server: ServerName;
  /** Absolute path. */
  file: string;
  /** 'server-cores': a worker for each core of the server. */
  workers: number | 'server-cores';
  /** Each port once, in the order of the config. */
  listens: readonly Listen[];
  /** The nginx config in whose http block the file runs; absent: the file is a whole config. */
  within?: string;
  /** The formats that the lines of log_format define. */
  logFormats?: readonly string[] | undefined;
}

/** Returns the port to load: `asked`, or the only port. Throws UserError if there is no such port. */
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
    throw new UserError(`${file} listens on the ports ${ports}: say which one to load`);
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

/** A TCP address (for all hosts if `host` is absent), or the path of a Unix socket. */
export type ConfigAddress = { port: number; host?: string | undefined } | { socket: string };

function nameOf(address: ConfigAddress): string {
  if ('socket' in address) return `unix:${address.socket}`;
  return `${plainHost(address.host)}:${address.port}`;
}

/** The host in one notation: '*' for all, 127.0.0.1 for this machine. */
function plainHost(host = '*'): string {
  if (isLoopback(host)) return loopbackAddress;
  return ['0.0.0.0', '::', '[::]'].includes(host) ? '*' : host;
}

/** The host that most clients on other machines reach a port by, in the notation of plainHost. */
export function mostPublicHost(addresses: readonly ConfigAddress[], port: number): string {
  const hosts = addresses.flatMap((address) =>
    'port' in address && address.port === port ? plainHost(address.host) : [],
  );
  if (hosts.includes('*')) return '*';
  return hosts.find((host) => host !== loopbackAddress) ?? loopbackAddress;
}

export function isAtHost(address: ConfigAddress, host: string): boolean {
  return 'port' in address && plainHost(address.host) === host;
}

/**
 * Match code in a config that answers requests, and programs that h2o starts. A match in a text or a comment only makes the warm-up longer,
 * and the run goes before no other programs. nginx's are names of directives: nearly every config has the type application/x-perl.
 */
const codeInConfig = [
  /(?<![\w./-])(?:\w+_by_lua\w*|js_\w+|perl\w*|modsecurity\w*)["']?\s/,
  // None of these goes on beyond a word: a config may have 16 MB of them.
  /\bload_module\s+["']?(?:\/(?!usr\/)|(?<=")[^"]*\.\.|(?<=')[^']*\.\.|[^\s;"']*\.\.)/,
  /\b(?:mruby\.handler|fastcgi\.spawn)/,
];

/** A config while its copy is made. */
export type ConfigCopy = Awaited<ReturnType<typeof beginCopy>>;

/** Begins a copy. The most public address of the port `loaded` gets the place's port, and all others get a free port or socket. */
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
  /** Old addresses by new address. */
  const moves = new Map<string, Set<string>>();
  const notes: string[] = [];
  const upstreams: UpstreamAddress[] = [];
  const temporaryFiles = new Map<string, string>();

  const copy = {
    place,
    /** Base folder of relative names in the config. */
    folder: path.dirname(place.within ?? file),
    /** Changes to other things than addresses, a line each. */
    notes,

    /** HOST:PORT or unix:PATH; undefined if it does not listen there. */
    movedTo: (address: ConfigAddress): string | undefined =>
      fresh.get(nameOf(address)) ??
      ('port' in address ? fresh.get(`*:${address.port}`) : undefined),

    /** Notes and returns the new address of a listen line; undefined for HTTP/3 that is not loaded. */
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
      notes.push(loadedToo(line));
      upstreams.push(address);
    },

    /**
     * Returns the temporary path for a log or folder of the config, one for each `original`. @param name gets a number, as in access-1.log
     */
    temporaryFile(original: string, name: string): string {
      const { name: stem, ext } = path.parse(name);
      const next = path.join(place.temp, `${stem}-${temporaryFiles.size + 1}${ext}`);
      const to = temporaryFiles.get(original) ?? next;
      temporaryFiles.set(original, to);
      return to;
    },

    /** Returns the parts that all adopted configs share. @param printed the changed config */
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
        runsCode: codeInConfig.some((code) => code.test(printed)),
      };
    },
  };
  return copy;
}

export function noteUser(user: string | undefined, { notes, place }: ConfigCopy): void {
  if (user !== place.user?.name)
    notes.push(`user ${user} → ${place.user?.name ?? 'the user who starts bakeoff'}`);
}

/** Names in notes for the server's standard error, and for a file that is removed with the server. */
export const runLog = 'error.log of this run';
export const temporary = 'a temporary file';

/** The end of an error about a target on another machine. */
export const leaving =
  'may leave this machine, and only loopback addresses may be loaded: pass it to 127.0.0.1, or take it out of a copy of the config';

/** Returns whether the stub can stand for the backend of a directive: it answers plain HTTP only. */
const mayBeStub = (line: string): boolean =>
  !/^(?:fastcgi|uwsgi|scgi|grpc|memcached)[._]|https:\/\//i.test(line);

/**
 * Returns the target, with the config's own address replaced by its new one, and notes any other backend.
 * @param target host:port, a URL, or unix:PATH with or without a scheme
 * @param line the directive, as written
 * @param where FILE:LINE
 * @param blocks names of upstream blocks, in lower case; their servers are checked separately
 * @param asksResolver names need DNS, as in nginx if there is a variable
 * @throws UserError for another machine, or an address that depends on a variable
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
  // If a port follows it, the name of an upstream block is a host name.
  const isBlock = host !== undefined && blocks.has(host.toLowerCase()) && port === undefined;
  const { upstreams, ...place } = copy.place;
  const bare = target.replace(/^\w+:\/\//, '');
  const stand = upstreams?.find(
    ({ name }) =>
      bare.toLowerCase().startsWith(name) && /^(?::\d+)?(?:[/?$]|$)/.test(bare.slice(name.length)),
  );
  if (stand !== undefined && !isBlock) {
    const { name, to, address } = stand;
    // A variable may include the scheme.
    const usual = line.startsWith('proxy_pass ') ? 'http://' : '';
    const after = bare.slice(name.length).replace(/^:\d+/, '');
    const next = `${target.slice(0, -bare.length) || usual}${address}${after}`;
    const redirected = `${line} at ${to}`;
    // On this machine, the config's port may belong to another program.
    const unmoved = { ...copy, place, movedTo: () => undefined };
    if (to === address) return localTarget(next, redirected, where, unmoved);
    if (!mayBeStub(line))
      throw new UserError(
        `${where}: ${line}: the stub answers plain HTTP alone, so start a backend and name it: --upstream ${name}=127.0.0.1:9000`,
      );
    // The stub's thread is bakeoff's own.
    copy.notes.push(stubbed(redirected));
    return localTarget(next, redirected, where, { ...unmoved, noteBackend: () => undefined });
  }
  const authorityShown = addressIn(/^[^/?]*/.exec(bare)?.[0] ?? '');
  const stub = mayBeStub(line) ? ' (=stub:5ms:2KB for a stub)' : '';
  const standing = `, or say what stands for it: --upstream '${authorityShown}=127.0.0.1:9000'${stub}`;
  // Any variable but $request_uri could continue the host's name.
  if (rest.startsWith('$') && !/^\$(?:request_uri\b|\{request_uri\})/.test(rest))
    throw new UserError(
      `${where}: ${line} may leave this machine, since its target is a variable: name an address of 127.0.0.1${standing}`,
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
 * The stub for a backend answers each request after a set time, in a thread of its own. It is kept as text, since other hosts have no files
 * of bakeoff. Its idle connections stay open, since the server could be about to use one.
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

/** Reads stub:50ms or stub:50ms:2KB, up to 100 MB; undefined for any other text. */
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

/** Returns HOST:PORT of a stub, which ends with this process; returns any other text as it is. */
export function addressFor(text: string): Promise<string> {
  const stub = readStub(text);
  const address = stubs.get(text) ?? (stub === undefined ? Promise.resolve(text) : startStub(stub));
  stubs.set(text, address);
  return address;
}

async function startStub(workerData: { ms: number; bytes: number }): Promise<string> {
  const worker = new Worker(stubSource, { eval: true, workerData });
  const [port]: number[] = await once(worker, 'message');
  worker.unref();
  return `127.0.0.1:${port}`;
}
