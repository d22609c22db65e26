// A search for the highest rate within a limit: its begin, and the result of a round.
import { Disturbance, drawnBy, type PlannedVariant, type VariantRound } from './plan.ts';
import { limitOf, limitText, sharesOf, whyNotKept } from '../analysis/limit.ts';
import { roundRps } from '../analysis/phases.ts';
import { extent, geometricMean } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import type { PhaseOutcome, SearchStart } from '../k6/load-plan.ts';
import { highestRate, lowestRate, stepsAround } from '../k6/rate-search.ts';
import type { Within } from '../scenario/model.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import type { Phase, SearchStep, VariantResult } from '../result/result.ts';

/** A side's step in a phase; none once its search was over. */
export function stepIn(
  { results, step }: PhaseOutcome,
  side: number,
  variant: string,
  within: Within,
  round: number,
): SearchStep[] {
  const [rate, result] = [step?.rates[side] ?? null, results[side]];
  if (rate === null || result === undefined) return [];
  const why = whyNotKept(result, rate, within);
  const { p50, p90, p99 } = result.latencyMs;
  const latencyMs = { p50, p90, p99 };
  return [{ round, variant, rate, made: roundRps([result]), latencyMs, kept: why === '', why }];
}

/**
 * Returns a side's search in a round: the rate found, and its steps.
 * @param phases of the side, as many as outcomes
 * @param known rates found in earlier rounds, in requests/s
 * @throws UserError if no rate keeps the limit, Disturbance if earlier rounds found a rate, or the steps were too few
 */
export function searchIn(
  { variant: { name }, load }: PlannedVariant,
  server: VariantResult['server'],
  phases: readonly Phase[],
  outcomes: readonly PhaseOutcome[],
  side: number,
  within: Within,
  cores: Cores,
  known: readonly number[],
  round: number,
): NonNullable<VariantRound['search']> {
  const tried = outcomes.flatMap((outcome, index) =>
    stepIn(outcome, side, name, within, round).map((step) => ({ index, step })),
  );
  const kept = tried.filter(({ step }) => step.kept);
  const last = tried.findLast(({ step }) => !step.kept)?.step;
  if (kept.length === 0) {
    const text = `${name}: ${limitText(within)} is not kept at ${whole(last?.rate ?? lowestRate)} requests/s`;
    const why = last?.why ?? 'none was tried';
    if (known.length > 0)
      throw new Disturbance(
        `${text} (${why}), and was up to ${whole(known.at(-1) as number)} in the round before: something else used the machine`,
      );
    throw new UserError(`${text}, the lowest rate (${why}): give a wider limit`);
  }
  const found = outcomes.at(-1)?.step?.found[side] ?? null;
  if (found === null)
    throw new Disturbance(
      `${name}: the search did not come to an end in ${whole(outcomes.length)} steps, the last at ${whole(tried.at(-1)?.step.rate ?? 0)} requests/s`,
    );
  const distance = (one: (typeof kept)[number]) => Math.abs(Math.log(one.step.rate / found));
  const [nearest] = kept.toSorted((a, b) => distance(a) - distance(b)) as [(typeof kept)[number]];
  const around = tried.slice(-stepsAround).filter(({ step }) => !step.kept);
  const beyond = around.filter(({ step }) => step.rate >= found);
  const brokenBy = (beyond.length > 0 ? beyond : around).map(({ index }) => phases[index] as Phase);
  const alone = { round, phases: brokenBy };
  const all = { server: cores.serverCpus.length, generator: generatorCores(cores) };
  const wasGenerators =
    brokenBy.length === 0 || limitOf(sharesOf(alone, { server, load }, all)) === 'generator';
  const atLeast = found === highestRate || wasGenerators;
  return {
    found: { step: nearest.index, rate: found, atLeast },
    steps: tried.map(({ step }) => step),
  };
}

/**
 * With known rates, the start is below the lowest of them, by a factor that varies by round; `least` is the lowest rate to try,
 * as a share of the side's own rate.
 */
const beneath = { from: 0.6, to: 0.85, factor: 1.2, least: 0.25 };
/** Without: `spread` is the range of begins in ln. */
const unknown = { rate: 1000, spread: Math.LN2, factor: 2 };

/**
 * Returns the start of each variant's search: the same rate for all, below all limits. If pauses blur the limit, a search ends
 * near its start. With a start at the variant's earlier rate, a bad round would affect later rounds.
 */
export function searchStarts(
  variants: readonly string[],
  known: ReadonlyMap<string, readonly number[]>,
  seed: string,
): SearchStart[] {
  const drawn = drawnBy(seed);
  const middles = new Map(
    [...known].flatMap(([variant, found]) =>
      found.length === 0 ? [] : [[variant, geometricMean(found)]],
    ),
  );
  if (middles.size === 0) {
    const rate = unknown.rate * Math.exp(unknown.spread * (drawn - 0.5));
    return variants.map(() => ({ rate, factor: unknown.factor, least: lowestRate }));
  }
  const rate = extent(middles.values())[0] * (beneath.from + drawn * (beneath.to - beneath.from));
  return variants.map((variant) => ({
    rate,
    factor: beneath.factor,
    least: beneath.least * (middles.get(variant) ?? 0),
  }));
}
