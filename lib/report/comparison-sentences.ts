// The sentence on each comparison: its claim, and the effect with its interval.
import { hasRatio, sidesOf, variantOf } from '../analysis/comparisons.ts';
import { sideWithWrongAnswers } from '../analysis/bodies.ts';
import { extent, groupedBy } from '../analysis/statistics.ts';
import {
  amount,
  enumeration,
  isTooWide,
  percent,
  scaledTime,
  tolerance,
  whole,
} from '../format.ts';
import type { Comparison, Result } from '../result/result.ts';
import { metricWords, verdictWord } from './metric-words.ts';
import { besideVerdicts, effectText, marksOf, notFinalMark } from './verdict-words.ts';
import { shareAbove } from '../analysis/latency.ts';
import { figuresPerRound, isLatency } from '../analysis/metrics.ts';
import { phasesIn } from '../analysis/phases.ts';
import type { LatencyMetric } from '../scenario/latency-metrics.ts';

/** `kind` is the verdict with its marks; "found" for all other sentences. */
export type Sentence = Record<'text' | 'kind', string>;

/** Returns a sentence for each comparison. Comparisons that have no verdict for the same reason share one. */
export function comparisonSentences(
  comparisons: readonly Comparison[],
  result: Result,
): Sentence[] {
  const groups = groupedBy(comparisons, (comparison) => {
    const hasOnlyReason =
      comparison.verdict === 'none' &&
      result.control !== true &&
      comparison.publishedRatio === null &&
      cpuSentence(comparison, result) === '';
    if (hasOnlyReason) return comparison.why;
    return `${comparison.variant} ${comparison.baseline}`;
  });
  return [...groups.values()].map((same) => {
    const [first] = same;
    const kind = result.control === true ? 'found' : first.verdict + marksOf(first, result);
    if (same.length === 1)
      return { text: comparisonParts(first, knobOf(first, result), result).join(''), kind };
    const pairs = same.map(
      (pair) => `${pair.variant} against ${pair.baseline}${measuredInBrackets(pair, result)}`,
    );
    return { text: `No verdict on ${enumeration(pairs)}: ${first.why}.`, kind };
  });
}

/** Returns the text on figures that were measured without a verdict; '' if there are none. */
function measuredInBrackets(comparison: Comparison, result: Result): string {
  // Quick failures would be shown as speed.
  const isMeasured =
    hasRatio(comparison) && sideWithWrongAnswers(sidesOf(comparison, result)) === undefined;
  const others = besideText(comparison);
  const marked = others && others + notFinalMark(result);
  if (!isMeasured) return marked;
  return ` (measured ${effectText(comparison)}${marksOf(comparison, result)}${marked})`;
}

/** Returns the scenario's knob, if a single comparison is between different configs of one server. */
function knobOf({ variant, baseline }: Comparison, result: Result): string | undefined {
  const [variantServer, baselineServer] = [variant, baseline].map(
    (name) => variantOf(result, name)?.server?.name,
  );
  const isOnly = result.comparisons.length === 1 && variantServer === baselineServer;
  return isOnly && result.control !== true ? result.knob : undefined;
}

/** Returns the sentence on a comparison in two parts: the claim, and the effect with its interval. */
export function comparisonParts(
  comparison: Comparison,
  knob: string | undefined,
  result: Result,
): [claim: string, rest: string] {
  const { metric, variant, baseline, verdict, why, publishedRatio } = comparison;
  const subject = knob ?? variant;
  const against = (word: string) => (knob === undefined ? ` ${word} ${baseline}` : '');
  const article = publishedRatio === null ? '.' : `; the article saw ${amount(publishedRatio)}.`;
  const beside = besideText(comparison);
  const marks = marksOf(comparison, result);
  const isDifferent = verdict === 'faster' || verdict === 'slower';
  if (verdict === 'none') {
    const measured = measuredInBrackets(comparison, result);
    return [
      `No verdict on ${subject}${against('against')}: ${why}`,
      measured + article + cpuSentence(comparison, result),
    ];
  }
  if (result.control === true) {
    const change = `: ${measuredChange(comparison)}${marks}.`;
    if (!isDifferent)
      return [`${variant} and ${baseline} are equal, and no difference is found`, change];
    return [
      `${variant} is called ${verdictWord(metric, verdict)} than ${baseline}, although they are written alike`,
      `${change} This happens by chance in about one of 20 runs; if it happens more often, something disturbs this machine, or they share something.`,
    ];
  }
  const measured = `: ${measuredChange(comparison, 'uses')}${beside}${marks}`;
  if (verdict === 'inconclusive') {
    const open = `${measured}; ${roundsNeeded(comparison)}${article}`;
    const byCpu = metric === 'rps' ? (comparison.cpu?.verdict ?? 'none') : 'none';
    if (byCpu === 'faster' || byCpu === 'slower')
      return [
        `${subject} is ${byCpu}${against('than')} at its limit, by CPU per request`,
        `: ${cpuChange(comparison, result)}. Requests/s alone do not decide it${open}`,
      ];
    return [
      `Not decided whether ${subject} is ${verdictWord(metric, 'faster')}${against('than')}`,
      `${open}${cpuSentence(comparison, result)}`,
    ];
  }
  const same = `${metricWords[metric].verdicts.same} as ${knob === undefined ? baseline : 'without'} here, within ${tolerance(result.sameWithin)}`;
  const claim = isDifferent ? `${verdictWord(metric, verdict)}${against('than')} here` : same;
  return [`${subject} is ${claim}`, measured + article];
}

