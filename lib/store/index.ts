// What the rest of the project uses of the store. dashboards/ reads its names and units from schema.ts itself.
export { parseInfluxUrl, type Influx } from './client.ts';
export { openStore, type Store } from './influxd.ts';
export { checkRounds, type RoundIntegrity } from './integrity.ts';
export {
  roundPoint,
  runPoint,
  sentencePoints,
  serverSamplePoints,
  tablePoints,
  type ServerSample,
} from './points.ts';
