// What a scenario file imports.
export { defineScenario } from './define-scenario.ts';
export type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  LaidLines,
  LinkDirection,
  LoadProfile,
  NetworkSpec,
  Page,
  Published,
  PublishedDistribution,
  Scenario,
  ServerSpec,
  TlsOffer,
  Variant,
} from './model.ts';
export { h2load, type H2loadOptions } from './load/h2load.ts';
export { ab, weighttp, wrk } from './load/http1.ts';
export { vegeta, type VegetaOptions } from './load/vegeta.ts';
export { address, command, h2o, nghttpd, nginx, type ServerOptions } from './servers.ts';
