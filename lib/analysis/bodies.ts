// Whether bodies under load are those of the pages before it.
import type { PageFigures } from '../result/load-result.ts';
import type { Phase, Round, VariantResult } from '../result/result.ts';
import { isFailing, phasesIn, responsesOf, tolerableFailures } from './phases.ts';
import { mean, total } from './statistics.ts';

/** Further off a side serves another page. */
const tolerableBodies = 0.05;
/** Sides that go off alike, as with a page that grows, may go so far. */
const mostAlike = 2;

type Side = Pick<VariantResult, 'rounds'>;

/** undefined: all that a side serves. */
type PageName = string | undefined;

/** Where bodies differ from the pages before. */
function ratiosIn({ phases: [first] }: Round): Map<PageName, number> {
  const ratios = new Map<PageName, number>();
  if (first === undefined) return ratios;
  for (const { page, bodyRatio } of [{ page: undefined, ...first }, ...first.pages])
    if (bodyRatio !== undefined) ratios.set(page, bodyRatio);
  return ratios;
}

/** Means over the rounds: a page of random length is checked anew in each. */
function meanRatios({ rounds }: Side): Map<PageName, number> {
  const ofRounds = rounds.map(ratiosIn);
  const pages = new Set(ofRounds.flatMap((ratios) => [...ratios.keys()]));
  return new Map(
    [...pages].map((page) => [page, mean(ofRounds.map((ratios) => ratios.get(page) ?? 1))]),
  );
}

/** How far a ratio is from 1, as a factor. */
export function distanceOf(ratio: number): number {
  return Math.max(ratio, 1 / ratio);
}

/** Mean length per that of the page before; of a mix, of the page that is furthest off. */
export function bodyRatioOf(side: Side): { bodyRatio: number; page?: string } {
  let furthest: ReturnType<typeof bodyRatioOf> = { bodyRatio: 1 };
  for (const [page, bodyRatio] of meanRatios(side)) {
    if (distanceOf(bodyRatio) <= distanceOf(furthest.bodyRatio)) continue;
    furthest = page === undefined ? { bodyRatio } : { bodyRatio, page };
  }
  return furthest;
}

/** Responses with the expected status. */
export interface ExpectedBodies {
  answered: number;
  bytes: number;
}

export function expectedBodies(phase: Phase): ExpectedBodies {
  const { responses, expected = '2xx', bytes, bodyBytes } = phase;
  if (expected === 'each') return { answered: responsesOf(phase), bytes: bytes.body };
  // Older results have no classes.
  return { answered: responses[expected], bytes: bodyBytes?.[expected] ?? bytes.body };
}

export function expectedOfPage(page: PageFigures): ExpectedBodies {
  const { responses, unexpected, bodyBytes, unexpectedBodyBytes } = page;
  return { answered: responses - unexpected, bytes: bodyBytes - unexpectedBodyBytes };
}

/** In bytes; NaN without responses. */
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

/** The side whose bodies are not those of the page before; undefined if both go off alike: in a mix, on each page. */
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

/** The engine's, as multiples of the page's. */
const nearRatios = { least: 0.5, most: 1.5 };

/** Far from the first one in length, or in rounds whose bodies are far from the page before. */
export function shareOfOtherBodies({ rounds }: Side): number {
  const far = total(rounds, ({ phases }) => {
    const ratio = phases[0]?.bodyRatio ?? 1;
    if (ratio < nearRatios.least || ratio > nearRatios.most) return total(phases, responsesOf);
    return total(phases, ({ otherBodies }) => otherBodies);
  });
  return far / Math.max(1, total(phasesIn(rounds), responsesOf));
}

/** The side with pages of several lengths, unless the other has them as often. */
export function sideWithSeveralBodies<Compared extends Side>(
  sides: readonly Compared[],
): Compared | undefined {
  const shares = sides.map(shareOfOtherBodies);
  const most = Math.max(...shares);
  if (most - Math.min(...shares) <= tolerableFailures) return undefined;
  return sides[shares.indexOf(most)];
}

/** The side whose answers say nothing about its speed: too many failed, or bodies are not the page's. */
export function sideWithWrongAnswers<
  Compared extends Pick<VariantResult, 'rounds' | 'successRatio'>,
>(sides: readonly Compared[]): Compared | undefined {
  return sides.find(isFailing) ?? sideWithOtherBodies(sides) ?? sideWithSeveralBodies(sides);
}
