// The contract of results/<run>/result.json (schema 1), and of what `loadgen.run` in k6 returns. schema.ts checks one
// that is read, and does not compile unless it says the same.
import type { LoadProfile, Published, Within } from '../scenario/model.ts';
import type { KernelSetting, NetworkResult, NetworkUse } from './network.ts';

export interface Distribution {
  min: number;
  mean: number;
  /** Standard deviation. */
  sd: number;
  /** Share of the values within one sd of the mean, 0 to 1. */
  withinSd: number;
  max: number;
}
/** The percentiles come from an HdrHistogram of 3 digits, so they are within 0.1 %; the rest is exact. */
export interface LatencyFigures extends Distribution {
  p50: number;
  p75: number;
  p90: number;
  p95: number;
  p99: number;
  p999: number;
}

/** `count` values were at most so long, and longer than the bar before. */
export type HistogramBar = [atMostMs: number, count: number];

/** With the histogram itself, ascending: what is merged over rounds. */
export interface LatencyDistribution extends LatencyFigures {
  histogram: HistogramBar[];
}

export type StatusClass = '2xx' | '3xx' | '4xx' | '5xx';
export type ErrorKind = 'connect' | 'tls' | 'read' | 'write' | 'timeout' | 'protocol';
/** Why an attempt failed; `addressNotAvailable`: no port left to connect from, `short`: an end before or within the answer. */
export type ErrorCause =
  'addressNotAvailable' | 'refused' | 'reset' | 'timedOut' | 'short' | 'other';

/** How a side of a group was loaded in its phase. */
export interface Turns {
  /** 1: the sides were loaded one after the other. */
  count: number;
  /** All that the server made in these turns: a few more than the figures have, since ramps and drains may be left out. */
  responses: number;
  /** The mean length of a turn. */
  sliceMs: number;
  /** How long after a turn's begin its window begins. */
  rampMs: number;
  /** The server waits for something, such as a backend or a timer, so that its answers take long. */
  waits: boolean;
  /** At a rate: the share of turns, 0 to 1, in which the generator stood still. Up to a quarter are left out, and made again. */
  stoodStill?: number;
}

/**
 * What `loadgen.run` returns, and `loadgen.alternate` for each side. requests = responses + errors. A distribution over nothing is all
 * zeros.
 */
export interface LoadResult {
  /** Attempts that ended in the window, as a response or as an error. */
  requests: number;
  /** They ended in the warm-up, or in ramps, drains and turns that are left out, and are in no other figure. */
  warmupRequests: number;
  /** The window's length; in count mode from the first connect to the last response, handshakes included. */
  seconds: number;
  /** Responses per second in the window. */
  rps: number;
  /** By class of status code. */
  responses: Record<StatusClass, number>;
  /** How often each status from 300 on came, such as { "503": 12 }. */
  statuses?: Record<string, number>;
  /** Attempts that ended without a response, by kind. */
  errors: Record<ErrorKind | 'total', number>;
  /** The same attempts by their cause; the sum is errors.total. */
  errorCauses: Record<ErrorCause, number>;
  /** The text of one of the errors, for the person; '' when there was none. */
  errorExample?: string;
  /** Unanswered at the deadline; not among `requests`. */
  inFlight: number;
  /** Of `inFlight`, those that were older by then than the longer one of twice p99.9 of the latency and 1 s: the server has probably forgotten them. */
  hung: number;
  /** The longest time within the window in which requests were under way and no response ended, in milliseconds. */
  longestGapMs: number;
  /** Open model: requests that were due in the window and could not leave before its end. In no other figure. */
  unsent: number;
  /** null for one that was alone. */
  turns: Turns | null;
  /**
   * What the processes of SideOptions.cpuOf used, null without them: CPU seconds, of several sides' in its own turns, with ramps and
   * drains, and per second while others had theirs (0 for one that was alone).
   */
  serverCpu?: { seconds: number; idleShare: number } | null;
  /**
   * Of the HTTP layer: with TLS, what was in its records. `headers` as received (HPACK's blocks with HTTP/2),
   * `headersDecoded` the names' and values' own size, `body` without chunks' or frames' headers and without padding,
   * `received` and `sent` everything, framing included.
   */
  bytes: { received: number; headers: number; headersDecoded: number; body: number; sent: number };
  /** Milliseconds from a request's first byte (keepAlive false: the connect; at a rate: when it was due) to its response's last byte. */
  latencyMs: LatencyDistribution;
  /** Milliseconds of a connect, TCP and TLS; one value per connection. */
  connectMs: LatencyDistribution;
  /** Milliseconds from the start of the connect to the first response's first byte; one value per connection. */
  firstByteMs: LatencyDistribution;
  /** Responses per second of each connection; its time ends with its last response. */
  perConnectionRps: Distribution;
  /** Responses per second of each event loop. */
  perThreadRps: Distribution;
  /** Open model: milliseconds that requests left late. All zeros otherwise. */
  sendDelayMs: LatencyDistribution;
  /** Responses with fromMs ≤ latency < toMs; toMs null: all that is longer. Empty unless asked for. */
  buckets: { fromMs: number; toMs: number | null; count: number }[];
  /** As negotiated, in OpenSSL's names; null without TLS, or when no handshake was completed. */
  tls: { version: string; cipher: string; keyExchange: string } | null;
  /** The server's limit of concurrent requests per connection (HTTP/2); null when it named none. */
  maxConcurrentStreams: number | null;
  /** The measured window's begin, ISO 8601 with at least milliseconds. */
  startedAt: string;
  /** The measured window's end. */
  endedAt: string;
  /** The window's begin and end on the kernel's monotonic clock (CLOCK_MONOTONIC, as process.hrtime), in milliseconds: no step of the wall clock moves them. */
  monotonicMs: [begin: number, end: number];
  /** CPU seconds of the whole k6 process within the window. */
  cpuSeconds: number;
}

