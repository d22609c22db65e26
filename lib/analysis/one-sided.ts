// Disturbances from outside that one side of a comparison had and the other had not.
import type { Phase, VariantResult } from '../result/result.ts';
import { othersMatter } from './limit.ts';
import { mean, meanInterval, minimumRounds, total, type RatioInterval } from './statistics.ts';

type Measured = Pick<VariantResult, 'name' | 'rounds'>;

/** `name` was stopped, or waited for cores that another program used, and `other` less or not at all. */
export interface OneSided {
  kind: 'stopped' | 'starved';
  name: string;
  other: string;
  /** The shares of their time, 0 to 1. */
  share: number;
  otherShare: number;
  /** How far it may have moved the ratio of requests/s, variant to baseline: from `[0]` to `[1]` times the true one. */
  moved: readonly [number, number];
}

/** The disturbance from outside that slowed one of two variants; undefined if none did. */
export function oneSided(baseline: Measured, variant: Measured): OneSided | undefined {
  return (
    oneStopped(baseline, variant) ??
    oneStopped(variant, baseline) ??
    oneStarved(baseline, variant, (factor) => [1, factor]) ??
    oneStarved(variant, baseline, (factor) => [1 / factor, 1])
  );
}

/** Whether an interval of a ratio could be that of equal servers without the disturbance. */
export function mayExplain(
  { moved: [low, high] }: OneSided,
  interval: RatioInterval['interval'],
): boolean {
  return interval[0] / high <= 1 && interval[1] / low >= 1;
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
    moved: [0, Infinity],
  };
}

/** Chance of calling waits one-sided that are not. */
const falseWaits = 0.05;

/** @param more the variant that may have waited more for cores that others used @param movedBy what a loss by this factor does */
function oneStarved(
  more: Measured,
  less: Measured,
  movedBy: (factor: number) => OneSided['moved'],
): OneSided | undefined {
  const [waits, otherWaits] = [byRound(more, ofWaits), byRound(less, ofWaits)];
  const uses = differencesOf(byRound(more, ofOthers), byRound(less, ofOthers));
  const waited = byRound(more, ({ waitedShare }) => waitedShare);
  const differences = differencesOf(waits, otherWaits).map((difference, round) => {
    const byItself = (waited[round] as number) > (waits[round] as number);
    // The server's tasks also waited for each other, and other programs may only have used spare time. So their usage must differ
    // between the sides as well.
    return byItself ? Math.min(difference, uses[round] as number) : difference;
  });
  if (differences.length < minimumRounds) return undefined;
  const { middle, half } = meanInterval(differences, falseWaits);
  if (middle < othersMatter || middle <= half) return undefined;
  const [share, otherShare] = [mean(waits), mean(otherWaits)];
  return {
    kind: 'starved',
    name: more.name,
    other: less.name,
    share,
    otherShare,
    // Twice as much as the shares say, which are samples.
    moved: movedBy(((1 - otherShare) / Math.max(0.01, 1 - share)) ** 2),
  };
}

type ShareOf = (phase: Phase) => number | undefined;

const ofStops: ShareOf = ({ stoppedShare }) => stoppedShare;
const ofOthers: ShareOf = ({ othersShare }) => othersShare;
/** Tasks of one server wait for each other too: no more than others' use counts. */
const ofWaits: ShareOf = ({ waitedShare = NaN, othersShare = NaN }) =>
  Math.min(1, waitedShare, othersShare);

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
