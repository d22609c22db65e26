// Made of lib/k6/rate-search.ts by `npm run types`.
/** Where a search begins, in requests/s, the factor to the next rate, which grows until both sides of the limit are known, and the lowest rate that is tried. */
export interface SearchStart {
    rate: number;
    factor: number;
    least: number;
}
/** In requests/s. The engine takes no higher one. */
export declare const highestRate = 10000000;
export declare const lowestRate = 100;
/** Wherever the limit is, a search from nothing takes 60 at most, three at each rate; what is beyond is for rates that a pause broke. */
export declare const mostSteps = 80;
/** One search. `kept` and `broken` are the rates nearest to the limit so far, on either side of it. */
export declare class RateSearch {
    #private;
    kept: number | undefined;
    broken: number | undefined;
    constructor({ rate, factor, least }: SearchStart);
    /** The rate to try, the same one until it is told of; in requests/s. Undefined when the search is over: the two are near enough, or there is no rate beyond. */
    next(): number | undefined;
    /** The rate that was kept is near enough to the limit: to the one that broke it, or there is none beyond it. */
    isNear(): boolean;
    /** What came of the rate that was to be tried. */
    told(rate: number, isKept: boolean): void;
}
