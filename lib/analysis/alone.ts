// Rounds held against each side alone, under a longer load. The method: docs/verdicts.md.
import type { Comparison, Metric, Phase, Result, Round } from '../result/result.ts';
import { variantOf } from './comparisons.ts';
import { othersTook } from './continuous.ts';
import { noiseOf } from './limit.ts';
import { metrics } from './metrics.ts';
import { cpuShareOf, phasesIn, roundRps } from './phases.ts';
import {
  extent,
  mean,
  meanInterval,
  minimumRounds,
  minus,
  studentQuantile,
  variance,
} from './statistics.ts';

/** Chance, in a run, that a load alone seems to differ from rounds that it is like, were there no tolerance. */
const falseAlarms = 0.01;
/** A smaller difference, as a logarithm, may come from the caches that sides in turns share. */
const differenceMatters = Math.log(1.03);
/** A pause that is so many times as long as all in the rounds is no chance. The share of the load is that by which two sides may differ. */
const pauseMatters = { share: 0.03, times: 5 };
/** If others had at least this share of the cores in a pause, they caused it. */
const heldUpShare = 0.5;

/** A pause alone that the rounds of a side lack, with the longest one in them. */
interface Pause {
  name: string;
  ms: number;
  inRoundsMs: number;
}

/** A figure alone and in the rounds: the ratio of a comparison, or the responses per second of a side at a rate. */
export interface Check {
  alone: number;
  inRounds: number;
  /** How much they may differ, as a share of the figure: 0.1 is 10 %. */
  tolerated: number;
  /** They surely differ. */
  differs: boolean;
  pause?: Pause;
  /** `alone` is by the shares of a core that the servers used, at the CPU time per request of the rounds. */
  atCostOfRounds?: true;
  /** What the first loads gave, if this check is by the second ones. */
  aloneAtFirst?: number;
}

type Checked = Pick<Result, 'variants' | 'comparisons' | 'alone' | 'search'>;
type AloneLoads = NonNullable<Result['alone']>['sides'];

/** Holds a comparison by this metric against its sides alone; undefined if one was not loaded alone, or has no such figure. */
export function checkOf(
  pair: Pick<Comparison, 'variant' | 'baseline'>,
  metric: Metric,
  result: Checked,
): Check | undefined {
  return confirmed(result, (loads) => checkBy(loads, pair, metric, result));
}

/**
 * The check by the first loads alone, or by those that were made again where it differs. The machine may have been slower during one of
 * the first, so the sides differ only if both say so. A pause needs no second load.
 */
function confirmed(
  { alone }: Checked,
  checkBy: (loads: AloneLoads) => Check | undefined,
): Check | undefined {
  const first = checkBy(alone?.sides ?? []);
  if (first?.differs !== true || first.pause !== undefined) return first;
  const second = checkBy(alone?.again ?? []);
  if (second === undefined) return first;
  const sameWay = first.alone > first.inRounds === second.alone > second.inRounds;
  const differs = second.differs && (sameWay || second.pause !== undefined);
  // Both loads may differ, one in each direction: then a single load may be off by as much as they are from each other.
  const apart = Math.expm1(Math.abs(Math.log(second.alone / first.alone)));
  const tolerated = second.differs && !differs ? apart : second.tolerated;
  return { ...second, differs, tolerated, aloneAtFirst: first.alone };
}

function checkBy(
  loads: AloneLoads,
  { variant, baseline }: Pick<Comparison, 'variant' | 'baseline'>,
  metric: Metric,
  result: Checked,
): Check | undefined {
  const [before, after] = [sideOf(baseline, loads, result), sideOf(variant, loads, result)];
  if (before === undefined || after === undefined) return undefined;
  // A search compares rates that it found. What is alone has such a rate.
  if (result.search !== undefined) return undefined;
  const check = checkByMetric(metric, before, after, result);
  if (check === undefined || !metrics[metric].isOfSpeed) return check;
  // Both sides may pause alike.
  const [less, more] = [pauseOf(before), pauseOf(after)].sort((a, b) => a.share - b.share);
  if (less === undefined || more === undefined || more.share - less.share < pauseMatters.share)
    return check;
  const { name, ms, inRoundsMs } = more;
  return { ...check, differs: true, pause: { name, ms, inRoundsMs } };
}

/** The check by the metric itself or, for requests/s that differ too much between single loads, by what does not change with the machine. */
function checkByMetric(
  metric: Metric,
  before: Side,
  after: Side,
  result: Checked,
): Check | undefined {
  const check = comparedBy(metrics[metric].of, before, after, result);
  if (metric !== 'rps' || check === undefined || check.differs || saysSomething(check))
    return check;
  if ([before, after].some(({ rounds, alone }) => [...rounds, alone].some(othersTook)))
    return check;
  const byShares = comparedBy(({ phases }) => cpuShareOf(phases), before, after, result);
  if (byShares === undefined || byShares.tolerated > check.tolerated) return check;
  const alone = (check.inRounds * byShares.alone) / byShares.inRounds;
  return { ...byShares, alone, inRounds: check.inRounds, atCostOfRounds: true };
}

