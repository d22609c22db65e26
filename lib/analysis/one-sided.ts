// Disturbances from outside that one side of a comparison had and the other had not.
import type { Phase, VariantResult } from '../result/result.ts';
import { mean, meanInterval, minimumRounds, total } from './statistics.ts';

type Measured = Pick<VariantResult, 'name' | 'rounds'>;

/** `name` was stopped, or waited for cores that another program used, and `other` less or not at all. */
export interface OneSided {
  kind: 'stopped' | 'starved';
  name: string;
  other: string;
  /** The shares of their time, 0 to 1. */
  share: number;
  otherShare: number;
  /** By how much it may move a ratio, as a logarithm. */
  moves: number;
}

/** An effect that is so many times as large as what a disturbance may move is no doubt one, if not of just this size. */
const beyondDoubt = 3;

/** Whether a ratio with this interval could be that of equal servers without the disturbance, or far from its true size. */
export function mayExplain({ moves }: OneSided, [low, high]: readonly [number, number]): boolean {
  const [nearest, farthest] = [Math.log(low), Math.log(high)];
  return nearest < beyondDoubt * moves && farthest > -beyondDoubt * moves;
}

/** The disturbance from outside that slowed one of two variants; undefined if none did. */
export function oneSided(baseline: Measured, variant: Measured): OneSided | undefined {
  return (
    oneStopped(baseline, variant) ??
    oneStopped(variant, baseline) ??
    oneStarved(baseline, variant) ??
    oneStarved(variant, baseline)
  );
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
    // Nothing is known of a server that is stopped by turns.
    moves: Infinity,
  };
}

/**
 * Chance of calling waits one-sided that are not. A side that starves takes fewer requests at a time as well, so a ratio is off by up to
 * twice as much as the time that was left: with this chance even that is within the interval, where the difference is within chance.
 */
const falseWaits = 0.3;
/**
 * One variant had this share less of the time that the other had: it moves a ratio by as much as the tolerance of `same`.
 */
const waitsMatter = 0.01;
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
    const byItself = (waited[round] as number) > (used[round] as number);
    // The server's tasks also waited for each other, and other programs may only have used spare time. So their usage must differ
    // between the sides as well.
    const tooMuch = byItself ? Math.max(0, (ofServer[round] as number) - use) : 0;
    return leftOf(otherWaits[round] as number) - leftOf((waits[round] as number) - tooMuch);
  });
  if (differences.length < minimumRounds) return undefined;
  const { middle, half } = meanInterval(differences, falseWaits);
  if (middle < waitsMatter || middle <= half) return undefined;
  return {
    kind: 'starved',
    name: more.name,
    other: less.name,
    share: mean(waits),
    otherShare: mean(otherWaits),
    // Sides of unequal depth starve differently where both have little time left: two thirds denied to both made 1.62 of 1.09.
    moves: middle + half + Math.max(mean(waits), mean(otherWaits)) ** 2,
  };
}

type ShareOf = (phase: Phase) => number | undefined;

const ofStops: ShareOf = ({ stoppedShare }) => stoppedShare;
const ofOthers: ShareOf = ({ othersShare }) => othersShare;
/** Tasks of one server wait for each other too: no more than others' use counts. */
const ofServerWaits: ShareOf = ({ waitedShare = NaN, othersShare = NaN }) =>
  Math.min(1, waitedShare, othersShare);
/** With the generator's wait, which leaves the server idle. */
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
  if (more.length !== less.length) return [];
  return more.map((share, round) => share - (less[round] as number));
}
