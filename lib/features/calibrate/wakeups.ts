// What it costs a server to wake its client. A client that sleeps more often makes each request dearer, and a faster server finds its
// client asleep less often: so generators see different effects of one line.
import { total } from '../../analysis/statistics.ts';

/** One generator at both servers. */
export interface Wakings {
  /** The server's CPU time per request. */
  cpuMicros: Pair;
  /** How often a request woke the client. */
  wakeups: Pair;
}

type Pair = Record<'without' | 'with', number>;

/** A request's CPU time at either server without wake-ups, and that of one wake-up. */
export interface WakeupCost {
  ownMicros: Pair;
  wakeupMicros: number;
}

/**
 * Fits CPU time = own time of the server + wake-ups × time of a wake-up, which is the same for both servers, by least squares.
 * @param generators at least two, which wake up differently often
 */
export function wakeupCostOf(generators: readonly Wakings[]): WakeupCost {
  const without = centred(generators, 'without');
  const withLine = centred(generators, 'with');
  const wakeupMicros =
    (without.products + withLine.products) / (without.squares + withLine.squares);
  const own = ({ cpuMicros, wakeups }: typeof without) => cpuMicros - wakeups * wakeupMicros;
  return { wakeupMicros, ownMicros: { without: own(without), with: own(withLine) } };
}

/** Means of one server over the generators, and sums of the products of what they differ by. */
function centred(generators: readonly Wakings[], side: keyof Pair) {
  const meanOf = (figure: keyof Wakings): number =>
    total(generators, (one) => one[figure][side]) / generators.length;
  const [cpuMicros, wakeups] = [meanOf('cpuMicros'), meanOf('wakeups')];
  const apart = (one: Wakings) => one.wakeups[side] - wakeups;
  return {
    cpuMicros,
    wakeups,
    products: total(generators, (one) => apart(one) * (one.cpuMicros[side] - cpuMicros)),
    squares: total(generators, (one) => apart(one) ** 2),
  };
}

/** Returns the CPU time of a request by the model. */
export function modelMicros(cost: WakeupCost, { wakeups }: Wakings, side: keyof Pair): number {
  return cost.ownMicros[side] + wakeups[side] * cost.wakeupMicros;
}
