// Disturbances from outside that one side of a comparison had and the other had not.
import type { OneSidedDisturbance } from '../result/finding.ts';
import type { Metric, Phase, VariantResult } from '../result/result.ts';
import { isServerAtLimit, type Shares } from './limit.ts';
import { isLatency, metrics } from './metrics.ts';
import { phasesIn, serverCpuSecondsPerResponse } from './phases.ts';
import { mean, meanInterval, minimumRounds, minus, total } from './statistics.ts';

type Measured = Pick<VariantResult, 'name' | 'rounds' | 'load'>;

export interface OneSided extends OneSidedDisturbance {
  /** The most by which it may move a ratio, as a logarithm. */
  moves: number;
}

/**
 * Returns whether the disturbance alone could explain a ratio by this metric with this interval, so that the servers may be equal. Latency
 * is always in doubt. A server that starves takes fewer requests at a time, which costs more CPU time for each.
 */
export function isDoubtful(
  { kind, moves }: OneSided,
  metric: Metric,
  [low, high]: readonly [number, number],
): boolean {
  if (isLatency(metric)) return true;
  return isMoved(metric, kind) && Math.log(low) < moves && Math.log(high) > -moves;
}

/** Returns whether such a disturbance moves this metric. Memory, for one, is what it is. */
export function isMoved(metric: Metric, kind: OneSided['kind']): boolean {
  if (metric === 'cpu') return kind === 'starved';
  return isLatency(metric) || metrics[metric].isOfSpeed;
}

/** The disturbance from outside that slowed one of two variants; undefined if none did. */
export function oneSided(baseline: Measured, variant: Measured): OneSided | undefined {
  const starved = [oneStarved(baseline, variant), oneStarved(variant, baseline)].sort(
    (a, b) => (b?.moves ?? 0) - (a?.moves ?? 0),
  );
  return oneStopped(baseline, variant) ?? oneStopped(variant, baseline) ?? starved[0];
}

/** A server is never stopped by chance: this difference is twice the tolerance of `same`. */
const stopsMatter = 0.02;
/** A single stop makes an outlier, which has separate rules. */
const fewestStops = 2;

/** @param more the variant that may have been stopped more than the other */
function oneStopped(more: Measured, less: Measured): OneSided | undefined {
  const [stopped, other] = [byRound(more, ofStops), byRound(less, ofStops)];
  const differences = differencesOf(stopped, other);
  const stops = differences.filter((difference) => difference > 0).length;
  if (stops < fewestStops || mean(differences) < stopsMatter) return undefined;
  return {
    kind: 'stopped',
    name: more.name,
    other: less.name,
    share: mean(stopped),
    otherShare: mean(other),
    unlike: null,
    // A server that is stopped by turns may have any ratio.
    moves: Infinity,
  };
}

/**
 * When waits count as one-sided: the chance of saying so if they are not, and how much less of its time one side had. A side that starves
 * takes fewer requests at a time as well, so a ratio is off by up to twice the time lost. Sides with as many requests under way starve
 * alike. If one has far fewer, it starves first, and even a small difference is a sign of that.
 */
const matters = { alike: { chance: 0.05, share: 0.05 }, unlike: { chance: 0.3, share: 0.01 } };
/** Sides are unlike if one has this many times the requests under way of the other. */
const unlikeDepth = 4;
/**
 * Equal waits of this share say nothing about sides that are unlike. The one with fewer requests under way has none left while the
 * generator waits, and the other still has some. In a test with waits of two thirds of the time, a true ratio of 1.09 was measured as 1.62.
 */
const tooMuchIfUnlike = 0.05;

/**
 * A server that needs its whole core loses what others take of it. One that needs a part of it may lose nothing, and wait as long: in a
 * test with waits of nine tenths of the time, a true ratio of 1.00 was measured as 0.14. Two sides may be such servers if one takes so many
 * times the CPU time for a response.
 */
const unlikeCost = 1.5;

const costOf = ({ rounds }: Measured): number => serverCpuSecondsPerResponse(phasesIn(rounds));

const depthOf = ({ load: { connections = 1, streams = 1 } }: Measured): number =>
  connections * streams;

/** A side that waited all the time is taken to have had this share of it. */
const leastLeft = 0.01;
/** ln of the share of its time that a side had, since ratios are judged by their logarithms. */
const leftOf = (waits: number): number => Math.log(Math.max(leastLeft, 1 - waits));

