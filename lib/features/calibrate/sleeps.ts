// What a generator that sleeps costs the server, which has to wake it: a part of what makes generators see different effects.
import { total } from '../../analysis/statistics.ts';

type Pair = Record<'without' | 'with', number>;

/** Means of one generator at both servers. */
export interface SleepsAndCpu {
  /** The server's CPU time per request. */
  cpuMicros: Pair;
  /** How often the generator slept for a request. */
  sleeps: Pair;
}

/** A request's CPU time at either server if nobody sleeps, and that for each sleep of the generator. */
export interface SleepCost {
  ownMicros: Pair;
  sleepMicros: number;
}

/**
 * Fits CPU time = own time of the server + sleeps × time of a sleep, which is the same for both servers, by least squares.
 * @param generators which sleep differently often
 * @returns undefined if they do not
 */
export function sleepCostOf(generators: readonly SleepsAndCpu[]): SleepCost | undefined {
  const without = deviations(generators, 'without');
  const withLine = deviations(generators, 'with');
  const squares = without.squares + withLine.squares;
  if (squares === 0) return undefined;
  const sleepMicros = (without.products + withLine.products) / squares;
  const own = ({ cpuMicros, sleeps }: typeof without) => cpuMicros - sleeps * sleepMicros;
  return { sleepMicros, ownMicros: { without: own(without), with: own(withLine) } };
}

/** Means of one server over the generators, and the sums of squares and products of the deviations from them. */
function deviations(generators: readonly SleepsAndCpu[], side: keyof Pair) {
  const meanOf = (figure: keyof SleepsAndCpu): number =>
    total(generators, (one) => one[figure][side]) / generators.length;
  const [cpuMicros, sleeps] = [meanOf('cpuMicros'), meanOf('sleeps')];
  const deviation = (one: SleepsAndCpu) => one.sleeps[side] - sleeps;
  return {
    cpuMicros,
    sleeps,
    products: total(generators, (one) => deviation(one) * (one.cpuMicros[side] - cpuMicros)),
    squares: total(generators, (one) => deviation(one) ** 2),
  };
}

/** Returns the CPU time of a request by the fit. */
export function fittedMicros(cost: SleepCost, { sleeps }: SleepsAndCpu, side: keyof Pair): number {
  return cost.ownMicros[side] + sleeps[side] * cost.sleepMicros;
}
