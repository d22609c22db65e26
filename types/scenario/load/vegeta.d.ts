// Made of lib/scenario/load/vegeta.ts by `npm run types`.
import type { LoadProfile, TlsOffer } from '../model.ts';
/** What stands in other places than vegeta's attack command. */
export interface VegetaOptions {
    /** The buckets as its report names them: `hist[0,.15ms,.3ms]` or `[0,.15ms,.3ms]`; each begins at its number. */
    buckets?: string;
    /** What its TLS library offered. */
    tls?: TlsOffer;
}
/**
 * The load of a vegeta command line without the words "vegeta attack", e.g. `-http2 -rate=1000 -duration=10s`: HTTP/2 over
 * TLS, rate × duration requests in all, every one awaited. Left out, -rate is 50 and -timeout 30s, as in vegeta. -insecure
 * is what happens anyway; -connections bounds idle connections, and there are never that many. Throws UserError naming what
 * cannot be honoured.
 */
export declare function vegeta(line: string, { buckets, tls }?: VegetaOptions): LoadProfile;
/**
 * The upper ends, in seconds, of vegeta's buckets: all numbers but the 0 that the first bucket begins with. Like vegeta it
 * puts that 0 in where it is missing.
 */
export declare function upperEnds(text: string): number[];
