// Made of lib/scenario/page-list.ts by `npm run types`.
import type { Page } from './model.ts';
import { type UrlParts } from './url.ts';
/** By path, in the order of the list. */
export type PageWeights = NonNullable<Page['weights']>;
export interface PageList {
    /** Its first page, and the address where a line names one. */
    url: Partial<UrlParts> & {
        path: string;
    };
    /** Absent where there is one page only. */
    weights?: PageWeights;
}
export declare const mostPages = 100000;
export declare const mostWeight = 1000000000;
/** A line that says something. */
export interface ListLine {
    where: string;
    words: string[];
}
/** The lines of a text, each in words, without comments and empty ones. `where` starts the messages. */
export declare function linesOf(where: string, text: string): ListLine[];
/** The same of a file, its path relative to the folder the person stands in. Throws UserError when it cannot be read. */
export declare function linesOfFile(flag: string, path: string): ListLine[];
/**
 * Reads a list of pages: on each line a path or a URL, and a whole number, its weight, which is 1 when left out.
 * @param flag as the person wrote it, e.g. `--urls`
 * @throws UserError (exit code 2) that names the line
 */
export declare function readPageList(flag: string, path: string): PageList;
/** @throws UserError (exit code 2) that names the line */
export declare function pageListOf(list: string, lines: readonly {
    where: string;
    target: string;
    weight: number;
}[]): PageList;
