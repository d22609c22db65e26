// What stands around the table in words. The same lines in the terminal and in Markdown.
import {
  hasRatio,
  measuredComparisons,
  variantOf,
  delayMark,
  markedVerdict,
  notFinalMark,
} from '../analysis/comparisons.ts';
import { whyNothing } from '../analysis/warnings.ts';
import { limitOf, usableCores, rateCause, rateOf } from '../analysis/limit.ts';
import { metricNames } from '../analysis/latency.ts';
import { wholeRounds } from '../analysis/phases.ts';
import { groupedBy } from '../analysis/statistics.ts';
import { type Point, type StreamSweep, streamSweep, streamsOf } from '../analysis/curve.ts';
import { verdictOf } from '../analysis/verdict.ts';
import { limitText } from '../analysis/within.ts';
import {
  enumeration,
  perSecond,
  percent,
  percentRange,
  scaledTime,
  tolerance,
  whole,
} from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import { ladderOf } from './charts.ts';
import { coresText } from './heading.ts';
import { comparesProtocols } from './run-tables.ts';
import { amount, besideVerdicts, effectText, verdictWord } from './verdict-words.ts';
import type {
  KernelSetting,
  Comparison,
  Integrity,
  Result,
  Search,
  VariantResult,
  Verdict,
} from '../result/result.ts';
import { isAtRate } from '../scenario/load.ts';

/** What was found, and what has to be known with it. */
export function findingLines(result: Result): string[] {
  return [...verdictLines(result), ...circumstanceLines(result)];
}

/** What was found: one sentence per comparison, or what a curve, a ladder or a histogram leaves to say. */
export function verdictLines(result: Result): string[] {
  return verdictSentences(result).map(({ text }) => text);
}

/** A sentence, and the verdict that it tells of, with its marks; of none, of several, or of a config against itself: found. */
export interface Sentence {
  text: string;
  kind: string;
}

/** The same, each with its kind. */
export function verdictSentences(result: Result): Sentence[] {
  return [
    ...[...partialLines(result), ...nothingLines(result), ...foundLines(result)].map(found),
    ...comparisonSentences(result),
    ...noiseFloorLines(result).map(found),
  ];
}

function found(text: string): Sentence {
  return { text, kind: 'found' };
}

/** Rates that were not reached, who was the limit, and how far all that goes. */
export function circumstanceLines(result: Result): string[] {
  return [
    ...missedRateLines(result.variants),
    ...lateLines(result.variants),
    ...headerLines(result),
    ...limitLines(result),
    ...roundsLines(result),
    ...scopeLines(result),
  ];
}

/** Rows that stand in a curve or a ladder are told of there; a curve has no place for why there is no verdict. */
function comparisonSentences(result: Result): Sentence[] {
  const sweep = streamSweep(result);
  const shown = new Set<Comparison | null>([
    ...ladderOf(result).map(({ step }) => step),
    ...(sweep === undefined
      ? []
      : result.comparisons.filter(
          ({ baseline, verdict }) => baseline === sweep.line.variant.name && verdict !== 'none',
        )),
  ]);
  return [
    ...[
      ...(sweep === undefined ? [] : sweepLines(sweep)),
      ...undecidedLines(result.comparisons.filter((comparison) => shown.has(comparison))),
    ].map(found),
    ...measuredComparisons(result)
      .filter((comparison) => !shown.has(comparison))
      .map((comparison) => sentenceOn(comparison, result)),
  ];
}

function sentenceOn(comparison: Comparison, result: Result): Sentence {
  if (result.control === true) return found(controlSentence(comparison, result));
  const parts = comparisonParts(
    comparison,
    isOnlyStep(comparison, result) ? result.knob : undefined,
    result,
  );
  return { text: parts.join(''), kind: markedVerdict(comparison, result) };
}

/** Whether the comparison is the only one, and on one server: then it can go by the knob's name. */
function isOnlyStep({ variant, baseline }: Comparison, result: Result): boolean {
  const servers = new Set([variant, baseline].map((name) => variantOf(result, name)?.server?.name));
  return result.comparisons.length === 1 && servers.size === 1;
}

