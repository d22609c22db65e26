// Made of lib/scenario/load/line.ts by `npm run types`.
import type { LoadProfile } from '../model.ts';
import { type PageList, type PageWeights } from '../page-list.ts';
import { type UrlParts } from '../url.ts';
export interface LoadLine {
    load: LoadProfile;
    /** Absent where the line has none. Of several pages only the path may be known. */
    url?: PageList['url'];
    /** Several pages. */
    weights?: PageWeights;
    /** What the line wants to be said as Host: of a header, or of the URL. */
    host?: string;
}
/**
 * Reads a line such as `wrk -t4 -c100 -d30s http://localhost:8080/a` or `echo "GET https://a.example/" | vegeta attack …`.
 * Flags that cannot be honoured are refused by name; what is done with the output is left out.
 * @param scheme of the server that is loaded, where the line has no URL
 * @throws UserError in one line
 */
export declare function loadOfLine(text: string, scheme?: UrlParts['scheme']): LoadLine;
