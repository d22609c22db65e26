// The search for the highest rate within a limit of latency. The script makes it, and the runner once more of what it printed.
import { isHopeless, isKept, rateEnd, type RateEnd } from '../analysis/within.ts';
import type { LoadResult } from '../result/result.ts';
import type { Within } from '../scenario/model.ts';
import type { PhaseOutcome } from './load-plan.ts';
import { lowestRate, mostSteps, RateSearch, type SearchStart } from './rate-search.ts';

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
    return end === 'open' && this.rates.kept === undefined && isHopeless(step, this.#within) ? 'broken' : end;
  }
}

/**
 * Searches for all sides at once: each step loads all of them, each at a rate of its own. Who is done goes on at the rate that it
 * found, so that the others have the same beside them as before.
 * @param from where the sides' searches begin
 * @param load makes a step, counted from 1, at these rates in requests/s
 * @param tell of each step
 */
export function searchSides(from: readonly SearchStart[], within: Within, load: (rates: readonly number[], step: number) => LoadResult[], tell: (outcome: PhaseOutcome) => void): void {
  const searches = from.map((start) => new LimitSearch(start, within));
  for (let step = 1; step <= mostSteps; step++) {
    const next = searches.map(({ rates }) => rates.next());
    if (next.every((rate) => rate === undefined)) return;
    const rates = searches.map(({ rates: { found, broken } }, side) => next[side] ?? Math.round(found ?? broken ?? lowestRate));
    const results = load(rates, step);
    for (const [side, result] of results.entries()) {
      const rate = next[side];
      if (rate !== undefined) searches[side]?.told(rate, result);
    }
    tell({ results, step: { rates, tried: next.map((rate) => rate !== undefined) } });
  }
}