/** The sentence on a comparison: what is claimed, and behind it the effect with all that is known of it. */
export function comparisonParts(
  comparison: Comparison,
  knob: string | undefined,
  result: Result,
): [claim: string, rest: string] {
  const { metric, variant, baseline, verdict, why, publishedRatio } = comparison;
  const subject = knob ?? variant;
  const versus = knob === undefined ? ` than ${baseline}` : '';
  const article = publishedRatio === null ? '.' : `; the article saw ${amount(publishedRatio)}.`;
  const beside = besideVerdicts(comparison)
    .map((one) => `; ${measuredChange(one)}, ${one.verdict}`)
    .join('');
  const measured = `: ${measuredChange(comparison, 'uses')}${beside}${delayMark(comparison)}${notFinalMark(result)}`;
  switch (verdict) {
    case 'faster':
    case 'slower':
      return [
        `${subject} is ${verdictWord(metric, verdict)}${versus} here`,
        `${measured}${article}`,
      ];
    case 'same':
      return [
        `${subject} is as ${metric === 'cpu' ? 'cheap' : 'fast'} as ${knob === undefined ? baseline : 'without'} here, within ${tolerance(result.sameWithin)}`,
        `${measured}${article}`,
      ];
    case 'inconclusive':
      return [
        `Whether ${subject} is ${verdictWord(metric, 'faster')}${versus} cannot be told from this`,
        `${measured}; ${roundsNeeded(comparison)}${article}${cpuSentence(comparison, result)}`,
      ];
    case 'none':
      return [
        `No verdict on ${subject}${knob === undefined ? ` against ${baseline}` : ''}: ${why}`,
        `${withoutVerdict(comparison, `${beside}${beside === '' ? '' : notFinalMark(result)}`)}${article}`,
      ];
  }
}

/** What CPU per request says where another metric does not decide; '' where it decides as little. */
function cpuSentence({ metric, variant, cpu }: Comparison, { sameWithin }: Result): string {
  if (
    metric === 'cpu' ||
    cpu === null ||
    !['faster', 'slower'].includes(verdictOf(cpu.ci95, sameWithin))
  )
    return '';
  return ` But CPU per request is clear: ${measuredChange({ ...cpu, metric: 'cpu' }, `${variant} uses`)}; --metric cpu compares by that.`;
}

/** What was seen all the same, and what is known `beside`. */
function withoutVerdict(comparison: Comparison, beside: string): string {
  if (!hasRatio(comparison)) return beside;
  return ` (measured ${effectText(comparison)}${delayMark(comparison)}${beside})`;
}

/** One config against itself: every difference is noise. */
export function controlSentence(comparison: Comparison, result: Result): string {
  const { metric, variant, baseline, verdict, why } = comparison;
  switch (verdict) {
    case 'faster':
    case 'slower':
      return `${variant} is called ${verdictWord(metric, verdict)} than ${baseline}, and they are the same: ${measuredChange(comparison)}${delayMark(comparison)}${notFinalMark(result)}. Chance alone does so in about one of 20 runs; where it happens often, something else disturbs this machine.`;
    case 'same':
    case 'inconclusive':
      return `${variant} and ${baseline} are the same, and not called different: ${measuredChange(comparison)}${delayMark(comparison)}${notFinalMark(result)}.`;
    case 'none':
      return `No verdict on ${variant} against ${baseline}: ${why}${withoutVerdict(comparison, '')}.`;
  }
}

/** "+28 % (95 % interval +26 % to +30 %)". A share of the CPU follows `verb`. */
export function measuredChange(
  { metric, ratio, ci95: [low, high] }: Pick<Comparison, 'metric' | 'ratio' | 'ci95'>,
  verb = 'at',
): string {
  const end = (at: number): string => amount(at, metric === 'cpu', ratio);
  return `${metric === 'cpu' ? `${verb} ` : ''}${effectText({ metric, ratio })} (95 % interval ${end(low).replace(/ times$/, '')} to ${end(high)})`;
}

/** A curve in one sentence: the ends of what has a verdict, and from where on it is above HTTP/1.1. Nothing where none has one. */
function sweepLines({ line, curve }: StreamSweep): string[] {
  const streams = ({ variant }: Point): string =>
    `${streamsOf(variant)} ${streamsOf(variant) === 1 ? 'stream' : 'streams'}`;
  const judged = curve.filter(({ comparison }) => (comparison?.verdict ?? 'none') !== 'none');
  const [most, fewest] = [judged[0], judged.at(-1)];
  if (most === undefined || fewest === undefined) return [];
  const publishedRatio = most.comparison?.publishedRatio ?? null;
  const firstNotFaster = curve.findIndex(({ comparison }) => comparison?.verdict !== 'faster');
  const lastFaster = firstNotFaster === -1 ? fewest : curve[firstNotFaster - 1];
  return [
    `requests/s over HTTP/2 against ${line.variant.name}: ${amount(most.ratio)} with ${streams(most)} per connection` +
      `${publishedRatio === null ? '' : ` (the article saw ${amount(publishedRatio)})`}${fewest === most ? '' : `, ${amount(fewest.ratio)} with ${streams(fewest)}`}` +
      `${lastFaster === undefined ? '' : `; faster from ${streams(lastFaster)} on`}.`,
  ];
}

