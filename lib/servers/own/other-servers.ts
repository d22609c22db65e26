// Servers that bakeoff starts by a command only: recognises their configs by content or name, and suggests the command.
import path from 'node:path';
import { textOf } from '../../files.ts';
import { pidFileMoved } from '../../result/redirections.ts';
import { temporary } from './redirect.ts';

interface Other {
  /** The server's name as it writes it. */
  name: string;
  /** All of these match the server's configs, and no config that bakeoff reads. */
  says: readonly RegExp[];
  named: RegExp;
  /** Returns the command that starts the server in the foreground. @param file quoted for a shell */
  command(file: string, text: string): string;
  /** How the config takes its port from the environment; '' if it cannot. */
  port: string;
}

const others: readonly Other[] = [
  {
    name: 'Caddy',
    says: [
      /^(?:(?:file_server|reverse_proxy|respond|root \*|encode|php_fastcgi|tls internal|auto_https)\b[^;\n]*|handle(?:_path|_errors)?\b[^;\n]*\{|\{?[ ]*"apps":.*)$/m,
    ],
    named: /(?:^|\.)caddy(?:file)?(?:\.|$)/i,
    command: (file, text) =>
      `caddy run ${/^\{\s*"/.test(text) ? '' : '--adapter caddyfile '}--config ${file}`,
    port: '{$PORT}',
  },
  {
    name: 'HAProxy',
    says: [
      /^(?:global|defaults|frontend|backend|listen)\b[^;:{=\n]*$/m,
      /^(?:bind|server|mode|timeout|default_backend|maxconn)\s[^;\n]*$/m,
    ],
    named: /haproxy/i,
    command: (file) => `haproxy -db -f ${file}`,
    port: '${PORT}',
  },
  {
    name: 'Apache',
    says: [
      /^(?:<(?:VirtualHost|Directory|Location|IfModule|Files)\b|(?:Listen|ServerRoot|DocumentRoot|LoadModule|ServerName)\s[^;\n]*$)/m,
    ],
    named: /apache|httpd/i,
    command: (file) => `apache2 -DFOREGROUND -f ${file}`,
    port: '${PORT}',
  },
  {
    name: 'lighttpd',
    says: [/^(?:server|mimetype|index-file|dir-listing|url)\.[a-z-]+\s*\+?:?=/m],
    named: /lighttpd/i,
    command: (file) => `lighttpd -D -f ${file}`,
    port: 'env.PORT',
  },
  {
    name: 'Envoy',
    says: [/^"?(?:static_resources|dynamic_resources)"?\s*:/m],
    named: /envoy/i,
    command: (file) => `envoy -c ${file}`,
    port: '',
  },
  {
    name: 'Traefik',
    says: [/^(?:entryPoints\s*:|\[entryPoints)/m],
    named: /traefik/i,
    command: (file) => `traefik --configFile=${file}`,
    port: '',
  },
  {
    name: 'Varnish',
    says: [/^vcl\s+4/m],
    named: /\.vcl$/i,
    command: (file) => `varnishd -F -a 127.0.0.1:{port} -f ${file}`,
    port: '',
  },
];

/** The program that runs a file, by the ending of the file's name. */
const interpreters: Readonly<Record<string, string>> = {
  '.js': 'node',
  '.mjs': 'node',
  '.cjs': 'node',
  '.ts': 'node',
  '.py': 'python3',
  '.rb': 'ruby',
  '.go': 'go run',
  '.jar': 'java -jar',
};

/** bakeoff's additions to a command. Variables that the command sets itself take precedence. */
interface Added {
  args: string[];
  env: Record<string, string>;
  redirections: string[];
}

const debiansVariables = '/etc/apache2/envvars';

/** Returns whether a command is Apache. Other servers are called httpd too, such as that of busybox. */
function isApache(program: string, args: readonly string[]): boolean {
  const isNamed = /^(?:apache2|httpd)(?:-\w+)?$/.test(path.basename(program));
  return isNamed && /(?:^| )-(?:X|D ?(?:FOREGROUND|NO_DETACH))(?: |$)/.test(args.join(' '));
}

/**
 * Returns what lets several Apaches run at once, and keeps them from writing into folders of the user or of the machine's own Apache.
 * @param program its path, without links
 * @param temp the side's own folder
 */
export function addedTo(program: string, commandArgs: readonly string[], temp: string): Added {
  if (!isApache(program, commandArgs)) return { args: [], env: {}, redirections: [] };
  // Apache reads -C before its config, and -c after it.
  const args = ['-C', `DefaultRuntimeDir "${temp}"`, '-c', `PidFile "${temp}/apache2.pid"`];
  // Debian's config has user and folders from the environment.
  const users = textOf(debiansVariables).matchAll(
    /^export (APACHE_RUN_(?:USER|GROUP))=([\w-]+)$/gm,
  );
  const folders = ['RUN', 'LOCK', 'LOG'].map((name) => [`APACHE_${name}_DIR`, temp] as const);
  return {
    args: [...args, '-c', 'ErrorLog /dev/stderr'],
    env: {
      APACHE_PID_FILE: `${temp}/apache2.pid`,
      ...Object.fromEntries(folders),
      ...Object.fromEntries([...users].map(([, name = '', value = '']) => [name, value])),
    },
    redirections: [pidFileMoved(temporary), 'ErrorLog → output.log of this run'],
  };
}

/** Adds the meaning of a failed command's last line to its message, if it is known. */
export function withApachesReason(message: string): string {
  if (/httpd \(pid \d+\) already running$/.test(message))
    return `${message}: two Apaches have one PidFile: give apache2 itself as the command, with -DFOREGROUND and without a shell or apachectl, and it gets a PidFile of its own`;
  return message;
}

const isOf = ({ says }: Other, text: string): boolean => says.every((sign) => sign.test(text));

/** Returns the server whose config has this text, by its content. @param text without comments */
export function otherServerOf(text: string): string | undefined {
  return others.find((other) => isOf(other, text))?.name;
}

/** Returns what to give instead of a file that is no config that bakeoff reads. @param text without comments */
export function otherServerHint(text: string, file: string): string {
  const base = path.basename(file);
  const other =
    others.find((other) => isOf(other, text)) ?? others.find(({ named }) => named.test(base));
  const shown = /^[\w./:@%+-]+$/.test(file) ? file : JSON.stringify(file);
  if (other !== undefined) {
    const { name, command, port } = other;
    const given = command(shown, text);
    const at = port === '' ? 'at the port' : `at ${port}, or at a port of its own`;
    const how = given.includes('{port}')
      ? ''
      : ` (it has to listen on 127.0.0.1, ${at} that --port says)`;
    return `${file} is a config of ${name}: give its command, '${given}'${how}`;
  }
  const interpreter = interpreters[path.extname(base)];
  if (interpreter !== undefined)
    return `${file} is a program: give its command, '${interpreter} ${shown}', which listens at the port in PORT`;
  return `${file} is not a config of nginx (http { }), h2o (hosts:) or nghttpd (one flag a line): give another server's command in the foreground, in quotes, such as 'node server.mjs'`;
}
