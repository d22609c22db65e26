// The outcome of a search, and its sentences.
import {
  alphaOf,
  exponential,
  geometricMean,
  meanInterval,
  minimumRounds,
} from '../../analysis/statistics.ts';
import type { MeasuredVariant } from '../../analysis/verdict.ts';
import { isTooWide, percent, whole } from '../../format.ts';
import { limitText } from '../../report/found.ts';
import type { FoundRate, Result, Search } from '../../result/result.ts';

/** The rates that a search found. The interval is Student's, of the rates' logarithms. */
export function foundRates(
  measured: readonly Pick<MeasuredVariant, 'name' | 'found'>[],
): FoundRate[] {
  return measured.flatMap(({ name: variant, found = [] }) => {
    if (found.length === 0) return [];
    const rates = found.map(({ rate }) => rate);
    const interval = meanInterval(rates.map(Math.log), alphaOf());
    return {
      variant,
      rate: geometricMean(rates),
      ci95: rates.length < minimumRounds ? null : exponential(interval),
      atLeast: found.some(({ atLeast }) => atLeast),
    };
  });
}

/** The rates that a search found, and whether pauses blur the limit. */
export function foundLines({ search }: Pick<Result, 'search'>): string[] {
  if (search === undefined) return [];
  const limit = limitText(search.within);
  const lines = search.found.map(({ variant, rate, ci95, atLeast }) => {
    const rateText = `${atLeast ? 'at least ' : ''}${whole(rate)} requests/s`;
    const reason = atLeast
      ? ': beyond it the generator was at its limit (--generator-cpus gives it more cores)'
      : '';
    return `${variant} keeps ${limit} up to ${rateText} in half of its loads${intervalText(ci95)}${reason}.`;
  });
  return [...lines, ...blurredLines(search)];
}

function intervalText(ci95: readonly [number, number] | null): string {
  if (ci95 === null) return '';
  const ends = isTooWide(ci95) ? 'too wide to tell' : ci95.map(whole).join(' to ');
  return ` (95 % interval ${ends})`;
}

/** Steps below this share of the found rate are far below it. */
const farBelow = 0.6;
/** Fewer steps tell nothing; of more, this share may be broken by chance. */
const [tolerablyBroken, fewestSteps] = [0.2, 5];

function blurredLines({ within, found, steps }: Search): string[] {
  return found.flatMap(({ variant, rate }) => {
    const below = steps.filter((step) => step.variant === variant && step.rate < farBelow * rate);
    const broken = below.filter(
      ({ kept, latencyMs }) => !kept && latencyMs[within.metric] > within.ms,
    );
    if (below.length < fewestSteps || broken.length <= tolerablyBroken * below.length) return [];
    return `${variant}: ${whole(broken.length)} of ${whole(below.length)} steps at less than ${percent(farBelow)} of that rate broke ${limitText(within)}, too: pauses of the machine or of the server are as long as the limit. Try a wider one.`;
  });
}
