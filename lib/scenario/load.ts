import { present } from '../present.ts';
import type { Arrivals, LoadProfile, Protocol } from './model.ts';

/**
 * A load fitted to this machine, with one kind of length and all defaults. Where requests are counted without a rate, the warm-up is a
 * load of its own (warmsUpApart), because handshakes belong to the measured time.
 */
export type Load = Omit<LoadProfile, 'rate' | 'requests' | 'durationSeconds' | 'secondsHere'> &
  Required<Pick<LoadProfile, 'streams' | 'timeoutSeconds' | 'warmupSeconds'>> & {
    /** The most by which a warm-up goes on while the server gets faster. Absent or 0: it does not. */
    warmupLimitSeconds?: number;
    /** The gain, as a share, below which it ends. Absent: the engine's. */
    warmupGain?: number;
  } & (
    | { durationSeconds: number; requests?: never; rate?: never; searched?: never }
    /** It has steps of at least this duration, each at its own rate. */
    | { durationSeconds: number; searched: true; requests?: never; rate?: never }
    /** It lasts, at a rate (requests/s), until the last answers. */
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

export function hasStreams(protocol: Protocol): boolean {
  return isHttp2(protocol) || protocol === 'h3';
}

/** Always TLS: HTTP/1.x has it if the server has. */
export function needsTls(protocol: Protocol): boolean {
  return protocol === 'h2' || protocol === 'h3';
}

export function hasTls({ protocol, tls }: Pick<LoadProfile, 'protocol' | 'tls'>): boolean {
  return needsTls(protocol) || tls !== undefined;
}

/** Such as "HTTP/1.1 over TLS". HTTP/1.x has TLS if `tls` is there. */
export function protocolName({ protocol, tls }: Pick<LoadProfile, 'protocol'> & { tls?: unknown }) {
  const name = protocolNamesBy[protocol];
  return protocol.startsWith('http/') && tls ? `${name} over TLS` : name;
}

/** Whether the load is a number of requests from the first connect on. */
export function isCounted({ requests, ...load }: Pick<Load, 'requests' | 'rate' | 'searched'>) {
  return requests !== undefined && !isAtRate(load);
}

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
  warmupSeconds?: number;
  /** Compiled code may get faster under load: counted requests get a warm-up, too. */
  mayBeCold?: boolean;
  /** With turns a short window is enough, as noise is the same for all. */
  inTurns?: boolean;
  arrivals?: Arrivals;
  /** A load in steps: its default window and warm-up; the profile's rate and length do not count. */
  step?: { durationSeconds: number; warmupSeconds: number };
  /** Server and generator share cores: CPU per response then depends on which threads meet, and does not show a warm server. */
  sharesCores?: boolean;
  quick?: boolean;
  /** Responses that a verdict needs in a round. */
  responses?: number;
}

const defaultTimeoutSeconds = 5;

const fullWarmupSeconds = 1;
const quickSeconds = 2;
const quickWarmupSeconds = 0.5;

/** Measured windows in turns. A rate needs enough requests for percentiles. */
const turnsSeconds = { full: 1, quick: 0.5, rate: 2 };
/** nginx on a fast machine has then closed all connections once (keepalive_requests). */
const turnsWarmupSeconds = 0.4;
const warmupLimitSeconds = { full: 30, quick: 3 };
/** Additional warm-up per connection. */
const secondsToOpen = { plain: 0.0001, tls: 0.002 };

/** Some responses are late or missing, and Poisson arrivals vary. */
const spareResponses = 1.1;

/** @param rate in requests/s */
export function secondsFor(responses: number, rate: number): number {
  return (spareResponses * responses) / rate;
}

/** @param rate in requests/s */
export function atRateFor(rate: number, seconds: number): { rate: number; requests: number } {
  return { rate, requests: Math.max(1, Math.round(rate * seconds)) };
}

const quickPart = 10;
/** `quick` fills all streams so often, if the article does: once would be a burst. */
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

function namedWarmup(profile: LoadProfile, options: FitOptions): number | undefined {
  return options.warmupSeconds ?? profile.warmupSeconds;
}

/** A named warm-up is as long as that. */
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

function warmUpBefore(profile: LoadProfile, options: FitOptions): WarmUp {
  if (options.warmupSeconds === undefined && options.mayBeCold !== true)
    return { warmupSeconds: 0 };
  return warmUpInTurns(profile, options);
}

/** It is not shortened if requests take hours. */
function warmUpAlone(profile: LoadProfile, options: FitOptions): WarmUp {
  const seconds = namedWarmup(profile, options) ?? fullWarmupSeconds;
  const isShortened =
    options.quick && options.warmupSeconds === undefined && profile.secondsHere === undefined;
  return {
    warmupSeconds: isShortened ? Math.min(seconds, quickWarmupSeconds) : seconds,
    ...warmUpLimit(profile, options),
  };
}

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

/** @param full as the profile says @param needed for a verdict */
function secondsAtRate(full: number, needed: number, inTurns: boolean, quick = false): number {
  let seconds = Infinity;
  if (inTurns) seconds = turnsSeconds.rate;
  else if (quick) seconds = quickSeconds;
  // A load that is too short for a verdict even so stays short.
  if (needed <= full) seconds = Math.max(seconds, needed);
  return Math.min(full, seconds);
}

function quickRequests(
  requests: number,
  { connections, streams }: { connections: number; streams: number },
): number {
  const fillings = Math.floor(requests / (connections * streams));
  const fewest = Math.max(connections, connections * streams * Math.min(fillings, quickFillings));
  return Math.min(requests, Math.max(fewest, Math.ceil(requests / quickPart)));
}
