// What the runner hands to the k6 script, as JSON in the environment variable BAKEOFF_LOAD. LoadOptions are also what any
// script gives to k6/x/loadgen: they are part of the package's types.

import type { LoadResult, Phase } from '../result/result.ts';
import type { Within } from '../scenario/model.ts';

/**
 * Options of `loadgen.run`, one load phase. `url` or `urls` has to be there, and `duration` or `requests`. Durations are
 * Go's notation: '10s', '500ms', '1m30s'. What is unknown, out of range or does not go together is refused by name.
 */
export interface LoadOptions {
  /** What to ask for: http:// or https://. */
  url?: string;
  /** Several addresses of one scheme, host and port, asked for in a mixed order that the seed draws. */
  urls?: readonly string[];
  /** Several pages of the server of `url`, instead of it: on each line a path, and how often it is asked for beside the others, a whole number (1). */
  pages?: string;
  /**
   * http/1.0 and http/1.1 go over TLS for https://; h2 is HTTP/2 over TLS, with no fall-back, and h2c HTTP/2 without TLS.
   * Default: http/1.1.
   */
  protocol?: 'http/1.0' | 'http/1.1' | 'h2' | 'h2c';
  /** Open connections. More than there are ports come from several addresses, in 127.0.0.0/8 only. Default: 1. */
  connections?: number;
  /** Requests at once on a connection (h2, h2c). The server's own limit holds too. Default: 1. */
  streams?: number;
  /**
   * Open model: requests/s that start whether or not earlier ones are answered; latency then runs from when a request was
   * due. Default: none, each connection asks again as soon as it has its answer. Wants Linux 5.11 or newer.
   */
  rate?: number;
  /** Of a rate: evenly spread, or each by itself whatever the others do, so that some come together and queue. Default: constant. */
  arrivals?: 'constant' | 'poisson';
  /** Upper ends of the latency buckets to count, ascending: ['150us', '1ms']; one more takes the rest. Default: none. */
  buckets?: readonly string[];
  /** For https:// addresses. */
  tls?: {
    /** true: the server's certificate is not checked. Default: false. */
    insecureSkipVerify?: boolean;
    /** Default, also as '': TLSv1.2. */
    minVersion?: 'TLSv1.2' | 'TLSv1.3' | '';
    /** Default, also as '': TLSv1.3. */
    maxVersion?: 'TLSv1.2' | 'TLSv1.3' | '';
    /** TLS 1.2's, in OpenSSL's names: 'ECDHE-RSA-AES128-GCM-SHA256'. A set: the order is Go's own. Default: all that there are. */
    ciphers?: readonly string[];
    /** Of X25519, P-256, P-384 and P-521. A set: the order is Go's own. Default: all of these. */
    curves?: readonly string[];
    /** The name that is asked for (SNI), and that a certificate is checked for. Default: the address's own; none where that is a number. */
    serverName?: string;
  };
  /** The length of the measured window. This or `requests`. */
  duration?: string;
  /** An exact number of requests, which kept connections share evenly. This or `duration`. */
  requests?: number;
  /** false: a new connection for each request, with HTTP/2 of one stream. Default: true. */
  keepAlive?: boolean;
  /** Load before the measured window, in no figure but `warmupRequests`. Default: none. */
  warmup?: string;
  /** Bounds one request, its connect included; what is above it is an error of kind timeout. Default: '60s'. */
  timeout?: string;
  /** Event loops, each on a thread of its own, that the connections are divided among. Default: 1. */
  threads?: number;
  /** true: a thread with nothing to do looks for responses again and again instead of sleeping. Each needs a core of its own. Default: false. */
  spin?: boolean;
  /** Default: GET. */
  method?: string;
  /**
   * The network namespace that connections are opened in: a path such as /run/netns/NAME or /proc/PID/ns/net. A host that is a
   * name is resolved outside of it. Default: k6's own.
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

/** Options that a call of either function has for all of its loads. */
export interface CallOptions {
  /**
   * true: the options are those of all the k6 that run this script together, and this one makes its part of them, by its
   * `--execution-segment` and `--execution-segment-sequence`: of `connections`, `requests` and a `rate`, whose requests together are
   * due as those of one k6. All else is each one's own. It is to be called by one VU of each k6. Default: false, the load is this
   * call's own: k6 divides the VUs that call, so that a script that scales by them must not do it twice.
   */
  segmented?: boolean;
  /** When the load begins, milliseconds since 1970 (as Date.now()): at most a minute ahead, and not yet over. Default: at once. */
  startAt?: number;
}

/**
 * Options of `loadgen.alternate`. No request starts after the end of a turn, and the next side's turn begins once those under way
 * are answered. More than one side wants Linux 5.11 or newer.
 */
export interface AlternateOptions extends CallOptions {
  /** One that is alone has one turn without end. */
  sides: readonly SideOptions[];
  /**
   * The mean length of a turn; each is 75 to 125 % of it. Default: the engine chooses, about 20 ms for a server at its limit, longer
   * for one that waits, 250 ms at a rate.
   */
  slice?: string;
  /** Of what is drawn: the order of the sides, the lengths, and Poisson's arrivals, and that of several addresses, the same for all sides. A whole number from 1. Default: always the same. */
  seed?: number;
}

/** One k6 run: the load of a group of variants in one round. */
export interface LoadPlan {
  /** Name of the k6 scenario, and so the tag `scenario` of every sample. */
  scenario: string;
  /** Tags of every sample, k6's own ones included, unless k6's command line has tags: these then take their place there. */
  tags: Readonly<Record<string, string>>;
  /** After this k6 ends the run, whatever the engine does. */
  maxDurationSeconds: number;
  /** One call of `loadgen.alternate` each, in this order. All have the same sides. */
  phases: readonly AlternateOptions[];
  /** Of each side, the file with its pages beside the script, too long for an environment variable; null: the page in its `url`. */
  pageFiles?: readonly (string | null)[];
  /** Between two phases. */
  pauseSeconds?: number;
  /** How many k6 make the load together, each its segment. Absent: 1. */
  instances?: number;
  /** When the first phase begins, milliseconds since 1970. Absent, and of a search: at once. */
  startAtMs?: number;
  /** Instead of it, where the instances agree on when, and leave their results; absent: nowhere. */
  meetAt?: Meeting;
  /** The one phase is a step, and there are as many as the search takes, each side at a rate of its own. */
  search?: SearchPlan;
}

/** A database of InfluxDB 1.x, or 2.x as 1.x, in which instances wait for each other. Credentials are those of k6's own output, from the environment. */
export interface Meeting {
  /** Without a slash at the end. */
  url: string;
  database: string;
  /** How long the first one waits for the last. */
  withinSeconds: number;
}

/** What is searched for: the highest rate at which each side keeps a limit. */
export interface SearchPlan {
  within: Within;
  /** Of the sides, in their order. */
  from: readonly SearchStart[];
  /** Which answers to them are right. */
  expected: readonly Pick<Phase, 'expected'>[];
  /** The shortest step; at a low rate it takes as long as its percentile needs. */
  stepSeconds: number;
}

/** Where a search begins, in requests/s, the factor up to the next rate, which grows until both sides of the limit are known, and the lowest rate that is tried. */
export interface SearchStart {
  rate: number;
  factor: number;
  least: number;
}

/** What a phase came to: a result for each side; of a search's step, with the rates that they were asked for, in requests/s, and whose turn it was. */
export interface PhaseOutcome {
  results: (LoadResult & Pick<Phase, 'expected'>)[];
  step?: { rates: number[]; tried: boolean[] };
}

/** The name of the environment variable. */
export const loadPlanVariable = 'BAKEOFF_LOAD';

/** Starts each line of the script's console output that is the outcome of a phase, as JSON. */
export const phaseLinePrefix = 'bakeoff-phase ';

/** The line that the script prints when a phase begins. */
export const phaseBeginsLine = 'bakeoff-phase-begins';

/** The last line that the script prints. */
export const loadOverLine = 'bakeoff-load-over';

/** What a k6 writes into its folder while it runs: what its script prints, its own messages, and its record of samples, one JSON object a line. */
export function k6Files(folder: string): { console: string; log: string; record: string } {
  return {
    console: `${folder}/phases.log`,
    log: `${folder}/k6.log`,
    record: `${folder}/record.ndjson`,
  };
}
