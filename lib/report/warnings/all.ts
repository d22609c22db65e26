// Warnings below the table, derived from the figures, each with a next step.
import {
  lateReads,
  lateSends,
  limitOf,
  overflowsOf,
  pauseMs,
  shareStalled,
} from '../../analysis/limit.ts';
import { oneSided } from '../../analysis/one-sided.ts';
import {
  alsoLoadedBy,
  otherCpusOf,
  perRequestOf,
  phasesIn,
  reconnectsOf,
  wholeRounds,
} from '../../analysis/phases.ts';
import { dependenceOf, falseNotes } from '../../analysis/rounds.ts';
import { extent, groupedBy, median, minimumRounds, total } from '../../analysis/statistics.ts';
import type { MeasuredVariant, RunFacts } from '../../analysis/verdict.ts';
import { gainsWithin, type Gain } from '../../analysis/within-windows.ts';
import {
  effect,
  counts,
  enumeration,
  percent,
  scaledTime,
  variantsText,
  whole,
} from '../../format.ts';
import type { Comparison, Round, VariantResult } from '../../result/result.ts';
import { coresText, oneSidedText, remedies, strangerText, inWords } from '../reasons.ts';
import { answersTexts, errorsTexts, hungText } from './failures.ts';
import { noiseWarnings, pauseTexts, roundsText } from './noise.ts';
import { failureCause, overflowTexts, rateCause } from './turned-away.ts';
import { figuresOfRun, type AskedComparisons } from '../../analysis/figures.ts';
import { allNames } from '../../present.ts';
import { judgedOf } from '../../analysis/comparisons.ts';

/** `variants` are those of `measured`, in the same order. */
function warningsOf(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  variants: readonly VariantResult[],
  comparisons: readonly Comparison[],
): string[] {
  const rounds = wholeRounds(variants);
  const namesOf = (is: (variant: VariantResult) => boolean) =>
    enumeration(allNames(variants.filter(is)));
  const oneTurn = namesOf(({ rounds }) =>
    rounds.some(({ phases }) => phases.some(({ turns }) => turns?.count === 1 && turns.waits)),
  );
  const late = namesOf(({ network }) => network?.delayHeld === false);
  const texts = [
    facts.quick && 'quick run with short rounds: a first look, not a measurement',
    rounds > 0 &&
      rounds < minimumRounds &&
      comparisons.length > 0 &&
      `${counts(rounds, 'round')}: a verdict needs ${minimumRounds}`,
    ...intervalWarnings(comparisons),
    ...oneSidedWarnings(variants, comparisons),
    ...pauseTexts(variants, comparisons),
    ...noiseWarnings(facts, measured, comparisons),
    warmedWarning(variants),
    ...gainsWithin(variants).map(gainText),
    ...merged(variants.flatMap(variantWarnings), variants.length),
    ...overflowTexts(variants.map(overflowsOf)),
    oneTurn !== '' &&
      `${oneTurn}: answers take so long that the sides were loaded one after the other within each round: the machine's noise is in their ratios`,
    late !== '' &&
      `${late}: the link was later than the delay that was asked for, so it may be what is compared: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus), or take fewer connections`,
    ...tlsWarnings(variants),
    ...aloneWarnings(measured, comparisons),
  ];
  return texts.filter((text) => text !== false);
}

/** Warns of variants that were run without their baseline, and without another variant to be compared with. */
function aloneWarnings(
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): string[] {
  return measured.flatMap(({ name, against }) => {
    if (against === undefined) return [];
    const hasPair = measured.some((other) => other.against === name || other.name === against);
    const isCompared = comparisons.some(
      ({ variant, baseline }) => variant === name || baseline === name,
    );
    if (hasPair || isCompared) return [];
    return `${name} is compared with ${against}, which was not run: name both with --variants for a ratio`;
  });
}

function intervalWarnings(comparisons: readonly Comparison[]): string[] {
  const judged = judgedOf(comparisons);
  return judged.flatMap(({ variant, baseline, verdict, swayedBy, roundRatios }) => {
    const pair = `${variant} against ${baseline}`;
    const warnings: string[] = [];
    if (swayedBy !== null) {
      const does = verdict === 'inconclusive' ? 'prevents a verdict' : 'decides';
      warnings.push(
        `${pair}: round ${swayedBy.round} is an outlier and alone ${does}: run again, with more --rounds`,
      );
    }
    const dependence = dependenceOf(roundRatios.map(Math.log), falseNotes / judged.length);
    if (dependence !== null)
      warnings.push(
        `${pair}: ${dependenceText(dependence)}, so the interval is too narrow and the verdict less sure than it says: look for what changes during the run (heat, caches, growing logs, other programs), and run again`,
      );
    return warnings;
  });
}

