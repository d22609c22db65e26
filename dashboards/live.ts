// The Live run dashboard: what a load does while it goes on, or did at the time of another run. Its panels, unlike those
// of the others, ask for no more than the time range, since they are asked again and again.
import {
  TimePickerBuilder,
  type AnnotationQuery,
  type Dashboard,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import { benchRound, serverCpu } from '../lib/features/influxdb/round-points.ts';
import { askedOnce } from './asked-once.ts';
import { board, runsPanel, variable } from './board.ts';
import { heatmapPanel, timeSeriesPanel } from './charts.ts';
import { datasource, target } from './frame.ts';
import {
  loadgenMeasurement,
  perSecondUnderLoad,
  pickedRun,
  select,
  selectEvery,
  selectOverGenerators,
  tagValues,
} from './influxql.ts';

const requests = loadgenMeasurement('loadgen_requests');

/** As much of the run as lies in the time range. */
const picked = { ...pickedRun, inTimeRange: true } as const;

const nothingHere =
  'Nothing was measured in this time range: start a run, or click on one in the list below.';
/** Samples are a second apart. */
const gapMs = 2500;

/** The panel that has the marks of rounds. */
const marked = 1;

const responsesOverTime = timeSeriesPanel({
  id: marked,
  title: 'Responses/s',
  description:
    'Responses of any status in each second, per second under load: variants take turns of about 20 ms, longer where a server waits and at a rate, and each has the time of its own. A mark is where a load of a round that is whole began.',
  grid: { x: 0, y: 0, w: 10, h: 8 },
  lines: [
    {
      ...perSecondUnderLoad('loadgen_responses', { where: picked, groupBy: ['variant'] }),
      name: '${__field.labels.variant}',
    },
  ],
  noLines: nothingHere,
  unit: 'short',
  axis: 'responses/s',
  gapMs,
});

const ratio = timeSeriesPanel({
  id: 9,
  title: 'Ratio so far',
  description:
    'To the baseline, over the rounds so far: of requests/s, at a constant rate of p99, with --metric of what that named, with the ends of its 95 % interval, which narrows as rounds are added: a verdict is there once it leaves out 1 (dashed) or lies ' +
    'within what counts as the same. It begins with the third round.',
  grid: { x: 10, y: 0, w: 7, h: 8 },
  lines: [
    {
      query: select({
        columns: ['ratio_so_far', 'ci_low', 'ci_high'],
        from: benchRound,
        where: { ...picked, isNot: { round: ['1', '2'] } },
        groupBy: ['variant'],
      }),
      alias: '$col',
    },
  ],
  looks: [
    { name: 'ratio_so_far', title: '${__field.labels.variant}' },
    { name: 'ci_low', title: '${__field.labels.variant}, 95 % low', dashed: true },
    { name: 'ci_high', title: '${__field.labels.variant}, 95 % high', dashed: true },
  ],
  noLines: 'No ratios here: nothing is compared, or there are no three rounds yet.',
  unit: 'prefix:×',
  decimals: 3,
  axis: 'ratio',
  lineAt: 1,
});

const cpu = timeSeriesPanel({
  id: 2,
  title: 'CPU: 100 % is one core',
  description:
    "CPU time per second of the generator (all of k6) and of the server's processes. A generator at its limit with a server " +
    'below its own measures the generator.',
  grid: { x: 17, y: 0, w: 7, h: 8 },
  lines: [
    {
      // The runner samples it ten times a second.
      query: selectEvery({
        of: 'mean',
        field: 'value',
        from: serverCpu,
        where: picked,
        groupBy: ['server', 'variant'],
        every: '1s',
        fill: 'none',
      }),
      alias: 'server, $tag_variant',
    },
    // After them: each server has the colour that its variant has in other panels. Where sides take turns, each of them tells the whole of k6.
    {
      query: selectEvery({
        of: 'mean',
        field: 'value',
        from: loadgenMeasurement('loadgen_generator_cpu'),
        where: picked,
        every: '1s',
        fill: 'none',
      }),
      alias: 'generator',
    },
  ],
  noLines: nothingHere,
  // Not with 0 decimals: Grafana then ends the axis at a whole core, and labels whole cores only.
  unit: 'percentunit',
  axis: 'share of a core',
  gapMs,
});

const latencies = heatmapPanel({
  id: 3,
  title: "Latency of each second's answers",
  description: 'How many answers of each second took how long: the fuller the colour, the more.',
  // Lower, the labels of three powers of ten, ten each, would overlap: Grafana leaves some out only below 10 pixels for each.
  grid: { x: 0, y: 8, w: 12, h: 16 },
  lines: {
    query: selectEvery({
      of: 'sum',
      field: 'value',
      from: loadgenMeasurement('loadgen_latency_bucket'),
      where: picked,
      groupBy: ['le'],
      every: '1s',
      fill: 'none',
    }),
    alias: '$tag_le',
  },
  noCells: nothingHere,
});

const percentiles = timeSeriesPanel({
  id: 4,
  title: 'Latency percentiles of each second',
  description:
    "Of each variant's answers of each second. The scale is logarithmic. With a constant rate latency runs from the moment at which a request was due.",
  grid: { x: 12, y: 8, w: 12, h: 16 },
  lines: [
    {
      query: select({
        columns: ['value'],
        from: loadgenMeasurement('loadgen_latency_ms'),
        // Those of the whole phase, written at its end, have a scope.
        where: { ...picked, is: { stat: ['p50', 'p90', 'p99', 'max'], scope: [''] } },
        groupBy: ['variant', 'stat'],
      }),
      alias: '$tag_variant, $tag_stat',
    },
  ],
  noLines: nothingHere,
  // Milliseconds to begin with, and whichever prefix fits: 100 µs, not 0.100 ms.
  unit: 'si:ms',
  axis: 'latency',
  gapMs,
  logarithmic: true,
});

const failures = timeSeriesPanel({
  id: 5,
  title: 'Failures per second',
  description:
    'Per second under load: attempts without a response by kind of error, and answers with a status of 4xx or 5xx, which are quick and raise responses/s (also where they are what was asked for, --status).',
  grid: { x: 0, y: 24, w: 8, h: 8 },
  lines: [
    {
      ...perSecondUnderLoad('loadgen_errors', { where: picked, groupBy: ['kind'] }),
      name: 'error: ${__field.labels.kind}',
    },
    {
      ...perSecondUnderLoad('loadgen_responses', {
        where: { ...picked, is: { class: ['4xx', '5xx'] } },
        groupBy: ['class'],
      }),
      name: '${__field.labels.class} answers',
    },
  ],
  noLines: 'No errors in this time range, and no answers of 4xx or 5xx.',
  unit: 'suffix:/s',
  axis: 'per second',
  gapMs,
});

const connections = timeSeriesPanel({
  id: 6,
  title: 'Connections',
  description: 'Open connections at the end of each second.',
  grid: { x: 8, y: 24, w: 8, h: 8 },
  lines: [
    {
      query: selectOverGenerators({
        of: 'last',
        over: 'sum',
        field: 'value',
        from: loadgenMeasurement('loadgen_connections'),
        where: picked,
        groupBy: ['variant'],
        every: '1s',
        fill: 'none',
      }),
      alias: '$tag_variant',
    },
  ],
  noLines: nothingHere,
  unit: 'none',
  decimals: 0,
  axis: 'connections',
  gapMs,
});

const traffic = timeSeriesPanel({
  id: 7,
  title: 'Bytes/s',
  description:
    'Received header and body bytes, and all bytes sent, in each second, per second under load. With TLS it is what was in its records.',
  grid: { x: 16, y: 24, w: 8, h: 8 },
  lines: [
    {
      ...perSecondUnderLoad('loadgen_bytes', { where: picked, groupBy: ['direction', 'part'] }),
      name: '${__field.labels.direction}, ${__field.labels.part}',
    },
  ],
  noLines: nothingHere,
  unit: 'binBps',
  axis: 'bytes/s',
  gapMs,
});

/**
 * Grafana takes an annotation's text from one column of the answer. Not the SDK's builder: it knows no queries of InfluxDB.
 * Grafana 12 sends the query of the target and none without one; what stands beside it is for versions that know no target.
 */
const rounds: Builder<AnnotationQuery> = {
  build: () => {
    const asked = {
      name: 'Rounds',
      query: select({ columns: ['label', 'variant'], from: benchRound, where: picked }),
      textColumn: 'label',
      // Left empty, some versions take every column for tags.
      tagsColumn: 'tags',
      // Without one the time is the title, as a number.
      titleColumn: 'variant',
      timeEndColumn: '',
    };
    return {
      ...asked,
      datasource,
      enable: true,
      hide: false,
      iconColor: 'text',
      // Of a whole run there are many.
      filter: { ids: [marked] },
      target: target({ refId: 'Anno', queryType: 'tags', fromAnnotations: true, ...asked }).build(),
    };
  },
};

const variables = [
  // The newest is picked where an address names none.
  variable({ name: 'run', label: 'Run', query: tagValues(requests, 'run'), newestFirst: true }),
  // Its own: the links to the other dashboards keep it.
  variable({
    name: 'scenario',
    query: tagValues(requests, 'scenario', { equal: { run: 'run' } }),
    follows: true,
  }),
];

/** The dashboard as Grafana reads it from a file. */
export function liveDashboard(): Dashboard {
  const builder = board('live', {
    description: 'What a load does while it goes on. At another time range: what it did then.',
    variables,
    from: 'now-5m',
  })
    .refresh('2s')
    .timepicker(new TimePickerBuilder().refreshIntervals(['2s', '5s', '10s', '30s', '1m']))
    .annotation(rounds);
  for (const panel of askedOnce([
    responsesOverTime,
    ratio,
    cpu,
    latencies,
    percentiles,
    failures,
    connections,
    traffic,
  ]))
    builder.withPanel(panel);
  return builder
    .withPanel(runsPanel({ id: 8, y: 32, opens: 'live', where: {}, title: 'Runs' }))
    .build();
}
