// The figures of a run, its comparisons in words, and what it found.
import { figuresOfRun, type AskedComparisons } from '../analysis/figures.ts';
import { findingsOf } from '../analysis/findings.ts';
import type { MeasuredVariant, RunFacts } from '../analysis/verdict.ts';
import { inWords } from './reasons.ts';

/** Returns the variants, comparisons, noise floor and findings of a result. Takes what figuresOfRun takes. */
export function summarise(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  asked: AskedComparisons = {},
) {
  const { variants, comparisons: judgements, noiseFloor } = figuresOfRun(facts, measured, asked);
  return {
    variants,
    comparisons: judgements.map((judgement) => inWords(judgement, facts.sameWithin)),
    noiseFloor,
    findings: findingsOf(facts, measured, variants, judgements),
  };
}