function dependenceText(dependence: NonNullable<ReturnType<typeof dependenceOf>>): string {
  if (dependence.kind === 'drift')
    return `from the first round to the last the ratio moved by ${effect(dependence.ratio)}`;
  return `rounds resemble the one before (correlation ${dependence.correlation.toFixed(2)})`;
}

function oneSidedWarnings(
  variants: readonly VariantResult[],
  comparisons: readonly Comparison[],
): string[] {
  const named = (name: string) =>
    variants.find((variant) => variant.name === name) as VariantResult;
  return comparisons.flatMap(({ baseline, variant, verdict }) => {
    const disturbed = oneSided(named(baseline), named(variant));
    if (disturbed === undefined) return [];
    const { kind } = disturbed;
    const pair = `${variant} and ${baseline}`;
    const figures =
      kind === 'starved' ? 'requests/s, latency and CPU per request' : 'requests/s and latency';
    const consequence =
      verdict === 'none'
        ? `${figures} of ${pair} do not compare`
        : `the difference of ${pair} is not as large as measured, and too large to come from that alone`;
    return `${oneSidedText(disturbed)}, so ${consequence}: ${remedies[kind]}, and run again`;
  });
}

/** `text` follows the variant's name. */
interface VariantWarning {
  name: string;
  text: string;
}

/**
 * Returns each text once, after the names of its variants.
 * @param all the number of all variants
 */
function merged(warnings: readonly VariantWarning[], all: number): string[] {
  return [...groupedBy(warnings, ({ text }) => text)].map(([text, same]) => {
    const names = new Set(allNames(same));
    return variantsText([...names], all) + text;
  });
}

function variantWarnings(variant: VariantResult): VariantWarning[] {
  const { name, generatorShare, rounds } = variant;
  const { streams = 1 } = variant.load;
  const phases = phasesIn(rounds);
  const requests = total(phases, (phase) => phase.requests);
  const failures = enumeration([...errorsTexts(phases), ...answersTexts(phases)]);
  const hung = hungText(phases);
  const isOverflowed = overflowsOf(variant).count > 0;
  const unsent = total(phases, (phase) => phase.unsent);
  const generatorStalled = shareStalled(variant);
  const [allowed] = extent(phases.map((phase) => phase.maxConcurrentStreams ?? Infinity));
  const late = lateSends(variant);
  const lateRead = lateReads(variant);
  const still = stillText(rounds);
  const texts = [
    limitOf(variant) === 'generator' &&
      `: the generator was at its limit (${percent(generatorShare ?? 0)} of its available CPU), so the server may be able to do more: give the generator more cores (--generator-cpus) or the load more threads (-t)`,
    strangersText(rounds),
    otherCpusText(rounds),
    failures !== '' &&
      `: ${failures} among ${whole(requests)} requests: ${failureCause(variant) || 'requests/s alone do not compare'}`,
    hung !== '' &&
      `: ${hung}${isOverflowed ? '' : ': the server has probably forgotten them, or is slow to accept connections (give a longer --duration, or fewer with -c)'}; they count as failed`,
    unsent > 0 &&
      `: ${whole(unsent)} of ${whole(requests + unsent)} requests were due and could not be sent: ${rateCause(variant)}`,
    still !== '' &&
      ` stalled ${still}, and nothing else is known to have: look at its log and its backend`,
    generatorStalled > 0 &&
      `: the generator stalled in ${percent(generatorStalled)} of the turns (others had its core, or the host took it); those were left out and made again, up to a quarter of all`,
    late !== null &&
      `: one request in a hundred left ${scaledTime(late.lateMs)} late or more, which its latency includes (p99 ${scaledTime(late.latencyMs)}): ${rateCause(variant)}`,
    lateRead !== null &&
      `: half or more of its p99 (${scaledTime(lateRead.latencyMs)}) is the generator's: it read one answer in a hundred ${scaledTime(lateRead.lateMs)} after it was there, or later: give the generator more cores (--generator-cpus) or the load more threads (-t), and end what else runs on its cores`,
    allowed < streams &&
      `: the server allows ${whole(allowed)} concurrent streams per connection, the load asks for ${whole(streams)}: ${whole(allowed)} were used`,
    whyNotResumed(variant),
  ];
  return texts.flatMap((text) => (text === false ? [] : { name, text }));
}

/** Says why no TLS session was resumed although the load asks for it; false if some were, or if unknown. */
function whyNotResumed(variant: VariantResult): string | false {
  const resumed = perRequestOf(variant, 'resumed');
  if (!variant.load.tls?.resume || resumed.length === 0 || resumed.some((count) => count > 0))
    return false;
  return `: no TLS session was resumed (tls.resume): ${causeOfNone(variant)}`;
}

