// The closed list of what a reader of the table has to know before trusting it, and how it is found.
import { enumeration, percent, scaledTime, short, whole } from '../format.ts';
import type { Comparison, LoadResult, Phase, VariantResult } from '../result/result.ts';
import { failuresIn, hungText, slowConnectMs } from './failures.ts';
import { limitOf, usedCores, type Shares } from './limit.ts';
import { noiseText, noiseWarnings, type NoiseWarning } from './noise-warnings.ts';
import { wholeRounds } from './phases.ts';
import { rateCause } from './rate.ts';
import { extent, median, total } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './measured.ts';
import { minimumRounds } from './verdict.ts';

type Tls = NonNullable<LoadResult['tls']>;

export type Warning =
  | { kind: 'generator-limit'; variant: string; shares: Shares; hasOtherCores: boolean; hasLink: boolean }
  | { kind: 'failures'; variant: string; requests: number; failures: readonly string[] }
  | { kind: 'delay-not-held'; variants: readonly string[] }
  | { kind: 'hung'; variant: string; hung: string; connectMs: number }
  | { kind: 'unsent'; variant: string; requests: number; unsent: number; cause: string }
  | { kind: 'late-sends'; variant: string; p99Ms: number; bucketMs: number }
  | { kind: 'stream-limit'; variants: readonly string[]; asked: number; allowed: number }
  | { kind: 'tls-differs'; part: keyof Tls; variants: ReadonlyMap<string, readonly string[]> }
  | { kind: 'few-rounds'; rounds: number }
  | { kind: 'quick' }
  | { kind: 'no-baseline'; variant: string; baseline: string }
  | { kind: 'repeated'; round: number; why: string }
  | { kind: 'dropped'; round: number; why: string }
  | { kind: 'time-over'; rounds: number; most: number }
  | { kind: 'server-alarm'; variant: string; line: string }
  | { kind: 'log-of-failures'; variant: string; line: string }
  | { kind: 'other-bodies'; variant: string }
  | { kind: 'alone'; variant: string; why: string }
  | { kind: 'not-stored'; problem: string }
  | { kind: 'link-not-at-rest'; variant: string; round: number }
  | { kind: 'cores'; note: string }
  | NoiseWarning;

/** What the figures themselves give reason to say. `variants` are those of `measured`, in the same order. */
export function warningsOf(
  facts: RunFacts, measured: readonly MeasuredVariant[], variants: readonly VariantResult[], comparisons: readonly Comparison[],
): Warning[] {
  const rounds = wholeRounds(variants);
  return [
    ...(facts.quick ? [{ kind: 'quick' } as const] : []),
    ...(rounds > 0 && rounds < minimumRounds ? [{ kind: 'few-rounds', rounds } as const] : []),
    ...noiseWarnings(facts, measured, comparisons),
    ...variants.flatMap((variant) => variantWarnings(facts, variant)),
    ...delayWarning(variants),
    ...streamWarnings(variants),
    ...tlsWarnings(variants),
    ...measured.flatMap((variant) => baselineWarning(measured, comparisons, variant)),
  ];
}

function variantWarnings({ generatorCores }: RunFacts, variant: VariantResult): Warning[] {
  const { name, load, generatorShare, serverShare, network, rounds } = variant;
  const warnings: Warning[] = [];
  if (limitOf(variant) === 'generator') {
    warnings.push({ kind: 'generator-limit', variant: name, shares: { generatorShare, serverShare }, hasOtherCores: load.threads < generatorCores, hasLink: network !== null });
  }
  const phases = rounds.flatMap((round) => round.phases);
  const requests = total(phases, (phase) => phase.requests);
  const failures = failuresIn(phases);
  if (failures.length > 0) warnings.push({ kind: 'failures', variant: name, requests, failures });
  const hung = hungText(phases);
  if (hung !== '') warnings.push({ kind: 'hung', variant: name, hung, connectMs: slowConnectMs(phases) });
  const unsent = total(phases, (phase) => phase.unsent);
  if (unsent > 0) warnings.push({ kind: 'unsent', variant: name, requests, unsent, cause: rateCause(variant) });
  return [...warnings, ...lateSends(name, phases)];
}

/** One for all: they have the same cause. */
function delayWarning(variants: readonly VariantResult[]): Warning[] {
  const late = variants.filter(({ network }) => network?.delayHeld === false).map(({ name }) => name);
  return late.length === 0 ? [] : [{ kind: 'delay-not-held', variants: late }];
}

/** From here on one request in a hundred is counted a whole bucket too high, which is the generator's doing. */
function lateSends(variant: string, phases: readonly Phase[]): Warning[] {
  const widths = (phases[0]?.buckets ?? []).flatMap(({ fromMs, toMs }) => (toMs === null ? [] : [toMs - fromMs]));
  if (widths.length === 0) return [];
  const bucketMs = extent(widths)[0];
  const p99Ms = median(phases.map((phase) => phase.sendDelayMs.p99));
  return p99Ms < bucketMs ? [] : [{ kind: 'late-sends', variant, p99Ms, bucketMs }];
}