/** @param more the variant that may have waited more for cores that others used */
function oneStarved(more: Measured, less: Measured): OneSided | undefined {
  const [waits, otherWaits] = [byRound(more, ofWaits), byRound(less, ofWaits)];
  const [held, otherHeld] = [byRound(more, ofServerWaits), byRound(less, ofServerWaits)];
  const waited = byRound(more, ({ waitedShare }) => waitedShare);
  const used = byRound(more, ofOthers);
  const uses = differencesOf(used, byRound(less, ofOthers));
  const ofServer = differencesOf(held, otherHeld);
  const differences = uses.map((use, round) => {
    const byItself = (waited[round] ?? NaN) > (used[round] ?? NaN);
    // Tasks wait for each other too, and others may have used spare time: the use must differ as well.
    const tooMuch = byItself ? Math.max(0, (ofServer[round] ?? NaN) - use) : 0;
    return leftOf(otherWaits[round] ?? NaN) - leftOf((waits[round] ?? NaN) - tooMuch);
  });
  if (differences.length < minimumRounds) return undefined;
  const [depth, otherDepth] = [depthOf(more), depthOf(less)];
  const isUnlike = Math.max(depth, otherDepth) >= unlikeDepth * Math.min(depth, otherDepth);
  const { chance, share } = isUnlike ? matters.unlike : matters.alike;
  const { middle, half } = meanInterval(differences, chance);
  const waitedMuch = mean(waits) >= tooMuchIfUnlike;
  const hasFew = waitedMuch && isUnlike && depth < otherDepth;
  const isDear = waitedMuch && costOf(more) >= unlikeCost * costOf(less);
  const isOneSided = middle >= share && middle > half;
  if (!isOneSided && !hasFew && !isDear) return undefined;
  let unlike: OneSided['unlike'] = null;
  if (hasFew) unlike = 'depth';
  else if (isDear) unlike = 'cost';
  const lost = isDear ? -leftOf(mean(waits)) : 0;
  return {
    kind: 'starved',
    name: more.name,
    other: less.name,
    share: mean(waits),
    otherShare: mean(otherWaits),
    unlike,
    moves: isUnlike ? Infinity : 2 * Math.max(middle + half, lost),
  };
}

/**
 * Jobs of a server's own may use this share of its cores, j. They take as long while its requests starve: if it waits for w of the time,
 * each request costs (1 − w) · (1 − j) / (1 − w − j) times as much.
 */
const ownJobs = 0.2;

/**
 * Returns how far waits of both sides may move CPU time per request, if one of them has jobs of its own; undefined for short or unknown
 * waits.
 */
export function starvedAlike(baseline: Measured, variant: Measured): OneSided | undefined {
  const [waits, otherWaits] = [byRound(baseline, ofWaits), byRound(variant, ofWaits)];
  if (waits.length < minimumRounds || otherWaits.length < minimumRounds) return undefined;
  const [share, otherShare] = [mean(waits), mean(otherWaits)];
  if (share < otherShare) return starvedAlike(variant, baseline);
  if (share < tooMuchIfUnlike) return undefined;
  const left = Math.max(leastLeft, 1 - share - ownJobs);
  return {
    kind: 'starved',
    name: baseline.name,
    other: variant.name,
    share,
    otherShare,
    unlike: 'jobs',
    moves: Math.log(((1 - share) * (1 - ownJobs)) / left),
  };
}

/**
 * Returns how far a ratio may be off because others took a part of the server's cores, as a logarithm to add to it. A server at its limit
 * loses requests by that, one that has time left does not. Where both are at their limit, or neither is, both lose alike.
 */
export function lossOf(
  baseline: Measured & Shares,
  variant: Measured & Shares,
  metric: Metric,
): number {
  const [ofBaseline, ofVariant] = [isServerAtLimit(baseline), isServerAtLimit(variant)];
  if (metric !== 'rps' || ofBaseline === ofVariant) return 0;
  return ofVariant ? -leftOf(lostToOthers(variant)) : leftOf(lostToOthers(baseline));
}

/** Returns the share of its time that a server waited for cores which others used, in the mean of its rounds; 0 if unknown. */
function lostToOthers(side: Measured): number {
  const waited = byRound(side, ({ waitedShare }) => waitedShare);
  const used = byRound(side, ofOthers);
  if (waited.length === 0 || used.length === 0) return 0;
  // Both vary from round to round. Tasks of one server wait for each other too.
  return Math.min(mean(waited), mean(used));
}

type ShareOf = (phase: Phase) => number | undefined;

const ofStops: ShareOf = ({ stoppedShare }) => stoppedShare;
const ofOthers: ShareOf = ({ othersShare }) => othersShare;
/** Tasks of one server wait for each other too, so at most others' use counts. */
const ofServerWaits: ShareOf = ({ waitedShare = NaN, othersShare = NaN }) =>
  Math.min(1, waitedShare, othersShare);
/** Includes the generator's wait, which leaves the server idle. */
const ofWaits: ShareOf = (phase) =>
  Math.min(1, (ofServerWaits(phase) ?? NaN) + (phase.generatorWaitedShare ?? 0));

/** A share in each round; empty if it is unknown in one. */
function byRound({ rounds }: Measured, shareOf: ShareOf): number[] {
  const shares = rounds.flatMap(({ phases }) => {
    const seconds = total(phases, (phase) => phase.seconds);
    const share = total(phases, (phase) => (shareOf(phase) ?? NaN) * phase.seconds) / seconds;
    return Number.isFinite(share) ? share : [];
  });
  return shares.length === rounds.length ? shares : [];
}

/** Empty if one side is unknown. */
function differencesOf(more: readonly number[], less: readonly number[]): number[] {
  return more.length === less.length ? minus(more, less) : [];
}
