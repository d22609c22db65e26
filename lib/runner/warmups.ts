// Warm-ups that differ from the plan's. The method: docs/verdicts.md.
import { coldCosts } from '../analysis/continuous.ts';
import { hasPaused, serverCpuSecondsPerResponse } from '../analysis/phases.ts';
import { median, total } from '../analysis/statistics.ts';
import { present } from '../present.ts';
import type { Phase } from '../result/result.ts';
import { isAtRate, type Load } from '../scenario/load.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { isConfigured } from '../scenario/variants.ts';
import type { RunningServer } from '../servers/index.ts';
import { drawnBy, type Group, type KeptRound, type PlannedVariant, type Stage } from './plan.ts';

/** A server that waits and used fewer cores had time left: costs decided nothing. As in xk6-loadgen/engine/warmup.go. */
const coresAtLimit = 0.5;

/** Longer pauses between stalls are not waited for. */
const longestExtraSeconds = 2;

/** What earlier rounds have shown. */
interface Seen {
  kept: readonly KeptRound[];
  /** All sides' in the last try. */
  rps: Readonly<Record<string, number>>;
}

/** @param seed of the round */
export function withRoundsWarmups(groups: readonly Group[], seen: Seen, seed: string): Group[] {
  const pausing = pausingIn(seen.kept);
  return groups.map((planned) => {
    const known = withKnownWarmup(planned, seen.kept);
    const coarse = withCoarseWarmup(withRandomWarmup(known, pausing, seed), seen.rps);
    return withSharedWarmup(coarse, seen.kept.at(-1)?.outcomes);
  });
}

/** A server whose config has no backends and no code is as fast from the first request on: only noise would make its warm-up go on. */
export function warmAtOnce(
  load: Load,
  spec: ServerSpec,
  { upstreams, runsCode }: Pick<RunningServer, 'upstreams' | 'runsCode'>,
): Load {
  const isCold = !isConfigured(spec) || upstreams.length > 0 || runsCode;
  if (isCold || load.warmupLimitSeconds === undefined) return load;
  return { ...load, warmupLimitSeconds: 0 };
}

/** None at a rate, and where the user or the load names its length. */
export function mostExtraWarmupSeconds(load: Load): number {
  const isNamed = load.warmupLimitSeconds === undefined;
  return isNamed || isAtRate(load) ? 0 : Math.min(load.durationSeconds ?? 0, longestExtraSeconds);
}

/**
 * A load that is alone, or whose server pauses, warms up longer by a random time: stalls at regular times from the first request on would
 * otherwise come at the same places of the window in each round. @param pausing variants whose servers paused in earlier rounds
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

/**
 * Sides warm up together if in the last round all waited for something else than the CPU, and together used less than half a core of the
 * servers' and of the generator's.
 */
export function withSharedWarmup(group: Group, last: KeptRound['outcomes'] | undefined): Group {
  const phases = group.sides.flatMap(({ variant }) => last?.get(variant.name)?.phases[0] ?? []);
  if (phases.length < Math.max(2, group.sides.length)) return group;
  const cores = (of: (phase: Phase) => number) =>
    total(phases, (phase) => of(phase) / phase.seconds);
  const leaveIdle =
    phases.every(({ turns }) => turns?.waits === true) &&
    cores((phase) => phase.serverCpuSeconds ?? Infinity) < coresAtLimit &&
    cores((phase) => phase.generatorCpuSeconds) < coresAtLimit;
  return leaveIdle ? { ...group, warmTogether: true } : group;
}

/**
 * How much faster a server may still get, as a part of the smallest difference from another side, in logarithms. An interval may be twice
 * as wide (exactPart in lib/analysis/verdict.ts).
 */
const gainPart = 0.05;

/**
 * Where sides differ much, warm-ups end earlier. The engine tolerates 3 % anyway. @param rps of all sides in the last try; of fewer:
 * unknown
 */
export function withCoarseWarmup(group: Group, rps: Readonly<Record<string, number>>): Group {
  const logs = Object.values(rps)
    .map(Math.log)
    .filter(Number.isFinite)
    .toSorted((a, b) => a - b);
  if (logs.length < Math.max(2, group.sides.length)) return group;
  const differences = logs.slice(1).map((log, place) => log - (logs[place] as number));
  const warmupGain = Math.expm1(gainPart * Math.min(...differences));
  const sides = group.sides.map((side) => ({ ...side, load: { ...side.load, warmupGain } }));
  return { ...group, sides };
}

