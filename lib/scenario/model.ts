// A scenario's fields: their check and types. define-scenario.ts checks how they go together.
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
import { articleForm } from './article.ts';
import { latencyMetrics } from './latency-metrics.ts';
import { publishedForm } from './published.ts';

export const mostRounds = 1000;
export const longestLatencyMs = 60_000;
const longestDelayMs = 60_000;
export const mostPages = 100_000;
export const mostWeight = 1_000_000_000;

const day = 86_400;
/** nginx's limit. */
const processes = integer(1, 1024);
/** Linux's highest limit of open files (sysctl_nr_open_max). */
const files = integer(1, 2_147_483_584);
const port = integer(1, 65_535);
const many = integer(1, 1_000_000);
const perSecond = upTo(1e9);
const seconds = upTo(day);
const secondsOrNone = within(0, day);

export const serverNames = ['nginx', 'h2o', 'nghttpd'] as const;
const serverName = oneOf(serverNames);
export type ServerName = v.InferOutput<typeof serverName>;

const overlayFields = {
  /** The block of the lines. nginx: main, events, http or server. h2o: top or ssl. nghttpd: flags. */
  context: text,
  lines: text,
};
/** Lines that replace those of a user's config, as in server-configs/knobs/. */
export interface Overlay extends Of<typeof overlayFields> {}

const textsByName = v.custom<Record<string, string>>(
  (value) => isObject(value) && Object.values(value).every((member) => typeof member === 'string'),
  'has to be an object of texts',
);

const configuredFields = {
  name: serverName,
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
   * `config` is your own, complete or for the http block of nginx's config `within`. `port` to load if it has several; `overlays` go over it;
   * `upstreams`: HOST:PORT or stub:50ms:2KB by a backend's name.
   */
  asIs: orAbsent(
    closed({
      port: orAbsent(port),
      overlays: orAbsent(list(given(overlayFields))),
      within: orAbsent(text),
      upstreams: orAbsent(textsByName),
    }),
  ),
  /** The binary's path, to compare builds. Default: one for all variants. */
  binary: orAbsent(text),
};
/** A server with a config of a base and a file per knob. */
export interface ConfiguredServer extends Of<typeof configuredFields> {}

const commandFields = {
  name: v.literal('command'),
  /**
   * Words with shell quoting, without pipes or variables. `{port}`, `$PORT` and the variable PORT are the port of 127.0.0.1 to listen on.
   */
  command: text,
  /** The command's fixed port. Default: a free port. */
  port: orAbsent(port),
  /** Default: the caller's. */
  folder: orAbsent(text),
  tls: orAbsent(trueOrAbsent),
};
/** A command that answers HTTP on a port of loopback. */
export interface CommandServer extends Of<typeof commandFields> {}

const addressFields = {
  name: v.literal('address'),
  /** Such as http://127.0.0.1:8080 or https://staging.example.com, without a slash at the end. */
  origin: text,
  /** Path of its control group (cgroup). Default: its CPU time is unknown. */
  cgroup: orAbsent(text),
};
/** A server that the run neither starts nor stops. */
export interface AddressServer extends Of<typeof addressFields> {}

export type ServerSpec = ConfiguredServer | CommandServer | AddressServer;
const configuredServer: Form<ConfiguredServer> = given(configuredFields);
const commandServer: Form<CommandServer> = given(commandFields);
const addressServer: Form<AddressServer> = given(addressFields);
const serverSpec = v.lazy((value): Form<ServerSpec> => {
  const name = isObject(value) ? value.name : undefined;
  if (name === 'command') return commandServer;
  return name === 'address' ? addressServer : configuredServer;
});

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
  /** For TLS 1.2 only, such as ECDHE-RSA-AES128-GCM-SHA256. */
  ciphers: orAbsent(texts),
  curves: orAbsent(texts),
  /** Share, 0 to 1, of new connections that resume a session by a ticket. Default: 0. */
  resume: orAbsent(within(0, 1)),
};
/** What the client offers, in OpenSSL's names. */
export interface TlsOffer extends Of<typeof tlsFields> {}

export const protocol = oneOf(['http/1.0', 'http/1.1', 'h2', 'h2c', 'h3']);
export type Protocol = v.InferOutput<typeof protocol>;
const arrivals = oneOf(['constant', 'poisson']);
export type Arrivals = v.InferOutput<typeof arrivals>;

