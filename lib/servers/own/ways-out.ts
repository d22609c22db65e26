// Directives by which nginx talks to other machines, beside *_pass and upstreams.
import { UserError, addressIn } from '../../errors.ts';
import { bareWord, quoted, type Directive } from '../nginx-config.ts';
import { isLoopback } from '../ports.ts';
import { leaving, type ConfigCopy } from './redirect.ts';

/** Other modules' directives: the first word is an address, with this port by default. */
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

/** nginx asks machines that their words, files or clients name. */
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

/** Names are looked up at the start, by another machine. */
const lookups = new Set(['debug_connection', 'resolver', 'set_real_ip_from']);

/** No address, network or option. */
function isName(word: string): boolean {
  return !/^(?:[\d.:/a-f]+|\[[\d.:a-f]+\](?::\d+)?|unix:.*|localhost|\w+=.*)$/i.test(word);
}

/** Modules' names of directives with an address, or several with commas. A base URL is for the client. */
const addressed =
  /_(?:server|host|(?<!base_)url|address|endpoint|collector|tracker|broker_list|dsn|udplog|socketlog)$/;

/** The address with a port, for a backend that may be looked up. */
export function backendOf(directive: Directive): Directive | undefined {
  const port = backends.get(directive.name);
  const [first = '', ...others] = directive.args;
  const address = bareWord(first);
  // One with a password is neither looked up nor printed.
  if (port === undefined || address.includes('@')) return undefined;
  const whole = address.replace(/^((?:\w+:\/\/)?(?:\[[^\]]*\]|[^:/?@]+))(?=[/?]|$)/, `$1:${port}`);
  return whole === address ? directive : { ...directive, args: [quoted(whole), ...others] };
}

/** Records backends here. @throws UserError if another machine may be contacted */
export function requireNoClient({ name, args, origin }: Directive, { notes }: ConfigCopy): void {
  const words = args.map(bareWord);
  const [first = ''] = words;
  const isOff = first === 'off' || first === 'unplugged';
  const logsElsewhere = !/^(?:access|error)_log$/.test(name) && words.some(isSyslog);
  const looksUp = lookups.has(name) && words.some(isName);
  if (looksUp || logsElsewhere || (clients.has(name) && !isOff))
    throw new UserError(`${origin}: ${name} ${leaving}`);
  if (backendOf({ name, args, origin }) !== undefined || !isAddressed(name)) return;
  // A location, or a socket.
  if (/^(?:on|off|\/.*|)$/s.test(first)) return;
  const line = `${name} ${addressIn(first)}`;
  if (!first.split(',').every(isLocal)) throw new UserError(`${origin}: ${line} ${leaving}`);
  notes.push(`${line}: what runs there is asked too`);
}

function isAddressed(name: string): boolean {
  return backends.has(name) || addressed.test(name);
}

function isSyslog(word: string): boolean {
  return /^syslog:.*server=/s.test(word);
}

/** Takes an address such as redis://:password@host:1/2. */
function isLocal(address: string): boolean {
  if (address.startsWith('unix:')) return true;
  const [, host = ''] =
    /^(?:\w+:\/\/)?(?:[^@/]*@)?(\[[^\]]*\]|[^:/?]*)(?::\d+)?(?:[/?].*)?$/s.exec(address) ?? [];
  return isLoopback(host);
}
