// Which sides are looked at after the rounds, and for how long.
import { minimumRounds } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import type { EndedRun } from '../../feature.ts';
import { changedSettings, readConfigs } from '../../report/html/differences.ts';
import { verdictLines } from '../../report/sentences.ts';
import type { Result } from '../../result/result.ts';
import { serverMetricNames } from '../../result/server-metrics.ts';
import type { PlannedVariant, RunContext } from '../../runner/plan.ts';
import { isCounted } from '../../scenario/load.ts';
import { loadOf } from '../../scenario/variants.ts';
import { thisMachine } from '../../setup/machine.ts';
import { ensureTools } from '../../setup/tools.ts';
import { lasting, lookAlone, perfLoadSeconds } from './look.ts';
import { heldAgainst } from './held.ts';

/** A first load is as long as the load's own text says, but no longer, in seconds. */
const longestSeconds = 10;
/** About how long a side's start and end take with those of a load, and those of the loads with perf, in seconds. */
const overheadSeconds = { alone: 2, withPerf: 4 };
/** A shorter first load says less than the rounds. */
const shortestSeconds = 0.5;

/**
 * Looks at the sides that were compared, unless the flags say no. Returns the result with what was seen, in which verdicts that do not
 * hold are taken back. Throws Interrupted.
 */
export async function lookAfterRounds(run: EndedRun): Promise<Result | undefined> {
  const { context, result, flags, examined, tell, say } = run;
  const { stepped } = context.plan;
  // Another load in steps than a search has no rate to look at.
  const hasRate = stepped === undefined || result.search !== undefined;
  if (flags.has('no-look') || examined === 'none' || !hasRate) return undefined;
  const shown = result.comparisons.filter(
    ({ roundRatios, verdict }) =>
      roundRatios.length >= minimumRounds &&
      (examined === 'all' || /^(faster|slower)$/.test(verdict)),
  );
  const names = new Set(shown.flatMap(({ baseline, variant }) => [baseline, variant]));
  const sides = context.plan.variants
    .filter(({ variant }) => names.has(variant.name))
    .map((side) => atFoundRate(side, result));
  if (sides.length === 0) return undefined;
  const asksWhy = stepped === undefined && isAsked(flags);
  const mostSeconds = longestAlone(run, sides.length, asksWhy);
  const secondsOf = (planned: PlannedVariant) => firstLoadSeconds(context, planned, mostSeconds);
  if (!asksWhy && sides.every((side) => secondsOf(side) === 0)) return undefined;
  verdictLines(result).forEach(say);
  const takes = (planned: PlannedVariant) =>
    overheadSeconds.alone + secondsOf(planned) + (asksWhy ? withPerfSeconds : 0);
  let secondsLeft = sides.reduce((sum, side) => sum + takes(side), 0);
  const perf = asksWhy ? await perfOrWhyNot(context.signal) : undefined;
  const onSide = (name: string) => {
    tell({ what: 'checking each side alone', seen: name, secondsLeft });
    secondsLeft -= takes(sides.find(({ variant }) => variant.name === name) as PlannedVariant);
  };
  const { alone, why } = await lookAlone(context, { sides, secondsOf, perf, onSide });
  const configs = readConfigs(context.folder, result);
  const changedSides = why.sides.map((side) => {
    const changed = changedSettings(result, configs, side.variant);
    return changed.length === 0 ? side : { ...side, changed };
  });
  const isChecked = alone.sides.length + alone.missing.length > 0;
  return heldAgainst({
    ...result,
    ...(isChecked ? { alone } : {}),
    ...(asksWhy ? { why: { missing: why.missing, sides: changedSides } } : {}),
  });
}

/** A side of a search with the rate that it found. */
function atFoundRate(side: PlannedVariant, { search }: Result): PlannedVariant {
  const found = search?.found.find(({ variant }) => variant === side.variant.name);
  return found === undefined ? side : lasting(side, 1, found.rate);
}

const withPerfSeconds =
  overheadSeconds.withPerf + perfLoadSeconds.sampled + perfLoadSeconds.counted;

/** By the flags of the run, and their values: whether causes are looked for. */
export function isAsked(flags: ReadonlyMap<string, string>): boolean {
  if (flags.has('why')) return true;
  if (['no-why', 'quick'].some((flag) => flags.has(flag))) return false;
  // perf sees what a request costs.
  return !serverMetricNames.some((metric) => metric === flags.get('metric'));
}

/** The most seconds of a side's first load: all sides together take no longer than the rounds did, and no longer than --max-time leaves. */
function longestAlone(
  { context: { plan }, result }: EndedRun,
  sides: number,
  asksWhy: boolean,
): number {
  const tookSeconds = (Date.now() - Date.parse(result.startedAt)) / 1000;
  const leftSeconds = (plan.maxTimeSeconds ?? Infinity) - tookSeconds;
  const overhead = overheadSeconds.alone + (asksWhy ? withPerfSeconds : 0);
  return Math.min(longestSeconds, tookSeconds / sides, leftSeconds / sides - overhead);
}

/** 0 where a round has that load already: the only one of its group, as long, or with all its requests from the first connect on. */
function firstLoadSeconds(
  { plan }: RunContext,
  { variant, load }: PlannedVariant,
  most: number,
): number {
  if (isCounted(load) || load.arrivals === 'logged') return 0;
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

async function perfOrWhyNot(signal: AbortSignal): Promise<string | UserError> {
  if (process.getuid?.() !== 0)
    return new UserError('perf needs root: run as root, or leave it out with --no-why');
  try {
    return (await ensureTools(['perf'], thisMachine(), signal)).perf;
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}
