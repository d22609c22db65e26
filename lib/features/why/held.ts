// Checks which verdicts of the rounds hold if each side is loaded alone, and says so in words.
import { checkOf, rateCheckOf, saysSomething, type Check } from '../../analysis/alone.ts';
import { measuredComparisons } from '../../analysis/comparisons.ts';
import { duration, enumeration, percent, scaledTime, short, whole } from '../../format.ts';
import { byName } from '../../present.ts';
import { withFindings, type AnyTemplates, type Templates } from '../../report/finding-words.ts';
import { effectText } from '../../report/verdict-words.ts';
import type { BesideRatio, Comparison, Metric, Result } from '../../result/result.ts';
import { latencyMetrics } from '../../scenario/latency-metrics.ts';

/**
 * Returns the result without the verdicts that do not hold if each side is loaded alone.
 * @param result with `alone`, or as it was
 */
export function heldAgainst(result: Result, templates: AnyTemplates): Result {
  if (result.alone === undefined) return result;
  const others = result.variants.flatMap(({ name }) => otherRateOf(name, result) ?? []);
  const comparisons = result.comparisons.map((some) => held(some, result));
  return withFindings({ ...result, comparisons }, [...result.findings, ...others], templates);
}

/** A side at a rate answered another number of requests in so long a load alone: in the first and, if there was one, in a second. */
interface OtherRate {
  code: 'other-rate-alone';
  variant: string;
  loadSeconds: number;
  aloneRps: number[];
  inRoundsRps: number;
}

export const aloneTemplates: Templates<OtherRate> = {
  'other-rate-alone': (finding) =>
    `${otherRateText(finding)}: rely on the figure alone, as a rate limit recovers in the turns of others`,
};

/**
 * Returns whether a load alone contradicts a verdict of the rounds. Then each side is loaded alone once more, because the machine may have
 * been at fault.
 */
export function isDenied(result: Result): boolean {
  if (result.variants.some(({ name }) => rateCheckOf(name, result)?.differs === true)) return true;
  return result.comparisons.some((comparison) => {
    const { metric, verdict, cpu, latency } = comparison;
    const beside = { cpu, ...latency };
    const said: Metric[] = (['cpu', ...latencyMetrics] as const).filter(
      (name) => (beside[name]?.verdict ?? 'none') !== 'none',
    );
    if (verdict !== 'none') said.push(metric);
    return said.some((name) => {
      const check = checkOf(comparison, name, result);
      return check?.differs === true && check.pause === undefined;
    });
  });
}

/** undefined if it answers as many alone, or was not checked. */
function otherRateOf(variant: string, result: Result): OtherRate | undefined {
  const check = rateCheckOf(variant, result);
  if (check?.differs !== true) return undefined;
  const { alone, aloneAtFirst, inRounds: inRoundsRps } = check;
  const aloneRps = [...(aloneAtFirst === undefined ? [] : [aloneAtFirst]), alone];
  const loadSeconds = secondsAlone(result);
  return { code: 'other-rate-alone', variant, loadSeconds, aloneRps, inRoundsRps };
}

const otherRateText = ({ variant, loadSeconds, aloneRps, inRoundsRps }: OtherRate): string =>
  `alone for ${duration(loadSeconds)} ${variant} answered ${enumeration(aloneRps.map(whole))} requests/s, in the rounds ${whole(inRoundsRps)}`;

function held(comparison: Comparison, result: Result): Comparison {
  const { verdict, cpu, latency } = comparison;
  const beside = <Ratio extends BesideRatio | null>(of: Metric, ratio: Ratio): Ratio =>
    ratio !== null && ratio.verdict !== 'none' && fails(comparison, of, result)
      ? { ...ratio, verdict: 'none' }
      : ratio;
  const kept = {
    ...comparison,
    cpu: beside('cpu', cpu),
    latency: byName(latencyMetrics, (name) => beside(name, latency[name])),
  };
  const why = whyNot(comparison, result);
  if (verdict === 'none' || why === undefined) return kept;
  return { ...kept, verdict: 'none', why, swayedBy: null, disagreement: '' };
}

