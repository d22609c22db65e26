// Panels on how sure a table is: the effect with its interval, CPU time as a second witness, and every
// round by itself.
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueTextMode,
  ReduceDataOptionsBuilder,
  VizOrientation,
} from '@grafana/grafana-foundation-sdk/common';
import { FieldColorBuilder, FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { benchRound } from '../lib/features/influxdb/round-points.ts';
import { benchSentence } from '../lib/features/influxdb/schema.ts';
import { timeSeriesPanel } from './charts.ts';
import { framed, tableQuery } from './frame.ts';
import { pickedRun, select } from './influxql.ts';
import {
  colours,
  matched,
  nullAs,
  tablePanel,
  variantColumn,
  zeroAs,
  type Column,
} from './tables.ts';

/** The same everywhere. */
export const verdictColours = {
  faster: 'green',
  slower: 'red',
  same: 'blue',
  inconclusive: 'orange',
  none: 'text',
};

/** The answer in words, which is to be seen first. */
export const sentencesPanel = tablePanel({
  id: 31,
  title: '${scenario}: what was found',
  description:
    "A sentence on each comparison that the table below does not say all of, and what warns: a quick run, a generator at its limit, a machine that was not quiet. They come with the run's end.",
  grid: { x: 0, y: 4, w: 24, h: 7 },
  from: benchSentence,
  where: pickedRun,
  noRows: 'The run goes on, or compares nothing: sentences come with its end.',
  columns: [
    // What it says of a delay, or of rounds to come, stands in the sentence.
    {
      name: 'kind',
      title: 'verdict',
      width: 105,
      coloured: true,
      mappings: [
        colours({ ...verdictColours, warning: 'orange' }),
        matched('found', { color: 'text', text: '–' }),
        matched('(\\w+), .*', { color: 'orange', text: '$1' }),
      ],
    },
    { name: 'text', title: 'in words', minWidth: 400, wrapped: true },
  ],
});

/** What a verdict is shown as, with the mark of one whose delay was not held. */
const verdictMappings = [
  colours(verdictColours),
  // The mark comes first: it fits, and what follows it is to be read after it.
  matched('(\\w+)((?:, delay not held)?), (not final)', { color: 'text', text: '$3: $1$2' }),
  matched('(.*), (delay not held)', { color: 'orange', text: '$2: $1' }),
  nullAs('–', 'text'),
];

export const verdictColumn: Column<typeof benchComparison> = {
  name: 'verdict',
  // "delay not held: inconclusive" fits.
  width: 185,
  coloured: true,
  mappings: verdictMappings,
};

const ofCompared = { equal: { ...pickedRun.equal, variant: 'compared' } } as const;

/** Verdict and effect of one variant, in the largest letters that fit; it is repeated for each that has a baseline. */
export const verdictPanel = framed(
  new stat.PanelBuilder(),
  {
    id: 44,
    // As `csv` a variable without values is nothing, and not "All".
    title: '${compared:csv}',
    description:
      'The verdict, and the effect with its 95 % interval: how much more or less than its baseline\'s, of requests/s or of what stands under "by" in Behind the figures.',
    grid: { x: 0, y: 0, w: 24, h: 4 },
  },
  [
    tableQuery(
      select({ columns: ['verdict', 'effect'], from: benchComparison, where: ofCompared }),
    ),
  ],
  { variable: 'compared', perRow: 4 },
)
  .noValue('Nothing is compared here, or no round is whole yet.')
  .reduceOptions(
    new ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields('/^(verdict|effect)$/'),
  )
  .textMode(BigValueTextMode.Value)
  // One below the other.
  .orientation(VizOrientation.Horizontal)
  .graphMode(BigValueGraphMode.None)
  .colorMode(BigValueColorMode.Value)
  .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Fixed).fixedColor('text'))
  .overrideByName('verdict', [{ id: 'mappings', value: verdictMappings }]);

