// Which sides are looked at after the rounds, and for how long.
import { variantOf } from '../../analysis/comparisons.ts';
import { minimumRounds, total } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import { changedSettings, readConfigs } from '../../report/html/differences.ts';
import { verdictLines } from '../../report/sentences.ts';
import type { Comparison, Result } from '../../result/result.ts';
import type { EndedRun } from '../../runner/examine.ts';
import type { PlannedVariant } from '../../runner/plan.ts';
import { withCoarseWarmup } from '../../runner/warmups.ts';
import { thisMachine } from '../../setup/machine.ts';
import { ensureTools } from '../../setup/tools.ts';
import { lasting, lookAlone } from './look.ts';
import { heldAgainst, isDenied } from './held.ts';
import { isAsked, lengthOfLook, shareOfTime, withStart } from './length.ts';

/**
 * Looks at the sides that were compared, unless the flags say no. Returns the result with what was seen; verdicts that this refutes are
 * taken back. Throws Interrupted.
 */
export async function lookAfterRounds(run: EndedRun): Promise<Result | undefined> {
  const { context, result, flags, examined, say } = run;
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
  const lookedAt = context.plan.variants
    .filter(({ variant }) => names.has(variant.name))
    .map((side) => atFoundRate(side, result));
  const rps = Object.fromEntries(result.variants.map(({ name, rps }) => [name, rps?.median ?? 0]));
  const { sides } = withCoarseWarmup({ sides: lookedAt }, rps);
  if (sides.length === 0) return undefined;
  const asksWhy = stepped === undefined && isAsked(flags);
  const judged = new Set(
    shown.filter(isJudged).flatMap(({ baseline, variant }) => [baseline, variant]),
  );
  const asked = {
    sides,
    asksWhy,
    shareOfTime: shareOfTime(context.plan, flags),
    tookSeconds: elapsedSeconds(result),
    isJudged: ({ variant }: PlannedVariant) => judged.has(variant.name),
  };
  const { secondsOf, takes } = lengthOfLook(context.plan, asked);
  if (!asksWhy && sides.every((side) => secondsOf(side) === 0)) return undefined;
  // The verdict stands before the look, which may take it back.
  verdictLines(result, context.contributionsTo(result)).forEach(say);
  const onSide = telling(run, 'checking each side alone', sides, takes);
  if (asksWhy)
    run.tell({ what: 'checking each side alone', seen: 'perf', secondsLeft: total(sides, takes) });
  const perf = asksWhy ? await perfOrWhyNot(context.signal) : undefined;
  const cpuMicrosOf = (name: string) => variantOf(result, name)?.serverCpuMicrosPerRequest?.median;
  const { alone, why } = await lookAlone(context, { sides, secondsOf, perf, cpuMicrosOf, onSide });
  const takesAgain = (side: PlannedVariant) => withStart(secondsOf(side));
  const isTooLong =
    elapsedSeconds(result) + total(sides, takesAgain) > (context.plan.maxTimeSeconds ?? Infinity);
  if (isDenied({ ...result, alone }) && !isTooLong) {
    say('The sides alone do not agree with the rounds: each is loaded alone once more.');
    // The order is reversed: if the machine gets slower over time, that favours the other side now.
    const reversed = sides.toReversed();
    try {
      const second = await lookAlone(context, {
        sides: reversed,
        secondsOf,
        perf: undefined,
        cpuMicrosOf,
        onSide: telling(run, 'checking each side alone once more', reversed, takesAgain),
      });
      alone.again = second.alone.sides;
    } catch (error) {
      // Without a second load the first one decides, also after Ctrl-C.
      if (!context.signal.aborted) throw error;
    }
  }
  const configs = readConfigs(context.folder, result);
  const changedSides = why.sides.map((side) => {
    const changed = changedSettings(result, configs, side.variant);
    return changed.length === 0 ? side : { ...side, changed };
  });
  const isChecked = alone.sides.length + alone.missing.length > 0;
  const looked = {
    ...result,
    ...(isChecked ? { alone } : {}),
    ...(asksWhy ? { why: { missing: why.missing, sides: changedSides } } : {}),
  };
  return heldAgainst(looked, context.templates);
}

const elapsedSeconds = ({ startedAt }: Result): number =>
  (Date.now() - Date.parse(startedAt)) / 1000;

/** Returns a function that shows the progress of a look, side by side, with the seconds left. */
function telling(
  { tell }: EndedRun,
  what: string,
  sides: readonly PlannedVariant[],
  takes: (side: PlannedVariant) => number,
): (name: string) => void {
  let secondsLeft = total(sides, takes);
  return (name) => {
    tell({ what, seen: name, secondsLeft });
    const side = sides.find(({ variant }) => variant.name === name);
    if (side !== undefined) secondsLeft -= takes(side);
  };
}

/** Returns whether one of its verdicts says something, which the sides alone may refute. */
function isJudged({ verdict, cpu, latency, ofServer = {} }: Comparison): boolean {
  const beside = [cpu, ...Object.values(latency), ...Object.values(ofServer)];
  return [verdict, ...beside.map((other) => other?.verdict)].some(
    (said) => said !== undefined && said !== 'none' && said !== 'inconclusive',
  );
}

function atFoundRate(side: PlannedVariant, { search }: Result): PlannedVariant {
  const found = search?.found.find(({ variant }) => variant === side.variant.name);
  return found === undefined ? side : lasting(side, 1, found.rate);
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
