// Turns held against continuous load, which the end of each warm-up is. The method: docs/verdicts.md.
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { serverCpuSecondsPerResponse } from './phases.ts';
import { exponential, meanInterval, type RatioInterval } from './statistics.ts';

/** A server whose CPU time per response falls below this share of that of its warm-up's end was not warm. Noise is a tenth at most. */
const coldBelow = 0.75;

/**
 * CPU time per response in microseconds at the end of a warm-up and after it, if it fell so much that the server was still cold; else
 * undefined, also where it is not known, and at a rate, where few responses have an uneven cost.
 */
export function coldCosts(phases: readonly Phase[]): { before: number; after: number } | undefined {
  const [first] = phases;
  if (first === undefined || (first.queueGrowth ?? null) !== null) return undefined;
  const before = first.continuous?.cpuMicros ?? 0;
  const after = 1e6 * serverCpuSecondsPerResponse([first]);
  return before > 0 && after < coldBelow * before ? { before, after } : undefined;
}

/** Two sides that alternate differ from continuous load by more than this, surely: turns do not tell the truth of these servers. */
const differenceMatters = Math.log(1.05);
/** For the requests/s of a side itself: the machine's noise between warm-up and turns is in it. */
const sideMatters = Math.log(1.1);
/** Chance that turns which agree with continuous load seem not to, were there no tolerance. */
const falseAlarms = 0.01;

/** ln(requests/s in turns / of continuous load), by round; undefined without turns, at a rate, and without a warm-up. */
function logsAgainstContinuous(rounds: readonly Pick<Round, 'phases'>[]): number[] | undefined {
  const logs = rounds.map(({ phases: [first] }) => {
    if (first === undefined || (first.queueGrowth ?? null) !== null) return NaN;
    const { rps, turns, continuous } = first;
    return (turns?.count ?? 1) > 1 && continuous ? Math.log(rps / continuous.rps) : NaN;
  });
  return logs.length > 0 && logs.every(Number.isFinite) ? logs : undefined;
}

/** Requests/s in turns as a multiple of those of continuous load, with a 95 % interval; undefined if there is no such pair in each round. */
export function againstContinuous(
  rounds: readonly Pick<Round, 'phases'>[],
): RatioInterval | undefined {
  const logs = logsAgainstContinuous(rounds);
  if (logs === undefined) return undefined;
  const interval = meanInterval(logs, 0.05);
  return { ratio: Math.exp(interval.middle), interval: exponential(interval) };
}

/**
 * The variant whose requests/s in turns surely differ from those of continuous load, and how; undefined if none does. Compared are each
 * side, and each two sides, whose difference is what a verdict is about.
 * @param sides of a group, with at least two rounds
 */
export function turnsDisagree(
  sides: readonly Pick<VariantResult, 'name' | 'rounds'>[],
): { name: string; ratio: RatioInterval } | undefined {
  const [first, ...others] = sides.flatMap(({ name, rounds }) => {
    const logs = logsAgainstContinuous(rounds);
    return logs === undefined ? [] : [{ name, logs, matters: sideMatters }];
  });
  if (first === undefined) return undefined;
  const differences = others.map(({ name, logs }) => ({
    name,
    logs: logs.map((log, round) => log - (first.logs[round] as number)),
    matters: differenceMatters,
  }));
  for (const { name, logs, matters } of [first, ...others, ...differences]) {
    const { middle, half } = meanInterval(logs, falseAlarms);
    if (Math.abs(middle) - half <= matters) continue;
    const side = sides.find((one) => one.name === name) as Pick<VariantResult, 'rounds'>;
    return { name, ratio: againstContinuous(side.rounds) as RatioInterval };
  }
  return undefined;
}
