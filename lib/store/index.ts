// What the rest of the project uses of the store; names and writers of points are in schema.ts.
export { openStore, type Influx, type Series, type Store, type StoreOptions } from './influxd.ts';
export { checkRound, type RoundIntegrity, type RoundToCheck } from './integrity.ts';