const fails = (comparison: Comparison, metric: Metric, result: Result): boolean =>
  checkOf(comparison, metric, result)?.differs === true;

/** Says why a verdict does not hold, as a clause; undefined if it does, or was not checked. */
function whyNot(comparison: Comparison, result: Result): string | undefined {
  const { metric, variant, baseline } = comparison;
  const atRate = [baseline, variant].flatMap((name) => otherRateOf(name, result) ?? []);
  if (atRate.length > 0) return enumeration(atRate.map(otherRateText));
  const check = checkOf(comparison, metric, result);
  if (check?.differs !== true) return undefined;
  const text = (ratio: number) => effectText({ metric, ratio });
  const { alone, aloneAtFirst, inRounds } = check;
  const gives =
    aloneAtFirst === undefined ? text(alone) : `${text(aloneAtFirst)} and again ${text(alone)}`;
  return `each side alone for ${duration(secondsAlone(result))} gives ${gives}${costText(check)}, the rounds gave ${text(inRounds)}${pauseText(check)}`;
}

const costText = ({ atCostOfRounds }: Check): string =>
  atCostOfRounds ? ' at the CPU time per request of the rounds' : '';

function pauseText({ pause }: Check): string {
  if (pause === undefined) return '';
  return `: ${pause.name} answered nothing for ${scaledTime(pause.ms)} then, and for ${scaledTime(pause.inRoundsMs)} at most in the rounds`;
}

/** "9.0 %", but "a factor of 3.8" for 280 %, since no figure can be so much less. */
const withinText = (tolerated: number): string =>
  tolerated < 1 ? percent(tolerated) : `a factor of ${short(1 + tolerated)}`;

/** The length of the loads alone. */
function secondsAlone({ alone }: Result): number {
  const seconds = (alone?.sides ?? []).map(({ phase }) => phase.seconds);
  return Math.max(0, ...seconds);
}

/** A sentence on the verdicts that hold, and the reasons for missing checks. */
export function heldLines(result: Result): string[] {
  const lines: string[] = [];
  const scattered: string[] = [];
  const withShares: string[] = [];
  const stand = measuredComparisons(result).flatMap(({ metric, verdict, ...pair }) => {
    const check = verdict === 'none' ? undefined : checkOf(pair, metric, result);
    if (check === undefined) return [];
    if (!saysSomething(check)) {
      scattered.push(pair.variant);
      return [];
    }
    const { alone, aloneAtFirst, tolerated } = check;
    if (check.atCostOfRounds) {
      withShares.push(`${pair.variant} (within ${withinText(tolerated)})`);
      return [];
    }
    const text = (ratio: number) => effectText({ metric, ratio });
    const atFirst = aloneAtFirst === undefined ? '' : ` (${text(aloneAtFirst)} in a first load)`;
    return { text: `${pair.variant} ${text(alone)}${atFirst}`, tolerated };
  });
  if (stand.length > 0) {
    const texts = enumeration(stand.map(({ text }) => text));
    const most = withinText(Math.max(...stand.map(({ tolerated }) => tolerated)));
    lines.push(
      `Each side alone for ${duration(secondsAlone(result))}: ${texts}, as in the rounds (within ${most}).`,
    );
  }
  if (withShares.length > 0)
    lines.push(
      `Each side alone for ${duration(secondsAlone(result))} uses as much of a core as in the rounds: ${enumeration(withShares)}. What a request costs differs too much between single loads to be checked.`,
    );
  if (scattered.length > 0)
    lines.push(
      `Each side alone for ${duration(secondsAlone(result))} cannot check ${enumeration(scattered)}: single loads differ too much here.`,
    );
  const kept = (result.search?.found ?? []).flatMap(({ variant }) => {
    const check = rateCheckOf(variant, result);
    return check === undefined || check.differs ? [] : `${variant} ${whole(check.alone)}`;
  });
  if (kept.length > 0)
    lines.push(
      `Each side alone for ${duration(secondsAlone(result))} at the rate found: ${enumeration(kept)} requests/s.`,
    );
  for (const reason of new Set(result.alone?.missing))
    lines.push(`The verdict was not checked with each side alone: ${reason}.`);
  return lines;
}
