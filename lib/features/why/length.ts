// How long the look after the rounds takes: announced before the rounds, and planned after them.
import { total } from '../../analysis/statistics.ts';
import { serverMetricNames } from '../../result/server-metrics.ts';
import type { PlanDraft, PlannedVariant } from '../../runner/plan.ts';
import { estimatedSeconds } from '../../runner/times.ts';
import { isCounted } from '../../scenario/load.ts';
import { isOwn, loadOf } from '../../scenario/variants.ts';

/**
 * Seconds of a side's load while perf samples its CPU time (if no other purpose makes the load longer), and while perf counts its calls.
 */
export const perfLoadSeconds = { sampled: 2, counted: 0.5 };
/** Limits in seconds of the loads of one side and of all sides together. A load is as long as its scenario says, but no longer. */
const longestSeconds = { ofSide: 10, ofAll: 30 };
/** Seconds, about, that a side's start and end take together with those of a load. With perf, its reading and its second load take more. */
const overheadSeconds = { alone: 1.5, withPerf: 2 };
/** Seconds; a shorter load says less than the rounds. */
const shortestSeconds = 0.5;

/** By the flags of the run, and their values: whether causes are looked for. */
export function isAsked(flags: ReadonlyMap<string, string>): boolean {
  if (flags.has('why')) return true;
  if (['no-why', 'quick'].some((flag) => flags.has(flag))) return false;
  // perf sees what a request costs.
  return !serverMetricNames.some((metric) => metric === flags.get('metric'));
}

/** The seconds of a load of a side with its server's start and end; 0 without a load. */
export const withStart = (seconds: number): number =>
  seconds === 0 ? 0 : overheadSeconds.alone + seconds;

/**
 * Returns the share of the rounds' time that the loads of all sides take together: less for shipped configs, whose servers do nothing by
 * the clock, and where the user has asked for short loads. Others may have jobs or pauses every few seconds, which only a long load shows:
 * Infinity for these, whose loads have other limits.
 */
export function shareOfTime(
  { quick, variants }: PlanDraft,
  flags: ReadonlyMap<string, string>,
): number {
  if (variants.every(({ variant: { server } }) => !isOwn(server))) return 1 / 6;
  return quick || flags.has('duration') ? 1 / 3 : Infinity;
}

interface AskedLook {
  /** The sides that are loaded alone. */
  sides: readonly PlannedVariant[];
  asksWhy: boolean;
  /** See the function of that name. */
  shareOfTime: number;
  /** The seconds that the run took so far. */
  tookSeconds: number;
  /** Returns whether a side has a verdict, which is then checked by loading the side alone. */
  isJudged(side: PlannedVariant): boolean;
}

/**
 * Returns the seconds of the look by side: `secondsOf` is the load that is compared with the rounds, 0 for none; `takes` is all of the
 * look at the side.
 */
export function lengthOfLook(
  plan: PlanDraft,
  { sides, asksWhy, shareOfTime, tookSeconds, isJudged }: AskedLook,
) {
  const forCauses = overheadSeconds.withPerf + perfLoadSeconds.counted;
  const overhead = overheadSeconds.alone + (asksWhy ? forCauses : 0);
  const ofAll = Math.min(longestSeconds.ofAll, shareOfTime * tookSeconds);
  const leftSeconds = (plan.maxTimeSeconds ?? Infinity) - tookSeconds;
  const most = Math.min(
    longestSeconds.ofSide,
    ofAll / sides.length,
    leftSeconds / sides.length - overhead,
  );
  const secondsOf = (side: PlannedVariant) =>
    isJudged(side) ? checkedSeconds(plan, side, most) : 0;
  const takes = (side: PlannedVariant) => {
    const seconds = secondsOf(side);
    return overhead + (seconds === 0 && asksWhy ? perfLoadSeconds.sampled : seconds);
  };
  return { secondsOf, takes };
}

/** Estimates the seconds of the look after so many rounds; 0 if there will surely be none. */
export function expectedLook(
  plan: PlanDraft,
  flags: ReadonlyMap<string, string>,
  rounds: number,
): number {
  if (flags.has('no-look') || plan.stepped !== undefined || plan.variants.length < 2) return 0;
  // perf needs root.
  const asksWhy = isAsked(flags) && process.getuid?.() === 0;
  const tookSeconds = estimatedSeconds(plan, rounds);
  const looked = {
    sides: plan.variants,
    asksWhy,
    shareOfTime: shareOfTime(plan, flags),
    tookSeconds,
    isJudged: () => true,
  };
  const { secondsOf, takes } = lengthOfLook(plan, looked);
  if (!asksWhy && plan.variants.every((side) => secondsOf(side) === 0)) return 0;
  return total(plan.variants, takes);
}

/**
 * Returns the seconds of a load alone. 0 if the rounds already have that load: the side is the only one of its group and loaded as long,
 * or makes all its requests from the first connect on.
 */
function checkedSeconds(plan: PlanDraft, { variant, load }: PlannedVariant, most: number): number {
  if (isCounted(load)) return 0;
  const { rate, requests = 0 } = load;
  const inRounds = rate === undefined ? (load.durationSeconds ?? 0) : requests / rate;
  const written = loadOf(plan.scenario, variant);
  let ofItself = written.durationSeconds ?? inRounds;
  if (written.durationSeconds === undefined && rate !== undefined && written.requests !== undefined)
    ofItself = written.requests / rate;
  const seconds = Math.min(most, Math.max(ofItself, inRounds));
  const group = plan.groups.find(({ sides }) => sides.some((side) => side.variant === variant));
  const isInRounds = group?.sides.length === 1 && seconds <= inRounds;
  return seconds < shortestSeconds || isInRounds ? 0 : seconds;
}
