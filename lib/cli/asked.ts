// Reads the flags that compare and knobs share: pages, traffic, loads, and how sides are started.
import { prefixed, usageError, unknownWord } from '../errors.ts';
import { present, allNames } from '../present.ts';
import { bodyOfFile, headersOf, isMethod } from '../scenario/load/flags.ts';
import { shownHeader } from '../secrets.ts';
import type { LoadProfile, LoadRequest } from '../scenario/model.ts';
import { pathOrUrl, readPageList, type AskedPages, type AskedRequests } from '../scenario/pages.ts';
import { isLoopback, readStub } from '../servers/index.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { serverNames } from '../setup/servers.ts';
import { flagsWith, ofForm, wholeNumber, type Flag, type Arguments } from './arguments.ts';
import type { RunPart } from './feature.ts';
import type { Given, Source } from './sides.ts';

/** Returns the value for a side's name, or else the value for all sides. */
type OfSides = (name: string) => string | undefined;

/** Reads a repeated flag, for one side (NAME=VALUE) or for all. Throws UserError (exit code 2). @param only sides that it may be for */
function ofSides(
  flag: string,
  values: readonly string[],
  names: readonly string[],
  only = { what: 'a side', names },
): OfSides {
  const given = new Map<string | undefined, string>();
  for (const value of values) {
    const [, name, rest = value] = /^([a-z0-9][a-z0-9-]*)=(.*)$/s.exec(value) ?? [];
    if (name !== undefined && !names.includes(name)) throw unknownWord('side', name, names);
    if (only.names.length === 0)
      throw usageError(`${flag} is for ${only.what}, and no side is one`);
    if (name !== undefined && !only.names.includes(name))
      throw usageError(`${flag} is for ${only.what}, and ${name} is not one`);
    if (given.has(name)) throw usageError(`${flag} is given twice for ${name ?? 'all sides'}`);
    if (rest === '') throw usageError(`${flag} ${value}: there is nothing behind ${name}=`);
    given.set(name, rest);
  }
  return (name) => given.get(name) ?? given.get(undefined);
}

const pageFlags = {
  url: {
    group: 'request',
    value: 'URL',
    namesRequests: true,
    help: 'a path, or a URL whose port says which of several addresses (/)',
  },
  urls: {
    group: 'request',
    value: 'FILE',
    namesRequests: true,
    help: 'several pages: one path or URL a line, and its weight (1)',
  },
} as const satisfies Record<string, Flag>;

/** Flags that compare and knobs have in common, besides those of pages. */
export const sideFlags = {
  method: {
    group: 'request',
    rare: true,
    value: 'POST',
    help: 'the method of the requests (GET; with --data POST)',
  },
  header: {
    group: 'request',
    value: "'NAME: VALUE'|@FILE",
    repeated: true,
    help: 'a header, or a file with one a line, which ps does not show',
  },
  data: {
    group: 'request',
    rare: true,
    value: 'TEXT|@FILE',
    help: 'the body of the requests',
  },
  load: {
    group: 'request',
    value: '"wrk -c 100 -d 10"',
    repeated: true,
    help: 'a command line of wrk, h2load, ab, weighttp or vegeta (100 connections)',
  },
  status: {
    group: 'request',
    rare: true,
    value: '404',
    help: 'the expected status, if not 200',
  },
  bin: {
    group: 'machine',
    value: 'nginx=PATH',
    repeated: true,
    help: 'another build of a server',
  },
  upstream: {
    group: 'machine',
    rare: true,
    value: 'app:9000=127.0.0.1:9000',
    repeated: true,
    help: 'what stands for a backend of a config; =stub:50ms:2KB answers HTTP/1.1 after that time',
  },
  in: {
    group: 'machine',
    rare: true,
    value: 'nginx.conf',
    help: 'the config into whose http { } a file without one is put',
  },
} as const satisfies Record<string, Flag>;

/** The flags that compare and knobs have in common. */
export function askedFlags(parts: readonly RunPart[]) {
  const added: Readonly<Record<string, Flag>> = Object.assign(
    {},
    ...parts.map(({ requestFlags }) => requestFlags),
  );
  return { ...pageFlags, ...added, ...sideFlags };
}

export type AskedRun = Awaited<ReturnType<typeof readAsked>>;

interface ReadPages {
  /** `flag` is the flag that named them. */
  pages?: AskedPages & { flag: string };
  /** Facts about the sides that the check before the load needs. */
  recorded?: Pick<AskedRequests, 'record' | 'acceptsDifferences'>;
  notes: readonly string[];
}

async function readPages(
  parsed: Arguments,
  given: readonly Given[],
  parts: readonly RunPart[],
): Promise<ReadPages> {
  const { flags, read } = parsed;
  const named = flagsWith('namesRequests', askedFlags(parts)).find((name) => flags.has(name));
  const flag = `--${named}`;
  const listed = read('url', pathOrUrl) ?? read('urls', readPageList);
  if (listed !== undefined) return { pages: { flag, ...listed }, notes: [] };
  for (const part of parts) {
    const asked = await part.requests?.(parsed, given);
    if (asked === undefined) continue;
    const { notes, record, acceptsDifferences, ...pages } = asked;
    const path = (pages.requests[0] as LoadRequest).target;
    return {
      pages: { flag, path, ...pages },
      recorded: present({ record, acceptsDifferences }),
      notes,
    };
  }
  return { notes: [] };
}

