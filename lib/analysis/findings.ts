// What the figures of a run show beside its verdicts.
import { allNames, present } from '../present.ts';
import type { Finding, Overflows } from '../result/finding.ts';
import type { Round, VariantResult } from '../result/result.ts';
import { judgedOf, sidesOf } from './comparisons.ts';
import { failureCauseOf, failuresOf, rateCauseOf } from './failures.ts';
import type { Judgement } from './judgement.ts';
import {
  generatorWaitsOf,
  lateReads,
  lateSends,
  limitOf,
  overflowsOf,
  pauseMs,
  shareStalled,
} from './limit.ts';
import { noiseFindings, pauseFindings } from './noise.ts';
import { isMoved, oneSided } from './one-sided.ts';
import { alsoLoadedBy, otherCpusOf, perRequestOf, phasesIn, reconnectsOf } from './phases.ts';
import { dependenceOf, falseNotes } from './rounds.ts';
import { extent, groupedBy, median, total } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './verdict.ts';
import { gainsWithin } from './within-windows.ts';

/** Others that had the cores of a run. */
const takesCores: ReadonlySet<Finding['code']> = new Set([
  'steal',
  'others-beside-generator',
  'others-beside-server',
]);

/** In the order of the report. `variants` are those of `measured`, in the same order. */
export function findingsOf(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  variants: readonly VariantResult[],
  comparisons: readonly Judgement[],
): Finding[] {
  const namesOf = (is: (variant: VariantResult) => boolean) => allNames(variants.filter(is));
  const oneTurn = namesOf(({ rounds }) =>
    rounds.some(({ phases }) => phases.some(({ turns }) => turns?.count === 1 && turns.waits)),
  );
  const late = namesOf(({ network }) => network?.delayHeld === false);
  const noise = noiseFindings(facts, measured, comparisons);
  // Servers that have no core pause, and longer rounds are no remedy.
  const hadCores = !noise.some(({ code }) => takesCores.has(code));
  const all: (Finding | false)[] = [
    facts.quick && { code: 'quick-run' },
    ...intervalFindings(comparisons),
    ...oneSidedFindings(variants, comparisons),
    ...(hadCores ? pauseFindings(variants, comparisons) : []),
    ...noise,
    longWarmUp(variants),
    ...gainsWithin(variants).map(({ name, gain, ...rest }): Finding => {
      return { code: 'still-faster', variant: name, ...rest, ...gain };
    }),
    ...variants.flatMap((variant, index) =>
      variantFindings(variant, measured[index]?.found !== undefined),
    ),
    ...overflowFindings(variants.map(overflowsOf)),
    oneTurn.length > 0 && { code: 'one-turn', variants: oneTurn },
    late.length > 0 && { code: 'late-link', variants: late },
    ...tlsFindings(variants),
    ...withoutBaseline(measured, comparisons),
  ];
  return all.filter((finding) => finding !== false);
}

/** Variants that were run without their baseline, and without another variant to be compared with. */
function withoutBaseline(
  measured: readonly MeasuredVariant[],
  comparisons: readonly Judgement[],
): Finding[] {
  return measured.flatMap(({ name, against }): Finding[] => {
    if (against === undefined) return [];
    const hasPair = measured.some((other) => other.against === name || other.name === against);
    const isCompared = comparisons.some(
      ({ variant, baseline }) => variant === name || baseline === name,
    );
    if (hasPair || isCompared) return [];
    return [{ code: 'no-baseline', variant: name, baseline: against }];
  });
}

function intervalFindings(comparisons: readonly Judgement[]): Finding[] {
  const judged = judgedOf(comparisons);
  return judged.flatMap(({ variant, baseline, verdict, swayedBy, roundRatios }) => {
    const findings: Finding[] = [];
    if (swayedBy !== null) {
      const { round } = swayedBy;
      const hasVerdict = verdict !== 'inconclusive';
      findings.push({ code: 'outlier', variant, baseline, round, hasVerdict });
    }
    const dependence = dependenceOf(roundRatios.map(Math.log), falseNotes / judged.length);
    if (dependence !== null) findings.push({ ...dependence, variant, baseline });
    return findings;
  });
}

function oneSidedFindings(
  variants: readonly VariantResult[],
  comparisons: readonly Judgement[],
): Finding[] {
  return comparisons.flatMap((comparison): Finding[] => {
    const { baseline, variant, verdict, metric, why } = comparison;
    const [base, other] = sidesOf(comparison, { variants });
    // Waits that were alike disturb CPU time per request alone, if its verdict is asked for.
    const ofMetric = why?.kind === 'oneSided' ? why.disturbance : undefined;
    const disturbed = (base && other && oneSided(base, other)) ?? ofMetric;
    if (disturbed === undefined) return [];
    const { moves: _, ...disturbance } = disturbed;
    // A verdict on what it does not move says nothing of what it moves.
    const hasVerdict = verdict !== 'none' && isMoved(metric, disturbance.kind);
    return [{ code: 'one-sided', variant, baseline, hasVerdict, ...disturbance }];
  });
}

