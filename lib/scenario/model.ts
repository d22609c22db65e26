// The model of a scenario: what is compared, under which load, and what the article published.
// schema.ts checks its fields, and does not compile unless it says the same; define-scenario.ts checks what they are together;
// scenario files get all from index.ts.

/** What a variant measures: a web server that the suite has configs for, a command of a person's own, or something that runs already. */
export type ServerSpec = ConfiguredServer | CommandServer | AddressServer;

export type ServerName = 'nginx' | 'h2o' | 'nghttpd';

/** One web server with its composed config. `config` names files of `server-configs/<name>/`: a base and one per knob. */
export interface ConfiguredServer {
  name: ServerName;
  /** File names without `.conf`, the base first; a config of your own by its path: ./knob.conf, from the scenario's file, or absolute. */
  config: readonly string[];
  /** Worker processes: a number, or 'server-cores', one per server core. */
  workers: number | 'server-cores';
  /** What the article had, and `--exact` runs; absent where it does not say how many: then `workers` holds there too. */
  articleWorkers?: number;
  /** The fewest workers under which the variant still means what it says (accept_mutex needs 2); default 1. */
  minWorkers?: number;
  /** The server's limit of open files (soft and hard); default: as many as its connections need. */
  fileLimit?: number;
  /** `config` is one whole config of your own, which runs as it is. `port`: the one to load of several. `laid`: lines laid over it. */
  asIs?: { port?: number; laid?: readonly LaidLines[] };
  /** The path of its binary, where two builds of one server are compared; default: the one that all variants run. */
  binary?: string;
}

/** Lines in the config language of a server that take the places of a person's own, as server-configs/knobs/ has them. */
export interface LaidLines {
  /** The block where they are: of nginx main, events, http or server; of h2o top or ssl; of nghttpd flags. */
  context: string;
  lines: string;
}

/** A command that answers HTTP on a port of loopback. */
export interface CommandServer {
  name: 'command';
  /** Its words as a shell reads them, without a shell: quotes, but no pipes and no variables. `{port}`, or `$PORT`, is the port of 127.0.0.1 to listen on, which PORT in its environment says too. */
  command: string;
  /** The port that it listens on, where it cannot be told one; default: a free one. */
  port?: number;
  /** The folder that it runs in, as a config's path; default: the one from which the run was started. */
  folder?: string;
  /** It speaks TLS. */
  tls?: true;
}

/** Something that runs already, and that the run neither starts, stops nor samples. */
export interface AddressServer {
  name: 'address';
  /** e.g. http://127.0.0.1:8080 or https://staging.example.com (no trailing slash). */
  origin: string;
}

export type Arrivals = 'constant' | 'poisson';

/** A load profile as parsed from an article's command line, before it is fitted to this machine. */
export interface LoadProfile {
  /** The command line as the article gives it, e.g. `wrk -c 100 -t 10 -d 10`. */
  command: string;
  /** Over TLS or not is the server's to say (`https://` in its origin); h2 is HTTP/2 over TLS, h2c without. */
  protocol: 'http/1.0' | 'http/1.1' | 'h2' | 'h2c';
  connections: number;
  /** Concurrent requests per connection (h2, h2c); default 1. */
  streams?: number;
  /** Open model: requests/s that start whether or not earlier ones are answered. */
  rate?: number;
  /** Of a rate: evenly spread as vegeta's (the default), or a Poisson process, in which some come together and queue. */
  arrivals?: Arrivals;
  /** Upper ends, in seconds, of the latency buckets that are counted, ascending; one more takes all that is longer. */
  bucketSeconds?: readonly number[];
  /** What the client offers; default: TLS 1.2 and 1.3, h2load's curves. Names are OpenSSL's. */
  tls?: TlsOffer;
  /** After this an attempt is an error of kind timeout; default 5. */
  timeoutSeconds?: number;
  /** requests/s to expect, for the estimate of time; default: what a server on loopback does. */
  expectedRps?: number;
  /** Generator threads of the article; fitted to the generator's cores unless `--exact`. */
  threads: number;
  keepAlive: boolean;
  /** Load before the measured window, where there is one; default 1. */
  warmupSeconds?: number;
  /** One of the two is set; with `rate` it is `requests`, rate times duration, and all of them are awaited. */
  durationSeconds?: number;
  requests?: number;
  /** Where all `requests` take hours: the measured window instead of them, unless `--exact`. */
  secondsHere?: number;
  /** Default: GET without a body. */
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
}

export interface TlsOffer {
  minVersion?: 'TLSv1.2' | 'TLSv1.3';
  maxVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** e.g. ECDHE-RSA-AES128-GCM-SHA256. They choose for TLS 1.2 only. */
  ciphers?: readonly string[];
  /** e.g. X25519, P-256, P-384, P-521. */
  curves?: readonly string[];
}

/** min · max · mean · sd · share within one sd, as h2load prints them; wrk leaves min out. */
export interface PublishedDistribution {
  min?: number;
  mean: number;
  sd: number;
  max: number;
  withinSdPercent: number;
}

