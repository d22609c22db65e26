// See index.ts.
export {};
