// The part of a log to replay: the busiest part of a given length.
import { total } from '../../analysis/statistics.ts';
import { usageError } from '../../errors.ts';
import { counts, duration, whole } from '../../format.ts';
import type { Arrivals, LoadRequest } from '../../scenario/model.ts';

export interface Pace {
  /** 10: ten times as fast as it was. */
  factor: number;
  seconds: number;
  /** Within the second of a log of whole seconds: evenly spread (default), or at random times. */
  arrivals?: Arrivals | undefined;
}

/** How often each key was counted. */
export class Counts<K> extends Map<K, number> {
  add(key: K, count = 1): void {
    this.set(key, count + (this.get(key) ?? 0));
  }

  sum(): number {
    return total([...this.values()], (count) => count);
  }

  mostFrequent(): K | undefined {
    return [...this].sort(([, a], [, b]) => b - a)[0]?.[0];
  }
}

/** A line of a log: its request, and when it was in seconds since 1970. */
interface Timed {
  key: string;
  at: number;
}

/** A piece is moved by steps of a 20th of it. */
const steps = 20;
/** A time takes about 11 bytes in the file of requests. */
const mostTimes = 2_000_000;

/** Finds the busiest piece of a log, keeping the lines of two pieces at most. */
export class BusiestPiece {
  readonly #pace: Pace;
  readonly #seconds: number;
  readonly #kept = new Map<number, Timed[]>();
  #step = -Infinity;
  #best = { last: -Infinity, count: 0 };

  constructor(pace: Pace) {
    this.#pace = pace;
    this.#seconds = Math.max(1, Math.ceil(pace.factor * pace.seconds));
  }

  add(key: string, at: number): void {
    const step = Math.floor((at * steps) / this.#seconds);
    if (step !== this.#step) {
      this.#judge();
      this.#step = step;
      const { last } = this.#best;
      for (const kept of this.#kept.keys())
        if (Math.abs(kept - step) >= steps && (kept > last || kept <= last - steps))
          this.#kept.delete(kept);
    }
    const kept = this.#kept.get(step) ?? [];
    this.#kept.set(step, kept);
    kept.push({ key, at });
  }

  #stepsTo(last: number): Timed[][] {
    return Array.from({ length: steps }, (_, back) => this.#kept.get(last - back) ?? []);
  }

  /** Looks at the piece that ends with the present step. */
  #judge(): void {
    const count = total(this.#stepsTo(this.#step), ({ length }) => length);
    if (count > this.#best.count) this.#best = { last: this.#step, count };
  }

  /** Lines in no particular order. */
  lines(): Timed[] {
    this.#judge();
    return this.#stepsTo(this.#best.last).flat();
  }

  /**
   * The requests with their times, and the replay's length in seconds. @param requestOf the request of a key, if it is made
   * @throws UserError (exit code 2) if no line has a time, and for too many
   */
  replay(requestOf: (key: string) => LoadRequest | undefined) {
    const { factor, arrivals } = this.#pace;
    const lines = this.lines().sort((a, b) => a.at - b.at);
    const [first, last] = [lines[0], lines.at(-1)];
    if (first === undefined || last === undefined)
      throw usageError('--pace: no line of the log has a time: leave it out');
    if (lines.length > mostTimes)
      throw usageError(
        `--pace: ${whole(lines.length)} requests are too many to replay: give a shorter --duration`,
      );
    const from = Math.floor(first.at);
    const logged = Math.min(this.#seconds, Math.floor(last.at) + 1 - from);
    const times = new Map<LoadRequest, number[]>();
    const bySecond = new Counts<number>();
    for (const [place, at] of spread(lines, arrivals).entries()) {
      const request = requestOf((lines[place] as Timed).key);
      if (request === undefined) continue;
      bySecond.add(Math.floor(at / factor - from / factor));
      // Even rounded it lies within the piece.
      const lastMs = (1000 * logged) / factor - 0.001;
      const atMs = Math.min(Math.round((1e6 * (at - from)) / factor) / 1000, lastMs);
      const known = times.get(request) ?? [];
      times.set(request, known);
      known.push(atMs);
    }
    const requests = [...times].map(([request, atMs]) => ({
      ...request,
      weight: atMs.length,
      atMs,
    }));
    const made = total(requests, ({ weight }) => weight);
    const seconds = logged / factor;
    const began = new Date(1000 * from).toISOString().slice(0, 19).replace('T', ' ');
    const how = factor === 1 ? 'as they came' : `${factor} times as fast`;
    // A day has too many seconds for the arguments of a call.
    const most = whole([...bySecond.values()].reduce((peak, count) => Math.max(peak, count), 0));
    const summary = `The busiest ${duration(logged)} of the log, from ${began} UTC on, are replayed ${how}: ${counts(made, 'request')} in ${duration(seconds)}, ${most} in the busiest second.`;
    return { requests, seconds, summary };
  }
}

/** Whole seconds are spread over the second. */
function spread(lines: readonly Timed[], arrivals: Arrivals | undefined): number[] {
  if (lines.some(({ at }) => at % 1 !== 0)) return lines.map(({ at }) => at);
  const inSecond = new Counts<number>();
  for (const { at } of lines) inSecond.add(at);
  return [...inSecond].flatMap(([at, count]) => {
    const parts = Array.from({ length: count }, (_, place) =>
      arrivals === 'poisson' ? Math.random() : (place + 0.5) / count,
    );
    return parts.sort((a, b) => a - b).map((part) => at + part);
  });
}
