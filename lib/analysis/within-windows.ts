// Servers that got faster after the warm-up. The method: docs/verdicts.md.
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { isServerAtLimit } from './limit.ts';
import { falseNotes } from './rounds.ts';
import {
  exponential,
  meanInterval,
  minimumRounds,
  minus,
  type RatioInterval,
} from './statistics.ts';

/** A smaller gain, as a logarithm, from one half of a window to the other is not reported: 10 % over the whole window make 5 %. */
const gainMatters = Math.log(1.03);

/** Requests per second, or per CPU time: other programs disturb that less. */
const gainOf = {
  rps: ({ gain }: Phase) => gain,
  cpu: ({ cpuGain }: Phase) => cpuGain,
};
type Gaining = keyof typeof gainOf;

interface Gain {
  name: string;
  metric: Gaining;
  /** The figure of the windows' second halves as a multiple of that of the first, in all rounds. */
  gain: RatioInterval;
  /** The side whose own gain is divided out of it; absent if there is none. */
  against?: string;
}

type Side = Pick<VariantResult, 'name' | 'rounds' | 'serverShare' | 'generatorShare'>;

/**
 * The sides that surely got faster within their windows: by themselves, or against another side, with which they share the machine's noise.
 * Each other side is compared with the first one, as for a verdict. CPU time counts only where the server was the limit.
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
      const more = sureGain(minus(logs, other.logs), tests);
      if (more !== undefined) return [{ name, metric, gain: more, against: other.name }];
    }
    return [];
  });
}

/** The logarithm of the gain in each round; undefined if it is not known of each, or a round had no warm-up, which is cold on purpose. */
function logGains(metric: Gaining, rounds: readonly Round[]): number[] | undefined {
  if (rounds.length < minimumRounds) return undefined;
  const logs = rounds.flatMap(({ phases: [first] }) => {
    const gain = first && gainOf[metric](first);
    const { continuous } = first ?? {};
    return gain && continuous && !continuous.apart ? [Math.log(gain)] : [];
  });
  return logs.length === rounds.length ? logs : undefined;
}

/** The mean gain, if it matters and is no chance. @param tests of a run, which share the chance of a false note */
function sureGain(logs: readonly number[], tests: number): RatioInterval | undefined {
  const mean = meanInterval(logs, (2 * falseNotes) / tests);
  if (mean.middle < gainMatters || mean.middle < mean.half) return undefined;
  return { ratio: Math.exp(mean.middle), interval: exponential(mean) };
}
