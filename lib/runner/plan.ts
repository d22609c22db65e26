// What a run will do, decided before anything is installed or started.
import type { LoadOptions, LoadPlan } from '../k6/load-plan.ts';
import { fitLoad, type Load } from '../scenario/load.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import type { Cores } from './cores.ts';

export interface PlanOptions {
  rounds: number;
  /** Seconds of a round's measured window instead of the article's. */
  durationSeconds?: number;
  quick: boolean;
  exact: boolean;
}

export interface Plan {
  /** Unique and readable: the run's folder and the tag `run` of all its points. */
  run: string;
  scenario: Scenario;
  /** Those that are run, in the scenario's order. */
  variants: readonly Variant[];
  load: Load;
  cores: Cores;
  rounds: number;
  quick: boolean;
  exact: boolean;
}

/** A plan without its name, which says when the run began. */
export type PlanDraft = Omit<Plan, 'run'>;

/** Throws UserError for a load that cannot be fitted. */
export function makePlan(scenario: Scenario, variants: readonly Variant[], cores: Cores, options: PlanOptions): PlanDraft {
  const { rounds, quick, exact, durationSeconds } = options;
  const load = fitLoad(scenario.load, {
    generatorCores: cores.generatorCpus.length, exact, quick, ...(durationSeconds === undefined ? {} : { durationSeconds }),
  });
  return { scenario, variants, load, cores, rounds, quick, exact };
}

/** e.g. 2026-11-20T08-15-30-nginx-open-file-cache, in UTC. */
export function runName(scenario: Scenario, startedAt: Date): string {
  return `${startedAt.toISOString().slice(0, 19).replaceAll(':', '-')}-${scenario.name}`;
}

/** Start and stop of server and k6, and the check of what was stored, for one variant in one round. Seen on 2 cores: 0.3 to 1 s. */
const overheadSeconds = 0.5;

/** What a count of requests is taken to last where nobody knows; the slowest configs here do 10,000 requests/s and more. */
const assumedRps = 10_000;

/** Estimated seconds of one variant in one round. */
export function secondsPerVariant({ load }: PlanDraft): number {
  return loadSeconds(load) + overheadSeconds;
}

/** Estimated seconds of the whole run. */
export function estimatedSeconds(plan: PlanDraft): number {
  return plan.rounds * plan.variants.length * secondsPerVariant(plan);
}

function loadSeconds(load: Load): number {
  return load.warmupSeconds + (load.durationSeconds ?? load.requests / assumedRps);
}

const timeoutSeconds = 5;

/** What k6 gets for one variant in one round. `url`: the page, at the server's address. */
export function loadPlanFor(plan: Plan, variant: Variant, round: number, url: string): LoadPlan {
  const { load } = plan;
  const phase: LoadOptions = {
    url,
    protocol: load.protocol,
    connections: load.connections,
    threads: load.threads,
    keepAlive: load.keepAlive,
    timeout: `${timeoutSeconds}s`,
    ...(load.durationSeconds === undefined ? { requests: load.requests } : { duration: `${load.durationSeconds}s` }),
    ...(load.warmupSeconds === 0 ? {} : { warmup: `${load.warmupSeconds}s` }),
    tags: { phase: '1' },
  };
  const tags = { run: plan.run, variant: variant.name, round: String(round), server: variant.server.name, protocol: load.protocol };
  // A count of requests may take far longer than assumed; a duration ends by itself.
  const patience = load.durationSeconds === undefined ? 20 : 1;
  return {
    scenario: plan.scenario.name,
    tags,
    maxDurationSeconds: Math.ceil(loadSeconds(load) * patience) + timeoutSeconds + 10,
    phases: [phase],
  };
}
