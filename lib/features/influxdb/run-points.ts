// The points of a run in the database besides k6's samples: samples of the servers, and the wide points of the dashboards.
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { comparisonOf, comparable, variantOf } from '../../analysis/comparisons.ts';
import { sharesOf, usableCores } from '../../analysis/limit.ts';
import { metrics } from '../../analysis/metrics.ts';
import { networkResult } from '../../analysis/phases.ts';
import { curvesOf, foundIn } from '../../report/found.ts';
import type { Contribution } from '../../report/contribution.ts';
import { addedLines, verdictSentences } from '../../report/sentences.ts';
import {
  claimPoints,
  roundPoint,
  runPoint,
  sentencePoints,
  serverSamplePoints,
  tablePoints,
  whyPoints,
} from './points.ts';
import { programOf } from '../../scenario/variants.ts';
import { generatorCores } from '../../machine/cores.ts';
import type { KeptRound, ServerSamples, Plan, PlannedVariant, RunBase } from '../../runner/plan.ts';
import type { Comparison, Phase, Result, VariantResult } from '../../result/result.ts';
import { serverFiguresOf } from '../../result/server-metrics.ts';
import type { Environment } from '../../result/environment.ts';
import type { Article } from '../../scenario/article.ts';
import type { ClaimRow, RunPlaces } from './schema.ts';
import { articleTitle, measuredEnvironment } from '../../report/article.ts';
import { decideClaim } from '../../report/claims.ts';
import { madeBy, ownFigures } from '../../report/own-figures.ts';

/** Returns the samples of a side's server under load; none for a server on which bakeoff cannot measure. */
export function samplePoints(plan: Plan, { planned, round, samples }: ServerSamples): string[] {
  const { server } = planned.variant;
  if (server.name === 'address' && server.cgroup === undefined) return [];
  // The clock did not step (requireSound).
  const wallAheadMs = samples[0]?.wallAheadMs ?? 0;
  return serverSamplePoints(
    tagsOf(plan, planned, round),
    samples.map(({ atMs, cpuSeconds, rssBytes }) => ({
      atMs: atMs + wallAheadMs,
      cpuSeconds,
      rssBytes,
    })),
  );
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

/**
 * Returns the points of the newest round, of the table and of the run's state, and at its end those of its sentences and claims. They
 * replace earlier points.
 */
export function resultPoints(
  { folder, plan, contributionsTo }: RunBase,
  result: Result,
  kept: readonly KeptRound[],
  ended: boolean,
): string[] {
  const { article } = plan.scenario;
  const claims =
    ended && kept.length > 0 && article !== undefined ? claimsOfRun(article, result) : [];
  // The folder may be a descriptor of this process.
  const page = join(realpathSync(folder), 'report.html');
  const places = placesOf(page, result.environment, article);
  // A load in steps that was interrupted in its first round has a curve.
  const curves = curvesOf(result);
  const verdicts = () => verdictSentences(result, contributionsTo(result));
  const hasTable = kept.length > 0 || curves.length > 0;
  return [
    ...kept.slice(-1).flatMap((round) => roundPoints(plan, round, result)),
    ...(hasTable ? tablePoints(result, curves, foundIn(result)) : []),
    ...(ended ? sentencePoints(result, verdicts()) : []),
    ...claimPoints(result, claims),
    runPoint({ ...result, places }, ended),
  ];
}

/** Behind all other sentences of a run. */
const placeOfFound = 1000;

export function foundPoints(result: Result, contributions: readonly Contribution[]): string[] {
  const sentences = addedLines(contributions).map((text) => ({ kind: 'found', text }));
  return [
    ...whyPoints(result),
    ...sentencePoints({ ...result, warnings: [] }, sentences, placeOfFound),
  ];
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
    const result = variants[plan.shown.indexOf(variant)];
    if (result === undefined) return [];
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

  /** For a load in steps, returns the ratio of the rates that were found, not of the steps that stand for the round. */
  function ratioOf(
    { metric, baseline, roundRatios }: Comparison,
    { name, rounds }: VariantResult,
    phase: Phase,
    index: number,
  ) {
    if (plan.stepped !== undefined)
      return roundRatios[rounds.findIndex((measured) => measured.round === round)];
    const baselinePhase = phasesOf(baseline)[index];
    const { of } = metrics[metric];
    return baselinePhase && of(roundOf(name, phase)) / of(roundOf(baseline, baselinePhase));
  }
}

/**
 * Decides the claims that rest on the result's scenario, as far as they do. Leaves out claims on variants that --variants left out.
 * `number` is the claim's number in the article, from 1.
 */
export function claimsOfRun(article: Article, result: Result): (ClaimRow & { number: number })[] {
  const shown = (name: string) => variantOf(result, name) !== undefined;
  const results = new Map([[result.scenario, result]]);
  const decided = [];
  for (const [index, { text, figures, ...claim }] of (article.claims ?? []).entries()) {
    const rests = claim.rests.filter(({ scenario }) => scenario === result.scenario);
    if (rests.length === 0 || !rests.every((rest) => shown(rest.variant) && shown(rest.against)))
      continue;
    const ofRun = { ...claim, rests };
    const makes = madeBy(ownFigures(ofRun, article, results));
    const decision = decideClaim(ofRun, article, results);
    decided.push({ number: index + 1, text, figures, makes, ...decision });
  }
  return decided;
}

/** Says where a run's page is, and on which machines the run and its article were measured. */
export function placesOf(
  report: string,
  environment: Environment,
  article: Article | undefined,
): RunPlaces {
  const places: RunPlaces = { report, machine: measuredEnvironment(environment).join(' · ') };
  if (article !== undefined) {
    places.articleTitle = articleTitle(article);
    if (article.machine !== undefined)
      places.articleMachine = Object.values(article.machine).join(' · ');
  }
  return places;
}
