// Fits an article's load to this machine and to the options of the run.
import { present } from '../present.ts';
import type { Arrivals, LoadProfile, Protocol } from './model.ts';

/**
 * A load fitted to this machine, with one kind of length and all defaults. Where requests are counted without a rate, the warm-up is a
 * load of its own (warmsUpApart), because handshakes belong to the measured time.
 */
export type Load = Omit<LoadProfile, 'rate' | 'requests' | 'durationSeconds' | 'secondsHere'> &
  Required<Pick<LoadProfile, 'streams' | 'timeoutSeconds' | 'warmupSeconds'>> & {
    /**
     * The warm-up goes on for at most this time while the server still gets faster. 0: it does not go on. If absent, the
     * warm-up has a named length.
     */
    warmupLimitSeconds?: number;
    /** Like warmupLimitSeconds, if earlier rounds have shown that less is enough. */
    warmupBoundSeconds?: number;
    /** How much faster, as a share, the server may still get when the warm-up ends. Default: the engine's default. */
    warmupGain?: number;
    /** A server at its limit has to be steady for longer. */
    warmupConfirmed?: boolean;
  } & (
    | { durationSeconds: number; requests?: never; rate?: never; searched?: never }
    /** A load in steps of at least this duration, each at its own rate. */
    | { durationSeconds: number; searched: true; requests?: never; rate?: never }
    /** With a rate (requests/s) the load lasts requests / rate seconds, until the last answers. */
    | { requests: number; rate?: number; durationSeconds?: never; searched?: never }
  );

const protocolNamesBy: Readonly<Record<Protocol, string>> = {
  'http/1.0': 'HTTP/1.0',
  'http/1.1': 'HTTP/1.1',
  h2: 'HTTP/2 over TLS',
  h2c: 'HTTP/2 without TLS',
  h3: 'HTTP/3',
};

export function isHttp2(protocol: Protocol): boolean {
  return protocol === 'h2' || protocol === 'h2c';
}

/** Returns whether a connection can have several requests at once. */
export function hasStreams(protocol: Protocol): boolean {
  return isHttp2(protocol) || protocol === 'h3';
}

/** Returns whether the protocol always has TLS. HTTP/1.x has TLS if the server has. */
export function needsTls(protocol: Protocol): boolean {
  return protocol === 'h2' || protocol === 'h3';
}

/** Returns whether a load has TLS, as far as it says so itself. */
export function hasTls({ protocol, tls }: Pick<LoadProfile, 'protocol' | 'tls'>): boolean {
  return needsTls(protocol) || tls !== undefined;
}

/** "HTTP/1.1", "HTTP/1.1 over TLS", "HTTP/2 without TLS". HTTP/1.x has TLS if `tls` is there. */
export function protocolName({ protocol, tls }: Pick<LoadProfile, 'protocol'> & { tls?: unknown }) {
  const name = protocolNamesBy[protocol];
  return protocol.startsWith('http/') && tls ? `${name} over TLS` : name;
}

/** Returns whether the load is a number of requests from the first connect on. */
export function isCounted({ requests, ...load }: Pick<Load, 'requests' | 'rate' | 'searched'>) {
  return requests !== undefined && !isAtRate(load);
}

/** Returns whether the warm-up is a load of its own before the measured one. */
export function warmsUpApart(load: Load): boolean {
  return isCounted(load) && load.warmupSeconds > 0;
}

/** Open model: requests start at given times, whether or not earlier ones are answered. */
export function isAtRate({ rate, searched }: { rate?: number; searched?: boolean }): boolean {
  return rate !== undefined || searched === true;
}

