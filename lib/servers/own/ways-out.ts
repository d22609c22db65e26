// Directives of nginx by which it talks to other machines, beside *_pass and the servers of upstream blocks.
import { UserError, addressIn } from '../../errors.ts';
import { askedToo } from '../../result/redirections.ts';
import { bareWord, quoted, type Directive } from '../nginx-config.ts';
import { isLoopback } from '../ports.ts';
import { leaving, type ConfigCopy } from './redirect.ts';

/**
 * Directives of other modules. The first word is the address that the module connects to; the number is the port if the address has none.
 */
const backends = new Map([
  ['datadog_agent_url', 8126],
  ['drizzle_server', 3306],
  ['nchan_redis_server', 6379],
  ['nchan_redis_url', 6379],
  ['NginxModuleOtelExporterEndpoint', 4317],
  ['opentelemetry_otlp_traces_endpoint', 4317],
  ['postgres_server', 5432],
  ['statsd_server', 8125],
]);

/** Directives by which nginx asks other machines, which their words, files or clients name. */
const clients = new Set([
  'acme_issuer',
  'auth_gss',
  'auth_radius_server',
  'consul',
  'graphite_config',
  'influxdb',
  'jdomain',
  'ldap_server',
  'log_zmq_server',
  'modsecurity_rules_remote',
  'oidc_provider',
  'opentelemetry_config',
  'opentracing_load_tracer',
  'pagespeed',
  'proxy_connect',
  'radius_server',
  'sflow',
  'upsync',
]);

/** Directives with names that nginx looks up at its start, by asking another machine. */
const lookups = new Set(['debug_connection', 'resolver', 'set_real_ip_from']);

/** Returns whether a word is the name of a machine, and no address, network or option. */
function isName(word: string): boolean {
  return !/^(?:[\d.:/a-f]+|\[[\d.:a-f]+\](?::\d+)?|unix:.*|localhost|\w+=.*)$/i.test(word);
}

/** How modules name a directive that has an address, or several with commas. A base URL is one for the client. */
const addressed =
  /_(?:server|host|(?<!base_)url|address|endpoint|collector|tracker|broker_list|dsn|udplog|socketlog)$/;

/** If the directive names a backend that may be looked up, returns it with a port in the address; otherwise undefined. */
export function backendOf(directive: Directive): Directive | undefined {
  const port = backends.get(directive.name);
  const [first = '', ...others] = directive.args;
  const address = bareWord(first);
  // An address with a password is neither looked up by name nor printed.
  if (port === undefined || address.includes('@')) return undefined;
  const whole = address.replace(/^((?:\w+:\/\/)?(?:\[[^\]]*\]|[^:/?@]+))(?=[/?]|$)/, `$1:${port}`);
  return whole === address ? directive : { ...directive, args: [quoted(whole), ...others] };
}

/** Notes backends on this machine. Throws UserError for a directive that may contact another machine. */
export function requireNoClient({ name, args, origin }: Directive, { notes }: ConfigCopy): void {
  const words = args.map(bareWord);
  const [first = ''] = words;
  const isOff = first === 'off' || first === 'unplugged';
  const logsElsewhere = !/^(?:access|error)_log$/.test(name) && words.some(isSyslog);
  const looksUp = lookups.has(name) && words.some(isName);
  if (looksUp || logsElsewhere || (clients.has(name) && !isOff))
    throw new UserError(`${origin}: ${name} ${leaving}`);
  if (backendOf({ name, args, origin }) !== undefined || !isAddressed(name)) return;
  // A path names a location, or a socket.
  if (/^(?:on|off|\/.*|)$/s.test(first)) return;
  const line = `${name} ${addressIn(first)}`;
  if (!first.split(',').every(isLocal)) throw new UserError(`${origin}: ${line} ${leaving}`);
  notes.push(askedToo(line));
}

function isAddressed(name: string): boolean {
  return backends.has(name) || addressed.test(name);
}

function isSyslog(word: string): boolean {
  return /^syslog:.*server=/s.test(word);
}

/** Returns whether the host of redis://:password@host:1/2 is this machine. */
function isLocal(address: string): boolean {
  if (address.startsWith('unix:')) return true;
  const [, host = ''] =
    /^(?:\w+:\/\/)?(?:[^@/]*@)?(\[[^\]]*\]|[^:/?]*)(?::\d+)?(?:[/?].*)?$/s.exec(address) ?? [];
  return isLoopback(host);
}
