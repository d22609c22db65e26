// How long an attempt may take, where the articles' tools differ from a browser's patience.

/** Where a profile names none. */
export const defaultTimeoutSeconds = 5;

/**
 * For h2load and weighttp, which wait for ever: a server that hangs has to end a run some day. Article 002's longest
 * request took 447 s, on a network that was full all that time.
 */
export const endlessTimeoutSeconds = 600;
