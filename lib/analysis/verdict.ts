// What figures are computed of.
import type {
  BesideRatio,
  Comparison,
  FoundRate,
  LatencyMetric,
  Metric,
  Result,
  Round,
  VariantResult,
  Verdict,
} from '../result/result.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import { percent, tolerance, whole } from '../format.ts';
import { byName } from '../present.ts';
import {
  dependenceOf,
  falseHolds,
  outliersOf,
  swayingRound,
  mostRounds,
  roundsToDecide,
} from './rounds.ts';
import { limitOf, mostStoodStill, rateOf, stoodStill } from './limit.ts';
import { isLatency, latencyMetrics, lessIsBetter, responsesNeeded } from './latency.ts';
import { isFailing } from './phases.ts';
import {
  alphaOf,
  exponential,
  halfWidth,
  logRatios,
  meanInterval,
  ratioInterval,
  type RatioInterval,
} from './statistics.ts';

/** A variant and what was measured of it. Every variant that was run has the same rounds in the same order. */
export interface MeasuredVariant extends Pick<
  VariantResult,
  'name' | 'server' | 'publishedOnly' | 'load' | 'published' | 'note' | 'series' | 'rounds'
> {
  /** The variant that its ratio is taken against; absent for a baseline. */
  against?: string;
  needsServerCores?: number;
  /** Absent: the machine's loopback. */
  network?: NetworkSpec;
  /** What a search found in each of the rounds, as in FoundRate: with `atLeast` maybe a higher rate. Absent without one. */
  found?: readonly Pick<FoundRate, 'rate' | 'atLeast'>[];
  /** What it comes down to on this machine: the files of its config and its workers, as text. Two that are equal in it cannot differ in speed. */
  setup: string;
  /** The same with one more core for the server; absent: no other. */
  setupOnMoreCores?: string;
}

/** What the figures need to know of the run. */
export interface RunFacts extends Pick<Result, 'quick' | 'sameWithin'> {
  serverCores: number;
  generatorCores: number;
  /** They are the same ones. */
  sharedCores: boolean;
  /** Where the servers are, as the person named it; absent: on this machine. */
  serverHost?: string;
  looks: readonly number[];
  /** What was asked to be judged by; absent: requests/s, and where the load sets them p99 and p50 of the latency. */
  metric?: Metric | undefined;
}

// From the rounds' figures to a verdict on one variant against its baseline.

/** Fewer rounds than this give no verdict: with 3 the interval is as wide as any effect. */
export const minimumRounds = 4;

/** A variant as it is compared. */
export interface Contender
  extends VariantResult, Pick<MeasuredVariant, 'setup' | 'setupOnMoreCores' | 'found'> {
  /** Per round, the same ones for both contenders: requests/s, CPU seconds of the server per response, and percentiles as percentilePerRound. */
  figures: Readonly<Record<Metric, readonly number[] | null>>;
}

/** Two that were run. With fewer cores for the server than `needsServerCores` they come to the same. */
export interface Pair {
  baseline: Contender;
  variant: Contender;
  needsServerCores: number;
}

/** How they are judged. `control`: variants that are the same are, too, since the scenario asks for it. */
interface Rules extends RunFacts {
  control: boolean;
}

/** The first one decides. */
function metricsOf(pair: Pair, { metric }: Rules): readonly Metric[] {
  if (metric !== undefined) return [metric];
  return rateIsSet(pair.baseline, pair.variant) ? ['p99', 'p50'] : ['rps'];
}

/** The comparison of a variant that nobody can run here: the article's ratio alone. */
export function comparePublished(baseline: Contender, variant: Contender): Comparison {
  return { ...without(baseline, variant), verdict: 'none', why: 'published only' };
}

/** The comparisons that need more rounds: inconclusive and wider than `precision`, swayed by one round, or of dependent rounds. */
export function unsettled(comparisons: readonly Comparison[], precision: number): Comparison[] {
  const judged = comparisons.filter(({ verdict }) => verdict !== 'none');
  return judged.filter(
    ({ verdict, ratio, ci95, roundRatios, swayedBy }) =>
      (verdict === 'inconclusive' && halfWidth({ ratio, interval: ci95 }) > precision) ||
      swayedBy !== null ||
      dependenceOf(roundRatios.map(Math.log), falseHolds / judged.length) !== null,
  );
}

/** What an interval of the ratio says. `same` goes first, and has limits for which it does not matter which of the two is the baseline. */
export function verdictOf([low, high]: RatioInterval['interval'], sameWithin: number): Judged {
  if (low >= 1 / (1 + sameWithin) && high <= 1 + sameWithin) return 'same';
  if (low > 1) return 'faster';
  return high < 1 ? 'slower' : 'inconclusive';
}

type Judged = Exclude<Verdict, 'none'>;