/** The rows that were run and have no figure, and why. */
export function nothingLines({ variants }: Pick<Result, 'variants'>): string[] {
  return variants.flatMap((variant) => {
    const why = whyNothing(variant);
    return why === null ? [] : [`No request of ${variant.name} succeeded: ${why}.`];
  });
}

/** What was made of a rate that was not reached, and why. Its latencies are none at that rate. */
function missedRateLines(variants: readonly VariantResult[]): string[] {
  return variants.flatMap((variant) => {
    const rate = rateOf(variant);
    if (rate === null || rate.reached || rate.made === 0) return [];
    return [
      `${variant.name} did not come to ${whole(rate.asked)} requests/s: ${perSecond(rate.made)} were made (${percent(rate.made / rate.asked)}); ${rateCause(variant)}. ` +
        'Its latency grows with the length of such a run, and is none at that rate.',
    ];
  });
}

/** How late requests left at a rate that was reached, which is a part of their latency. */
function lateLines(variants: readonly VariantResult[]): string[] {
  const late = variants
    .filter((one) => isAtRate(one.load) && rateOf(one)?.reached !== false)
    .flatMap(({ name, phases }) =>
      phases
        .filter(({ sendDelayMs }) => sendDelayMs.p99 > 0)
        .map(
          ({ phase, sendDelayMs: { p50, p99 } }) =>
            `${name}${phases.length === 1 ? '' : ` in phase ${phase}`} ${scaledTime(p50)} and ${scaledTime(p99)}`,
        ),
    );
  return late.length === 0
    ? []
    : [`Requests left late by (p50 and p99), which latency includes: ${late.join(', ')}.`];
}

/** Header bytes of different numbers of requests do not stand beside each other without a word. */
function headerLines(result: Result): string[] {
  if (!comparesProtocols(result)) return [];
  const first = result.variants.find(
    ({ traffic, published }) =>
      traffic !== null &&
      published?.headerBytes !== undefined &&
      published.requests !== undefined &&
      published.requests !== traffic.requests,
  );
  if (first === undefined) return [];
  return [
    `Header bytes here are those of ${whole(first.traffic?.requests ?? 0)} requests, the published ones of ${whole(first.published?.requests ?? 0)}.`,
  ];
}

/** How much of what was sent is in the database. */
export function storedLine(integrity: Integrity | null): string {
  if (integrity === null) return 'Not stored in InfluxDB (--store none)';
  const again =
    integrity.backfilled > 0 ? `, ${whole(integrity.backfilled)} of them written again` : '';
  return `Stored ${whole(integrity.stored)} of ${whole(integrity.requests)} requests in InfluxDB${again}, ${whole(integrity.lost)} lost`;
}

/** What a reader has to know before trusting the figures. */
export function warningLines({ warnings }: Result): string[] {
  return warnings.map((warning) => `Note: ${warning}`);
}

/** What of a person's own config runs otherwise than it says, and the notes. */
export function footnoteLines(result: Result): string[] {
  return [...redirectedLines(result), ...noteLines(result)];
}

/** The redirections of all variants. */
export function redirectedLines({ variants }: Pick<Result, 'variants'>): string[] {
  return redirectionLines(
    variants.map(({ name, server }) => ({ name, redirections: server?.redirections ?? [] })),
  );
}

/** Why a variant stands in the table, kernel settings of the run's namespaces, and the scenario's footnotes. */
export function noteLines(result: Result): string[] {
  const { variants, footnotes } = result;
  return [
    ...variants.flatMap(({ name, publishedOnly }) =>
      publishedOnly === undefined ? [] : [`${name} is published only: ${publishedOnly}`],
    ),
    ...byText(
      variants.flatMap(({ name, note }) => (note === undefined ? [] : [{ name, text: note }])),
    ),
    ...kernelSettingLines(result),
    ...footnotes,
  ];
}

