// Searches for the highest rate within a latency limit (docs/verdicts.md, Searches), as the script runs it.
import { geometricMean } from '../../analysis/statistics.ts';
import type { PhaseOutcome } from '../../k6/load-plan.ts';
import type { LoadResult } from '../../result/load-result.ts';
import type { Phase } from '../../result/result.ts';
import type { Within } from '../../scenario/model.ts';
import { isHopeless, isKept, rateEnd, type RateEnd } from './kept.ts';

/** A search for each side. */
export interface SearchPlan {
  within: Within;
  /** Rates of earlier rounds, null if none; and the lowest of all sides. */
  known: readonly (number | null)[];
  lowest: number | null;
  /** From 0 to 1: how far beneath, so that rounds begin at other rates. */
  drawn: number;
  /** The expected class of answers of each side. */
  expected: readonly Pick<Phase, 'expected'>[];
  /** The shortest step. At a low rate it lasts as long as its percentile needs. */
  stepSeconds: number;
}

/** The first rate in requests/s, the factor to the next, which grows until the limit lies between two rates, and the lowest rate. */
export interface SearchStart {
  rate: number;
  factor: number;
  least: number;
}

/** The engine's highest rate, in requests/s. */
export const highestRate = 10_000_000;
export const lowestRate = 100;

/** The limit is near with the lowest broken rate at most so many times the highest kept one. */
const bracket = 1.25;

/** Steps around the limit change ln of the rate by the longest, halved at each reversal, to the shortest. */
const around = { steps: 8, longest: 0.08, shortest: 0.03 };
export const stepsAround = around.steps;

/** So many equal outcomes show a wrong end of the bracket: the way goes on from there, by this factor. */
const astray = { steps: 5, factor: 1.2 };

/** At most 38, three at each rate until the limit is near; the rest is for searches that went astray. */
export const mostSteps = 80;

const widestFactor = 2;

/** Factors down from a broken rate; then the lowest at once, as steps take longer at low rates. */
const strides = [1.2, 1.44];

/** A search begins below the lowest known rate, by a factor that varies by round. `least`: the lowest rate per the side's own. */
const beneath = { from: 0.6, to: 0.85, factor: 1.2, least: 0.25 };

/**
 * All sides start at one rate, below all limits: if pauses blur a limit, a search ends near its start, and with a side's own rate a bad
 * round would affect later ones. @param measure responses per second of each side without a rate, before anything is known
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

/** Half of the steps keep the rate: Dixon & Mood's staircase method (J. Am. Stat. Assoc. 43, 1948). */
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
    // The first rate depends on the bracket, each next one on the last outcome.
    return geometricMean([...this.#walk.rates.slice(1), this.#walk.next]);
  }

  /** Takes a step at the rate of next(). 'open' asks for another one. */
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
    // Until a rate is kept, one hopeless step is enough: the way down may be long.
    if (end === 'open' && this.kept === undefined && isHopeless(step, this.#within))
      return 'broken';
    return end;
  }

  /** Takes the outcome of the rate from next(). */
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
 * Each step loads all sides, at a rate each, or at the one found. @param load makes a step (from 1) at these rates in requests/s @param
 * tell takes the outcomes
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
      const rate = next[side];
      if (rate != null) search.judge(rate, results[side] as LoadResult);
    }
    tell({ results, step: { rates: next, found: searches.map(({ found }) => found ?? null) } });
  }
}