function readRequest({ flags, lists }: Arguments) {
  const [method, data, headers] = [flags.get('method'), flags.get('data'), lists.get('header')];
  if (method === undefined && data === undefined && headers === undefined) return undefined;
  if (method !== undefined && !isMethod(method))
    throw usageError(`--method ${method}: give a method such as POST`);
  const body = data?.startsWith('@') ? bodyOfFile('--data', data.slice(1)) : data;
  const shown = (headers ?? []).map((line) => `--header '${shownHeader(line)}'`);
  if (method !== undefined) shown.unshift(`--method ${method}`);
  if (data !== undefined) shown.push('--data …');
  return {
    /** The flags as they are shown. */
    shown: shown.join(' '),
    of: (load: LoadProfile): Partial<LoadProfile> => {
      const { headers: flagHeaders = {} } = prefixed(
        () => headersOf('--header', headers ?? [], load.protocol),
        '',
      );
      const isOwn = (name: string): boolean =>
        Object.keys(flagHeaders).some((header) => header.toLowerCase() === name.toLowerCase());
      const others = Object.entries(load.headers ?? {}).filter(([name]) => !isOwn(name));
      return present({
        method: method ?? (body === undefined ? undefined : 'POST'),
        body,
        headers: headers && { ...Object.fromEntries(others), ...flagHeaders },
      });
    },
  };
}

/** Throws UserError (exit code 2). */
export async function readAsked(
  parsed: Arguments,
  given: readonly Given[],
  parts: readonly RunPart[],
) {
  const { flags, lists, read } = parsed;
  const status = read('status', ofForm(/^[2-5]\d\d$/, 'give a status from 200 to 599'));
  const names = allNames(given);
  if (
    flags.has('in') &&
    !given.some(({ source }) => source.kind === 'config' && source.config.within)
  )
    throw usageError('--in is for a file of nginx without http { }, and no side is one');
  return {
    ...(await readPages(parsed, given, parts)),
    ...present({
      request: readRequest(parsed),
      status: status === undefined ? undefined : Number(status),
      /** The loads are HTTP/3, whatever their lines say. */
      h3: flags.has('h3') || undefined,
    }),
    load: ofSides('--load', lists.get('load') ?? [], names),
    launch: readLaunch(parsed, given),
  };
}

/** How a side is started, or watched. */
interface Launch {
  cgroup?: string;
  port?: number;
  binary?: string;
  upstreams?: Record<string, string>;
}

/** Returns a function that says how a side is started. */
function readLaunch({ lists }: Arguments, given: readonly Given[]) {
  const names = allNames(given);
  const having = (is: (source: Source) => boolean): string[] =>
    given.flatMap(({ name, source }) => (is(source) ? [name] : []));
  const ports = ofSides('--port', lists.get('port') ?? [], names, {
    what: 'a command',
    names: having(({ kind }) => kind === 'command'),
  });
  const cgroups = ofSides('--cgroup', lists.get('cgroup') ?? [], names, {
    what: 'an address',
    names: having(({ kind }) => kind === 'address'),
  });
  const binaries = new Map(
    serverNames.map((server) => [
      server,
      ofSides(`--bin ${server}=…`, binariesOf(server, lists.get('bin') ?? []), names, {
        what: `a config of ${server}`,
        names: having((source) => source.kind === 'config' && source.config.server === server),
      }),
    ]),
  );
  const upstreams = readUpstreams(lists.get('upstream') ?? []);
  if (upstreams && having(({ kind }) => kind === 'config').length === 0)
    throw usageError('--upstream is for a config, and no side is one');
  return (name: string): Launch => {
    const source = given.find((side) => side.name === name)?.source;
    if (source?.kind === 'command') {
      const port = ports(name);
      return port === undefined ? {} : { port: wholeNumber(65_535)('--port', port) };
    }
    if (source?.kind === 'address') {
      const cgroup = cgroups(name);
      return cgroup === undefined ? {} : { cgroup: fromCallersFolder(cgroup) };
    }
    const binary = source && binaries.get(source.config.server)?.(name);
    return present({ binary: binary && fromCallersFolder(binary), upstreams });
  };
}

function readUpstreams(values: readonly string[]): Record<string, string> | undefined {
  const pairs = values.map((value) => {
    const [, name = '', to = ''] = /^(.+?)=(.+)$/.exec(value) ?? [];
    if (!isLoopback(/^(.+):\d+$/.exec(to)?.[1] ?? '') && readStub(to) === undefined)
      throw usageError(
        `--upstream ${value}: write app:9000=127.0.0.1:9000, or app:9000=stub:50ms:2KB for a stub`,
      );
    return [name.toLowerCase(), to] as const;
  });
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

/** The values of --bin for a server: `nginx=/a` gives `/a`, and `new:nginx=/a` gives `new=/a`. */
function binariesOf(server: string, values: readonly string[]): string[] {
  return values.flatMap((value) => {
    const [, name, called = '', file = ''] =
      /^(?:([a-z0-9-]+):)?([a-z0-9]+)=(.+)$/s.exec(value) ?? [];
    if (!serverNames.some((serverName) => serverName === called))
      throw usageError(
        `--bin ${value}: write ${serverNames.join('=PATH, ')}=PATH, or NAME:nginx=PATH for one side`,
      );
    if (called !== server) return [];
    return [name === undefined ? file : `${name}=${file}`];
  });
}
