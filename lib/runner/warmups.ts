// The lengths of warm-ups where a round's differ from those of the plan. The method: docs/verdicts.md.
import { hasPaused } from '../analysis/phases.ts';
import { isAtRate, type Load } from '../scenario/load.ts';
import { drawnBy, type Group, type KeptRound, type PlannedVariant } from './plan.ts';

/** Longer pauses between a server's stalls would take too long to wait for. */
const longestExtraSeconds = 2;

/** How much longer the warm-up of a load that is alone may be: not at all at a rate, and where the user or the load names its length. */
export function mostExtraWarmupSeconds(load: Load): number {
  const isNamed = load.warmupLimitSeconds === undefined;
  return isNamed || isAtRate(load) ? 0 : Math.min(load.durationSeconds ?? 0, longestExtraSeconds);
}

/**
 * The group of a round: a load that is alone has a warm-up that is longer by a random time, and in turns so has one whose server pauses.
 * A server that stalls at regular times from its first request on would otherwise do so at the same places of the window, and as often,
 * in each round.
 * @param pausing variants whose servers paused in earlier rounds
 */
export function withRandomWarmup(group: Group, pausing: ReadonlySet<string>, seed: string): Group {
  const isAlone = group.sides.length === 1;
  const sides = group.sides.map((side) => {
    const { variant, load } = side;
    if (!isAlone && !pausing.has(variant.name)) return side;
    const extraSeconds = drawnBy(`${seed} ${variant.name} warm-up`) * mostExtraWarmupSeconds(load);
    return { ...side, load: { ...load, warmupSeconds: load.warmupSeconds + extraSeconds } };
  });
  return { ...group, sides };
}

/** The variants whose server paused for so long in a round that it matters how often it does. */
export function pausingIn(rounds: readonly Pick<KeptRound, 'outcomes'>[]): Set<string> {
  const pausing = new Set<string>();
  for (const { outcomes } of rounds)
    for (const [variant, { phases }] of outcomes) if (phases.some(hasPaused)) pausing.add(variant);
  return pausing;
}

/** Returns the groups with these warm-ups, in seconds by variant. */
export function withWarmups(
  groups: readonly Group[],
  warmupSeconds: ReadonlyMap<string, number>,
): Group[] {
  const lengthened = (side: PlannedVariant): PlannedVariant => {
    const seconds = warmupSeconds.get(side.variant.name);
    if (seconds === undefined) return side;
    return { ...side, load: { ...side.load, warmupSeconds: seconds } };
  };
  return groups.map((group) => ({ ...group, sides: group.sides.map(lengthened) }));
}
