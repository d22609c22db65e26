// Writes a run to the database, besides k6's samples: samples of the servers, and the wide points of the dashboards.
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { comparisonOf, comparable } from '../analysis/comparisons.ts';
import { sharesOf, usableCores } from '../analysis/limit.ts';
import { metrics } from '../analysis/metrics.ts';
import { networkResult } from '../analysis/phases.ts';
import { UserError } from '../errors.ts';
import { writeWhole } from '../writing.ts';
import { curvesOf, foundIn } from '../report/found.ts';
import { claimsOfRun, placesOf } from '../report/run-claims.ts';
import { featureLines, verdictSentences } from '../report/sentences.ts';
import { checkRound, checkRounds } from '../store/integrity.ts';
import {
  claimPoints,
  roundPoint,
  runPoint,
  sentencePoints,
  serverSamplePoints,
  tablePoints,
  whyPoints,
} from '../store/points.ts';
import { quoteString } from '../store/line-protocol.ts';
import { benchRound } from '../store/round-points.ts';
import { programOf } from '../scenario/variants.ts';
import { totalIntegrity, type KeptRound } from './build-result.ts';
import { generatorCores } from '../machine/cores.ts';
import type { Plan, PlannedVariant, RunBase, VariantRound } from './plan.ts';
import {
  resultJson,
  type Comparison,
  type Phase,
  type Result,
  type VariantResult,
} from '../result/result.ts';
import { serverFiguresOf } from '../result/server-metrics.ts';
import type { Measurement } from './under-load.ts';

/** Checks that the database has k6's samples of a variant's round, and writes and returns its server's samples. */
export async function storeSamples(
  { store, plan }: RunBase,
  planned: PlannedVariant,
  round: number,
  { samples, recordFile, unsent }: Measurement,
  requests: number,
): Promise<Pick<VariantRound, 'integrity' | 'serverPoints'>> {
  if (store === null) return { integrity: null, serverPoints: [] };
  const { name, server } = planned.variant;
  const asked = { variant: name, round, recordFile, unsent, requests };
  const integrity = await checkRound(store, plan.run, asked);
  if (server.name === 'address' && server.cgroup === undefined)
    return { integrity, serverPoints: [] };
  // The clock did not step (requireSound).
  const wallAheadMs = samples[0]?.wallAheadMs ?? 0;
  const points = serverSamplePoints(
    tagsOf(plan, planned, round),
    samples.map(({ atMs, cpuSeconds, rssBytes }) => ({
      atMs: atMs + wallAheadMs,
      cpuSeconds,
      rssBytes,
    })),
  );
  const problem = await written(store.writeOrKeep(points));
  if (problem !== null) integrity.problems.push(problem);
  return { integrity, serverPoints: points };
}

/**
 * Checks at the end of a run that the database has all valid rounds, and rewrites missing samples. Returns the result with the
 * counts of this check, and lines on losses.
 */
export async function settleStore(
  context: RunBase,
  { result, kept }: { result: Result; kept: readonly KeptRound[] },
): Promise<Result> {
  const { store, plan, folder } = context;
  if (store === null) return result;
  const stored = kept.flatMap(({ round, outcomes }) =>
    [...outcomes].flatMap(([variant, outcome]) => {
      const { integrity, requests, recordFile, serverPoints = [] } = outcome;
      const facts = { variant, round, requests, recordFile, serverPoints, outcome };
      return integrity === null ? [] : { ...facts, integrity };
    }),
  );
  const changed = await checkRounds(store, plan.run, stored);
  if (changed.size === 0) return result;
  const earlier = new Set([...changed.keys()].flatMap(({ integrity }) => integrity.problems));
  const problems = new Set([...changed.values()].flatMap((one) => one.problems));
  for (const [{ outcome }, integrity] of changed) outcome.integrity = integrity;
  const settled = {
    ...result,
    integrity: totalIntegrity(kept),
    warnings: [...result.warnings.filter((line) => !earlier.has(line)), ...problems],
  };
  const rounds = kept.flatMap((round) => roundPoints(plan, round, settled));
  const problem =
    (await written(store.writeOrKeep(rounds))) ??
    (await storeResult(context, settled, kept, true)) ??
    (await storeFound(context, settled));
  if (problem !== null && !problems.has(problem)) settled.warnings.push(problem);
  await writeWhole(join(folder, 'result.json'), resultJson(settled));
  return settled;
}

