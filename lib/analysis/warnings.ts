// The closed list of what a reader of the table has to know before trusting it, and how it is found.
import { change, enumeration, percent, scaledTime, whole } from '../format.ts';
import type { Comparison, LoadResult, VariantResult, Verdict } from '../result/result.ts';
import { dependenceOf, falseNotes, type Dependence } from './dependence.ts';
import { failuresIn, hungText, slowConnectMs } from './failures.ts';
import { limitOf } from './limit.ts';
import { noiseTexts, noiseWarnings, type WarningOf } from './noise-warnings.ts';
import { wholeRounds } from './phases.ts';
import { lateSends, rateCause, stoodStill } from './rate.ts';
import { extent, groupedBy, median, total } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './measured.ts';
import { minimumRounds } from './verdict.ts';

type Tls = NonNullable<LoadResult['tls']>;

/** What each kind has to be told of, and its words, with the next step where there is one. */
const texts = {
  'generator-limit': ({ variant, share }: { variant: string; share: number | null }) =>
    `${variant}: the generator was at its limit (${percent(share ?? 0)} of its available CPU), so the server may be able to do more: give the generator more cores (--generator-cpus) or the load more threads (-t)`,
  failures: ({
    variant,
    requests,
    failures,
  }: {
    variant: string;
    requests: number;
    failures: readonly string[];
  }) =>
    `${variant}: ${enumeration(failures)} among ${whole(requests)} requests: requests/s alone do not compare`,
  'delay-not-held': ({ variants }: { variants: readonly string[] }) =>
    `${enumeration(variants)}: the link was later than the delay that was asked for, so it may be what is compared: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus), or take fewer connections`,
  hung: ({ variant, hung, connectMs }: { variant: string; hung: string; connectMs: number }) =>
    `${variant}: ${hung}: ${
      connectMs === 0
        ? 'the server has probably forgotten them'
        : `connections were still being made, one of which took ${scaledTime(connectMs)}: give them more time (--duration), or take fewer (-c)`
    }; they count as failed`,
  unsent: ({
    variant,
    requests,
    unsent,
    cause,
  }: {
    variant: string;
    requests: number;
    unsent: number;
    cause: string;
  }) =>
    `${variant}: ${whole(unsent)} of ${whole(requests + unsent)} requests were due and could not be sent: ${cause}`,
  'late-sends': ({
    variant,
    p99Ms,
    latencyMs,
    cause,
  }: {
    variant: string;
    p99Ms: number;
    latencyMs: number;
    cause: string;
  }) =>
    `${variant}: one request in a hundred left ${scaledTime(p99Ms)} late or more, which its latency includes (p99 ${scaledTime(latencyMs)}): ${cause}`,
  'stream-limit': ({
    variants,
    asked,
    allowed,
  }: {
    variants: readonly string[];
    asked: number;
    allowed: number;
  }) =>
    `${variants.join(', ')}: the server allows ${whole(allowed)} concurrent streams per connection, the load asks for ${whole(asked)}: ${whole(allowed)} were used`,
  'tls-differs': ({
    part,
    variantsBy,
  }: {
    part: keyof Tls;
    variantsBy: ReadonlyMap<string, readonly { name: string }[]>;
  }) =>
    `${tlsParts[part]} differs: ${[...variantsBy].map(([value, some]) => `${value} (${some.map(({ name }) => name).join(', ')})`).join(', ')}`,
  'few-rounds': ({ rounds }: { rounds: number }) =>
    `${rounds} ${rounds === 1 ? 'round' : 'rounds'}: a verdict needs ${minimumRounds}`,
  quick: (_: object) => 'quick run with short rounds: a first look, not a measurement',
  'no-baseline': (one: { variant: string; baseline: string }) =>
    `${one.variant} is compared with ${one.baseline}, which was not run: name both with --variants for a ratio`,
  repeated: ({ round, as = round + 1, why }: { round: number; as?: number; why: string }) =>
    `round ${round} was dropped and repeated as round ${as}: ${why}`,
  'not-repeated': ({ round, why }: { round: number; why: string }) =>
    `round ${round} could not be measured again: ${why}`,
  dropped: ({ round, why }: { round: number; why: string }) =>
    `round ${round} was dropped, and there was no time to repeat it: ${why}`,
  swayed: ({
    variant,
    baseline,
    round,
    verdict,
  }: {
    variant: string;
    baseline: string;
    round: number;
    verdict: Verdict;
  }) =>
    `${variant} against ${baseline}: round ${round} is an outlier and alone ${verdict === 'inconclusive' ? 'prevents a verdict' : 'decides'}: run again, with more --rounds`,
  dependent: ({
    variant,
    baseline,
    seen,
  }: {
    variant: string;
    baseline: string;
    seen: Dependence;
  }) =>
    `${variant} against ${baseline}: ${seen.kind === 'drift' ? `from the first round to the last the ratio moved by ${change(seen.ratio)}` : `rounds resemble the one before (correlation ${seen.correlation.toFixed(2)})`}, ` +
    'so the interval is too narrow and the verdict less sure than it says: look for what changes during the run (heat, caches, growing logs, other programs), and run again',
  'time-over': ({ rounds, most }: { rounds: number; most: number }) =>
    `--max-time ended the run after ${rounds} of at most ${most} rounds`,
  'link-not-at-rest': ({ variant, round }: { variant: string; round: number }) =>
    `${variant}: packets were still on their way 10 s after the load of round ${round}, and are not among those that are counted`,
  'server-alarm': ({ variant, line }: { variant: string; line: string }) =>
    `${variant}: the server's log says: ${line}`,
  'log-of-failures': ({ variant, line }: { variant: string; line: string }) =>
    `${variant}: the last line of its log after requests had failed: ${line}`,
  'other-bodies': ({ variant }: { variant: string }) =>
    `${variant}: under load the bodies had another length on average than when the server was started: part of what is seen is theirs`,
  'idle-cpu': ({ variant, share }: { variant: string; share: number }) =>
    `${variant} uses ${percent(share)} of a core while it is not loaded, which slows all sides alike: alone, it would be up to that much slower against the others`,
  'one-turn': ({ variants }: { variants: readonly string[] }) =>
    `${enumeration(variants)}: answers take so long that the sides were loaded one after the other within each round: the machine's noise is in their ratios`,
  'stood-still': ({ variant, share }: { variant: string; share: number }) =>
    `${variant}: the generator stood still in ${percent(share)} of the turns (others had its core, or the host took it); those were left out and made again, up to a quarter of all`,
  alone: ({ variant, why }: { variant: string; why: string }) =>
    `${variant} was loaded alone, and not in turns with the others: ${why}; the machine's noise is in its figures`,
  'not-stored': ({ problem }: { problem: string }) => problem,
  cores: ({ note }: { note: string }) => note,
  ...noiseTexts,
};

