// From the rounds of a run to the figures of its table: the one place where they are computed.
import type { Published, Scenario } from '../scenario/model.ts';
import type { Ceiling, Comparison, NoiseFloor, Phase, Round, Share, VariantResult } from '../runner/result.ts';
import { usableCores } from './limit.ts';
import { phaseResults, successRatioOf, trafficOf } from './phases.ts';
import { effectShare } from './shares.ts';
import { median, total } from './statistics.ts';
import { compare, comparePublished, type Contender } from './verdict.ts';
import { warningsOf, type Warning } from './warnings.ts';

/** A variant and what was measured of it. Every variant that was run has the same rounds in the same order. */
export interface MeasuredVariant {
  name: string;
  server: VariantResult['server'];
  publishedOnly?: string;
  load: VariantResult['load'];
  published: Published | null;
  note?: string;
  /** The variant that its ratio is taken against; absent for a baseline. */
  against?: string;
  needsServerCores?: number;
  rounds: Round[];
  /** As in Contender; what the variant comes down to on this machine. */
  setup: string;
}

/** What the figures need to know of the run. */
export interface RunFacts {
  serverCores: number;
  generatorCores: number;
  /** Of the machine, and its one-minute load average before the first round. */
  cores: number;
  loadAverage: number;
  quick: boolean;
  /** As in Result. */
  looks: readonly number[];
  sameWithin: number;
  ceilings: readonly Ceiling[];
}

/** What a scenario asks of its figures beside the rows' own. */
export type Asked = Pick<Scenario, 'shareOf' | 'alsoCompare' | 'control'>;

export interface Summary { variants: VariantResult[]; comparisons: Comparison[]; shares: Share[]; noiseFloor: NoiseFloor | null; warnings: Warning[] }

/** Computes all figures of the table. Order of the variants as given. */
export function summarise(facts: RunFacts, measured: readonly MeasuredVariant[], shareAsked?: Scenario['shareOf']): Summary {
  const variants = measured.map((variant) => variantResult(facts, variant));
  return {
    variants,
    comparisons: measured.flatMap((variant) => comparisonOf(facts, measured, variant) ?? []),
    shares: shareAsked === undefined ? [] : sharesOf(measured, shareAsked),
    warnings: warningsOf(facts, measured, variants),
  };
}

/** requests/s over all phases of a round. */
export function roundRps(phases: readonly Phase[]): number {
  return total(phases, (phase) => phase.requests) / total(phases, (phase) => phase.seconds);
}

function variantResult(facts: RunFacts, variant: MeasuredVariant): VariantResult {
  const { rounds } = variant;
  const about = {
    name: variant.name,
    server: variant.server,
    ...(variant.publishedOnly === undefined ? {} : { publishedOnly: variant.publishedOnly }),
    load: variant.load,
    published: variant.published,
    ...(variant.note === undefined ? {} : { note: variant.note }),
    rounds,
  };
  if (rounds.length === 0) {
    return {
      ...about, rps: null, serverCpuMicrosPerRequest: null, latencyMs: null, errorsPerMillion: null, successRatio: null,
      serverShare: null, generatorShare: null, traffic: null, phases: [],
    };
  }
  const phases = rounds.flatMap((round) => round.phases);
  const requests = total(phases, (phase) => phase.requests);
  const cores = usableCores(variant, { server: facts.serverCores, generator: facts.generatorCores });
  const answered = rounds.filter((round) => total(round.phases, (phase) => phase.requests) > 0);
  return {
    ...about,
    rps: { median: median(rounds.map((round) => roundRps(round.phases))) },
    serverCpuMicrosPerRequest: answered.length === 0 ? null : {
      median: median(answered.map((round) => per(round, (phase) => phase.serverCpuSeconds * 1e6, (phase) => phase.requests))),
    },
    latencyMs: {
      p50: median(phases.map((phase) => phase.latencyMs.p50)),
      p99: median(phases.map((phase) => phase.latencyMs.p99)),
      max: Math.max(...phases.map((phase) => phase.latencyMs.max)),
    },
    errorsPerMillion: requests === 0 ? null : (total(phases, (phase) => phase.errors.total) / requests) * 1e6,
    successRatio: successRatioOf(phases),
    serverShare: median(rounds.map((round) => per(round, (phase) => phase.serverCpuSeconds, (phase) => phase.seconds * cores.server))),
    generatorShare: median(rounds.map((round) => per(round, (phase) => phase.generatorCpuSeconds, (phase) => phase.seconds * cores.generator))),
    traffic: trafficOf(rounds),
    phases: phaseResults(rounds),
  };
}

function comparisonOf(facts: RunFacts, measured: readonly MeasuredVariant[], variant: MeasuredVariant): Comparison | undefined {
  const baseline = measured.find((one) => one.name === variant.against);
  if (baseline === undefined) return undefined;
  if (variant.server === null) return comparePublished(contender(baseline), contender(variant));
  if (variant.rounds.length === 0 || baseline.rounds.length === 0) return undefined;
  const siblings = measured.filter((one) => one.against === variant.against && one.rounds.length > 0).length;
  return compare(contender(baseline), contender(variant), siblings, facts.serverCores);
}

function contender(variant: MeasuredVariant): Contender {
  return {
    name: variant.name,
    rps: rpsPerRound(variant),
    successRatio: successRatioOf(variant.rounds.flatMap((round) => round.phases)) ?? 0,
    rateIsSet: variant.load.rate !== undefined,
    setup: variant.setup,
    publishedRps: variant.published?.rps ?? null,
  };
}

/** None while one of the three variants was not run. */
function sharesOf(measured: readonly MeasuredVariant[], { variant, of, words }: NonNullable<Scenario['shareOf']>): Share[] {
  const named = (name: string | undefined): MeasuredVariant | undefined => measured.find((one) => one.name === name && one.rounds.length > 0);
  const [part, whole] = [named(variant), named(of)];
  const baseline = named(whole?.against);
  if (part === undefined || whole === undefined || baseline === undefined) return [];
  const share = effectShare(rpsPerRound(baseline), rpsPerRound(part), rpsPerRound(whole));
  return share === null ? [] : [{ variant, of, baseline: baseline.name, words, ...share }];
}

function rpsPerRound({ rounds }: MeasuredVariant): number[] {
  return rounds.map((round) => roundRps(round.phases));
}

function per(round: Round, amount: (phase: Phase) => number, by: (phase: Phase) => number): number {
  return total(round.phases, amount) / total(round.phases, by);
}