/** Without any ratio measured here. */
function without(
  baseline: Contender,
  variant: Contender,
  metric: Metric = 'rps',
): Omit<Comparison, 'verdict' | 'why'> {
  const [before, after] = [baseline.published?.rps, variant.published?.rps];
  return {
    metric,
    variant: variant.name,
    baseline: baseline.name,
    ratio: 0,
    ci95: [0, 0],
    publishedRatio:
      metric === 'rps' && before !== undefined && after !== undefined ? after / before : null,
    cpu: null,
    latency: { p50: null, p90: null, p99: null },
    roundRatios: [],
    outliers: [],
    swayedBy: null,
    roundsNeeded: null,
    disagreement: '',
    delayNotHeld: [],
  };
}

/**
 * Compares each variant with its baseline, over at least one round, in the same order. All that get a verdict, by whichever metric, share
 * α. A ratio that cannot be computed (nothing answered at all) is 0 with the interval [0, 0] and no verdict.
 */
export function compareAll(pairs: readonly Pair[], rules: Rules): Comparison[] {
  const questions = pairs.flatMap((pair) =>
    metricsOf(pair, rules).map((metric): Question => ({
      pair,
      metric,
      why: obstacle(pair, metric, rules),
    })),
  );
  const judged = questions.filter(({ why }) => why === undefined);
  const alpha = alphaOf(judged.length, rules.looks.length);
  for (const question of judged) {
    const { pair, metric } = question;
    question.judged = judge(
      metric,
      logRatios(...(figuresOf(pair, metric) as Figures)),
      alpha,
      rules.sameWithin,
    );
    if (!rules.control && metric !== 'cpu') question.held = heldBack(question.judged, pair);
  }
  return pairs.map((pair) =>
    compare(
      pair,
      questions.filter((one) => one.pair === pair),
      alpha,
      rules,
    ),
  );
}

/** A verdict that is asked for: `why` there is none, or what was `judged`, which does not hold where one's generator `held` it back. */
interface Question {
  pair: Pair;
  metric: Metric;
  why: string | undefined;
  judged?: Judged;
  held?: Contender | undefined;
}

/** @param questions at least one, the deciding one first */
function compare(
  pair: Pair,
  questions: readonly Question[],
  alpha: number,
  rules: Rules,
): Comparison {
  const { baseline, variant } = pair;
  const [question] = questions as [Question];
  const { metric, judged, why = '' } = question;
  const questionOf = (one: Metric): Question | undefined =>
    questions.find((question) => question.metric === one);
  const ratioBy = (one: Metric): Ratio | null => {
    const figures = figuresOf(pair, one);
    if (figures === null) return null;
    const { ratio, interval } = ratioInterval(...figures, alpha);
    return { ratio, ci95: interval };
  };
  const beside = (one: LatencyMetric): BesideRatio | null => {
    const ratio = ratioBy(one);
    return ratio && { ...ratio, verdict: verdictTo(questionOf(one)) };
  };
  const about = {
    ...without(baseline, variant, metric),
    cpu: ratioBy('cpu'),
    latency: byName(latencyMetrics, beside),
    delayNotHeld: [baseline, variant]
      .filter(({ network }) => network?.delayHeld === false)
      .map(({ name }) => name),
  };
  const figures = figuresOf(pair, metric);
  if (figures === null) return { ...about, verdict: 'none', why };
  const logs = logRatios(...figures);
  const cpuFigures = figuresOf(pair, 'cpu');
  const cpuLogs =
    metric === 'rps' && cpuFigures !== null && judged !== undefined
      ? logRatios(...cpuFigures)
      : null;
  const swaying =
    verdictTo(question) === 'none'
      ? null
      : swayingRound(logs, (some) => judge(metric, some, alpha, rules.sameWithin));
  const roundAt = (index: number): number => (variant.rounds[index] as Round).round;
  return {
    ...about,
    ...(ratioBy(metric) as Ratio),
    roundRatios: figures[0].map((figure, round) => (figures[1][round] as number) / figure),
    outliers: outliersOf(logs).map(roundAt),
    swayedBy: swaying === null ? null : { round: roundAt(swaying.index), without: swaying.without },
    disagreement:
      cpuLogs === null
        ? ''
        : disagreementOf([baseline.name, variant.name], { rps: logs, cpu: cpuLogs }, alpha),
    ...answerTo(question, logs, alpha, rules.sameWithin),
  };
}

type Ratio = Pick<Comparison, 'ratio' | 'ci95'>;

/** Below this it is worth no word: at its limit a server is from 90 % of its cores on, so it may be the limit at 95 % and at 100 %. */
const worthAWord = Math.log(1.05);

/**
 * A clause that says with which variant the server used less of its cores; '' where requests/s and CPU per request agree.
 * @param names of baseline and variant
 * @param logs ln(variant / baseline) of requests/s and of CPU per request, per round: their sum is that of the server's CPU use
 */
function disagreementOf(
  names: readonly [string, string],
  logs: { rps: readonly number[]; cpu: readonly number[] },
  alpha: number,
): string {
  const { middle, half } = meanInterval(
    logs.cpu.map((log, round) => log + (logs.rps[round] as number)),
    alpha,
  );
  if (Math.abs(middle) <= Math.max(half, worthAWord)) return '';
  const [less, more] = middle < 0 ? names.toReversed() : names;
  return `with ${less} the server's cores were ${percent(1 - Math.exp(-Math.abs(middle)))} less busy than with ${more}`;
}

