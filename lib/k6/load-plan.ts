// The load plan that the runner gives to the k6 script as JSON in the environment, and the options of k6/x/loadgen.

import type { LoadResult } from '../result/load-result.ts';
import type { Phase } from '../result/result.ts';
import type { LoadRequest, Protocol, ReceiveWindow } from '../scenario/model.ts';

/**
 * Options of `loadgen.run`: a load phase, as the runner makes them of a Load, and as users write them in scripts. Needs `url`, and
 * `duration` or `requests`. Durations are Go's: '10s', '500ms', '1m30s'. Unknown, wrong and contradictory options are refused by name.
 */
export interface LoadOptions {
  /** http:// or https://. */
  url?: string;
  /**
   * Requests to the server of `url`, in a mixed order that the seed draws; as a text, which is faster for many, one in JSON on each line.
   */
  mix?: readonly LoadRequest[] | string;
  /**
   * http/1.0 and http/1.1 use TLS for https://; h2 is HTTP/2 over TLS without fall-back, h2c HTTP/2 without TLS, h3 HTTP/3. Default:
   * http/1.1.
   */
  protocol?: Protocol;
  /** Open connections. More than there are ports need several addresses, in 127.0.0.0/8 only. Default: 1. */
  connections?: number;
  /** Concurrent requests on a connection (h2, h2c, h3), up to the server's limit. Default: 1. */
  streams?: number;
  /**
   * true: the streams of a connection start together, and again once all are answered. Latencies are those of all together. Default: false.
   */
  together?: boolean;
  /**
   * Receive windows in bytes (h2, h2c, h3), of each stream and of a connection: 1 to 2^31 − 1, over HTTP/2 a connection's from 65,535.
   * Default: 2^30 − 1 each.
   */
  window?: ReceiveWindow;
  /**
   * Open model: requests/s that start whether or not earlier ones are answered. Latency runs from when a request was due. Default: closed
   * model. Needs Linux 5.11.
   */
  rate?: number;
  /** How requests at a rate arrive: evenly spread, or as a Poisson process. Default: constant. */
  arrivals?: 'constant' | 'poisson';
  /** Upper ends of latency buckets, ascending: ['150us', '1ms']. A last bucket takes the rest. Default: none. */
  buckets?: readonly string[];
  /** Only for https:// addresses. */
  tls?: {
    /** true: the server's certificate is not checked. Default: false. */
    insecureSkipVerify?: boolean;
    /** Default, also for '': TLSv1.2. */
    minVersion?: 'TLSv1.2' | 'TLSv1.3' | '';
    /** Default, also for '': TLSv1.3. */
    maxVersion?: 'TLSv1.2' | 'TLSv1.3' | '';
    /** A set for TLS 1.2, in OpenSSL's names: 'ECDHE-RSA-AES128-GCM-SHA256'. Default: all. */
    ciphers?: readonly string[];
    /** A set of X25519, P-256, P-384, P-521, X25519MLKEM768 and SecP256r1MLKEM768. Default: the first four. */
    curves?: readonly string[];
    /** The name to request (SNI) and to check the certificate for. Default: the address's name; none for an IP address. */
    serverName?: string;
    /** Share, 0 to 1, of the connections after a slot's first one that resume its session by a ticket. HTTP/3 has none. Default: 0. */
    resume?: number;
  };
  /** The length of the measured window. This or `requests`. */
  duration?: string;
  /** The exact number of requests, shared evenly by kept connections. This or `duration`. */
  requests?: number;
  /** false: a new connection for each request, with HTTP/2 of a single stream. Default: true. */
  keepAlive?: boolean;
  /** Load before the measured window, in no figure but `warmupRequests`. Default: none. */
  warmup?: string;
  /** The longest warm-up while the server still gets faster. Default: `warmup`. */
  warmupLimit?: string;
  /** How much faster, as a share, the server may still get when the warm-up ends. Default: 0.03. */
  warmupGain?: number;
  /** true: a server at its limit has to be steady for two parts of the warm-up. Default: false. */
  warmupConfirmed?: boolean;
  /** Limit of a request with its connect; longer is an error of kind timeout. Default: '60s'. */
  timeout?: string;
  /** Event loops, each on its own thread, which share the connections. Default: 1. */
  threads?: number;
  /** true: an idle thread polls instead of sleeping, so each needs its own core. Default: false. */
  spin?: boolean;
  /** Default: GET. */
  method?: string;
  /**
   * The network namespace of connections: a path such as /run/netns/NAME or /proc/PID/ns/net. Names are resolved outside of it. Default:
   * k6's own.
   */
  netns?: string;
  /** Sent in this order. */
  headers?: Readonly<Record<string, string>>;
  body?: string | null;
  /** Set on every sample of this phase. */
  tags?: Readonly<Record<string, string>>;
}

