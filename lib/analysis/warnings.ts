// The closed list of what a reader of the table has to know before trusting it, and how it is found.
import { change, enumeration, percent, scaledTime, whole, counts } from '../format.ts';
import type {
  Comparison,
  ErrorCause,
  LoadResult,
  Phase,
  StatusClass,
  VariantResult,
  Verdict,
} from '../result/result.ts';
import { dependenceOf, falseNotes, type Dependence } from './rounds.ts';
import {
  limitOf,
  lateSends,
  rateCause,
  stoodStill,
  serverShareOf,
  noiseOf,
  othersMatter,
  stealMatters,
  type RoundNoise,
} from './limit.ts';
import { wholeRounds, succeeded, summed } from './phases.ts';
import { extent, groupedBy, median, total } from './statistics.ts';
import { type MeasuredVariant, type RunFacts, minimumRounds } from './verdict.ts';

type Side = 'server' | 'generator';

/** The rounds in which a share of 0 to 1 of a side's cores was too high, of how many, and the highest of them. */
interface High {
  cores: number;
  share: number;
  rounds: readonly number[];
  ofRounds: number;
}

/** Whether configs pass requests on, and whether what they pass them to is counted apart or, since it could not be told, among the others. */
type Upstreams = 'none' | 'apart' | 'among-others';

/** A kind of warning is what its words are made of. */
export type WarningOf<Texts extends Record<string, (about: never) => string>> = {
  [Kind in keyof Texts]: { kind: Kind } & Parameters<Texts[Kind]>[0];
}[keyof Texts];

/** Each kind in words, with the next step. `cores` is how many the side has whose share it is. */
export const noiseTexts = {
  steal: ({ side, ...seen }: High & { side: Side }) =>
    `steal time: the host gave others up to ${shareOf(side, seen)}: run again when it is quieter, or on a machine of your own`,
  'generator-others': (seen: High) =>
    `others used up to ${shareOf('generator', seen)}, and the server had time left: ` +
    'requests/s and their differences come out too small, and latencies too long (CPU per request is right): end what else runs on this machine and run again',
  others: ({ upstreams, host, ...seen }: High & { upstreams: Upstreams; host: string }) => {
    const used = `used up to ${shareOf('server', seen)}`;
    if (upstreams === 'none') return `others ${used}: end what else runs on ${host} and run again`;
    return upstreams === 'apart'
      ? `others ${used}: end what else runs on ${host}, but not the backend, and run again`
      : `the backend and other programs ${used}: bakeoff cannot tell them apart here; run the backend on other cores (taskset), or bakeoff as the backend's user`;
  },
  upstream: (seen: High) =>
    `the backend used up to ${shareOf('server', seen)}: it is not in the server's CPU time; run it on other cores (taskset) to see the server alone`,
};

/** "12 % of the server's cores in every round". */
function shareOf(side: Side, { share, cores, rounds, ofRounds }: High): string {
  return `${percent(share)} of the ${side}'s ${cores === 1 ? 'core' : 'cores'} ${inRounds(rounds, ofRounds)}`;
}

function inRounds(rounds: readonly number[], ofRounds: number): string {
  if (rounds.length === ofRounds) return ofRounds === 1 ? 'in the only round' : 'in every round';
  if (rounds.length > 3) return `in ${rounds.length} of ${ofRounds} rounds`;
  return `in ${rounds.length === 1 ? 'round' : 'rounds'} ${enumeration(rounds.toSorted((a, b) => a - b))}`;
}

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

// Warnings of others' use of the machine. Sides in turns are disturbed alike, so there is none once all verdicts are there, except for
// the generator's cores: a program there costs the faster server more.

/** From this share of the cores that it can use on a server is kept busy: it has no time to wait for the generator. */
const busy = 0.95;

/** What a round of a variant saw; `isBusy`: the server was. */
interface VariantRound {
  round: number;
  noise: RoundNoise;
  isBusy: boolean;
}

