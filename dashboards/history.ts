// The History dashboard: one scenario over its runs and over the servers' versions.
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { benchRun } from '../lib/features/influxdb/schema.ts';
import { board, closedRow, kindVariable, runsPanel, scenarioVariable, variable } from './board.ts';
import { verdictColumn } from './certainty.ts';
import { timeSeriesPanel } from './charts.ts';
import { select, selectEvery, tagValues, type FieldName, type Where } from './influxql.ts';
import { tablePanel, variantColumn } from './tables.ts';
import type { Lines } from './frame.ts';

type Figures = typeof benchComparison;

const rows: Where<Figures> = { equal: { scenario: 'scenario' }, among: { variant: 'variants' } };
const comparedRows: Where<Figures> = { ...rows, has: 'baseline' };
/** A ratio of latencies beside one of requests/s would look like another effect. */
const byRequests: Where<Figures> = { ...comparedRows, is: { metric: [''] } };

/** A figure of each variant over the runs; another version of its server is another line, and so is a limit within which its highest rate was searched for. */
function overRuns(field: FieldName<Figures>, where: Where<Figures>): Lines {
  return {
    query: select({
      columns: [field],
      from: benchComparison,
      where,
      groupBy: ['variant', 'server', 'version', 'within'],
    }),
    alias: '$tag_variant, $tag_server $tag_version $tag_within',
  };
}

/** One end of the noise floor, from each control run on until the next. */
function noiseFloor(field: 'noise_low' | 'noise_high'): Lines {
  return {
    query: selectEvery({
      of: 'last',
      field,
      from: benchRun,
      where: { inTimeRange: true },
      every: '1h',
      fill: 'previous',
    }),
    alias: field,
  };
}

const noneMeasured = 'Nothing was measured: all rows are published only.';

const ratios = timeSeriesPanel({
  id: 1,
  title: '${scenario}: ratio to the baseline, run by run',
  description:
    "The ratio of requests/s to the baseline's in each run. The grey band is the noise floor as the last run of a config against itself " +
    '(scenario aa) showed it: a ratio within it cannot be told from 1. Without a band no such run lies in the time range.',
  grid: { x: 0, y: 0, w: 24, h: 10 },
  lines: [overRuns('ratio', byRequests), noiseFloor('noise_high'), noiseFloor('noise_low')],
  looks: [
    { name: 'noise_low', title: 'noise floor, lower end', color: 'text', edge: true },
    {
      name: 'noise_high',
      title: 'noise floor, upper end',
      color: 'text',
      bandTo: 'noise floor, lower end',
    },
  ],
  noLines: 'No ratios: one variant only, or a load at a constant rate, which sets requests/s.',
  unit: 'prefix:×',
  decimals: 3,
  axis: 'ratio to the baseline',
  everyPoint: true,
  lineAt: 1,
});

const requests = timeSeriesPanel({
  id: 2,
  title: 'Requests/s, run by run',
  description:
    "Responses of any status per second: the median over the rounds of each run; with a limit in the line's name, the highest rate within it. From one boot to the next the whole machine may be faster or slower: ratios are the steadier.",
  grid: { x: 0, y: 10, w: 12, h: 9 },
  lines: [overRuns('measured_rps', rows)],
  noLines: noneMeasured,
  unit: 'reqps',
  axis: 'requests/s',
  everyPoint: true,
});

const cpu = timeSeriesPanel({
  id: 3,
  title: "The server's CPU time per request, run by run",
  description: 'The median over the rounds of each run. It needs no saturated server.',
  grid: { x: 12, y: 10, w: 12, h: 9 },
  lines: [overRuns('server_cpu_micros_per_request', rows)],
  noLines: noneMeasured,
  unit: 'µs',
  axis: 'CPU time per request',
  everyPoint: true,
});

const latency = timeSeriesPanel({
  id: 4,
  title: '99th percentile of latency, run by run',
  description: 'Of all rounds of each run.',
  grid: { x: 0, y: 19, w: 24, h: 9 },
  lines: [overRuns('p99_ms', rows)],
  noLines: noneMeasured,
  unit: 'ms',
  axis: 'latency',
  everyPoint: true,
});

const noise = timeSeriesPanel({
  id: 5,
  title: 'Noise floor of this machine, run by run',
  description:
    'The smallest effect on requests/s that a run of a config against itself could tell from noise: the more rounds, the smaller.',
  grid: { x: 0, y: 46, w: 24, h: 9 },
  lines: [
    {
      query: select({ columns: ['noise_floor'], from: benchRun, where: {}, groupBy: ['scenario'] }),
      alias: '$tag_scenario',
    },
  ],
  noLines: 'Only a config against itself shows it: run aa.',
  unit: 'percentunit',
  decimals: 1,
  axis: 'effect',
  everyPoint: true,
});

const everyRow = tablePanel({
  id: 6,
  title: "Every run's rows, newest first",
  description:
    'The newest 200 rows of the tables, with the versions of the servers. With a limit under "within", requests/s are the highest rate within it. "effect" is against the baseline, by what the run compared by, with its 95 % interval.',
  grid: { x: 0, y: 28, w: 24, h: 10 },
  from: benchComparison,
  where: rows,
  newest: 200,
  noRows: 'No run of this scenario has a table yet.',
  columns: [
    { name: 'run', width: 322 },
    { ...variantColumn, minWidth: 148 },
    { name: 'effect', title: 'effect, 95 %', width: 160 },
    verdictColumn,
    { name: 'measured_rps', title: 'req/s', width: 85 },
    { name: 'within', width: 125 },
    { name: 'server', width: 70 },
    { name: 'version', width: 80 },
    // Of rows that are published only there is this figure, and without one they would not be answered.
    { name: 'rounds', width: 68 },
    { name: 'success_ratio', title: 'success', width: 73, percent: true, decimals: 2 },
  ],
});

const variables = [
  kindVariable,
  scenarioVariable({ like: { article: 'kind' } }),
  variable({
    name: 'variants',
    label: 'Variants',
    query: tagValues(benchComparison, 'variant', { equal: { scenario: 'scenario' } }),
    multi: true,
    all: true,
  }),
  // Not used here: the links to the other dashboards keep it.
  variable({
    name: 'run',
    query: tagValues(benchComparison, 'run', { equal: { scenario: 'scenario' } }),
    newestFirst: true,
  }),
];

/** The dashboard as Grafana reads it from a file. */
export function historyDashboard(): Dashboard {
  return board('history', {
    description: "One scenario over its runs and over the servers' versions.",
    variables,
    from: 'now-90d',
    keepsTime: false,
  })
    .withPanel(ratios)
    .withPanel(requests)
    .withPanel(cpu)
    .withPanel(latency)
    .withPanel(everyRow)
    .withPanel(
      runsPanel({
        id: 7,
        y: 38,
        opens: 'comparison',
        where: { equal: { scenario: 'scenario' } },
        title: 'Runs of ${scenario}: a click opens the Comparison',
      }),
    )
    .withRow(closedRow(8, 'Noise floor: of runs of aa', 45, [noise]))
    .build();
}