/** Figures that an article printed for one variant. Units are in the names; what it did not print is left out. */
export interface Published {
  /** Absent where the load sets the rate and the article prints none. */
  rps?: number;
  transferBytesPerSecond?: number;
  latencyMs?: PublishedDistribution;
  connectMs?: PublishedDistribution;
  firstByteMs?: PublishedDistribution;
  /** h2load's "req/s (client)". */
  perConnectionRps?: PublishedDistribution;
  perThreadRps?: PublishedDistribution;
  requests?: number;
  /** Everything that the generator read, headers included (with TLS: what was in its records). */
  receivedBytes?: number;
  /** As sent, so compressed with HTTP/2. */
  headerBytes?: number;
  /** What HPACK saved of the headers' own size. */
  headerSavingsPercent?: number;
  bodyBytes?: number;
  seconds?: number;
  errorsPerMillion?: number;
  /** Of both directions, as seen in a packet dump. */
  packetsPerRequest?: number;
  /** 2xx and 3xx per request, 0 to 1. */
  successRatio?: number;
  /** h2load's "status codes"; classes that never came are left out. */
  responses?: Partial<Record<'2xx' | '3xx' | '4xx' | '5xx', number>>;
  /** As negotiated, e.g. TLSv1.2, ECDHE-RSA-AES128-GCM-SHA256, P-384. */
  tls?: { version: string; cipher: string; keyExchange: string };
  /** Responses per latency bucket; toSeconds null: all that is longer. */
  buckets?: readonly { fromSeconds: number; toSeconds: number | null; count: number }[];
  /** One entry per phase where the article ran several on one live server; the fields above are then the first one's. */
  phases?: readonly Omit<Published, 'phases'>[];
}

export interface Variant {
  name: string;
  /** A text: nobody can run this here any more, for this reason; the figures are published only. */
  server: ServerSpec | string;
  /** Default: the scenario's load. */
  load?: LoadProfile;
  /** Absent: nobody published this variant (it is ours). */
  published?: Published;
  /** Not run unless `--variants` names it: beyond the article. */
  onRequest?: boolean;
  /** The variant its ratio is taken against; default: the scenario's first variant. null: none, it is a baseline itself. */
  against?: string | null;
  /** With fewer cores for the server the variant comes to the same as the one it is taken against: no verdict then. */
  needsServerCores?: number;
  /** Default: the scenario's page. Where two configs of a person's own answer differently. */
  page?: Page;
  /** Default: the scenario's network. */
  network?: NetworkSpec;
  /** One sentence shown with the row, e.g. why it stands here. */
  note?: string;
  /** Several variants of one series are the same at several rates, and make a curve. */
  series?: string;
}

/** What a link does to the packets of one direction. */
export interface LinkDirection {
  /** Each packet arrives so much later. */
  delayMs: number;
  /** Packets that may be on their way at a time; what comes beyond them is dropped. netem's default is 1000. Absent: no limit. */
  queuePackets?: number;
  /** Absent: no limit. */
  bytesPerSecond?: number;
  /** Share of the packets that is lost on the way, 0 to 1. Absent: none. */
  lossShare?: number;
}

/** A network of the run's own: client and server in a namespace each, joined by a link. The machine's own is not touched. */
export interface NetworkSpec {
  toServer: LinkDirection;
  toClient: LinkDirection;
  /** Kernel settings of the server's namespace: files of `server-configs/sysctl/` without `.conf`, or paths. The last one wins. */
  serverSettings: readonly string[];
  /** The same, of the client's namespace. */
  clientSettings: readonly string[];
}

/** The page that is asked for. */
export interface Page {
  /** The folder of `server-configs/www/` that the server serves, or a path such as ./www, from the scenario's file; absent: what its own config says (`asIs`). */
  docroot?: string;
  /** The path of its URL, with the query if it has one; `/` is index.html. */
  path: string;
  /** Of its URL, as the request's Host or :authority says it; absent: the server's address. */
  host?: string;
  /** Several pages, `path` among them: how often each is asked for beside the others, a whole number. All are tried before the first round. */
  weights?: Readonly<Record<string, number>>;
  /** The exact length that its body must have, or of several their mean by weight, rounded; of a config of a person's own, what it had when it was tried. */
  bodyBytes: number;
  /** That it has to be answered with; default 200. Under load, answers of another class (4xx of 404) have failed. */
  status?: number;
}

/** A limit of the latency: of so much of the requests, in milliseconds. */
export interface Within {
  metric: 'p50' | 'p90' | 'p99';
  ms: number;
}

export interface Scenario {
  name: string;
  /** One line for the list of scenarios. */
  title: string;
  /** Absent for a comparison of your own. */
  article?: { id: '000' | '001' | '002' | '003' | '004'; title: string; year: number };
  /** The knob in words, for the sentence under the table: "open_file_cache". */
  knob: string;
  load: LoadProfile;
  page: Page;
  /** Default: the machine's loopback. With a network there is one load phase, and no server config of a person's own whole. */
  network?: NetworkSpec;
  /** Load phases one after another on one server that is not restarted; default: one phase. */
  phases?: { count: number; pauseSeconds: number };
  /** Rounds unless the person says otherwise; default: the runner's. 1 where a round is long. */
  rounds?: number;
  /** What is searched for is the highest rate at which each variant keeps this; of `load` all but its length, and its rate, counts. One load phase. */
  within?: Within;
  variants: readonly Variant[];
  /** Comparisons beside those of the rows, e.g. the last step of one server with the last one of another. */
  alsoCompare?: readonly { variant: string; against: string }[];
  /** All variants are the same on purpose: what differs is noise, and the result states this machine's noise floor. */
  control?: true;
  /** Server and generator run on all cores, as the article's did, instead of on cores of their own. */
  sharedCores?: true;
  /** Things a reader of the table has to know, e.g. kernel settings of the article that are not applied here. */
  footnotes?: readonly string[];
}
