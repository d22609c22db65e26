// What a person wants of sides, and how these are started: the flags that compare and knobs have in common.
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { readPageList } from '../scenario/page-list.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { ofSides, serverNames, type Given, type Source } from './compare-given.ts';
import type { LaunchOf } from './compare-scenario.ts';
import type { Asked } from './compare-sides.ts';
import { wholeNumber, type Flag, type Words } from './words.ts';

export const askedFlags = {
  'url': { value: 'URL', help: 'a path, or a URL whose port says which of several addresses (/)' },
  'urls': { value: 'FILE', help: 'several pages: one path or URL a line, and its weight (1)' },
  'load': { value: '"wrk -c 100 -d 10"', repeated: true, help: 'a command line of wrk, wrk2, h2load, ab, weighttp or vegeta (100 connections)' },
  'status': { value: '404', help: 'the status that is right, where it is not 200' },
  'bin': { value: 'nginx=PATH', repeated: true, help: 'another build of a server' },
} as const satisfies Record<string, Flag>;

/** What is asked of the sides. Throws UserError (exit code 2). */
export function readAsked({ flags, lists }: Words, given: readonly Given[]): Asked {
  const [url, urls, status] = [flags.get('url'), flags.get('urls'), flags.get('status')];
  return {
    ...present({ url, urls: urls === undefined ? undefined : readPageList('--urls', urls), status: status === undefined ? undefined : readStatus(status) }),
    load: ofSides('--load', lists.get('load') ?? [], given.map(({ name }) => name)),
  };
}

function readStatus(text: string): number {
  if (/^[2-5]\d\d$/.test(text)) return Number(text);
  throw new UserError(`--status ${text}: give a status from 200 to 599, such as 404`, 2);
}

/** How each side is started. Throws UserError (exit code 2). */
export function readLaunch({ lists }: Words, given: readonly Given[]): LaunchOf {
  const names = given.map(({ name }) => name);
  const having = (is: (source: Source) => boolean): string[] => given.flatMap(({ name, source }) => (is(source) ? [name] : []));
  const ports = ofSides('--port', lists.get('port') ?? [], names, { what: 'a command', names: having(({ kind }) => kind === 'command') });
  const binaries = new Map(serverNames.map((server) => [server, ofSides(`--bin ${server}=…`, binariesOf(server, lists.get('bin') ?? []), names, {
    what: `a config of ${server}`, names: having((source) => source.kind === 'config' && source.config.server === server),
  })]));
  return (name) => {
    const { source } = given.find((side) => side.name === name) as Given;
    const port = source.kind === 'command' ? ports.of(name) : undefined;
    const binary = source.kind === 'config' ? binaries.get(source.config.server)?.of(name) : undefined;
    return present({ port: port === undefined ? undefined : wholeNumber('--port', port, 65_535), binary: binary === undefined ? undefined : fromCallersFolder(binary) });
  };
}

/** What `--bin` says of one server, as ofSides reads it: `nginx=/a` is `/a`, and `new:nginx=/a` is `new=/a`. */
function binariesOf(server: string, values: readonly string[]): string[] {
  return values.flatMap((value) => {
    const [, name, called = '', file = ''] = /^(?:([a-z0-9-]+):)?([a-z0-9]+)=(.+)$/s.exec(value) ?? [];
    if (!serverNames.some((one) => one === called)) throw new UserError(`--bin ${value}: write ${serverNames.join('=PATH, ')}=PATH, or NAME:nginx=PATH for one side`, 2);
    return called === server ? [name === undefined ? file : `${name}=${file}`] : [];
  });
}
