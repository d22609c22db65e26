// Latency percentiles as HdrHistogram plots them: over 1 / (1 − p), on a log scale.
import { responsesOf } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { scaledTime } from '../../format.ts';
import type { LatencyFigures, PhaseResult, Result, VariantResult } from '../../result/result.ts';
import { timesFrom } from '../load-figures.ts';
import { figure, leftColumn, rightColumn, tableOf } from '../table.ts';
import type { Figure, Percentile, Percentiles } from './figure.ts';

const known = [
  ['p50', 0.5, '50 %'],
  ['p75', 0.75, '75 %'],
  ['p90', 0.9, '90 %'],
  ['p95', 0.95, '95 %'],
  ['p99', 0.99, '99 %'],
  ['p999', 0.999, '99.9 %'],
] as const;

/** With more variants only one line each can be told apart. */
const mostWithRounds = 4;

/** A figure per load phase. */
export function percentileFigures(result: Result): Figure[] {
  const { variants } = result;
  const phases = Math.max(0, ...variants.map((variant) => variant.phases.length));
  return Array.from({ length: phases }, (_, index) =>
    phaseFigure(result, index, phases > 1),
  ).flat();
}

function phaseFigure(result: Result, index: number, several: boolean): Figure[] {
  const shown = result.variants.filter(({ phases }) => (phases[index]?.latencyMs.max ?? 0) > 0);
  if (shown.length === 0) return [];
  const withRounds = shown.length <= mostWithRounds;
  const whole = shown.map((variant): Percentiles['lines'][number] => {
    const all = variant.phases[index] as PhaseResult;
    return {
      name: variant.name,
      round: null,
      points: pointsOf(
        all.latencyMs,
        total(
          variant.rounds.flatMap(({ phases }) => phases[index] ?? []),
          responsesOf,
        ),
      ),
    };
  });
  const rounds = shown.flatMap((variant): Percentiles['lines'] =>
    variant.rounds.flatMap(({ round, phases }) => {
      const phase = phases[index];
      return !withRounds || phase === undefined || phase.latencyMs.max === 0
        ? []
        : [{ name: variant.name, round, points: pointsOf(phase.latencyMs, responsesOf(phase)) }];
    }),
  );
  return [
    {
      title: `Latency by percentile${several ? `, phase ${index + 1}` : ''}`,
      text: `Latencies of each variant${withRounds ? '; thin lines are single rounds' : ''}. The last mark of a line is the longest of all. ${timesFrom(shown)}`,
      data: {
        kind: 'percentiles',
        names: shown.map(({ name }) => name),
        lines: [...whole, ...rounds],
      },
      tables: [
        tableOf(shown, [
          leftColumn('variant', ({ name }) => name),
          ...(
            [
              ['min', 'min'],
              ...known.map(([key, , name]) => [key, name] as const),
              ['max', 'max'],
            ] as const
          ).map(([key, title]) =>
            rightColumn(title, ({ phases }: VariantResult) =>
              figure(phases[index]?.latencyMs[key], scaledTime),
            ),
          ),
        ]),
      ],
    },
  ];
}

/** Of so many responses the longest one is their percentile 1 − 1/n; percentiles beyond that are not known. */
function pointsOf(latencyMs: LatencyFigures, responses: number): Percentile[] {
  const middle = known
    .map(([key, p, name]): Percentile => ({ at: 1 / (1 - p), name, ms: latencyMs[key] }))
    .filter(({ at }) => at < responses);
  return [
    { at: 1, name: 'min', ms: latencyMs.min },
    ...middle,
    { at: Math.max(2, responses), name: 'max', ms: latencyMs.max },
  ].map((point) => ({ ...point, at: Number(point.at.toPrecision(12)) }));
}
