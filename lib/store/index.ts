// What the rest of the project uses of the store. dashboards/ reads its names and units from schema.ts itself.
export { parseInfluxUrl } from './client.ts';
export { openStore, type Influx, type Series, type Store, type StoreOptions } from './influxd.ts';
export { checkRound, type RoundIntegrity, type RoundToCheck } from './integrity.ts';
export { comparisonPoints, roundPoint, runPoint, serverSamplePoints, type ServerSample } from './schema.ts';