/** A load that takes turns with others. */
export interface SideOptions extends LoadOptions {
  /** Ids of the server's processes on this machine, for LoadResult.serverCpu, with their descendants. Default: none. */
  cpuOf?: readonly number[];
}

/** Options of a call, for all of its loads. */
export interface CallOptions {
  /**
   * true: the options are the load of all k6 processes together. Each makes the part of `connections`, `requests` and `rate` that
   * its `--execution-segment` gives it, and calls from one VU. Default: false, each call makes the whole load.
   */
  segmented?: boolean;
  /** The load's begin in milliseconds since 1970 (as Date.now()), at most a minute ahead. Default: at once. */
  startAt?: number;
  /** false: no samples go out. Default: true. */
  samples?: boolean;
  /** false: only those of loadgen_* go out, none of k6's own metrics (http_reqs, http_req_duration …). Default: true. */
  k6Metrics?: boolean;
}

/** Options of `loadgen.alternate`. A turn begins when the last requests of the turn before are answered. Several sides need Linux 5.11. */
export interface AlternateOptions extends CallOptions {
  /** A single side has a single turn. */
  sides: readonly SideOptions[];
  /** Mean length of a turn; each is 75 to 125 % of it. Default: long against the latencies, at least 20 ms, at a rate at least 250 ms. */
  slice?: string;
  /** The place of the side, from 1, that is warmed up first and has the first turn. Default: any. */
  first?: number;
  /**
   * Seed for the rest of the order of sides, lengths of turns, Poisson arrivals and order of URLs. A whole number from 1. Default: always
   * the same.
   */
  seed?: number;
  /** true: all sides warm up at the same time, for servers that leave the cores idle. Default: one after the other. */
  warmTogether?: boolean;
}

/** A k6 run: the load of a group of variants in a round. */
export interface LoadPlan {
  /** Name of the k6 scenario, and so the tag `scenario` of every sample. */
  scenario: string;
  /** Tags of every sample, unless k6's command line has tags, which then replace those of k6's own metrics. */
  tags: Readonly<Record<string, string>>;
  /** k6 ends the run after this time. */
  maxDurationSeconds: number;
  /** Calls of `loadgen.alternate`, in this order. All have the same sides. */
  phases: readonly AlternateOptions[];
  /**
   * For each side, the warm-up that is a load of its own before the first phase; null: none. What it did is in that phase's
   * `warmupRequests`, `wire` and `continuous`, and in nothing else.
   */
  warmUps?: readonly (Pick<LoadOptions, 'warmup' | 'warmupLimit' | 'warmupGain'> | null)[];
  /** For each side, the file with its requests beside the script; null: the page in its `url`. */
  mixFiles?: readonly (string | null)[];
  /** After each phase the sides with a mix make one request at a time for so many seconds: the times of pages without a queue. */
  aloneSeconds?: number;
  /** Between two phases. */
  pauseSeconds?: number;
  /** The number of k6 that make the load together, each its segment. Default: 1. */
  instances?: number;
  /** load.json is the whole plan, with credentials and bodies. */
  keepSecrets?: true;
  /** The database in which instances agree on the first phase's begin and leave their results. Default: it begins at once. */
  meetAt?: Meeting;
  /** The phase is a step, which the script of a feature (SteppedLoad) repeats at each side's own rate. What that takes. */
  steps?: unknown;
}

/** A database of InfluxDB 1.x, or 2.x through its 1.x interface, with the credentials of k6's own output. */
export interface Meeting {
  /** Without a slash at the end. */
  url: string;
  database: string;
  /** Longest wait of the first instance for the last. */
  withinSeconds: number;
}

/** The results of a phase by side. */
export interface PhaseOutcome {
  results: (LoadResult & Pick<Phase, 'expected'>)[];
  /** In a load in steps, by side in requests/s: the rate tried, null if the side's steps were over, and the rate found so far. */
  step?: { rates: (number | null)[]; found: (number | null)[] };
}

/** The environment variable of the load plan. */
export const loadPlanVariable = 'BAKEOFF_LOAD';

/** Environment in which k6 finds no settings of a user, which would change the load: nobody can make files in /proc. */
export const withoutK6Config = { XDG_CONFIG_HOME: '/proc' };

/** Starts the console line with the outcome of a phase as JSON. */
export const phaseLinePrefix = 'bakeoff-phase ';

/** The console line at the begin of a phase. */
export const phaseBeginsLine = 'bakeoff-phase-begins';

/** The last console line. */
export const loadOverLine = 'bakeoff-load-over';

/** Files that k6 writes while it runs: the script's console, its log, and its samples, a JSON object per line. */
export function k6Files(folder: string) {
  return {
    console: `${folder}/phases.log`,
    log: `${folder}/k6.log`,
    record: `${folder}/record.ndjson`,
  };
}
