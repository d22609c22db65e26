// A person's own nginx.conf, made to run here, beside a server that runs already.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { UserError } from '../../errors.ts';
import {
  bareWord,
  findDirectives,
  logArgs,
  printConfig,
  quoted,
  tempModules,
  type Directive,
} from '../nginx-config.ts';
import { layNginx } from './lay-nginx.ts';
import type { AdoptPlace, AdoptedConfig, Build } from '../server.ts';
import { chooseListen } from './redirect.ts';
import {
  adoptedHere,
  allowCode,
  beginHere,
  handOver,
  pathsIn,
  runLog,
  temporary,
  type Here,
  type PathFor,
} from './redirect.ts';
import { readNginxConfig } from '../nginx-config.ts';
import {
  blocksIn,
  httpServers,
  insideOf,
  listensOf,
  moveListens,
  nginxListens,
  nginxWorkers,
  parseAddress,
} from './nginx-listens.ts';
import { ours, placeOf } from './files.ts';
import { readText } from './files.ts';
import { leaving, localTarget } from './redirect.ts';

/** ServerKind.adopt. */
export async function adoptNginx(
  file: string,
  place: AdoptPlace,
  build: Build,
): Promise<AdoptedConfig> {
  const written = await readNginxConfig(file, await readText(file));
  const { port, tls, http2, http2Only, hosts } = chooseListen(
    { file, listens: nginxListens(written, file) },
    place.listen,
  );
  const config = layNginx(written, place.laid, { port, paths: place.paths, cores: place.cores });
  const workers = nginxWorkers(config);
  const servers = httpServers(config, file);
  const users = (config.find(({ name }) => name === 'user')?.args ?? []).map(bareWord);
  const begun = await beginHere(
    file,
    servers.flatMap(listensOf).map(parseAddress),
    port,
    place,
    users,
  );
  const here: NginxHere = {
    ...begun,
    build,
    listens: moveListens(servers, begun),
    folderFor: pathsIn(place.temp),
    blocks: new Set(
      blocksIn(insideOf(config, 'http'), 'upstream').map(({ args }) =>
        bareWord(args[0] ?? '').toLowerCase(),
      ),
    ),
  };
  const runs = withBuiltIns(change(config, '', here), here);
  if (
    findDirectives(config, 'root')
      .concat(findDirectives(config, 'alias'))
      .some(({ args }) => /^(?![/$])/.test(bareWord(args[0] ?? '')))
  ) {
    here.said.push(
      `relative paths begin at ${/--prefix=(\S+)/.exec(build.answer)?.[1] ?? '/usr/local/nginx'}, this nginx's own prefix`,
    );
  }
  return {
    ...adoptedHere(file, printConfig(runs, ''), workers, here),
    tls,
    protocol: http2Only ? 'h2c' : http2 && tls ? 'h2' : 'http/1.1',
    hosts,
    // Without -p: relative paths stay below the build's prefix, those of the config's folder are changed by changeLine.
    args: (configFile) => [...logArgs(build), '-c', configFile],
  };
}

interface NginxHere extends Here {
  build: Build;
  listens: ReadonlyMap<Directive, Directive[]>;
  folderFor: PathFor;
  /** Names of upstream blocks, in lower case. */
  blocks: ReadonlySet<string>;
}

/** Their lines are data, not directives. */
const dataBlocks = new Set(['map', 'geo', 'types', 'split_clients', 'charset_map', 'match']);
/** Others (stream, mail, rtmp …) listen, or speak to other machines, in their own ways. */
const topBlocks = new Set(['events', 'http']);