/** @param isSearched the search says where the generator was the limit */
function variantFindings(of: VariantResult, isSearched: boolean): Finding[] {
  const { name: variant, rounds } = of;
  const { streams = 1 } = of.load;
  const phases = phasesIn(rounds);
  const requests = total(phases, (phase) => phase.requests);
  const failures = failuresOf(phases);
  const hasFailed = failures.errors + failures.answers.length > 0;
  const hung = total(phases, (phase) => phase.hung);
  const isOverflowed = overflowsOf(of).count > 0;
  const unsent = total(phases, (phase) => phase.unsent);
  const stalled = shareStalled(of);
  const [allowedStreams] = extent(phases.map((phase) => phase.maxConcurrentStreams ?? Infinity));
  const [sends, reads] = [lateSends(of), lateReads(of)];
  const cpus = otherCpusOf(rounds);
  const cause = rateCauseOf(of);
  const resumption = notResumed(of);
  const all: (Finding | false)[] = [
    !isSearched &&
      limitOf(of) === 'generator' && {
        code: 'generator-limit',
        variant,
        share: of.generatorShare ?? 0,
      },
    alsoLoaded(of),
    cpus.length > 0 && { code: 'other-cpus', variant, cpus },
    hasFailed && {
      code: 'failed',
      variant,
      requests,
      ...failures,
      ...present({ cause: failureCauseOf(of) }),
    },
    hung > 0 && { code: 'hung', variant, requests: hung, isOverflowed },
    unsent > 0 && { code: 'unsent', variant, unsent, due: requests + unsent, cause },
    stillIn(of),
    stalled > 0 && { code: 'generator-stalled', variant, share: stalled },
    sends !== null && { code: 'late-sends', variant, ...sends, cause },
    reads !== null && {
      code: 'late-reads',
      variant,
      ...reads,
      ...present({ waitedShare: generatorWaitsOf(of) }),
    },
    allowedStreams < streams && { code: 'few-streams', variant, streams, allowedStreams },
    resumption !== undefined && { code: 'not-resumed', variant, cause: resumption },
  ];
  return all.filter((finding) => finding !== false);
}

/** Returns why no TLS session was resumed although the load asks for it; undefined if some were, or if unknown. */
function notResumed(of: VariantResult): 'http' | 'kept' | 'noTickets' | undefined {
  const resumed = perRequestOf(of, 'resumed');
  if (!of.load.tls?.resume || resumed.length === 0 || resumed.some((count) => count > 0))
    return undefined;
  if (total(perRequestOf(of, 'handshakes'), (count) => count) === 0) return 'http';
  const { kept, share } = reconnectsOf(of);
  return share <= kept ? 'kept' : 'noTickets';
}

/** Returns the finding that others loaded the server too; false if nobody did. */
function alsoLoaded({ name, rounds }: VariantResult): Finding | false {
  const by = alsoLoadedBy(rounds);
  if (by === undefined) return false;
  const loaded = rounds.filter((round) => alsoLoadedBy([round]) !== undefined);
  const numbers = loaded.map(({ round }) => round);
  return { code: 'also-loaded', variant: name, by, rounds: numbers, allRounds: rounds.length };
}

/** Warm-ups are noted from these lengths and gains on. */
const longWarmupSeconds = 3;
const muchGained = 1.2;

/** One for all variants whose warm-ups were long or gained much. */
function longWarmUp(variants: readonly VariantResult[]): Finding | false {
  const warmed = variants.flatMap((variant) => warmUpOf(variant) ?? []);
  if (warmed.length === 0) return false;
  const [, warmupSeconds] = extent(warmed.map(({ seconds }) => seconds));
  const [, gain] = extent(warmed.map((warmUp) => warmUp.gain));
  const rose = gain < muchGained ? {} : { gain };
  return { code: 'long-warm-up', variants: allNames(warmed), warmupSeconds, ...rose };
}

/** Returns the usual length and gain of the variant's warm-ups; undefined if they were short and gained little. */
function warmUpOf({ name, rounds }: VariantResult) {
  const phases = phasesIn(rounds);
  const ends = phases.flatMap(({ continuous }) => continuous ?? []);
  // A warm-up of one part has gained nothing.
  const longer = ends.filter(({ gain }) => gain !== 1);
  if (longer.length === 0 || 2 * longer.length < ends.length) return undefined;
  const seconds = median(longer.map(({ warmupSeconds }) => warmupSeconds));
  const gain = median(longer.map((end) => end.gain));
  const isLong = seconds >= longWarmupSeconds || gain >= muchGained;
  return isLong ? { name, seconds, gain } : undefined;
}

/** The rounds in which the server stalled, and for how long at most; false if it did in none. */
function stillIn({ name, rounds }: VariantResult): Finding | false {
  const longestIn = ({ phases }: Round) => extent(phases.map((phase) => pauseMs(phase) ?? 0))[1];
  const still = rounds.filter((round) => longestIn(round) > 0);
  if (still.length === 0) return false;
  return {
    code: 'stalled',
    variant: name,
    longestMs: extent(still.map(longestIn))[1],
    rounds: still.map(({ round }) => round),
    allRounds: rounds.length,
  };
}

/** The accept queues that overflowed, in one finding. */
export function overflowFindings(all: readonly Overflows[]): Finding[] {
  const queues = all.filter(({ count }) => count > 0);
  return queues.length === 0 ? [] : [{ code: 'overflows', queues }];
}

function tlsFindings(variants: readonly VariantResult[]): Finding[] {
  return (['version', 'cipher', 'keyExchange'] as const).flatMap((part): Finding[] => {
    const seen: { name: string; value: string }[] = [];
    for (const { name, phases } of variants)
      for (const value of new Set(phases.flatMap(({ tls }) => tls?.[part] ?? [])))
        seen.push({ name, value });
    const values = [...groupedBy(seen, ({ value }) => value)].map(([value, same]) => {
      return { value, variants: allNames(same) };
    });
    return values.length > 1 ? [{ code: 'tls-differs', part, values }] : [];
  });
}
