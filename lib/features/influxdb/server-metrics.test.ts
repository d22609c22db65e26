// Metrics of servers, memory and start-up among them, in the database and its dashboards.
import { describe, expect, test } from 'vitest';
import { curvesOf, foundIn } from '../../report/found.ts';
import type { Result, Round } from '../../result/result.ts';
import { factsOf, serverMetricNames } from '../../result/server-metrics.ts';
import { openFileCache, result, workers } from '../../../test/fixtures/result.ts';
import { parsed } from '../../../test/fixtures/points.ts';
import { panelsOf, readDashboard, selectedColumns, targetsOf } from '../../../test/grafana.ts';
import { tablePoints } from './points.ts';

/** The fields of the second variant's row in the table. */
function fieldsOf(of: Result) {
  const all = tablePoints(of, curvesOf(of), foundIn(of));
  const points = all.filter((line) => line.startsWith('bench_comparison'));
  return parsed(points[1] ?? '').fields;
}

describe.each(serverMetricNames)('%s', (metric) => {
  const { field, perUnit, column } = factsOf(metric);
  /** Fifty in its unit for the baseline, a hundred for the variant. */
  const sides = [workers, openFileCache].map((variant, side) => {
    const rounds = variant.rounds.map((round, index): Round => {
      const figure = 50 * (side + 1) * (1 + 0.001 * (index % 3));
      return { ...round, [field]: perUnit * figure };
    });
    return { ...variant, rounds };
  });

  test('is in the row of its variant, and Grafana asks for it', () => {
    const fields = fieldsOf(result(sides, {}, { metric }));
    expect(Number(fields[column]) / perUnit).toBeCloseTo(100, 0);
    expect(fields[`${metric}_effect`]).toMatch(/^×2|2 times|100 %/);
    const panels = panelsOf(readDashboard('comparison.json'));
    const queries = panels.flatMap((panel) => targetsOf(panel).map(({ query }) => query));
    const selected = queries.flatMap(selectedColumns);
    expect(selected).toEqual(expect.arrayContaining([column, `${metric}_effect`]));
  });

  test('is in the row with an effect of its own when another metric decides', () => {
    const fields = fieldsOf(result(sides, {}, { alsoAsked: [metric] }));
    expect(fields[column]).toBe(fieldsOf(result(sides))[column]);
    expect(Number(fields[column]) / perUnit).toBeCloseTo(100, 0);
    expect(fields[`${metric}_effect`]).toMatch(/^×2|2 times|100 %/);
    expect(fields['effect']).not.toBe(fields[`${metric}_effect`]);
  });
});
