// The catalogue of bakeoff's points in InfluxDB, beside k6's samples: points.ts writes by it, and the dashboards read by it. Numbers are
// floats; missing figures are left out.
import metrics from '../../../xk6-loadgen/metrics.json' with { type: 'json' };
import type { CurvePoint } from '../../analysis/curves.ts';
import { wholeRounds } from '../../analysis/phases.ts';
import type { PageSum } from '../../analysis/pages.ts';
import { effect } from '../../format.ts';
import type { Comparison, Result, VariantResult } from '../../result/result.ts';
import { written, type StoredMeasurement } from './fields.ts';
import { benchRound, serverCpu, serverRss } from './round-points.ts';
import { benchComparison } from './comparison-points.ts';
import { benchBucket, benchPhase } from './phase-points.ts';

/** Tags of every loadgen_* sample; `instance_id` only if several generators share a load. */
const sampleTags = [
  'run',
  'scenario',
  'variant',
  'round',
  'phase',
  'server',
  'protocol',
  'instance',
  'instance_id',
] as const;

/** k6's samples: a measurement per metric of xk6-loadgen/metrics.json, with the field `value`. */
export const loadgenMeasurements: readonly StoredMeasurement[] = metrics.map((metric) => ({
  measurement: metric.name,
  tags: [...sampleTags, ...metric.tags],
  fields: { value: { unit: metric.unit } },
}));

/**
 * A point per step of a search, or per rate of a sweep. In a sweep, `variant` is the config that is loaded at all rates. The lowest
 * rates come first.
 */
export const benchCurve = written<CurvePoint & { position: number }>()({
  measurement: 'bench_curve',
  tags: ['run', 'scenario', 'variant'],
  fields: {
    number: {
      // Among the points of the variant, by rate.
      position: ({ position }) => position,
      // 1 or 0; absent for a sweep.
      kept: ({ kept }) => (kept === undefined ? null : Number(kept)),
    },
    'requests/s': { rate: ({ rate }) => rate },
    ms: {
      p50_ms: ({ p50 }) => p50,
      p99_ms: ({ p99 }) => p99,
    },
  },
});

/** A part of the CPU time of a request, while perf looked on. */
interface WhyRow {
  position: number;
  us: number;
  sdUs: number;
  /** Calls per request if the part is a system call; otherwise undefined. */
  perRequest: number | undefined;
}

/** A point per side and part of its CPU time, the largest first, if the run looked for causes. */
export const benchWhy = written<WhyRow>()({
  measurement: 'bench_why',
  tags: ['run', 'scenario', 'variant', 'part'],
  fields: {
    number: {
      position: ({ position }) => position,
      calls_per_request: ({ perRequest }) => perRequest,
    },
    µs: {
      cpu_us: ({ us }) => us,
      cpu_sd_us: ({ sdUs }) => sdUs,
    },
  },
});

/** A point per side and page of a mix, the greatest weights first. `effect` is the effect on the time of an answer alone. */
export const benchPage = written<PageSum & { position: number; effect: PageEffect | undefined }>()({
  measurement: 'bench_page',
  tags: ['run', 'scenario', 'variant', 'page'],
  fields: {
    number: { position: ({ position }) => position },
    ratio: { share: ({ share }) => share },
    responses: { unexpected: ({ unexpected }) => unexpected },
    bytes: { body_bytes: ({ bodyBytes, responses }) => bodyBytes / Math.max(1, responses) },
    ms: {
      p50_ms: ({ p50Ms }) => p50Ms,
      p99_ms: ({ p99Ms }) => p99Ms,
    },
    text: {
      effect: ({ effect: seen }) => seen && effect(seen.ratio, seen.ci95),
      verdict: ({ effect: seen }) => seen?.verdict,
    },
  },
});

type PageEffect = NonNullable<Comparison['pages']>[number];

/** Findings come before warnings. `kind` is a verdict of bench_comparison, `found` or `warning`. */
export const benchSentence = written<{ text: string }>()({
  measurement: 'bench_sentence',
  tags: ['run', 'scenario', 'kind'],
  fields: { text: { text: ({ text }) => text } },
});

