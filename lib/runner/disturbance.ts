// Detects disturbances that invalidate a round, which is then repeated.
import { setTimeout as delay } from 'node:timers/promises';
import { isUnanswered, pauseMs } from '../analysis/limit.ts';
import { extent, minus } from '../analysis/statistics.ts';
import { present } from '../present.ts';
import type { Finding, HoldUp } from '../result/finding.ts';
import type { Phase } from '../result/result.ts';
import { isWatched } from '../servers/index.ts';
import { Disturbance, TurnsMeet, RoundFailure } from './failures.ts';
import type { PlannedVariant, Stage } from './plan.ts';
import { sharesLoopback } from './observers/strangers.ts';
import { windowOf, type UsageSample, type UsageWindow } from './samples.ts';
import type { SideRound } from './side-round.ts';
import { portOf } from '../servers/strangers.ts';

/**
 * Requires that a side's figures can be trusted.
 * @throws RoundFailure if the server crashed, Disturbance for anything else
 */
export function requireSound({
  stage: { planned, server },
  samples,
  quotas,
  enclosed,
  phases,
  alarms,
}: SideRound): void {
  const { name: variant } = planned.variant;
  if (alarms.crash !== undefined)
    throw new RoundFailure({
      code: 'crashed',
      variant,
      server: server.name,
      line: alarms.crash,
    });
  for (const phase of phases) {
    const window = windowOf(phase, planned.load);
    const disturbance =
      clockStepIn(variant, samples) ??
      throttlingIn(variant, samples, window, quotas) ??
      generatorStopIn(variant, samples, window) ??
      (enclosed?.samples && gapIn(variant, enclosed.samples, window)) ??
      holdUpIn(variant, phase, server.name);
    if (disturbance !== undefined) throw new Disturbance(disturbance);
  }
}

/** Requires samples without a gap in the phases whose CPU time is reported. @throws Disturbance */
export function requireSampled(
  { variant: { name }, load }: PlannedVariant,
  samples: readonly UsageSample[],
  phases: readonly Phase[],
): void {
  for (const phase of phases) {
    const gap = gapIn(name, samples, windowOf(phase, load));
    if (gap !== undefined) throw new Disturbance(gap);
  }
}

/** CPU times survive a gap, but tasks and their memory are looked up once a second. */
const toleratedGapMs = 2000;

function gapIn(
  variant: string,
  samples: readonly { atMs: number }[],
  { fromMs, toMs }: UsageWindow,
): Finding | undefined {
  const before = samples.findLastIndex(({ atMs }) => atMs <= fromMs);
  const after = samples.findIndex(({ atMs }) => atMs >= toMs);
  if (before === -1 || after === -1) return { code: 'unsampled', variant };
  const timesMs = samples.slice(before, after + 1).map(({ atMs }) => atMs);
  const gapMs = Math.max(...minus(timesMs.slice(1), timesMs));
  return gapMs <= toleratedGapMs ? undefined : { code: 'unsampled', variant, gapMs };
}

/** The two clocks may be read this far apart, if the process is interrupted between them each time. */
const toleratedStepMs = 50;

/** The wall clock stamps the samples in the database. */
function clockStepIn(variant: string, samples: readonly UsageSample[]): Finding | undefined {
  const [least, most] = extent(samples.map(({ wallAheadMs }) => wallAheadMs));
  const first = samples[0]?.wallAheadMs ?? 0;
  const [back, forward] = [first - least, most - first];
  if (Math.max(back, forward) <= toleratedStepMs) return undefined;
  return { code: 'clock-set', variant, byMs: back > forward ? -back : forward };
}

/** Share of the window. The kernel may stop a run that uses just its quota shortly before the next period. */
const toleratedThrottling = 0.001;

function throttlingIn(
  variant: string,
  samples: readonly UsageSample[],
  window: UsageWindow,
  quotas: string,
): Finding | undefined {
  const heldMs = throttledMs(samples, window, (sample) => sample.throttledMs);
  return heldMs === undefined ? undefined : { code: 'quota-held', variant, heldMs, quotas };
}