/**
 * A server that took long to warm up in each round has half of the shortest of these warm-ups before anything is judged: interpreted code
 * is as slow for a while, before a compiler begins, and seems warm.
 */
export function withKnownWarmup(group: Group, kept: readonly KeptRound[]): Group {
  const sides = group.sides.map((side) => {
    const { load, variant } = side;
    const ends = kept.map(({ outcomes }) => outcomes.get(variant.name)?.phases[0]?.continuous);
    const shortest = Math.min(...ends.map((end) => end?.warmupSeconds ?? 0));
    const isKnown = kept.length > 0 && load.warmupLimitSeconds !== undefined;
    if (!isKnown || shortest / 2 <= load.warmupSeconds) return side;
    return { ...side, load: { ...load, warmupSeconds: shortest / 2 } };
  });
  return { ...group, sides };
}

/** Whose server paused so long that it matters how often. */
function pausingIn(rounds: readonly Pick<KeptRound, 'outcomes'>[]): Set<string> {
  const pausing = new Set<string>();
  for (const { outcomes } of rounds)
    for (const [variant, { phases }] of outcomes) if (phases.some(hasPaused)) pausing.add(variant);
  return pausing;
}

const timesLonger = 4;
/**
 * Rounds whose warm-ups cost at most so much more than their windows were warm. A disturbed end is 0.8 to 1.3 times the window of a warm
 * server.
 */
const asWarm = 1.1;
const fewestWarmRounds = 2;

/** CPU time of a response by variant, in microseconds, in windows that surely were warm. */
export function warmCosts(kept: readonly KeptRound[]): Map<string, number> {
  const costs = new Map<string, number>();
  if (kept.length < fewestWarmRounds) return costs;
  for (const name of kept[0]?.outcomes.keys() ?? []) {
    const phases = kept.flatMap(({ outcomes }) => outcomes.get(name)?.phases[0] ?? []);
    const ends = phases.map(({ continuous }) => continuous?.cpuMicros ?? Infinity);
    const cost = median(phases.map((phase) => 1e6 * serverCpuSecondsPerResponse([phase])));
    if (median(ends) <= asWarm * cost) costs.set(name, cost);
  }
  return costs;
}

/**
 * The next warm-up of a server at its limit that still got faster, if its length is the engine's to choose and can grow.
 * @param phases of a round @param warmCost see warmCosts @param servedSeconds of load before these
 * @returns seconds: the next length; before, after: CPU time per response in microseconds at the warm-up's end and in the window
 */
export function longerWarmup(
  load: Load,
  phases: readonly Phase[],
  warmCost?: number,
  servedSeconds = 0,
) {
  const costs = coldCosts(phases);
  const { rps = 0, warmupSeconds = 0 } = phases[0]?.continuous ?? {};
  const hadSeconds = servedSeconds + warmupSeconds;
  const most = load.warmupLimitSeconds ?? 0;
  if (costs === undefined || hadSeconds >= most) return undefined;
  if (warmCost !== undefined) {
    const ratio = costs.after / warmCost;
    // If it costs far less, those were cold.
    if (ratio <= asWarm && ratio >= 1 / asWarm) return undefined;
  }
  if (phases[0]?.turns?.waits === true && rps * costs.before < 1e6 * coresAtLimit) return undefined;
  return { ...costs, hadSeconds, seconds: Math.min(most, timesLonger * hadSeconds) };
}

/** Subtracts the part of the new warm-up that they had. @param group with the new warm-ups */
export function goingOn(stages: readonly Stage[], { sides }: Group): Stage[] {
  return stages.map((stage, side) => {
    const { load } = sides[side] as PlannedVariant;
    const { servedSeconds = 0, planned } = stage;
    const warmupSeconds = Math.max(planned.load.warmupSeconds, load.warmupSeconds - servedSeconds);
    const { warmupLimitSeconds } = planned.load;
    const going = { ...load, ...present({ warmupLimitSeconds }), warmupSeconds };
    return { ...stage, planned: { ...planned, load: going } };
  });
}

/** @param seconds by variant */
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