/** What else used the machine within a phase's window. Shares of 0 to 1 of the time of the side's cores; null where the kernel does not tell. */
export interface Noise {
  /** Taken by the hypervisor for others. What is the generator's is 0 here and below where the load is made on other hosts. */
  serverStealShare: number;
  generatorStealShare: number;
  /** Used on the server's cores by others than the server, and than the generator where it runs on them, too. */
  serverOthersShare: number;
  /** Used on the generator's cores by others than k6, its link, the runner and a server on them: the database is among them. */
  generatorOthersShare: number;
  /** Used on the server's cores by its backends, in no share above; null: unknown, and among the others. Absent without backends. */
  upstreamShare?: number | null;
  /** One minute's, at the window's end. */
  loadAverage: number;
  /** The mean clock of the server's cores at the window's begin and end; null where it is not told. */
  serverMhz: [begin: number, end: number] | null;
}

/** One load phase of a round. */
export interface Phase extends Omit<LoadResult, 'serverCpu'> {
  /** The class of status that is right: other answers have failed. Absent: 2xx and 3xx are. */
  expected?: StatusClass;
  /** Of all its processes, for the responses within the engine's window; null of what runs at an address. */
  serverCpuSeconds: number | null;
  /** LoadResult.serverCpu.idleShare: cores that the server used while others were loaded; null where that is not known. */
  idleCpuShare: number | null;
  serverRssBytes: number | null;
  generatorCpuSeconds: number;
  /** null where /proc/stat does not tell, and where what ran at an address, on whichever cores, cannot be told from others. */
  noise: Noise | null;
  /** null on loopback. */
  network: NetworkUse | null;
}

export interface Round {
  round: number;
  phases: Phase[];
}

/** Responses with fromMs ≤ latency < toMs over all rounds (toMs null: all that is longer); `share` of the responses, 0 to 1. */
export interface BucketShare {
  fromMs: number;
  toMs: number | null;
  count: number;
  share: number;
}

/** What one round took and brought, each figure the median over the rounds. `bytes` as in LoadResult. */
export interface Traffic {
  requests: number;
  seconds: number;
  bytes: LoadResult['bytes'];
  /** `bytes.received` per second. */
  receivedBytesPerSecond: number;
  /** What HPACK saved: 100 · (1 − headers / headersDecoded), as h2load's "space savings"; null where no header came. 0 with HTTP/1. */
  headerSavingsPercent: number | null;
}

/**
 * One load phase over all rounds: sums of responses, errors, unsent and hung requests; times of all rounds' values together. Of requests/s
 * per connection and thread, `min` and `max` are those of all rounds, the rest is that of a round on average.
 */
export interface PhaseResult
  extends
    Traffic,
    Pick<
      Phase,
      | 'expected'
      | 'responses'
      | 'errors'
      | 'errorCauses'
      | 'unsent'
      | 'hung'
      | 'perConnectionRps'
      | 'perThreadRps'
      | 'tls'
    >,
    Record<'latencyMs' | 'connectMs' | 'firstByteMs' | 'sendDelayMs', LatencyFigures> {
  /** From 1. */
  phase: number;
  /** Responses per second. */
  rps: { median: number };
  /** What succeeded per request, those that hung included, over all rounds; null when there was no request. */
  successRatio: number | null;
  /** Empty unless the load asks for them. */
  buckets: BucketShare[];
}

