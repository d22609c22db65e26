// nginx.conf as it runs: the scenario's config files, then the lines that depend on the machine.
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.ts';
import { unknownWord } from '../scenario/nearest.ts';
import { hardFilesLimit, workerFilesLimit } from './files-limit.ts';
import { composeConfig, findDirectives, printConfig, type ConfigLayer, type Directive } from './nginx-config.ts';

const shippedConfigs = fileURLToPath(new URL('../../server-configs/nginx/', import.meta.url));

/** nginx's own default of worker_connections. */
const defaultConnections = 512;

/** What only the machine and the run can say. All paths are absolute. */
export interface Place {
  /** Of 127.0.0.1. */
  port: number;
  workers: number;
  /** Connections that the load opens; default: as many as the config allows. */
  connections?: number | undefined;
  docroot: string;
  temp: string;
  pidFile: string;
  logFile: string;
  /** Absent: as the config has it (the shipped base: off). */
  accessLogFile?: string | undefined;
  /** User and group of the workers; absent when nginx is not started by root, and so cannot change it. */
  user?: string | undefined;
  /** Modules with a temp path of their own (proxy, fastcgi, …) that this nginx was built with. */
  tempModules: readonly string[];
}

/** The text of nginx.conf. Throws UserError when a file is missing or cannot be composed, or the limit of open files is too low. */
export async function composeNginx(names: readonly string[], place: Place): Promise<string> {
  const layers = await Promise.all(names.map(readLayer));
  const shipped = composeConfig(layers);
  const config = composeConfig([...layers, { origin: 'this machine', text: machineLines(shipped, place) }]);
  requireOneAddress(config, names);
  const origins = layers.map(({ origin }) => origin);
  return `# Composed of ${origins.join(', ')} and what depends on the machine.\n` + printConfig(config, origins[0] ?? '');
}

async function readLayer(name: string): Promise<ConfigLayer> {
  if (path.isAbsolute(name)) {
    const text = await readFile(name, 'utf8').catch((error: Error) => {
      throw new UserError(`cannot read the nginx config ${name}: ${error.message}`);
    });
    return { origin: path.basename(name), text };
  }
  const shipped = (await readdir(shippedConfigs)).map((file) => path.basename(file, '.conf'));
  if (!shipped.includes(name)) throw unknownWord('nginx config', name, shipped);
  return { origin: `${name}.conf`, text: await readFile(path.join(shippedConfigs, `${name}.conf`), 'utf8') };
}

function machineLines(shipped: readonly Directive[], place: Place): string {
  const allowed = Number(findDirectives(shipped, 'worker_connections')[0]?.args[0] ?? defaultConnections);
  const files = workerFilesLimit('nginx', allowed, place.connections ?? allowed, hardFilesLimit());
  const tempPaths = ['client_body', ...place.tempModules].map(
    (module) => `${module}_temp_path ${quoted(path.join(place.temp, module))};`,
  );
  return `
    # In the foreground, so that its end is seen.
    daemon off;
    ${place.user === undefined ? '' : `user ${place.user};`}
    worker_processes ${place.workers};
    # Each worker's; without it nginx warns when worker_connections is above the limit it inherits.
    worker_rlimit_nofile ${files};
    pid ${quoted(place.pidFile)};
    # Starts, stops and crashes of workers; requests write nothing at this level.
    error_log ${quoted(place.logFile)} notice;
    http {
      ${tempPaths.join('\n')}
      ${place.accessLogFile === undefined ? '' : `access_log ${quoted(place.accessLogFile)};`}
      server {
        listen ${address(place.port)};
        location / {
          root ${quoted(place.docroot)};
        }
      }
    }`;
}

/** A second server, or one without a listen line, would serve other addresses than loopback. */
function requireOneAddress(config: readonly Directive[], names: readonly string[]): void {
  const servers = findDirectives(config, 'server').filter(({ block }) => block !== undefined);
  const listens = findDirectives(config, 'listen');
  if (servers.length === 1 && listens.length === 1) return;
  throw new UserError(
    `nginx config ${names.join(' + ')}: has ${servers.length} server blocks and ${listens.length} listen lines; ` +
      'keep one server block, bakeoff gives it its address',
  );
}

function address(port: number): string {
  return `127.0.0.1:${port}`;
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
