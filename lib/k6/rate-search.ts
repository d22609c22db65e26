// The search for the highest rate that keeps a limit of latency: up or down until both sides of it are known, then a few steps around
// it, up after each that keeps it and down after each that does not. The script makes it, and the runner once more of what it printed.
import { geometricMean } from '../analysis/statistics.ts';
import { isHopeless, isKept, rateEnd, type RateEnd } from '../analysis/within.ts';
import type { LoadResult } from '../result/result.ts';
import type { Within } from '../scenario/model.ts';
import type { PhaseOutcome, SearchStart } from './load-plan.ts';

/** In requests/s. The engine takes no higher one. */
export const highestRate = 10_000_000;
export const lowestRate = 100;

/** The limit is near where the lowest rate that broke it is at most so many times the highest one that kept it. */
const bracket = 1.25;

/** Steps around the limit, and the change of the rate, in ln: the longest at first, half of it after each turn, the shortest at least. */
const around = { steps: 8, longest: 0.08, shortest: 0.03 };
export const stepsAround = around.steps;

/** So many that end alike have left the bracket by far: one of its ends was a pause's, or luck's, and the way to the limit goes on from there, by this factor. */
const astray = { steps: 5, factor: 1.2 };

/** Wherever the limit is, a search from nothing takes 59 at most, three at each rate until the limit is near; what is beyond is for those that went astray. */
export const mostSteps = 80;

const widestFactor = 2;

/** Factors down from one rate that broke the limit to the next; then the lowest rate at once, since steps take longer the lower it is. */
const strides = [1.2, 1.44];

/** One search, which finds the rate that half of the steps keep: Dixon & Mood's staircase method (J. Am. Stat. Assoc. 43, 1948). */
export class RateSearch {
  /** The rates nearest to the limit on either side of it, until it is near. */
  kept: number | undefined;
  broken: number | undefined;
  readonly #first: number;
  readonly #least: number;
  #factor: number;
  /** Rates that broke the limit one after the other. */
  #falls = 0;
  /** Where the limit is near: the steps around it, and the rate after them; undefined until then. */
  #walk: { rates: number[]; kept: boolean[]; change: number; next: number } | undefined;

  constructor({ rate, factor, least }: SearchStart) {
    this.#least = Math.max(lowestRate, Math.round(least));
    this.#first = this.#possible(rate);
    this.#factor = factor;
  }

  /** The rate to try, the same one until it is told of; in requests/s. Undefined when the search is over: the steps around the limit are made, or there is no rate beyond. */
  next(): number | undefined {
    const { kept, broken } = this;
    if (this.found !== undefined) return undefined;
    if (this.#walk !== undefined) return this.#possible(this.#walk.next);
    if (kept !== undefined)
      return this.#possible(broken === undefined ? kept * this.#factor : Math.sqrt(kept * broken));
    if (broken === undefined) return this.#first;
    return broken === this.#least
      ? undefined
      : this.#possible(broken / (strides[this.#falls - 1] ?? Infinity));
  }

  /** Both sides of the limit are known: each step counts by itself from now on. */
  isNear(): boolean {
    return this.#walk !== undefined;
  }

  /** requests/s; undefined until the search is over, and where the lowest rate broke the limit. */
  get found(): number | undefined {
    if (this.kept === highestRate) return highestRate;
    if (this.#walk === undefined || this.#walk.rates.length < around.steps) return undefined;
    // The first rate says where the search came from, and the one that would be next what came of the last.
    return geometricMean([...this.#walk.rates.slice(1), this.#walk.next]);
  }

  /** What came of the rate that was to be tried. */
  told(rate: number, isKept: boolean): void {
    if (this.#walk === undefined) {
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
    const walk = this.#walk;
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

/** A search whose rates are judged by what the steps at them came to. */
export class LimitSearch {
  readonly rates: RateSearch;
  readonly #within: Within;
  /** At the rate that is being tried. */
  #steps = 0;

  constructor(start: SearchStart, within: Within) {
    this.rates = new RateSearch(start);
    this.#within = within;
  }

  /** What a step at the rate that is being tried came to; returns what that rate has come to with it. */
  told(rate: number, step: LoadResult): RateEnd {
    this.#steps++;
    const end = this.#endOf(rate, step);
    if (end === 'open') return end;
    this.rates.told(rate, end === 'kept');
    this.#steps = 0;
    return end;
  }

  #endOf(rate: number, step: LoadResult): RateEnd {
    if (this.rates.isNear()) return isKept(step, rate, this.#within) ? 'kept' : 'broken';
    const end = rateEnd(step, this.#steps, rate, this.#within);
    // Until something is kept, one hopeless step is enough: there is a long way down, where steps take longest.
    return end === 'open' && this.rates.kept === undefined && isHopeless(step, this.#within)
      ? 'broken'
      : end;
  }
}

/**
 * Searches for all sides at once: each step loads all of them, each at a rate of its own, or at the one that it found.
 * @param from where the sides' searches begin
 * @param load makes a step, counted from 1, at these rates in requests/s
 * @param tell of each step
 */
export function searchSides(
  from: readonly SearchStart[],
  within: Within,
  load: (rates: readonly number[], step: number) => LoadResult[],
  tell: (outcome: PhaseOutcome) => void,
): void {
  const searches = from.map((start) => new LimitSearch(start, within));
  for (let step = 1; step <= mostSteps; step++) {
    const next = searches.map(({ rates }) => rates.next());
    if (next.every((rate) => rate === undefined)) return;
    const rates = searches.map(
      ({ rates: { found, broken } }, side) =>
        next[side] ?? Math.round(found ?? broken ?? lowestRate),
    );
    const results = load(rates, step);
    for (const [side, result] of results.entries()) {
      const rate = next[side];
      if (rate !== undefined) searches[side]?.told(rate, result);
    }
    tell({ results, step: { rates, tried: next.map((rate) => rate !== undefined) } });
  }
}
