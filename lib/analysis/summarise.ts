// From the rounds of a run to the figures of its table.
import { byName, present } from '../present.ts';
import type { Comparison, VariantResult } from '../result/result.ts';
import type { Scenario } from '../scenario/model.ts';
import { againstContinuous } from './continuous.ts';
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
  type RunFacts,
  uncompared,
} from './verdict.ts';
import { warningsOf } from './warnings.ts';

export type Asked = Pick<Scenario, 'alsoCompare' | 'control'>;

/** `variants` are in the given order; the rows' comparisons come before further ones. */
export function summarise(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  asked: Asked = {},
) {
  const variants = measured.map((variant) => variantResult(facts, variant));
  const contenders = measured.map((one, index) => ({
    ...one,
    ...(variants[index] as VariantResult),
    figures: {
      ...byName(metricNames, (metric) => figuresPerRound(metric, one.rounds)),
      rps: rpsPerRound(one),
    },
  }));
  const compared = comparisonsOf(facts, contenders, asked);
  const comparisons = compared.map((one) => {
    const pages = pageEffects(one, { variants, comparisons: compared });
    return pages.length === 0 ? one : { ...one, pages };
  });
  const controls =
    asked.control === true ? comparisons.filter(({ verdict }) => verdict !== 'none') : [];
  return {
    variants,
    comparisons,
    noiseFloor: noiseFloorOf(controls.map(({ roundRatios }) => roundRatios.map(Math.log))),
    warnings: warningsOf(facts, measured, variants, comparisons),
  };
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
  const cpuSeconds = rounds
    .map((round) => serverCpuSecondsPerResponse(round.phases))
    .filter(Number.isFinite);
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

/** The rows' comparisons in their order, then further ones. Those with a missing variant are left out. */
function comparisonsOf(
  facts: RunFacts,
  contenders: readonly (Contender & Pick<MeasuredVariant, 'against' | 'needsServerCores'>)[],
  { alsoCompare = [], control }: Asked,
): Comparison[] {
  const named = (name: string) => contenders.find((one) => one.name === name);
  const rows = contenders.flatMap(({ name: variant, against, needsServerCores }) =>
    against === undefined ? [] : { variant, against, needsServerCores },
  );
  const beside = alsoCompare.filter(
    (pair) => !rows.some((row) => row.variant === pair.variant && row.against === pair.against),
  );
  const pairs = [...rows, ...beside.map((pair) => ({ ...pair, needsServerCores: 1 }))].flatMap(
    ({ needsServerCores = 1, ...names }) => {
      const [variant, baseline] = [named(names.variant), named(names.against)];
      return variant && baseline ? { variant, baseline, needsServerCores } : [];
    },
  );
  const run = pairs.filter(
    ({ variant, baseline }) => variant.rounds.length > 0 && baseline.rounds.length > 0,
  );
  const compared = compareAll(run, { ...facts, control: control === true });
  return pairs.flatMap((pair) =>
    pair.variant.server === null
      ? uncompared(pair, 'rps', 'published only')
      : (compared[run.indexOf(pair)] ?? []),
  );
}

/** Found rates differ by factors, so their mean is geometric. */
function typicalRps(variant: MeasuredVariant): number {
  const perRound = rpsPerRound(variant);
  return variant.found === undefined ? median(perRound) : geometricMean(perRound);
}

function rpsPerRound({ rounds, found }: MeasuredVariant): number[] {
  return found?.map(({ rate }) => rate) ?? rounds.map((round) => roundRps(round.phases));
}