const tlsParts: Record<keyof Tls, string> = {
  version: 'TLS version',
  cipher: 'TLS cipher',
  keyExchange: 'TLS key exchange',
};

export type Warning = WarningOf<typeof texts>;

/** From this part of a core on, what a server does by itself shows in the ratios. */
const idleMatters = 0.01;

/** The warning in words. */
export function warningText({ kind, ...about }: Warning): string {
  return texts[kind](about as never);
}

/** What the figures themselves give reason to say. `variants` are those of `measured`, in the same order. */
export function warningsOf(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  variants: readonly VariantResult[],
  comparisons: readonly Comparison[],
): Warning[] {
  const rounds = wholeRounds(variants);
  return [
    ...(facts.quick ? [{ kind: 'quick' } as const] : []),
    ...(rounds > 0 && rounds < minimumRounds ? [{ kind: 'few-rounds', rounds } as const] : []),
    ...intervalWarnings(comparisons),
    ...noiseWarnings(facts, measured, comparisons),
    ...variants.flatMap(variantWarnings),
    ...oneForAll('one-turn', variants, ({ rounds }) =>
      rounds.some(({ phases }) => phases.some(({ turns }) => turns?.count === 1 && turns.waits)),
    ),
    ...oneForAll('delay-not-held', variants, ({ network }) => network?.delayHeld === false),
    ...streamWarnings(variants),
    ...tlsWarnings(variants),
    ...measured.flatMap((variant) => baselineWarning(measured, comparisons, variant)),
  ];
}

