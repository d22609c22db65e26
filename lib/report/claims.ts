// Compares an article's claims with the measurements on this machine, and with the article's own figures.
import { comparisonOf, variantOf } from '../analysis/comparisons.ts';
import { roundsToDecide } from '../analysis/rounds.ts';
import { alphaOf, mean, minimumRounds } from '../analysis/statistics.ts';
import { amount, effect, hundredths, percent, success } from '../format.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { present } from '../present.ts';
import type { Article, Claim, ClaimRest } from '../scenario/article.ts';
import { verdictWord } from './metric-words.ts';
import { decidingText } from './reasons.ts';
import { amountsOf, hasSize, isSame, shareText, usualResolution, type Measured } from './ruler.ts';
import { metricMark } from './verdict-words.ts';

export type ClaimState =
  | 'holds here'
  | 'holds here, but not the size'
  | 'does not hold here'
  | 'opposite here'
  | 'not decided'
  | 'cannot be run';

/** A run that would probably decide a claim, of two variants of a scenario. */
interface DecidingRun {
  scenario: string;
  variants: readonly [string, string];
  /** Default: the rounds of a run without flags. */
  rounds?: number;
}

interface Finding {
  state: ClaimState;
  /** What was seen, or why nothing was. */
  seen: string;
}

/** What is known of one of a claim's comparisons. */
interface RestFinding extends Finding {
  /** For an open claim, the run that would decide it; absent if more rounds do not help. */
  decidedBy?: DecidingRun;
}

/** The weakest first: of several findings that decides. */
const byWeight: readonly ClaimState[] = [
  'opposite here',
  'does not hold here',
  'cannot be run',
  'not decided',
  'holds here, but not the size',
  'holds here',
];

/** The estimate of fewer rounds than these is too rough. */
const fewestRounds = 10;

/** The key of a run's result among those of an article: its scenario, and the variants if it was made for a claim on them. */
export function keyOfResult(scenario: string, variants: readonly string[]): string {
  return [scenario, ...variants].join(' ');
}

/**
 * Decides a claim; all comparisons behind it must agree. A claimed direction is compared with the verdict. A claimed size holds if the
 * interval, widened by the article's resolution, includes it. Sides are the same if the interval lies within the resolution of 1.
 * @param results by keyOfResult; a run that was made for the claim decides
 * @param missing "SCENARIO: why it was not run"
 */
export function decideClaim(
  claim: Pick<Claim, 'rests' | 'condition'>,
  article: Pick<Article, 'resolution'>,
  results: ReadonlyMap<string, Result>,
  missing: readonly string[] = [],
): Finding {
  const findings = decideRests(claim, article, results, missing);
  const { condition } = claim;
  const heaviest = byWeight.find((state) => findings.some((finding) => finding.state === state));
  const seen = [...new Set(findings.map((finding) => finding.seen))].join('; ');
  return {
    state: heaviest ?? 'not decided',
    seen: condition === undefined ? seen : `${condition}: ${seen}`,
  };
}

/** The runs that would probably decide an open claim. None if the claim is decided, or if more rounds would not help. */
export function decidingRuns(
  claim: Pick<Claim, 'rests' | 'condition'>,
  article: Pick<Article, 'resolution'>,
  results: ReadonlyMap<string, Result>,
): DecidingRun[] {
  if (decideClaim(claim, article, results).state !== 'not decided') return [];
  return decideRests(claim, article, results, []).flatMap(({ decidedBy }) => decidedBy ?? []);
}

/** The first comparison that a claim rests on, and by how much it tolerates to be the same; undefined without one. */
export function comparisonOfClaim(
  { rests }: Pick<Claim, 'rests'>,
  results: ReadonlyMap<string, Result>,
): { comparison: Comparison; sameWithin: number } | undefined {
  const [rest] = rests;
  if (rest?.is === undefined) return undefined;
  const result = resultFor(rest, results);
  const comparison = result && comparisonOf(result, rest.variant, rest.against);
  if (result === undefined || comparison === undefined || comparison.ratio === 0) return undefined;
  const publishedRatio = rest.unpublished === true ? null : comparison.publishedRatio;
  return { comparison: { ...comparison, publishedRatio }, sameWithin: result.sameWithin };
}

