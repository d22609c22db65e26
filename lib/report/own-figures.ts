// An article's own figures for its claims, and whether they support them.
import { publishedBuckets, quantileBucket } from '../analysis/latency.ts';
import { variantOf } from '../analysis/comparisons.ts';
import { amount, bucketLabel } from '../format.ts';
import type { BucketShare, Result, VariantResult } from '../result/result.ts';
import type { Article, Claim, ClaimRest } from '../scenario/article.ts';
import { amountsOf, hasSize, isSame, shareText, usualResolution } from './ruler.ts';

/** Whether the article's figures support the claim. */
interface OwnFigures {
  text: string;
  agrees: boolean;
}

/** Compares a claim with the article's figures; empty without any, or if the scenario did not run. */
export function ownFigures(
  { rests }: Pick<Claim, 'rests'>,
  { resolution = usualResolution }: Pick<Article, 'resolution'>,
  results: ReadonlyMap<string, Result>,
): OwnFigures[] {
  return rests.flatMap((rest) => {
    const result = results.get(rest.scenario);
    const subject = result && variantOf(result, rest.variant);
    const other = result && variantOf(result, rest.against);
    if (subject === undefined || other === undefined) return [];
    return ownFiguresOf(rest, resolution, subject, other) ?? [];
  });
}

/** Returns the figures as one text. */
export function madeBy(figures: readonly OwnFigures[]): string {
  return figures.map(({ text }) => text).join('; ');
}

function ownFiguresOf(
  rest: ClaimRest,
  resolution: number,
  subject: VariantResult,
  other: VariantResult,
): OwnFigures | undefined {
  if (rest.unpublished === true) return undefined;
  const amounts = amountsOf(rest);
  const [subjectTail, otherTail] = [p99Bucket(subject), p99Bucket(other)];
  // At a rate an article has no requests/s, but a histogram.
  if (subjectTail !== undefined && otherTail !== undefined && rest.is !== undefined) {
    const text = `p99 ${bucketLabel(subjectTail)} against ${bucketLabel(otherTail)}`;
    return { text, agrees: follows(rest.is, otherTail.fromMs / subjectTail.fromMs, resolution) };
  }
  const of = amounts?.published ?? (({ published }: VariantResult) => published?.rps);
  const [subjectFigure, otherFigure] = [of(subject), of(other)];
  if (subjectFigure === undefined || otherFigure === undefined) return undefined;
  const ratio = subjectFigure / otherFigure;
  const claimed = amounts?.claimed ?? rest.about;
  const text = amounts === undefined ? amount : shareText;
  if (claimed !== undefined) {
    const agrees = hasSize({ ratio, ci95: [ratio, ratio] }, claimed, resolution);
    return { text: agrees ? text(ratio) : `${text(ratio)}, not ${text(claimed)}`, agrees };
  }
  if (rest.is === undefined) return undefined;
  return { text: amount(ratio), agrees: follows(rest.is, ratio, resolution) };
}

const p99Bucket = ({ published }: VariantResult): BucketShare | undefined =>
  quantileBucket(publishedBuckets(published), 0.99);

function follows(
  claimed: NonNullable<ClaimRest['is']>,
  ratio: number,
  resolution: number,
): boolean {
  switch (claimed) {
    case 'faster':
      return ratio > 1;
    case 'slower':
      return ratio < 1;
    case 'same':
      return isSame({ ratio, ci95: [ratio, ratio] }, resolution);
    case 'not slower':
      return ratio >= 1;
    case 'not faster':
      return ratio <= 1;
  }
}
