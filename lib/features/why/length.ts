// How long the look takes: announced before the rounds, planned after them.
import { total } from '../../analysis/statistics.ts';
import { serverMetricNames } from '../../result/server-metrics.ts';
import type { PlanDraft, PlannedVariant } from '../../runner/plan.ts';
import { estimatedSeconds, expectedRounds } from '../../runner/times.ts';
import { isCounted } from '../../scenario/load.ts';
import { loadOf } from '../../scenario/variants.ts';

/** Seconds of load while perf samples, if nothing else asks for one, and while it counts calls. */
export const perfLoadSeconds = { sampled: 2, counted: 0.5 };
/** A load has its own text's length at most, and these, in seconds. */
const longestSeconds = { ofSide: 10, ofAll: 30 };
/** Seconds of a side's start and end with a load's, and with perf also its reading and second load. */
const overheadSeconds = { alone: 1.5, withPerf: 2 };
/** A shorter load says less than the rounds. */
const shortestSeconds = 0.5;

/** By the flags of the run, and their values: whether causes are looked for. */
export function isAsked(flags: ReadonlyMap<string, string>): boolean {
  if (flags.has('why')) return true;
  if (['no-why', 'quick'].some((flag) => flags.has(flag))) return false;
  // perf sees what a request costs.
  return !serverMetricNames.some((metric) => metric === flags.get('metric'));
}

interface AskedLook {
  /** Those that are looked at. */
  sides: readonly PlannedVariant[];
  asksWhy: boolean;
  /** Of the run so far. */
  tookSeconds: number;
  /** Whether a verdict was given on a side, which is then held against the side alone. */
  isJudged(side: PlannedVariant): boolean;
}

/** Seconds by side: secondsOf for the load held against the rounds, 0 for none; takes for all. */
export function lengthOfLook(
  plan: PlanDraft,
  { sides, asksWhy, tookSeconds, isJudged }: AskedLook,
) {
  const forCauses = overheadSeconds.withPerf + perfLoadSeconds.counted;
  const overhead = overheadSeconds.alone + (asksWhy ? forCauses : 0);
  // All sides' loads take a third of the rounds' time at most, and no more than --max-time leaves.
  const leftSeconds = (plan.maxTimeSeconds ?? Infinity) - tookSeconds;
  const most = Math.min(
    longestSeconds.ofSide,
    Math.min(longestSeconds.ofAll, tookSeconds / 3) / sides.length,
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

/** After the fewest rounds; 0 if there surely is no look. */
export function expectedLook(plan: PlanDraft, flags: ReadonlyMap<string, string>): number {
  if (flags.has('no-look') || plan.stepped !== undefined || plan.variants.length < 2) return 0;
  // perf needs root.
  const asksWhy = isAsked(flags) && process.getuid?.() === 0;
  const tookSeconds = estimatedSeconds(plan, expectedRounds(plan).fewest);
  const looked = { sides: plan.variants, asksWhy, tookSeconds, isJudged: () => true };
  const { secondsOf, takes } = lengthOfLook(plan, looked);
  if (!asksWhy && plan.variants.every((side) => secondsOf(side) === 0)) return 0;
  return total(plan.variants, takes);
}

/** 0 where a round has that load: the only one of its group, as long, or with all requests from the first connect on. */
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