/** A run that was made for the claim comes before that of the whole scenario. */
const resultFor = (rest: ClaimRest, results: ReadonlyMap<string, Result>): Result | undefined =>
  results.get(keyOfResult(rest.scenario, sidesOf(rest))) ?? results.get(rest.scenario);

function decideRests(
  { rests }: Pick<Claim, 'rests'>,
  { resolution = usualResolution }: Pick<Article, 'resolution'>,
  results: ReadonlyMap<string, Result>,
  missing: readonly string[],
): RestFinding[] {
  return rests.map((rest) => {
    const { scenario } = rest;
    const result = resultFor(rest, results);
    const line = missing.find((reason) => reason.startsWith(`${scenario}: `));
    const why = line === undefined ? '' : line.slice(scenario.length);
    if (result === undefined) return undecided(`${scenario} was not run${why}`);
    return decideRest(rest, resolution, result, why);
  });
}

const sidesOf = ({ variant, against }: ClaimRest) => [against, variant] as const;

const undecided = (seen: string, decidedBy?: DecidingRun): RestFinding => ({
  state: 'not decided',
  seen,
  ...present({ decidedBy }),
});
const decided = (holds: boolean, seen: string): Finding => ({
  state: holds ? 'holds here' : 'does not hold here',
  seen,
});

/** @param failed ": why the scenario could not go on", or '' */
function decideRest(
  rest: ClaimRest,
  resolution: number,
  result: Result,
  failed: string,
): RestFinding {
  const finding = findingOf(rest, resolution, result, failed);
  const { state, seen } = finding;
  if (result.state !== 'partial' || state === 'not decided' || state === 'cannot be run')
    return finding;
  const run = { scenario: rest.scenario, variants: sidesOf(rest) };
  return undecided(`${seen}, not final, since the run was ended`, run);
}