/** The other percentiles with a verdict: "; p50 +50 % (…), slower". */
function besideText(comparison: Comparison): string {
  const texts = besideVerdicts(comparison).map(
    (beside) => `; ${measuredChange(beside)}, ${beside.verdict}`,
  );
  return texts.join('');
}

/** "b uses 74 % of the CPU (95 % interval 73 % to 75 %)"; '' if unknown. */
function cpuChange({ variant, cpu }: Comparison, result: Result): string {
  if (cpu === null) return '';
  return `${measuredChange({ ...cpu, metric: 'cpu' }, `${variant} uses`)}${notFinalMark(result)}`;
}

/** CPU per request, if it is decided and requests/s are not. */
function cpuSentence(comparison: Comparison, result: Result): string {
  const { metric, cpu } = comparison;
  if (metric !== 'rps' || cpu === null) return '';
  const change = `: ${cpuChange(comparison, result)}.`;
  if (cpu.verdict === 'faster' || cpu.verdict === 'slower')
    return ` Requests/s are not clear, but CPU per request is${change}`;
  if (cpu.verdict !== 'same') return '';
  return ` CPU per request is the same, within ${tolerance(result.sameWithin)}${change}`;
}

export function roundsNeeded({ roundsNeeded: rounds }: Comparison): string {
  if (rounds === null) return 'no reasonable number of rounds would decide';
  return `about ${whole(rounds)} rounds would probably decide`;
}

/** "+28 % (95 % interval +26 % to +30 %)". A share of the CPU follows `verb`. */
export function measuredChange(
  { metric, ratio, ci95: [low, high] }: Pick<Comparison, 'metric' | 'ratio' | 'ci95'>,
  verb = 'at',
): string {
  const isShare = metricWords[metric].shareOf !== undefined;
  const end = (at: number) => amount(at, isShare, ratio);
  const ends = isTooWide([low, high])
    ? 'too wide to tell'
    : `${end(low).replace(/ times$/, '')} to ${end(high)}`;
  const change = `${effectText({ metric, ratio })} (95 % interval ${ends})`;
  return isShare ? `${verb} ${change}` : change;
}

/**
 * From this ratio between rounds on, a percentile leaps: it lies between fast and slow responses, and chance decides which of the two a
 * round shows.
 */
const leastLeap = 10;

/** Returns the shares of slow responses for comparisons that are inconclusive because the percentile leaps. */
export function tailLines(result: Result): string[] {
  return result.comparisons.flatMap((comparison) => tailLine(comparison, result) ?? []);
}

function tailLine(comparison: Comparison, result: Result): string | undefined {
  const { metric, verdict } = comparison;
  if (!isLatency(metric) || verdict !== 'inconclusive') return undefined;
  const sides = sidesOf(comparison, result);
  const [low, high] = extent(sides.flatMap(({ rounds }) => figuresPerRound(metric, rounds) ?? []));
  if (high < leastLeap * low) return undefined;
  const betweenMs = Math.sqrt(low * high);
  const [base, other] = sides.map(({ name, rounds }) => {
    const parts = phasesIn(rounds).map(({ latencyMs }) => latencyMs);
    return `${percent(shareAbove(parts, betweenMs))} of ${name}'s`;
  });
  return `${leapText(metric, low, high)}: more than ${scaledTime(betweenMs)} took ${base} responses, and ${other}.`;
}

const leapText = (metric: LatencyMetric, low: number, high: number): string =>
  `By round ${metricWords[metric].name} leaps between ${scaledTime(low)} and ${scaledTime(high)}, so its ratio is chance`;
