// A search for the highest rate within a limit, as a load in steps: its beginning, and the result of a round.
import { fileURLToPath } from 'node:url';
import { searchLooks } from '../../analysis/looks.ts';
import { limitOf, sharesOf } from '../../analysis/limit.ts';
import { roundRps } from '../../analysis/phases.ts';
import { geometricMean, total } from '../../analysis/statistics.ts';
import { usageError, UserError } from '../../errors.ts';
import { scaledTime, whole } from '../../format.ts';
import type { PhaseOutcome } from '../../k6/load-plan.ts';
import { byName } from '../../present.ts';
import { limitText } from '../../report/found.ts';
import { generatorCores } from '../../machine/cores.ts';
import type { RateStep } from '../../result/result.ts';
import { expectedOf } from '../../runner/k6-plan.ts';
import { Disturbance } from '../../runner/failures.ts';
import {
  drawnBy,
  type PlanDraft,
  type PlannedVariant,
  type SteppedLoad,
  type SteppedRound,
  type SteppedSide,
} from '../../runner/plan.ts';
import { latencyMetrics } from '../../scenario/latency-metrics.ts';
import type { Within } from '../../scenario/model.ts';
import { foundRates } from './found.ts';
import { whyNotKept } from './kept.ts';
import { highestRate, lowestRate, mostSteps, stepsAround, type SearchPlan } from './rate-search.ts';

const script = fileURLToPath(new URL('script.ts', import.meta.url));

/** The search for the highest rate at which each variant keeps the limit. */
export function searchWithin(within: Within): SteppedLoad {
  return {
    does: 'searches for a rate',
    looks: searchLooks,
    // A step lasts longer if its percentile needs more answers. Its warm-up is short: earlier steps have warmed the server up, and the
    // engine opens connections before the step.
    step: { durationSeconds: 0.5, warmupSeconds: 0.1 },
    // Seen: 12 to 21.
    expectedSteps: 15,
    script,
    requirePossible: requireSearchable,
    longestSeconds: (sides) => mostSteps * total(sides, longestStepSeconds),
    planFor: (sides, known, seed): SearchPlan => ({
      within,
      known: sides.map(({ variant }) => middleOf(known.get(variant.name))),
      lowest: lowestOf([...known.values()].flatMap((rates) => middleOf(rates) ?? [])),
      drawn: drawnBy(seed),
      expected: sides.map(expectedOf),
      stepSeconds: Math.max(...sides.map(({ load }) => load.durationSeconds ?? 0)),
    }),
    stepsIn: (outcome, side, variant, round) => stepIn(outcome, side, variant, within, round),
    textOf: ({ kept, why, latencyMs }) =>
      kept ? `${within.metric} ${scaledTime(latencyMs[within.metric])}` : `no, ${why}`,
    foundBy: (side) => searchIn(side, within),
    resultOf: (measured, steps) => ({
      search: { within, found: foundRates(measured), steps: [...steps] },
    }),
  };
}

/** null without any. */
const lowestOf = (rates: readonly number[]): number | null =>
  rates.length === 0 ? null : Math.min(...rates);

/** null without any. */
function middleOf(rates: readonly number[] = []): number | null {
  return rates.length === 0 ? null : geometricMean(rates);
}

function requireSearchable({ scenario, variants, metric }: PlanDraft): void {
  if (scenario.phases !== undefined)
    throw usageError(
      `--within: ${scenario.name} has ${scenario.phases.count} load phases on one server, and a search has steps of its own: take another scenario`,
    );
  const other = variants.find(({ page: { status = 200 } }) => status >= 300);
  if (other !== undefined)
    throw usageError(
      `--within: ${other.variant.name} must answer with ${other.page.status}, and a search counts only 2xx answers`,
    );
  if (metric !== undefined)
    throw usageError(
      `--metric ${metric} and --within: a search compares the rates that it finds: leave --metric out`,
    );
}

/** At the lowest rate, a p99 takes 15 s. */
function longestStepSeconds({ load }: PlannedVariant): number {
  const { durationSeconds = 0, warmupSeconds, timeoutSeconds } = load;
  return Math.max(15, durationSeconds) + warmupSeconds + timeoutSeconds;
}

/** A side's step in a phase; none once its search was over. */
export function stepIn(
  { results, step }: PhaseOutcome,
  side: number,
  variant: string,
  within: Within,
  round: number,
): RateStep[] {
  const [rate, result] = [step?.rates[side] ?? null, results[side]];
  if (rate === null || result === undefined) return [];
  const why = whyNotKept(result, rate, within);
  const latencyMs = byName(latencyMetrics, (metric) => result.latencyMs[metric]);
  return [{ round, variant, rate, made: roundRps([result]), latencyMs, kept: why === '', why }];
}

/**
 * Returns a side's search in a round: the rate found, and its steps.
 * @throws UserError if no rate keeps the limit; Disturbance if none did although earlier rounds found a rate, or if the steps were too
 * few
 */
export function searchIn(
  { planned, server, phases, outcomes, side, cores, known, round }: SteppedSide,
  within: Within,
): SteppedRound {
  const { load } = planned;
  const { name } = planned.variant;
  const tried = outcomes.flatMap((outcome, index) =>
    stepIn(outcome, side, name, within, round).map((step) => ({ index, step })),
  );
  const kept = tried.filter(({ step }) => step.kept);
  const last = tried.findLast(({ step }) => !step.kept)?.step;
  const [firstKept] = kept;
  if (firstKept === undefined) {
    const text = `${name}: ${limitText(within)} is not kept at ${whole(last?.rate ?? lowestRate)} requests/s`;
    const why = last?.why ?? 'none was tried';
    const rateBefore = known.at(-1);
    if (rateBefore !== undefined)
      throw new Disturbance(
        `${text} (${why}), and was up to ${whole(rateBefore)} in the round before: something else used the machine`,
      );
    throw new UserError(`${text}, the lowest rate (${why}): give a wider limit`);
  }
  const foundRate = outcomes.at(-1)?.step?.found[side] ?? null;
  if (foundRate === null)
    throw new Disturbance(
      `${name}: the search did not come to an end in ${whole(outcomes.length)} steps, the last at ${whole(tried.at(-1)?.step.rate ?? 0)} requests/s`,
    );
  const distance = ({ step }: (typeof kept)[number]) => Math.abs(Math.log(step.rate / foundRate));
  const [nearest = firstKept] = kept.toSorted((a, b) => distance(a) - distance(b));
  const around = tried.slice(-stepsAround).filter(({ step }) => !step.kept);
  const beyond = around.filter(({ step }) => step.rate >= foundRate);
  const brokenBy = (beyond.length > 0 ? beyond : around).flatMap(
    ({ index }) => phases[index] ?? [],
  );
  const alone = { round, phases: brokenBy };
  const all = { server: cores.serverCpus.length, generator: generatorCores(cores) };
  const wasGenerators =
    brokenBy.length === 0 || limitOf(sharesOf(alone, { server, load }, all)) === 'generator';
  const atLeast = foundRate === highestRate || wasGenerators;
  return {
    found: { step: nearest.index, rate: foundRate, atLeast },
    steps: tried.map(({ step }) => step),
  };
}