function change(directives: readonly Directive[], parent: string, here: NginxHere): Directive[] {
  return directives.flatMap((directive) => {
    const { name, block } = directive;
    if (block === undefined) return changeLine(directive, parent, directives, here);
    if (parent === '' && !topBlocks.has(name)) {
      here.said.push(`${name} { } at ${placeOf(directive)}: left out, only HTTP is compared`);
      return [];
    }
    if (name === 'acme_issuer') throw new UserError(`${placeOf(directive)}: ${name} ${leaving}`);
    if (dataBlocks.has(name)) return [directive];
    const listens = here.listens.get(directive);
    if (listens?.length === 0) {
      here.said.push(`server { } at ${placeOf(directive)}: left out, it listens to HTTP/3 only`);
      return [];
    }
    const others = listens === undefined ? block : block.filter((one) => one.name !== 'listen');
    return [{ ...directive, block: [...(listens ?? []), ...change(others, name, here)] }];
  });
}

// Paths relative to the config's folder; all others are relative to the build's prefix.
/** Read at nginx's start, and never by its workers: these files may be closed to others. */
const readAtStart =
  /^(?:\w+_)?ssl_(?:certificate|certificate_key|client_certificate|trusted_certificate|crl|dhparam|password_file|session_ticket_key|stapling_file)$/;
/** The others. */
const readLater = /^(?:auth_basic_user_file|auth_jwt_key_file|quic_host_key|js_path)$/;

/** Modules, code in other languages, and rules that may start programs. */
const code =
  /^load_module$|_by_lua(?:_block|_file)?$|^lua_package_c?path$|^js_(?:import|include|preload_object)$|^perl|^mruby_|^passenger|^wasm|^proxy_wasm$|^modsecurity_rules|^ssl_engine$/;
/** Keys that a library of the config's own reads. */
const codeKey = /^(?:engine|store):/;

/** @param beside it in its block */
function changeLine(
  directive: Directive,
  parent: string,
  beside: readonly Directive[],
  here: NginxHere,
): Directive[] {
  const { name, args } = directive;
  const { place, said } = here;
  const first = bareWord(args[0] ?? '');
  const having = (...changed: string[]): Directive[] => [{ ...directive, args: changed }];
  const instead = (first: string, where: string): Directive[] => {
    said.push(`${name} ${args[0]} → ${where}`);
    return having(first, ...args.slice(1));
  };
  if (code.test(name) || (/ssl_certificate_key$/.test(name) && codeKey.test(first)))
    allowCode(name, placeOf(directive), here);
  switch (name) {
    case 'daemon':
      return first === 'off' ? [directive] : instead('off', 'off, so that its end is seen');
    case 'pid':
    case 'lock_file':
      return instead(quoted(path.join(place.temp, name)), temporary);
    case 'user':
      // It runs as that user from its start.
      if (place.user === undefined)
        said.push(
          `user ${args.join(' ')} → whoever starts bakeoff, since it takes root to become another one`,
        );
      return [];
    case 'worker_processes':
      return first === 'auto'
        ? instead(String(place.cores), `${place.cores}, the number of server cores`)
        : [directive];
    case 'worker_cpu_affinity':
      said.push(`${name} ${args.join(' ')}: left out, the workers run on the server's cores`);
      return [];
    case 'worker_priority':
      if (!first.startsWith('-')) return [directive];
      said.push(`${name} ${first}: left out, since it takes root, and its workers run without`);
      return [];
    case 'worker_rlimit_nofile':
      if (Number(first) <= place.fileLimit) return [directive];
      return instead(String(place.fileLimit), `${place.fileLimit}, the hard limit here`);
    case 'error_log':
      return first === 'stderr' || first === '/dev/null' || first.startsWith('memory:')
        ? [directive]
        : instead('stderr', runLog);
    case 'access_log':
      return first === 'off' || first === '/dev/null'
        ? [directive]
        : instead(quoted(here.logFor(first, 'access.log')), temporary);
    case 'ssl_stapling':
      if (first !== 'on' || beside.some(({ name }) => name === 'ssl_stapling_file'))
        return [directive];
      return instead('off', 'off, since it would ask another machine');
    case 'proxy_store':
    case 'fastcgi_store':
    case 'uwsgi_store':
    case 'scgi_store':
    case 'ssl_ocsp':
      return first === 'off'
        ? [directive]
        : instead(
            'off',
            `off, since it would ${name === 'ssl_ocsp' ? 'ask another machine' : 'write among the files that are served'}`,
          );
    case 'state':
      if (parent === 'upstream')
        throw new UserError(`${placeOf(directive)}: state ${first} ${leaving}`);
      return [directive];
    case 'google_perftools_profiles':
      said.push(`${name} ${args[0]}: left out`);
      return [];
    case 'server':
      return parent === 'upstream' && !args.map(bareWord).includes('down')
        ? having(targetOf(directive, here), ...args.slice(1))
        : [directive];
    case 'endpoint':
      return parent === 'otel_exporter'
        ? having(targetOf(directive, here), ...args.slice(1))
        : [directive];
    case 'js_import':
      return having(...importOf(args, here));
  }
  if (/_pass$/.test(name)) return having(targetOf(directive, here, here.blocks), ...args.slice(1));
  if (/_(?:temp|cache)_path$/.test(name))
    return instead(quoted(here.folderFor(`${name} ${first}`, name)), temporary);
  if (
    !(readAtStart.test(name) || readLater.test(name)) ||
    /^(?:\$|data:|engine:|store:)/.test(first)
  )
    return [directive];
  // A file whose name has a variable is read for each connection.
  const file =
    readAtStart.test(name) && !first.includes('$')
      ? handOver(`${name} ${first}`, first, here)
      : path.resolve(here.folder, first);
  return file === first ? [directive] : having(quoted(file), ...args.slice(1));
}

