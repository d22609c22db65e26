// A scenario's fields: their check, and the types that come from it. define-scenario.ts checks how fields go together.
import * as v from 'valibot';
import {
  closed,
  count,
  flag,
  given,
  givenName,
  isObject,
  list,
  name,
  oneOf,
  orAbsent,
  orNull,
  problemIn,
  problemsIn,
  text,
  texts,
  trueOrAbsent,
  upTo,
  integer,
  within,
  type Form,
  type ObjectForm,
  type Of,
} from '../form.ts';
import { serverNames, type servers, type ServerName } from '../setup/servers.ts';
import { articleForm } from './article.ts';
import { latencyMetrics } from './latency-metrics.ts';
import { publishedForm } from './published.ts';

/** The most rounds of a run. */
export const mostRounds = 1000;
/** The longest limit of a latency that a scenario may ask for (`within`). */
export const longestLatencyMs = 60_000;
const longestDelayMs = 60_000;
export const mostPages = 100_000;
export const mostWeight = 1_000_000_000;

const day = 86_400;
/** nginx allows at most 1024 workers. */
const processes = integer(1, 1024);
/** Linux's highest limit of open files (sysctl_nr_open_max). */
const files = integer(1, 2_147_483_584);
const port = integer(1, 65_535);
const many = integer(1, 1_000_000);
const perSecond = upTo(1e9);
const seconds = upTo(day);
const secondsOrNone = within(0, day);

const overlayFields = {
  /** The block of the lines: one of the server's `contexts` in lib/setup/servers.ts. */
  context: text,
  lines: text,
};
/** Lines in a server's config language that replace those of a user's config, as in server-configs/knobs/. */
export interface Overlay extends Of<typeof overlayFields> {}

const textsByName = v.custom<Record<string, string>>(
  (value) => isObject(value) && Object.values(value).every((member) => typeof member === 'string'),
  'has to be an object of texts',
);

/** A shipped config, which an editor completes, or a path of your own. */
export type ConfigName<Server extends ServerName> =
  (typeof servers)[Server]['configs'][number] | (string & {});

const configuredFields = {
  name: oneOf(serverNames),
  /** Files of `server-configs/<name>/` without `.conf`, the base first; or paths such as ./knob.conf. */
  config: texts,
  /** Worker processes; 'server-cores' is a worker per server core. */
  workers: v.lazy((value) =>
    typeof value === 'number'
      ? processes
      : v.literal('server-cores', "has to be a whole number above 0 or 'server-cores'"),
  ),
  /** The article's number of workers, for `--exact`. Default: `workers`. */
  articleWorkers: orAbsent(processes),
  /** The fewest workers with which it makes sense (accept_mutex needs 2). Default: 1. */
  minWorkers: orAbsent(processes),
  /** Limit of open files (soft and hard). Default: as many as the connections need. */
  fileLimit: orAbsent(files),
  /**
   * `config` is a single config of your own. `port` is the port to load if it has several; `overlays` go over it. It is complete, or
   * runs in the http block of nginx's config `within`. `upstreams`: backends by name, such as app:9000, and HOST:PORT or stub:50ms:2KB
   * in their place.
   */
  asIs: orAbsent(
    closed({
      port: orAbsent(port),
      overlays: orAbsent(list(given(overlayFields))),
      within: orAbsent(text),
      upstreams: orAbsent(textsByName),
    }),
  ),
  /** Path of the binary, to compare two builds. Default: the binary that all variants run. */
  binary: orAbsent(text),
};
/** A web server with a config that is composed of a base and a file per knob. */
export interface ConfiguredServer extends Of<typeof configuredFields> {}

const commandFields = {
  name: v.literal('command'),
  /**
   * Words with shell quoting, but no pipes and no variables. `{port}` and `$PORT` are the port of 127.0.0.1 to listen on; PORT is also in
   * its environment.
   */
  command: text,
  /** The command's fixed port. Default: a free port. */
  port: orAbsent(port),
  /** The working directory, as a path. Default: the directory from which the run was started. */
  folder: orAbsent(text),
  /** It speaks TLS. */
  tls: orAbsent(trueOrAbsent),
};
/** A command that answers HTTP on a port of loopback. */
export interface CommandServer extends Of<typeof commandFields> {}

