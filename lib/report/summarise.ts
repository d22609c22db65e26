// The figures of a run with their words: reasons of verdicts, and warnings.
import { figuresOfRun, type AskedComparisons } from '../analysis/figures.ts';
import type { MeasuredVariant, RunFacts } from '../analysis/verdict.ts';
import { inWords } from './reasons.ts';
import { warningsOf } from './warnings/all.ts';

/** Variants, comparisons, noise floor and warnings, as the result has them. Takes what figuresOfRun takes. */
export function summarise(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  asked: AskedComparisons = {},
) {
  const { variants, comparisons: judgements, noiseFloor } = figuresOfRun(facts, measured, asked);
  const comparisons = judgements.map((judgement) => inWords(judgement, facts.sameWithin));
  const warnings = warningsOf(facts, measured, variants, comparisons);
  return { variants, comparisons, noiseFloor, warnings };
}
