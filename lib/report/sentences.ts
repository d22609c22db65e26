// What stands around the table in words. The same lines in the terminal and in Markdown.
import { hasRatio, measuredComparisons, variantOf } from '../analysis/comparisons.ts';
import { streamsOf, streamSweep, type Point, type StreamSweep } from '../analysis/stream-sweep.ts';
import { whyNothing } from '../analysis/failures.ts';
import { rateCause, rateOf } from '../analysis/rate.ts';
import { groupedBy } from '../analysis/statistics.ts';
import { delayMark, markedVerdict, notFinalMark, verdictOf } from '../analysis/verdict.ts';
import { enumeration, percent, perSecond, scaledTime, tolerance, whole } from '../format.ts';
import type { KernelSetting } from '../result/network.ts';
import type { Comparison, Integrity, Result, VariantResult } from '../result/result.ts';
import { isAtRate } from '../scenario/load/fit.ts';
import { amount } from './amount.ts';
import { ladderOf } from './bars.ts';
import {
  noiseFloorLines,
  partialLines,
  roundsLines,
  roundsNeeded,
  scopeLines,
  undecidedLines,
} from './certainty.ts';
import { comparesProtocols } from './columns.ts';
import { foundLines } from './curve.ts';
import { limitLines } from './limits.ts';
import { besideVerdicts, effectText, verdictWord } from './verdict-words.ts';

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
