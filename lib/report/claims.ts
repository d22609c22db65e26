// What an article claims, held against what was measured here.
import { comparisonOf } from '../analysis/comparisons.ts';
import { effect, percent } from '../format.ts';
import type { Comparison, Result } from '../result/result.ts';
import type { Claim, ClaimRest } from '../scenario/article.ts';
import { metricMark, verdictWord } from './verdict-words.ts';

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

/** Decides a claim; all that it rests on has to hold. @param results by scenario */
export function decideClaim({ rests }: Claim, results: ReadonlyMap<string, Result>): Finding {
  const findings = rests.map((rest) => decideRest(rest, results.get(rest.scenario)));
  const state = byWeight.find((one) => findings.some((finding) => finding.state === one));
  return {
    state: state ?? 'not decided',
    seen: findings.map(({ seen }) => seen).join('; '),
  };
}

function decideRest(rest: ClaimRest, result: Result | undefined): Finding {
  const { scenario, variant, against } = rest;
  if (result === undefined) return { state: 'not decided', seen: `${scenario} was not run` };
  if (rest.headersAtMost !== undefined)
    return decideHeaders(result, variant, against, rest.headersAtMost);
  const comparison = comparisonOf(result, variant, against);
  if (comparison === undefined)
    return { state: 'not decided', seen: `${variant} and ${against} were not compared` };
  const { verdict, why, metric, ratio, ci95 } = comparison;
  const name = `${variant} against ${against}`;
  if (verdict === 'none') return { state: 'not decided', seen: `${name}: ${why}` };
  return {
    state: stateOf(rest.is, verdict),
    seen: `${name}: ${metricMark(metric)}${effect(ratio, ci95)} ${verdictWord(metric, verdict)}`,
  };
}

function stateOf(
  claimed: ClaimRest['is'],
  verdict: Exclude<Comparison['verdict'], 'none'>,
): ClaimState {
  if (verdict === 'inconclusive') return 'not decided';
  if (claimed === 'not slower') return verdict === 'slower' ? 'opposite here' : 'holds here';
  if (verdict === claimed) return 'holds here';
  return claimed === 'same' || verdict === 'same' ? 'does not hold here' : 'opposite here';
}

function decideHeaders(
  { variants }: Result,
  variant: string,
  against: string,
  atMost: number,
): Finding {
  const bytesOf = (name: string) => {
    const found = variants.find((one) => one.name === name);
    return (found?.traffic?.bytes.headers ?? NaN) / (found?.traffic?.requests ?? NaN);
  };
  const share = bytesOf(variant) / bytesOf(against);
  if (!Number.isFinite(share))
    return { state: 'not decided', seen: `the headers of ${variant} and ${against} were not seen` };
  return {
    state: share <= atMost ? 'holds here' : 'does not hold here',
    seen: `${variant} has ${percent(share)} of the header bytes of ${against}, 1/${(1 / share).toFixed(0)}`,
  };
}
