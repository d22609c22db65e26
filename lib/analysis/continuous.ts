// Compares load in turns with continuous load: the end of each warm-up. The method: docs/verdicts.md.
import { present } from '../present.ts';
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { cpuShareOf, isFailing, serverCpuSecondsPerResponse, successRatioOf } from './phases.ts';
import {
  alphaOf,
  logRatios,
  mean,
  meanInterval,
  minus,
  ratioInterval,
  type RatioInterval,
} from './statistics.ts';

/**
 * A server was not warm if its CPU time per response falls below this share of its value at the warm-up's end. Noise is a tenth at most.
 */
const coldBelow = 0.75;

/** With fewer responses at the end of a warm-up, the CPU time of each is mostly chance. */
const fewestResponses = 30;

/** A rate limit has recovered during the turns of others if the ramp of a turn has this multiple of the requests/s of its window. */
const recoveredFrom = 2;

/**
 * Returns whether most of a turn's ramp was answered from what a rate limit had left over. Such responses come in bursts, which cost less
 * each.
 */
function hasRecovered({ turns, requests, rps }: Phase): boolean {
  if (turns === null) return false;
  const rampSeconds = (turns.count * turns.rampMs) / 1000;
  return turns.responses - requests > recoveredFrom * rps * rampSeconds;
}

/** Returns whether the engine watched a queue, as it does at a rate. */
const isAtRate = ({ queueGrowth }: Phase): boolean => (queueGrowth ?? null) !== null;

/**
 * CPU time per response in microseconds at the end of a warm-up and after it, if it fell so much that the server was still cold; otherwise
 * undefined. Also undefined if it is unknown, if requests fail (they have costs of their own), if few responses have an uneven cost, and if
 * a rate limit had recovered.
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

/** A smaller difference between turns and continuous load may come from the methods: from caches, and from how warm a server is. */
const leastDifference = Math.log(1.03);
/** Like leastDifference, for a single side. It has no interval, and includes the machine's noise between warm-up and turns. */
const sideMatters = Math.log(1.1);
/**
 * The chances of a false alarm, over all looks, if no difference were tolerated. A machine changes its speed between a warm-up and turns,
 * by a tenth and more, and with it requests/s. The share of a core that a server uses stays the same then, so that it shows four times
 * smaller differences: a rate limit or a quota that recovers while others have their turns is in it. What turns change in the work of each
 * request is in requests/s alone.
 */
const falseAlarms = { cpuShare: 0.02, rps: 0.002 };

type Rounds = readonly Pick<Round, 'phases'>[];

/** A figure of continuous load and in turns, by round. */
type Both = [continuous: number[], inTurns: number[]];

/** Requests/s; undefined without turns, at a rate, and without a warm-up. */
function bothOf(rounds: Rounds): Both | undefined {
  const pairs = rounds.flatMap(({ phases: [first] }) => {
    if (first === undefined || isAtRate(first) || (first.turns?.count ?? 1) === 1) return [];
    if (first.continuous?.apart === true) return [];
    const continuousRps = first.continuous?.rps ?? 0;
    return continuousRps > 0 && first.rps > 0 ? [{ continuousRps, rps: first.rps }] : [];
  });
  if (pairs.length === 0 || pairs.length < rounds.length) return undefined;
  return [pairs.map(({ continuousRps }) => continuousRps), pairs.map(({ rps }) => rps)];
}

/** What others and the host take of a server's cores changes from one moment to the next. Above this share, it is no longer small. */
const othersMatter = 0.05;

/** Returns whether others took so much of the server's cores that its share of them says little. */
export function othersTook({ phases }: Rounds[number]): boolean {
  return phases.some(
    ({ noise }) =>
      noise !== null && noise.serverOthersShare + noise.serverStealShare > othersMatter,
  );
}

/** CPU seconds of the server per second; undefined if those of a round are unknown, or others took a part of its cores. */
function cpuSharesOf(rounds: Rounds): Both | undefined {
  if (rounds.some(othersTook)) return undefined;
  const inTurns = rounds.map(({ phases }) => cpuShareOf(phases.slice(0, 1)));
  const continuous = rounds.map(({ phases: [first] }) => {
    const { rps = 0, cpuMicros = 0 } = first?.continuous ?? {};
    return (rps * cpuMicros) / 1e6;
  });
  const isKnown = [...inTurns, ...continuous].every((share) => share > 0);
  return isKnown ? [continuous, inTurns] : undefined;
}

/**
 * Requests/s in turns as a multiple of those of continuous load, with a 95 % interval; undefined if there is no such pair in each round.
 */
export function againstContinuous(rounds: Rounds): RatioInterval | undefined {
  const both = bothOf(rounds);
  return both && ratioInterval(...both);
}

/** A side's rounds held against its continuous load; its CPU shares only if they are known. */
interface Held {
  name: string;
  rps: Both;
  cpuShare?: Both;
}

/** The figure of a side in turns as a multiple of that of continuous load. */
interface Disagreement extends RatioInterval {
  name: string;
  of: 'cpuShare' | 'rps';
}

/**
 * Returns a side with a figure that in turns surely differs from continuous load; undefined if there is none. Each side is tested, and how
 * much more each other side differs than the first one, because a verdict is about that. Differences within the interval of the ratio in
 * turns are tolerated.
 * @param sides of a group, with at least two rounds
 * @param share of the chance of a false alarm that this look has, 0 to 1
 */
export function turnsDisagree(
  sides: readonly Pick<VariantResult, 'name' | 'rounds'>[],
  share = 1,
): Disagreement | undefined {
  const held = sides.flatMap(({ name, rounds }): Held[] => {
    const rps = bothOf(rounds);
    if (rps === undefined) return [];
    return [{ name, rps, ...present({ cpuShare: cpuSharesOf(rounds) }) }];
  });
  return (
    differing(held, 'cpuShare', falseAlarms.cpuShare * share) ??
    differing(held, 'rps', falseAlarms.rps * share)
  );
}

function differing(
  held: readonly Held[],
  of: Disagreement['of'],
  alpha: number,
): Disagreement | undefined {
  const known = held.flatMap((side) => {
    const figures = side[of];
    if (figures === undefined) return [];
    const found = { name: side.name, of, ...ratioInterval(...figures) };
    return [{ found, logs: logRatios(...figures), rps: side.rps[1] }];
  });
  const [first, ...others] = known;
  // A share that falls is that of a warm-up that compiled or collected garbage.
  const counts = ({ ratio }: Disagreement) => of === 'rps' || ratio > 1;
  for (const { found, logs } of known) {
    const { middle, half } = meanInterval(logs, alpha);
    if (Math.abs(middle) - half > sideMatters && counts(found)) return found;
  }
  for (const { found, logs, rps } of others) {
    if (first === undefined) break;
    const { middle, half } = meanInterval(minus(logs, first.logs), alpha);
    const inTurns = meanInterval(logRatios(first.rps, rps), alphaOf());
    if (Math.abs(middle) <= Math.max(half, inTurns.half, leastDifference)) continue;
    const farther = isFarther(first.logs, logs) ? first.found : found;
    if (counts(farther)) return farther;
  }
  return undefined;
}

function isFarther(logs: readonly number[], other: readonly number[]): boolean {
  return Math.abs(mean(logs)) > Math.abs(mean(other));
}
