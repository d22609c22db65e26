// The sides in each round: what is compared is within a round.
import { curvesOf } from '../../analysis/curve.ts';
import { mergedLatency } from '../../analysis/merged.ts';
import { isLatency } from '../../analysis/metric.ts';
import { isFailing, roundRps, serverCpuSecondsPerResponse } from '../../analysis/phases.ts';
import { perSecond, short } from '../../format.ts';
import type { Metric, Phase, Result } from '../../result/result.ts';
import { roundsTable } from '../markdown.ts';
import { leftColumn, rightColumn, tableOf } from '../table.ts';
import type { Figure, Rounds } from './figure.ts';

/** Of a curve, which is of many loads, of one side, and of those that failed there is none. */
export function roundFigures(result: Result): Figure[] {
  const shown = result.variants.filter(
    (variant) => variant.rounds.length > 0 && !isFailing(variant),
  );
  const metric = result.comparisons[0]?.metric ?? 'rps';
  const points = shown
    .flatMap(({ name, rounds }): Rounds['points'] =>
      rounds.map(({ round, phases }) => ({ name, round, value: figureOf(metric, phases) })),
    )
    .filter(({ value }) => Number.isFinite(value));
  const names = [...new Set(points.map(({ name }) => name))];
  if (names.length < 2 || curvesOf(result).length > 0) return [];
  const axis = isLatency(metric)
    ? `${metric}, ms`
    : metric === 'cpu'
      ? 'CPU µs per request'
      : 'requests/s';
  return [
    {
      title: 'Round by round',
      text: `${axis} of each side, the sides of a round joined by a line: lines with the same slope show the same effect. The axis may begin above 0.`,
      data: { kind: 'rounds', axis, names, points },
      tables: [
        tableOf(
          [...new Set(points.map(({ round }) => round))],
          [
            leftColumn('round', String),
            ...names.map((name) =>
              rightColumn(
                name,
                (round: number) =>
                  points
                    .filter((one) => one.name === name && one.round === round)
                    .map(({ value }) => (metric === 'rps' ? perSecond(value) : short(value)))
                    .join(''),
                { group: axis },
              ),
            ),
          ],
        ),
        roundsTable(result),
      ],
    },
  ];
}

function figureOf(metric: Metric, phases: readonly Phase[]): number {
  if (isLatency(metric)) return mergedLatency(phases.map(({ latencyMs }) => latencyMs))[metric];
  return metric === 'rps' ? roundRps(phases) : 1e6 * serverCpuSecondsPerResponse(phases);
}
