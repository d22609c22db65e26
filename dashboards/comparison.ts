// The Comparison dashboard: one run of one scenario, or of own configs.
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { enumeration } from '../lib/format.ts';
import { present } from '../lib/present.ts';
import { factsOf, serverMetricNames } from '../lib/result/server-metrics.ts';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { benchBucket } from '../lib/features/influxdb/phase-points.ts';
import { benchWhy } from '../lib/features/influxdb/schema.ts';
import {
  board,
  closedRow,
  kindVariable,
  runsPanel,
  scenarioVariable,
  unpublished,
  variable,
} from './board.ts';
import {
  effectPanel,
  roundsPanel,
  sentencesPanel,
  surenessPanel,
  verdictColumn,
  verdictPanel,
} from './certainty.ts';
import { timeSeriesPanel } from './charts.ts';
import { perSecondUnderLoad, pickedRun, tagValues, tagValuesByTime } from './influxql.ts';
import { intervalPanel } from './intervals.ts';
import {
  h2loadPanels,
  histogramPanel,
  phasesPanel,
  threadsPanel,
  tlsPanel,
  trafficPanel,
} from './load-phases.ts';
import { errorsPanel, linkPanel } from './network.ts';
import { noteColumn, nullAs, tablePanel, variantColumn } from './tables.ts';

// A laptop's screen leaves 1316 pixels to a table over the whole width, while Grafana's menu is not docked beside it. Where there
// are fewer the answer comes first, and what scrolls is the rest.
const table = tablePanel({
  id: 1,
  title: '${scenario}: verdicts and figures',
  description:
    'One row per variant, in the order of the scenario. "published" is the ratio that the article\'s figures have; ' +
    '"req/s" is the median over the rounds of this run, of responses of any status, or with --within the rate that was found. "effect" is how much more or less than its baseline within the same round a variant has of requests/s, where the load sets these of p99, or of what --metric named ("by" in Behind the figures), ' +
    'with its 95 % interval. A verdict holds for this machine in this boot; "delay not held" ' +
    'marks one whose two rows did not both have the delay that was asked for, "not final" one of a run that is not complete. ' +
    '"errors/M" are attempts without a response per million requests; "success" is the share of requests that were answered as they should be: with 2xx or 3xx, a page of one\'s own with its own class of status.',
  grid: { x: 0, y: 11, w: 24, h: 8 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    // Up to the verdict it fits 600 pixels.
    { ...variantColumn, minWidth: 140, wrapped: true },
    { name: 'published_ratio', title: 'published', width: 80 },
    { name: 'effect', title: 'effect, 95 %', width: 175 },
    { ...verdictColumn, width: 180 },
    { name: 'why', minWidth: 190, wrapped: true },
    { name: 'measured_rps', title: 'req/s', width: 80, mappings: [nullAs('not run')] },
    { name: 'p99_ms', title: 'p99', width: 85 },
    { name: 'errors_per_million', title: 'errors/M', width: 78 },
    { name: 'success_ratio', title: 'success', width: 73, percent: true, decimals: 2 },
  ],
});

const requestsOverTime = timeSeriesPanel({
  id: 3,
  title: 'Responses/s over time',
  description:
    "Responses of any status in each second, per second under load; the variants take turns. If it lies outside of the dashboard's " +
    'time range, "Zoom to data" or a click on the run in the list below brings it here.',
  grid: { x: 0, y: 47, w: 24, h: 9 },
  lines: [
    {
      ...perSecondUnderLoad('loadgen_responses', { where: pickedRun, groupBy: ['variant'] }),
      name: '${__field.labels.variant}',
    },
  ],
  noLines: 'No second of this run is stored, with how much of it was under load.',
  unit: 'short',
  axis: 'responses/s',
  gapMs: 2500,
});

const behindTheFigures = tablePanel({
  id: 4,
  title: 'Behind the figures',
  description:
    "Against which baseline, by which figure, and why the row is there; the median and the highest latency; how busy the server's and the generator's cores were " +
    '(a generator near 100 % with a server below it measures the generator); bytes received per request.',
  grid: { x: 0, y: 60, w: 24, h: 9 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    { ...variantColumn, width: 170 },
    { name: 'baseline', title: 'against', width: 128 },
    { name: 'metric', title: 'by', width: 90, mappings: [nullAs('requests/s')] },
    noteColumn,
    { name: 'server', width: 70 },
    { name: 'version', width: 70 },
    { name: 'requests', width: 95 },
    { name: 'p50_ms', title: 'p50', width: 80 },
    { name: 'max_ms', title: 'max', width: 85 },
    { name: 'server_share', title: 'server busy', width: 99, percent: true },
    { name: 'generator_share', title: 'generator busy', width: 122, percent: true },
    { name: 'header_bytes_per_request', title: 'header/req', width: 92 },
    { name: 'total_bytes_per_request', title: 'total/req', width: 85 },
  ],
});