function targetOf(directive: Directive, here: Here, upstreams?: ReadonlySet<string>): string {
  const word = directive.args[0] ?? '';
  const asksResolver = /\$|^resolve$|^service=/m.test(directive.args.map(bareWord).join('\n'));
  const text = localTarget(
    bareWord(word),
    `${directive.name} ${word}`,
    placeOf(directive),
    here,
    upstreams,
    asksResolver,
  );
  return text === bareWord(word) ? word : quoted(text);
}

/** `js_import FILE` or `js_import NAME from FILE`: nginx looks beside the config, then in js_path. */
function importOf(args: readonly string[], { folder }: Here): string[] {
  const beside = path.join(folder, bareWord(args.at(-1) ?? ''));
  return bareWord(args.at(-1) ?? '/').startsWith('/') || !existsSync(beside)
    ? [...args]
    : [...args.slice(0, -1), quoted(beside)];
}

/** Adds the paths that the config leaves to the build, which a server of that build may use already. */
function withBuiltIns(config: readonly Directive[], here: NginxHere): Directive[] {
  const { place, build } = here;
  const line = (name: string, ...args: string[]): Directive => ({
    name,
    args,
    comments: [],
    origin: ours,
    line: 0,
  });
  const lacks =
    (block: readonly Directive[]) =>
    ({ name: wanted }: Directive): boolean =>
      !block.some(({ name }) => name === wanted);
  const main = [
    line('daemon', 'off'),
    line('error_log', 'stderr'),
    line('pid', quoted(path.join(place.temp, 'pid'))),
    line('lock_file', quoted(path.join(place.temp, 'lock_file'))),
  ].filter(lacks(config));
  const added: string[] = main.map(({ name }) => name);
  const withHttp = config.map((directive): Directive => {
    if (directive.name !== 'http' || directive.block === undefined) return directive;
    const lines = [
      ...tempModules(build).map((module) =>
        line(`${module}_temp_path`, quoted(path.join(place.temp, module))),
      ),
      line('access_log', quoted(here.logFor('', 'access.log')), 'combined'),
    ].filter(lacks(directive.block));
    added.push(...lines.map(({ name }) => name));
    return { ...directive, block: [...lines, ...directive.block] };
  });
  const files = added.filter((name) => name !== 'daemon');
  if (files.length > 0)
    here.said.push(`what it leaves to nginx's build → ${temporary} each: ${files.join(', ')}`);
  return [...main, ...withHttp];
}
