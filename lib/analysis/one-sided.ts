// Disturbances from outside of one side alone.
import type { Metric, Phase, VariantResult } from '../result/result.ts';
import { isLatency, metrics } from './metrics.ts';
import { phasesIn, serverCpuSecondsPerResponse } from './phases.ts';
import { mean, meanInterval, minimumRounds, total } from './statistics.ts';

type Measured = Pick<VariantResult, 'name' | 'rounds' | 'load'>;

/** `name` was stopped, or waited for cores that others used, and `other` less or not at all. */
export interface OneSided {
  kind: 'stopped' | 'starved';
  name: string;
  other: string;
  /** Parts of their time. */
  share: number;
  otherShare: number;
  /** Why waits cost this side more: fewer requests under way, more CPU time each, or jobs of its own, then for fewer requests. */
  unlike: 'depth' | 'cost' | 'jobs' | null;
  /** A ratio, at most, as a logarithm. */
  moves: number;
}

/**
 * Whether equal servers could have this ratio with the disturbance. Latency always could. A starving server takes fewer requests at a time,
 * which cost more each.
 */
export function isDoubtful(
  { kind, moves }: OneSided,
  metric: Metric,
  [low, high]: readonly [number, number],
): boolean {
  if (isLatency(metric)) return true;
  const isMoved = metrics[metric].isOfSpeed || (metric === 'cpu' && kind === 'starved');
  return isMoved && Math.log(low) < moves && Math.log(high) > -moves;
}

/** undefined if none slowed one alone. */
export function oneSided(baseline: Measured, variant: Measured): OneSided | undefined {
  const starved = [oneStarved(baseline, variant), oneStarved(variant, baseline)].sort(
    (a, b) => (b?.moves ?? 0) - (a?.moves ?? 0),
  );
  return oneStopped(baseline, variant) ?? oneStopped(variant, baseline) ?? starved[0];
}

/** Twice the tolerance of `same`: no server is stopped by chance. */
const stopsMatter = 0.02;
/** A single one makes an outlier. */
const fewestStops = 2;

/** @param more may have been stopped more */
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
    // A server stopped by turns may have any ratio.
    moves: Infinity,
  };
}

/**
 * When waits are one-sided: the chance of saying so if they are not, and how much less of its time one side had. As a starving side takes
 * fewer requests at a time, a ratio is off by up to twice that. With far fewer requests under way, a side starves first.
 */
const matters = { alike: { chance: 0.05, share: 0.05 }, unlike: { chance: 0.3, share: 0.01 } };
const unlikeDepth = 4;
/**
 * Equal waits of this share say nothing about unlike sides: one with fewer requests under way has none left while the generator waits. Two
 * thirds of the time made 1.62 of 1.09.
 */
const tooMuchIfUnlike = 0.05;

/**
 * A server that needs a part of its core may lose nothing, and wait as long as one that needs all: nine tenths of the time made 0.14 of
 * 1.00. Two may be such if one takes so many times the CPU time for a response.
 */
const unlikeCost = 1.5;

const costOf = ({ rounds }: Measured): number => serverCpuSecondsPerResponse(phasesIn(rounds));

const depthOf = ({ load: { connections = 1, streams = 1 } }: Measured): number =>
  connections * streams;

/** A side that waited throughout counts as having had this share. */
const leastLeft = 0.01;
/** ln of the share of its time that a side had. */
const leftOf = (waits: number): number => Math.log(Math.max(leastLeft, 1 - waits));

/** @param more may have waited more for cores that others used */
function oneStarved(more: Measured, less: Measured): OneSided | undefined {
  const [waits, otherWaits] = [byRound(more, ofWaits), byRound(less, ofWaits)];
  const [held, otherHeld] = [byRound(more, ofServerWaits), byRound(less, ofServerWaits)];
  const waited = byRound(more, ({ waitedShare }) => waitedShare);
  const used = byRound(more, ofOthers);
  const uses = differencesOf(used, byRound(less, ofOthers));
  const ofServer = differencesOf(held, otherHeld);
  const differences = uses.map((use, round) => {
    const byItself = (waited[round] as number) > (used[round] as number);
    // Tasks wait for each other too, and others may have used spare time: the use must differ as well.
    const tooMuch = byItself ? Math.max(0, (ofServer[round] as number) - use) : 0;
    return leftOf(otherWaits[round] as number) - leftOf((waits[round] as number) - tooMuch);
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

/** Part j of the cores for jobs of its own, which go on in waits w: a request then costs (1 − w) · (1 − j) / (1 − w − j) times as much. */
const ownJobs = 0.2;

/** How far equal waits may move CPU time per request through jobs of one side; undefined for short or unknown waits. */
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

type ShareOf = (phase: Phase) => number | undefined;

const ofStops: ShareOf = ({ stoppedShare }) => stoppedShare;
const ofOthers: ShareOf = ({ othersShare }) => othersShare;
/** No more than others' use counts: a server's tasks wait for each other too. */
const ofServerWaits: ShareOf = ({ waitedShare = NaN, othersShare = NaN }) =>
  Math.min(1, waitedShare, othersShare);
/** The generator's wait leaves the server idle. */
const ofWaits: ShareOf = (phase) =>
  Math.min(1, (ofServerWaits(phase) ?? NaN) + (phase.generatorWaitedShare ?? 0));

/** By round; empty if one is unknown. */
function byRound({ rounds }: Measured, shareOf: ShareOf): number[] {
  const shares = rounds.flatMap(({ phases }) => {
    const seconds = total(phases, (phase) => phase.seconds);
    const share = total(phases, (phase) => (shareOf(phase) ?? NaN) * phase.seconds) / seconds;
    return Number.isFinite(share) ? share : [];
  });
  return shares.length === rounds.length ? shares : [];
}

/** Empty if unknown. */
function differencesOf(more: readonly number[], less: readonly number[]): number[] {
  if (more.length !== less.length) return [];
  return more.map((share, round) => share - (less[round] as number));
}
