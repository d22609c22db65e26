// Made of lib/scenario/url.ts by `npm run types`.
export interface UrlParts {
    scheme: 'http' | 'https';
    /** As the request's Host says it, with a port that is not the scheme's; absent for an address and localhost. */
    host?: string;
    /** Absent where it is the scheme's. */
    port?: number;
    /** Begins with /; with the query. */
    path: string;
}
/** `where` starts the message. Throws UserError for what is no URL of http or https, and with a user name in it. */
export declare function urlParts(text: string, where: string): UrlParts;
/** Of a URL, or of a path, which begins with /. `where` starts the message. Throws UserError (exit code 2) for what is neither. */
export declare function pathOrUrl(text: string, where: string): Partial<UrlParts> & {
    path: string;
};
/** The name that TLS asks for (SNI) where a request says this Host; undefined for an address, which is no name. */
export declare function serverNameOf(host: string | undefined): string | undefined;
