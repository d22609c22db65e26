// The highest rate that keeps a limit: up or down until both sides of it are known, then halving what is between them.

/** Where a search begins, in requests/s, the factor up to the next rate, which grows until both sides of the limit are known, and the lowest rate that is tried. */
export interface SearchStart { rate: number; factor: number; least: number }

/** In requests/s. The engine takes no higher one. */
export const highestRate = 10_000_000;
export const lowestRate = 100;

/** A search ends where the lowest rate that broke the limit is at most so many times the highest one that kept it: rounds differ by as much, and the time for closer ones is better spent on more of them. */
const closeEnough = 1.06;

/** Wherever the limit is, a search from nothing takes 60 at most, three at each rate; what is beyond is for rates that a pause broke. */
export const mostSteps = 80;

const widestFactor = 2;

/**
 * Down from one rate that broke the limit to the next, and from the last to the lowest at once. What pauses break they break at any rate,
 * and steps are the longer the lower it is: so many tries not far below tell as well whether there is a rate that keeps it, and sooner.
 */
const strides = [1.2, 1.44];

/** One search. `kept` and `broken` are the rates nearest to the limit so far, on either side of it. */
export class RateSearch {
  kept: number | undefined;
  broken: number | undefined;
  readonly #first: number;
  readonly #least: number;
  #factor: number;
  /** Strides that were made downwards. */
  #falls = 0;
  /** The rate that is being tried. */
  #trying: number | undefined;
  /** The lowest rate that broke the limit did so twice, with others tried between: it was no pause of the machine. */
  #confirmed = false;
  /** How often that may still be asked. Where a limit is blurred there is no end to it. */
  #doubts = 2;

  constructor({ rate, factor, least }: SearchStart) {
    this.#least = Math.max(lowestRate, Math.round(least));
    this.#first = this.#possible(rate);
    this.#factor = factor;
  }

  /** The rate to try, the same one until it is told of; in requests/s. Undefined when the search is over: the two are near enough, or there is no rate beyond. */
  next(): number | undefined {
    this.#trying ??= this.#choose();
    return this.#trying;
  }

  #choose(): number | undefined {
    const { kept, broken } = this;
    if (kept === undefined && broken === undefined) return this.#first;
    if (broken === undefined) return this.isNear() ? undefined : this.#possible(kept as number * this.#widen());
    if (kept === undefined) return broken === this.#least ? undefined : this.#possible(this.#below(broken));
    if (!this.isNear()) return this.#possible(Math.sqrt(kept * broken));
    if (this.#confirmed || this.#doubts === 0) return undefined;
    this.#doubts--;
    return broken;
  }

  /** The rate that was kept is near enough to the limit: to the one that broke it, or there is none beyond it. */
  isNear(): boolean {
    const { kept = 0, broken } = this;
    return broken === undefined ? kept === highestRate : broken <= kept * closeEnough;
  }

  /** What came of the rate that was to be tried. */
  told(rate: number, isKept: boolean): void {
    this.#trying = undefined;
    if (!isKept) {
      this.#confirmed = rate === this.broken;
      this.broken = rate;
      return;
    }
    this.kept = rate;
    if (rate !== this.broken) return;
    // What is beyond is not known after all, and may be near.
    this.broken = undefined;
    this.#factor = closeEnough;
  }

  #below(broken: number): number {
    const stride = strides[this.#falls++];
    return stride === undefined ? this.#least : broken / stride;
  }

  #widen(): number {
    const factor = this.#factor;
    this.#factor = Math.min(widestFactor, factor ** 2);
    return factor;
  }

  #possible(rate: number): number {
    return Math.round(Math.min(highestRate, Math.max(this.#least, rate)));
  }
}