function causeOfNone(variant: VariantResult): string {
  if (total(perRequestOf(variant, 'handshakes'), (count) => count) === 0)
    return 'the page is not https';
  const { kept, share } = reconnectsOf(variant);
  if (share <= kept)
    return 'its connections were kept, and only new ones resume (keepAlive: false, or a server that closes connections)';
  return 'the server gave no session tickets, or took none back (nginx: ssl_session_tickets on)';
}

/** On who else loaded the server; false if nobody did. */
function strangersText(rounds: readonly Round[]): string | false {
  const by = alsoLoadedBy(rounds);
  if (by === undefined) return false;
  const loaded = rounds.filter((round) => alsoLoadedBy([round]) !== undefined);
  const when = roundsText(
    loaded.map(({ round }) => round),
    rounds.length,
  );
  const remedy = by === '' ? 'end that program (ss -tnp)' : `look for code in ${by} that does so`;
  return `: ${strangerText(by)} had connections to its server in ${when}, so its figures are not of this load alone: ${remedy}, and run again`;
}

/** On cores that are not the servers'; false if there are none. */
function otherCpusText(rounds: readonly Round[]): string | false {
  const cpus = otherCpusOf(rounds);
  if (cpus.length === 0) return false;
  return `: its threads might run on ${coresText(cpus)} too, which the servers do not share: find what sets their affinity (sched_setaffinity, taskset, worker_cpu_affinity, cpu-map), and run again`;
}

/** Warm-ups are said from these lengths and gains on. */
const longWarmupSeconds = 3;
const muchGained = 1.2;

/** One for all variants whose warm-ups were long or gained much. */
function warmedWarning(variants: readonly VariantResult[]): string | false {
  const warmed = variants.flatMap((variant) => warmUpOf(variant) ?? []);
  if (warmed.length === 0) return false;
  const isOne = warmed.length === 1;
  const [, seconds] = extent(warmed.map((warmUp) => warmUp.seconds));
  const [, gain] = extent(warmed.map((warmUp) => warmUp.gain));
  const took = `${isOne ? 'a warm-up took' : 'warm-ups took up to'} ${seconds.toFixed(1)} s`;
  const times = `${isOne ? '' : 'up to '}${gain.toFixed(1)} times`;
  const rose = gain < muchGained ? '' : `, in which requests/s rose to ${times}`;
  const names = enumeration(allNames(warmed));
  return `${names} still got faster under load: ${took}${rose} (--warmup 0 measures ${isOne ? 'it' : 'them'} cold)`;
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

function gainText({ name, metric, gain: { ratio, interval }, against }: Gain): string {
  const than = against === undefined ? '' : ` than ${against}`;
  const what = metric === 'rps' ? 'requests/s' : 'requests per CPU time';
  return `${name} still got faster${than} within its windows: ${what} ${effect(ratio, interval)} from their first half to their second: begin later (--warmup 5s)`;
}

/** "for up to 3.20 s in rounds 2 and 4"; '' if it did in none. */
function stillText(rounds: readonly Round[]): string {
  const longestIn = ({ phases }: Round) => extent(phases.map((phase) => pauseMs(phase) ?? 0))[1];
  const still: number[] = [];
  let longest = 0;
  for (const round of rounds) {
    const ms = longestIn(round);
    if (ms > 0) still.push(round.round);
    longest = Math.max(longest, ms);
  }
  if (still.length === 0) return '';
  return `for up to ${scaledTime(longest)} in ${roundsText(still, rounds.length)}`;
}

function tlsWarnings(variants: readonly VariantResult[]): string[] {
  const warnings: string[] = [];
  for (const [part, partName] of tlsParts) {
    const seen: { name: string; value: string }[] = [];
    for (const { name, phases } of variants)
      for (const value of new Set(phases.flatMap(({ tls }) => tls?.[part] ?? [])))
        seen.push({ name, value });
    const how = [...groupedBy(seen, ({ value }) => value)].map(
      ([value, same]) => `${value} (${allNames(same).join(', ')})`,
    );
    if (how.length > 1) warnings.push(`TLS ${partName} differs: ${how.join(', ')}`);
  }
  return warnings;
}

const tlsParts = [
  ['version', 'version'],
  ['cipher', 'cipher'],
  ['keyExchange', 'key exchange'],
] as const;

/** Returns the variants, comparisons, noise floor and warnings of a result. Takes what figuresOfRun takes. */
export function summarise(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  asked: AskedComparisons = {},
) {
  const { variants, comparisons: judgements, noiseFloor } = figuresOfRun(facts, measured, asked);
  const comparisons = judgements.map((judgement) => inWords(judgement, facts.sameWithin));
  const warnings = warningsOf(facts, measured, variants, comparisons);
  return { variants, comparisons, noiseFloor, warnings };
}