export interface VariantResult {
  name: string;
  /** null: published only. */
  server: {
    name: string;
    version: string;
    workers: number;
    config: readonly string[];
    /** What of a person's own config runs otherwise than it says, one line each; empty for shipped ones. */
    redirections: readonly string[];
    /** It ran there already, on cores of its own choosing. */
    atAddress?: true;
  } | null;
  /** Why nobody can run it here; only where `server` is null. */
  publishedOnly?: string;
  /**
   * What the engine was asked to do, as fitted here; of a variant that is published only, the article's. `rate`: open model. `searched`: at
   * rates that a search tried. `command` and `asWritten` are the load before it was fitted. `pages`: how many, where it is several.
   */
  load: {
    command?: string;
    protocol: LoadProfile['protocol'];
    threads: number;
    streams?: number;
    rate?: number;
    searched?: true;
    durationSeconds?: number;
    requests?: number;
    pages?: number;
    asWritten?: { threads: number; durationSeconds?: number; requests?: number };
    [detail: string]: unknown;
  };
  published: Published | null;
  note?: string;
  /** Of a sweep: what it is, at `load.rate`. */
  series?: string;
  rounds: Round[];
  /** Responses per second; null when the variant was not run here. */
  rps: { median: number } | null;
  /** Per response; null where nothing was answered, and of what runs at an address. */
  serverCpuMicrosPerRequest: { median: number } | null;
  /** Of all responses of all rounds; null where there was none. */
  latencyMs: { p50: number; p99: number; max: number } | null;
  /** Per attempt that ended; those that hung are in the success ratio alone. */
  errorsPerMillion: number | null;
  /** As in PhaseResult, over all phases. */
  successRatio: number | null;
  /**
   * Median share of its available CPU that each side used, 0 to 1: of the cores of its workers or threads, without what others and the
   * hypervisor took; or of all its cores with the network's link on them, if that is more. The server's is null of an address.
   */
  serverShare: number | null;
  generatorShare: number | null;
  /** null on loopback, and when the variant was not run here. */
  network: NetworkResult | null;
  /** Of whole rounds, so over all phases; null when the variant was not run here. */
  traffic: Traffic | null;
  /** One per load phase, in order; empty when the variant was not run here. */
  phases: PhaseResult[];
}

/** A variant at a rate that a search tried. `round` as in Round. */
export interface SearchStep {
  round: number;
  variant: string;
  /** requests/s: asked for, and answered. */
  rate: number;
  made: number;
  /** From when a request was due, unanswered ones included. Of fewer than 10 answers beyond it a percentile says little. */
  latencyMs: Record<LatencyMetric, number>;
  kept: boolean;
  /** Why it was not kept, in a clause; '' where it was. */
  why: string;
}

/** The highest rate within the limit, in requests/s, by the geometric mean. `ci95`: from 4 rounds on. `atLeast`: it may be higher. */
export interface FoundRate {
  variant: string;
  rate: number;
  ci95: [number, number] | null;
  atLeast: boolean;
}

/** A search: of each variant the steps of a round are in the order in which they were tried; those of a round that was not finished are the last. */
export interface Search {
  within: Within;
  found: FoundRate[];
  steps: SearchStep[];
}

export type Verdict = 'faster' | 'slower' | 'same' | 'inconclusive' | 'none';

/** What two variants can be compared by: responses per second, the server's CPU time per response, percentiles of the latency. */
export type Metric = 'rps' | 'cpu' | LatencyMetric;
export type LatencyMetric = 'p50' | 'p90' | 'p99';

/** A comparison by one more metric. `verdict` is 'none' where only the ratio was asked for. */
export interface BesideRatio {
  ratio: number;
  ci95: [number, number];
  verdict: Verdict;
}

/**
 * By `metric`: requests/s, or at a rate p99, or what was asked for; of times less is faster. `ratio` is exp(mean ln(variant / baseline))
 * over rounds, and `ci95` the interval that the verdict is read from: all that are judged in a run hold together with 95 %, at all looks.
 * `ratio` is 0, with the interval [0, 0] and no verdict, where nothing can be compared: nothing was answered, or the variant is published
 * only. While the result is partial, a verdict is not final.
 */
