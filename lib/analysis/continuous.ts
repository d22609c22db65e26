// Turns held against continuous load, which the end of each warm-up is. The method: docs/verdicts.md.
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { isFailing, serverCpuSecondsPerResponse, successRatioOf } from './phases.ts';
import { logRatios, meanInterval, mean, ratioInterval, type RatioInterval } from './statistics.ts';

/** A server whose CPU time per response falls below this share of that of its warm-up's end was not warm. Noise is a tenth at most. */
const coldBelow = 0.75;

/** With fewer responses at the end of a warm-up, the CPU time of each is mostly chance. */
const fewestResponses = 30;

/** Where a rate limit recovers during the turns of others, the ramp of a turn has so many times the requests/s of the window after it. */
const recoveredFrom = 2;

/** Whether most of a turn's ramp was answered from what a rate limit had left over. Such responses come in bursts, which cost less each. */
function hasRecovered({ turns, requests, rps }: Phase): boolean {
  if (turns === null) return false;
  const rampSeconds = (turns.count * turns.rampMs) / 1000;
  return turns.responses - requests > recoveredFrom * rps * rampSeconds;
}

/** Whether the engine watched a queue, as it does at a rate. */
const isAtRate = ({ queueGrowth }: Phase): boolean => (queueGrowth ?? null) !== null;

/**
 * CPU time per response in microseconds at the end of a warm-up and after it, if it fell so much that the server was still cold; else
 * undefined, also where it is not known, where requests fail, which have costs of their own, where few responses have an uneven cost, as
 * at a rate and at the end of a slow server's warm-up, and where a rate limit had recovered.
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

/** Two sides that alternate differ from continuous load by more than this, surely: turns do not tell the truth of these servers. */
const differenceMatters = Math.log(1.05);
/** For the requests/s of a side itself: the machine's noise between warm-up and turns is in it. */
const sideMatters = Math.log(1.1);
/** A pause of the server that takes more than this share of continuous load makes another figure of it. */
const pauseMatters = 0.1;
/** Chance that turns which agree with continuous load seem not to, were there no tolerance. */
const falseAlarms = 0.01;

type Rounds = readonly Pick<Round, 'phases'>[];

/** Requests/s of continuous load and in turns, by round; undefined without turns, at a rate, and without a warm-up. */
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

/** Requests/s in turns as a multiple of those of continuous load, with a 95 % interval; undefined if there is no such pair in each round. */
export function againstContinuous(rounds: Rounds): RatioInterval | undefined {
  const both = bothOf(rounds);
  return both && ratioInterval(...both);
}

/**
 * The variant whose requests/s in turns surely differ from those of continuous load, and how; undefined if none does. Looked at is each
 * side, and how much more than the first one each other side differs: a verdict is about that.
 * @param sides of a group, with at least two rounds
 */
export function turnsDisagree(
  sides: readonly Pick<VariantResult, 'name' | 'rounds'>[],
): { name: string; ratio: RatioInterval } | undefined {
  const known = sides.flatMap(({ name, rounds }) => {
    const both = bothOf(rounds);
    if (both === undefined) return [];
    const tolerated = toleratedForPauses(rounds);
    return [{ name, logs: logRatios(...both), ratio: ratioInterval(...both), tolerated }];
  });
  const differing = known.find(({ logs, tolerated }) => isBeyond(sideMatters + tolerated, logs));
  if (differing !== undefined) return differing;
  const [first, ...others] = known;
  for (const other of others) {
    const differences = other.logs.map((log, round) => log - (first?.logs[round] as number));
    const tolerated = other.tolerated + (first?.tolerated ?? 0);
    if (first !== undefined && isBeyond(differenceMatters + tolerated, differences))
      return isFarther(first.ratio, other.ratio) ? first : other;
  }
  return undefined;
}

/**
 * What a server's longest pause makes of continuous load, as the logarithm of a ratio. That window is short: it may have a pause too many,
 * or none, and with a server that pauses at regular times so in each round.
 */
function toleratedForPauses(rounds: Rounds): number {
  const shares = rounds.flatMap(({ phases: [first] }) => {
    const seconds = first?.continuous?.seconds ?? 0;
    return first === undefined || seconds === 0 ? [] : [first.longestGapMs / 1000 / seconds];
  });
  const share = shares.length === 0 ? 0 : mean(shares);
  return share > pauseMatters ? Math.log1p(share) : 0;
}

function isBeyond(matters: number, logs: readonly number[]): boolean {
  const { middle, half } = meanInterval(logs, falseAlarms);
  return Math.abs(middle) - half > matters;
}

/** Whether a ratio is farther from 1 than another one. */
function isFarther({ ratio }: RatioInterval, other: RatioInterval): boolean {
  return Math.abs(Math.log(ratio)) > Math.abs(Math.log(other.ratio));
}
