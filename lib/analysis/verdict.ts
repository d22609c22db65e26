// Turns the rounds' figures into verdicts. docs/verdicts.md describes the method.
import { byName, present, allNames, zip } from '../present.ts';
import type {
  BesideRatio,
  Comparison,
  FoundRate,
  Metric,
  Result,
  VariantResult,
  Verdict,
} from '../result/result.ts';
import { serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';
import { latencyMetrics } from '../scenario/latency-metrics.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import { obstacleOfBodies } from './bodies.ts';
import { disagreementOf, type Disagreement, type Judgement, type Obstacle } from './judgement.ts';
import {
  isServerAtLimit,
  limitOf,
  mostStalled,
  queueGrows,
  rateOf,
  shareStalled,
} from './limit.ts';
import { alphaAt, type Look } from './looks.ts';
import { isLatency, judgedBy, metricNames, metrics } from './metrics.ts';
import { isDoubtful, lossOf, oneSided, starvedAlike } from './one-sided.ts';
import { alsoLoadedBy, isFailing, otherCpusOf, shareHung, tolerableFailures } from './phases.ts';
import { dependenceOf, falseHolds, outliersOf, roundsToDecide, swayingRound } from './rounds.ts';
import {
  halfWidth,
  logRatios,
  meanInterval,
  minimumRounds,
  ratioInterval,
  type RatioInterval,
} from './statistics.ts';
import { judgedOf } from './comparisons.ts';

/** All variants that were run have the same rounds in the same order. */
export interface MeasuredVariant extends Pick<
  VariantResult,
  | 'name'
  | 'server'
  | 'publishedOnly'
  | 'load'
  | 'answer'
  | 'published'
  | 'note'
  | 'series'
  | 'rounds'
> {
  /** The baseline's name; absent for a baseline. */
  against?: string;
  needsServerCores?: number;
  /** Default: loopback. */
  network?: NetworkSpec;
  /** The rate that a load in steps found in each round, as in FoundRate. */
  found?: readonly Pick<FoundRate, 'rate' | 'atLeast'>[];
  /** Config and workers as text: variants with equal text cannot differ in speed. */
  setup: string;
  /** `setup` on another server core more; absent: equal to `setup`. */
  setupOnMoreCores?: string;
}

export interface RunFacts extends Pick<Result, 'quick' | 'sameWithin'> {
  serverCores: number;
  generatorCores: number;
  sharedCores: boolean;
  /** The servers' host as the user named it; absent: this machine. */
  serverHost?: string;
  looks: readonly Look[];
  /** Runs that share the chance of a false verdict. Default: 1. */
  together?: number;
  /** The main metric. Default: requests/s; at a rate p99, with p50 as a second metric; for pages p50. */
  metric?: Metric | undefined;
  /** Metrics of servers that get a verdict beside it. */
  alsoAsked?: readonly ServerMetric[];
}

export interface Contender
  extends VariantResult, Pick<MeasuredVariant, 'setup' | 'setupOnMoreCores' | 'found'> {
  /** Per round, as figuresPerRound. */
  figures: Readonly<Record<Metric, readonly number[] | null>>;
}

/** A variant and what it is compared with. */
export interface Pair {
  baseline: Contender;
  variant: Contender;
  needsServerCores: number;
}

/** `control`: equal variants get a verdict, for the noise floor. */
interface Rules extends RunFacts {
  control: boolean;
}

type Judged = Exclude<Verdict, 'none'>;
type Figures = [baseline: readonly number[], variant: readonly number[]];

/** `why`: no verdict, whatever the interval. */
interface Question {
  pair: Pair;
  metric: Metric;
  why: Obstacle | null;
}

/** The questions about a pair. The one about the deciding metric comes first. */
type Questions = readonly [Question, ...Question[]];

/** Half-width of an interval, as a share, at which a run may end early. */
const usualPrecision = 0.01;
/** An interval this narrow relative to the effect (in logarithms) is also precise enough. */
const exactPart = 0.1;

/**
 * Returns the comparisons that need more rounds: imprecise, decided by a single round, based on dependent rounds, or inconclusive. An
 * inconclusive comparison needs none if its interval has the requested precision.
 * @param precision requested, as a share
 */
export function unsettled(comparisons: readonly Comparison[], precision?: number): Comparison[] {
  const judged = judgedOf(comparisons);
  return judged.filter(
    (comparison) =>
      (comparison.verdict === 'inconclusive' && precision === undefined) ||
      !isExact(comparison, precision ?? usualPrecision) ||
      comparison.swayedBy !== null ||
      dependenceOf(comparison.roundRatios.map(Math.log), falseHolds / judged.length) !== null,
  );
}

function isExact({ ratio, ci95 }: Comparison, precision: number): boolean {
  const width = halfWidth({ ratio, interval: ci95 });
  return width <= precision || Math.log1p(width) <= exactPart * Math.abs(Math.log(ratio));
}

/**
 * The verdict on the rounds of a comparison. *The same* is Schuirmann's two one-sided tests (J. Pharmacokinet. Biopharm. 15, 1987):
 * the interval with 2 · alpha is within the tolerance. A ratio beyond the tolerance is called the same, or different in the wrong
 * direction, only if the mean errs towards 1 by more than t(n−1, 1−alpha) · s/√n: with a chance of at most `alpha` for both.
 * @param gains ln(variant / baseline) per round, above 0 where the variant is better
 */
export function verdictOf(gains: readonly number[], alpha: number, sameWithin: number): Judged {
  const close = meanInterval(gains, 2 * alpha);
  if (Math.abs(close.middle) + close.half <= Math.log1p(sameWithin)) return 'same';
  const { middle, half } = meanInterval(gains, alpha);
  if (Math.abs(middle) <= half) return 'inconclusive';
  return middle > 0 ? 'faster' : 'slower';
}

/**
 * All verdicts of the run share α, with those of the runs that are judged together with it. Without any answer a ratio is 0 with the
 * interval [0, 0], and there is no verdict.
 */
export function compareAll(pairs: readonly Pair[], rules: Rules): Judgement[] {
  const questions = pairs.map((pair): Questions => {
    const ask = (metric: Metric) => ({ pair, metric, why: obstacle(pair, metric, rules) });
    const [first, ...beside] = metricsOf(pair, rules);
    return [ask(first), ...beside.map(ask)];
  });
  const judged = questions.flat().filter(({ why }) => why === null);
  const rounds = Math.max(0, ...pairs.map(({ variant }) => variant.rounds.length));
  const alpha = alphaAt(rules.looks, rounds, judged.length * (rules.together ?? 1));
  return questions.map((ofPair) => compare(ofPair, alpha, rules));
}

/** The first metric decides; the others have additional verdicts. */
function metricsOf(
  { baseline, variant }: Pair,
  { metric, alsoAsked = [], control, sharedCores }: Rules,
): readonly [Metric, ...Metric[]] {
  const beside = serverMetricNames.filter((name) => name !== metric && alsoAsked.includes(name));
  if (metric !== undefined) return [metric, ...beside];
  const both = [baseline, variant];
  const usual = judgedBy({
    ofPages: both.some((side) => filesOf(side) > 1),
    atRate: both.some(rateIsSet),
    // On shared cores no share means a limit. A load in steps ends at a limit of its latency, not of its cores.
    atLimit:
      !control &&
      !sharedCores &&
      both.every((side) => side.found === undefined && isServerAtLimit(side)),
  });
  return [...usual, ...beside];
}

function compare(questions: Questions, alpha: number, rules: Rules): Judgement {
  const [question] = questions;
  const { pair, metric, why } = question;
  const { baseline, variant } = pair;
  const ratioBy = (figures: Figures) => {
    const { ratio, interval } = ratioInterval(...figures, alpha);
    return { ratio, ci95: interval };
  };
  const beside = (name: Metric): BesideRatio | null => {
    const figures = figuresOf(pair, name);
    const asked = questions.find((other) => other.metric === name);
    if (figures === null) return null;
    if (asked === undefined) return { ...ratioBy(figures), verdict: 'none' };
    const { verdict } = answerTo(asked, logRatios(...figures), alpha, rules);
    return { ...ratioBy(figures), verdict };
  };
  const obstacles = metricNames.flatMap((name) => {
    const ofMetric =
      why !== null || figuresOf(pair, name) === null ? null : obstacle(pair, name, rules);
    return ofMetric === null ? [] : [{ metric: name, why: ofMetric }];
  });
  const late = [baseline, variant].filter(({ network }) => network?.delayHeld === false);
  const about = {
    ...uncompared(pair, metric, why),
    cpu: beside('cpu'),
    latency: byName(latencyMetrics, beside),
    ...present({ ofServer: ofServer(beside) }),
    ...(obstacles.length > 0 ? { obstacles } : {}),
    delayNotHeld: allNames(late),
  };
  const figures = figuresOf(pair, metric);
  if (figures === null) return about;
  const logs = logRatios(...figures);
  const answer = answerTo(question, logs, alpha, rules);
  const cpu = metric === 'rps' && why === null ? figuresOf(pair, 'cpu') : null;
  let disagreement: Disagreement | null = null;
  if (cpu !== null)
    disagreement = disagreementOf(pair, logs, logRatios(...cpu), alpha, rules.sameWithin);
  const judged = judgeOf(pair, metric, alpha, rules.sameWithin);
  const swaying = answer.verdict === 'none' ? null : swayingRound(logs, judged);
  const roundAt = (index: number) => variant.rounds[index]?.round ?? NaN;
  const { ratio, ci95 } = ratioBy(figures);
  return {
    ...about,
    ratio,
    ci95: widened(ci95, lossOf(baseline, variant, metric)),
    roundRatios: zip(...figures).map(([figure, other]) => other / figure),
    outliers: outliersOf(logs).map(roundAt),
    swayedBy: swaying && { round: roundAt(swaying.index), without: swaying.without },
    disagreement,
    ...answer,
  };
}

/** Absent if none is known. */
function ofServer(beside: (metric: Metric) => BesideRatio | null): Comparison['ofServer'] {
  const known: NonNullable<Comparison['ofServer']> = {};
  for (const metric of serverMetricNames) {
    const ratio = beside(metric);
    if (ratio !== null) known[metric] = ratio;
  }
  return Object.keys(known).length === 0 ? undefined : known;
}

/** A comparison without a ratio, but for that of the article. */
export function uncompared(
  { baseline, variant }: Pair,
  metric: Metric,
  why: Obstacle | null,
): Judgement {
  const [before, after] = [baseline.published?.rps, variant.published?.rps];
  const hasBoth = metric === 'rps' && before !== undefined && after !== undefined;
  return {
    metric,
    variant: variant.name,
    baseline: baseline.name,
    ratio: 0,
    ci95: [0, 0],
    verdict: 'none',
    why,
    publishedRatio: hasBoth ? after / before : null,
    cpu: null,
    latency: byName(latencyMetrics, () => null),
    roundRatios: [],
    outliers: [],
    swayedBy: null,
    roundsNeeded: null,
    disagreement: null,
    delayNotHeld: [],
  };
}

/** @param logs ln(variant / baseline) per round */
function judge(metric: Metric, logs: readonly number[], alpha: number, sameWithin: number): Judged {
  const gains = metrics[metric].lessIsBetter ? logs.map((log) => -log) : logs;
  return verdictOf(gains, alpha, sameWithin);
}

/** Returns the function that judges ln(variant / baseline) per round. A verdict holds with what one side lost to others and without it. */
function judgeOf(
  { baseline, variant }: Pair,
  metric: Metric,
  alpha: number,
  sameWithin: number,
): (logs: readonly number[]) => Judged {
  const loss = lossOf(baseline, variant, metric);
  return (logs) => {
    const verdict = judge(metric, logs, alpha, sameWithin);
    const shifted = logs.map((log) => log + loss);
    return judge(metric, shifted, alpha, sameWithin) === verdict ? verdict : 'inconclusive';
  };
}

const widened = (
  [low, high]: RatioInterval['interval'],
  loss: number,
): RatioInterval['interval'] => [
  low * Math.exp(Math.min(0, loss)),
  high * Math.exp(Math.max(0, loss)),
];

const rateIsSet = ({ load }: Contender): boolean => load.rate !== undefined;

/** The number of files of a page, if latencies are those of pages; else 1. */
const filesOf = ({ load }: Contender): number => (load.together ? (load.streams ?? 1) : 1);

function figuresOf({ baseline, variant }: Pair, metric: Metric): Figures | null {
  if (isLatency(metric) && (queueGrows(baseline) || queueGrows(variant))) return null;
  const [before, after] = [baseline.figures[metric], variant.figures[metric]];
  return isMeasurable(before) && isMeasurable(after) ? [before, after] : null;
}

function isMeasurable(figures: readonly number[] | null): figures is readonly number[] {
  return figures !== null && figures.every((figure) => figure > 0 && Number.isFinite(figure));
}

/** Returns why there is no verdict by this metric, whatever the interval. */
function obstacle(pair: Pair, metric: Metric, { serverCores, control }: Rules): Obstacle | null {
  const { baseline, variant, needsServerCores } = pair;
  const both = [baseline, variant];
  const ofLatency = isLatency(metric);
  if (figuresOf(pair, 'rps') === null) return { kind: 'noFigures', metric: 'rps' };
  if (ofLatency && rateIsSet(baseline) !== rateIsSet(variant)) return { kind: 'oneRate' };
  if (ofLatency && filesOf(baseline) !== filesOf(variant)) return { kind: 'otherFiles' };
  for (const { name, rounds } of both) {
    const by = alsoLoadedBy(rounds);
    if (by !== undefined) return { kind: 'alsoLoaded', name, by };
    const cpus = otherCpusOf(rounds);
    if (cpus.length > 0) return { kind: 'otherCpus', name, cpus };
  }
  const failing = both.find(isFailing);
  if (failing !== undefined)
    return { kind: 'failing', name: failing.name, successRatio: failing.successRatio ?? 0 };
  const hanging = both.find((side) => shareHung(side) > tolerableFailures);
  if (hanging !== undefined)
    return { kind: 'hanging', name: hanging.name, share: shareHung(hanging) };
  const ofBodies = obstacleOfBodies(both);
  if (ofBodies !== undefined) return ofBodies;
  const behind = both.find((side) => rateOf(side)?.reached === false);
  if (ofLatency && behind !== undefined) return { kind: 'belowRate', name: behind.name };
  const stalled = both.find((side) => shareStalled(side) > mostStalled);
  if (ofLatency && stalled !== undefined)
    return { kind: 'stalled', name: stalled.name, share: shareStalled(stalled) };
  if (figuresOf(pair, metric) === null) return { kind: 'noFigures', metric };
  const disturbances = [oneSided(baseline, variant)];
  if (metric === 'cpu') disturbances.push(starvedAlike(baseline, variant));
  for (const disturbance of disturbances)
    if (disturbance !== undefined && isDoubtful(disturbance, metric, roughly(pair, metric)))
      return { kind: 'oneSided', disturbance };
  if (serverCores < needsServerCores) return { kind: 'needsCores', needed: needsServerCores };
  if (baseline.setup === variant.setup && !control) {
    const [baselineSetup, variantSetup] = both.map(
      ({ setup, setupOnMoreCores = setup }) => setupOnMoreCores,
    );
    if (baselineSetup === variantSetup) return { kind: 'sameSetup' };
    return { kind: 'needsCores', needed: serverCores + 1 };
  }
  if (baseline.rounds.length < minimumRounds) return { kind: 'needsRounds', needed: minimumRounds };
  return null;
}

/** The interval of a ratio before it is known how many comparisons share the chance of error. */
function roughly(pair: Pair, metric: Metric): RatioInterval['interval'] {
  const figures = figuresOf(pair, metric);
  return figures === null ? [0, Infinity] : ratioInterval(...figures, 0.01).interval;
}

/** The side whose generator was the limit, if that could change the verdict. */
function heldBack(verdict: Judged, { baseline, variant }: Pair): Contender | undefined {
  const sides = {
    faster: [baseline],
    slower: [variant],
    same: [baseline, variant],
    inconclusive: [],
  }[verdict];
  return sides.find(
    (side) => side.found?.some(({ atLeast }) => atLeast) === true || limitOf(side) === 'generator',
  );
}

/** @param logs ln(variant / baseline) of the metric, per round */
function answerTo(
  { pair, metric, why }: Question,
  logs: readonly number[],
  alpha: number,
  { sameWithin, control }: Rules,
): Pick<Judgement, 'verdict' | 'why' | 'roundsNeeded'> {
  if (why !== null) return { verdict: 'none', why, roundsNeeded: null };
  const verdict = judgeOf(pair, metric, alpha, sameWithin)(logs);
  const held = control || !metrics[metric].isOfSpeed ? undefined : heldBack(verdict, pair);
  if (held !== undefined) {
    const limited: Obstacle = { kind: 'generatorLimit', name: held.name };
    return { verdict: 'none', why: limited, roundsNeeded: null };
  }
  // More rounds make the interval narrower, and not the loss.
  const mayNarrow = judge(metric, logs, alpha, sameWithin) === 'inconclusive';
  const roundsNeeded = mayNarrow ? roundsToDecide(logs, alpha, sameWithin) : null;
  return { verdict, why: null, roundsNeeded };
}
