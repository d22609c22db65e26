// The Comparison dashboard: an article's table, published beside measured, for one run of one scenario.
import {
  DashboardBuilder, DashboardCursorSync, QueryVariableBuilder, RowBuilder, VariableHide, VariableRefresh, VariableSort, type Dashboard,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { benchBucket, benchComparison, benchRun } from '../lib/store/schema.ts';
import { noiseFloorPanel, roundsPanel, surenessPanel } from './certainty.ts';
import { loadgenMeasurement, pickedRun, tagValues } from './influxql.ts';
import { histogramPanel, phasesPanel, toolPanels, trafficPanel } from './load-phases.ts';
import { barsPanel, colours, datasource, nullAs, tablePanel, timeSeriesPanel } from './panels.ts';

const uid = 'bakeoff-comparison';

/** Picks a run and sets the dashboard's time range to it. */
const runUrl = `/d/${uid}?var-scenario=\${scenario}&var-run=\${__data.fields.run}`
  + '&from=${__data.fields.started.numeric}&to=${__data.fields.ended.numeric}';

// A laptop's screen leaves about 1330 pixels to a panel over the whole width.
const articleTable = tablePanel({
  id: 1,
  title: '${scenario}: published beside measured',
  description: 'One row per variant, in the order of the scenario. "published" is what the article printed, on its machine; '
    + '"measured" is the median over the rounds of this run. "ratio" is that of the variant to its baseline within the same round, '
    + 'with its 95 % interval: the article and this machine compare by their ratios, not by their requests/s. A verdict holds for this machine in this boot. '
    + '"errors" are attempts without a response per million; "success" is the share of requests that were answered with 2xx or 3xx; '
    + '"CPU" is the server\'s CPU time per request.',
  grid: { x: 0, y: 0, w: 24, h: 9 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    { name: 'variant', title: 'variant' },
    { name: 'published_rps', title: 'published req/s', width: 120 },
    { name: 'published_ratio', title: 'published ratio', width: 115 },
    { name: 'measured_rps', title: 'measured req/s', width: 118, mappings: [nullAs('published only')] },
    { name: 'ratio', title: 'ratio', width: 70 },
    { name: 'ci_low', title: '95 % low', width: 78 },
    { name: 'ci_high', title: '95 % high', width: 82 },
    {
      name: 'verdict',
      title: 'verdict',
      width: 105,
      coloured: true,
      mappings: [
        colours({ faster: 'green', slower: 'red', same: 'blue', inconclusive: 'orange', none: 'text' }),
        nullAs('–', 'text'),
      ],
    },
    { name: 'server_cpu_micros_per_request', title: 'CPU', width: 75 },
    { name: 'p50_ms', title: 'p50', width: 75 },
    { name: 'p99_ms', title: 'p99', width: 75 },
    { name: 'max_ms', title: 'max', width: 80 },
    { name: 'errors_per_million', title: 'errors', width: 75 },
    { name: 'success_ratio', title: 'success', width: 78, percent: true, decimals: 2 },
  ],
});

const requestBars = barsPanel({
  id: 17,
  title: 'Requests/s, row by row',
  description: 'What was measured here, in the order of the table: where each row builds on the one before it, a bar is a step. The article\'s '
    + 'requests/s are those of another machine and stand in the table only.',
  grid: { x: 0, y: 9, w: 12, h: 9 },
  from: benchComparison,
  where: pickedRun,
  category: 'variant',
  noBars: 'Nothing was measured: all rows are published only.',
  bars: [{ name: 'measured_rps', title: 'measured', color: 'orange' }],
  axis: 'requests/s',
  unit: 'locale',
  decimals: 0,
});

const ratioBars = barsPanel({
  id: 2,
  title: 'Ratio to the baseline: published beside measured',
  description: 'How many times the baseline\'s requests/s each variant reached, in the article and here: the effect of a step where its baseline is '
    + 'the row before it. The dashed line is the baseline.',
  grid: { x: 12, y: 9, w: 12, h: 9 },
  from: benchComparison,
  where: { ...pickedRun, has: 'baseline' },
  category: 'variant',
  noBars: 'Nothing to compare: one variant only, or a load at a constant rate, which sets requests/s.',
  bars: [
    { name: 'published_ratio', title: 'published', color: 'blue' },
    { name: 'ratio', title: 'measured', color: 'orange' },
  ],
  axis: 'ratio to the baseline',
  unit: 'prefix:×',
  decimals: 2,
  lineAt: 1,
});

const requestsOverTime = timeSeriesPanel({
  id: 3,
  title: 'Requests/s over time',
  description: 'Requests that ended in each second; rounds of the variants take turns. If it lies outside of the dashboard\'s '
    + 'time range, "Zoom to data" or a click on the run in the list below brings it here.',
  grid: { x: 0, y: 26, w: 20, h: 9 },
  from: loadgenMeasurement('loadgen_requests'),
  where: pickedRun,
  field: 'value',
  series: 'variant',
  // A sample counts the requests of one second.
  unit: 'reqps',
  axis: 'requests/s',
  gapMs: 2500,
});

const behindTheFigures = tablePanel({
  id: 4,
  title: 'Behind the figures',
  description: 'Against which baseline and why the verdict is what it is; how busy the server\'s and the generator\'s cores were '
    + '(a generator near 100 % with a server below it measures the generator); bytes received per request.',
  grid: { x: 0, y: 50, w: 24, h: 6 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    { name: 'variant', title: 'variant', width: 160 },
    { name: 'baseline', title: 'against', width: 140 },
    { name: 'why', title: 'why that verdict' },
    { name: 'note', title: 'note' },
    { name: 'server', title: 'server', width: 70 },
    { name: 'server_version', title: 'version', width: 80 },
    { name: 'rounds', title: 'rounds', width: 70 },
    { name: 'requests', title: 'requests', width: 100 },
    { name: 'server_share', title: 'server busy', width: 95, percent: true },
    { name: 'generator_share', title: 'generator busy', width: 115, percent: true },
    { name: 'header_bytes_per_request', title: 'header/req', width: 92 },
    { name: 'total_bytes_per_request', title: 'total/req', width: 85 },
  ],
});

const runs = tablePanel({
  id: 5,
  title: 'Runs of ${scenario}',
  description: 'The newest 100 runs, newest first. A click on a run shows it, at its time. "lost" are requests that k6 counted '
    + 'and the database does not hold. A run that was ended before its first whole round has no table to show.',
  grid: { x: 0, y: 56, w: 24, h: 7 },
  from: benchRun,
  where: { equal: { scenario: 'scenario' } },
  newest: 100,
  columns: [
    { name: 'run', title: 'run', width: 300, link: { title: 'Show this run', url: runUrl } },
    { name: 'title', title: 'scenario' },
    {
      name: 'state',
      title: 'state',
      width: 90,
      coloured: true,
      mappings: [colours({ complete: 'green', partial: 'orange', running: 'blue' })],
    },
    { name: 'started', title: 'started', width: 165 },
    { name: 'ended', title: 'ended', width: 165 },
    { name: 'rounds', title: 'rounds', width: 70 },
    { name: 'requests', title: 'requests', width: 100 },
    { name: 'stored', title: 'stored', width: 100 },
    { name: 'backfilled', title: 'backfilled', width: 95 },
    { name: 'lost', title: 'lost', width: 70 },
  ],
});

// A run's name starts with its time, so that the newest one sorts first and is the one that Grafana picks.
// Both lists come from bench_comparison: a run without a table is not offered.
const scenarioVariable = new QueryVariableBuilder('scenario')
  .label('Scenario')
  .datasource(datasource)
  .query(tagValues(benchComparison, 'scenario'))
  .refresh(VariableRefresh.OnTimeRangeChanged)
  .allowCustomValue(false)
  .sort(VariableSort.AlphabeticalAsc);

const runVariable = new QueryVariableBuilder('run')
  .label('Run')
  .datasource(datasource)
  .query(tagValues(benchComparison, 'run', { equal: { scenario: 'scenario' } }))
  .refresh(VariableRefresh.OnTimeRangeChanged)
  .allowCustomValue(false)
  .sort(VariableSort.AlphabeticalDesc);

// Not to be picked: the histogram is repeated for each of its values.
const variantVariable = new QueryVariableBuilder('variant')
  .datasource(datasource)
  .query(tagValues(benchBucket, 'variant', pickedRun))
  .refresh(VariableRefresh.OnTimeRangeChanged)
  .hide(VariableHide.HideVariable)
  .multi(true)
  .includeAll(true)
  .current({ text: 'All', value: '$__all' })
  .sort(VariableSort.AlphabeticalAsc);

/** A row that is closed until somebody wants it; its panels ask nothing before. */
function closedRow(id: number, title: string, y: number, panels: readonly ReturnType<typeof tablePanel>[]): RowBuilder {
  const row = new RowBuilder(title).id(id).collapsed(true).gridPos({ x: 0, y, w: 24, h: 1 });
  for (const panel of panels) row.withPanel(panel);
  return row;
}

/** The dashboard as Grafana reads it from a file. */
export function comparisonDashboard(): Dashboard {
  return new DashboardBuilder('Comparison')
    .uid(uid)
    .description('An article\'s table, published beside measured, for one run of one scenario.')
    .tags(['bakeoff'])
    .editable()
    .timezone('browser')
    .tooltip(DashboardCursorSync.Off)
    .time({ from: 'now-15m', to: 'now' })
    .withVariable(scenarioVariable)
    .withVariable(runVariable)
    .withVariable(variantVariable)
    .withPanel(articleTable)
    .withPanel(requestBars)
    .withPanel(ratioBars)
    .withPanel(surenessPanel)
    .withPanel(requestsOverTime)
    .withPanel(noiseFloorPanel)
    .withPanel(phasesPanel)
    .withPanel(trafficPanel)
    .withRow(closedRow(14, 'Answers by latency bucket (loads at a constant rate)', 47, [histogramPanel]))
    .withRow(closedRow(15, 'Times, requests/s per client and thread, TLS: what else h2load and wrk print', 48, toolPanels))
    .withRow(closedRow(22, 'Round by round: ratios, and what else used the machine', 49, [roundsPanel]))
    .withPanel(behindTheFigures)
    .withPanel(runs)
    .build();
}
