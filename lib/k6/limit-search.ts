// The search for the highest rate within a limit of latency. The script makes it, and the runner once more of what it printed.
import { rateEnd, type RateEnd } from '../analysis/within.ts';
import type { LoadResult } from '../runner/result.ts';
import type { Within } from '../scenario/model.ts';
import { RateSearch, type SearchStart } from './rate-search.ts';

/** A search whose rates are judged by what the steps at them came to. */
export class LimitSearch {
  readonly rates: RateSearch;
  readonly #within: Within;
  /** At the rate that is being tried. */
  #steps: LoadResult[] = [];

  constructor(start: SearchStart, within: Within) {
    this.rates = new RateSearch(start);
    this.#within = within;
  }

  /** What a step at the rate that is being tried came to; returns what that rate has come to with it. */
  told(rate: number, step: LoadResult): RateEnd {
    this.#steps.push(step);
    const end = rateEnd(this.#steps, rate, this.#within);
    if (end === 'open') return end;
    this.rates.told(rate, end === 'kept');
    this.#steps = [];
    return end;
  }
}
