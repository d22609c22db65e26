// What a search found, for the table, its sentences and its chart.
import type { CurvePoint } from '../../analysis/curves.ts';
import {
  alphaOf,
  exponential,
  geometricMean,
  meanInterval,
  minimumRounds,
} from '../../analysis/statistics.ts';
import type { MeasuredVariant } from '../../analysis/verdict.ts';
import type { FoundRates } from '../../feature.ts';
import { isTooWide, percent, scaledTime, whole } from '../../format.ts';
import type { FoundRate, RateStep, Result, Search } from '../../result/result.ts';
import type { Within } from '../../scenario/model.ts';

/** e.g. "p99 within 5 ms". */
export function limitText({ metric, ms }: Within): string {
  return `${metric} within ${scaledTime(ms)}`;
}

/** The rates and steps of a result; undefined without a search. */
export function ratesFound({ search }: Pick<Result, 'search'>): FoundRates | undefined {
  if (search === undefined) return undefined;
  const { within, found, steps } = search;
  const text = limitText(within);
  return {
    judgedBy: `the highest rate with ${text}`,
    limit: { ms: within.ms, text },
    rates: found,
    pointsOf: (variant) => pointsOf(steps, variant),
    chart: {
      heading: `Latency by rate; bars are p99, × where ${text} was not kept:`,
      text: `Each mark is the p99 of a step of the search, filled if it kept ${text}; lines go through the medians of steps at about the same rate.`,
    },
  };
}

function pointsOf(steps: readonly RateStep[], name: string): CurvePoint[] {
  const ofVariant = steps.filter(({ variant }) => variant === name);
  return ofVariant.map(({ rate, kept, latencyMs: { p50, p99 } }) => ({ rate, p50, p99, kept }));
}

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
    const reason = atLeast ? ': beyond it the generator was at its limit' : '';
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
