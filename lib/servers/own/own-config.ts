// What a person's own config says, before anything is started.
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { readH2o } from './h2o.ts';
import type { OwnConfig } from './listens.ts';
import { readNghttpd } from './nghttpd.ts';
import { readNginxConfig } from './nginx-includes.ts';
import { nginxListens, nginxWorkers } from './nginx-listens.ts';
import { readText } from './read-text.ts';

/** Reads one with all that it includes. Throws UserError, in one line, when it cannot be read or is none of these servers'. */
export async function readOwnConfig(name: string): Promise<OwnConfig> {
  const file = path.resolve(name);
  const text = await readText(file);
  const server = recognise(text, file);
  return { server, file, ...await readers[server](file, text) };
}

const readers: Record<OwnConfig['server'], (file: string, text: string) => Promise<Pick<OwnConfig, 'workers' | 'listens'>>> = {
  async nginx(file, text) {
    const config = await readNginxConfig(file, text);
    return { workers: nginxWorkers(config), listens: nginxListens(config, file) };
  },
  h2o: readH2o,
  nghttpd: readNghttpd,
};

/** Servers that bakeoff does not run, by what stands in their configs and in no other's, comments and indentation aside. */
const others: readonly [name: string, sign: RegExp][] = [
  ['Apache', /^(?:<(?:VirtualHost|Directory|IfModule|Location|Files)\b|(?:ServerRoot|DocumentRoot|LoadModule|ServerTokens|Listen)\s+\S)/m],
  ['lighttpd', /^(?:server\.(?:document-root|modules|port|username|bind)\s*\+?=|\$HTTP\[)/m],
  ['HAProxy', /^(?:global|defaults|(?:frontend|backend|listen)\s+\S+)\n(?:bind|mode|log|server|timeout|maxconn|balance|daemon|default_backend|chroot|stats|user)\b/m],
  ['Caddy', /^(?:file_server|reverse_proxy|handle_path|encode\s+(?:gzip|zstd)|respond|root\s+\*)(?:\s[^;\n]*)?$/m],
  ['Caddy', /^\{\s*"(?:apps|admin)"\s*:/],
  ['Varnish', /^vcl\s+4\.\d;/m],
  ['Envoy', /^static_resources:/m],
  ['Traefik', /^(?:entryPoints:|\[entryPoints\])/m],
  ['Squid', /^http_port\s+\d+/m],
];

/** How they are started in the foreground. */
const commands: Readonly<Record<string, string>> = {
  Apache: 'apache2 -DFOREGROUND -f', lighttpd: 'lighttpd -D -f', HAProxy: 'haproxy -db -f', Caddy: 'caddy run --config', Varnish: 'varnishd -F -f', Envoy: 'envoy -c', Traefik: 'traefik --configfile', Squid: 'squid -N -f',
};

/**
 * The server that a config is for, told by its text. Throws UserError when it is empty, another server's, a part of a
 * config, or nothing that is known.
 */
function recognise(text: string, file: string): OwnConfig['server'] {
  const lines = text.split('\n').map((line) => line.replace(/^\uFEFF/, '').replace(/(?:^|\s)#.*/, '').trim()).filter((line) => line !== '');
  const bare = lines.join('\n');
  if (lines.length === 0) throw new UserError(`the config ${file} is empty`);
  if (/(?:^|[\s;}])(?:http|events)\s*\{/.test(bare)) return 'nginx';
  if (/^include\s[^\n]*;/m.test(bare) && !/^(?:server|location|upstream)\b/m.test(bare)) return 'nginx';
  if (lines.every((line) => /^(?:--?[A-Za-z]|\d+(?:\s+\S+\s+\S+)?$)/.test(line))) return 'nghttpd';
  const other = others.find(([, sign]) => sign.test(bare))?.[0];
  if (other !== undefined) throw new UserError(`${file} is a config of ${other}: give the command that starts it, such as '${commands[other]} ${file}' (bakeoff knows those of nginx, h2o and nghttpd)`);
  if (/^[{ \t]*(["']?)(?:hosts|listen)\1\s*:/m.test(bare)) return 'h2o';
  if (/^(?:server|location|upstream|map)\b[^\n]*\{|^(?:listen|server_name|worker_processes)\s[^\n]*;/m.test(bare)) {
    throw new UserError(`${file} is a part of an nginx config, which http { } is not in: name the whole one, e.g. /etc/nginx/nginx.conf`);
  }
  throw new UserError(`${file} is not a config of nginx (http { }), h2o (hosts:) or nghttpd (one flag a line); a command is given in quotes: 'node server.mjs'`);
}
