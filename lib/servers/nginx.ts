// nginx: the nginx.conf that it runs is the scenario's config files, followed by the lines that depend on the machine; or a copy of a
// user's config, which runs beside a running server.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { addressIn, UserError } from '../errors.ts';
import { present } from '../present.ts';
import { mayTurnAway } from '../result/redirections.ts';
import { atLeast } from '../setup/machine.ts';
import { isThereForServer, ourLines, ours, readLayers } from './config-files.ts';
import {
  asWritten,
  bareWord,
  composeConfig,
  findDirectives,
  logArgs,
  parseConfig,
  printConfig,
  quoted,
  readNginxConfig,
  tempModules,
  type Directive,
} from './nginx-config.ts';
import {
  overlayNginx,
  turnAwayLines,
  readInPlace,
  readNginx,
  servingLines,
} from './own/overlay-nginx.ts';
import {
  blocksIn,
  httpServers,
  insideHttp,
  listensOf,
  moveListens,
  nginxListens,
  nginxWorkers,
  parseAddress,
} from './own/nginx-listens.ts';
import {
  beginCopy,
  chooseListen,
  leaving,
  localTarget,
  noteUser,
  runLog,
  temporary,
  type ConfigCopy,
} from './own/redirect.ts';
import { backendOf, requireNoClient } from './own/ways-out.ts';
import type { ServerKind } from './kind.ts';
import type { AdoptPlace, AdoptedConfig, Build, ComposedConfig, Place } from './server.ts';

