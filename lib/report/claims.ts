// An article's claims, against the measurements here and the article's figures.
import { comparisonOf, variantOf } from '../analysis/comparisons.ts';
import { publishedBuckets, quantileBucket } from '../analysis/latency.ts';
import { directions, headerBytesOf } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { amount, bucketLabel, effect, fraction, hundredths, percent, success } from '../format.ts';
import type { BucketShare, Comparison, Result, VariantResult } from '../result/result.ts';
import type { Claim, ClaimRest } from '../scenario/article.ts';
import { verdictWord } from './metric-words.ts';
import { metricMark } from './verdict-words.ts';

export type ClaimState = 'holds here' | 'does not hold here' | 'opposite here' | 'not decided';

interface Finding {
  state: ClaimState;
  /** What was seen, or why nothing was. */
  seen: string;
}

/** The weakest first: of several findings that decides. */
const byWeight: readonly ClaimState[] = [
  'opposite here',
  'does not hold here',
  'not decided',
  'holds here',
];

/** All comparisons behind a claim must agree. @param results by scenario @param missing "SCENARIO: why it was not run" */
export function decideClaim(
  { rests }: Claim,
  results: ReadonlyMap<string, Result>,
  missing: readonly string[] = [],
): Finding {
  const findings = rests.map((rest) => {
    const result = results.get(rest.scenario);
    const line = missing.find((reason) => reason.startsWith(`${rest.scenario}: `));
    const why = line === undefined ? '' : line.slice(rest.scenario.length);
    if (result === undefined) return undecided(`${rest.scenario} was not run${why}`);
    return decideRest(rest, result, why);
  });
  const heaviest = byWeight.find((state) => findings.some((finding) => finding.state === state));
  return {
    state: heaviest ?? 'not decided',
    seen: [...new Set(findings.map(({ seen }) => seen))].join('; '),
  };
}

const undecided = (seen: string): Finding => ({ state: 'not decided', seen });
const decided = (holds: boolean, seen: string): Finding => ({
  state: holds ? 'holds here' : 'does not hold here',
  seen,
});

/** @param failed ": why the scenario could not go on", or '' */
function decideRest(rest: ClaimRest, result: Result, failed: string): Finding {
  const { variant, against } = rest;
  for (const name of [variant, against]) {
    const why = whyUnmeasured(name, rest, result, failed);
    if (why !== undefined) return undecided(why);
  }
  const [subject, other] = [variantOf(result, variant), variantOf(result, against)] as [
    VariantResult,
    VariantResult,
  ];
  if (rest.idleAtLeast !== undefined) {
    const idle = subject.network?.serverIdleShare;
    if (idle === undefined) return undecided(`the idle share of ${variant} was not seen`);
    return decided(idle >= rest.idleAtLeast, `${percent(idle)} idle`);
  }
  if (rest.allSucceed === true) {
    const ratios = [subject.successRatio ?? 0, other.successRatio ?? 0] as const;
    const seen = `${variant} ${success(ratios[0])}, ${against} ${success(ratios[1])} succeeded`;
    return decided(ratios[0] === 1 && ratios[1] < 1, seen);
  }
  const amounts = amountsOf(rest);
  if (amounts === undefined) return decideComparison(rest, result);
  const [subjectAmount, otherAmount] = [amounts.here(subject), amounts.here(other)];
  if (subjectAmount === undefined || otherAmount === undefined)
    return undecided(`the ${amounts.noun} of ${variant} and ${against} were not seen`);
  const share = subjectAmount / otherAmount;
  const numbers = `${hundredths(subjectAmount)} ${amounts.noun} per request, ${against} ${hundredths(otherAmount)}`;
  return decided(
    share <= amounts.atMost * rounding,
    `${variant} has ${numbers}: ${shareText(share)}`,
  );
}

/** Shares of whole numbers may differ in their last binary digit. */
const rounding = 1 + 1e-9;

/** A share as articles say it: 1/55.3, but 82 %. */
const shareText = (share: number): string => (share < 0.5 ? fraction(share) : percent(share));

function whyUnmeasured(
  name: string,
  { scenario, variant, against }: ClaimRest,
  result: Result,
  failed: string,
): string | undefined {
  const side = variantOf(result, name);
  if (side === undefined && failed !== '') return `${name} was not run${failed}`;
  if (side === undefined)
    return `${name} is run by its name only: npm run scenario -- ${scenario} --variants ${variant},${against}`;
  if (side.publishedOnly !== undefined) return `${name} is published only: ${side.publishedOnly}`;
  return side.rounds.length === 0 ? `${name} was not measured${failed}` : undefined;
}

