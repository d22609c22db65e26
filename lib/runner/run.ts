// The rounds of a run, and its result after each of them.
import { join } from 'node:path';
import { publishedPhases, wholeRounds } from '../analysis/phases.ts';
import { roundRps, summarise, type MeasuredVariant } from '../analysis/summarise.ts';
import { warningText, type Warning } from '../analysis/warnings.ts';
import { UserError } from '../errors.ts';
import { baselineName, loadOf } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import type { ServerSpec, Variant } from '../scenario/model.ts';
import { workersFor } from '../servers/index.ts';
import { roundPoint, runPoint, tablePoints } from '../store/index.ts';
import { estimatedSeconds, secondsPerVariant } from './estimate.ts';
import { Interrupted } from './interrupt.ts';
import { orderOfRound } from './order.ts';
import type { Plan } from './plan.ts';
import type { Environment, Integrity, Phase, Result, Round } from './result.ts';
import { writeWhole } from './results-folder.ts';
import { RoundFailure, runVariantRound, tryServers, type Attempt, type RunContext, type VariantRound } from './round.ts';

/** What a person may want to see while it runs. */
export interface RunEvents {
  /** `rps` of the last second, null before the first; `secondsLeft` of the whole run, estimated. */
  load(what: { round: number; variant: string; rps: number | null; secondsLeft: number }): void;
  /** A variant of a round is over. */
  measured(what: { round: number; variant: string; outcome: VariantRound }): void;
  /** A round is repeated. */
  repeated(what: { round: number; why: string }): void;
}

export interface RunOutcome {
  result: Result;
  /** Why the run ended early; absent when it is complete. Finished rounds are in the result either way. */
  ended?: unknown;
}

interface KeptRound { round: number; outcomes: ReadonlyMap<string, VariantRound> }

/**
 * Runs all rounds. result.json is written after each, marked partial until the last. A round in which something failed is
 * dropped for all variants and repeated once, under a number of its own, so that its samples do not mix with the dropped ones.
 * Never throws: what ended the run early is in the outcome.
 */
export async function runRounds(context: RunContext, environment: Environment, events: RunEvents, startedAt: Date): Promise<RunOutcome> {
  const { plan, interrupt } = context;
  const kept: KeptRound[] = [];
  const notes: Warning[] = [];
  let attempts = 0;
  let lastFailed = false;

  /** Returns whether it is news: a database that stays down says the same after every round. */
  function note(warning: Warning): boolean {
    const known = notes.some((one) => warningText(one) === warningText(warning));
    if (!known) notes.push(warning);
    return !known;
  }

  /** Brings result.json and the database to what is known now: the file first, since the database may hang, and then it in any case. */
  async function save(state: Result['state'], ended: boolean): Promise<Result> {
    const file = join(context.folder, 'result.json');
    const result = buildResult(context, environment, kept, notes, startedAt, state);
    let problem: string | null = null;
    try {
      await writeWhole(file, jsonOf(result));
    } finally {
      problem = await storeResult(context, result, kept.at(-1), ended);
    }
    if (problem === null || !note({ kind: 'not-stored', problem })) return result;
    const noted = { ...result, warnings: [...result.warnings, problem] };
    await writeWhole(file, jsonOf(noted));
    return noted;
  }

  try {
    await save('partial', false);
    await tryServers(context);
    while (kept.length < plan.rounds) {
      const place = kept.length + 1;
      attempts++;
      try {
        const outcomes = await runRound(context, events, place, { round: attempts });
        kept.push({ round: attempts, outcomes });
        lastFailed = false;
        for (const { integrity } of outcomes.values()) {
          for (const problem of integrity?.problems ?? []) note({ kind: 'not-stored', problem });
        }
        if (kept.length < plan.rounds) await save('partial', false);
      } catch (error) {
        if (!(error instanceof RoundFailure)) throw error;
        if (lastFailed) throw new UserError(`round ${place} failed twice: ${error.message}`);
        lastFailed = true;
        note({ kind: 'repeated', round: place, why: error.message });
        events.repeated({ round: place, why: error.message });
      }
    }
    return { result: await save('complete', true) };
  } catch (error) {
    const ended = interrupt.signal.aborted ? new Interrupted() : error;
    // When this fails as well, the result of the last whole round is on the disk and the first error is the one to show.
    const result = await save('partial', true).catch(() => buildResult(context, environment, kept, notes, startedAt, 'partial'));
    return { result, ended };
  }
}

/** One round: every variant once. `place` counts kept rounds and decides the order. */
async function runRound(context: RunContext, events: RunEvents, place: number, attempt: Omit<Attempt, 'onLoad'>): Promise<Map<string, VariantRound>> {
  const { plan } = context;
  const outcomes = new Map<string, VariantRound>();
  const order = orderOfRound(plan.variants, place, plan.run);
  let laterSeconds = estimatedSeconds(plan) * (1 - (place - 1) / plan.rounds);
  for (const planned of order) {
    const { name } = planned.variant;
    const [seconds, startedAtMs] = [secondsPerVariant(plan, planned), performance.now()];
    laterSeconds -= seconds;
    const onLoad = (rps: number | null): void => {
      const secondsLeft = laterSeconds + Math.max(0, seconds - (performance.now() - startedAtMs) / 1000);
      events.load({ round: place, variant: name, rps, secondsLeft });
    };
    onLoad(null);
    const outcome = await runVariantRound(context, planned, { ...attempt, onLoad });
    outcomes.set(name, outcome);
    events.measured({ round: place, variant: name, outcome });
  }
  return outcomes;
}

