// From the rounds of a run to the figures of its table.
import { byName, present, zip } from '../present.ts';
import type { VariantResult } from '../result/result.ts';
import type { Scenario } from '../scenario/model.ts';
import { againstContinuous } from './continuous.ts';
import type { Judgement } from './judgement.ts';
import { mergedDistribution } from './latency.ts';
import { sharesOf, usableCores } from './limit.ts';
import {
  networkResult,
  phaseResults,
  phasesIn,
  roundRps,
  serverCpuSecondsPerResponse,
  successRatioOf,
  trafficOf,
} from './phases.ts';
import { pageEffects } from './pages.ts';
import { figuresPerRound, metricNames } from './metrics.ts';
import { noiseFloorOf } from './rounds.ts';
import { geometricMean, median, total } from './statistics.ts';
import {
  compareAll,
  type Contender,
  type MeasuredVariant,
  type Pair,
  type RunFacts,
  uncompared,
} from './verdict.ts';

export type AskedComparisons = Pick<Scenario, 'alsoCompare' | 'control'>;

/** `variants` are in the given order; the rows' comparisons come before further ones. */
export function figuresOfRun(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  asked: AskedComparisons = {},
) {
  const variants = measured.map((variant) => variantResult(facts, variant));
  const contenders = zip(measured, variants).map(([variant, result]) => ({
    ...variant,
    ...result,
    figures: {
      ...byName(metricNames, (metric) => figuresPerRound(metric, variant.rounds)),
      rps: rpsPerRound(variant),
    },
  }));
  const compared = comparisonsOf(facts, contenders, asked);
  const comparisons = compared.map((comparison) => {
    const pages = pageEffects(comparison, { variants, comparisons: compared });
    return pages.length === 0 ? comparison : { ...comparison, pages };
  });
  const ofControls: number[][] = [];
  for (const { verdict, roundRatios } of comparisons)
    if (asked.control === true && verdict !== 'none') ofControls.push(roundRatios.map(Math.log));
  return { variants, comparisons, noiseFloor: noiseFloorOf(ofControls) };
}

function variantResult(facts: RunFacts, variant: MeasuredVariant): VariantResult {
  const { name, server, publishedOnly, load, answer, published, note, series, rounds } = variant;
  const about = {
    name,
    server,
    ...present({ publishedOnly }),
    load,
    published,
    ...present({ answer, note, series }),
    rounds,
  };
  if (rounds.length === 0)
    return {
      ...about,
      ...byName(
        ['rps', 'serverCpuMicrosPerRequest', 'latencyMs', 'errorsPerMillion', 'successRatio'],
        () => null,
      ),
      ...byName(['serverShare', 'generatorShare', 'network', 'traffic'], () => null),
      phases: [],
    };
  const phases = phasesIn(rounds);
  const requests = total(phases, (phase) => phase.requests);
  const cores = { server: facts.serverCores, generator: facts.generatorCores };
  const cpuPerRound = rounds.map((round) => serverCpuSecondsPerResponse(round.phases));
  const cpuSeconds = cpuPerRound.filter(Number.isFinite);
  const shares = rounds.map((round) => sharesOf(round, variant, cores));
  const serverShares = shares.flatMap(({ serverShare }) => serverShare ?? []);
  const { p50, p99, max, histogram } = mergedDistribution(phases.map((phase) => phase.latencyMs));
  const check = againstContinuous(rounds);
  const turnsAgainstContinuous = check && { ratio: check.ratio, ci95: check.interval };
  return {
    ...about,
    ...present({ turnsAgainstContinuous }),
    rps: { median: typicalRps(variant) },
    serverCpuMicrosPerRequest:
      cpuSeconds.length === 0 ? null : { median: 1e6 * median(cpuSeconds) },
    latencyMs: histogram.length === 0 ? null : { p50, p99, max },
    errorsPerMillion:
      requests === 0 ? null : (total(phases, (phase) => phase.errors.total) / requests) * 1e6,
    successRatio: successRatioOf(phases),
    serverShare: serverShares.length === 0 ? null : median(serverShares),
    generatorShare: median(shares.map(({ generatorShare }) => generatorShare)),
    network: networkResult(variant.network, rounds, usableCores(variant, cores).server),
    traffic: trafficOf(rounds.map((round) => round.phases)),
    phases: phaseResults(rounds),
  };
}

/** Rows come first; comparisons of a missing variant are left out. */
function comparisonsOf(
  facts: RunFacts,
  contenders: readonly (Contender & Pick<MeasuredVariant, 'against' | 'needsServerCores'>)[],
  { alsoCompare = [], control }: AskedComparisons,
): Judgement[] {
  const named = (name: string) => contenders.find((contender) => contender.name === name);
  const pairs: Pair[] = [];
  for (const variant of contenders) {
    const { against, needsServerCores = 1 } = variant;
    const baseline = against === undefined ? undefined : named(against);
    if (baseline !== undefined) pairs.push({ variant, baseline, needsServerCores });
  }
  const rows = [...pairs];
  for (const names of alsoCompare) {
    const [variant, baseline] = [named(names.variant), named(names.against)];
    if (variant === undefined || baseline === undefined) continue;
    const isRow = rows.some((row) => row.variant === variant && row.baseline === baseline);
    if (!isRow) pairs.push({ variant, baseline, needsServerCores: 1 });
  }
  const run = pairs.filter(
    ({ variant, baseline }) => variant.rounds.length > 0 && baseline.rounds.length > 0,
  );
  const compared = compareAll(run, { ...facts, control: control === true });
  return pairs.flatMap((pair) => {
    if (pair.variant.server === null) return uncompared(pair, 'rps', { kind: 'publishedOnly' });
    return compared[run.indexOf(pair)] ?? [];
  });
}

/** Found rates differ by factors: their mean is geometric. */
function typicalRps(variant: MeasuredVariant): number {
  const perRound = rpsPerRound(variant);
  return variant.found === undefined ? median(perRound) : geometricMean(perRound);
}

function rpsPerRound({ rounds, found }: MeasuredVariant): number[] {
  return found?.map(({ rate }) => rate) ?? rounds.map((round) => roundRps(round.phases));
}