export interface Comparison extends BesideRatio {
  metric: Metric;
  variant: string;
  baseline: string;
  why: string;
  publishedRatio: number | null;
  /** The server's CPU time per request divided by the baseline's. Its interval has the confidence of one of those that are judged, and is none of them: it has no verdict. null where a round has none. */
  cpu: Omit<BesideRatio, 'verdict'> | null;
  /** The same of percentiles of the latency. null where there is none in each round: fewer than 10 responses were slower than it. */
  latency: Record<LatencyMetric, BesideRatio | null>;
  /** `ratio` of each round, in the order of the rounds. Empty where nothing can be compared. */
  roundRatios: number[];
  /** Numbers of the rounds whose ratio lies far from the others'. They count like all others; one that was measured again is not there. */
  outliers: number[];
  /** The only outlier, where there is a verdict without it and none with it, or the other way round; null otherwise. */
  swayedBy: { round: number; without: Verdict } | null;
  /** Of an inconclusive one: how many rounds would probably decide. null otherwise, and where it would take too many. */
  roundsNeeded: number | null;
  /** Where requests/s and CPU per request say different things: why that may be. '' where they agree. */
  disagreement: string;
  /** Which of the two did not have the delay that was asked for: their difference may be the link's. Empty on loopback. */
  delayNotHeld: string[];
}

/** The smallest effect that is told from noise with so many rounds, as a ratio above 1; seen in a comparison of one config with itself. */
export interface NoiseFloor {
  rounds: number;
  ratio: number;
}

export interface Integrity {
  requests: number;
  stored: number;
  backfilled: number;
  lost: number;
}

export interface Environment {
  bakeoff: string;
  cpuModel: string;
  cores: number;
  memoryBytes: number;
  kernel: string;
  os: string;
  governor: string | null;
  /** When the machine was started, ISO 8601, and the kernel's name for this boot: a verdict holds for this one. */
  bootedAt: string;
  bootId: string;
  loadAverage: [number, number, number];
  serverCpus: number[];
  generatorCpus: number[];
  /** CPU seconds per second that a container's or a service's quota allows; absent without one. */
  cpuQuota?: number;
  /** What a person has to know of these cores before trusting the figures, a line each. */
  coreNotes?: string[];
  versions: Record<string, string>;
  /** Where the servers are, and their cores, unless on this machine. */
  serverHost?: ServerHostFacts;
  /** Where the load is made, unless on this machine; their cores are not among `generatorCpus`. */
  generatorHosts?: GeneratorHostFacts[];
  /** Where both are, unless on machines: all else here is of the machine that started them. `serverCpus` are the cores of each server. */
  cluster?: ClusterFacts;
}

/** A Kubernetes cluster. */
export interface ClusterFacts {
  /** kubectl's context. */
  name: string;
  /** Of the servers in the first round, and its kernel, system and architecture; '' where the cluster does not tell. */
  serverNode: string;
  serverSystem: string;
  /** How many make each load together, each on a node of its own, and the cores of each. */
  generators: number;
  generatorCores: number;
}

/** A machine that makes a part of the load, and the way from this one to it, unless ssh alone comes there. */
export interface GeneratorHostFacts
  extends Pick<Environment, 'cpuModel' | 'kernel' | 'memoryBytes'>, Partial<LinkFigures> {
  name: string;
  address: string;
  architecture: string;
  /** CPUs that it may use. */
  cores: number;
}

/** Another machine, and the way to it. */
export interface ServerHostFacts
  extends
    Pick<
      Environment,
      'cpuModel' | 'cores' | 'memoryBytes' | 'kernel' | 'os' | 'governor' | 'bootedAt' | 'bootId'
    >,
    LinkFigures {
  /** As the person named it to ssh. */
  name: string;
  address: string;
}

/** Of a TCP connection: of one byte there and back, and of as much as goes through to and fro. */
export interface LinkFigures {
  roundTripMs: { p50: number; p99: number };
  bytesPerSecond: number;
}

export interface Result {
  schema: 1;
  run: string;
  scenario: string;
  title: string;
  /** The scenario's knob in words, as knobOf gives it; absent where it does not say what was compared. */
  knob?: string;
  /** A config was compared with itself: what differs is noise. */
  control?: true;
  startedAt: string;
  endedAt: string;
  /** 'partial': ended early (Ctrl-C, a server that would not come back); the rounds that are there are whole. */
  state: 'complete' | 'partial';
  quick: boolean;
  environment: Environment;
  variants: VariantResult[];
  comparisons: Comparison[];
  /** Absent without a search. With one, a round is the kept step nearest to the rate found, and `rps` and comparisons are of that rate. */
  search?: Search;
  /** After how many rounds the verdicts are looked at: one number, or several with `--precision`, each with its part of the 5 %. */
  looks: number[];
  /** As in Plan; absent without `--precision`. */
  precision?: number;
  /** Within this of 1 two variants are the same; 0.01 unless told. */
  sameWithin: number;
  /** Of a scenario that compares a config with itself; null otherwise, and with too few rounds. */
  noiseFloor: NoiseFloor | null;
  /** Of the run's own networks; empty on loopback. */
  kernelSettings: KernelSetting[];
  /** null with `--store none`. */
  integrity: Integrity | null;
  warnings: string[];
  footnotes: string[];
}