/** The effect of one variant, round by round; it is repeated for each that has a baseline. */
export const effectPanel = timeSeriesPanel({
  id: 23,
  // In short, since three stand side by side.
  title: 'Ratio per round: ${compared:csv}',
  description:
    'Points are the ratios within each round, of requests/s or of what stands under "by" in Behind the figures. The line is the ratio over the rounds so far, the band its 95 % interval: ' +
    'it narrows as rounds are added, and a verdict is there once it leaves out 1 (dashed) or lies within what counts as the same. ' +
    'The band begins with the third round: that of two would take the whole scale.',
  grid: { x: 0, y: 30, w: 24, h: 8 },
  lines: [
    {
      query: select({
        columns: ['ratio', 'ratio_so_far'],
        from: benchRound,
        where: ofCompared,
      }),
      alias: '$col',
    },
    {
      query: select({
        columns: ['ci_low', 'ci_high'],
        from: benchRound,
        where: { ...ofCompared, isNot: { round: ['1', '2'] } },
      }),
      alias: '$col',
    },
  ],
  looks: [
    { name: 'ratio', title: 'within this round', color: 'orange', points: true },
    { name: 'ratio_so_far', title: 'over the rounds so far', color: 'blue' },
    { name: 'ci_low', title: '95 % low', color: 'blue', edge: true },
    { name: 'ci_high', title: '95 % high', color: 'blue', bandTo: '95 % low' },
  ],
  noLines: 'Nothing is compared here, or no round is whole yet.',
  unit: 'prefix:×',
  decimals: 3,
  axis: 'ratio to the baseline',
  lineAt: 1,
  repeat: { variable: 'compared', perRow: 3 },
});

/** CPU time per request beside what is still undecided. */
export const surenessPanel = tablePanel({
  id: 16,
  title: 'CPU per request, and how sure the verdicts are',
  description:
    '"CPU" is the server\'s CPU time per request and its ratio to the baseline\'s within the same round, with the 95 % interval: it needs no ' +
    'saturated server. "rounds needed" would probably decide an inconclusive row. "looks" are the rounds after which verdicts were to be made; ' +
    'rounds that lie apart count like all others, but for one that was measured again. The last column says why requests/s and CPU may say different things.',
  grid: { x: 0, y: 38, w: 24, h: 9 },
  from: benchComparison,
  where: pickedRun,
  noRows: 'This run has no figures yet.',
  columns: [
    { ...variantColumn, width: 200 },
    { name: 'server_cpu_micros_per_request', title: 'CPU', width: 75 },
    { name: 'cpu_ratio', title: 'CPU ratio', width: 85 },
    { name: 'cpu_ci_low', title: '95 % low', width: 82 },
    { name: 'cpu_ci_high', title: '95 % high', width: 88 },
    { name: 'rounds', width: 70 },
    { name: 'looks', width: 85 },
    { name: 'rounds_needed', title: 'rounds needed', width: 121, mappings: [zeroAs('–')] },
    { name: 'outliers', title: 'rounds apart', width: 105 },
    { name: 'disagreement', title: 'where they disagree' },
  ],
});

/** Every round by itself: its ratio, and what else used the machine. */
export const roundsPanel = tablePanel({
  id: 21,
  title: 'Round by round, in the order in which they were run',
  description:
    '"ratio" is that to the baseline of the same round. "steal" is what the hypervisor took of the server\'s cores and of the generator\'s; ' +
    '"others" what else used the server\'s cores; clocks are those of the server\'s cores at begin and end.',
  grid: { x: 0, y: 59, w: 24, h: 14 },
  from: benchRound,
  where: pickedRun,
  noRows: 'This run has no whole round yet.',
  columns: [
    { name: 'round', width: 62 },
    { name: 'phase', width: 62 },
    variantColumn,
    { name: 'measured_rps', title: 'req/s', width: 85 },
    { name: 'ratio', width: 75, decimals: 3 },
    { name: 'server_cpu_micros_per_request', title: 'CPU', width: 75 },
    { name: 'generator_share', title: 'generator busy', width: 122, percent: true },
    { name: 'server_steal_share', title: 'steal, server', width: 105, percent: true, decimals: 1 },
    {
      name: 'generator_steal_share',
      title: 'steal, generator',
      width: 126,
      percent: true,
      decimals: 1,
    },
    { name: 'server_others_share', title: 'others', width: 68, percent: true, decimals: 1 },
    { name: 'load_average', title: 'load average', width: 107 },
    { name: 'server_mhz_begin', title: 'clock at begin', width: 114 },
    { name: 'server_mhz_end', title: 'clock at end', width: 105 },
  ],
});
