// Whether the bodies under load are those of the pages that were checked before it.
import type { PageFigures } from '../result/load-result.ts';
import type { Phase, Round, VariantResult } from '../result/result.ts';
import type { Obstacle } from './judgement.ts';
import { isFailing, phasesIn, responsesOf, tolerableFailures } from './phases.ts';
import { mean, total } from './statistics.ts';

/** If bodies differ from the page that was checked by more than this share, the side serves another page. */
const tolerableBodies = 0.05;
/** If both sides differ alike from the pages that were checked, as with a page that grows, their bodies may be off by this factor. */
const mostAlike = 2;

type Side = Pick<VariantResult, 'rounds'>;

/** A page of a mix by its name; undefined stands for all that a side serves. */
type PageName = string | undefined;

/** The ratios of a round's bodies to the pages that were checked, where they differ. */
function ratiosIn({ phases: [first] }: Round): Map<PageName, number> {
  const ratios = new Map<PageName, number>();
  if (first === undefined) return ratios;
  for (const { page, bodyRatio } of [{ page: undefined, ...first }, ...first.pages])
    if (bodyRatio !== undefined) ratios.set(page, bodyRatio);
  return ratios;
}

/** As ratiosIn, as means over the rounds: a page of random length is checked anew in each. */
function meanRatios({ rounds }: Side): Map<PageName, number> {
  const ofRounds = rounds.map(ratiosIn);
  const pages = new Set(ofRounds.flatMap((ratios) => [...ratios.keys()]));
  return new Map(
    [...pages].map((page) => [page, mean(ofRounds.map((ratios) => ratios.get(page) ?? 1))]),
  );
}

/** Returns how far a ratio is from 1, as a factor. */
export function distanceOf(ratio: number): number {
  return Math.max(ratio, 1 / ratio);
}

/** The mean length of a side's bodies as a multiple of the page that was checked; of a mix, of the page that is furthest off. */
export function bodyRatioOf(side: Side): { bodyRatio: number; page?: string } {
  let furthest: ReturnType<typeof bodyRatioOf> = { bodyRatio: 1 };
  for (const [page, bodyRatio] of meanRatios(side)) {
    if (distanceOf(bodyRatio) <= distanceOf(furthest.bodyRatio)) continue;
    furthest = page === undefined ? { bodyRatio } : { bodyRatio, page };
  }
  return furthest;
}

/** Responses with the expected status, and the bytes of their bodies. */
export interface ExpectedBodies {
  answered: number;
  bytes: number;
}

export function expectedBodies(phase: Phase): ExpectedBodies {
  const { responses, expected = '2xx', bytes, bodyBytes } = phase;
  if (expected === 'each') return { answered: responsesOf(phase), bytes: bytes.body };
  // Older results do not tell the classes apart.
  return { answered: responses[expected], bytes: bodyBytes?.[expected] ?? bytes.body };
}

/** Like expectedBodies, for one page of a mix. */
export function expectedOfPage(page: PageFigures): ExpectedBodies {
  const { responses, unexpected, bodyBytes, unexpectedBodyBytes } = page;
  return { answered: responses - unexpected, bytes: bodyBytes - unexpectedBodyBytes };
}

/** Mean length of a page's bodies under load, in bytes; NaN without responses. */
function meanBodyBytes({ rounds }: Side, page: PageName): number {
  const bodies = phasesIn(rounds).flatMap((phase) => {
    if (page === undefined) return [expectedBodies(phase)];
    return phase.pages.filter((some) => some.page === page).map(expectedOfPage);
  });
  return total(bodies, ({ bytes }) => bytes) / total(bodies, ({ answered }) => answered);
}

function isFar(ratio: number): boolean {
  return distanceOf(ratio) > 1 + tolerableBodies;
}

/**
 * The side of a comparison whose bodies under load are not those of the page that was checked; undefined if no side's bodies differ, or
 * both sides' bodies differ alike. In a mix they must be alike on each page on which one of them differs.
 */
export function sideWithOtherBodies<Compared extends Side>(
  sides: readonly Compared[],
): Compared | undefined {
  const ratios = sides.map(meanRatios);
  const far = new Set(
    ratios.flatMap((ofSide) => [...ofSide.keys()].filter((page) => isFar(ofSide.get(page) ?? 1))),
  );
  const isBounded = sides.every((side) => distanceOf(bodyRatioOf(side).bodyRatio) <= mostAlike);
  const areAlike = [...far].every((page) => {
    const [before = NaN, after = NaN] = sides.map((side) => meanBodyBytes(side, page));
    return !isFar(after / before);
  });
  if (isBounded && areAlike) return undefined;
  return sides.find((side) => isFar(bodyRatioOf(side).bodyRatio));
}

/** The engine's bounds for far lengths, as multiples of the page's length. */
const nearRatios = { least: 0.5, most: 1.5 };

/** Share of a side's bodies that are far from the first one in length, or in rounds whose bodies are far from the page that was checked. */
export function shareOfOtherBodies({ rounds }: Side): number {
  const far = total(rounds, ({ phases }) => {
    const ratio = phases[0]?.bodyRatio ?? 1;
    if (ratio < nearRatios.least || ratio > nearRatios.most) return total(phases, responsesOf);
    return total(phases, ({ otherBodies }) => otherBodies);
  });
  return far / Math.max(1, total(phasesIn(rounds), responsesOf));
}

/** The side that answers with pages of several lengths more often than the other; undefined if neither does. */
export function sideWithSeveralBodies<Compared extends Side>(
  sides: readonly Compared[],
): Compared | undefined {
  const shares = sides.map(shareOfOtherBodies);
  const most = Math.max(...shares);
  if (most - Math.min(...shares) <= tolerableFailures) return undefined;
  return sides[shares.indexOf(most)];
}

/** Returns why the bodies of two sides are not to be compared; undefined if they may be. */
export function obstacleOfBodies(
  sides: readonly (Side & Pick<VariantResult, 'name'>)[],
): Obstacle | undefined {
  const other = sideWithOtherBodies(sides);
  if (other !== undefined) return { kind: 'otherBodies', name: other.name, ...bodyRatioOf(other) };
  const several = sideWithSeveralBodies(sides);
  if (several === undefined) return undefined;
  return { kind: 'severalBodies', name: several.name, share: shareOfOtherBodies(several) };
}

/** The side of a comparison whose answers say nothing about its speed: too many failed, or their bodies are not the page's. */
export function sideWithWrongAnswers<
  Compared extends Pick<VariantResult, 'rounds' | 'successRatio'>,
>(sides: readonly Compared[]): Compared | undefined {
  return sides.find(isFailing) ?? sideWithOtherBodies(sides) ?? sideWithSeveralBodies(sides);
}