const causes = tablePanel({
  id: 40,
  title: 'Why: CPU µs of a request',
  description:
    'What the CPU time of a request is made of, from a look of perf after the rounds (docs/verdicts.md): a system call with all that the kernel does in it, ' +
    "other work of the kernel, and in user space the server's own code and each library.",
  grid: { x: 0, y: 69, w: 24, h: 12 },
  from: benchWhy,
  where: pickedRun,
  noRows: 'This run did not look at causes: --why does, as root, where perf is.',
  columns: [
    { ...variantColumn, width: 170 },
    { name: 'part', minWidth: 160 },
    { name: 'calls_per_request', title: 'calls/req', width: 95, decimals: 2 },
    { name: 'cpu_us', title: 'CPU µs/req', bar: true, decimals: 2 },
    { name: 'cpu_sd_us', title: 'sd', width: 80, decimals: 2 },
  ],
});

const ofServerMetrics = serverMetricNames.map((metric) => ({ metric, ...factsOf(metric) }));

const ofServers = tablePanel({
  id: 43,
  title: `Of the servers: ${enumeration(ofServerMetrics.map(({ name }) => name))}`,
  description:
    `Medians of the rounds: ${ofServerMetrics.map(({ about }) => about).join(', and ')}. ` +
    'The changes have 95 % intervals, and a verdict only with --metric or --fail-if. Start-up only where a run was asked for it.',
  grid: { x: 0, y: 81, w: 24, h: 8 },
  from: benchComparison,
  where: pickedRun,
  columns: [
    { ...variantColumn, width: 220 },
    { name: 'baseline', title: 'against', width: 170 },
    ...ofServerMetrics.flatMap(({ metric, name, column, columnUnit }) => [
      {
        name: column,
        title: name,
        width: 110,
        ...present({ decimals: columnUnit === 'bytes' ? 1 : undefined }),
      },
      { name: `${metric}_effect` as const, title: `${name}, 95 %` },
    ]),
  ],
});

const variables = [
  kindVariable,
  scenarioVariable({ like: { article: 'kind' } }),
  // A run without a table is not offered.
  variable({
    name: 'run',
    label: 'Run',
    query: tagValues(benchComparison, 'run', { equal: { scenario: 'scenario' } }),
    newestFirst: true,
  }),
  // Those that were measured, in the order of the table.
  variable({
    name: 'compared',
    query: tagValuesByTime({
      from: benchComparison,
      tag: 'variant',
      beside: 'position',
      where: { ...pickedRun, has: 'baseline', isNot: { server: [''] } },
    }),
    byTime: true,
    multi: true,
  }),
  variable({ name: 'variant', query: tagValues(benchBucket, 'variant', pickedRun), multi: true }),
  unpublished,
];

/** The dashboard as Grafana reads it from a file. */
export function comparisonDashboard(): Dashboard {
  return board('comparison', {
    description:
      'One run of a scenario or of own configs: verdicts, effects and what explains them.',
    variables,
    from: 'now-15m',
  })
    .withPanel(verdictPanel)
    .withPanel(sentencesPanel)
    .withPanel(table)
    .withPanel(intervalPanel())
    .withPanel(effectPanel)
    .withPanel(surenessPanel)
    .withPanel(requestsOverTime)
    .withRow(
      closedRow(15, 'What h2load, wrk and vegeta print: times, traffic, TLS, buckets', 56, [
        phasesPanel({ id: 6, y: 57 }),
        trafficPanel({ id: 7, y: 66 }),
        ...h2loadPanels({ id: 9, y: 75 }),
        threadsPanel({ id: 20, y: 111 }),
        tlsPanel({ id: 13, y: 120 }),
        histogramPanel({ id: 8, y: 129 }),
      ]),
    )
    .withRow(
      closedRow(22, 'Round by round, what went over the link, what failed', 57, [
        roundsPanel,
        errorsPanel,
        linkPanel,
      ]),
    )
    .withRow(
      closedRow(
        41,
        'Behind the figures: load, causes of CPU time, memory and start-up of the servers',
        58,
        [behindTheFigures, causes, ofServers],
      ),
    )
    .withPanel(
      runsPanel({
        id: 5,
        y: 59,
        opens: 'comparison',
        where: { equal: { scenario: 'scenario' } },
        title: 'Runs of ${scenario}',
      }),
    )
    .build();
}