function tagsOf({ run, scenario }: Plan, { variant }: PlannedVariant, round: number) {
  return {
    run,
    scenario: scenario.name,
    variant: variant.name,
    round: String(round),
    server: programOf(variant.server),
  };
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

/** Deletes a round that no longer counts. Returns the database's error as a line. */
export async function forgetRound({ plan, store }: RunBase, round: number): Promise<string | null> {
  if (store === null) return null;
  const which = `"run" = ${quoteString(plan.run)} AND "round" = '${round}'`;
  return written(store.query(`DELETE FROM "${benchRound.measurement}" WHERE ${which}`));
}

/**
 * Writes the wide points of the newest round, the table, the run's state, and at its end its sentences and its article's claims. They
 * replace earlier ones. Returns the database's error as a line.
 */
export async function storeResult(
  context: RunBase,
  result: Result,
  kept: readonly KeptRound[],
  ended: boolean,
): Promise<string | null> {
  const { folder, plan, store } = context;
  if (store === null) return null;
  const { article } = plan.scenario;
  const claims =
    ended && kept.length > 0 && article !== undefined ? claimsOfRun(article, result) : [];
  // The folder may be a descriptor of this process.
  const page = join(realpathSync(folder), 'report.html');
  const places = placesOf(page, result.environment, article);
  // A load in steps that was interrupted in its first round has a curve.
  const curves = curvesOf(result);
  const hasTable = kept.length > 0 || curves.length > 0;
  return written(
    store.writeOrKeep([
      ...kept.slice(-1).flatMap((round) => roundPoints(plan, round, result)),
      ...(hasTable ? tablePoints(result, curves, foundIn(result)) : []),
      ...(ended ? sentencePoints(result, verdictSentences(result)) : []),
      ...claimPoints(result, claims),
      runPoint({ ...result, places }, ended),
    ]),
  );
}

/** Behind all other sentences of a run. */
const placeOfFound = 1000;

/** Writes what features have found. Returns the database's error as a line. */
export async function storeFound({ store }: RunBase, result: Result): Promise<string | null> {
  const sentences = featureLines(result).map((text) => ({ kind: 'found', text }));
  return store === null
    ? null
    : written(
        store.writeOrKeep([
          ...whyPoints(result),
          ...sentencePoints({ ...result, warnings: [] }, sentences, placeOfFound),
        ]),
      );
}

function roundPoints(
  plan: Plan,
  { round, outcomes }: KeptRound,
  { variants, comparisons }: Result,
): string[] {
  const cores = { server: plan.cores.serverCpus.length, generator: generatorCores(plan.cores) };
  const phasesOf = (name: string): readonly Phase[] => outcomes.get(name)?.phases ?? [];
  const figuresOf = (name: string) => serverFiguresOf(outcomes.get(name) ?? {});
  const roundOf = (name: string, phase: Phase) => ({ round, phases: [phase], ...figuresOf(name) });
  return plan.variants.flatMap((planned) => {
    const { variant, load } = planned;
    const result = variants[plan.shown.indexOf(variant)] as VariantResult;
    const comparison = comparisonOf({ comparisons }, variant.name);
    const soFar = comparable(result, comparison) ? comparison : undefined;
    return phasesOf(variant.name).map((phase, index) => {
      const tags = {
        ...tagsOf(plan, planned, round),
        phase: String(index + 1),
        protocol: load.protocol,
      };
      const alone = roundOf(variant.name, phase);
      return roundPoint(
        {
          tags,
          ratio: comparison && ratioOf(comparison, result, phase, index),
          soFar,
          generatorShare: sharesOf(alone, result, cores).generatorShare,
          ...figuresOf(variant.name),
          network: networkResult(result.network?.spec, [alone], usableCores(result, cores).server),
        },
        phase,
      );
    });
  });

  /** Of a load in steps it is the ratio of the found rates, not of the steps that stand for the round. */
  function ratioOf(
    { metric, baseline, roundRatios }: Comparison,
    { name, rounds }: VariantResult,
    phase: Phase,
    index: number,
  ) {
    if (plan.stepped !== undefined)
      return roundRatios[rounds.findIndex((one) => one.round === round)];
    const baselinePhase = phasesOf(baseline)[index];
    const { of } = metrics[metric];
    return baselinePhase && of(roundOf(name, phase)) / of(roundOf(baseline, baselinePhase));
  }
}
