// Servers that got faster after the warm-up. The method: docs/verdicts.md.
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { isServerAtLimit } from './limit.ts';
import { falseNotes } from './rounds.ts';
import { exponential, meanInterval, minimumRounds, type RatioInterval } from './statistics.ts';

/** A smaller logarithm from one half to the other is no note: 10 % over a window make 5 %. */
const gainMatters = Math.log(1.03);

/** CPU time is disturbed less by other programs. */
const gainOf = {
  rps: ({ gain }: Phase) => gain,
  cpu: ({ cpuGain }: Phase) => cpuGain,
};
type Gaining = keyof typeof gainOf;

export interface Gain {
  name: string;
  metric: Gaining;
  /** Second halves per first, over all rounds. */
  gain: RatioInterval;
  /** Whose own gain is divided out. */
  against?: string;
}

type Side = Pick<VariantResult, 'name' | 'rounds' | 'serverShare' | 'generatorShare'>;

/**
 * Sides that surely got faster: by themselves, or against the first, with which they share the machine's noise. CPU time where the server
 * was the limit.
 */
export function gainsWithin(sides: readonly Side[]): Gain[] {
  const gains = [...gainsIn('rps', sides), ...gainsIn('cpu', sides.filter(isServerAtLimit))];
  return gains.filter(
    ({ name }, place) => gains.findIndex((other) => other.name === name) === place,
  );
}

function gainsIn(metric: Gaining, sides: readonly Side[]): Gain[] {
  const known = sides.flatMap(({ name, rounds }) => {
    const logs = logGains(metric, rounds);
    return logs === undefined ? [] : [{ name, logs }];
  });
  const [first] = known;
  const tests = Object.keys(gainOf).length * (known.length + 2 * (known.length - 1));
  return known.flatMap((side): Gain[] => {
    const { name, logs } = side;
    const gain = sureGain(logs, tests);
    if (gain !== undefined) return [{ name, metric, gain }];
    for (const other of side === first ? known.slice(1) : known.slice(0, 1)) {
      const differences = logs.map((log, round) => log - (other.logs[round] as number));
      const more = sureGain(differences, tests);
      if (more !== undefined) return [{ name, metric, gain: more, against: other.name }];
    }
    return [];
  });
}

/** By round; undefined if unknown, or without a warm-up, which is cold on purpose. */
function logGains(metric: Gaining, rounds: readonly Round[]): number[] | undefined {
  if (rounds.length < minimumRounds) return undefined;
  const logs = rounds.flatMap(({ phases: [first] }) => {
    const gain = first && gainOf[metric](first);
    const { continuous } = first ?? {};
    return gain && continuous && !continuous.apart ? [Math.log(gain)] : [];
  });
  return logs.length === rounds.length ? logs : undefined;
}

/** The mean, if it matters and is no chance. @param tests of a run, which share the chance of a false note */
function sureGain(logs: readonly number[], tests: number): RatioInterval | undefined {
  const mean = meanInterval(logs, (2 * falseNotes) / tests);
  if (mean.middle < gainMatters || mean.middle < mean.half) return undefined;
  return { ratio: Math.exp(mean.middle), interval: exponential(mean) };
}
