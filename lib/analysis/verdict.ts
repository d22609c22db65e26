// From requests/s per round to a verdict on one variant against its baseline.
import { percent, tolerance, whole } from '../format.ts';
import type { Comparison, Verdict, VariantResult } from '../runner/result.ts';
import { disagreementOf, type Use } from './disagreement.ts';
import { limitOf } from './limit.ts';
import { outliersOf } from './outliers.ts';
import { mostRounds, roundsToDecide } from './rounds-needed.ts';
import { logRatios, ratioInterval, type RatioInterval } from './statistics.ts';

/** Fewer rounds than this give no verdict: with 3 the interval is as wide as any effect. */
export const minimumRounds = 4;

/** More failed requests than this and requests/s no longer say how fast the server answers. */
const tolerableFailures = 0.01;

/** What a comparison needs to know of one variant. */
export interface Contender {
  name: string;
  /** Numbers of the rounds, the same for both contenders. */
  rounds: readonly number[];
  /** requests/s per round. */
  rps: readonly number[];
  /** CPU seconds of the server per request, per round. */
  cpu: readonly number[];
  /** 2xx and 3xx per request, over all rounds. */
  successRatio: number;
  /** Open model: the load sets requests/s, not the server. */
  rateIsSet: boolean;
  /** The files of its config and its workers, as text: two that are equal in it cannot differ in speed. */
  setup: string;
  publishedRps: number | null;
  /** The delay of its network was what was asked for; true on loopback. */
  delayHeld: boolean;
  use: Use;
}

/** How a comparison is judged. */
export interface Rules {
  /** See alphaOf. */
  alpha: number;
  /** See Result.sameWithin. */
  sameWithin: number;
  /** Cores that the servers ran on. */
  serverCores: number;
  /** With fewer the two come to the same. */
  needsServerCores: number;
  /** Variants that are the same are judged: the scenario asks for it. */
  control: boolean;
}

/** The comparison of a variant that nobody can run here: the article's ratio alone. */
export function comparePublished(baseline: Contender, variant: Contender): Comparison {
  return { ...without(baseline, variant), verdict: 'none', why: 'published only' };
}

/** Whether the comparison is one of requests/s measured here: where the load sets them, its ratio says nothing. */
export function comparable(variant: VariantResult | undefined, comparison: Comparison | undefined): comparison is Comparison {
  return comparison !== undefined && variant !== undefined && variant.rounds.length > 0 && variant.load.rate === undefined;
}

/** What stands behind a verdict that may be the link's: ", delay not held", or ''. */
export function delayMark({ delayNotHeld }: Pick<Comparison, 'delayNotHeld'>): string {
  return delayNotHeld.length === 0 ? '' : ', delay not held';
}

/** Whether there is nothing to wait for: no comparison is inconclusive. Those without a verdict get none by more rounds. */
export function decided(comparisons: readonly Comparison[]): boolean {
  return comparisons.every(({ verdict }) => verdict !== 'inconclusive');
}

/** Without any ratio measured here. */
function without(baseline: Contender, variant: Contender): Omit<Comparison, 'verdict' | 'why'> {
  const publishedRatio = variant.publishedRps !== null && baseline.publishedRps !== null ? variant.publishedRps / baseline.publishedRps : null;
  return {
    metric: 'rps', variant: variant.name, baseline: baseline.name, ratio: 0, ci95: [0, 0], publishedRatio,
    cpu: null, roundRatios: [], outliers: [], roundsNeeded: null, disagreement: '', delayNotHeld: [],
  };
}

/**
 * Compares a variant with its baseline, over at least one round. A ratio that cannot be computed (nothing answered at all)
 * is 0 with the interval [0, 0] and no verdict. A verdict holds for this machine in this boot: rounds repeat what varies from
 * one start of a server to the next, and not what varies from one boot to the next.
 */