function decideComparison(rest: ClaimRest, result: Result): Finding {
  const { variant, against, about } = rest;
  const comparison = comparisonOf(result, variant, against);
  if (comparison === undefined) return undecided(`${variant} and ${against} were not compared`);
  const { verdict, why, metric, ratio, ci95 } = comparison;
  const name = `${variant} against ${against}`;
  if (verdict === 'none') return undecided(`${name}: ${why}`);
  const claimed = about === undefined ? '' : `; the article says ${amount(about)}`;
  // The interval is there to be seen.
  const because =
    verdict === 'inconclusive' ? ` (${why.replace(/^the interval includes 1: /, '')})` : '';
  return {
    state: stateOf(rest.is, verdict),
    seen: `${name}: ${metricMark(metric)}${effect(ratio, ci95)} ${verdictWord(metric, verdict)}${because}${claimed}`,
  };
}

function stateOf(
  claimed: ClaimRest['is'],
  verdict: Exclude<Comparison['verdict'], 'none'>,
): ClaimState {
  if (verdict === 'inconclusive') return 'not decided';
  if (claimed === 'not slower') return verdict === 'slower' ? 'opposite here' : 'holds here';
  if (claimed === 'not faster') return verdict === 'faster' ? 'opposite here' : 'holds here';
  if (verdict === claimed) return 'holds here';
  return claimed === 'same' || verdict === 'same' ? 'does not hold here' : 'opposite here';
}

interface Amounts {
  noun: string;
  atMost: number;
  here(variant: VariantResult): number | undefined;
  published(variant: VariantResult): number | undefined;
}

/** What of a request is compared; undefined for a comparison of speed. */
function amountsOf({ headersAtMost, packetsAtMost }: ClaimRest): Amounts | undefined {
  if (headersAtMost !== undefined)
    return {
      noun: 'header bytes',
      atMost: headersAtMost,
      ...headerBytesOf,
    };
  if (packetsAtMost !== undefined)
    return {
      noun: 'packets',
      atMost: packetsAtMost,
      here: ({ network }) =>
        network === null ? undefined : total(directions, (way) => network.packetsPerRequest[way]),
      published: ({ published }) => published?.packetsPerRequest,
    };
  return undefined;
}

/** Words ("about 46 %", "1/15") are rounded; equal requests/s of single runs differ a little. */
const roughly = 0.05;

/** Whether the article's figures support the claim. */
interface OwnFigures {
  text: string;
  agrees: boolean;
}

/** Compares a claim with the article's figures; empty without any, or if the scenario did not run. */
export function ownFigures({ rests }: Claim, results: ReadonlyMap<string, Result>): OwnFigures[] {
  return rests.flatMap((rest) => {
    const result = results.get(rest.scenario);
    const subject = result && variantOf(result, rest.variant);
    const other = result && variantOf(result, rest.against);
    if (subject === undefined || other === undefined) return [];
    return ownFiguresOf(rest, subject, other) ?? [];
  });
}

export function madeBy(figures: readonly OwnFigures[]): string {
  return figures.map(({ text }) => text).join('; ');
}

function ownFiguresOf(
  rest: ClaimRest,
  subject: VariantResult,
  other: VariantResult,
): OwnFigures | undefined {
  if (rest.unpublished === true) return undefined;
  const amounts = amountsOf(rest);
  const [subjectTail, otherTail] = [p99Bucket(subject), p99Bucket(other)];
  // At a rate an article has no requests/s, but a histogram.
  if (subjectTail !== undefined && otherTail !== undefined && rest.is !== undefined) {
    const text = `p99 ${bucketLabel(subjectTail)} against ${bucketLabel(otherTail)}`;
    return { text, agrees: follows(rest.is, otherTail.fromMs / subjectTail.fromMs) };
  }
  const of = amounts?.published ?? (({ published }: VariantResult) => published?.rps);
  const [subjectFigure, otherFigure] = [of(subject), of(other)];
  if (subjectFigure === undefined || otherFigure === undefined) return undefined;
  const ratio = subjectFigure / otherFigure;
  const claimed = amounts?.atMost ?? rest.about;
  const text = amounts === undefined ? amount : shareText;
  if (claimed !== undefined) {
    const agrees = Math.abs(ratio / claimed - 1) <= roughly;
    return { text: agrees ? text(ratio) : `${text(ratio)}, not ${text(claimed)}`, agrees };
  }
  if (rest.is === undefined) return undefined;
  return { text: amount(ratio), agrees: follows(rest.is, ratio) };
}

const p99Bucket = ({ published }: VariantResult): BucketShare | undefined =>
  quantileBucket(publishedBuckets(published), 0.99);

function follows(claimed: NonNullable<ClaimRest['is']>, ratio: number): boolean {
  switch (claimed) {
    case 'faster':
      return ratio > 1;
    case 'slower':
      return ratio < 1;
    case 'same':
      return Math.abs(ratio - 1) <= roughly;
    case 'not slower':
      return ratio >= 1;
    case 'not faster':
      return ratio <= 1;
  }
}