/** Returns the finding on a claim from a complete run. */
function findingOf(
  rest: ClaimRest,
  resolution: number,
  result: Result,
  failed: string,
): RestFinding {
  const { variant, against } = rest;
  for (const name of [variant, against]) {
    const unmeasured = whyUnmeasured(name, rest, result, failed);
    if (unmeasured !== undefined) return unmeasured;
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
  if (rest.moreSucceed === true) {
    const ratios = [subject.successRatio ?? 0, other.successRatio ?? 0] as const;
    const seen = `${variant} ${success(ratios[0])}, ${against} ${success(ratios[1])} succeeded`;
    if (ratios[0] < ratios[1]) return { state: 'opposite here', seen };
    return decided(ratios[0] > ratios[1], seen);
  }
  const amounts = amountsOf(rest);
  if (amounts === undefined) return decideComparison(rest, resolution, result);
  const [subjectAmount, otherAmount] = [amounts.here(subject), amounts.here(other)];
  if (subjectAmount === undefined || otherAmount === undefined)
    return undecided(`the ${amounts.noun} of ${variant} and ${against} were not seen`);
  const share = subjectAmount / otherAmount;
  const numbers = `${hundredths(subjectAmount)} ${amounts.noun} per request, ${against} ${hundredths(otherAmount)}`;
  return {
    state: stateOfLess({ ratio: share, ci95: [share, share] }, amounts.claimed, resolution),
    seen: `${variant} has ${numbers}: ${shareText(share)}`,
  };
}

/** Decides the claim that an amount is only the share `claimed` of another one. */
function stateOfLess(measured: Measured, claimed: number, resolution: number): ClaimState {
  if (hasSize(measured, claimed, resolution)) return 'holds here';
  if (isSame(measured, resolution)) return 'does not hold here';
  return measured.ratio > 1 ? 'opposite here' : 'holds here, but not the size';
}

function whyUnmeasured(
  name: string,
  rest: ClaimRest,
  result: Result,
  failed: string,
): RestFinding | undefined {
  const { scenario, variant, against } = rest;
  const side = variantOf(result, name);
  if (side === undefined && failed !== '') return undecided(`${name} was not run${failed}`);
  if (side === undefined)
    return undecided(
      `${name} is run by its name only: npm run scenario -- ${scenario} --variants ${variant},${against}`,
      { scenario, variants: sidesOf(rest) },
    );
  if (side.publishedOnly !== undefined)
    return { state: 'cannot be run', seen: `${name}: ${side.publishedOnly}` };
  return side.rounds.length === 0 ? undecided(`${name} was not measured${failed}`) : undefined;
}

function decideComparison(rest: ClaimRest, resolution: number, result: Result): RestFinding {
  const { scenario, variant, against, is, about } = rest;
  const comparison = comparisonOf(result, variant, against);
  if (comparison === undefined) return undecided(`${variant} and ${against} were not compared`);
  const { verdict, why, metric, ratio, ci95 } = comparison;
  const name = `${variant} against ${against}`;
  const run = { scenario, variants: sidesOf(rest) };
  const rounds = comparison.roundRatios.length;
  if (verdict === 'none') {
    const isShort = rounds > 0 && rounds < minimumRounds;
    return undecided(`${name}: ${why}`, isShort ? { ...run, rounds: minimumRounds } : undefined);
  }
  const ofDirection = is === 'faster' || is === 'slower';
  const claimed = about === undefined ? '' : `; the article says ${amount(about)}`;
  const measured = `${name}: ${metricMark(metric)}${effect(ratio, ci95)} ${verdictWord(metric, verdict)}`;
  const state = stateOf(rest, comparison, resolution, result.sameWithin);
  if (state === 'not decided') {
    const needed = roundsNeeded(rest, comparison, resolution, result);
    const seen = `${measured} (${decidingText(needed)})${claimed}`;
    return undecided(
      seen,
      needed === null ? undefined : { ...run, rounds: Math.max(fewestRounds, needed) },
    );
  }
  const isWithin = !ofDirection && verdict !== 'same' && isSame(comparison, resolution);
  const within = isWithin ? `, within the article's ${percent(resolution)}` : '';
  return { state, seen: `${measured}${within}${claimed}` };
}

/** The rounds that would probably decide an open claim; null for more than are ever advised. */
function roundsNeeded(
  { is }: ClaimRest,
  { roundRatios, roundsNeeded: forVerdict }: Comparison,
  resolution: number,
  { together, sameWithin }: Result,
): number | null {
  if (is === 'faster' || is === 'slower') return forVerdict;
  const logs = roundRatios.map(Math.log);
  const alpha = alphaOf(together);
  if (is !== 'same') return roundsToDecide(logs, alpha, Math.max(resolution, sameWithin));
  // The interval has to be on one side of the nearer edge.
  const edge = Math.sign(mean(logs)) * Math.log1p(resolution);
  return roundsToDecide(
    logs.map((log) => log - edge),
    alpha,
    0,
  );
}

/**
 * @param comparison with a verdict
 * @param sameWithin by which the verdict "same" goes. Its interval of 90 % is narrower than the one that is shown.
 */
function stateOf(
  { is, about }: ClaimRest,
  comparison: Comparison,
  resolution: number,
  sameWithin: number,
): ClaimState {
  const { verdict, ci95 } = comparison;
  const areSame =
    isSame(comparison, resolution) || (verdict === 'same' && sameWithin <= resolution);
  if (is === 'same') {
    if (areSame) return 'holds here';
    const [low, high] = ci95;
    const differs = low > 1 + resolution || high * (1 + resolution) < 1;
    return differs ? 'does not hold here' : 'not decided';
  }
  if (is === 'not slower' || is === 'not faster') {
    if (areSame) return 'holds here';
    if (verdict === 'inconclusive') return 'not decided';
    return `not ${verdict}` === is ? 'opposite here' : 'holds here';
  }
  if (verdict === 'inconclusive') return 'not decided';
  if (verdict === 'same') return 'does not hold here';
  if (verdict !== is) return 'opposite here';
  if (about === undefined || hasSize(comparison, about, resolution)) return 'holds here';
  return 'holds here, but not the size';
}
