// Runs of shipped scenarios with made-up figures, written to a database as real ones are.
import { comparable } from '../lib/analysis/verdict.ts';
import type { NetworkResult, Result, VariantResult } from '../lib/runner/result.ts';
import { findVariants, isRunnable } from '../lib/scenario/catalogue.ts';
import type { Scenario } from '../lib/scenario/model.ts';
import { roundPoint, runPoint, tablePoints, type Store } from '../lib/store/index.ts';
import { h2Result, type Figures } from './fixtures/h2-result.ts';
import { networkResult } from './fixtures/network-result.ts';

/** Writes all wide points of a result, as the runner does when a run ends; the effect so far only of the last round. */
export async function storeResult(store: Store, result: Result): Promise<Result> {
  const rounds = result.variants.flatMap((variant, position) => variant.rounds.flatMap(({ round, phases }, index) => phases.map((one, at) => {
    const comparison = result.comparisons.find((other) => other.variant === variant.name);
    const tags = { run: result.run, scenario: result.scenario, variant: variant.name, round: String(round), phase: String(at + 1), server: variant.server?.name ?? '', protocol: variant.load.protocol };
    const compared = comparable(variant, comparison);
    return roundPoint({
      tags, position,
      ratio: compared ? comparison.roundRatios[index] : undefined,
      soFar: compared && index === variant.rounds.length - 1 ? comparison : undefined,
      network: networkOfRound(variant, index),
    }, { ...one, startedAt: new Date(Date.parse(result.startedAt) + 1000 * (10 * index + position + at)).toISOString() });
  })));
  await store.write([...tablePoints(result), ...rounds, runPoint({ ...result, rounds: 1 })]);
  return result;
}

/** The run as if it had gone over links of its own, no two of which did the same; of every second variant the delay was not held. */
export function overLinks(result: Result): Result {
  const variants = result.variants.map((variant, index): VariantResult => (variant.rounds.length === 0 ? variant : {
    ...variant,
    network: networkResult({
      packetsPerRequest: { toServer: 5 + index / 8, toClient: 4 + index / 16 },
      droppedShare: { toServer: index / 32, toClient: index / 64 },
      latenessMs: index % 2 === 0 ? { p50: 0.1, p99: 1.75 } : { p50: 20.5, p99: 138.25 + index },
      retransmitsPerRequest: index / 1024, listenOverflows: index * 1000, serverIdleShare: 1 - index / 128, delayHeld: index % 2 === 0,
    }),
  }));
  const notHeld = variants.filter(({ network }) => network?.delayHeld === false).map(({ name }) => name);
  const comparisons = result.comparisons.map((one) => ({ ...one, delayNotHeld: notHeld.filter((name) => name === one.variant || name === one.baseline) }));
  return { ...result, variants, comparisons };
}

/** What the link of a variant did in one of its rounds: in each a packet more. */
export function networkOfRound({ network }: VariantResult, index: number): NetworkResult | null {
  return network && { ...network, packetsPerRequest: { ...network.packetsPerRequest, toServer: network.packetsPerRequest.toServer + index } };
}

const articleBuckets = [0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5];
const latencies = { buckets: articleBuckets.map((fromMs, index, all) => ({ fromMs, toMs: all[index + 1] ?? null, count: 1000 + index })) };

/** A run of a shipped scenario with six rounds of all that it runs unless told otherwise. */
export async function madeUpRun(scenario: Scenario, startedAt: number): Promise<Result> {
  const { name, phases = { count: 1 } } = scenario;
  const figures = findVariants(scenario).filter(isRunnable).map((variant, index): [string, Figures] => {
    const rps = [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009].map((off, round) => (60_000 + 9000 * index + 10 * round) * (1 + off));
    return [variant.name, { rps, phases: Array.from({ length: phases.count }, () => (scenario.load.bucketSeconds === undefined ? {} : latencies)) }];
  });
  const at = new Date(startedAt).toISOString();
  return h2Result(name, Object.fromEntries(figures), { run: `${at.slice(0, 19).replaceAll(':', '-')}-${name}`, startedAt: at, endedAt: new Date(startedAt + 120_000).toISOString() });
}