/** @param logs ln(variant / baseline) per round */
function judge(metric: Metric, logs: readonly number[], alpha: number, sameWithin: number): Judged {
  const gains = lessIsBetter(metric) ? logs.map((log) => -log) : logs;
  return verdictOf(exponential(meanInterval(gains, alpha)), sameWithin);
}

/** Open model: the load sets requests/s, not the server. */
function rateIsSet(...some: readonly Contender[]): boolean {
  return some.some(({ load }) => load.rate !== undefined);
}

/** Of each round. */
type Figures = [baseline: readonly number[], variant: readonly number[]];

/** null where a round has none. */
function figuresOf({ baseline, variant }: Pair, metric: Metric): Figures | null {
  const [one, other] = [baseline.figures[metric], variant.figures[metric]];
  return measurable(one) && measurable(other) ? [one, other] : null;
}

function measurable(figures: readonly number[] | null): figures is readonly number[] {
  return figures !== null && figures.every((figure) => figure > 0 && Number.isFinite(figure));
}

/** Why there is no verdict, however wide the interval; undefined where there is one. */
function obstacle(pair: Pair, metric: Metric, { serverCores, control }: Rules): string | undefined {
  const { baseline, variant, needsServerCores } = pair;
  const both = [baseline, variant];
  if (figuresOf(pair, 'rps') === null) return 'nothing was answered in a whole round';
  if (isLatency(metric) && rateIsSet(baseline) !== rateIsSet(variant))
    return 'only one of the loads sets requests/s: their latencies are not of the same thing';
  const failing = both.find(isFailing);
  if (failing !== undefined)
    return `${percent(1 - (failing.successRatio ?? 0))} of the requests of ${failing.name} failed`;
  const behind = both.find((one) => rateOf(one)?.reached === false);
  if (behind !== undefined && isLatency(metric)) return `${behind.name} did not come to its rate`;
  const stood = isLatency(metric)
    ? both.find((one) => stoodStill(one) > mostStoodStill)
    : undefined;
  if (stood !== undefined)
    return `the generator stood still in ${percent(stoodStill(stood))} of the turns of ${stood.name}`;
  if (figuresOf(pair, metric) === null)
    return isLatency(metric)
      ? `${metric} needs ${whole(responsesNeeded[metric])} responses in each round: give it a longer --duration`
      : 'no CPU time was measured in a whole round';
  if (serverCores < needsServerCores) return `needs ${needsServerCores} server cores`;
  if (baseline.setup === variant.setup && !control) {
    // Numbers of workers that came to the same on few cores, more may part; what is written alike, none.
    const [one, other] = both.map(({ setup, setupOnMoreCores = setup }) => setupOnMoreCores);
    return one === other
      ? 'the same config and load here'
      : `needs ${serverCores + 1} server cores`;
  }
  return baseline.rounds.length < minimumRounds ? `needs ${minimumRounds} rounds` : undefined;
}

/** The side whose limited generator invalidates the verdict, since its server may be faster than shown; undefined without one. */
function heldBack(verdict: Verdict, { baseline, variant }: Pair): Contender | undefined {
  const sides = {
    faster: [baseline],
    slower: [variant],
    same: [baseline, variant],
    inconclusive: [],
    none: [],
  }[verdict];
  return sides.find(
    (one) => one.found?.some(({ atLeast }) => atLeast) === true || limitOf(one) === 'generator',
  );
}

/** What the rounds say to it; 'none' where it was not asked, not judged, or the generator was the limit. */
function verdictTo(question: Question | undefined): Verdict {
  return question?.judged === undefined || question.held !== undefined ? 'none' : question.judged;
}

function answerTo(
  question: Question,
  logs: readonly number[],
  alpha: number,
  sameWithin: number,
): Pick<Comparison, 'verdict' | 'why' | 'roundsNeeded'> {
  const { metric, held, why = '' } = question;
  const verdict = verdictTo(question);
  if (verdict === 'none')
    return {
      verdict,
      why: held === undefined ? why : `the generator was the limit with ${held.name}`,
      roundsNeeded: null,
    };
  const roundsNeeded = verdict === 'inconclusive' ? roundsToDecide(logs, alpha, sameWithin) : null;
  const [better, worse] = lessIsBetter(metric) ? ['below', 'above'] : ['above', 'below'];
  const reasons = {
    same: `the whole interval is within ${tolerance(sameWithin)} of equal`,
    faster: `the whole interval is ${better} 1`,
    slower: `the whole interval is ${worse} 1`,
    inconclusive:
      roundsNeeded === null
        ? `the interval includes 1: even ${whole(mostRounds)} rounds would probably not decide, a quieter machine may`
        : `the interval includes 1: about ${roundsNeeded} rounds would probably decide`,
  };
  return { verdict, why: reasons[verdict], roundsNeeded };
}