export interface FitOptions {
  generatorCores: number;
  /** Keeps the article's threads, duration and number of requests. */
  exact: boolean;
  /** Measured window instead of the profile's. */
  durationSeconds?: number;
  /** Length of the warm-up instead of the profile's. */
  warmupSeconds?: number;
  /** Servers may get faster while they are loaded (compiled code): a count of requests then has a warm-up before it, too. */
  mayBeCold?: boolean;
  /** The load takes turns with others: noise is the same for all, so a short window is enough. */
  inTurns?: boolean;
  /** Arrivals of a rate instead of the profile's. */
  arrivals?: Arrivals;
  /** A load in steps, with a window and a warm-up of this length by default; the profile's rate and length do not count. */
  step?: { durationSeconds: number; warmupSeconds: number };
  /**
   * Server and generator share cores: a response's CPU time then depends on which threads meet on which core, and does not show whether a
   * server is warm.
   */
  sharesCores?: boolean;
  /** Short rounds for a first look. `durationSeconds` takes precedence. */
  quick?: boolean;
  /** Responses that a verdict needs in a round. A rate lasts long enough for them, unless the profile's length is too short for them. */
  responses?: number;
}

const defaultTimeoutSeconds = 5;

const fullWarmupSeconds = 1;
const quickSeconds = 2;
const quickWarmupSeconds = 0.5;

/** Measured windows in turns. A rate needs enough requests for percentiles. */
const turnsSeconds = { full: 1, quick: 0.5, rate: 2 };
/** Long enough that nginx on a fast machine has closed all connections once (keepalive_requests). */
const turnsWarmupSeconds = 0.4;
/** The longest warm-up of a server that still gets faster, by compiled code or filled caches. */
const warmupLimitSeconds = { full: 30, quick: 3 };
/** Additional warm-up per connection. */
const secondsToOpen = { plain: 0.0001, tls: 0.002 };

/** Some responses are late or missing, and the number of Poisson arrivals varies. */
const spareResponses = 1.1;

/**
 * Returns how long a load must last for so many responses, in seconds.
 * @param rate in requests/s
 */
export function secondsFor(responses: number, rate: number): number {
  return (spareResponses * responses) / rate;
}

/** A rate (requests/s) for so many seconds, and at least one request. */
export function atRateFor(rate: number, seconds: number): { rate: number; requests: number } {
  return { rate, requests: Math.max(1, Math.round(rate * seconds)) };
}

/** `quick` makes a tenth of the requests. */
const quickPart = 10;
/** `quick` fills all streams at least so often, if the article does: once would be a burst, not a load. */
const quickFillings = 4;

/** Fits a profile to this machine. Connections, streams and rate stay; threads are at most the generator's cores. */
export function fitLoad(profile: LoadProfile, options: FitOptions): Load {
  const { rate, requests, arrivals: _, durationSeconds, secondsHere, ...kept } = profile;
  const { exact, step, durationSeconds: asked, quick = false } = options;
  const common = {
    ...kept,
    streams: profile.streams ?? 1,
    threads: exact ? profile.threads : Math.min(profile.threads, options.generatorCores),
    timeoutSeconds: profile.timeoutSeconds ?? defaultTimeoutSeconds,
  };
  if (step !== undefined)
    return {
      ...common,
      ...arrivalsOf(profile, options),
      searched: true,
      durationSeconds: asked ?? step.durationSeconds,
      warmupSeconds: namedWarmup(profile, options) ?? step.warmupSeconds,
    };
  if (rate !== undefined && requests !== undefined)
    return {
      ...common,
      ...arrivalsOf(profile, options),
      ...requestsAtRate({ ...profile, rate, requests }, options),
      ...warmUpInTurns(profile, options),
    };
  const longSeconds = exact ? undefined : secondsHere;
  if (asked === undefined && longSeconds === undefined && requests !== undefined)
    return {
      ...common,
      requests: quick ? quickRequests(requests, common) : requests,
      ...warmUpBefore(profile, options),
    };
  // A profile has a number of requests or a duration.
  const fullSeconds = (durationSeconds ?? longSeconds ?? asked) as number;
  if (takesTurns(profile, options)) {
    const most = quick ? turnsSeconds.quick : turnsSeconds.full;
    return {
      ...common,
      durationSeconds: asked ?? Math.min(fullSeconds, most),
      ...warmUpInTurns(profile, options),
    };
  }
  const leastSeconds = Math.max(quickSeconds, (longSeconds ?? 0) / quickPart);
  const usualSeconds = quick ? Math.min(fullSeconds, leastSeconds) : fullSeconds;
  return { ...common, durationSeconds: asked ?? usualSeconds, ...warmUpAlone(profile, options) };
}