function jsonOf(result: Result): string {
  return `${JSON.stringify(result, null, 2)}\n`;
}

function buildResult(
  context: RunContext, environment: Environment, kept: readonly KeptRound[], notes: readonly Warning[], startedAt: Date, state: Result['state'],
): Result {
  const { plan, store } = context;
  const { scenario } = plan;
  const measured = plan.shown.map((variant) => tableVariant(plan, variant, kept));
  const facts = {
    serverCores: plan.cores.serverCpus.length,
    generatorCores: plan.cores.generatorCpus.length,
    cores: environment.cores,
    loadAverage: environment.loadAverage[0],
    quick: plan.quick,
    looks: plan.looks,
    sameWithin: plan.sameWithin,
    ceilings: [],
  };
  const { variants, comparisons, shares, noiseFloor, warnings } = summarise(facts, measured, scenario);
  return {
    schema: 1,
    run: plan.run,
    scenario: scenario.name,
    title: scenario.title,
    startedAt: startedAt.toISOString(),
    endedAt: new Date().toISOString(),
    state,
    quick: plan.quick,
    environment,
    variants,
    comparisons,
    shares,
    looks: [...plan.looks],
    sameWithin: plan.sameWithin,
    noiseFloor,
    ceilings: facts.ceilings,
    integrity: store === null ? null : totalIntegrity(kept),
    warnings: [...warnings, ...notes].map(warningText),
    footnotes: [...(scenario.footnotes ?? [])],
  };
}

/** What the table says of a variant, whether or not it is run. */
function tableVariant(plan: Plan, variant: Variant, kept: readonly KeptRound[]): MeasuredVariant {
  const { scenario } = plan;
  const against = baselineName(scenario, variant);
  const about = {
    name: variant.name,
    published: variant.published ?? null,
    ...(variant.note === undefined ? {} : { note: variant.note }),
    ...(against === undefined ? {} : { against }),
  };
  const page = { page: scenario.page.path, bodyBytes: scenario.page.bodyBytes };
  const planned = plan.variants.find((one) => one.variant === variant);
  if (planned === undefined) {
    return { ...about, server: null, publishedOnly: String(variant.server), load: { ...loadOf(scenario, variant), ...page }, rounds: [], setup: '' };
  }
  const { variant: { server: spec }, load } = planned;
  const outcomes = kept.map(({ round, outcomes: byName }) => ({ round, outcome: byName.get(variant.name) as VariantRound }));
  const workers = workersFor(spec, plan.cores.serverCpus.length, plan.exact);
  return {
    ...about,
    server: outcomes.at(-1)?.outcome.server ?? { name: spec.name, version: '', workers, config: spec.config, redirections: [] },
    load: { ...load, ...page },
    rounds: outcomes.map(({ round, outcome }): Round => ({ round, phases: outcome.phases })),
    setup: setupOf(spec, workers, load),
  };
}

/** All that makes a variant what it is here, as text. */
function setupOf({ name, config, fileLimit }: ServerSpec, workers: number, { command, ...load }: Load): string {
  return JSON.stringify({ name, config, fileLimit, workers, load });
}

function totalIntegrity(kept: readonly KeptRound[]): Integrity {
  const total: Integrity = { requests: 0, stored: 0, backfilled: 0, lost: 0 };
  for (const { outcomes } of kept) {
    for (const { integrity } of outcomes.values()) {
      if (integrity === null) continue;
      for (const key of Object.keys(total) as (keyof Integrity)[]) total[key] += integrity[key];
    }
  }
  return total;
}

/**
 * Writes the wide points: those of the newest round, the table's rows and the run's state. Written again they replace
 * the ones before. Returns what the database would not take, in one line; the run goes on without it.
 */
async function storeResult(context: RunContext, result: Result, newest: KeptRound | undefined, ended: boolean): Promise<string | null> {
  const { plan, store } = context;
  if (store === null) return null;
  const { run, scenario, title, startedAt, endedAt, integrity } = result;
  const state = runPoint({
    run, scenario, title, startedAt, integrity, rounds: wholeRounds(result.variants),
    ...(ended ? { state: result.state, endedAt } : { state: 'running' }),
  });
  try {
    await store.write([...(newest === undefined ? [] : [...roundPoints(plan, newest, result.comparisons), ...tablePoints(result)]), state]);
    return null;
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}

function roundPoints(plan: Plan, { round, outcomes }: KeptRound, comparisons: Result['comparisons']): string[] {
  return plan.variants.flatMap(({ variant, load }) => {
    const phases = phasesOf(variant.name);
    const baseline = comparisons.find((comparison) => comparison.variant === variant.name)?.baseline;
    return phases.map((phase, index) => {
      const tags = {
        run: plan.run, scenario: plan.scenario.name, variant: variant.name, round: String(round), phase: String(index + 1),
        server: variant.server.name, protocol: load.protocol,
      };
      // Where the load sets requests/s, their ratio says nothing.
      const baselinePhase = baseline === undefined || load.rate !== undefined ? undefined : phasesOf(baseline)[index];
      const published = publishedPhases(variant.published ?? null)[index];
      const context = { tags, position: plan.shown.indexOf(variant), publishedRps: published?.rps, ratio: baselinePhase && roundRps([phase]) / roundRps([baselinePhase]) };
      return roundPoint(context, phase);
    });
  });

  function phasesOf(name: string): readonly Phase[] {
    return outcomes.get(name)?.phases ?? [];
  }
}
