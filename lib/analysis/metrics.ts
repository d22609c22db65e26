// The metrics of comparisons. A new one of servers is an object in lib/result/server-metrics.ts; another one is an object here, and its
// name in the format of results (lib/result/result.ts).
import { perSecond, short, whole } from '../format.ts';
import { byName, present } from '../present.ts';
import type {
  BesideRatio,
  Comparison,
  LatencyMetric,
  Metric,
  Result,
  Round,
  Verdict,
} from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';
import { mergedLatency, responsesNeeded, valuesIn } from './latency.ts';
import { roundRps, serverCpuSecondsPerResponse } from './phases.ts';
import { median, total } from './statistics.ts';

/** What a pair's loads are like. */
interface Loads {
  /** A latency is of a page with several files. */
  ofPages: boolean;
  /** They set requests/s. */
  atRate: boolean;
  /** Both servers used all that they could of their cores. */
  atLimit: boolean;
}

export interface MetricFacts {
  /** In sentences. */
  name: string;
  /** The title of an axis, with the unit of `of`. */
  axis: string;
  text: (figure: number) => string;
  lessIsBetter: boolean;
  /** What its verdicts are called, and what equal sides are: "as fast as". */
  words: Readonly<Record<'faster' | 'slower' | 'same', string>>;
  /** What more of it is called, then less. */
  ends: readonly [worse: string, better: string];
  /** An effect is told as a share of this: "22 % of the CPU". */
  shareOf?: string;
  /** A round's figure; NaN if it is unknown. */
  of: (round: Round) => number;
  /** Responses that a round needs for it. */
  responsesNeeded?: number;
  /** Why there is no verdict without figures. */
  missing: string;
  /** The same for the requests of a log at their own times. */
  missingInLog?: string;
  /** It is of the load's speed, which the generator and other programs can change. */
  isOfSpeed: boolean;
  /** What it is of a server, if it is known only of those that bakeoff starts. */
  ofProcesses?: string;
  /** Whether it decides on such loads, or has a verdict beside the metric that does. Absent: only if it is asked for. */
  decides?: (loads: Loads) => 'first' | 'beside' | undefined;
  /** Shown only where it is asked for. */
  whereAsked?: {
    /** Of `of`. */
    unit: string;
    /** A difference that nobody asked for is told if each round has at least so much of it, in the unit of `of`. */
    tells: number;
    /** "b uses 31 % less memory than a". @param change such as "31 % less" */
    sentence: (variant: string, baseline: string, change: string) => string;
    /** "b uses 4.5 times the memory of a". */
    timesSentence: (variant: string, baseline: string, times: string) => string;
  };
}

const speed = { faster: 'faster', slower: 'slower', same: 'as fast' };

function percentile(metric: LatencyMetric, decides?: MetricFacts['decides']): MetricFacts {
  const needed = `${metric} needs ${whole(responsesNeeded[metric])} responses in each round`;
  return {
    name: metric,
    axis: `${metric}, ms`,
    text: short,
    lessIsBetter: true,
    words: speed,
    ends: ['slower', 'faster'],
    of: ({ phases }) => mergedLatency(phases.map(({ latencyMs }) => latencyMs))[metric],
    responsesNeeded: responsesNeeded[metric],
    missing: `${needed}: give it a longer --duration`,
    missingInLog: `${needed}: the log has too few for its pace`,
    isOfSpeed: true,
    ...present({ decides }),
  };
}

function ofServer(metric: ServerMetric): MetricFacts {
  const facts = factsOf(metric);
  const { field, perUnit, unit, tells, sentence, timesSentence } = facts;
  return {
    name: facts.name,
    axis: facts.axis,
    text: facts.text,
    lessIsBetter: true,
    words: facts.words,
    ends: facts.ends,
    of: ({ [field]: figure = NaN }) => figure / perUnit,
    missing: facts.missing,
    isOfSpeed: false,
    ofProcesses: facts.ofProcesses,
    whereAsked: { unit, tells, sentence, timesSentence },
  };
}

