// Turns against continuous load, which warm-ups end with. The method: docs/verdicts.md.
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { isFailing, serverCpuSecondsPerResponse, successRatioOf } from './phases.ts';
import {
  alphaOf,
  logRatios,
  meanInterval,
  ratioInterval,
  type RatioInterval,
} from './statistics.ts';

/** A server whose CPU time per response falls below this share was not warm. Noise is a tenth at most. */
const coldBelow = 0.75;

/** CPU times of fewer are mostly chance. */
const fewestResponses = 30;

/** A rate limit that recovers in others' turns makes a ramp's requests/s so many times the window's. */
const recoveredFrom = 2;

/** Most of a ramp was answered from what a rate limit had left over, in bursts, which cost less each. */
function hasRecovered({ turns, requests, rps }: Phase): boolean {
  if (turns === null) return false;
  const rampSeconds = (turns.count * turns.rampMs) / 1000;
  return turns.responses - requests > recoveredFrom * rps * rampSeconds;
}

/** The engine watches a queue then. */
const isAtRate = ({ queueGrowth }: Phase): boolean => (queueGrowth ?? null) !== null;

/**
 * CPU time per response in microseconds at a warm-up's end and after it, if it fell so much that the server was cold. undefined, too, if
 * unknown, with failed requests, with few responses of uneven cost, and where a rate limit had recovered.
 */
export function coldCosts(phases: readonly Phase[]): { before: number; after: number } | undefined {
  const [first] = phases;
  if (first === undefined || isAtRate(first) || hasRecovered(first)) return undefined;
  if (isFailing({ successRatio: successRatioOf([first]) })) return undefined;
  const { cpuMicros: before = 0, rps = 0, seconds = 0 } = first.continuous ?? {};
  if (rps * seconds < fewestResponses) return undefined;
  const after = 1e6 * serverCpuSecondsPerResponse([first]);
  return before > 0 && after < coldBelow * before ? { before, after } : undefined;
}

/** Less may be the methods': caches, warmth. */
const leastDifference = Math.log(1.03);
/** A side's own difference has no interval, and the machine's noise in it. */
const sideMatters = Math.log(1.1);
/** Chance that turns seem to disagree, at any look, were there no tolerance. */
const falseAlarms = 0.02;

type Rounds = readonly Pick<Round, 'phases'>[];

/** By round; undefined without turns, at a rate, and without a warm-up. */
function bothOf(rounds: Rounds): [continuous: number[], inTurns: number[]] | undefined {
  const pairs = rounds.flatMap(({ phases: [first] }) => {
    if (first === undefined || isAtRate(first) || (first.turns?.count ?? 1) === 1) return [];
    if (first.continuous?.apart === true) return [];
    const continuousRps = first.continuous?.rps ?? 0;
    return continuousRps > 0 && first.rps > 0 ? [{ continuousRps, rps: first.rps }] : [];
  });
  if (pairs.length === 0 || pairs.length < rounds.length) return undefined;
  return [pairs.map(({ continuousRps }) => continuousRps), pairs.map(({ rps }) => rps)];
}

/** Turns per continuous load, with a 95 % interval; undefined if a round has no such pair. */
export function againstContinuous(rounds: Rounds): RatioInterval | undefined {
  const both = bothOf(rounds);
  return both && ratioInterval(...both);
}

/**
 * The variant whose turns surely differ from continuous load, and how: by itself, or more than the first side, which verdicts are about.
 * What the interval of the ratio in turns holds is tolerated.
 * @param sides of a group, with at least two rounds @param share of the chance of a false alarm that this look has
 */
export function turnsDisagree(
  sides: readonly Pick<VariantResult, 'name' | 'rounds'>[],
  share = 1,
): { name: string; ratio: RatioInterval } | undefined {
  const alpha = falseAlarms * share;
  const known = sides.flatMap(({ name, rounds }) => {
    const both = bothOf(rounds);
    if (both === undefined) return [];
    return [{ name, rps: both[1], logs: logRatios(...both), ratio: ratioInterval(...both) }];
  });
  const isBeyond = ({ middle, half }: ReturnType<typeof meanInterval>) =>
    Math.abs(middle) - half > sideMatters;
  const differing = known.find(({ logs }) => isBeyond(meanInterval(logs, alpha)));
  if (differing !== undefined) return differing;
  const [first, ...others] = known;
  for (const other of others) {
    if (first === undefined) break;
    const differences = other.logs.map((log, round) => log - (first.logs[round] as number));
    const { middle, half } = meanInterval(differences, alpha);
    const inTurns = meanInterval(logRatios(first.rps, other.rps), alphaOf());
    if (Math.abs(middle) > Math.max(half, inTurns.half, leastDifference))
      return isFarther(first.ratio, other.ratio) ? first : other;
  }
  return undefined;
}

function isFarther({ ratio }: RatioInterval, other: RatioInterval): boolean {
  return Math.abs(Math.log(ratio)) > Math.abs(Math.log(other.ratio));
}