const addressFields = {
  name: v.literal('address'),
  /** Such as http://127.0.0.1:8080 or https://staging.example.com, without a slash at the end. */
  origin: text,
  /** The folder of its control group (cgroup), as a path, by which its CPU time is measured. Default: its CPU time is unknown. */
  cgroup: orAbsent(text),
};
/** A running server, which the run neither starts nor stops. */
export interface AddressServer extends Of<typeof addressFields> {}

/** The server of a variant: one of serverNames with a config, a command, or an address. */
export type ServerSpec = ConfiguredServer | CommandServer | AddressServer;
const configuredServer: Form<ConfiguredServer> = given(configuredFields);
const commandServer: Form<CommandServer> = given(commandFields);
const addressServer: Form<AddressServer> = given(addressFields);
const serverSpec = v.lazy((value): Form<ServerSpec> => {
  const name = isObject(value) ? value.name : undefined;
  if (name === 'command') return commandServer;
  return name === 'address' ? addressServer : configuredServer;
});

/** The key exchanges that the load generator knows. */
export const curveNames = [
  'X25519',
  'P-256',
  'P-384',
  'P-521',
  'X25519MLKEM768',
  'SecP256r1MLKEM768',
] as const;

const tlsVersion = oneOf(['TLSv1.2', 'TLSv1.3']);
const tlsFields = {
  minVersion: orAbsent(tlsVersion),
  maxVersion: orAbsent(tlsVersion),
  /** The ciphers of TLS 1.2, such as ECDHE-RSA-AES128-GCM-SHA256. */
  ciphers: orAbsent(texts),
  /** Such as X25519, P-256, or X25519MLKEM768, which browsers offer. */
  curves: orAbsent(texts),
  /** Share, 0 to 1, of new connections that resume a session by a ticket; the first one of each client has none. Default: 0. */
  resume: orAbsent(within(0, 1)),
};
/** TLS versions, ciphers and curves that the client offers, in OpenSSL's names, and how often it resumes. */
export interface TlsOffer extends Of<typeof tlsFields> {}

export const protocol = oneOf(['http/1.0', 'http/1.1', 'h2', 'h2c', 'h3']);
export type Protocol = v.InferOutput<typeof protocol>;
const arrivals = oneOf(['constant', 'poisson']);
export type Arrivals = v.InferOutput<typeof arrivals>;

/** RFC 9113, section 6.9.1. */
const receiveWindow = integer(1, 2 ** 31 - 1);
const windowFields = {
  /** The window of each stream. */
  stream: orAbsent(receiveWindow),
  /** The window of all streams of a connection; over HTTP/2 65,535 or more. */
  connection: orAbsent(receiveWindow),
};
/**
 * The client's receive windows, in bytes: how much of its answers a server may send before the client allows more, which it does once it
 * has read half. Default: 2^30 − 1 each, as h2load's, so that no server waits for one.
 */
export interface ReceiveWindow extends Of<typeof windowFields> {}

const loadFields = {
  /** The load generator's command line, such as `wrk -c 100 -t 10 -d 10`. */
  command: text,
  /** h2 is HTTP/2 over TLS, h2c HTTP/2 without TLS, h3 HTTP/3. HTTP/1 has TLS if the server has. */
  protocol,
  connections: many,
  /** Concurrent requests per connection (h2, h2c, h3). Default: 1. */
  streams: orAbsent(many),
  /** The streams of a connection start together, as the files of a page, and again once all are answered. Latencies are of pages. */
  together: orAbsent(trueOrAbsent),
  /** Receive windows (h2, h2c, h3). */
  window: orAbsent(given(windowFields)),
  /** Open model: requests/s that start whether or not earlier ones are answered. */
  rate: orAbsent(perSecond),
  /** How requests at a rate arrive: evenly spread (default), or as a Poisson process, in which some requests queue. */
  arrivals: orAbsent(arrivals),
  /** Upper ends of the latency buckets, in ascending seconds. A last bucket takes the rest. */
  bucketSeconds: orAbsent(list(seconds)),
  /** Default: TLS 1.2 and 1.3, h2load's curves. */
  tls: orAbsent(given(tlsFields)),
  /** A request that takes longer is an error of kind timeout. Default: 5. */
  timeoutSeconds: orAbsent(seconds),
  /** Expected requests/s, to estimate the run's time. Default: those of a server on loopback. */
  expectedRps: orAbsent(perSecond),
  /** Generator threads; at most the generator's cores unless `--exact`. */
  threads: processes,
  keepAlive: flag,
  /** Load before the measured window, if there is any. Default: 1. */
  warmupSeconds: orAbsent(secondsOrNone),
  /** This or `requests`. */
  durationSeconds: orAbsent(seconds),
  /** This or `durationSeconds`. With `rate` it is rate times duration, and all are awaited. */
  requests: orAbsent(integer(1, 1e12)),
  /** The measured window instead of `requests` that take hours, unless `--exact`. */
  secondsHere: orAbsent(seconds),
  /** Default: GET. */
  method: orAbsent(text),
  headers: orAbsent(textsByName),
  body: orAbsent(text),
};
/** A load as a user or an article's command line describes it, before fitLoad makes a Load for this machine of it. */
export interface LoadProfile extends Of<typeof loadFields> {}
const loadProfile = given(loadFields);

