// What a scenario file imports.
export { defineScenario } from './model.ts';
export type { LoadProfile, Published, Scenario, ServerSpec, Variant } from './model.ts';
export { ab, wrk } from './load.ts';
export { nginx, type NginxOptions } from './servers.ts';
