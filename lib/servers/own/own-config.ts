// Reads a person's own config before anything is started, and lays knobs over it.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import { changesBetween, type Change, type Facts, type Setting } from './changes.ts';
import { h2oListens, h2oWorkers } from './h2o.ts';
import { h2oFacts, h2oSettings, layH2o } from './h2o.ts';
import { layNginx, nginxFacts, nginxSettings, type PageAt } from './lay-nginx.ts';
import type { OwnConfig } from './redirect.ts';
import { nghttpdSettings, nghttpdWorkers, parseNghttpd } from '../nghttpd.ts';
import { readNginxConfig } from '../nginx-config.ts';
import { nginxListens, nginxWorkers } from './nginx-listens.ts';
import { readText } from './files.ts';
import { readYaml } from './yaml.ts';

/** Reads a config with its includes. Throws UserError when it cannot be read or is none of these servers'. */
export async function readOwnConfig(name: string): Promise<OwnConfig> {
  const file = path.resolve(name);
  const text = await readText(file);
  const server = recognise(text, file);
  const { said } = await readers[server](file, text);
  return { server, file, ...said() };
}

/** A config over which lines can be laid. */
export interface Layable {
  facts: Facts;
  /** The changes that the lines make (none: the config says all that already), and the number of workers with them. */
  lay(laid: readonly LaidLines[]): { changes: Change[]; workers: OwnConfig['workers'] };
}

/** Reads it for knobs. Throws UserError as readOwnConfig does. */
export async function layable(
  { server, file }: Pick<OwnConfig, 'server' | 'file'>,
  page: PageAt,
): Promise<Layable> {
  return (await readers[server](file, await readText(file))).layable(page);
}

/** How a server's configs are read and changed; C is one that is read. */
interface Language<C> {
  read(file: string, text: string): Promise<C>;
  workers(config: C): OwnConfig['workers'];
  listens(config: C, file: string): OwnConfig['listens'];
  facts(config: C, page: PageAt): Facts;
  lay(config: C, laid: readonly LaidLines[], page: PageAt, from: { file: string; text: string }): C;
  settings(config: C, file: string): Setting[];
}

function reader<C>({ read, workers, listens, facts, lay, settings }: Language<C>) {
  return async (file: string, text: string) => {
    const config = await read(file, text);
    return {
      said: () => ({ workers: workers(config), listens: listens(config, file) }),
      layable: (page: PageAt): Layable => ({
        facts: facts(config, page),
        lay(laid) {
          const after = lay(config, laid, page, { file, text });
          return {
            changes: changesBetween(settings(config, file), settings(after, file)),
            workers: workers(after),
          };
        },
      }),
    };
  };
}

const readers = {
  nginx: reader({
    read: readNginxConfig,
    workers: nginxWorkers,
    listens: nginxListens,
    facts: nginxFacts,
    lay: layNginx,
    settings: nginxSettings,
  }),
  h2o: reader({
    read: readYaml,
    workers: h2oWorkers,
    listens: h2oListens,
    facts: h2oFacts,
    lay: layH2o,
    settings: h2oSettings,
  }),
  nghttpd: reader({
    read: async (file, text) => parseNghttpd(file, text),
    workers: ({ flags }) => nghttpdWorkers(flags),
    listens: ({ listen }) => [listen],
    facts: () => ({ proxied: false, logs: false, logLine: false }),
    lay: (_, laid, __, { file, text }) => parseNghttpd(file, text, laid),
    settings: ({ flags }, file) => nghttpdSettings(flags, file),
  }),
};

/** Other servers, their commands in the foreground, and a sign of their configs, without comments and indentation. */
const others: readonly [name: string, command: string, sign: RegExp][] = [
  [
    'Apache',
    'apache2 -DFOREGROUND -f',
    /^(?:<(?:VirtualHost|Directory|IfModule|Location|Files)\b|(?:ServerRoot|DocumentRoot|LoadModule|ServerTokens|Listen)\s+\S)/m,
  ],
  [
    'lighttpd',
    'lighttpd -D -f',
    /^(?:server\.(?:document-root|modules|port|username|bind)\s*\+?=|\$HTTP\[)/m,
  ],
  [
    'HAProxy',
    'haproxy -db -f',
    /^(?:global|defaults|(?:frontend|backend|listen)\s+\S+)\n(?:bind|mode|log|server|timeout|maxconn|balance|daemon|default_backend|chroot|stats|user)\b/m,
  ],
  [
    'Caddy',
    'caddy run --config',
    /^(?:file_server|reverse_proxy|handle_path|encode\s+(?:gzip|zstd)|respond|root\s+\*)(?:\s[^;\n]*)?$/m,
  ],
  ['Caddy', 'caddy run --config', /^\{\s*"(?:apps|admin)"\s*:/],
  ['Varnish', 'varnishd -F -f', /^vcl\s+4\.\d;/m],
  ['Envoy', 'envoy -c', /^static_resources:/m],
  ['Traefik', 'traefik --configfile', /^(?:entryPoints:|\[entryPoints\])/m],
  ['Squid', 'squid -N -f', /^http_port\s+\d+/m],
];

/** The server of a config, by its text. Throws UserError when it is empty, another server's, a part of a config, or unknown. */
function recognise(text: string, file: string): OwnConfig['server'] {
  const lines = text
    .split('\n')
    .map((line) =>
      line
        .replace(/^\uFEFF/, '')
        .replace(/(?:^|\s)#.*/, '')
        .trim(),
    )
    .filter((line) => line !== '');
  const bare = lines.join('\n');
  if (lines.length === 0) throw new UserError(`the config ${file} is empty`);
  if (/(?:^|[\s;}])(?:http|events)\s*\{/.test(bare)) return 'nginx';
  if (/^include\s[^\n]*;/m.test(bare) && !/^(?:server|location|upstream)\b/m.test(bare))
    return 'nginx';
  if (lines.every((line) => /^(?:--?[A-Za-z]|\d+(?:\s+\S+\s+\S+)?$)/.test(line))) return 'nghttpd';
  const [name, command] = others.find(([, , sign]) => sign.test(bare)) ?? [];
  if (name !== undefined)
    throw new UserError(
      `${file} is a config of ${name}: give the command that starts it, such as '${command} ${file}' (bakeoff knows those of nginx, h2o and nghttpd)`,
    );
  if (/^[{ \t]*(["']?)(?:hosts|listen)\1\s*:/m.test(bare)) return 'h2o';
  if (
    /^(?:server|location|upstream|map)\b[^\n]*\{|^(?:listen|server_name|worker_processes)\s[^\n]*;/m.test(
      bare,
    )
  ) {
    throw new UserError(
      `${file} is a part of an nginx config, which http { } is not in: name the whole one, e.g. /etc/nginx/nginx.conf`,
    );
  }
  throw new UserError(
    `${file} is not a config of nginx (http { }), h2o (hosts:) or nghttpd (one flag a line); a command is given in quotes: 'node server.mjs'`,
  );
}