export function noiseWarnings(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): WarningOf<typeof noiseTexts>[] {
  const { serverCores, generatorCores, sharedCores, serverHost: host = 'this machine' } = facts;
  const all = measured.flatMap((variant) =>
    variant.rounds.flatMap((one): VariantRound[] => {
      const noise = noiseOf(one);
      const share = serverShareOf(one, variant, { server: serverCores, generator: generatorCores });
      return noise === null ? [] : [{ round: one.round, noise, isBusy: (share ?? 0) >= busy }];
    }),
  );
  const tookTurns = measured.every(({ rounds }) =>
    rounds.every(({ phases }) => phases.every(({ turns }) => (turns?.count ?? 0) > 1)),
  );
  const verdicts = comparisons
    .map(({ verdict }) => verdict)
    .filter((verdict) => verdict !== 'none');
  const settled = verdicts.length > 0 && !verdicts.includes('inconclusive') && tookTurns;
  const unsettled = settled ? [] : all;
  // On shared cores the generator itself is one of the server's others, and what others use is missing on both sides.
  const apart = (rounds: readonly VariantRound[]): readonly VariantRound[] =>
    sharedCores ? [] : rounds;
  return [
    ...warningOn(unsettled, ({ noise }) => noise.serverStealShare, stealMatters, {
      kind: 'steal',
      side: 'server',
      cores: serverCores,
    }),
    ...warningOn(unsettled, ({ noise }) => noise.generatorStealShare, stealMatters, {
      kind: 'steal',
      side: 'generator',
      cores: generatorCores,
    }),
    ...warningOn(
      apart(all),
      ({ noise, isBusy }) => (isBusy ? 0 : noise.generatorOthersShare),
      othersMatter,
      { kind: 'generator-others', cores: generatorCores },
    ),
    // The backend is part of the measurement, and shares the server's cores if it runs on them.
    ...warningOn(all, ({ noise }) => noise.upstreamShare ?? 0, othersMatter, {
      kind: 'upstream',
      cores: serverCores,
    }),
    ...warningOn(apart(unsettled), ({ noise }) => noise.serverOthersShare, othersMatter, {
      kind: 'others',
      upstreams: upstreamsOf(all),
      host,
      cores: serverCores,
    }),
  ];
}

/** One where a share is at least so high in a round. */
function warningOn<const Seen>(
  all: readonly VariantRound[],
  of: (one: VariantRound) => number,
  matters: number,
  seen: Seen,
): (Seen & Omit<High, 'cores'>)[] {
  const high = all.filter((one) => of(one) >= matters);
  const numbers = (some: readonly VariantRound[]): number[] => [
    ...new Set(some.map(({ round }) => round)),
  ];
  return high.length === 0
    ? []
    : [
        {
          ...seen,
          share: extent(high.map(of))[1],
          rounds: numbers(high),
          ofRounds: numbers(all).length,
        },
      ];
}

function upstreamsOf(all: readonly VariantRound[]): Upstreams {
  const shares = all.map(({ noise: { upstreamShare } }) => upstreamShare);
  return shares.includes(null)
    ? 'among-others'
    : shares.some((one) => one !== undefined)
      ? 'apart'
      : 'none';
}

// What came of requests that were not answered as they should be, in words.

const causeNames: Readonly<Record<ErrorCause, string>> = {
  addressNotAvailable: 'no free port',
  refused: 'refused',
  reset: 'reset',
  timedOut: 'timed out',
  short: 'cut short',
  other: 'other',
};

/** What failed, errors before answers, a text each; none where nothing did. */
export function failuresIn(phases: readonly Phase[]): string[] {
  return [...errorsTexts(phases), ...answersTexts(phases)];
}