/** In the order in which they are named. */
export const metrics: Readonly<Record<Metric, MetricFacts>> = {
  rps: {
    name: 'requests/s',
    axis: 'requests/s',
    text: perSecond,
    lessIsBetter: false,
    words: speed,
    ends: ['slower', 'faster'],
    of: ({ phases }) => roundRps(phases),
    missing: 'nothing was answered in a whole round',
    isOfSpeed: true,
    decides: ({ ofPages, atRate }) => (ofPages || atRate ? undefined : 'first'),
  },
  cpu: {
    name: 'CPU per request',
    axis: 'CPU µs per request',
    text: short,
    lessIsBetter: true,
    words: { faster: 'cheaper', slower: 'costlier', same: 'as cheap' },
    ends: ['more CPU', 'less CPU'],
    shareOf: 'the CPU',
    of: ({ phases }) => 1e6 * serverCpuSecondsPerResponse(phases),
    missing: 'no CPU time was measured in a whole round',
    isOfSpeed: false,
    ofProcesses: 'CPU time',
    // A server at its limit has as many requests/s as its CPU time per request allows.
    decides: ({ ofPages, atRate, atLimit }) =>
      !ofPages && !atRate && atLimit ? 'beside' : undefined,
  },
  p50: percentile('p50', ({ ofPages, atRate }) => {
    if (ofPages) return 'first';
    return atRate ? 'beside' : undefined;
  }),
  p90: percentile('p90'),
  p99: percentile('p99', ({ ofPages, atRate }) => (!ofPages && atRate ? 'first' : undefined)),
  ...byName(serverMetricNames, ofServer),
};

export const metricNames = Object.keys(metrics) as Metric[];

export const latencyMetrics = ['p50', 'p90', 'p99'] as const satisfies LatencyMetric[];

export function isLatency(metric: string): metric is LatencyMetric {
  return latencyMetrics.some((one) => one === metric);
}

/** The figures of rounds, in the unit of `of`; null if a round has too few responses for it. NaN: unknown. */
export function figuresPerRound(metric: Metric, rounds: readonly Round[]): number[] | null {
  const { of, responsesNeeded: needed = 0 } = metrics[metric];
  const isEnough = ({ phases }: Round) =>
    needed === 0 || total(phases, ({ latencyMs }) => valuesIn(latencyMs)) >= needed;
  return rounds.every(isEnough) ? rounds.map(of) : null;
}

/** A comparison by another metric than requests/s; null if it is not known. */
export function besideOf(
  { cpu, latency, ofServer = {} }: Pick<Comparison, 'cpu' | 'latency' | 'ofServer'>,
  metric: Metric,
): BesideRatio | null {
  if (metric === 'rps') return null;
  if (metric === 'cpu') return cpu;
  return isLatency(metric) ? latency[metric] : (ofServer[metric] ?? null);
}

/** A round's median figure; undefined if a round's is not known. */
export function typicalOf(metric: Metric, rounds: readonly Round[]): number | undefined {
  const figures = figuresPerRound(metric, rounds) ?? [];
  return figures.length > 0 && figures.every(Number.isFinite) ? median(figures) : undefined;
}

/** As typicalOf, in the unit of the metric's column. */
export function inColumn(metric: ServerMetric, rounds: readonly Round[]): number | undefined {
  const { perUnit, columnUnit } = factsOf(metric);
  const typical = typicalOf(metric, rounds);
  if (typical === undefined) return undefined;
  return columnUnit === 'bytes' ? Math.round(perUnit * typical) : perUnit * typical;
}

/** The metrics of servers that a run was asked for. */
export function askedOf({
  comparisons,
  alsoAsked = [],
}: Pick<Result, 'comparisons' | 'alsoAsked'>) {
  const asked = new Set<Metric>([...comparisons.map(({ metric }) => metric), ...alsoAsked]);
  return serverMetricNames.flatMap((metric) => {
    const { whereAsked, ...facts } = metrics[metric];
    return whereAsked === undefined || !asked.has(metric) ? [] : { ...facts, metric, whereAsked };
  });
}

/** The metrics that judge a pair: the first decides, the others have a verdict beside it. */
export function judgedBy(loads: Loads): readonly [Metric, ...Metric[]] {
  const having = (place: 'first' | 'beside') =>
    metricNames.filter((metric) => metrics[metric].decides?.(loads) === place);
  return [...having('first'), ...having('beside')] as [Metric, ...Metric[]];
}

/** The verdict in words; for CPU time "cheaper" and "costlier". */
export function verdictWord(metric: Metric, verdict: Verdict): string {
  return verdict === 'faster' || verdict === 'slower' ? metrics[metric].words[verdict] : verdict;
}
