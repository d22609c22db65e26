// Made of lib/scenario/load/h2load.ts by `npm run types`.
import type { LoadProfile, TlsOffer } from '../model.ts';
/** What an h2load command line cannot say. */
export interface H2loadOptions {
    /** What its TLS library offered; default: TLS 1.2 and 1.3, h2load's curves. */
    tls?: TlsOffer;
}
/**
 * The load of an h2load command line without the word "h2load", e.g. `-n 100000 -c 1000 -t 16`: HTTP/2 over TLS,
 * `-p h2c` or `-p http/1.1` without TLS, `--h1` HTTP/1.1 either way. Flags that are left out have h2load's defaults (1
 * request, 1 connection, 1 thread, 1 stream), and its ranges hold. Throws UserError naming what cannot be honoured.
 */
export declare function h2load(line: string, { tls }?: H2loadOptions): LoadProfile;
