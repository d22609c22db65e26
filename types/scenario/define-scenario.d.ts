// Made of lib/scenario/define-scenario.ts by `npm run types`.
import type { Scenario } from './model.ts';
/** Checks a scenario and returns it unchanged. Throws an Error that names the field when something is wrong. */
export declare function defineScenario(scenario: Scenario): Scenario;
