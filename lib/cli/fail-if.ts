// --fail-if: the conditions under which a run in CI fails.
import { comparisonOf } from '../analysis/comparisons.ts';
import { besideOf, isLatency, metricNames, metrics } from '../analysis/metrics.ts';
import { usageError, UserError, unknownWord } from '../errors.ts';
import { enumeration, success, effect } from '../format.ts';
import { metricWords, verdictWord } from '../report/metric-words.ts';
import type { BesideRatio, Comparison, Metric, Result, Verdict } from '../result/result.ts';
import { withRounds } from '../analysis/phases.ts';

/** Holds for a verdict, or for an interval beyond a limit in the verdict's direction. */
interface Gate {
  /** The flag's value as given. */
  text: string;
  verdict: 'slower' | 'faster' | 'different' | 'inconclusive';
  /** A share, such as 0.03; absent: the verdict itself. */
  beyond?: number;
  /** Absent: the verdict's metric. */
  metric?: Metric;
}

type FailIf = ReturnType<typeof readFailIf>;

/** The share of requests, 0 to 1, that must succeed on each side. */
const defaultSuccessRatio = 0.99;

const verdicts: Record<Gate['verdict'], readonly Verdict[]> = {
  slower: ['slower'],
  faster: ['faster'],
  different: ['faster', 'slower'],
  inconclusive: ['inconclusive'],
};
const verdictNames = Object.keys(verdicts) as Gate['verdict'][];
/** Requests/s have the verdict's own words. */
const limited = metricNames.filter((metric) => metric !== 'rps');
const form = new RegExp(`^(slower|faster|${limited.join('|')}|success)([<>])(\\d+(?:\\.\\d+)?)%$`);

/** Throws UserError (exit code 2). */
export function readFailIf(flag: string, text: string) {
  const gates: Gate[] = [];
  let successRatio = defaultSuccessRatio;
  for (const condition of text.split(',').map((part) => part.trim())) {
    const verdict = verdictNames.find((name) => name === condition);
    const [, subject = '', sign, percent] = form.exec(condition) ?? [];
    const share = Number(percent) / 100;
    if (verdict !== undefined) gates.push({ text: condition, verdict });
    else if (subject === 'success' && sign === '<' && share <= 1) successRatio = share;
    else if (subject !== 'success' && sign === '>' && share < (subject === 'slower' ? 1 : 100)) {
      const gate = { text: condition, beyond: share };
      if (subject === 'slower' || subject === 'faster') gates.push({ ...gate, verdict: subject });
      else gates.push({ ...gate, verdict: 'slower', metric: subject as Metric });
    } else if (/[<>:=%]/.test(condition))
      throw usageError(
        `${flag} ${condition}: write slower>3%, faster>3%, ${limited.map((metric) => `${metric}>${isLatency(metric) ? 5 : 3}%`).join(', ')} or success<99%`,
      );
    else throw unknownWord(flag, condition, verdictNames);
  }
  return { gates, successRatio };
}

/**
 * Returns 3 if a gate holds, else 0. @param say prints gates that hold or are inconclusive @throws UserError if a comparison has no
 * verdict or lacks the figure, its link was late, or too many requests failed
 */
export function failIfCode(
  result: Result,
  { gates, successRatio }: FailIf,
  say: (line: string) => void,
): 0 | 3 {
  const ran = withRounds(result.variants);
  const failed = ran.filter((variant) => (variant.successRatio ?? 0) < successRatio);
  if (failed.length > 0) {
    throw new UserError(
      `--fail-if: ${failed.map((variant) => `of ${variant.name}'s requests ${success(variant.successRatio ?? 0)} succeeded`).join(', ')}, and ${success(successRatio)} are asked for: look at its log, or ask for less (success<50%)`,
    );
  }
  const rows = ran.flatMap(({ name }) => comparisonOf(result, name) ?? []);
  const having = (gate: Gate, state: ReturnType<typeof stateOf>) =>
    rows.filter((row) => stateOf(gate, row) === state);
  let code: 0 | 3 = 0;
  for (const gate of gates) {
    const holding = having(gate, 'holds').filter(({ delayNotHeld }) => delayNotHeld.length === 0);
    if (holding.length === 0) continue;
    say(`--fail-if ${gate.text}: ${holding.map((row) => finding(gate, row)).join(', ')}`);
    code = 3;
  }
  if (code === 3) return code;
  const late = rows.find(({ delayNotHeld }) => delayNotHeld.length > 0);
  for (const gate of gates) {
    const [unknown] = having(gate, 'unknown');
    const row = unknown ?? late;
    if (row === undefined) continue;
    let why = `it has no ${metricWords[gate.metric ?? 'rps'].name}`;
    if (row.verdict === 'none') why = `it has no verdict, ${row.why}`;
    if (unknown === undefined)
      why = `its delay was not held with ${enumeration(row.delayNotHeld)}, so the difference may be the link's`;
    throw new UserError(
      `--fail-if ${gate.text} cannot be told of ${row.variant} against ${row.baseline}: ${why}`,
    );
  }
  for (const gate of gates) {
    const open = having(gate, 'open');
    if (open.length > 0)
      say(
        `--fail-if ${gate.text} was not shown: ${open.map(({ variant, baseline }) => `${variant} against ${baseline}`).join(', ')} ${open.length === 1 ? 'is' : 'are'} inconclusive`,
      );
  }
  return 0;
}

type Figure = Omit<BesideRatio, 'verdict'> & { metric: Metric };

/** `open`: interval or verdict does not tell. */
function stateOf(gate: Gate, row: Comparison): 'holds' | 'open' | 'fails' | 'unknown' {
  const figure = figureOf(gate, row);
  if (figure === null) return 'unknown';
  if (gate.beyond === undefined) {
    if (verdicts[gate.verdict].includes(row.verdict)) return 'holds';
    return row.verdict === 'inconclusive' ? 'open' : 'fails';
  }
  const [near, far] = endsBeyond(gate, figure);
  if (near > gate.beyond) return 'holds';
  return far > gate.beyond ? 'open' : 'fails';
}

function figureOf({ metric }: Gate, row: Comparison): Figure | null {
  // Without a verdict there are too few rounds for an interval.
  if (row.verdict === 'none') return null;
  if (metric === undefined || metric === row.metric) return row;
  const beside = besideOf(row, metric);
  return beside === null ? null : { ...beside, metric };
}

/** The interval's ends beyond 1 in the gate's direction, the nearer first. */
function endsBeyond(
  { verdict }: Gate,
  { ci95: [low, high], metric }: Figure,
): [near: number, far: number] {
  return metrics[metric].lessIsBetter === (verdict === 'slower')
    ? [low - 1, high - 1]
    : [1 - high, 1 - low];
}

function finding(gate: Gate, row: Comparison): string {
  const { metric, variant, baseline, verdict } = row;
  if (gate.verdict === 'inconclusive') return `${variant} against ${baseline}`;
  if (gate.beyond === undefined)
    return `${variant} is ${verdictWord(metric, verdict)} than ${baseline}${metric === 'rps' ? '' : `, by ${metricWords[metric].name}`}`;
  const { ratio, ci95, metric: by } = figureOf(gate, row) ?? row;
  return `${variant} against ${baseline}: ${metricWords[by].name} ${effect(ratio, ci95)}`;
}