/** Kernel settings of a run's own namespaces, those that hold, and each that this kernel would not take: two lines at most for each side and the variants that ask for the same; none without settings. */
export function kernelSettingLines({
  kernelSettings,
  variants,
}: Pick<Result, 'kernelSettings' | 'variants'>): string[] {
  const inNamespaces = variants.filter(({ network }) => network !== null).map(({ name }) => name);
  const groups = groupedBy(
    kernelSettings,
    ({ side, variants: names }) =>
      `${namesText(names, inNamespaces)}: kernel settings in the ${side}'s namespace`,
  );
  return [...groups].flatMap(([where, settings]) => {
    const holding = settings.filter(({ problem }) => problem === undefined);
    const problems = groupedBy(
      settings.filter(({ problem }) => problem !== undefined),
      ({ problem }) => String(problem),
    );
    const missing = [...problems].map(
      ([problem, some]) => `${enumeration(some.map(written))} (${problem})`,
    );
    return [
      ...(holding.length === 0 ? [] : [`${where}: ${holding.map(written).join(', ')}.`]),
      ...(missing.length === 0
        ? []
        : [`${where} that were asked for and do not hold: ${missing.join(', ')}.`]),
    ];
  });
}

function namesText(names: readonly string[], all: readonly string[]): string {
  const others = all.filter((name) => !names.includes(name));
  if (all.length < 2 || names.length <= 2 * others.length) return names.join(', ');
  return others.length === 0 ? 'every variant' : `every variant but ${enumeration(others)}`;
}

/** "net.core.somaxconn=128", as sysctl takes it. */
function written({ name, value }: KernelSetting): string {
  return `${name}=${value}`;
}

/**
 * What of each config runs otherwise than it says: equal lines once, with all names. An address here is another one for each
 * start of a server.
 */
export function redirectionLines(
  configs: readonly { name: string; redirections: readonly string[] }[],
): string[] {
  return byText(
    configs.flatMap(({ name, redirections }) =>
      redirections.map((line) => ({
        name,
        text: line.replaceAll(/(→ |left out, )127\.0\.0\.1:\d+/g, '$1127.0.0.1, a free port'),
      })),
    ),
  );
}

/** Each text once, after the names of all that it is of. */
export function byText(texts: readonly { name: string; text: string }[]): string[] {
  return [...groupedBy(texts, ({ text }) => text)].map(
    ([text, same]) => `${same.map(({ name }) => name).join(', ')}: ${text}`,
  );
}

// How far the verdicts go: after how many rounds they were made, what would decide the open ones, and for what they hold.

/** How far a run came that ended early, and that its verdicts were made before their time. */
export function partialLines({ state, variants, comparisons, looks }: Result): string[] {
  if (state === 'complete') return [];
  const rounds = `Ended early: ${wholeRounds(variants)} of ${looks.length > 1 ? 'at most ' : ''}${looks.at(-1)} rounds are whole and count here.`;
  const notFinal = `No verdict is final: they are made after ${enumeration(looks, 'or')} rounds, and to end a run by what it shows so far is one more chance to be wrong.`;
  return [hasVerdict(comparisons) ? `${rounds} ${notFinal}` : rounds];
}

function hasVerdict(comparisons: readonly Comparison[]): boolean {
  const isVerdict = (verdict: Verdict): boolean =>
    verdict === 'faster' || verdict === 'slower' || verdict === 'same';
  return comparisons.some(
    (one) =>
      isVerdict(one.verdict) || besideVerdicts(one).some(({ verdict }) => isVerdict(verdict)),
  );
}

/** After how many rounds the verdicts were looked at, with `--precision`; a run that ended early says so itself. */
export function roundsLines({ variants, looks, precision = 0, state }: Result): string[] {
  if (state === 'partial' || looks.length < 2) return [];
  const done = wholeRounds(variants);
  // Where the time ends a run, that is a look of its own: the verdicts shown are those of all rounds.
  const looked = [...looks.filter((look) => look < done), done];
  return [
    `With --precision ${tolerance(precision)} the verdicts were looked at after ${enumeration(looked)} ${done === 1 ? 'round' : 'rounds'}.`,
  ];
}

/** What would decide an inconclusive comparison. */
export function roundsNeeded({ roundsNeeded: rounds }: Comparison): string {
  return rounds === null
    ? 'no reasonable number of rounds would decide'
    : `about ${whole(rounds)} rounds would probably decide`;
}

/** One line for comparisons that have no sentence of their own. */
export function undecidedLines(comparisons: readonly Comparison[]): string[] {
  const open = comparisons
    .filter(({ verdict }) => verdict === 'inconclusive')
    .map((one) => `${one.variant} against ${one.baseline} (${roundsNeeded(one)})`);
  return open.length === 0 ? [] : [`Not decided: ${enumeration(open)}.`];
}

/** What a control says of the machine. */
export function noiseFloorLines({
  noiseFloor,
  comparisons: [first],
}: Pick<Result, 'noiseFloor' | 'comparisons'>): string[] {
  if (noiseFloor === null) return [];
  return [
    `Noise floor: with ${noiseFloor.rounds} such rounds this machine shows effects ${first === undefined || first.metric === 'rps' ? '' : `on ${metricNames[first.metric]} `}from about ±${percent(noiseFloor.ratio - 1)} on (one of just that size in about half of all runs).`,
  ];
}

