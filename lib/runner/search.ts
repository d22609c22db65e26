// A search for the highest rate within a limit: its begin, and the result of a round.
import {
  Disturbance,
  randomNumbers,
  type FoundInRound,
  type SearchRound,
  type PlannedVariant,
} from './plan.ts';
import { generatorShareOf, limitOf, serverShareOf } from '../analysis/limit.ts';
import { roundRps } from '../analysis/phases.ts';
import { extent, geometricMean } from '../analysis/statistics.ts';
import { isKept, limitText, whyNotKept } from '../analysis/within.ts';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import type { PhaseOutcome, SearchStart } from '../k6/load-plan.ts';
import { highestRate, LimitSearch, lowestRate, stepsAround } from '../k6/rate-search.ts';
import type { Within } from '../scenario/model.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import type { Phase, SearchStep, VariantResult } from '../result/result.ts';

/** Returns the search's steps in a phase: of each side that was not done yet. @param names of the sides */
export function stepsIn(
  { results, step }: PhaseOutcome,
  names: readonly string[],
  within: Within,
  round: number,
): SearchStep[] {
  return results.flatMap((result, side) => {
    const rate = step?.rates[side];
    if (rate === undefined || step?.tried[side] !== true) return [];
    const why = whyNotKept(result, rate, within);
    const { p50, p90, p99 } = result.latencyMs;
    const latencyMs = { p50, p90, p99 };
    const made = roundRps([result]);
    return [
      { round, variant: names[side] as string, rate, made, latencyMs, kept: why === '', why },
    ];
  });
}

/**
 * Returns the rate that a round found for a side.
 * @param phases of the side, as many as outcomes
 * @param known rates found in earlier rounds, in requests/s
 * @throws UserError if no rate keeps the limit, Disturbance if earlier rounds found a rate, or the steps were too few
 */
export function foundIn(
  { variant: { name }, load }: Pick<PlannedVariant, 'variant' | 'load'>,
  server: VariantResult['server'],
  phases: readonly Phase[],
  outcomes: readonly PhaseOutcome[],
  side: number,
  within: Within,
  cores: Cores,
  known: readonly number[],
): FoundInRound {
  const search = new LimitSearch({ rate: lowestRate, factor: 1, least: lowestRate }, within);
  const tried = outcomes.flatMap(({ step }, index) => {
    const rate = step?.rates[side];
    const phase = phases[index];
    if (rate === undefined || phase === undefined || step?.tried[side] !== true) return [];
    search.told(rate, phase);
    return [{ index, rate, phase, kept: isKept(phase, rate, within) }];
  });
  const kept = tried.filter((one) => one.kept);
  const last = tried.findLast((one) => !one.kept);
  if (kept.length === 0) {
    const why = last === undefined ? 'none was tried' : whyNotKept(last.phase, last.rate, within);
    const text = `${name}: ${limitText(within)} is not kept at ${whole(last?.rate ?? lowestRate)} requests/s`;
    if (known.length > 0)
      throw new Disturbance(
        `${text} (${why}), and was up to ${whole(known.at(-1) as number)} in the round before: something else used the machine`,
      );
    throw new UserError(`${text}, the lowest rate (${why}): give a wider limit`);
  }
  const { found } = search.rates;
  if (found === undefined) {
    const [from, to] = extent(kept.map(({ rate }) => rate)).map(whole);
    throw new Disturbance(
      `${name}: the search did not come to an end in ${whole(outcomes.length)} steps: ${limitText(within)} was kept at ${from === to ? '' : `${from} to `}${to} requests/s, and ${last === undefined ? 'nothing broke it' : `last broken at ${whole(last.rate)}`}`,
    );
  }
  const distance = ({ rate }: { rate: number }) => Math.abs(Math.log(rate / found));
  const [nearest] = kept.toSorted((a, b) => distance(a) - distance(b)) as [(typeof kept)[number]];
  const around = tried.slice(-stepsAround).filter((one) => !one.kept);
  const beyond = around.filter(({ rate }) => rate >= found);
  const brokenBy = (beyond.length > 0 ? beyond : around).map(({ phase }) => phase);
  const alone = { round: 1, phases: brokenBy };
  const all = { server: cores.serverCpus.length, generator: generatorCores(cores) };
  const wasGenerators =
    brokenBy.length === 0 ||
    limitOf({
      serverShare: serverShareOf(alone, { server, load }, all),
      generatorShare: generatorShareOf(alone, { server, load }, all),
    }) === 'generator';
  return { step: nearest.index, rate: found, atLeast: found === highestRate || wasGenerators };
}

/** With known rates: below the lowest of them, by another factor in each round; `least` is the part of its own rate that is tried. */
const beneath = { from: 0.6, to: 0.85, factor: 1.2, least: 0.25 };
/** Without: `spread` is the range of begins in ln. */
const unknown = { rate: 1000, spread: Math.LN2, factor: 2 };

/**
 * Returns where each variant's search begins: all at the same rate, below all limits. A search whose limit is blurred by pauses ends near
 * its begin. If it began at its own earlier rate, a bad round would affect later rounds.
 */
export function searchStarts(
  variants: readonly string[],
  { known, seed }: SearchRound,
): SearchStart[] {
  const drawn = randomNumbers(seed)();
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
