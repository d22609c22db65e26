// The lengths of warm-ups where a round's differ from those of the plan. The method: docs/verdicts.md.
import { coldCosts } from '../analysis/continuous.ts';
import { hasPaused, serverCpuSecondsPerResponse } from '../analysis/phases.ts';
import { median, minus, total } from '../analysis/statistics.ts';
import { present, zip } from '../present.ts';
import type { Phase } from '../result/result.ts';
import { isAtRate, type Load } from '../scenario/load.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { isConfigured, programOf } from '../scenario/variants.ts';
import type { RunningServer } from '../servers/index.ts';
import { drawnBy, type Group, type KeptRound, type PlannedVariant, type Stage } from './plan.ts';

/**
 * A server that waits and used fewer cores had time left, so the CPU time of a response decided nothing. The limit is the same as in
 * xk6-loadgen/engine/warmup.go.
 */
const coresAtLimit = 0.5;

/** Longer pauses between a server's stalls would take too long to wait for. */
const longestExtraSeconds = 2;

/** What earlier rounds have shown. */
interface Seen {
  kept: readonly KeptRound[];
  /** Requests/s of all sides in the last try at a round. */
  rps: Readonly<Record<string, number>>;
}

/** The groups of a round, with its warm-ups. @param seed of the round */
export function withRoundsWarmups(groups: readonly Group[], seen: Seen, seed: string): Group[] {
  const pausing = ofSameProgram(groups, pausingIn(seen.kept));
  const bounded = withBoundedWarmups(groups, seen.kept);
  return withKnownWarmups(bounded, seen.kept).map((known) => {
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

/**
 * Returns how much longer the warm-up of a load that is alone may be: not at all at a rate, and where the user or the load names its
 * length.
 */
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

/**
 * The group of a round: its sides warm up together if in the last round all of them waited for something else than the CPU, and all
 * together used less than half a core of the servers' and of the generator's.
 * @param last outcomes of that round; undefined before
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
 * How much faster a server may still get when its warm-up ends, as a part of the smallest difference from another side, in logarithms. An
 * interval may be twice as wide (exactPart in lib/analysis/verdict.ts).
 */
const gainPart = 0.05;

/**
 * The group of a round: where sides differ much, their warm-ups may end while they still get a little faster. The engine tolerates 3 %
 * anyway.
 * @param rps requests/s of all sides in the last try at a round; of fewer: not known
 */
export function withCoarseWarmup(group: Group, rps: Readonly<Record<string, number>>): Group {
  const logs = Object.values(rps)
    .map(Math.log)
    .filter(Number.isFinite)
    .toSorted((a, b) => a - b);
  if (logs.length < Math.max(2, group.sides.length)) return group;
  const least = Math.min(...minus(logs.slice(1), logs));
  // At a rate two sides may have exactly the same requests/s.
  if (least === 0) return group;
  const warmupGain = Math.expm1(gainPart * least);
  const sides = group.sides.map((side) => ({ ...side, load: { ...side.load, warmupGain } }));
  return { ...group, sides };
}

/** A server that got faster by this factor in a warm-up has a compiler, or other things that take their time. */
const compilerGain = 1.3;

/**
 * The groups of a round: its first warm-up shows whether a server has a compiler. In later rounds such a server has half as much load before
 * anything is judged, because interpreted code is as slow for a while, before a compiler begins, and seems to be warm.
 */
export function withKnownWarmups(groups: readonly Group[], kept: readonly KeptRound[]): Group[] {
  const [first] = kept;
  if (first === undefined) return groups.map(withConfirmedWarmups);
  const seconds = new Map<string, number>();
  for (const { load, variant } of groups.flatMap(({ sides }) => sides)) {
    const { gain = 1, warmupSeconds = 0 } =
      first.outcomes.get(variant.name)?.phases[0]?.continuous ?? {};
    const isKnown = gain >= compilerGain && load.warmupLimitSeconds !== undefined;
    if (isKnown && warmupSeconds / 2 > load.warmupSeconds)
      seconds.set(variant.name, warmupSeconds / 2);
  }
  return withWarmups(groups, seconds);
}

const withConfirmedWarmups = (group: Group): Group => ({
  ...group,
  sides: group.sides.map((side) => ({ ...side, load: { ...side.load, warmupConfirmed: true } })),
});

/** A warm-up may take this multiple of what its program needed in earlier rounds. */
const timesNeeded = 2;

/**
 * The groups of a round: a warm-up lasts at most twice as long as the second shortest of a side of its program so far, after which that
 * server was steady. Other programs make a warm server look as if it still got faster; in some rounds they don't. The shortest may be
 * chance.
 */
export function withBoundedWarmups(groups: readonly Group[], kept: readonly KeptRound[]): Group[] {
  const needed = new Map<string, number>();
  for (const { variant } of groups.flatMap(({ sides }) => sides)) {
    const phases = kept.map(({ outcomes }) => outcomes.get(variant.name)?.phases[0]);
    const seconds = phases.flatMap((phase) => phase?.continuous?.warmupSeconds ?? []);
    const [, second = 0] = seconds.toSorted((a, b) => a - b);
    const program = programOf(variant.server);
    needed.set(program, Math.max(second, needed.get(program) ?? 0));
  }
  const bounded = (side: PlannedVariant): PlannedVariant => {
    const { load, variant } = side;
    const known = needed.get(programOf(variant.server)) ?? 0;
    if (known === 0 || load.warmupLimitSeconds === undefined) return side;
    const warmupBoundSeconds = Math.max(load.warmupSeconds, timesNeeded * known);
    return { ...side, load: { ...load, warmupBoundSeconds } };
  };
  return groups.map((group) => ({ ...group, sides: group.sides.map(bounded) }));
}

/** The variants with the program of one of these. */
function ofSameProgram(groups: readonly Group[], names: ReadonlySet<string>): Set<string> {
  const variants = groups.flatMap(({ sides }) => sides.map(({ variant }) => variant));
  const programs = new Set(
    variants.filter(({ name }) => names.has(name)).map(({ server }) => programOf(server)),
  );
  return new Set(
    variants.filter(({ server }) => programs.has(programOf(server))).map(({ name }) => name),
  );
}

/** Returns the variants whose server made such long pauses that their number changes the figures of a round. */
function pausingIn(rounds: readonly Pick<KeptRound, 'outcomes'>[]): Set<string> {
  const pausing = new Set<string>();
  for (const { outcomes } of rounds)
    for (const [variant, { phases }] of outcomes) if (phases.some(hasPaused)) pausing.add(variant);
  return pausing;
}

/** The warm-up that follows one after which the server was still cold. */
const timesLonger = 4;
/**
 * Rounds were warm if their warm-ups ended at most this factor above the CPU time per response of their windows. A later window within this
 * factor of theirs is as warm: then the end of its warm-up was disturbed. On a noisy machine the end of a warm server's warm-up is 0.8 to
 * 1.3 times its window.
 */
const asWarm = 1.25;
const fewestWarmRounds = 2;

/**
 * Responses per CPU time in the second half of a window as a multiple of those in the first, from which a server still got faster in it. In
 * a window without that it was warm, whatever its warm-up's end has cost.
 */
const fasterWithin = 1.05;

/**
 * What a response of each variant has cost in the windows of the rounds so far, in microseconds of CPU time, where they surely were warm.
 */
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
 * Returns the next warm-up of a server at its limit that still got faster after its warm-up, if its length is the engine's to choose and it
 * can be longer; else undefined.
 * @param phases of a round
 * @param warmCost see warmCosts
 * @param servedSeconds of load before these
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
    // One that costs far less shows that those were cold.
    if (ratio <= asWarm && ratio >= 1 / asWarm) return undefined;
  }
  if ((phases[0]?.cpuGain ?? Infinity) < fasterWithin) return undefined;
  if (phases[0]?.turns?.waits === true && rps * costs.before < 1e6 * coresAtLimit) return undefined;
  return { ...costs, hadSeconds, seconds: Math.min(most, timesLonger * hadSeconds) };
}

/**
 * The stages with the group's new warm-ups, less the load that their servers had in an earlier try.
 * @param group with the new warm-ups
 */
export function goingOn(stages: readonly Stage[], { sides }: Group): Stage[] {
  return zip(stages, sides).map(([stage, { load }]) => {
    const { servedSeconds = 0, planned } = stage;
    const warmupSeconds = Math.max(planned.load.warmupSeconds, load.warmupSeconds - servedSeconds);
    const { warmupLimitSeconds } = planned.load;
    const going = { ...load, ...present({ warmupLimitSeconds }), warmupSeconds };
    return { ...stage, planned: { ...planned, load: going } };
  });
}

/**
 * Returns the groups with these warm-ups, in seconds by variant. Sides with one program all have the longest of theirs: with different
 * ones, one of two equal servers would be warmer, and so faster.
 */
export function withWarmups(
  groups: readonly Group[],
  warmupSeconds: ReadonlyMap<string, number>,
): Group[] {
  const longest = new Map<string, number>();
  for (const { variant } of groups.flatMap(({ sides }) => sides)) {
    const program = programOf(variant.server);
    const seconds = warmupSeconds.get(variant.name) ?? 0;
    longest.set(program, Math.max(seconds, longest.get(program) ?? 0));
  }
  const lengthened = (side: PlannedVariant): PlannedVariant => {
    const { load, variant } = side;
    const own = warmupSeconds.get(variant.name) ?? 0;
    // A length that is named, or none at all, is nobody else's to change.
    const isFixed = load.warmupLimitSeconds === undefined;
    const seconds = isFixed ? own : (longest.get(programOf(variant.server)) ?? 0);
    if (seconds <= load.warmupSeconds) return side;
    return { ...side, load: { ...load, warmupSeconds: seconds } };
  };
  return groups.map((group) => ({ ...group, sides: group.sides.map(lengthened) }));
}
