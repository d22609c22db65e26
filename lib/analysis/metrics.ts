// The metrics of comparisons. A new one is an object here, and its name in the format of results (lib/result/result.ts).
import { perSecond, short, whole } from '../format.ts';
import { present } from '../present.ts';
import type { LatencyMetric, Metric, Round, Verdict } from '../result/result.ts';
import { mergedLatency, responsesNeeded, valuesIn } from './latency.ts';
import { roundRps, serverCpuSecondsPerResponse } from './phases.ts';
import { total } from './statistics.ts';

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
  p50: percentile('p50', ({ ofPages, atRate }) =>
    ofPages ? 'first' : atRate ? 'beside' : undefined,
  ),
  p90: percentile('p90'),
  p99: percentile('p99', ({ ofPages, atRate }) => (!ofPages && atRate ? 'first' : undefined)),
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