export const nginxKind: ServerKind = {
  version: { argument: '-V', pattern: /^nginx version: [^/]*\/(\S+)/m, oldest: '1.18.0' },
  compose,
  adopt: adoptNginx,
  checkArgs: ['-t', '-q'],
  complaint: /\[(emerg|alert|crit|error)\]/,
  complaintLine: /:(\d+)$/,
  log: {
    // Without root, nginx prints the excluded alert before it reads the config. It uses level crit for a full disk, a lack of file
    // descriptors and a missing socket of a backend, but also for TLS errors of single clients, such as a connection that ends without a
    // close_notify.
    alarm: /\[(?:alert|emerg)\](?! could not open error log file)|\[crit\](?!.* \(SSL: )/,
    crash: /\[alert\].* exited (?:on signal \d+|with fatal code)/,
  },
  isConfig: (text) =>
    /(?:^|[\s;}])(?:http|events)\s*\{/.test(text) ||
    (/^include\s[^\n]*;/m.test(text) && !/^(?:server|location|upstream)\b/m.test(text)),
  read: readNginx,
};

/** Older ones have other directives for keep-alive over HTTP/2. */
const oldestHttp2 = '1.19.7';

async function compose(
  names: readonly string[],
  place: Place,
  build: Build,
): Promise<ComposedConfig> {
  const layers = await readLayers('nginx', names);
  const shipped = composeConfig(await Promise.all(layers.map((layer) => readNginxConfig(layer))));
  const listen = findDirectives(shipped, 'listen')[0]?.args.slice(1).map(bareWord) ?? [];
  const has = (word: string) =>
    listen.includes(word) ||
    findDirectives(shipped, word).some(({ args: [value = ''] }) => bareWord(value) === 'on');
  const [tls, http2] = [has('ssl'), has('http2')];
  if (http2 && !atLeast(build.version, oldestHttp2)) {
    throw new UserError(
      `nginx ${build.version} is too old for the HTTP/2 config ${names.join(' + ')}: set NGINX_BIN to nginx ${oldestHttp2} or newer`,
    );
  }
  const level = findDirectives(shipped, 'error_log')[0]?.args[1];
  const machine = await machineLines(listen, tls, place, build, level && bareWord(level));
  const config = composeConfig([shipped, parseConfig(ourLines(machine))]);
  const servers = findDirectives(config, 'server').filter(({ block }) => block !== undefined);
  const listens = findDirectives(config, 'listen');
  // Others would serve the network.
  if (servers.length !== 1 || listens.length !== 1)
    throw new UserError(
      `nginx config ${names.join(' + ')}: has ${servers.length} server blocks and ${listens.length} listen lines; keep one server block, bakeoff gives it its address`,
    );
  const http2Protocol = tls ? 'h2' : 'h2c';
  return {
    text: printConfig(config),
    tls,
    protocol: http2 ? http2Protocol : 'http/1.1',
    // Relative paths, such as that of a log, are below the server's temporary folder.
    args: (configFile) => ['-p', place.temp, ...logArgs(build), '-c', configFile],
  };
}

/**
 * @param listen the parameters after the address
 * @param level of the error log; the default logs starts, stops and crashes of workers, but no requests
 */
async function machineLines(
  listen: readonly string[],
  tls: boolean,
  place: Place,
  build: Build,
  level = 'notice',
): Promise<string> {
  const certificate = tls ? quoted(await place.certificateFile()) : '';
  return `
    # In the foreground, so that bakeoff sees its end.
    daemon off;
    worker_processes ${place.workers};
    # The limit that it starts with: nginx warns if worker_connections is higher.
    worker_rlimit_nofile ${place.fileLimit};
    pid ${quoted(path.join(place.temp, 'nginx.pid'))};
    error_log stderr ${level};
    http {
      ${tempModules(build)
        .map((module) => `${module}_temp_path ${quoted(path.join(place.temp, module))};`)
        .join('\n')}
      server {
        listen ${[`${place.address}:${place.port}`, ...listen].join(' ')};
        ${tls ? `ssl_certificate ${certificate};\n ssl_certificate_key ${certificate};` : ''}
        location / {
          root ${quoted(place.docroot)};
        }
      }
    }`;
}

async function adoptNginx(file: string, place: AdoptPlace, build: Build): Promise<AdoptedConfig> {
  const written = await readInPlace(file, place.within);
  const listens = nginxListens(written, file);
  const { port, tls, http2, http2Only, hosts } = chooseListen(file, listens, place.listen);
  const page = { port, paths: place.paths, cores: place.cores };
  const config = overlayNginx(written, place.overlays, page);
  const workers = nginxWorkers(config);
  const servers = httpServers(config, file);
  const begun = await beginCopy(file, servers.flatMap(listensOf).map(parseAddress), port, place);
  const copy: NginxCopy = {
    ...begun,
    ownFolder: path.dirname(file),
    listens: moveListens(servers, begun),
    blocks: new Set(
      blocksIn(insideHttp(config), 'upstream').map(({ args }) =>
        bareWord(args[0] ?? '').toLowerCase(),
      ),
    ),
  };
  if (place.within !== undefined)
    copy.notes.push(`runs in http { } of ${place.within}, in place of the sites there`);
  const quic = [...copy.listens.values()].flat().filter(({ args }) => args.includes('quic'));
  if (
    quic[0] !== undefined &&
    (workers === 'server-cores' ? place.cores : workers) > 1 &&
    !quic.some(({ args }) => args.includes('reuseport'))
  )
    copy.notes.push(
      `listen quic at ${quic[0].origin} without reuseport: the workers get each other's packets, and connections hang`,
    );
  const runs = withDefaults(change(config, '', copy), copy, build);
  const roots = [...findDirectives(runs, 'root'), ...findDirectives(runs, 'alias')];
  if (roots.some(isRelative))
    copy.notes.push(
      `relative paths begin at ${/--prefix=(\S+)/.exec(build.answer)?.[1] ?? '/usr/local/nginx'}, this nginx's own prefix`,
    );
  const serving = servingLines(config, page);
  const limits = ['limit_req', 'limit_conn'].map((name) => turnAwayLines(config, name, page));
  for (const line of [...insideHttp(config), ...serving])
    if (limits.some((lines) => lines.has(line))) {
      const delays =
        line.args.some((word) => word.startsWith('burst=')) && !line.args.includes('nodelay');
      const rate = allowedBy(line, config);
      copy.notes.push(mayTurnAway(asWritten(line), line.origin, delays, rate));
    }
  const closing = serving.find((line) => asWritten(line) === 'return 444');
  const hangsUp = closing && `return 444 at ${closing.origin} closes a connection unanswered`;
  if (hangsUp !== undefined) copy.notes.push(hangsUp);
  const tlsProtocol = http2 && tls ? 'h2' : 'http/1.1';
  return {
    ...present({ hangsUp }),
    ...copy.adopted(printConfig(runs), workers),
    tls,
    protocol: http2Only ? 'h2c' : tlsProtocol,
    hosts,
    args: (configFile) => [...logArgs(build), '-c', configFile],
  };
}

/** Returns "rate=100r/s" of a limit_req's zone; undefined for another limit. */
function allowedBy({ args }: Directive, config: readonly Directive[]): string | undefined {
  const wordOf = (words: readonly string[], name: string) =>
    words.map(bareWord).find((word) => word.startsWith(`${name}=`));
  const zone = wordOf(args, 'zone');
  const zones = findDirectives(config, 'limit_req_zone');
  const its = zones.find((line) => wordOf(line.args, 'zone')?.startsWith(`${zone}:`));
  return its && wordOf(its.args, 'rate');
}

function isRelative({ args }: Directive): boolean {
  return /^[^/$]/.test(bareWord(args[0] ?? ''));
}

interface NginxCopy extends ConfigCopy {
  /** The folder of the user's file, also if the file runs within another config. */
  ownFolder: string;
  listens: ReadonlyMap<Directive, Directive[]>;
  /** Names of upstream blocks, in lower case. */
  blocks: ReadonlySet<string>;
}

const dataBlocks = new Set(['map', 'geo', 'types', 'split_clients', 'charset_map', 'match']);

function change(directives: readonly Directive[], parent: string, copy: NginxCopy): Directive[] {
  return directives.flatMap((directive) => {
    const { name, block } = directive;
    if (block === undefined) return changeLine(directive, parent, copy);
    if (parent === '' && name !== 'events' && name !== 'http') {
      copy.notes.push(`${name} { } at ${directive.origin}: left out, only HTTP is compared`);
      return [];
    }
    requireNoClient(directive, copy);
    if (dataBlocks.has(name)) return [directive];
    const listens = copy.listens.get(directive);
    if (listens?.length === 0) {
      copy.notes.push(`server { } at ${directive.origin}: left out, it listens to HTTP/3 only`);
      return [];
    }
    if (listens === undefined) return [{ ...directive, block: change(block, name, copy) }];
    const others = block.filter((line) => line.name !== 'listen');
    return [{ ...directive, block: [...listens, ...change(others, name, copy)] }];
  });
}

/** Directives whose relative paths begin at the config's folder; those of all others begin at nginx's prefix. */
const pathsOfConfig =
  /^(?:\w+_)?ssl_(?:certificate|certificate_key|client_certificate|trusted_certificate|crl|dhparam|password_file|session_ticket_key|stapling_file)$|^(?:auth_basic_user_file|auth_jwt_key_file|js_path|quic_host_key)$/;

function changeLine(directive: Directive, parent: string, copy: NginxCopy): Directive[] {
  const { name, args } = directive;
  const { place, notes } = copy;
  const first = bareWord(args[0] ?? '');
  const having = (word: string): Directive[] => [{ ...directive, args: [word, ...args.slice(1)] }];
  const instead = (word: string, why: string): Directive[] => {
    notes.push(`${name} ${args[0]} → ${why}`);
    return having(word);
  };
  const turnOff = (why: string) => (first === 'off' ? [directive] : instead('off', `off, ${why}`));
  const leaveOut = (why: string): Directive[] => {
    notes.push(`${name} ${args.join(' ')}: left out, ${why}`);
    return [];
  };
  switch (name) {
    case 'daemon':
      return turnOff('so that its end is seen');
    case 'pid':
    case 'lock_file':
      return instead(quoted(path.join(place.temp, name)), temporary);
    case 'user':
      // The group follows.
      if (first !== place.user?.name) noteUser(args.join(' '), copy);
      return [];
    case 'worker_processes':
      if (first !== 'auto') return [directive];
      return instead(String(place.cores), `${place.cores}, the number of server cores`);
    case 'worker_cpu_affinity':
      return leaveOut("the workers run on the server's cores");
    case 'worker_priority':
      return first.startsWith('-') ? leaveOut('it takes root') : [directive];
    case 'worker_rlimit_nofile':
      if (Number(first) <= place.fileLimit) return [directive];
      return instead(String(place.fileLimit), `${place.fileLimit}, the hard limit here`);
    case 'error_log':
      return first === 'stderr' || first === '/dev/null' ? [directive] : instead('stderr', runLog);
    case 'access_log':
      if (first === 'off' || first === '/dev/null') return [directive];
      return instead(quoted(copy.temporaryFile(first, 'access.log')), temporary);
    case 'quic_bpf':
      return turnOff('it takes root');
    case 'ssl_stapling':
    case 'ssl_ocsp':
      return turnOff('since it would ask another machine');
    case 'proxy_store':
    case 'fastcgi_store':
    case 'uwsgi_store':
    case 'scgi_store':
      return turnOff('since it would write among the files that are served');
    case 'state':
      if (parent === 'upstream')
        throw new UserError(`${directive.origin}: state ${addressIn(first)} ${leaving}`);
      return [directive];
    case 'root':
    case 'alias': {
      // As with nginx -p, the path is relative to the config's folder. If the folder is not there, nginx looks in its own prefix.
      const folder = path.join(copy.ownFolder, first);
      if (!isRelative(directive) || !existsSync(folder)) return [directive];
      return instead(quoted(folder), `${folder}, beside the config`);
    }
    case 'server':
      if (parent !== 'upstream' || args.map(bareWord).includes('down')) return [directive];
      return having(targetOf(directive, copy));
    case 'endpoint':
      return parent === 'otel_exporter' ? having(targetOf(directive, copy)) : [directive];
    case 'js_import':
      return [importBesideConfig(directive, copy)];
  }
  requireNoClient(directive, copy);
  const backend = backendOf(directive);
  if (backend !== undefined) return having(targetOf(backend, copy));
  if (name.endsWith('_pass')) return having(targetOf(directive, copy, copy.blocks));
  if (/_(?:temp|cache)_path$/.test(name))
    return instead(quoted(copy.temporaryFile(`${name} ${first}`, name)), temporary);
  if (!pathsOfConfig.test(name) || /^(?:\/|\$|data:|engine:|store:)/.test(first))
    return [directive];
  return having(quoted(path.resolve(copy.folder, first)));
}

/** Returns a js_import with its file's absolute path. nginx looks beside the config, then in js_path. */
function importBesideConfig(directive: Directive, copy: ConfigCopy): Directive {
  const { args } = directive;
  const file = path.resolve(copy.folder, bareWord(args.at(-1) ?? ''));
  if (!isThereForServer(file)) return directive;
  return { ...directive, args: [...args.slice(0, -1), quoted(file)] };
}

function targetOf(directive: Directive, copy: ConfigCopy, blocks?: ReadonlySet<string>): string {
  const word = directive.args[0] ?? '';
  const target = bareWord(word);
  const asksResolver = /\$|^resolve$|^service=/m.test(directive.args.map(bareWord).join('\n'));
  const line = `${directive.name} ${addressIn(word)}`;
  const text = localTarget(target, line, directive.origin, copy, blocks, asksResolver);
  return text === target ? word : quoted(text);
}

/** A server of the same build may use its paths. */
function withDefaults(config: readonly Directive[], copy: NginxCopy, build: Build): Directive[] {
  const temp = (name: string) => quoted(path.join(copy.place.temp, name));
  const added: string[] = [];
  const lacking = (block: readonly Directive[], lines: [string, ...string[]][]): Directive[] => {
    const missing = lines.filter(([wanted]) => !block.some(({ name }) => name === wanted));
    return missing.map(([name, ...args]) => {
      if (name !== 'daemon' && name !== 'error_log') added.push(name);
      return { name, args, origin: ours };
    });
  };
  const main = lacking(config, [
    ['daemon', 'off'],
    ['error_log', 'stderr'],
    ['pid', temp('pid')],
    ['lock_file', temp('lock_file')],
  ]);
  const all = config.map((directive): Directive => {
    const { name, block } = directive;
    if (name !== 'http' || block === undefined) return directive;
    const lines = lacking(block, [
      ...tempModules(build).map((module): [string, string] => [
        `${module}_temp_path`,
        temp(module),
      ]),
      ['access_log', quoted(copy.temporaryFile('', 'access.log')), 'combined'],
    ]);
    return { ...directive, block: [...lines, ...block] };
  });
  const log = config.some(({ name }) => name === 'error_log') ? '' : `; error_log → ${runLog}`;
  if (added.length > 0)
    copy.notes.push(`paths of nginx's build → ${temporary} each: ${added.join(', ')}${log}`);
  return [...main, ...all];
}
