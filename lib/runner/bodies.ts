// Compares the bodies under load with those of the page that was checked before: a server may answer its load with other pages.
import {
  distanceOf,
  expectedBodies,
  expectedOfPage,
  type ExpectedBodies,
} from '../analysis/bodies.ts';
import { mean, total, weightedMean } from '../analysis/statistics.ts';
import { present } from '../present.ts';
import type { Phase } from '../result/result.ts';
import { pageNameOf, requestsOf, restOfPages } from '../scenario/pages.ts';
import { isOwn } from '../scenario/variants.ts';
import type { Answer } from '../servers/index.ts';
import { RoundFailure } from './failures.ts';
import type { PlannedVariant } from './plan.ts';

/** The length of a page before the load, in bytes; of several pages their mean and its standard deviation. */
type Checked = Pick<Answer, 'bytes' | 'sdBytes'>;

interface Bodies extends ExpectedBodies {
  /** The most of its requests that can have been under way at the end. */
  inFlight: number;
}

/** Bodies with another length than the page that was checked; of a mix, those of a page. */
interface OtherBodies {
  page?: string;
  /** The same as Phase.bodyRatio. */
  bodyRatio: number;
}

/** A deviation of this many standard deviations is not chance. */
const deviations = 5;

/** Returns the mean body length, if it is not the page's. With several pages in a random order it may differ by chance. */
function otherLength({ answered, bytes, inFlight }: Bodies, checked: Checked): number | undefined {
  if (answered === 0) return undefined;
  // Long pages are more often unfinished.
  const tolerated = deviations * (checked.sdBytes ?? 0) * (Math.sqrt(answered) + inFlight);
  const more = bytes - answered * checked.bytes;
  return Math.abs(more) <= tolerated ? undefined : bytes / answered;
}

/** A body with up to this many more bytes, such as one with a counter, is the same page. */
const tolerableBytes = 16;

/**
 * Returns the mean body length over all phases, divided by that before the load; undefined if they are alike. A user's own config may
 * generate its pages: bodies are then alike within 1 % or tolerableBytes, and shorter ones within half of the page.
 * @param page its name; absent: the load has one page
 * @throws RoundFailure for a shipped server, which serves files
 */
function ratioOf(
  phases: readonly Bodies[],
  checked: Checked,
  { variant }: Pick<PlannedVariant, 'variant'>,
  page?: string,
): number | undefined {
  const lengths = phases.map((bodies) => otherLength(bodies, checked));
  const other = lengths.find((length) => length !== undefined);
  if (other === undefined) return undefined;
  if (!isOwn(variant.server))
    throw new RoundFailure({
      code: 'page-changed',
      variant: variant.name,
      ...present({ page }),
      meanBytes: other,
      pageBytes: checked.bytes,
    });
  const meanBytes = mean(lengths.map((length) => length ?? checked.bytes));
  const more = meanBytes - checked.bytes;
  const tolerated = more > 0 ? tolerableBytes : Math.min(tolerableBytes, checked.bytes / 2);
  if (Math.abs(more) <= Math.max(0.01 * checked.bytes, tolerated)) return undefined;
  // An empty page has no shorter ones.
  return meanBytes / Math.max(1, checked.bytes);
}

/**
 * Returns where the bodies under load are not those of the `answer` before it. A mix has them by page, as far as its pages have figures.
 * @throws RoundFailure for a shipped server, which serves files
 */
export function otherBodiesOf(
  planned: Pick<PlannedVariant, 'variant' | 'page' | 'load'>,
  phases: readonly Phase[],
  answer: Checked & Pick<Answer, 'each'>,
): OtherBodies[] {
  const checkedPages = checkedPagesOf(planned, phases, answer);
  if (checkedPages.length > 0) return otherPages(planned, phases, checkedPages);
  const bodyRatio = ratioOf(phases.map(bodiesIn), answer, planned);
  return bodyRatio === undefined ? [] : [{ bodyRatio }];
}

