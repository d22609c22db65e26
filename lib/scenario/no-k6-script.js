// The first import of index.ts. JavaScript, because Node strips no types in node_modules.
export {};
