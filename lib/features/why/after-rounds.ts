// When causes are looked at, and at which sides.
import { minimumRounds } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import type { EndedRun } from '../../feature.ts';
import { changedSettings, readConfigs } from '../../report/html/differences.ts';
import type { Result } from '../../result/result.ts';
import { serverMetricNames } from '../../result/server-metrics.ts';
import { thisMachine } from '../../setup/machine.ts';
import { ensureTools } from '../../setup/tools.ts';
import { lookWhy, secondsOfWhy } from './look.ts';

/** Looks at the sides that were compared, unless the flags say no. Returns the result with `why`. Throws Interrupted. */
export async function lookAfterRounds({
  context,
  result,
  flags,
  examined,
  tell,
}: EndedRun): Promise<Result | undefined> {
  // A load in steps has no rate of its own to look at.
  if (!isAsked(flags) || examined === 'none' || context.plan.stepped !== undefined)
    return undefined;
  const shown = result.comparisons.filter(
    ({ roundRatios, verdict }) =>
      roundRatios.length >= minimumRounds &&
      (examined === 'all' || /^(faster|slower)$/.test(verdict)),
  );
  const names = new Set(shown.flatMap(({ baseline, variant }) => [baseline, variant]));
  if (names.size === 0) return undefined;
  const secondsLeft = secondsOfWhy(names.size);
  tell({ what: 'looking why', seen: [...names].join(', '), secondsLeft });
  const perf = await perfOrWhyNot(context.signal);
  const { missing, sides } = await lookWhy(context, names, perf);
  const configs = readConfigs(context.folder, result);
  const named = sides.map((side) => {
    const changed = changedSettings(result, configs, side.variant);
    return changed.length === 0 ? side : { ...side, changed };
  });
  return { ...result, why: { missing, sides: named } };
}

/** By the flags of the run, and their values. */
export function isAsked(flags: ReadonlyMap<string, string>): boolean {
  if (flags.has('why')) return true;
  if (['no-why', 'quick'].some((flag) => flags.has(flag))) return false;
  // perf sees what a request costs.
  return !serverMetricNames.some((metric) => metric === flags.get('metric'));
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
