// Fits an article's load to this machine and to what the person asked for.
import { UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import type { Arrivals, LoadProfile, TlsOffer } from '../model.ts';
import { defaultTimeoutSeconds } from './timeouts.ts';

/** A load fitted to this machine: what the engine is asked to do in every round. */
export type Load = {
  /** The article's command line, for the table. */
  command: string;
  protocol: LoadProfile['protocol'];
  connections: number;
  /** Concurrent requests per connection; 1 with HTTP/1. */
  streams: number;
  threads: number;
  keepAlive: boolean;
  /** After this an attempt is an error of kind timeout. */
  timeoutSeconds: number;
  /** Load before the measured window, in no figure. 0 where requests are counted without a rate: there, handshakes belong to the time. */
  warmupSeconds: number;
  arrivals?: Arrivals;
  tls?: TlsOffer;
  bucketSeconds?: readonly number[];
  /** As in LoadProfile. */
  expectedRps?: number;
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
} & (
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

const fullWarmupSeconds = 1;
const quickSeconds = 2;
const quickWarmupSeconds = 0.5;

/** The measured window in turns. At a rate it has to hold enough requests for percentiles; a step of a search makes itself as long as that takes, and more of them say more than longer ones. */
export const turnsSeconds = { full: 1, quick: 0.5, rate: 2, step: 0.5 };
/**
 * The warm-up in turns, and what each connection adds to it that is made there. Where a server closes connections after a number
 * of requests, as nginx does by default, the first time comes for all of them at once: on a fast machine it is over by then.
 */
const turnsWarmupSeconds = 0.4;
/** The same of a step of a search, which others go before; the engine opens its connections ahead of it. */
const stepWarmupSeconds = 0.1;
const openingSeconds = { plain: 0.0001, tls: 0.002 };

/** `quick` makes one request of so many, or takes one second. */
const quickPart = 10;
/** How often `quick` fills all streams of all connections, where the article does it as often: once would be a burst and no load. */
const quickFillings = 4;

/**
 * Fits a profile to this machine: one thread per generator core, never more than the article's; connections, streams and
 * rate stay as published. Throws UserError for numbers that are not positive.
 */
export function fitLoad(profile: LoadProfile, options: FitOptions): Load {
  if (!Number.isInteger(options.generatorCores) || options.generatorCores < 1) {
    throw new UserError(`the generator needs at least 1 core, not ${options.generatorCores}`);
  }
  const asked = options.durationSeconds;
  if (asked !== undefined && !(Number.isFinite(asked) && asked > 0)) {
    throw new UserError(`a round has to last longer than 0 s, not ${asked} s`, 2);
  }
  const quick = options.quick === true;
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
  const opening = profile.connections * (profile.protocol === 'h2' || profile.tls !== undefined ? openingSeconds.tls : openingSeconds.plain);
  const arrivals = options.arrivals ?? profile.arrivals;
  if (options.searched === true) {
    return {
      ...common, searched: true, durationSeconds: asked ?? turnsSeconds.step, warmupSeconds: profile.warmupSeconds ?? stepWarmupSeconds,
      ...(arrivals === undefined ? {} : { arrivals }),
    };
  }
  if (rate !== undefined && requests !== undefined) {
    const most = inTurns ? turnsSeconds.rate : quick ? quickSeconds : Infinity;
    const seconds = asked ?? Math.min(requests / rate, most);
    return {
      ...common, rate, requests: Math.max(1, Math.round(rate * seconds)), warmupSeconds: profile.warmupSeconds ?? turnsWarmupSeconds + opening,
      ...(arrivals === undefined ? {} : { arrivals }),
    };
  }
  if (asked === undefined && secondsHere === undefined && requests !== undefined) {
    return { ...common, requests: quick ? quickRequests(requests, common) : requests, warmupSeconds: 0 };
  }
  const full = profile.durationSeconds ?? secondsHere ?? asked;
  if (full === undefined) throw new UserError(`${profile.command}: has neither a duration nor a number of requests`);
  if (inTurns) {
    return {
      ...common, durationSeconds: asked ?? Math.min(full, quick ? turnsSeconds.quick : turnsSeconds.full),
      warmupSeconds: profile.warmupSeconds ?? turnsWarmupSeconds + opening,
    };
  }
  const warmupSeconds = profile.warmupSeconds ?? fullWarmupSeconds;
  return {
    ...common,
    durationSeconds: asked ?? (quick ? Math.min(full, Math.max(quickSeconds, (secondsHere ?? 0) / quickPart)) : full),
    // A load whose requests take hours is one that needs its time to get going.
    warmupSeconds: quick && profile.secondsHere === undefined ? Math.min(warmupSeconds, quickWarmupSeconds) : warmupSeconds,
  };
}

/** A tenth, but at least one request per connection, and enough that the streams are what they say. */
function quickRequests(requests: number, { connections, streams }: { connections: number; streams: number }): number {
  const fillings = Math.floor(requests / (connections * streams));
  const fewest = Math.max(connections, connections * streams * Math.min(fillings, quickFillings));
  return Math.min(requests, Math.max(fewest, Math.ceil(requests / quickPart)));
}
