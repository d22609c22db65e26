// Runs of shipped scenarios with synthetic figures, written to a database like real runs.
import { additions } from '../lib/cli/main.ts';
import { networkResult } from '../lib/analysis/phases.ts';
import { comparable } from '../lib/analysis/comparisons.ts';
import type { PageFigures } from '../lib/result/load-result.ts';
import type { Phase, Result } from '../lib/result/result.ts';
import { findVariants } from '../lib/scenario/catalogue.ts';
import { isRunnable, networkOf } from '../lib/scenario/variants.ts';
import type { Scenario } from '../lib/scenario/model.ts';
import { claimsOfRun, placesOf } from '../lib/features/influxdb/run-points.ts';
import { verdictSentences } from '../lib/report/sentences.ts';
import { curvesOf, foundIn } from '../lib/report/found.ts';
import {
  claimPoints,
  roundPoint,
  runPoint,
  sentencePoints,
  tablePoints,
  whyPoints,
} from '../lib/features/influxdb/points.ts';
import type { Store } from '../lib/features/influxdb/store.ts';
import { type Figures, h2Result, shippedScenarios } from './fixtures/h2-result.ts';
import { networkUse, traffic } from './fixtures/link.ts';
import { phase } from './fixtures/phase.ts';

/**
 * Writes all wide points of a result like the runner at the end of a run, but the intermediate effect only for the last round.
 */
export async function storeResult(store: Store, result: Result): Promise<Result> {
  const rounds = result.variants.flatMap((variant, position) =>
    variant.rounds.flatMap(({ round, phases }, index) =>
      phases.map((phase, at) => {
        const comparison = result.comparisons.find((other) => other.variant === variant.name);
        const tags = {
          run: result.run,
          scenario: result.scenario,
          variant: variant.name,
          round: String(round),
          phase: String(at + 1),
          server: variant.server?.name ?? '',
          protocol: variant.load.protocol,
        };
        const compared = comparable(variant, comparison);
        const startedAtMs =
          Date.parse(result.startedAt) + 10_000 * index + 400 * position + 100 * at;
        return roundPoint(
          {
            tags,
            ratio: compared ? comparison.roundRatios[index] : undefined,
            soFar: compared && index === variant.rounds.length - 1 ? comparison : undefined,
            // One worker on one core, as in the synthetic results.
            network: networkResult(variant.network?.spec, [{ round, phases: [phase] }], 1),
          },
          { ...phase, startedAt: new Date(startedAtMs).toISOString() },
        );
      }),
    ),
  );
  const { article } = (await shippedScenarios()).find(({ name }) => name === result.scenario) ?? {};
  const places = placesOf(`/results/${result.run}/report.html`, result.environment, article);
  await store.write([
    ...tablePoints(result, curvesOf(result), foundIn(result)),
    ...whyPoints({ ...result, why: madeUpWhy(result) }),
    ...rounds,
    ...sentencePoints(result, verdictSentences(result, additions.contributionsTo(result))),
    ...(article === undefined ? [] : claimPoints(result, claimsOfRun(article, result))),
    runPoint({ ...result, places }, true),
  ]);
  return result;
}

export function madeUpWhy({ variants }: Result): NonNullable<Result['why']> {
  const sides = variants.map(({ name: variant }, index) => ({
    variant,
    requests: 1000,
    cpuUs: 5 + index,
    calls: [{ name: 'writev', perRequest: 1 + index }],
    counts: { calls: 1 + index },
    cpu: [
      { kind: 'call' as const, name: 'writev', us: 3 + index, sdUs: 0.1 },
      { kind: 'user' as const, name: 'own code', us: 2, sdUs: 0.2 },
    ],
    functions: [],
  }));
  return { missing: [], sides };
}

const articleBuckets = [0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5];
const latencies = {
  buckets: articleBuckets.map((fromMs, index, all) => ({
    fromMs,
    toMs: all[index + 1] ?? null,
    count: 1000 + index,
  })),
};

/** Link figures and errors of a variant; different for each variant, and every second delay is inaccurate. */
function overLink(index: number): Partial<Phase> {
  const { errors: none } = phase({ requests: 0 });
  const p99 = index % 2 === 0 ? 1.75 : 138 + index;
  const causes = { addressNotAvailable: 1, refused: 2, reset: 3, timedOut: 4, short: 5 };
  return {
    network: networkUse(0, {
      toServer: traffic(300_000 + 1000 * index, 4000 * index, p99),
      toClient: traffic(250_000 + 500 * index, 250 * index),
      retransmits: { client: 100 * index, server: 10 * index },
      listenOverflows: 1000 * index,
    }),
    errorCauses: { ...causes, other: index },
    errors: { ...none, connect: 7, read: 8 + index, total: 15 + index },
  };
}

/** Two pages; the first one takes longer on each further side. */
function madeUpPages(index: number): PageFigures[] {
  const figures = {
    errors: 0,
    bodyBytes: 61_200,
    unexpectedBodyBytes: 0,
    p50Ms: 1.5,
    p99Ms: 4,
    midMeanMs: 1.6,
  };
  const alone = { responses: 90, ms: 2 + index };
  return [
    { page: '/', responses: 300, unexpected: 0, ...figures, alone },
    { page: 'POST /a', responses: 100, unexpected: index, ...figures },
  ];
}

export async function madeUpRun(scenario: Scenario, startedAt: number): Promise<Result> {
  const { article, name, phases = { count: 1 } } = scenario;
  const figures = findVariants(scenario)
    .filter(isRunnable)
    .map((variant, index): [string, Figures] => {
      const rps = [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009].map(
        (off, round) => (60_000 + 9000 * index + 10 * round) * (1 + off),
      );
      const changes = {
        ...(scenario.load.bucketSeconds === undefined ? {} : latencies),
        ...(networkOf(scenario, variant) === undefined ? {} : overLink(index)),
        ...(name === 'aa' ? { pages: madeUpPages(index) } : {}),
      };
      return [variant.name, { rps, phases: Array.from({ length: phases.count }, () => changes) }];
    });
  const at = new Date(startedAt).toISOString();
  return h2Result(name, Object.fromEntries(figures), {
    run: `${at.slice(0, 19).replaceAll(':', '-')}-${name}`,
    startedAt: at,
    endedAt: new Date(startedAt + 120_000).toISOString(),
    ...(article && { article: { id: article.id, title: article.title, date: article.date } }),
  });
}