function variantWarnings(variant: VariantResult): Warning[] {
  const { name, generatorShare, rounds } = variant;
  const warnings: Warning[] = [];
  if (limitOf(variant) === 'generator')
    warnings.push({ kind: 'generator-limit', variant: name, share: generatorShare });
  const phases = rounds.flatMap((round) => round.phases);
  const requests = total(phases, (phase) => phase.requests);
  const failures = failuresIn(phases);
  if (failures.length > 0) warnings.push({ kind: 'failures', variant: name, requests, failures });
  const hung = hungText(phases);
  if (hung !== '')
    warnings.push({ kind: 'hung', variant: name, hung, connectMs: slowConnectMs(phases) });
  const unsent = total(phases, (phase) => phase.unsent);
  if (unsent > 0)
    warnings.push({ kind: 'unsent', variant: name, requests, unsent, cause: rateCause(variant) });
  const idle = phases.flatMap(({ idleCpuShare }) => idleCpuShare ?? []);
  if (idle.length > 0 && median(idle) > idleMatters)
    warnings.push({ kind: 'idle-cpu', variant: name, share: median(idle) });
  if (stoodStill(variant) > 0)
    warnings.push({ kind: 'stood-still', variant: name, share: stoodStill(variant) });
  const late = lateSends(variant);
  if (late !== null)
    warnings.push({ kind: 'late-sends', variant: name, ...late, cause: rateCause(variant) });
  return warnings;
}

/** One warning that names all variants of which `is` holds: they have the same cause. */
function oneForAll(
  kind: 'one-turn' | 'delay-not-held',
  variants: readonly VariantResult[],
  is: (variant: VariantResult) => boolean,
): Warning[] {
  const names = variants.filter(is).map(({ name }) => name);
  return names.length === 0 ? [] : [{ kind, variants: names }];
}

/** What keeps intervals from being as sure as they say: a round on which alone a verdict hangs, and rounds that depend on each other. */
function intervalWarnings(comparisons: readonly Comparison[]): Warning[] {
  const judged = comparisons.filter(({ verdict }) => verdict !== 'none');
  return judged.flatMap(({ variant, baseline, verdict, swayedBy, roundRatios }): Warning[] => {
    const seen = dependenceOf(roundRatios.map(Math.log), falseNotes / judged.length);
    return [
      ...(swayedBy === null
        ? []
        : [{ kind: 'swayed', variant, baseline, round: swayedBy.round, verdict } as const]),
      ...(seen === null ? [] : [{ kind: 'dependent', variant, baseline, seen } as const]),
    ];
  });
}

/** One for all variants whose server allows the same fewer streams than the load asks for. */
function streamWarnings(variants: readonly VariantResult[]): Warning[] {
  const limited = variants.flatMap(({ name, load: { streams: asked = 1 }, rounds }) => {
    const [allowed] = extent(
      rounds.flatMap(({ phases }) => phases.map((phase) => phase.maxConcurrentStreams ?? Infinity)),
    );
    return allowed < asked ? [{ name, limit: { asked, allowed } }] : [];
  });
  return [...groupedBy(limited, ({ limit }) => JSON.stringify(limit)).values()].map(
    (same): Warning => ({
      kind: 'stream-limit',
      variants: same.map(({ name }) => name),
      ...(same[0] as (typeof limited)[number]).limit,
    }),
  );
}

/** One per part of TLS in which variants differ. Those without TLS do not count. */
function tlsWarnings(variants: readonly VariantResult[]): Warning[] {
  return (['version', 'cipher', 'keyExchange'] as const).flatMap((part) => {
    const seen = variants.flatMap(({ name, phases }) =>
      [...new Set(phases.flatMap(({ tls }) => tls?.[part] ?? []))].map((value) => ({
        name,
        value,
      })),
    );
    const variantsBy = groupedBy(seen, ({ value }) => value);
    return variantsBy.size > 1 ? [{ kind: 'tls-differs', part, variantsBy }] : [];
  });
}

/** A variant that is a baseline itself, or is compared with another one all the same, needs none. */
function baselineWarning(
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
  { name, against }: MeasuredVariant,
): Warning[] {
  const isCompared =
    measured.some((one) => one.against === name) ||
    comparisons.some(({ variant, baseline }) => variant === name || baseline === name);
  if (against === undefined || isCompared || measured.some((one) => one.name === against))
    return [];
  return [{ kind: 'no-baseline', variant: name, baseline: against }];
}
