// Made of lib/scenario/load/http1.ts by `npm run types`.
import type { LoadProfile } from '../model.ts';
/**
 * The load of a wrk command line without the word "wrk", e.g. `-c 100 -t 10 -d 10`: HTTP/1.1, connections kept alive; with wrk2's -R
 * so many requests/s in all, whether or not earlier ones are answered. Flags that are left out have wrk's defaults (10
 * connections, 2 threads, 10 s). Throws UserError naming what cannot be honoured.
 */
export declare function wrk(line: string): LoadProfile;
/**
 * The load of an ab command line without the word "ab", e.g. `-c 10 -n 1000 -k`: HTTP/1.0, a new connection for each
 * request unless -k. -r is what the engine does anyway (it goes on after errors). Throws UserError naming what cannot be honoured.
 */
export declare function ab(line: string): LoadProfile;
/**
 * The load of a weighttp command line without the word "weighttp", e.g. `-k -c 100 -n 100000`: HTTP/1.1, a new connection
 * for each request unless -k; 1 connection and 1 thread unless told. Throws UserError naming what cannot be honoured.
 */
export declare function weighttp(line: string): LoadProfile;
