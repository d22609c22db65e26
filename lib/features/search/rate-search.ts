// The search for the highest rate that keeps a latency limit (docs/verdicts.md, Searches), as the k6 script runs it.
import { geometricMean } from '../../analysis/statistics.ts';
import type { PhaseOutcome } from '../../k6/load-plan.ts';
import type { LoadResult } from '../../result/load-result.ts';
import type { Phase } from '../../result/result.ts';
import type { Within } from '../../scenario/model.ts';
import { isHopeless, isKept, rateEnd, type RateEnd } from './kept.ts';

/** What the script gets: a search for the highest rate at which each side keeps a limit. */
export interface SearchPlan {
  within: Within;
  /** The rate that each side found in earlier rounds, null if none; and the lowest of all sides of the run. */
  known: readonly (number | null)[];
  lowest: number | null;
  /** How far below the known rates the search begins, from 0 to 1. It differs by round. */
  drawn: number;
  /** The expected class of answers of each side. */
  expected: readonly Pick<Phase, 'expected'>[];
  /** The shortest step. At a low rate it lasts as long as its percentile needs. */
  stepSeconds: number;
}

/**
 * The first rate to try in requests/s, the factor to the next rate, which grows until a kept and a broken rate are known, and the lowest
 * rate to try.
 */
export interface SearchStart {
  rate: number;
  factor: number;
  least: number;
}

/** The engine's highest rate, in requests/s. */
export const highestRate = 10_000_000;
export const lowestRate = 100;

/** The limit is near once the lowest broken rate is at most this many times the highest kept one. */
const bracket = 1.25;

/**
 * The number of steps around the limit, and by how much ln(rate) changes from step to step: by `longest` at first, half as much after
 * each reversal, and at least by `shortest`.
 */
const around = { steps: 8, longest: 0.08, shortest: 0.03 };
export const stepsAround = around.steps;

/**
 * If the first `steps` around the limit all have the same outcome, an end of the bracket was wrong. The search goes on from there, by
 * this factor.
 */
const astray = { steps: 5, factor: 1.2 };

/**
 * Limit of a search's steps. A search takes at most 38 (three at each rate until the limit is near); the rest is for searches whose
 * bracket was wrong.
 */
export const mostSteps = 80;

const widestFactor = 2;

/**
 * Factors from a broken rate down to the next one. After these the lowest rate is tried at once, because steps take longer at lower
 * rates.
 */
const strides = [1.2, 1.44];

/**
 * A search begins at a share `from`…`to` of the lowest known rate, which varies by round. `factor` leads to the next rate. `least` is
 * the lowest rate to try, as a share of the side's own rate.
 */
const beneath = { from: 0.6, to: 0.85, factor: 1.2, least: 0.25 };

/**
 * Returns the start of each side's search: the same rate for all, below all limits. If pauses blur the limit, a search ends near its
 * start; and if a side started at its own earlier rate, a bad round would affect later rounds.
 * @param measure gives the responses per second of each side under a load without a rate; called if no rate is known yet
 */
export function searchStarts(
  { known, lowest, drawn }: Pick<SearchPlan, 'known' | 'lowest' | 'drawn'>,
  measure: () => readonly number[],
): SearchStart[] {
  const below = beneath.from + drawn * (beneath.to - beneath.from);
  const { factor } = beneath;
  const rate = below * (lowest ?? Math.min(...measure()));
  // A limit may be far below what a side can do.
  return known.map((own) => ({ rate, factor, least: beneath.least * (own ?? 0) }));
}

/** A side's search for the rate that half of the steps keep, by Dixon & Mood's staircase method (J. Am. Stat. Assoc. 43, 1948). */
export class RateSearch {
  /** The rates nearest to the limit on both sides, until it is near. */
  kept: number | undefined;
  broken: number | undefined;
  readonly #within: Within;
  readonly #first: number;
  readonly #least: number;
  #factor: number;
  /** Steps at the current rate. */
  #steps = 0;
  /** Consecutive broken rates. */
  #falls = 0;
  /** The steps around the limit once it is near, and the next rate. */
  #walk: { rates: number[]; kept: boolean[]; change: number; next: number } | undefined;

  constructor({ rate, factor, least }: SearchStart, within: Within) {
    this.#within = within;
    this.#least = Math.max(lowestRate, Math.round(least));
    this.#first = this.#possible(rate);
    this.#factor = factor;
  }