/** "123 errors (100 timed out, 20 reset, 3 no free port)", the most frequent first; nothing of none. The example is for those that have no name of their own. */
function errorsTexts(phases: readonly Phase[]): string[] {
  const errors = total(phases, (phase) => phase.errors.total);
  if (errors === 0) return [];
  const causes = summed(phases.map(({ errorCauses }) => errorCauses));
  const counted = (Object.keys(causeNames) as ErrorCause[])
    .filter((cause) => causes[cause] > 0)
    .toSorted((a, b) => causes[b] - causes[a]);
  const words = counted.map((cause) => `${whole(causes[cause])} ${causeNames[cause]}`);
  const example = phases.find(
    (phase) => phase.errors.total > 0 && phase.errorExample,
  )?.errorExample;
  if (example !== undefined && (counted.length === 0 || causes.other > 0)) words.push(example);
  return [`${counts(errors, 'error')}${words.length === 0 ? '' : ` (${words.join(', ')})`}`];
}

/** More are told together. */
const mostStatuses = 4;

/** "1,200 answers with 503", one text of each status that there is, the most frequent first. */
function answersTexts(phases: readonly Phase[]): string[] {
  const found = Object.entries(wrongAnswers(phases)).toSorted(([, a], [, b]) => b - a);
  const others = total(found.slice(mostStatuses), ([, count]) => count);
  return [
    ...found
      .slice(0, mostStatuses)
      .map(([status, count]) => `${counts(count, 'answer')} with ${status}`),
    ...(others === 0 ? [] : [`${whole(others)} with others`]),
  ];
}

/** Answers that did not succeed, as `succeeded` counts: how many with each status, or class of them where no more is known. */
function wrongAnswers(phases: readonly Phase[]): Record<string, number> {
  const none = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 };
  const expected = phases[0]?.expected;
  const responses = {
    ...summed([none, ...phases.map(({ responses }) => responses)]),
    ...(expected === undefined ? { '2xx': 0, '3xx': 0 } : { [expected]: 0 }),
  };
  const statuses = Object.entries(summed(phases.map(({ statuses = {} }) => statuses)));
  return Object.fromEntries(
    (Object.keys(responses) as StatusClass[])
      .filter((name) => responses[name] > 0)
      .flatMap((name): [string, number][] => {
        const known = statuses.filter(([status]) => status[0] === name[0]);
        return total(known, ([, count]) => count) === responses[name]
          ? known
          : [[name, responses[name]]];
      }),
  );
}

/** Younger ones may be answered yet, and so may those that waited for less than so many times p99.9: as the engine counts those that hung. */
const [youngestHungMs, hangOfLatencies] = [1000, 2];

/** "12 requests were never answered and had waited for more than 1.00 s when the load ended"; '' of none. */
export function hungText(phases: readonly Phase[]): string {
  const hanging = phases.filter(({ hung }) => hung > 0);
  if (hanging.length === 0) return '';
  const hung = total(hanging, (phase) => phase.hung);
  const [sinceMs] = extent(
    hanging.map(({ latencyMs }) => Math.max(hangOfLatencies * latencyMs.p999, youngestHungMs)),
  );
  return `${counts(hung, 'request')} ${hung === 1 ? 'was' : 'were'} never answered and had waited for more than ${scaledTime(sinceMs)} when the load ended`;
}

/** A connection that a server reopens is made sooner. */
const slowMs = 500;

/** The longest connect of the windows in which requests hung, in milliseconds; 0 where none was slow. What hung may have waited for one. */
export function slowConnectMs(phases: readonly Phase[]): number {
  const longest = Math.max(
    0,
    ...phases.filter(({ hung }) => hung > 0).map(({ connectMs }) => connectMs.max),
  );
  return longest < slowMs ? 0 : longest;
}

/** Why none of a variant's requests succeeded, in words; null where one did, and where none was made. */
export function whyNothing({ rounds }: Pick<VariantResult, 'rounds'>): string | null {
  const phases = rounds.flatMap((round) => round.phases);
  if (phases.length === 0 || total(phases, succeeded) > 0) return null;
  const reasons = [...answersTexts(phases), ...errorsTexts(phases), hungText(phases)].filter(
    (text) => text !== '',
  );
  return reasons.length === 0 ? 'no request ended within the load' : enumeration(reasons);
}