function generatorStopIn(
  variant: string,
  samples: readonly UsageSample[],
  { fromMs, toMs }: UsageWindow,
): Finding | undefined {
  const isInside = ({ atMs }: UsageSample) => atMs >= fromMs && atMs <= toMs;
  const wasStopped = samples.some((sample) => sample.generatorStopped && isInside(sample));
  return wasStopped ? { code: 'generator-stopped', variant } : undefined;
}

/** If a server uses at least this share of a core in the turns of others, their figures show it. */
const mostOutOfTurn = 0.01;
/** Less may be the end of a start or connection. */
const leastOutOfTurnMs = 10;
/** Work that a turn leaves over is done by then, because the engine waits for it (longestServerWork in xk6-loadgen/engine). */
const leftOverMs = 100;

/**
 * Requires that sides in turns do not change each other's figures. A CPU quota that held a server back would recover in the turns of
 * others. A server that works when it has no requests, such as one that polls, takes that time from the others. Of a server that is loaded
 * alone, both are part of its speed.
 * @throws TurnsMeet
 */
export function requireSeparateTurns(sides: readonly SideInTurns[]): void {
  if (sides.length < 2) return;
  const variants = new Set(sides.map(({ stage }) => stage.planned.variant.name));
  for (const side of sides) {
    const { stage, samples, phases } = side;
    const { variant, load } = stage.planned;
    const { name } = variant;
    for (const phase of phases) {
      const window = windowOf(phase, load);
      const ms = throttledMs(samples, window, (sample) => sample.quotaThrottledMs);
      if (ms !== undefined) {
        const held = { variant: name, heldMs: ms, quotas: samples.at(-1)?.quotas ?? '' };
        throw new TurnsMeet({ code: 'quota-in-turns', ...held }, variants);
      }
    }
    const { usedMs, othersMs } = outOfTurn(side, sides);
    if (usedMs > Math.max(leastOutOfTurnMs, mostOutOfTurn * othersMs))
      throw new TurnsMeet(
        { code: 'out-of-turn', variant: name, share: usedMs / othersMs },
        variants,
      );
  }
}

/** CPU time of a side's server while others had their turns, and how long these were, in milliseconds. */
function outOfTurn(side: SideInTurns, sides: readonly SideInTurns[]) {
  let [usedMs, othersMs] = [0, 0];
  for (const { turns, idleCpuShare, monotonicMs, seconds } of side.phases) {
    if (turns?.count === 1) continue;
    const awayMs = monotonicMs[1] - monotonicMs[0] - 1000 * seconds;
    usedMs += (idleCpuShare ?? 0) * awayMs;
    othersMs += awayMs;
  }
  const single = (some: SideInTurns) => some.phases.filter(({ turns }) => turns?.count === 1);
  if (single(side).length === 0) return { usedMs, othersMs };
  for (const { monotonicMs, seconds } of sides.filter((other) => other !== side).flatMap(single)) {
    const [fromMs, endMs] = monotonicMs;
    // At a rate it ends once all sides have had their turns.
    const toMs = Math.min(endMs, fromMs + 1000 * seconds);
    const inside = side.samples.filter(({ atMs }) => atMs >= fromMs + leftOverMs && atMs <= toMs);
    const [first, last] = [inside[0], inside.at(-1)];
    if (first === undefined || last === undefined) continue;
    usedMs += 1000 * (last.cpuSeconds - first.cpuSeconds);
    othersMs += last.atMs - first.atMs;
  }
  return { usedMs, othersMs };
}

type SideInTurns = Pick<SideRound, 'samples' | 'phases'> & { stage: Pick<Stage, 'planned'> };

