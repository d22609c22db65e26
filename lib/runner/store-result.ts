// Writes a run to the database, besides k6's samples: samples of the servers, and the wide points of the dashboards.
import { comparisonOf, comparable } from '../analysis/comparisons.ts';
import { generatorShareOf, usableCores } from '../analysis/limit.ts';
import { figureOf, networkResult } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import { verdictSentences } from '../report/sentences.ts';
import { whyLines } from '../report/why.ts';
import { type RoundIntegrity, checkRounds } from '../store/integrity.ts';
import {
  roundPoint,
  runPoint,
  sentencePoints,
  serverSamplePoints,
  tablePoints,
  whyPoints,
} from '../store/points.ts';
import { quoteString } from '../store/line-protocol.ts';
import { benchRound } from '../store/schema.ts';
import { programOf } from '../scenario/variants.ts';
import type { KeptRound } from './build-result.ts';
import { generatorCores } from '../machine/cores.ts';
import type { Plan, PlannedVariant, RunBase } from './plan.ts';
import type { Comparison, Phase, Result, VariantResult } from '../result/result.ts';
import type { Measurement } from './under-load.ts';

/** Checks that the database has k6's samples of a variant's round, and writes its server's samples. */
export async function storeSamples(
  { store, plan }: RunBase,
  { variant }: PlannedVariant,
  round: number,
  { outputHung, samples, recordFile, unsent }: Measurement,
  requests: number,
): Promise<RoundIntegrity | null> {
  if (store === null) return null;
  const { url } = store.influx;
  const [integrity] = (
    await checkRounds(store, plan.run, [
      { variant: variant.name, round, recordFile, unsent, requests },
    ])
  ).integrity as [RoundIntegrity];
  if (outputHung)
    integrity.problems.unshift(
      `InfluxDB at ${url} hung in round ${round}, and k6 was ended without it once the load was over: ${whole(integrity.backfilled)} requests of ${variant.name} were written again from k6's record`,
    );
  const tags = {
    run: plan.run,
    scenario: plan.scenario.name,
    variant: variant.name,
    round: String(round),
    server: programOf(variant.server),
  };
  // The clock did not step (requireSound).
  const wallAheadMs = samples[0]?.wallAheadMs ?? 0;
  if (variant.server.name === 'address') return integrity;
  const problem = await written(
    store.writeOrKeep(
      serverSamplePoints(
        tags,
        samples.map(({ atMs, cpuSeconds, rssBytes }) => ({
          atMs: atMs + wallAheadMs,
          cpuSeconds,
          rssBytes,
        })),
      ),
    ),
  );
  if (problem !== null) integrity.problems.push(problem);
  return integrity;
}

/** Returns the database's error as a line: it must not cost the round. */
async function written(work: Promise<unknown>): Promise<string | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}

/** Deletes a round that was replaced. Returns the database's error as a line. */
export async function forgetRound({ plan, store }: RunBase, round: number): Promise<string | null> {
  return store === null
    ? null
    : written(
        store.query(
          `DELETE FROM "${benchRound.measurement}" WHERE "run" = ${quoteString(plan.run)} AND "round" = '${round}'`,
        ),
      );
}

/** Checks all rounds once more at the end of a run and updates their integrity. Returns a line for what was missing. */
export async function countAgain(
  { plan, store }: RunBase,
  kept: readonly KeptRound[],
): Promise<string[]> {
  const outcomes = kept.flatMap((one) =>
    [...one.outcomes].map(([variant, outcome]) => ({ variant, round: one.round, outcome })),
  );
  if (store === null || outcomes.length === 0) return [];
  const { integrity, uncounted } = await checkRounds(
    store,
    plan.run,
    outcomes.map(({ variant, round, outcome: { recordFile, requests } }) => ({
      variant,
      round,
      recordFile,
      requests,
    })),
    true,
  );
  if (uncounted !== null) return [uncounted];
  for (const [index, now] of integrity.entries()) {
    const { outcome } = outcomes[index] as (typeof outcomes)[number];
    outcome.integrity = {
      ...now,
      backfilled: Math.min(now.requests, now.backfilled + (outcome.integrity?.backfilled ?? 0)),
    };
  }
  const written = total(integrity, ({ backfilled }) => backfilled);
  const missing = written + total(integrity, ({ lost }) => lost);
  return missing === 0
    ? []
    : [
        `InfluxDB lacked ${whole(missing)} of the run's requests when it was over: ${whole(written)} were written again from k6's record`,
      ];
}

/**
 * Writes the wide points of the newest round, the table, the run's state, and at its end its sentences. They replace earlier ones. Returns
 * the database's error as a line.
 */
export async function storeResult(
  context: RunBase,
  result: Result,
  newest: KeptRound | undefined,
  ended: boolean,
): Promise<string | null> {
  const { plan, store } = context;
  if (store === null) return null;
  // A search that was interrupted in its first round has steps.
  const hasTable = newest !== undefined || (result.search?.steps ?? []).length > 0;
  return written(
    store.writeOrKeep([
      ...(newest === undefined ? [] : roundPoints(plan, newest, result)),
      ...(hasTable ? tablePoints(result) : []),
      ...(ended ? sentencePoints(result, verdictSentences(result)) : []),
      runPoint(result, ended),
    ]),
  );
}

/** Behind all other sentences of a run. */
const placeOfWhy = 1000;

/** Writes what a look at causes found. Returns the database's error as a line. */
export async function storeWhy({ store }: RunBase, result: Result): Promise<string | null> {
  const sentences = whyLines(result).map((text) => ({ kind: 'found', text }));
  return store === null
    ? null
    : written(
        store.writeOrKeep([
          ...whyPoints(result),
          ...sentencePoints({ ...result, warnings: [] }, sentences, placeOfWhy),
        ]),
      );
}

function roundPoints(
  plan: Plan,
  { round, outcomes }: KeptRound,
  { variants, comparisons, search }: Result,
): string[] {
  const cores = { server: plan.cores.serverCpus.length, generator: generatorCores(plan.cores) };
  return plan.variants.flatMap(({ variant, load }) => {
    const phases = phasesOf(variant.name);
    const result = variants[plan.shown.indexOf(variant)] as VariantResult;
    const comparison = comparisonOf({ comparisons }, variant.name);
    const soFar = comparable(result, comparison) ? comparison : undefined;
    return phases.map((phase, index) => {
      const tags = {
        run: plan.run,
        scenario: plan.scenario.name,
        variant: variant.name,
        round: String(round),
        phase: String(index + 1),
        server: programOf(variant.server),
        protocol: load.protocol,
      };
      // In a search it is the ratio of the found rates, not of the reported steps.
      const ratio =
        comparison &&
        (search === undefined
          ? ratioOf(comparison, phase, index)
          : comparison.roundRatios[result.rounds.findIndex((one) => one.round === round)]);
      const alone = { round, phases: [phase] };
      const network = networkResult(
        result.network?.spec,
        [alone],
        usableCores(result, cores).server,
      );
      const generatorShare = generatorShareOf(alone, result, cores);
      return roundPoint({ tags, ratio, soFar, generatorShare, network }, phase);
    });
  });

  function ratioOf({ metric, baseline }: Comparison, phase: Phase, index: number) {
    const baselinePhase = phasesOf(baseline)[index];
    return baselinePhase && figureOf(metric, [phase]) / figureOf(metric, [baselinePhase]);
  }

  function phasesOf(name: string): readonly Phase[] {
    return outcomes.get(name)?.phases ?? [];
  }
}