/** One for all variants whose server allows the same fewer streams than the load asks for. */
function streamWarnings(variants: readonly VariantResult[]): Warning[] {
  const limits = new Map<string, Warning & { kind: 'stream-limit' }>();
  for (const { name, load: { streams: asked = 1 }, rounds } of variants) {
    const [allowed] = extent(rounds.flatMap(({ phases }) => phases.map((phase) => phase.maxConcurrentStreams ?? Infinity)));
    if (allowed >= asked) continue;
    const others = limits.get(`${asked} ${allowed}`)?.variants ?? [];
    limits.set(`${asked} ${allowed}`, { kind: 'stream-limit', variants: [...others, name], asked, allowed });
  }
  return [...limits.values()];
}

/** One per part of TLS in which variants differ. Those without TLS do not count. */
function tlsWarnings(variants: readonly VariantResult[]): Warning[] {
  return (['version', 'cipher', 'keyExchange'] as const).flatMap((part) => {
    const named = new Map<string, string[]>();
    for (const { name, phases } of variants) {
      for (const value of new Set(phases.flatMap(({ tls }) => (tls === null ? [] : [tls[part]])))) {
        named.set(value, [...(named.get(value) ?? []), name]);
      }
    }
    return named.size > 1 ? [{ kind: 'tls-differs', part, variants: named }] : [];
  });
}

/** A variant that is a baseline itself, or is compared with another one all the same, needs none. */
function baselineWarning(measured: readonly MeasuredVariant[], comparisons: readonly Comparison[], { name, against }: MeasuredVariant): Warning[] {
  const isCompared = measured.some((one) => one.against === name) || comparisons.some(({ variant, baseline }) => variant === name || baseline === name);
  if (against === undefined || isCompared || measured.some((one) => one.name === against)) return [];
  return [{ kind: 'no-baseline', variant: name, baseline: against }];
}

/** The warning in words, with the next step where there is one. */
export function warningText(warning: Warning): string {
  switch (warning.kind) {
    case 'generator-limit':
      return `${warning.variant}: the generator${warning.hasLink ? ' with the link, whose packets to it run on its cores,' : ''} was at its limit (${usedCores(warning.shares.generatorShare)}) and `
        + `${warning.shares.serverShare === null ? 'how busy the server was is not known: it may do' : `the server was not (${percent(warning.shares.serverShare)}): the server can do`} more than this; ${warning.hasOtherCores ? 'a load with more threads (-t) would use the generator\'s other cores' : 'give the generator more cores with --generator-cpus'}`;
    case 'failures':
      return `${warning.variant}: ${enumeration(warning.failures)} among ${whole(warning.requests)} requests: requests/s alone do not compare`;
    case 'delay-not-held':
      return `${enumeration(warning.variants)}: the link was later than the delay that was asked for, so it may be what is compared: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus), or take fewer connections`;
    case 'hung':
      return `${warning.variant}: ${warning.hung}: ${warning.connectMs === 0 ? 'the server has probably forgotten them'
        : `connections were still being made, one of which took ${scaledTime(warning.connectMs)}: give them more time (--duration), or take fewer (-c)`}; they count as failed`;
    case 'unsent':
      return `${warning.variant}: ${whole(warning.unsent)} of ${whole(warning.requests + warning.unsent)} requests were due and could not be sent: ${warning.cause}`;
    case 'late-sends':
      return `${warning.variant}: one request in a hundred left ${short(warning.p99Ms)} ms or more late, which is in its latency, and the narrowest bucket is `
        + `${short(warning.bucketMs)} ms: the generator was kept from its core; run again on a quieter machine`;
    case 'stream-limit':
      return `${warning.variants.join(', ')}: the server allows ${whole(warning.allowed)} concurrent streams per connection, the load asks for ${whole(warning.asked)}: ${whole(warning.allowed)} were used`;
    case 'tls-differs':
      return `${tlsParts[warning.part]} differs: ${[...warning.variants].map(([value, names]) => `${value} (${names.join(', ')})`).join(', ')}`;
    case 'few-rounds':
      return `${warning.rounds} ${warning.rounds === 1 ? 'round' : 'rounds'}: a verdict needs ${minimumRounds}`;
    case 'quick':
      return 'quick run with short rounds: a first look, not a measurement';
    case 'no-baseline':
      return `${warning.variant} is compared with ${warning.baseline}, which was not run: name both with --variants for a ratio`;
    case 'repeated':
      return `round ${warning.round} was dropped and repeated as round ${warning.round + 1}: ${warning.why}`;
    case 'dropped':
      return `round ${warning.round} was dropped, and there was no time to repeat it: ${warning.why}`;
    case 'time-over':
      return `--max-time ended the run after ${warning.rounds} of at most ${warning.most} rounds`;
    case 'link-not-at-rest':
      return `${warning.variant}: packets were still on their way 10 s after the load of round ${warning.round}, and are not among those that are counted`;
    case 'server-alarm':
      return `${warning.variant}: the server's log says: ${warning.line}`;
    case 'log-of-failures':
      return `${warning.variant}: the last line of its log after requests had failed: ${warning.line}`;
    case 'other-bodies':
      return `${warning.variant}: under load the bodies had another length on average than when the server was started: part of what is seen is theirs`;
    case 'alone':
      return `${warning.variant} was loaded alone, and not in turns with the others: ${warning.why}; the machine's noise is in its figures`;
    case 'not-stored':
      return warning.problem;
    case 'cores':
      return warning.note;
    default:
      return noiseText(warning);
  }
}

const tlsParts: Record<keyof Tls, string> = { version: 'TLS version', cipher: 'TLS cipher', keyExchange: 'TLS key exchange' };
