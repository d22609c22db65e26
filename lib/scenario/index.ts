// What a scenario file imports.
export { defineScenario } from './define-scenario.ts';
export type { AddressServer, CommandServer, ConfiguredServer, LaidLines, LinkDirection, LoadProfile, NetworkSpec, Page, Published, PublishedDistribution, Scenario, ServerSpec, TlsOffer, Variant } from './model.ts';
export { ab, h2load, vegeta, weighttp, wrk, type H2loadOptions, type VegetaOptions } from './load.ts';
export { address, command, h2o, nghttpd, nginx, type ServerOptions } from './servers.ts';
