// From requests/s per round to a verdict on one variant against its baseline.
import type { Comparison, VariantResult } from '../runner/result.ts';
import { percent } from '../format.ts';
import { ratioInterval } from './statistics.ts';

/** Fewer rounds than this give no verdict: with 3 the interval is as wide as any effect. */
export const minimumRounds = 4;

/** Within this of 1 two variants are the same for every practical purpose: what one machine repeats itself to. */
const sameWithin = 0.01;

/** More failed requests than this and requests/s no longer say how fast the server answers. */
const tolerableFailures = 0.01;

/** What a comparison needs to know of one variant. */
export interface Contender {
  name: string;
  /** requests/s per round; the same rounds in the same order for both contenders. */
  rps: readonly number[];
  /** 2xx and 3xx per request, over all rounds. */
  successRatio: number;
  /** Open model: the load sets requests/s, not the server. */
  rateIsSet: boolean;
  /** The files of its config and its workers, as text: two that are equal in it cannot differ in speed. */
  setup: string;
  publishedRps: number | null;
}

/** The comparison of a variant that nobody can run here: the article's ratio alone. */
export function comparePublished(baseline: Contender, variant: Contender): Comparison {
  return {
    metric: 'rps', variant: variant.name, baseline: baseline.name, ratio: 0, ci95: [0, 0], verdict: 'none', why: 'published only',
    publishedRatio: publishedRatio(baseline, variant),
  };
}

/** Whether the comparison is one of requests/s measured here: where the load sets them, its ratio says nothing. */
export function comparable(variant: VariantResult | undefined, comparison: Comparison | undefined): comparison is Comparison {
  return comparison !== undefined && variant !== undefined && variant.rounds.length > 0 && variant.load.rate === undefined;
}

function publishedRatio(baseline: Contender, variant: Contender): number | null {
  return variant.publishedRps !== null && baseline.publishedRps !== null ? variant.publishedRps / baseline.publishedRps : null;
}

/**
 * Compares a variant with its baseline. A ratio that cannot be computed (nothing answered at all) is 0 with the interval
 * [0, 0] and no verdict.
 * @param comparisons how many variants are compared with this baseline (the interval is widened for it)
 * @param serverCores cores that the servers ran on, for the words when scaling took the difference away
 */
export function compare(baseline: Contender, variant: Contender, comparisons: number, serverCores: number): Comparison {
  const measurable = [...baseline.rps, ...variant.rps].every((rps) => rps > 0);
  const { ratio, interval } = measurable
    ? ratioInterval(baseline.rps, variant.rps, comparisons)
    : { ratio: 0, interval: [0, 0] as [number, number] };
  return {
    metric: 'rps',
    variant: variant.name,
    baseline: baseline.name,
    ratio,
    ci95: interval,
    ...judge(),
    publishedRatio: publishedRatio(baseline, variant),
  };

  function judge(): Pick<Comparison, 'verdict' | 'why'> {
    if (!measurable) return { verdict: 'none', why: 'nothing was answered in a whole round' };
    if (baseline.rateIsSet || variant.rateIsSet) return { verdict: 'none', why: 'the load sets requests/s: compare latencies' };
    const failing = [baseline, variant].find((one) => 1 - one.successRatio > tolerableFailures);
    if (failing !== undefined) {
      return { verdict: 'none', why: `${percent(1 - failing.successRatio)} of the requests of ${failing.name} failed` };
    }
    if (baseline.setup === variant.setup) {
      return { verdict: 'none', why: serverCores < 2 ? 'needs 2 server cores' : 'the same config and workers on this machine' };
    }
    if (baseline.rps.length < minimumRounds) return { verdict: 'none', why: `needs ${minimumRounds} rounds` };
    const [low, high] = interval;
    if (low >= 1 - sameWithin && high <= 1 + sameWithin) return { verdict: 'same', why: 'the whole interval is within 1 % of equal' };
    if (low > 1) return { verdict: 'faster', why: 'the whole interval is above 1' };
    if (high < 1) return { verdict: 'slower', why: 'the whole interval is below 1' };
    return { verdict: 'inconclusive', why: 'the interval includes 1: more rounds or a quieter machine would narrow it' };
  }
}