const requestFields = {
  /** The path with its query. */
  target: text,
  /** Default: the load's, with its body. */
  method: orAbsent(text),
  /** They replace the load's of the same name. */
  headers: orAbsent(textsByName),
  body: orAbsent(text),
  /** Instead of `body`: the body's bytes in base64. */
  bodyBase64: orAbsent(text),
  /** How often it is made beside the others. Default: 1. */
  weight: orAbsent(integer(1, mostWeight)),
  /** The expected status. Default: the page's. */
  status: orAbsent(integer(200, 599)),
};
/** One of the requests that a load mixes. */
export interface LoadRequest extends Of<typeof requestFields> {}
export const requestsForm = v.pipe(
  list(given(requestFields)),
  v.check((all) => all.length <= mostPages, `has to have at most ${mostPages} requests`),
);
const pageFields = {
  /** The folder of `server-configs/www/` to serve, or a path such as ./www. Default: the server's own config says (`asIs`). */
  docroot: orAbsent(text),
  /** The path of the URL, with its query. `/` is index.html. */
  path: text,
  /** The Host or :authority to send. Default: the server's address. */
  host: orAbsent(text),
  /** The requests to mix, with `path` among their targets. Default: `path` alone. */
  requests: orAbsent(requestsForm),
  /** The exact length of the body; of several pages the weighted mean, rounded. Default: that of each first answer. */
  bodyBytes: orAbsent(count),
  /** The expected status. Default: 200. Under load, answers of another class fail. */
  status: orAbsent(integer(200, 599)),
};
/** The page to request. */
export interface Page extends Of<typeof pageFields> {}
const page = given(pageFields);

const directionFields = {
  delayMs: within(0, longestDelayMs),
  /** Packets on their way at a time; more are dropped. netem's default is 1000. Default: no limit. */
  queuePackets: orAbsent(integer(1, 1e9)),
  /** The link's rate. Default: no limit. */
  bytesPerSecond: orAbsent(within(1, 1e12)),
  /** Share of lost packets, 0 to 1. Default: none. */
  lossShare: orAbsent(
    v.pipe(
      within(0, 1),
      v.check((share) => share < 1, 'has to be below 1: 0.01 is 1 %'),
    ),
  ),
  /** Packets lost in a row in the mean (Gilbert's model). Default: packets are lost one by one. */
  lossBurstPackets: orAbsent(within(1, 1e6)),
};
/** Effect of a link on the packets of one direction. */
export interface LinkDirection extends Of<typeof directionFields> {}

const networkFields = (object: ObjectForm) => {
  const direction: Form<LinkDirection> = given(directionFields, object);
  return {
    toServer: direction,
    toClient: direction,
    /** Kernel settings of the server's namespace: files of `server-configs/sysctl/` without `.conf`, or paths. The last one wins. */
    serverSettings: texts,
    /** The same for the client's namespace. */
    clientSettings: texts,
  };
};
/** An emulated network: client and server in a namespace each, joined by a link. */
export interface NetworkSpec extends Of<ReturnType<typeof networkFields>> {}