/** For what the verdicts hold; nothing where there is none. */
export function scopeLines({ comparisons, environment }: Result): string[] {
  if (!hasVerdict(comparisons)) return [];
  const { serverHost, bootedAt, cluster } = environment;
  if (cluster !== undefined)
    return [
      `Verdicts hold for these nodes of the cluster ${cluster.name}, and what else ran there.`,
    ];
  const since = new Date(serverHost?.bootedAt ?? bootedAt)
    .toISOString()
    .slice(0, 16)
    .replace('T', ' ');
  return [
    `Verdicts hold for ${serverHost === undefined ? 'this machine in this boot' : `${serverHost.name} in its boot`} (since ${since} UTC).`,
  ];
}

// Who set the pace.

/** One sentence on who was at its limit, with the share of CPU that each side used in the variants. */
export function limitLines({ variants, environment }: Result): string[] {
  const measured = variants.filter(({ generatorShare }) => generatorShare !== null);
  const servers = groupedBy(
    measured.filter(({ serverShare }) => serverShare !== null),
    ({ server }) => server?.name ?? '',
  );
  const isShared = sharesCores(environment);
  // On shared cores the generator alone says nothing.
  if (measured.length === 0 || (isShared && servers.size === 0)) return [];
  const cores = {
    server: environment.serverCpus.length,
    generator: environment.generatorCpus.length,
  };
  // On shared cores both are shares of all of them, so that they add up.
  const used = (variant: VariantResult, side: 'server' | 'generator'): number =>
    (variant[`${side}Share`] ?? 0) *
    (isShared ? usableCores(variant, cores)[side] / cores[side] : 1);
  const uses = [
    ...[...servers].map(
      ([name, its]) => `${name} at ${percentRange(its.map((one) => used(one, 'server')))}`,
    ),
    `the generator at ${percentRange(measured.map((one) => used(one, 'generator')))}`,
  ].join(', ');
  return [
    isShared
      ? `Server and generator shared ${coresText(environment.serverCpus)}: ${uses} of them.`
      : `${limitWords(measured, [...servers.keys()])}: ${uses} of its available CPU.`,
  ];
}

function limitWords(measured: readonly VariantResult[], servers: readonly string[]): string {
  const limits = measured.map(limitOf);
  const isLimit = (side: 'server' | 'generator'): boolean =>
    limits.every((one) => one === side || one === 'both');
  if (isLimit('server') && isLimit('generator')) return 'Both sides were at their limit';
  if (isLimit('server'))
    return servers.length === 1 ? `${servers[0]} was the limit` : 'The servers were the limit';
  if (isLimit('generator')) return 'The generator was the limit';
  return limits.every((one) => one === 'neither') ? 'Neither was the limit' : 'Use of the cores';
}

/** What a search found, a line for each variant, and a sentence where the limit is blurred. */
export function foundLines({ search }: Pick<Result, 'search'>): string[] {
  if (search === undefined) return [];
  const limit = limitText(search.within);
  return [
    ...search.found.map(
      ({ variant, rate, ci95, atLeast }) =>
        `${variant} keeps ${limit} up to ${atLeast ? 'at least ' : ''}${whole(rate)} requests/s in half of its loads${ci95 === null ? '' : ` (95 % interval ${whole(ci95[0])} to ${whole(ci95[1])})`}` +
        `${atLeast ? ': beyond it the generator was at its limit' : ''}.`,
    ),
    ...blurredLines(search),
  ];
}

/** Steps at less than this of the rate that was found are far below it. */
const farBelow = 0.6;
/** Fewer steps tell nothing; of more, this share may be broken by chance. */
const [tolerablyBroken, fewestSteps] = [0.2, 5];

/** Where latencies break the limit at rates far below, too: what was found says little then. */
function blurredLines({ within, found, steps }: Search): string[] {
  return found.flatMap(({ variant, rate }) => {
    const below = steps.filter((step) => step.variant === variant && step.rate < farBelow * rate);
    const broken = below.filter(
      (step) => !step.kept && step.latencyMs[within.metric] > within.ms,
    ).length;
    return below.length < fewestSteps || broken <= tolerablyBroken * below.length
      ? []
      : [
          `${variant}: ${whole(broken)} of ${whole(below.length)} steps at less than ${percent(farBelow)} of that rate broke ${limitText(within)}, too: pauses, of the machine or of the server, are as long as that. A wider limit tells more.`,
        ];
  });
}