/** A load whose requests take hours is not divided into turns. */
function takesTurns({ secondsHere }: LoadProfile, { inTurns, exact }: FitOptions): boolean {
  return inTurns === true && !exact && secondsHere === undefined;
}

function arrivalsOf({ arrivals }: LoadProfile, options: FitOptions): Pick<Load, 'arrivals'> {
  return present({ arrivals: options.arrivals ?? arrivals });
}

/** The length of the warm-up, if the run or the profile names it. */
function namedWarmup(profile: LoadProfile, options: FitOptions): number | undefined {
  return options.warmupSeconds ?? profile.warmupSeconds;
}

/** Returns how long a warm-up may go on while the server gets faster. One that is named is as long as that. */
function warmUpLimit(profile: LoadProfile, options: FitOptions): Pick<Load, 'warmupLimitSeconds'> {
  const { exact, quick, sharesCores } = options;
  if (exact || sharesCores || namedWarmup(profile, options) !== undefined) return {};
  return { warmupLimitSeconds: quick ? warmupLimitSeconds.quick : warmupLimitSeconds.full };
}

type WarmUp = Pick<Load, 'warmupSeconds' | 'warmupLimitSeconds'>;

/** The warm-up of a load in turns or at a rate, which opens all connections. */
function warmUpInTurns(profile: LoadProfile, options: FitOptions): WarmUp {
  const openingSeconds = profile.connections * secondsToOpen[hasTls(profile) ? 'tls' : 'plain'];
  return {
    warmupSeconds: namedWarmup(profile, options) ?? turnsWarmupSeconds + openingSeconds,
    ...warmUpLimit(profile, options),
  };
}

/** The warm-up of a load that counts its requests: none, unless the run asks for one or the server may be cold. */
function warmUpBefore(profile: LoadProfile, options: FitOptions): WarmUp {
  if (options.warmupSeconds === undefined && options.mayBeCold !== true)
    return { warmupSeconds: 0 };
  return warmUpInTurns(profile, options);
}

/** The warm-up of a load that takes no turns. It is not shortened if requests take hours. */
function warmUpAlone(profile: LoadProfile, options: FitOptions): WarmUp {
  const seconds = namedWarmup(profile, options) ?? fullWarmupSeconds;
  const isShortened =
    options.quick && options.warmupSeconds === undefined && profile.secondsHere === undefined;
  return {
    warmupSeconds: isShortened ? Math.min(seconds, quickWarmupSeconds) : seconds,
    ...warmUpLimit(profile, options),
  };
}

/** The rate, and the requests that it makes here. */
function requestsAtRate(
  profile: LoadProfile & Required<Pick<LoadProfile, 'rate' | 'requests'>>,
  options: FitOptions,
) {
  const { rate, requests } = profile;
  const neededSeconds = secondsFor(options.responses ?? 0, rate);
  const inTurns = takesTurns(profile, options);
  const usualSeconds = secondsAtRate(requests / rate, neededSeconds, inTurns, options.quick);
  return atRateFor(rate, options.durationSeconds ?? usualSeconds);
}

/**
 * Returns how long a load at a rate lasts, in seconds.
 * @param full as the profile says
 * @param needed for a verdict
 */
function secondsAtRate(full: number, needed: number, inTurns: boolean, quick = false): number {
  let seconds = Infinity;
  if (inTurns) seconds = turnsSeconds.rate;
  else if (quick) seconds = quickSeconds;
  // A load that is too short for a verdict even so stays short.
  if (needed <= full) seconds = Math.max(seconds, needed);
  return Math.min(full, seconds);
}

/** A tenth, but at least a request per connection and `quickFillings` per stream. */
function quickRequests(
  requests: number,
  { connections, streams }: { connections: number; streams: number },
): number {
  const fillings = Math.floor(requests / (connections * streams));
  const fewest = Math.max(connections, connections * streams * Math.min(fillings, quickFillings));
  return Math.min(requests, Math.max(fewest, Math.ceil(requests / quickPart)));
}
