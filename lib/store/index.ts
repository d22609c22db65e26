// What the rest of the project uses of the store. dashboards/ reads its names and units from schema.ts itself.
export { parseInfluxUrl } from './client.ts';
export { openStore, type Influx, type Series, type Store, type StoreOptions } from './influxd.ts';
export { checkAgain, checkRound, type RoundIntegrity, type RoundToCheck } from './integrity.ts';
export { roundPoint, runPoint, sentencePoints, serverSamplePoints, tablePoints, type ServerSample } from './points.ts';