/** A claim of an article, with a run's result. */
export interface ClaimRow {
  text: string;
  /** The article's own. */
  figures: string;
  /** The ratio of these figures, and the article's statement if that is another one; '' without figures of both sides. */
  makes: string;
  seen: string;
  state: string;
}

/** A point per claim that rests on the run's scenario, written at the run's end. `claim` is its number in the article, from 01. */
export const benchClaim = written<ClaimRow>()({
  measurement: 'bench_claim',
  tags: ['run', 'scenario', 'article', 'claim'],
  fields: {
    text: {
      text: ({ text }) => text,
      figures: ({ figures }) => figures,
      makes: ({ makes }) => makes || null,
      seen: ({ seen }) => seen,
      state: ({ state }) => state,
    },
  },
});

/** `ended` in ms since 1970; null during the run, and for good if bakeoff was killed. */
export interface RunRow extends Pick<
  Result,
  'title' | 'startedAt' | 'state' | 'integrity' | 'noiseFloor'
> {
  variants: readonly Pick<VariantResult, 'published' | 'rounds'>[];
  ended: number | null;
  places?: RunPlaces;
}

/** Descriptions of the origin of a run's figures and its article's figures. */
export interface RunPlaces {
  /** Path of the run's page. */
  report: string;
  machine: string;
  articleTitle?: string;
  articleMachine?: string;
}

/** A point per run, at its start; written again when the run ends. */
export const benchRun = written<RunRow>()({
  measurement: 'bench_run',
  // `article` is the id of the article whose figures stand beside, such as 003.
  tags: ['run', 'scenario', 'article'],
  fields: {
    text: {
      title: ({ title }) => title,
      state: ({ ended, state }) => (ended === null ? 'running' : state),
      // End of the time range that shows the run.
      shown_to: ({ ended }) => String(ended ?? 'now'),
      // Tables leave out the columns whose names begin with this text, if no article has figures of the run.
      unpublished: ({ variants }) =>
        variants.every(({ published }) => published === null) ? 'published' : null,
      report: ({ places }) => places?.report,
      machine: ({ places }) => places?.machine,
      article_title: ({ places }) => places?.articleTitle,
      article_machine: ({ places }) => places?.articleMachine,
    },
    'ms since 1970': {
      started: ({ startedAt }) => Date.parse(startedAt),
      ended: ({ ended }) => ended,
    },
    requests: {
      requests: ({ integrity }) => integrity?.requests,
      stored: ({ integrity }) => integrity?.stored,
      backfilled: ({ integrity }) => integrity?.backfilled,
      lost: ({ integrity }) => integrity?.lost,
    },
    rounds: {
      rounds: ({ variants }) => wholeRounds(variants),
      noise_floor_rounds: ({ noiseFloor }) => noiseFloor?.rounds,
    },
    ratio: {
      // The smallest detectable effect, as a share of requests/s. Ratios from noise_low to noise_high may be noise.
      noise_floor: ({ noiseFloor }) => noiseFloor && noiseFloor.ratio - 1,
      noise_low: ({ noiseFloor }) => noiseFloor && 1 / noiseFloor.ratio,
      noise_high: ({ noiseFloor }) => noiseFloor?.ratio,
    },
  },
});

/** Everything that bakeoff's dashboards may ask for. */
export const measurements: readonly StoredMeasurement[] = [
  ...loadgenMeasurements,
  serverCpu,
  serverRss,
  benchRound,
  benchComparison,
  benchPhase,
  benchBucket,
  benchCurve,
  benchWhy,
  benchPage,
  benchSentence,
  benchClaim,
  benchRun,
];

const alwaysWritten = ['label', 'position', 'title', 'text'];

/** Returns the field that each point of a measurement has, by which its points are counted. */
export function fieldOfEach(measurement: string): string {
  const known = measurements.find((other) => other.measurement === measurement);
  return alwaysWritten.find((field) => known !== undefined && field in known.fields) ?? 'value';
}
