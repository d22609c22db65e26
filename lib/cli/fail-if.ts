// --fail-if: the conditions under which a run in CI fails.
import { measuredComparisons } from '../analysis/comparisons.ts';
import { besideOf, isLatency, metricNames, metrics } from '../analysis/metrics.ts';
import { usageError, UserError, unknownWord } from '../errors.ts';
import { linkOf } from '../files.ts';
import { enumeration, success, effect } from '../format.ts';
import { metricWords, verdictWord } from '../report/metric-words.ts';
import type { BesideRatio, Comparison, Metric, Result, Verdict } from '../result/result.ts';
import { withRounds } from '../analysis/phases.ts';
import { keysOf } from '../present.ts';

/** Holds for a verdict, or if the whole interval of a metric lies beyond a limit in the verdict's direction. */
interface Gate {
  /** The flag's value as given. */
  text: string;
  verdict: 'slower' | 'faster' | 'different' | 'inconclusive';
  /** A share, such as 0.03; absent: the verdict itself. */
  beyond?: number;
  /** Default: the verdict's metric. */
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
const verdictNames = keysOf(verdicts);
/** Requests/s have the verdict's own words. */
const limited = metricNames.filter((metric) => metric !== 'rps');
const form = new RegExp(`^(slower|faster|${limited.join('|')}|success)([<>])(\\d+(?:\\.\\d+)?)%$`);

/**
 * Throws UserError (exit code 2).
 * @param output the path of the standard output
 */
export function readFailIf(flag: string, text: string, output = linkOf('/proc/self/fd/1')) {
  if (/\/=?\d+(?:\.\d+)?%(?:,[^/]*)?$/.test(output))
    throw usageError(
      `${flag}: the shell took > for a redirection to ${output}: put the condition in quotes: ${flag} 'slower>3%'`,
    );
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
      const metric = limited.find((name) => name === subject);
      if (metric !== undefined) gates.push({ ...gate, verdict: 'slower', metric });
    } else if (/[<>:=%]/.test(condition))
      throw usageError(
        `${flag} ${condition}: write (in quotes) slower>3%, faster>3%, ${limited.map((metric) => `${metric}>${isLatency(metric) ? 5 : 3}%`).join(', ')} or success<99%`,
      );
    else throw unknownWord(flag, condition, verdictNames);
  }
  return { gates, successRatio };
}

/**
 * Decides the gates for each comparison.
 * @param say prints a line for each gate and comparison: the figure with its interval, and whether the gate holds
 * @returns 3 if a gate holds for a comparison, even if another cannot be decided; else 0
 * @throws UserError if too many requests failed; and if no gate holds, and a comparison has no verdict or figure, or its link did not
 * keep its delay
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
  const rows = measuredComparisons(result);
  const asksForCpu = gates.some(({ metric }) => metric === 'cpu');
  const states = gates.flatMap((gate) =>
    rows.map((row) => {
      const unknown = whyUnknown(gate, row);
      const state = unknown === undefined ? stateOf(gate, row) : 'unknown';
      const pair = `${row.variant} against ${row.baseline}`;
      const found = unknown ?? `${figureText(gate, row)}: ${words[state]}`;
      const more = asksForCpu ? '' : cpuText(gate, row, state);
      say(`--fail-if ${gate.text}: ${pair}: ${found}${more}`);
      return state;
    }),
  );
  if (states.includes('holds')) return 3;
  if (states.includes('unknown'))
    throw new UserError('--fail-if: no condition is true, and not all could be decided');
  return 0;
}

type State = 'holds' | 'open' | 'fails' | 'unknown';
const words: Readonly<Record<State, string>> = {
  holds: 'true',
  open: 'not certain, since its interval allows both',
  fails: 'false',
  unknown: '',
};

/** Returns whether a gate holds for a comparison; `open` if its interval or verdict leaves that undecided. */
function stateOf(gate: Gate, row: Comparison): State {
  if (gate.beyond === undefined) {
    if (verdicts[gate.verdict].includes(row.verdict)) return 'holds';
    return row.verdict === 'inconclusive' ? 'open' : 'fails';
  }
  const [near, far] = endsBeyond(gate, figureOf(gate, row) ?? row);
  if (near > gate.beyond) return 'holds';
  return far > gate.beyond ? 'open' : 'fails';
}

/** Says why a gate cannot be decided for a comparison; undefined if it can. */
function whyUnknown(gate: Gate, row: Comparison): string | undefined {
  const { verdict, why, delayNotHeld, obstacles } = row;
  if (delayNotHeld.length > 0)
    return `cannot be decided: its delay was not held with ${enumeration(delayNotHeld)}, so the difference may be the link's`;
  if (verdict === 'none') return `cannot be decided: it has no verdict, ${why}`;
  const obstacle = obstacles?.find(({ metric }) => metric === gate.metric);
  if (obstacle !== undefined)
    return `cannot be decided: there is no verdict by ${metricWords[obstacle.metric].name}, ${obstacle.why}`;
  if (figureOf(gate, row) === null)
    return `cannot be decided: it has no ${metricWords[gate.metric ?? 'rps'].name}`;
  return undefined;
}

type Figure = Omit<BesideRatio, 'verdict'> & { metric: Metric };

function figureOf({ metric }: Gate, row: Comparison): Figure | null {
  if (metric === undefined || metric === row.metric) return row;
  const beside = besideOf(row, metric);
  return beside === null ? null : { ...beside, metric };
}

/** Returns how far the ends of the interval lie beyond 1 in the gate's direction, the nearer end first. */
function endsBeyond(
  { verdict }: Gate,
  { ci95: [low, high], metric }: Figure,
): [near: number, far: number] {
  if (metrics[metric].lessIsBetter === (verdict === 'slower')) return [low - 1, high - 1];
  return [1 - high, 1 - low];
}

/** Returns "requests/s −4.0 % [−5.0, −3.1]", followed by the verdict if the gate asks for one. */
function figureText(gate: Gate, row: Comparison): string {
  const { metric, ratio, ci95 } = figureOf(gate, row) ?? row;
  const figure = `${metricWords[metric].name} ${effect(ratio, ci95)}`;
  return gate.beyond === undefined ? `${figure} ${verdictWord(metric, row.verdict)}` : figure;
}

/** Points to the CPU time if it shows a slowdown that requests/s do not: only a condition on the CPU time (`cpu>3%`) covers that. */
function cpuText({ metric, verdict }: Gate, row: Comparison, state: State): string {
  const isOpen =
    metric === undefined && row.metric === 'rps' && (state === 'open' || state === 'fails');
  if (!isOpen || verdict !== 'slower' || row.cpu?.verdict !== 'slower') return '';
  return " (it is slower by CPU per request: see --fail-if 'cpu>3%')";
}