/** RFC 9113, section 6.9.1. */
const receiveWindow = integer(1, 2 ** 31 - 1);
const windowFields = {
  stream: orAbsent(receiveWindow),
  /** Of all streams of a connection; over HTTP/2 65,535 or more. */
  connection: orAbsent(receiveWindow),
};
/** The client's receive windows, in bytes, which it opens again once it has read half. Default: 2^30 − 1 each, as h2load's. */
export interface ReceiveWindow extends Of<typeof windowFields> {}

const loadFields = {
  /** The load generator's command line, such as `wrk -c 100 -t 10 -d 10`. */
  command: text,
  /** h2 has TLS, h2c none; HTTP/1 if the server has. */
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
  /** At a rate. Default: constant. */
  arrivals: orAbsent(arrivals),
  /** Upper ends of the latency buckets, ascending. A last one takes the rest. */
  bucketSeconds: orAbsent(list(seconds)),
  /** Default: TLS 1.2 and 1.3, h2load's curves. */
  tls: orAbsent(given(tlsFields)),
  /** A request that takes longer is an error of kind timeout. Default: 5. */
  timeoutSeconds: orAbsent(seconds),
  /** Requests/s, to estimate the run's time. Default: on loopback. */
  expectedRps: orAbsent(perSecond),
  /** At most the generator's cores unless `--exact`. */
  threads: processes,
  keepAlive: flag,
  /** Load before the measured window, if there is any. Default: 1. */
  warmupSeconds: orAbsent(secondsOrNone),
  /** This or `requests`. */
  durationSeconds: orAbsent(seconds),
  /** Or `durationSeconds`. With `rate` it is rate times duration, all awaited. */
  requests: orAbsent(integer(1, 1e12)),
  /** Instead of `requests` that take hours, unless `--exact`. */
  secondsHere: orAbsent(seconds),
  /** Default: GET. */
  method: orAbsent(text),
  headers: orAbsent(textsByName),
  body: orAbsent(text),
};
/** A load as written, before fitLoad. */
export interface LoadProfile extends Of<typeof loadFields> {}
const loadProfile = given(loadFields);

const requestFields = {
  target: text,
  /** Default: the load's, with its body. */
  method: orAbsent(text),
  /** They replace the load's of the same name. */
  headers: orAbsent(textsByName),
  body: orAbsent(text),
  /** `body` in bytes. */
  bodyBase64: orAbsent(text),
  weight: orAbsent(integer(1, mostWeight)),
  /** The expected status. Default: the page's. */
  status: orAbsent(integer(200, 599)),
};
export interface LoadRequest extends Of<typeof requestFields> {}
export const requestsForm = v.pipe(
  list(given(requestFields)),
  v.check((all) => all.length <= mostPages, `has to have at most ${mostPages} requests`),
);
const pageFields = {
  /** A folder of `server-configs/www/`, or a path. Absent: the server's own config says (`asIs`). */
  docroot: orAbsent(text),
  /** With its query. `/` is index.html. */
  path: text,
  /** The Host or :authority to send. Default: the server's address. */
  host: orAbsent(text),
  /** The requests to mix, with `path` among their targets. Default: `path` alone. */
  requests: orAbsent(requestsForm),
  /** The exact length of the body; of several pages the weighted mean, rounded. Absent: that of each first answer. */
  bodyBytes: orAbsent(count),
  /** Default: 200. Under load, answers of another class fail. */
  status: orAbsent(integer(200, 599)),
};
export interface Page extends Of<typeof pageFields> {}
const page = given(pageFields);

const directionFields = {
  delayMs: within(0, longestDelayMs),
  /** Packets on their way at a time; more are dropped. Absent: no limit. */
  queuePackets: orAbsent(integer(1, 1e9)),
  /** Absent: no limit. */
  bytesPerSecond: orAbsent(within(1, 1e12)),
  /** Share of lost packets, 0 to 1. Absent: none. */
  lossShare: orAbsent(
    v.pipe(
      within(0, 1),
      v.check((share) => share < 1, 'has to be below 1: 0.01 is 1 %'),
    ),
  ),
  /** Packets lost in a row in the mean (Gilbert's model). Absent: each by itself. */
  lossBurstPackets: orAbsent(within(1, 1e6)),
};
export interface LinkDirection extends Of<typeof directionFields> {}

