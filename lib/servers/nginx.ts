// nginx: nginx.conf as it runs is the scenario's config files, then the lines that depend on the machine.
import path from 'node:path';
import { UserError } from '../errors.ts';
import { atLeast } from '../setup/machine.ts';
import { ourLines, readLayers } from './config-files.ts';
import {
  bareWord,
  composeConfig,
  findDirectives,
  logArgs,
  parseConfig,
  printConfig,
  quoted,
  readNginxConfig,
  tempModules,
} from './nginx-config.ts';
import { adoptNginx } from './own/nginx.ts';
import type { Build, ComposedConfig, Place, ServerKind } from './server.ts';

export const nginxKind: ServerKind = {
  compose,
  adopt: adoptNginx,
  checkArgs: ['-t', '-q'],
  complaint: /\[(emerg|alert|crit|error)\]/,
  complaintLine: /:(\d+)$/,
};

/** Older versions have directives of their own for keep-alive over HTTP/2. */
const oldestHttp2 = '1.19.7';

async function compose(
  names: readonly string[],
  place: Place,
  build: Build,
): Promise<ComposedConfig> {
  const layers = await readLayers('nginx', names);
  const shipped = composeConfig(await Promise.all(layers.map(readNginxConfig)));
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
  const machine = await machineLines(listen, tls, place, build);
  const config = composeConfig([shipped, parseConfig(ourLines(machine))]);
  const servers = findDirectives(config, 'server').filter(({ block }) => block !== undefined);
  const listens = findDirectives(config, 'listen');
  // Others would serve the network.
  if (servers.length !== 1 || listens.length !== 1)
    throw new UserError(
      `nginx config ${names.join(' + ')}: has ${servers.length} server blocks and ${listens.length} listen lines; keep one server block, bakeoff gives it its address`,
    );
  return {
    text: printConfig(config),
    tls,
    protocol: http2 ? (tls ? 'h2' : 'h2c') : 'http/1.1',
    // Relative paths, such as a log's, are below the server's temporary folder.
    args: (configFile) => ['-p', place.temp, ...logArgs(build), '-c', configFile],
  };
}

/** @param listen the parameters after the address */
async function machineLines(
  listen: readonly string[],
  tls: boolean,
  place: Place,
  build: Build,
): Promise<string> {
  const certificate = tls ? quoted(await place.certificateFile()) : '';
  return `
    # In the foreground, so that bakeoff sees its end.
    daemon off;
    worker_processes ${place.workers};
    # The limit that it starts with: nginx warns if worker_connections is higher.
    worker_rlimit_nofile ${place.fileLimit};
    pid ${quoted(path.join(place.temp, 'nginx.pid'))};
    # Starts, stops and crashes of workers, but no requests.
    error_log stderr notice;
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
