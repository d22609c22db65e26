import type { Arrivals, LoadProfile } from './model.ts';
import { present } from '../present.ts';

const namesOfProtocols: Readonly<Record<LoadProfile['protocol'], string>> = {
  'http/1.0': 'HTTP/1.0',
  'http/1.1': 'HTTP/1.1',
  h2: 'HTTP/2 over TLS',
  h2c: 'HTTP/2 without TLS',
};

export function isHttp2(protocol: LoadProfile['protocol']): boolean {
  return protocol === 'h2' || protocol === 'h2c';
}

/** Writes out the protocols that a text names: "http/1.1 and h2" is "HTTP/1.1 and HTTP/2 over TLS". */
export function protocolNames(text: string): string {
  return text.replaceAll(
    /http\/1\.[01]|h2c?/g,
    (name) => namesOfProtocols[name as LoadProfile['protocol']],
  );
}

// Fits an article's load to this machine and to what the person asked for.

/** A load fitted to this machine. `warmupSeconds` are 0 where requests are counted without a rate: there, handshakes belong to the time. */
export type Load = Omit<LoadProfile, 'rate' | 'requests' | 'durationSeconds' | 'secondsHere'> &
  Required<Pick<LoadProfile, 'streams' | 'timeoutSeconds' | 'warmupSeconds'>> &
  (
    | { durationSeconds: number; requests?: never; rate?: never; searched?: never }
    /** Step by step at rates that are searched for, so long each at least. */
    | { durationSeconds: number; searched: true; requests?: never; rate?: never }
    /** With a rate (requests/s) the load lasts requests / rate seconds, and the answers to the last ones. */
    | { requests: number; rate?: number; durationSeconds?: never; searched?: never }
  );

/** Whether requests start at a given time, whether or not earlier ones are answered. */
export function isAtRate({ rate, searched }: { rate?: number; searched?: boolean }): boolean {
  return rate !== undefined || searched === true;
}

export interface FitOptions {
  /** Cores that the generator may use. */
  generatorCores: number;
  /** The article's number of threads, however many cores there are, and its number of requests, however long they take. */
  exact: boolean;
  /** Seconds of the measured window instead of the article's duration or number of requests. */
  durationSeconds?: number;
  /** Others take turns with it: the noise of the machine is the same for all, and a short window is as exact as the article's. */
  inTurns?: boolean;
  /** Instead of the profile's, where it has a rate. */
  arrivals?: Arrivals;
  /** Rates are searched for: of the profile neither its rate counts nor how long it lasts. */
  searched?: boolean;
  /** Short rounds for a first look; `durationSeconds` is stronger. */
  quick?: boolean;
}

/** After which an attempt is an error, where a profile names no time. */
export const defaultTimeoutSeconds = 5;

const fullWarmupSeconds = 1;
const quickSeconds = 2;
const quickWarmupSeconds = 0.5;

/** The measured window in turns. At a rate it has to hold enough requests for percentiles; a step of a search makes itself as long as that takes, and more of them say more than longer ones. */
export const turnsSeconds = { full: 1, quick: 0.5, rate: 2, step: 0.5 };
/** The warm-up in turns, and what each connection adds. On a fast machine nginx closes all connections for the first time within it. */
const turnsWarmupSeconds = 0.4;
/** The same of a step of a search, which others go before; the engine opens its connections ahead of it. */
const stepWarmupSeconds = 0.1;
const openingSeconds = { plain: 0.0001, tls: 0.002 };

/** `quick` makes one request of so many, or takes one second. */
const quickPart = 10;
/** How often `quick` fills all streams of all connections, where the article does it as often: once would be a burst and no load. */
const quickFillings = 4;

/** Fits a profile to this machine: one thread per generator core, at most the article's; connections, streams and rate stay as they are. */
export function fitLoad(profile: LoadProfile, options: FitOptions): Load {
  const { durationSeconds: asked, quick = false } = options;
  const { rate, requests, tls, bucketSeconds, expectedRps, method, headers, body } = profile;
  const common = {
    command: profile.command,
    protocol: profile.protocol,
    connections: profile.connections,
    streams: profile.streams ?? 1,
    threads: options.exact ? profile.threads : Math.min(profile.threads, options.generatorCores),
    keepAlive: profile.keepAlive,
    timeoutSeconds: profile.timeoutSeconds ?? defaultTimeoutSeconds,
    ...present({ tls, bucketSeconds, expectedRps, method, headers, body }),
  };
  const secondsHere = options.exact ? undefined : profile.secondsHere;
  const inTurns = options.inTurns === true && !options.exact && profile.secondsHere === undefined;
  const opening =
    profile.connections *
    (profile.protocol === 'h2' || profile.tls !== undefined
      ? openingSeconds.tls
      : openingSeconds.plain);
  const ofRate = { ...common, ...present({ arrivals: options.arrivals ?? profile.arrivals }) };
  if (options.searched === true) {
    return {
      ...ofRate,
      searched: true,
      durationSeconds: asked ?? turnsSeconds.step,
      warmupSeconds: profile.warmupSeconds ?? stepWarmupSeconds,
    };
  }
  if (rate !== undefined && requests !== undefined) {
    const most = inTurns ? turnsSeconds.rate : quick ? quickSeconds : Infinity;
    const seconds = asked ?? Math.min(requests / rate, most);
    return {
      ...ofRate,
      rate,
      requests: Math.max(1, Math.round(rate * seconds)),
      warmupSeconds: profile.warmupSeconds ?? turnsWarmupSeconds + opening,
    };
  }
  if (asked === undefined && secondsHere === undefined && requests !== undefined) {
    return {
      ...common,
      requests: quick ? quickRequests(requests, common) : requests,
      warmupSeconds: 0,
    };
  }
  // A profile has a number of requests, or a duration.
  const full = (profile.durationSeconds ?? secondsHere ?? asked) as number;
  if (inTurns) {
    return {
      ...common,
      durationSeconds: asked ?? Math.min(full, quick ? turnsSeconds.quick : turnsSeconds.full),
      warmupSeconds: profile.warmupSeconds ?? turnsWarmupSeconds + opening,
    };
  }
  const warmupSeconds = profile.warmupSeconds ?? fullWarmupSeconds;
  return {
    ...common,
    durationSeconds:
      asked ??
      (quick ? Math.min(full, Math.max(quickSeconds, (secondsHere ?? 0) / quickPart)) : full),
    // A load whose requests take hours is one that needs its time to get going.
    warmupSeconds:
      quick && profile.secondsHere === undefined
        ? Math.min(warmupSeconds, quickWarmupSeconds)
        : warmupSeconds,
  };
}

/** A tenth, but at least one request per connection, and enough that the streams are what they say. */
function quickRequests(
  requests: number,
  { connections, streams }: { connections: number; streams: number },
): number {
  const fillings = Math.floor(requests / (connections * streams));
  const fewest = Math.max(connections, connections * streams * Math.min(fillings, quickFillings));
  return Math.min(requests, Math.max(fewest, Math.ceil(requests / quickPart)));
}