/** @param object `open` for a result, which a newer bakeoff may have written */
export const networkForm = (object: ObjectForm): Form<NetworkSpec> =>
  given(networkFields(object), object);
const network = networkForm(closed);

const withinFields = {
  metric: oneOf(latencyMetrics),
  ms: within(0.001, longestLatencyMs),
};
/** A limit of the latency: of a percentile, in milliseconds. */
export interface Within extends Of<typeof withinFields> {}

/** @param object as in networkForm */
export const withinForm = (object: ObjectForm): Form<Within> => given(withinFields, object);

const variantFields = {
  name: givenName,
  /** A text says why nobody can run this here: its figures are published only. */
  server: v.lazy((value): Form<ServerSpec | string> =>
    typeof value === 'object' ? serverSpec : v.string('has to be a text or an object'),
  ),
  /** Default: the scenario's load. */
  load: orAbsent(loadProfile),
  /** Absent if nobody published figures of this variant. */
  published: orAbsent(publishedForm(closed)),
  /** Run only if `--variants` names it. */
  onRequest: orAbsent(flag),
  /** The variant's baseline. Default: the scenario's first variant. null: it is a baseline itself. */
  against: orAbsent(orNull(text)),
  /** With fewer server cores the variant equals its baseline, and gets no verdict. */
  needsServerCores: orAbsent(processes),
  /** Default: the scenario's page. */
  page: orAbsent(page),
  /** Default: the scenario's network. */
  network: orAbsent(network),
  /** A sentence for the row, such as why the variant is there. */
  note: orAbsent(text),
  /** Variants of a series differ in their rate, or in the loss or delay of their link, and make a curve. */
  series: orAbsent(name),
};
/** A row of the table. */
export interface Variant extends Of<typeof variantFields> {}

const scenarioFields = {
  name: givenName,
  /** A line for the list of scenarios. */
  title: text,
  /** Absent for a comparison of your own. */
  article: orAbsent(articleForm),
  /** The knob in words, such as "open_file_cache". */
  knob: text,
  load: loadProfile,
  page,
  /** Default: loopback. A scenario with a network has a single load phase and no `asIs` config. */
  network: orAbsent(network),
  /** Successive load phases on a running server. Default: a single phase. */
  phases: orAbsent(closed({ count: integer(1, 100), pauseSeconds: secondsOrNone })),
  /** A command for the shell before the servers start, in each round. It runs in the caller's folder. */
  prepare: orAbsent(text),
  /** Default: the runner's number of rounds. */
  rounds: orAbsent(integer(1, mostRounds)),
  /** Searches for the highest rate at which each variant keeps this limit. The load's rate and length do not count. */
  within: orAbsent(withinForm(closed)),
  variants: list(given(variantFields)),
  /** Comparisons beside those of the rows. */
  alsoCompare: orAbsent(list(closed({ variant: text, against: text }))),
  /** All variants are equal on purpose: the result states this machine's noise floor. */
  control: orAbsent(trueOrAbsent),
  /** Server and generator run on all cores, as the article's did. */
  sharedCores: orAbsent(trueOrAbsent),
  /** Facts for readers of the table, such as kernel settings of the article that are not applied here. */
  footnotes: orAbsent(texts),
};
/** Variants to compare, their load, and the article's figures. */
export interface Scenario extends Of<typeof scenarioFields> {}
const scenario = given(scenarioFields);

/** Fields that decide what is measured. If one changes, the published figures of variants no longer compare. */
export const measuringFields = ['phases', 'within'] as const satisfies readonly (keyof Scenario)[];

/** Returns why the fields that decide what is measured do not go together; undefined if they do. */
export function problemOfMeasuring({ phases, within }: Scenario): string | undefined {
  if (within === undefined || (phases?.count ?? 1) === 1) return undefined;
  return 'has within, and phases.count: a search has load phases of its own';
}

/** The wrong fields, such as `variants[0].load.connections 0.5 has to be …`; none if all are right. */
export const problemsOfForm = (value: unknown): string[] => problemsIn(scenario, value);

/** The first wrong field of a load. */
export const problemOfLoadForm = (value: unknown): string | undefined =>
  problemIn(loadProfile, value);
