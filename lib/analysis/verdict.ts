// From requests/s per round to a verdict on one variant against its baseline.
import { percent, tolerance, whole } from '../format.ts';
import type { Comparison, Result, Verdict, VariantResult } from '../runner/result.ts';
import { disagreementOf, type Use } from './disagreement.ts';
import { judgeFamily, type Judged } from './family.ts';
import { limitOf } from './limit.ts';
import { outliersOf } from './outliers.ts';
import { mostRounds, roundsToDecide } from './rounds-needed.ts';
import { alphaOf, halfWidth, logRatios, ratioInterval } from './statistics.ts';

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
  /** CPU seconds of the server per response, per round. */
  cpu: readonly number[];
  /** As successRatioOf, over all rounds. */
  successRatio: number;
  /** Open model: the load sets requests/s, not the server. */
  rateIsSet: boolean;
  /** The files of its config and its workers, as text: two that are equal in it cannot differ in speed. */
  setup: string;
  /** The same with one more core for the server. */
  setupOnMoreCores: string;
  publishedRps: number | null;
  /** The delay of its network was what was asked for; true on loopback. */
  delayHeld: boolean;
  use: Use;
}

/** Two that were run. With fewer cores for the server than `needsServerCores` they come to the same. */
export interface Pair { baseline: Contender; variant: Contender; needsServerCores: number }

/** How comparisons are judged. */
export interface Rules {
  /** How often the verdicts are looked at. */
  looks: number;
  /** See Result.sameWithin. */
  sameWithin: number;
  /** Cores that the servers ran on. */
  serverCores: number;
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

/** What stands behind a verdict that was made before its time, after which more rounds may take it back: ", not final", or ''. */
export function notFinalMark({ state }: Pick<Result, 'state'>): string {
  return state === 'partial' ? ', not final' : '';
}

/** Whether more rounds have nothing to bring: it is not inconclusive (without a verdict it gets none by more), or its interval lies within `precision` of its ratio. */
export function settled({ verdict, ratio, ci95 }: Comparison, precision: number): boolean {
  return verdict !== 'inconclusive' || halfWidth({ ratio, interval: ci95 }) <= precision;
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
 * Compares each variant with its baseline, over at least one round, in the same order. Those that nothing keeps from a verdict
 * are one family. A ratio that cannot be computed (nothing answered at all) is 0 with the interval [0, 0] and no verdict. A
 * verdict holds for this machine in this boot: rounds repeat what varies from one start of a server to the next, and not what
 * varies from one boot to the next.
 */
export function compareAll(pairs: readonly Pair[], rules: Rules): Comparison[] {
  const judged = pairs.filter((pair) => obstacle(pair, rules) === undefined);
  const family = judgeFamily(judged.map(({ baseline, variant }) => logRatios(baseline.rps, variant.rps)), alphaOf(1, rules.looks), rules.sameWithin);
  // Of each of them alone, whatever becomes of the others.
  const alpha = alphaOf(judged.length, rules.looks);
  return pairs.map((pair) => compare(pair, family[judged.indexOf(pair)], alpha, rules));
}

function compare(pair: Pair, judged: Judged | undefined, alpha: number, rules: Rules): Comparison {
  const { baseline, variant } = pair;
  const delayNotHeld = [baseline, variant].flatMap(({ name, delayHeld }) => (delayHeld ? [] : [name]));
  const nothing = { ...without(baseline, variant), delayNotHeld };
  const why = obstacle(pair, rules) ?? '';
  if (!hasRatio(pair)) return { ...nothing, verdict: 'none', why };
  const { ratio, interval } = ratioInterval(baseline.rps, variant.rps, alpha);
  const logs = logRatios(baseline.rps, variant.rps);
  const hasCpu = measurable(baseline.cpu) && measurable(variant.cpu);
  const cpu = hasCpu ? ratioInterval(baseline.cpu, variant.cpu, alpha) : null;
  return {
    ...nothing,
    ratio,
    ci95: judged?.interval ?? interval,
    cpu: cpu === null ? null : { ratio: cpu.ratio, ci95: cpu.interval },
    roundRatios: baseline.rps.map((rps, round) => (variant.rps[round] as number) / rps),
    outliers: rateIsSet(pair) ? [] : outliersOf(logs).map((index) => variant.rounds[index] as number),
    disagreement: hasCpu && judged !== undefined ? disagreement() : '',
    ...(judged === undefined ? { verdict: 'none', why } : judgementOn(judged)),
  };

  function judgementOn({ verdict }: Judged): Judgement {
    const held = rules.control ? undefined : heldBack(verdict, baseline, variant);
    return held === undefined ? judgement(verdict, logs, alpha, rules.sameWithin) : { verdict: 'none', why: `the generator was the limit with ${held.name}`, roundsNeeded: null };
  }

  function disagreement(): string {
    const cpuLogs = logRatios(baseline.cpu, variant.cpu);
    return disagreementOf(baseline.use, variant.use, logs.map((d, round) => d + (cpuLogs[round] as number)), alpha);
  }
}

function rateIsSet({ baseline, variant }: Pair): boolean {
  return baseline.rateIsSet || variant.rateIsSet;
}

function hasRatio({ baseline, variant }: Pair): boolean {
  return measurable(baseline.rps) && measurable(variant.rps);
}

function measurable(figures: readonly number[]): boolean {
  return figures.every((figure) => figure > 0 && Number.isFinite(figure));
}

/** Why there is no verdict, however wide the interval; undefined where there is one. */
function obstacle(pair: Pair, { serverCores, control }: Rules): string | undefined {
  const { baseline, variant, needsServerCores } = pair;
  if (!hasRatio(pair)) return 'nothing was answered in a whole round';
  if (rateIsSet(pair)) return 'the load sets requests/s: compare latencies';
  const failing = [baseline, variant].find((one) => 1 - one.successRatio > tolerableFailures);
  if (failing !== undefined) return `${percent(1 - failing.successRatio)} of the requests of ${failing.name} failed`;
  if (serverCores < needsServerCores) return `needs ${needsServerCores} server cores`;
  if (baseline.setup === variant.setup && !control) return sameSetup(pair, serverCores);
  if (baseline.rps.length < minimumRounds) return `needs ${minimumRounds} rounds`;
  return undefined;
}

/** Numbers of workers that came to the same on few cores, more may part; what is written alike, none. */
function sameSetup({ baseline, variant }: Pair, serverCores: number): string {
  return baseline.setupOnMoreCores === variant.setupOnMoreCores ? 'the same config and load here' : `needs ${serverCores + 1} server cores`;
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

function judgement(verdict: Judged['verdict'], logs: readonly number[], alpha: number, sameWithin: number): Judgement {
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