const networkFields = (object: ObjectForm) => {
  const direction: Form<LinkDirection> = given(directionFields, object);
  return {
    toServer: direction,
    toClient: direction,
    /** The namespace's kernel settings: files of `server-configs/sysctl/` without `.conf`, or paths. The last one wins. */
    serverSettings: texts,
    clientSettings: texts,
  };
};
/** An emulated network: client and server in a namespace each, joined by a link. */
export interface NetworkSpec extends Of<ReturnType<typeof networkFields>> {}

/** @param object `open` for a result, perhaps of a newer bakeoff */
export const networkForm = (object: ObjectForm): Form<NetworkSpec> =>
  given(networkFields(object), object);
const network = networkForm(closed);

const withinFields = {
  metric: oneOf(latencyMetrics),
  ms: within(0.001, longestLatencyMs),
};
/** A limit of a percentile of the latency. */
export interface Within extends Of<typeof withinFields> {}

/** @param object as in networkForm */
export const withinForm = (object: ObjectForm): Form<Within> => given(withinFields, object);

const variantFields = {
  name: givenName,
  /** A text: why nobody can run it here. */
  server: v.lazy((value): Form<ServerSpec | string> =>
    typeof value === 'object' ? serverSpec : v.string('has to be a text or an object'),
  ),
  load: orAbsent(loadProfile),
  published: orAbsent(publishedForm(closed)),
  /** Run only if `--variants` names it. */
  onRequest: orAbsent(flag),
  /** Its baseline. Default: the scenario's first variant. null: it is one itself. */
  against: orAbsent(orNull(text)),
  /** A variant with fewer equals its baseline, and gets no verdict. */
  needsServerCores: orAbsent(processes),
  page: orAbsent(page),
  network: orAbsent(network),
  /** A sentence for its row. */
  note: orAbsent(text),
  /** Variants that differ in their rate, or in their link's loss or delay, and make a curve. */
  series: orAbsent(name),
};
export interface Variant extends Of<typeof variantFields> {}

const scenarioFields = {
  name: givenName,
  /** A line for the list of scenarios. */
  title: text,
  /** Absent for a comparison of your own. */
  article: orAbsent(articleForm),
  /** A few words, such as "open_file_cache". */
  knob: text,
  load: loadProfile,
  page,
  /** Default: loopback. With a network there is one load phase and no `asIs` config. */
  network: orAbsent(network),
  /** They follow each other on a running server. Default: one. */
  phases: orAbsent(closed({ count: integer(1, 100), pauseSeconds: secondsOrNone })),
  /** A shell's command before the servers start, in each round, in the caller's folder. */
  prepare: orAbsent(text),
  /** Default: the runner's number of rounds. */
  rounds: orAbsent(integer(1, mostRounds)),
  /** Searches for the highest rate with which each variant keeps this limit. The load's own does not count. */
  within: orAbsent(withinForm(closed)),
  variants: list(given(variantFields)),
  /** Comparisons beside those of the rows. */
  alsoCompare: orAbsent(list(closed({ variant: text, against: text }))),
  /** Variants are equal on purpose: the result states the noise floor. */
  control: orAbsent(trueOrAbsent),
  /** Server and generator run on all cores. */
  sharedCores: orAbsent(trueOrAbsent),
  /** Facts such as the article's kernel settings that are not applied here. */
  footnotes: orAbsent(texts),
};
export interface Scenario extends Of<typeof scenarioFields> {}
const scenario = given(scenarioFields);

/** Published figures do not compare if one changes. */
export const measuringFields = ['phases', 'within'] as const satisfies readonly (keyof Scenario)[];

export function problemOfMeasuring({ phases, within }: Scenario): string | undefined {
  if (within === undefined || (phases?.count ?? 1) === 1) return undefined;
  return 'has within, and phases.count: a search has load phases of its own';
}

/** A line is `variants[0].load.connections 0.5 has to be …`. */
export const problemsOfForm = (value: unknown): string[] => problemsIn(scenario, value);

export const problemOfLoadForm = (value: unknown): string | undefined =>
  problemIn(loadProfile, value);
