// The ruler of all claims: when a measured ratio has a size, and when two sides are the same.
import { headerBytesOf, directions } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { fraction, percent } from '../format.ts';
import type { Comparison, VariantResult } from '../result/result.ts';
import type { ClaimRest } from '../scenario/article.ts';

/** The resolution, as a share, of an article that does not say how exact its figures are. */
export const usualResolution = 0.05;

export type Measured = Pick<Comparison, 'ratio' | 'ci95'>;

/** Returns whether the interval, widened by the resolution, includes the claimed ratio. */
export function hasSize(
  { ci95: [low, high] }: Measured,
  claimed: number,
  resolution: number,
): boolean {
  const widened = 1 + resolution;
  return low / widened <= claimed && claimed <= high * widened;
}

/** Returns whether the interval is within the resolution of 1. */
export const isSame = ({ ci95: [low, high] }: Measured, resolution: number): boolean =>
  low * (1 + resolution) >= 1 && high <= 1 + resolution;

/** A share as articles say it: 1/55.3, but 82 %. */
export const shareText = (share: number): string =>
  share < 0.5 ? fraction(share) : percent(share);

interface Amounts {
  noun: string;
  /** The claimed amount as a share of the other side's. */
  claimed: number;
  here(variant: VariantResult): number | undefined;
  published(variant: VariantResult): number | undefined;
}

/** Returns the amount per request that a claim compares; undefined for a claim about speed. */
export function amountsOf({ headersAbout, packetsAbout }: ClaimRest): Amounts | undefined {
  if (headersAbout !== undefined)
    return {
      noun: 'header bytes',
      claimed: headersAbout,
      ...headerBytesOf,
    };
  if (packetsAbout !== undefined)
    return {
      noun: 'packets',
      claimed: packetsAbout,
      here: ({ network }) =>
        network === null ? undefined : total(directions, (way) => network.packetsPerRequest[way]),
      published: ({ published }) => published?.packetsPerRequest,
    };
  return undefined;
}
