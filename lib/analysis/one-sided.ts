// Disturbances from outside that one side of a comparison had and the other had not.
import { percent } from '../format.ts';
import type { Phase, VariantResult } from '../result/result.ts';
import { othersMatter } from './limit.ts';
import { mean, meanInterval, total } from './statistics.ts';

type Rounds = Pick<VariantResult, 'name' | 'rounds'>;
type Share = 'stoppedShare' | 'starvedShare';

/** A server is never stopped by chance: this difference is twice the tolerance of `same`. */
const stopsMatter = 0.02;
/** So that a single stop, which makes an outlier, is none. */
const fewestStops = 2;

/** Chance of calling waits one-sided that are not. */
const falseWaits = 0.01;

/** `why` is a clause on both variants, `remedy` the next step. */
interface OneSided {
  why: string;
  remedy: string;
}

/** Says how a disturbance from outside slowed one of two variants; undefined if none did. */
export function oneSided(baseline: Rounds, variant: Rounds): OneSided | undefined {
  return oneStopped(baseline, variant) ?? oneStarved(baseline, variant);
}

function oneStopped(baseline: Rounds, variant: Rounds): OneSided | undefined {
  const shares = sharesOf('stoppedShare', baseline, variant);
  if (shares === undefined) return undefined;
  const { more, less, differences } = shares;
  const stops = differences.filter((difference) => difference > 0).length;
  if (mean(differences) < stopsMatter || stops < fewestStops) return undefined;
  return {
    why: `${more.name} was stopped in ${percent(more.mean)} of its time${less.mean === 0 ? '' : `, ${less.name} in ${percent(less.mean)}`}`,
    remedy: 'find what stops it (SIGSTOP, a debugger)',
  };
}

function oneStarved(baseline: Rounds, variant: Rounds): OneSided | undefined {
  const shares = sharesOf('starvedShare', baseline, variant);
  if (shares === undefined || shares.differences.length < 2) return undefined;
  const { more, less, differences } = shares;
  const { middle, half } = meanInterval(differences, falseWaits);
  if (middle < othersMatter || middle <= half) return undefined;
  return {
    why: `another program had the cores for which ${more.name} waited in ${percent(more.mean)} of its time, ${less.name} in ${percent(less.mean)}`,
    remedy: 'end that program',
  };
}

/** The means of both, and how much more the one with more had in each round; undefined if a round has none. */
function sharesOf(share: Share, baseline: Rounds, variant: Rounds) {
  const [one, other] = [baseline, variant].map(({ name, rounds }) => {
    const each = rounds.flatMap(({ phases }) => shareIn(phases, share) ?? []);
    return { name, each, mean: each.length === 0 ? 0 : mean(each) };
  });
  const count = baseline.rounds.length;
  if (!one || !other || count === 0) return undefined;
  if (one.each.length < count || other.each.length < count) return undefined;
  const [more, less] = one.mean > other.mean ? [one, other] : [other, one];
  const differences = more.each.map((value, round) => value - (less.each[round] as number));
  return { more, less, differences };
}

function shareIn(phases: readonly Phase[], share: Share): number | undefined {
  if (phases.some((phase) => phase[share] === undefined)) return undefined;
  const seconds = total(phases, (phase) => phase.seconds);
  return seconds > 0
    ? total(phases, (phase) => (phase[share] ?? 0) * phase.seconds) / seconds
    : undefined;
}
