// Which commit of a history made a difference, from runs that measured some of the commits.
import { mean, total } from '../../analysis/statistics.ts';

/** A commit in a run. */
export interface Measured {
  /** Its place in the history: 0 is the good one, the last is the bad one. */
  place: number;
  /** The mean of ln(commit / good) over the run's rounds; 0 for the good one itself. */
  log: number;
}

/**
 * What builds of equal sources differ by at least, as a standard deviation of ln(ratio), and how many commits that is worth: with few
 * commits in a run their own scatter would be trusted too much.
 */
const usual = { spread: 0.004, commits: 3 };

/**
 * Returns the probability of each place from 1 on that it is the first bad one. The model has one step: commits before it differ by noise
 * alone, and so do those from it on. Noise is normal and of unknown size, and it is one value for each commit of a run, because commits
 * also differ by how they are laid out in memory. With flat priors of the place, of both means and of ln(noise) the probability of a place
 * is proportional to (before · after)^(−1/2) · (sum of squares within both parts)^(−(commits − 2) / 2) (Box & Tiao, Bayesian Inference in
 * Statistical Analysis, 1973, 2.5), and to the product of that over runs.
 * @param places the number of the bad one
 */
export function firstBad(runs: readonly (readonly Measured[])[], places: number): number[] {
  const logs = Array.from({ length: places }, (_, index) =>
    total(runs, (run) => logLikelihood(run, index + 1)),
  );
  const most = Math.max(...logs);
  const weights = logs.map((log) => Math.exp(log - most));
  const sum = total(weights, (weight) => weight);
  return weights.map((weight) => weight / sum);
}

/** @param step the first bad place */
function logLikelihood(run: readonly Measured[], step: number): number {
  const before = run.filter(({ place }) => place < step);
  const after = run.filter(({ place }) => place >= step);
  const squares =
    squaresOf(before) + squaresOf(after) + usual.commits * usual.spread * usual.spread;
  const freedom = run.length - 2 + usual.commits;
  return -(Math.log(before.length * after.length) + freedom * Math.log(squares)) / 2;
}

function squaresOf(some: readonly Measured[]): number {
  const middle = mean(some.map(({ log }) => log));
  return total(some, ({ log }) => (log - middle) ** 2);
}

/**
 * Returns the fewest places that together have at least this probability, in their order.
 * @param probabilities as firstBad
 */
export function likeliest(probabilities: readonly number[], least: number): number[] {
  const places = [...probabilities.entries()]
    .map(([index, probability]) => ({ place: index + 1, probability }))
    .sort((a, b) => b.probability - a.probability);
  const chosen: number[] = [];
  let sum = 0;
  for (const { place, probability } of places) {
    if (sum >= least) break;
    chosen.push(place);
    sum += probability;
  }
  return chosen.sort((a, b) => a - b);
}

/**
 * Chooses the commits of the next run: they cut the history into parts of about the same probability. Where there are not so many, more
 * are taken from around the likeliest, since each tells how large the noise is.
 * @param isSkipped whether a place cannot be measured
 * @returns places between the good and the bad one, ascending
 */
export function nextPlaces(
  probabilities: readonly number[],
  most: number,
  isSkipped: (place: number) => boolean,
): number[] {
  const last = probabilities.length;
  const mayRun = (place: number) => place > 0 && place < last && !isSkipped(place);
  const chosen = new Set<number>();
  const add = (place: number) => {
    if (chosen.size < most && mayRun(place)) chosen.add(place);
  };
  let [sum, cuts] = [0, 1];
  for (const [index, probability] of probabilities.entries()) {
    sum += probability;
    const isCut = sum >= cuts / (most + 1);
    while (sum >= cuts / (most + 1)) cuts++;
    if (!isCut) continue;
    // Both sides of a likely step; the nearest that can run.
    add(nearestFrom(index + 1, 1, mayRun, last));
    add(nearestFrom(index, -1, mayRun, last));
  }
  const middle = probabilities.indexOf(Math.max(...probabilities)) + 1;
  for (let away = 0; away <= last; away++) {
    add(middle + away);
    add(middle - 1 - away);
  }
  return [...chosen].sort((a, b) => a - b);
}

function nearestFrom(
  place: number,
  step: 1 | -1,
  mayRun: (place: number) => boolean,
  last: number,
): number {
  let at = place;
  while (at > 0 && at < last && !mayRun(at)) at += step;
  return at;
}
