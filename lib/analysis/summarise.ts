// From the rounds of a run to the figures of its table: the one place where they are computed.
import type { Published } from '../scenario/model.ts';
import type { Comparison, Phase, Round, VariantResult } from '../runner/result.ts';
import { limitOf, usableCores } from './limit.ts';
import { median } from './statistics.ts';
import { compare, minimumRounds, type Contender } from './verdict.ts';
import type { Warning } from './warnings.ts';

/** A variant and what was measured of it. Every variant that was run has the same rounds in the same order. */
export interface MeasuredVariant {
  name: string;
  server: VariantResult['server'];
  load: VariantResult['load'];
  published: Published | null;
  note?: string;
  /** The variant that its ratio is taken against; absent for a baseline. */
  against?: string;
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
}

export interface Summary { variants: VariantResult[]; comparisons: Comparison[]; warnings: Warning[] }

/** A load average above this many per core at the start is worth a warning. */
const busyPerCore = 0.5;

/** Computes all figures of the table. Order of the variants as given. */
export function summarise(facts: RunFacts, measured: readonly MeasuredVariant[]): Summary {
  const variants = measured.map((variant) => variantResult(facts, variant));
  const comparisons = measured.flatMap((variant) => comparisonOf(facts, measured, variant) ?? []);
  return { variants, comparisons, warnings: warningsOf(facts, measured, variants) };
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
    load: variant.load,
    published: variant.published,
    ...(variant.note === undefined ? {} : { note: variant.note }),
    rounds,
  };
  if (rounds.length === 0) {
    return {
      ...about, rps: null, serverCpuMicrosPerRequest: null, latencyMs: null, errorsPerMillion: null, successRatio: null,
      serverShare: null, generatorShare: null,
    };
  }
  const phases = rounds.flatMap((round) => round.phases);
  const counts = countsOf(phases);
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
    errorsPerMillion: counts.requests === 0 ? null : (counts.errors / counts.requests) * 1e6,
    successRatio: counts.requests === 0 ? null : counts.successes / counts.requests,
    serverShare: median(rounds.map((round) => per(round, (phase) => phase.serverCpuSeconds, (phase) => phase.seconds * cores.server))),
    generatorShare: median(rounds.map((round) => per(round, (phase) => phase.generatorCpuSeconds, (phase) => phase.seconds * cores.generator))),
  };
}

function comparisonOf(facts: RunFacts, measured: readonly MeasuredVariant[], variant: MeasuredVariant): Comparison | undefined {
  if (variant.against === undefined || variant.rounds.length === 0) return undefined;
  const baseline = measured.find((one) => one.name === variant.against);
  if (baseline === undefined || baseline.rounds.length === 0) return undefined;
  const siblings = measured.filter((one) => one.against === variant.against && one.rounds.length > 0).length;
  return compare(contender(baseline), contender(variant), siblings, facts.serverCores);
}

function contender(variant: MeasuredVariant): Contender {
  const counts = countsOf(variant.rounds.flatMap((round) => round.phases));
  return {
    name: variant.name,
    rps: variant.rounds.map((round) => roundRps(round.phases)),
    successRatio: counts.requests === 0 ? 0 : counts.successes / counts.requests,
    setup: variant.setup,
    publishedRps: variant.published?.rps ?? null,
  };
}

function warningsOf(facts: RunFacts, measured: readonly MeasuredVariant[], variants: readonly VariantResult[]): Warning[] {
  const warnings: Warning[] = [];
  if (facts.quick) warnings.push({ kind: 'quick' });
  const rounds = Math.max(0, ...variants.map((variant) => variant.rounds.length));
  if (rounds > 0 && rounds < minimumRounds) warnings.push({ kind: 'few-rounds', rounds, needed: minimumRounds });
  if (facts.loadAverage > busyPerCore * facts.cores) {
    warnings.push({ kind: 'load-average', perMinute: facts.loadAverage, cores: facts.cores });
  }
  for (const variant of variants) {
    const { generatorShare, serverShare } = variant;
    if (limitOf(variant) === 'generator' && generatorShare !== null && serverShare !== null) {
      warnings.push({ kind: 'generator-limit', variant: variant.name, generatorShare, serverShare });
    }
    const phases = variant.rounds.flatMap((round) => round.phases);
    const { requests, errors, not2xx } = countsOf(phases);
    if (errors + not2xx > 0) {
      const example = phases.find((phase) => phase.errors.total > 0)?.errorExample ?? '';
      warnings.push({ kind: 'failures', variant: variant.name, requests, errors, not2xx, example });
    }
  }
  for (const variant of measured) {
    const isBaseline = measured.some((one) => one.against === variant.name);
    if (variant.against !== undefined && !isBaseline && !measured.some((one) => one.name === variant.against)) {
      warnings.push({ kind: 'no-baseline', variant: variant.name, baseline: variant.against });
    }
  }
  return warnings;
}

function countsOf(phases: readonly Phase[]): { requests: number; successes: number; errors: number; not2xx: number } {
  return {
    requests: total(phases, (phase) => phase.requests),
    successes: total(phases, (phase) => phase.responses['2xx'] + phase.responses['3xx']),
    errors: total(phases, (phase) => phase.errors.total),
    not2xx: total(phases, (phase) => phase.responses['3xx'] + phase.responses['4xx'] + phase.responses['5xx']),
  };
}

function per(round: Round, amount: (phase: Phase) => number, by: (phase: Phase) => number): number {
  return total(round.phases, amount) / total(round.phases, by);
}

function total(phases: readonly Phase[], of: (phase: Phase) => number): number {
  return phases.reduce((sum, phase) => sum + of(phase), 0);
}
