// What a search for the highest rate within a limit came to in one round.
import { generatorShareOf, limitOf, serverShareOf, usableCores, type Shares } from '../analysis/limit.ts';
import { roundRps } from '../analysis/phases.ts';
import { mean } from '../analysis/statistics.ts';
import { limitText, whyNotKept } from '../analysis/within.ts';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import type { PhaseOutcome } from '../k6/load-plan.ts';
import { LimitSearch } from '../k6/limit-search.ts';
import { lowestRate, nearFactor, type SearchStart } from '../k6/rate-search.ts';
import type { Within } from '../scenario/model.ts';
import type { Cores } from './cores.ts';
import { Disturbance } from './disturbance.ts';
import { randomNumbers } from './order.ts';
import type { PlannedVariant } from './plan.ts';
import type { Phase, SearchStep, VariantResult } from './result.ts';

/** A side's answer. `step`: the index of the phase at the highest rate that kept the limit; `rate`, `atLeast` as in FoundRate, of this round. */
export interface FoundInRound { step: number; rate: number; atLeast: boolean }

/** The steps that a phase was, of those sides that were not done yet. @param names of the sides */
export function stepsIn({ results, step }: PhaseOutcome, names: readonly string[], within: Within, round: number): SearchStep[] {
  return results.flatMap((result, side) => {
    const rate = step?.rates[side];
    if (rate === undefined || step?.tried[side] !== true) return [];
    const why = whyNotKept(result, rate, within);
    const { p50, p90, p99 } = result.latencyMs;
    return [{ round, variant: names[side] as string, rate, made: roundRps([result]), latencyMs: { p50, p90, p99 }, kept: why === '', why }];
  });
}

/**
 * What was found for one side.
 * @param phases of the side, one for each of the outcomes
 * @param known what earlier rounds found, in requests/s
 * @throws UserError where no rate kept the limit; a Disturbance where some did in earlier rounds
 */
export function foundIn(
  { variant: { name }, load }: Pick<PlannedVariant, 'variant' | 'load'>, server: VariantResult['server'], phases: readonly Phase[], outcomes: readonly PhaseOutcome[], side: number, within: Within, cores: Cores,
  known: readonly number[],
): FoundInRound {
  const search = new LimitSearch({ rate: lowestRate, factor: 1, least: lowestRate }, within);
  const tried = outcomes.flatMap(({ step }, index) => {
    const rate = step?.rates[side];
    const phase = phases[index];
    if (rate === undefined || phase === undefined || step?.tried[side] !== true) return [];
    return [{ index, rate, phase, end: search.told(rate, phase) }];
  });
  const kept = tried.findLast(({ rate, end }) => rate === search.rates.kept && end === 'kept');
  const broken = tried.findLast(({ rate, end }) => rate === search.rates.broken && end === 'broken');
  if (kept === undefined) {
    const why = broken === undefined ? 'none was tried' : whyNotKept(broken.phase, broken.rate, within);
    const text = `${name}: ${limitText(within)} is not kept at ${whole(broken?.rate ?? lowestRate)} requests/s`;
    if (known.length > 0) throw new Disturbance(`${text} (${why}), and was up to ${whole(known.at(-1) as number)} in the round before: something else used the machine`);
    throw new UserError(`${text}, the lowest rate (${why}): give a wider limit`);
  }
  if (broken === undefined) return { step: kept.index, rate: kept.rate, atLeast: true };
  return { step: kept.index, rate: Math.sqrt(kept.rate * broken.rate), atLeast: limitOf(sharesOf(broken.phase)) === 'generator' };

  function sharesOf(phase: Phase): Shares {
    const all = { server: cores.serverCpus.length, generator: cores.generatorCpus.length };
    const usable = usableCores({ server, load }, all);
    const alone = { round: 1, phases: [phase] };
    return { serverShare: serverShareOf(alone, { usable: usable.server, all: all.server }), generatorShare: generatorShareOf(alone, { usable: usable.generator, all: all.generator }) };
  }
}

/** Near what the rounds before found: a little below it, and each time elsewhere, so that the rates that are tried are not the same ones again; far below it something else is the matter. */
const nearby = { from: 0.9, to: 0.98, least: 0.25 };
/** Where nothing is known, and how far apart in ln searches begin there. */
const unknown = { rate: 1000, spread: Math.LN2, factor: 2 };

/** Of a round: what the rounds before found, by variant, in requests/s, and the seed of what is drawn. */
export interface SearchRound { known: ReadonlyMap<string, readonly number[]>; seed: string }

/**
 * Where each variant's search begins: of all of them at the same place beside what is known, so that they try about the same next to
 * each other, and a pause of the machine meets all alike.
 */
export function searchStarts(variants: readonly string[], { known, seed }: SearchRound): SearchStart[] {
  const drawn = randomNumbers(seed)();
  return variants.map((variant) => {
    const found = known.get(variant) ?? [];
    if (found.length === 0) return { rate: unknown.rate * Math.exp(unknown.spread * (drawn - 0.5)), factor: unknown.factor, least: lowestRate };
    const middle = Math.exp(mean(found.map(Math.log)));
    return { rate: middle * (nearby.from + drawn * (nearby.to - nearby.from)), factor: nearFactor, least: middle * nearby.least };
  });
}