export function compare(baseline: Contender, variant: Contender, rules: Rules): Comparison {
  const delayNotHeld = [baseline, variant].flatMap(({ name, delayHeld }) => (delayHeld ? [] : [name]));
  const nothing = { ...without(baseline, variant), delayNotHeld };
  if (!measurable(baseline.rps) || !measurable(variant.rps)) return { ...nothing, verdict: 'none', why: 'nothing was answered in a whole round' };
  const { ratio, interval } = ratioInterval(baseline.rps, variant.rps, rules.alpha);
  const logs = logRatios(baseline.rps, variant.rps);
  const hasCpu = measurable(baseline.cpu) && measurable(variant.cpu);
  const cpu = hasCpu ? ratioInterval(baseline.cpu, variant.cpu, rules.alpha) : null;
  const why = obstacle(baseline, variant, rules);
  return {
    ...nothing,
    ratio,
    ci95: interval,
    cpu: cpu === null ? null : { ratio: cpu.ratio, ci95: cpu.interval },
    roundRatios: baseline.rps.map((rps, round) => (variant.rps[round] as number) / rps),
    outliers: rateIsSet(baseline, variant) ? [] : outliersOf(logs).map((index) => variant.rounds[index] as number),
    disagreement: hasCpu && why === undefined ? disagreement() : '',
    ...(why === undefined ? judged() : { verdict: 'none', why }),
  };

  function judged(): Judgement {
    const judgement = judge(logs, interval, rules);
    const held = rules.control ? undefined : heldBack(judgement.verdict, baseline, variant);
    return held === undefined ? judgement : { verdict: 'none', why: `the generator was the limit with ${held.name}`, roundsNeeded: null };
  }

  function disagreement(): string {
    const cpuLogs = logRatios(baseline.cpu, variant.cpu);
    return disagreementOf(baseline.use, variant.use, logs.map((d, round) => d + (cpuLogs[round] as number)), rules.alpha);
  }
}

function rateIsSet(baseline: Contender, variant: Contender): boolean {
  return baseline.rateIsSet || variant.rateIsSet;
}

function measurable(figures: readonly number[]): boolean {
  return figures.every((figure) => figure > 0 && Number.isFinite(figure));
}

/** Why there is no verdict, whatever the figures; undefined where there is one. */
function obstacle(baseline: Contender, variant: Contender, { serverCores, needsServerCores, control }: Rules): string | undefined {
  if (rateIsSet(baseline, variant)) return 'the load sets requests/s: compare latencies';
  const failing = [baseline, variant].find((one) => 1 - one.successRatio > tolerableFailures);
  if (failing !== undefined) return `${percent(1 - failing.successRatio)} of the requests of ${failing.name} failed`;
  if (serverCores < needsServerCores) return `needs ${needsServerCores} server cores`;
  if (baseline.setup === variant.setup && !control) return serverCores < 2 ? 'needs 2 server cores' : 'the same config and workers on this machine';
  if (baseline.rps.length < minimumRounds) return `needs ${minimumRounds} rounds`;
  return undefined;
}

/**
 * On whose requests/s a verdict cannot rest; undefined where it can. With the generator at its limit a server did as many as
 * it was asked, and can do more: enough to call it faster than another one, not to call it slower, or as fast.
 */
function heldBack(verdict: Verdict, baseline: Contender, variant: Contender): Contender | undefined {
  const sides = { faster: [baseline], slower: [variant], same: [baseline, variant], inconclusive: [], none: [] }[verdict];
  return sides.find(({ use }) => limitOf(use) === 'generator');
}

type Judgement = Pick<Comparison, 'verdict' | 'why' | 'roundsNeeded'>;

function judge(logs: readonly number[], interval: RatioInterval['interval'], { alpha, sameWithin }: Rules): Judgement {
  const verdict = verdictOf(interval, sameWithin);
  const roundsNeeded = verdict === 'inconclusive' ? roundsToDecide(logs, alpha, sameWithin) : null;
  return { verdict, why: why(), roundsNeeded };

  function why(): string {
    switch (verdict) {
      case 'same': return `the whole interval is within ${tolerance(sameWithin)} of equal`;
      case 'faster': return 'the whole interval is above 1';
      case 'slower': return 'the whole interval is below 1';
      case 'inconclusive': return roundsNeeded === null
        ? `the interval includes 1: even ${whole(mostRounds)} rounds would probably not decide, a quieter machine may`
        : `the interval includes 1: about ${roundsNeeded} rounds would probably decide`;
    }
  }
}

/**
 * What an interval of the ratio says. `same` lies wholly between 1 / (1 + sameWithin) and 1 + sameWithin, so that it does not
 * matter which of the two is the baseline; it goes before faster and slower, since a difference that nobody would notice is none.
 */
export function verdictOf([low, high]: RatioInterval['interval'], sameWithin: number): Exclude<Verdict, 'none'> {
  if (low >= 1 / (1 + sameWithin) && high <= 1 + sameWithin) return 'same';
  if (low > 1) return 'faster';
  return high < 1 ? 'slower' : 'inconclusive';
}