  /** The rate to try, in requests/s; undefined when the search is over. */
  next(): number | undefined {
    const { kept, broken } = this;
    if (this.found !== undefined) return undefined;
    if (this.#walk !== undefined) return this.#possible(this.#walk.next);
    if (kept !== undefined)
      return this.#possible(broken === undefined ? kept * this.#factor : Math.sqrt(kept * broken));
    if (broken === undefined) return this.#first;
    if (broken === this.#least) return undefined;
    return this.#possible(broken / (strides[this.#falls - 1] ?? Infinity));
  }

  /** In requests/s; undefined until the search is over, and if the lowest rate broke the limit. */
  get found(): number | undefined {
    if (this.kept === highestRate) return highestRate;
    if (this.#walk === undefined || this.#walk.rates.length < around.steps) return undefined;
    // The first rate depends only on the bracket; each further rate on the outcome of the step before.
    return geometricMean([...this.#walk.rates.slice(1), this.#walk.next]);
  }

  /** Notes the result of a step at the rate from next(). Returns whether the rate is kept; 'open' asks for another step at it. */
  judge(rate: number, step: LoadResult): RateEnd {
    this.#steps++;
    const end = this.#endOf(rate, step);
    if (end !== 'open') this.told(rate, end === 'kept');
    return end;
  }

  #endOf(rate: number, step: LoadResult): RateEnd {
    // Near the limit each step counts.
    if (this.#walk !== undefined) return isKept(step, rate, this.#within) ? 'kept' : 'broken';
    const end = rateEnd(step, this.#steps, rate, this.#within);
    // Until a rate is kept, a single hopeless step is enough: the way down may be long, and its steps take long.
    if (end === 'open' && this.kept === undefined && isHopeless(step, this.#within))
      return 'broken';
    return end;
  }

  /** Notes the outcome of the rate from next(). */
  told(rate: number, isKept: boolean): void {
    this.#steps = 0;
    const walk = this.#walk;
    if (walk === undefined) {
      if (isKept && this.kept !== undefined && this.broken === undefined)
        this.#factor = Math.min(widestFactor, this.#factor ** 2);
      if (isKept) this.kept = rate;
      else [this.broken, this.#falls] = [rate, this.#falls + 1];
      const { kept, broken } = this;
      if (kept !== undefined && broken !== undefined && broken <= kept * bracket)
        this.#walk = {
          rates: [],
          kept: [],
          change: around.longest,
          next: Math.sqrt(kept * broken),
        };
      return;
    }
    if (walk.kept.length > 0 && walk.kept.at(-1) !== isKept)
      walk.change = Math.max(around.shortest, walk.change / 2);
    walk.rates.push(rate);
    walk.kept.push(isKept);
    walk.next = rate * Math.exp(isKept ? walk.change : -walk.change);
    if (walk.kept.length !== astray.steps || new Set(walk.kept).size > 1) return;
    this.#walk = undefined;
    [this.kept, this.broken] = isKept ? [rate, undefined] : [undefined, rate];
    [this.#factor, this.#falls] = [astray.factor, isKept ? 0 : 1];
  }

  #possible(rate: number): number {
    return Math.round(Math.min(highestRate, Math.max(this.#least, rate)));
  }
}

/**
 * Searches for all sides at once: each step loads all sides, each at its own rate, or at the rate that it found.
 * @param load makes a step (from 1) at these rates in requests/s
 * @param tell takes the outcome of each step
 */
export function searchSides(
  from: readonly SearchStart[],
  within: Within,
  load: (rates: readonly number[], step: number) => LoadResult[],
  tell: (outcome: PhaseOutcome) => void,
): void {
  const searches = from.map((start) => new RateSearch(start, within));
  for (let step = 1; step <= mostSteps; step++) {
    const next = searches.map((search) => search.next() ?? null);
    if (next.every((rate) => rate === null)) return;
    const rates = searches.map(
      ({ found, broken }, side) => next[side] ?? Math.round(found ?? broken ?? lowestRate),
    );
    const results = load(rates, step);
    for (const [side, search] of searches.entries()) {
      const [rate, result] = [next[side], results[side]];
      if (rate != null && result !== undefined) search.judge(rate, result);
    }
    tell({ results, step: { rates: next, found: searches.map(({ found }) => found ?? null) } });
  }
}
