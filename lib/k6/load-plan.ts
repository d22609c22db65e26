// What the runner hands to the k6 script, as JSON in the environment variable BAKEOFF_LOAD.

/** Options of `loadgen.run`. Durations are Go's notation: '10s', '500ms'. */
export interface LoadOptions {
  /** One of the two. Several addresses are asked in turn. */
  url?: string;
  urls?: readonly string[];
  protocol: 'http/1.0' | 'http/1.1' | 'h2' | 'h2c';
  connections: number;
  /** Concurrent requests per connection (h2, h2c). The server's own limit holds too. */
  streams?: number;
  /** Open model: requests/s, whether or not earlier ones are answered. */
  rate?: number;
  /** Upper ends of the latency buckets to count, ascending: '150us', '1ms'. */
  buckets?: readonly string[];
  /** For https:// addresses. Ciphers (TLS 1.2's) have OpenSSL's names. */
  tls?: {
    insecureSkipVerify?: boolean;
    minVersion?: 'TLSv1.2' | 'TLSv1.3' | '';
    maxVersion?: 'TLSv1.2' | 'TLSv1.3' | '';
    ciphers?: readonly string[];
    curves?: readonly string[];
  };
  /** One of the two: for how long, or how many requests. */
  duration?: string;
  requests?: number;
  /** false: a new connection for every request. */
  keepAlive?: boolean;
  /** Load before the measured window, counted apart. */
  warmup?: string;
  /** For an answer; then it is an error of kind timeout. */
  timeout?: string;
  /** Event loops, each on a thread of its own. */
  threads?: number;
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | null;
  /** Set on every sample of this phase. */
  tags?: Readonly<Record<string, string>>;
}

/** One k6 run: the load of one variant in one round. */
export interface LoadPlan {
  /** Name of the k6 scenario, and so the tag `scenario` of every sample. */
  scenario: string;
  /** Tags of every sample, k6's own ones included. */
  tags: Readonly<Record<string, string>>;
  /** After this k6 ends the run, whatever the engine does. */
  maxDurationSeconds: number;
  /** One call of `loadgen.run` each, in this order. */
  phases: readonly LoadOptions[];
  /** Between two phases. */
  pauseSeconds?: number;
}

/** The name of the environment variable. */
export const loadPlanVariable = 'BAKEOFF_LOAD';

/** Starts each line of the script's console output that is the result of a phase. */
export const phaseLinePrefix = 'bakeoff-phase ';
