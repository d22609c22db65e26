// Effects with their intervals, and the rounds that they come from.
import { hasRatio, measuredComparisons, roundRatiosOf } from '../../analysis/comparisons.ts';
import { metricNames } from '../../analysis/metric.ts';
import { groupedBy } from '../../analysis/statistics.ts';
import { minimumRounds } from '../../analysis/verdict.ts';
import { percent, times, tolerance } from '../../format.ts';
import type { Comparison, Result } from '../../result/result.ts';
import { leftColumn, rightColumn, tableOf, type Cell } from '../table.ts';
import { verdictCell } from '../verdict-words.ts';
import type { Effect, Figure } from './figure.ts';

interface Row { effect: Effect; cell: Cell; comparison: Comparison }

export function effectFigures(result: Result): Figure[] {
  return effectFigure('Effects and their rounds', [{ result, suffix: '' }]);
}

/** The comparisons of one or several runs of a scenario, those of one pair of variants below each other. `suffix` tells the runs apart. */
export function effectFigure(title: string, runs: readonly { result: Result; suffix: string }[]): Figure[] {
  const all = runs.flatMap(({ result, suffix }) => measuredComparisons(result).filter(hasRatio).map((comparison) => rowOf(comparison, result, suffix)));
  const rows = [...groupedBy(all, ({ comparison: { variant, baseline } }) => JSON.stringify([variant, baseline])).values()].flat();
  if (rows.length === 0) return [];
  const numbers = [...new Set(rows.flatMap(({ effect: { rounds } }) => rounds.map(({ round }) => round)))].sort((a, b) => a - b);
  const same = Math.max(...runs.map(({ result }) => result.sameWithin));
  const noises = runs.flatMap(({ result }) => (result.noiseFloor === null ? [] : [result.noiseFloor.ratio - 1]));
  const noise = noises.length === 0 ? null : Math.max(...noises);
  return [{
    title,
    text: `A diamond is the ratio ${rows.every(({ comparison }) => comparison.metric === 'rps') ? 'of requests/s ' : ''}to the baseline, its line the interval in which it lies with 95 % certainty, `
      + 'each small mark the ratio within one round (a cross lies apart from the others and counts like them). '
      + `The grey band is ±${tolerance(same)} around 1: within it two variants are the same.`
      + `${noise === null ? '' : ` Dotted lines are at ±${percent(noise)}: the noise floor${noises.length > 1 ? ', the highest of these runs' : ''}.`}`,
    data: { kind: 'effects', effects: rows.map(({ effect }) => effect), same, noise },
    tables: [tableOf(rows, [
      leftColumn('comparison', ({ effect }) => effect.name),
      leftColumn('ratio', ({ cell }) => cell),
      ...numbers.map((round) => rightColumn(String(round), ({ effect: { rounds } }: Row) => {
        const one = rounds.find((other) => other.round === round);
        return one === undefined ? '' : `${times(one.ratio)}${one.apart ? '!' : ''}`;
      }, { group: 'ratio in round' })),
    ])],
  }];
}

function rowOf(comparison: Comparison, result: Result, suffix: string): Row {
  const { metric, variant, baseline, ratio, ci95 } = comparison;
  const name = `${variant} against ${baseline}${metric === 'rps' ? '' : `, ${metricNames[metric]}`}${suffix}`;
  const rounds = roundRatiosOf(comparison, result);
  const cell = verdictCell(comparison, result);
  const bounded = rounds.length >= minimumRounds && ci95[0] > 0 && Number.isFinite(ci95[1]);
  return {
    effect: { name, label: cell.text, ratio, interval: bounded ? ci95 : null, verdict: cell.verdict, rounds },
    cell, comparison,
  };
}
