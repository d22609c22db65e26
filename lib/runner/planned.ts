// What a run is going to do, once its scenario and options have been fitted to this machine.
import type { Metric } from '../result/result.ts';
import type { RunnableVariant } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load/fit.ts';
import type { Scenario, Variant, Within } from '../scenario/model.ts';
import type { Cores } from '../machine/cores.ts';

/** A variant that is run, and its load as fitted to this machine. */
export interface PlannedVariant {
  variant: RunnableVariant;
  load: Load;
}

export interface Plan {
  /** Unique and readable: the run's folder and the tag `run` of all its points. */
  run: string;
  scenario: Scenario;
  /** All rows of the table, in the scenario's order; some may be published only. */
  shown: readonly Variant[];
  /** Those of them that are run. */
  variants: readonly PlannedVariant[];
  /** The same ones, as each round loads them. */
  groups: readonly Group[];
  cores: Cores;
  /** At most. */
  rounds: number;
  /** See Result.looks: ascending, the last is `rounds`. */
  looks: readonly number[];
  /** No round begins that would not end within this. */
  maxTimeSeconds?: number;
  /** The run goes on, for as many rounds as that takes, until each interval is decided, or lies within this of its ratio (0.01: 1 %). */
  precision?: number;
  /** See Result. */
  sameWithin: number;
  /** What verdicts are made by, instead of requests/s, or of latency where the load sets these. */
  metric?: Metric;
  /** The limit that rates are searched for. */
  within?: Within;
  quick: boolean;
  exact: boolean;
  /** See StartOptions. */
  trustConfig: boolean;
}

/** A plan without its name, which says when the run began. */
export type PlanDraft = Omit<Plan, 'run'>;

/** Variants that one k6 loads in turns; one that is alone has one turn without end. */
export interface Group {
  sides: readonly PlannedVariant[];
  /** The mean length of a turn, instead of what the engine chooses: the proof tries others. */
  sliceSeconds?: number;
}
