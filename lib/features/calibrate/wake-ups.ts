// What it costs the server to wake a generator that sleeps: a part of what makes generators see different effects.
import { total } from '../../analysis/statistics.ts';

/**
 * How often other cores have interrupted these to wake something, since the machine started. A core that has just become idle looks for
 * work by itself for a while, and needs no interrupt.
 * @param interrupts the text of /proc/interrupts @param cpus numbers of cores
 */
export function wakeUpsOf(interrupts: string, cpus: readonly number[]): number {
  const [cores = '', ...kinds] = interrupts.split('\n');
  const columns = cores.trim().split(/\s+/);
  const wakes = kinds.filter((line) => /(Rescheduling|Function call) interrupts$/.test(line));
  return total(wakes, (line) => {
    const [, ...counts] = line.trim().split(/\s+/);
    return total(cpus, (cpu) => Number(counts[columns.indexOf(`CPU${cpu}`)]));
  });
}

type Pair = Record<'without' | 'with', number>;

/** Means of one generator at both servers. */
export interface WakeUpsAndCpu {
  /** The server's CPU time per request. */
  cpuMicros: Pair;
  /** How often the generator's core was interrupted to wake it, per request. */
  wakeUps: Pair;
}

/** A request's CPU time at either server if nobody is woken, and that of waking the generator once. */
export interface WakeUpCost {
  ownMicros: Pair;
  wakeUpMicros: number;
}

/**
 * Fits CPU time = own time of the server + wake-ups × time of a wake-up, which is the same for both servers, by least squares.
 * @param generators which are woken differently often
 * @returns undefined if they are not
 */
export function wakeUpCostOf(generators: readonly WakeUpsAndCpu[]): WakeUpCost | undefined {
  const without = deviations(generators, 'without');
  const withLine = deviations(generators, 'with');
  const squares = without.squares + withLine.squares;
  if (squares === 0) return undefined;
  const wakeUpMicros = (without.products + withLine.products) / squares;
  const own = ({ cpuMicros, wakeUps }: typeof without) => cpuMicros - wakeUps * wakeUpMicros;
  return { wakeUpMicros, ownMicros: { without: own(without), with: own(withLine) } };
}

/** Means of one server over the generators, and the sums of squares and products of the deviations from them. */
function deviations(generators: readonly WakeUpsAndCpu[], side: keyof Pair) {
  const meanOf = (figure: keyof WakeUpsAndCpu): number =>
    total(generators, (one) => one[figure][side]) / generators.length;
  const [cpuMicros, wakeUps] = [meanOf('cpuMicros'), meanOf('wakeUps')];
  const deviation = (one: WakeUpsAndCpu) => one.wakeUps[side] - wakeUps;
  return {
    cpuMicros,
    wakeUps,
    products: total(generators, (one) => deviation(one) * (one.cpuMicros[side] - cpuMicros)),
    squares: total(generators, (one) => deviation(one) ** 2),
  };
}

/** Returns the CPU time of a request by the fit. */
export function fittedMicros(
  cost: WakeUpCost,
  { wakeUps }: WakeUpsAndCpu,
  side: keyof Pair,
): number {
  return cost.ownMicros[side] + wakeUps[side] * cost.wakeUpMicros;
}
