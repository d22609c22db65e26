// What --fail-if makes of a result, for CI.
import { metricName } from '../analysis/metric.ts';
import { UserError } from '../errors.ts';
import { enumeration } from '../format.ts';
import { verdictWord } from '../report/metric-words.ts';
import type { FailIf } from '../runner/plan.ts';
import type { Comparison, Result } from '../result/result.ts';

const verdicts: Record<FailIf, readonly Comparison['verdict'][]> = { slower: ['slower'], faster: ['faster'], different: ['faster', 'slower'] };

/**
 * The exit code: 3 when a row's verdict is the one asked about, 0 when none is, also where it is left open.
 * @param say gets the line that says which, or which are left open
 * @throws UserError when a row that was run has no verdict, or one that may be that of a late link: the question is not answered
 */
export function failIfCode(result: Result, failIf: FailIf, say: (line: string) => void): 0 | 3 {
  // Of the rows that were run, each once: further comparisons of a variant stand behind its own.
  const rows = result.variants.filter(({ rounds }) => rounds.length > 0).flatMap(({ name }) => result.comparisons.find(({ variant }) => variant === name) ?? []);
  const held = rows.filter(({ verdict, delayNotHeld }) => verdicts[failIf].includes(verdict) && delayNotHeld.length === 0);
  if (held.length > 0) {
    say(`--fail-if ${failIf}: ${held.map(({ metric, variant, verdict, baseline }) => `${variant} is ${verdictWord(metric, verdict)} than ${baseline}${metric === 'rps' ? '' : `, by ${metricName(metric)}`}`).join(', ')}`);
    return 3;
  }
  const unknown = rows.find(({ verdict }) => verdict === 'none');
  if (unknown !== undefined) throw new UserError(`--fail-if ${failIf} cannot be told: no verdict on ${unknown.variant} against ${unknown.baseline}, ${unknown.why}`);
  const late = rows.find(({ delayNotHeld }) => delayNotHeld.length > 0);
  if (late !== undefined) throw new UserError(`--fail-if ${failIf} cannot be told: on ${late.variant} against ${late.baseline} the delay was not held with ${enumeration(late.delayNotHeld)}, so the difference may be the link's`);
  const open = rows.filter(({ verdict }) => verdict === 'inconclusive');
  if (open.length > 0) say(`--fail-if ${failIf} was not shown: ${open.map(({ variant, baseline }) => `${variant} against ${baseline}`).join(', ')} is inconclusive`);
  return 0;
}