function comparedBy(
  of: (round: Round) => number,
  before: Side,
  after: Side,
  result: Checked,
): Check | undefined {
  const logsBefore = before.rounds.map((round) => Math.log(of(round)));
  const logsAfter = after.rounds.map((round) => Math.log(of(round)));
  return compared(
    minus(logsAfter, logsBefore),
    // The sides are alone at different times, between which the machine changes as it does from round to round.
    Math.sqrt(variance(logsBefore) + variance(logsAfter)),
    Math.log(of(after.alone)) - Math.log(of(before.alone)),
    takenMore(before) + takenMore(after),
    result,
  );
}

/**
 * Loads alone say something on a ratio if they could have denied it: if they may differ from it by less than it differs from 1, or by no
 * more than 10 %.
 */
export const saysSomething = ({ inRounds, tolerated }: Check): boolean =>
  tolerated <= Math.max(0.1, Math.expm1(Math.abs(Math.log(inRounds))));

/**
 * Holds the responses per second of a side at a rate against those alone, or the rate that a search found; undefined without a rate, and if
 * it was not loaded alone.
 */
export function rateCheckOf(name: string, result: Checked): Check | undefined {
  return confirmed(result, (loads) => rateCheckBy(loads, name, result));
}

function rateCheckBy(loads: AloneLoads, name: string, result: Checked): Check | undefined {
  const side = sideOf(name, loads, result);
  if (side === undefined) return undefined;
  const found = result.search?.found.find(({ variant }) => variant === name);
  if (found !== undefined) return heldRate(side, found.rate);
  if (variantOf(result, name)?.load.rate === undefined) return undefined;
  const logs = side.rounds.map(({ phases }) => Math.log(roundRps(phases)));
  const alone = Math.log(roundRps(side.alone.phases));
  return compared(logs, Math.sqrt(variance(logs)), alone, takenMore(side), result);
}

/** Alone a side answers each request at a rate, or its queue grows: then chance has no part in how many. */
function heldRate({ alone: { phases } }: Side, rate: number): Check {
  const alone = roundRps(phases);
  const tolerated = Math.expm1(differenceMatters);
  return { alone, inRounds: rate, tolerated, differs: alone * (1 + tolerated) < rate };
}

/** @param logs of the rounds @param scatter of a single figure alone @param tolerated beside differenceMatters */
function compared(
  logs: readonly number[],
  scatter: number,
  alone: number,
  tolerated: number,
  { comparisons }: Checked,
): Check | undefined {
  if (![...logs, scatter, alone].every(Number.isFinite)) return undefined;
  const alpha = falseAlarms / Math.max(1, comparisons.length);
  const { middle, half } = meanInterval(logs, alpha);
  const halfAlone = studentQuantile(1 - alpha / 2, logs.length - 1) * scatter;
  const far = half + halfAlone + differenceMatters + tolerated;
  return {
    alone: Math.exp(alone),
    inRounds: Math.exp(middle),
    tolerated: Math.expm1(far),
    differs: Math.abs(alone - middle) > far,
  };
}

interface Side {
  name: string;
  rounds: readonly Round[];
  alone: Round & { phases: [Phase] };
}

/** undefined for a side that was not loaded alone, or has too few rounds. */
function sideOf(name: string, loads: AloneLoads, result: Checked): Side | undefined {
  const phase = loads.find(({ variant }) => variant === name)?.phase;
  const rounds = variantOf(result, name)?.rounds ?? [];
  if (phase === undefined || rounds.length < minimumRounds) return undefined;
  return { name, rounds, alone: { round: 1, phases: [phase] } };
}

/** The share of both sides' cores that others and the host took alone, beyond that of the rounds. */
function takenMore({ rounds, alone }: Side): number {
  const usual = mean(rounds.map(takenIn));
  return Math.max(0, takenIn(alone) - usual);
}

function takenIn(round: Round): number {
  const noise = noiseOf(round);
  if (noise === null) return 0;
  const { serverStealShare, generatorStealShare, serverOthersShare, generatorOthersShare } = noise;
  return serverStealShare + generatorStealShare + serverOthersShare + generatorOthersShare;
}

/** The longest pause of a side alone; its share of the load is 0 if the rounds have such pauses too, or others held it up. */
function pauseOf(side: Side): Pause & { share: number } {
  const [phase] = side.alone.phases;
  const { longestGapMs: ms, seconds, noise } = phase;
  const [, inRoundsMs] = extent(phasesIn(side.rounds).map(({ longestGapMs }) => longestGapMs));
  const isNew = ms > pauseMatters.times * inRoundsMs && (noise?.duringPause ?? 0) < heldUpShare;
  const share = isNew ? Math.max(0, ms / 1000 / seconds - takenMore(side)) : 0;
  return { name: side.name, ms, inRoundsMs, share };
}