/** Returns how long quotas held processes back within a window, in milliseconds; undefined if no longer than is tolerated. */
function throttledMs(
  samples: readonly UsageSample[],
  { fromMs, toMs }: UsageWindow,
  of: (sample: UsageSample) => number,
): number | undefined {
  const before = samples.findLast(({ atMs }) => atMs <= fromMs) ?? samples[0];
  const after = samples.find(({ atMs }) => atMs >= toMs) ?? samples.at(-1);
  if (before === undefined || after === undefined) return undefined;
  const ms = of(after) - of(before);
  return ms > toleratedThrottling * (toMs - fromMs) ? ms : undefined;
}

/** Others caused a pause if they had at least this share of the server's cores in it. With less they slow a server, but do not stop it. */
const heldUpShare = 0.8;

/**
 * Returns whether the server stalled because it was stopped, or because others had its cores. A stall of the server's own is part of its
 * speed.
 * @param server its name
 */
function holdUpIn(variant: string, phase: Phase, server: string): Finding | undefined {
  const ms = pauseMs(phase);
  const { noise, stoppedShare = 0 } = phase;
  const { duringPause = 0 } = noise ?? {};
  if (ms === null || (stoppedShare === 0 && duringPause < heldUpShare)) return undefined;
  const cause: HoldUp =
    stoppedShare > 0 ? { kind: 'stopped' } : { kind: 'others', share: duringPause };
  const windowSeconds = isUnanswered(phase) ? phase.seconds : undefined;
  return {
    code: 'held-up',
    variant,
    server,
    pauseMs: ms,
    ...present({ windowSeconds }),
    cause,
  };
}

/** A server is idle if it uses less than this share of a core for this time. */
const idle = { share: 0.01, ms: 100 };
/** How long to wait for work that a server still does after its start. */
const startMs = 3000;

/**
 * Waits until the servers of all sides are idle.
 * @throws TurnsMeet that names a server that goes on working, or the signal's reason
 */
export async function requireIdle(stages: readonly Stage[], signal: AbortSignal): Promise<void> {
  if (stages.length < 2) return;
  let busy = stages.flatMap(({ planned: { variant }, server }) =>
    isWatched(server) ? { name: variant.name, server, used: server.usage().cpuSeconds } : [],
  );
  const beganAtMs = performance.now();
  const began = new Map(busy.map(({ name, used }) => [name, used]));
  while (busy.length > 0) {
    const sinceMs = performance.now();
    await delay(idle.ms, undefined, { signal });
    const seconds = (performance.now() - sinceMs) / 1000;
    const now = busy.map((side) => ({
      ...side,
      before: side.used,
      used: side.server.usage().cpuSeconds,
    }));
    busy = now.filter(({ before, used }) => used - before > idle.share * seconds);
    const [first] = busy;
    const tookMs = performance.now() - beganAtMs;
    if (first === undefined || tookMs < startMs) continue;
    const share = (1000 * (first.used - (began.get(first.name) ?? 0))) / tookMs;
    const names = new Set(stages.map(({ planned }) => planned.variant.name));
    throw new TurnsMeet({ code: 'out-of-turn', variant: first.name, share }, names, true);
  }
}

/**
 * Requires that no side's server is another's backend: a proxy keeps connections to it, so a load of its code on the other side would look
 * the same. @throws TurnsMeet
 */
export function requireOtherBackends(
  stages: readonly Pick<Stage, 'planned' | 'enclosure' | 'server'>[],
): void {
  const sides = stages.filter(sharesLoopback).map(({ planned, server }) => ({
    name: planned.variant.name,
    port: portOf(server),
    backends: new Set(server.upstreams.flatMap((at) => ('port' in at ? at.port : []))),
  }));
  for (const side of sides) {
    const backend = sides.find((other) => other !== side && side.backends.has(other.port));
    if (backend === undefined) continue;
    const variants = new Set(stages.map(({ planned }) => planned.variant.name));
    const asBackend = { variant: side.name, backend: backend.name, port: backend.port };
    throw new TurnsMeet({ code: 'side-as-backend', ...asBackend }, variants);
  }
}
