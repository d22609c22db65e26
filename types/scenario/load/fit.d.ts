// Made of lib/scenario/load/fit.ts by `npm run types`.
import type { Arrivals, LoadProfile, TlsOffer } from '../model.ts';
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
} & ({
    durationSeconds: number;
    requests?: never;
    rate?: never;
    searched?: never;
}
/** Step by step at rates that are searched for, so long each at least. */
 | {
    durationSeconds: number;
    searched: true;
    requests?: never;
    rate?: never;
}
/** With a rate (requests/s) the load lasts requests / rate seconds, and the answers to the last ones. */
 | {
    requests: number;
    rate?: number;
    durationSeconds?: never;
    searched?: never;
});
/** Whether requests start at a given time, whether or not earlier ones are answered. */
export declare function isAtRate({ rate, searched }: {
    rate?: number;
    searched?: boolean;
}): boolean;
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
/**
 * Fits a profile to this machine: one thread per generator core, never more than the article's; connections, streams and
 * rate stay as published. Throws UserError for numbers that are not positive.
 */
export declare function fitLoad(profile: LoadProfile, options: FitOptions): Load;