const bodiesIn = (phase: Phase): Bodies => ({
  ...expectedBodies(phase),
  inFlight: phase.inFlight,
});

/** Each page's length before the load, in the order of Phase.pages; undefined if unknown. Empty for a single page. */
function checkedPagesOf(
  { page, load }: Pick<PlannedVariant, 'page' | 'load'>,
  [first]: readonly Phase[],
  { each }: Pick<Answer, 'each'>,
): (Checked | undefined)[] {
  if (first === undefined || each === undefined) return [];
  const answers = new Map<string, Record<'weight' | 'value', number>[]>(
    first.pages.map(({ page: name }) => [name, []]),
  );
  for (const [index, request] of requestsOf(page).entries()) {
    const ofPage = answers.get(pageNameOf(request, load.method)) ?? answers.get(restOfPages);
    ofPage?.push({ weight: request.weight ?? 1, value: each[index]?.bytes ?? NaN });
  }
  return [...answers.values()].map((ofPage) => {
    const { mean: bytes, sd: sdBytes } = weightedMean(ofPage);
    return Number.isNaN(bytes) ? undefined : { bytes, sdBytes };
  });
}

/** A page's part of the load: its responses, and its bytes with the checked or with the received bodies, whichever are more. */
interface Weight {
  responses: number;
  bytes: number;
}

function otherPages(
  planned: Pick<PlannedVariant, 'variant'>,
  phases: readonly Phase[],
  checkedPages: readonly (Checked | undefined)[],
): OtherBodies[] {
  const all: Weight = { responses: 0, bytes: 0 };
  const others: (Required<OtherBodies> & Weight)[] = [];
  for (const [index, checked] of checkedPages.entries()) {
    if (checked === undefined) continue;
    const bodies = phases.flatMap((phase) => bodiesOfPage(phase, index));
    const responses = total(bodies, ({ answered }) => answered);
    const came = total(bodies, ({ bytes }) => bytes);
    const weight = { responses, bytes: Math.max(came, responses * checked.bytes) };
    all.responses += weight.responses;
    all.bytes += weight.bytes;
    const page = phases[0]?.pages[index]?.page ?? '';
    const bodyRatio = ratioOf(bodies, checked, planned, page);
    if (bodyRatio !== undefined) others.push({ page, bodyRatio, ...weight });
  }
  return thatMatter(others, all).map(({ page, bodyRatio }) => ({ page, bodyRatio }));
}

/** A page's bodies in a phase, whose pages are in the same order as those of the others. */
function bodiesOfPage({ pages, inFlight }: Phase, index: number): Bodies[] {
  const page = pages[index];
  if (page === undefined) return [];
  return [{ ...expectedOfPage(page), inFlight }];
}

/** Like tolerableFailures: fewer of the responses, and of the bytes, change no figure much. */
const shareThatMatters = 0.01;
/** So few may be other pages by chance. */
const fewestResponses = 5;

/** Leaves out the pages that are furthest off, as long as these are too few even together. */
function thatMatter<Page extends Pick<OtherBodies, 'bodyRatio'> & Weight>(
  others: readonly Page[],
  all: Weight,
): Page[] {
  // Two empty pages are equally far off: ∞ − ∞ is no number.
  const furthestFirst = others.toSorted(
    (a, b) => distanceOf(b.bodyRatio) - distanceOf(a.bodyRatio) || 0,
  );
  const seen: Weight = { responses: 0, bytes: 0 };
  const from = furthestFirst.findIndex(({ responses, bytes }) => {
    seen.responses += responses;
    seen.bytes += bytes;
    return (
      seen.responses >= fewestResponses &&
      (seen.responses >= shareThatMatters * all.responses ||
        seen.bytes >= shareThatMatters * all.bytes)
    );
  });
  return from === -1 ? [] : furthestFirst.slice(from);
}
